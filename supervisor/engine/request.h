/* A request in hand, and what requests have in common: reading the body, finding the plan,
 * answering once, saying why not. */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H

#include "protocol/auth/identity.h"
#include "protocol/auth/seal.h"
#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

struct request {
    uint64_t handle;
    const struct identity *who; /* the sender; a handler never sees NULL. Valid in its call */
    struct seal seal;           /* of the request, for its answer; n is 0 when it was not sealed */
    struct msg_reader reader;
    struct msg_envelope env;
    size_t bytes;         /* as it came */
    enum msg_type answer; /* the type of its answer, from messages.def */
    struct buf *into; /* the answer is appended to it, as a part of another; NULL = it is sent */
    bool answered;
    enum bt_code refused; /* BT_OK: it was not */
};

void request_answer(struct engine *engine, struct request *rq, enum msg_type type,
                    const void *body);
/* The same, but returns BT_LIMIT for an answer that is too large instead of refusing: the request
 * is then still to be answered. */
BT_MUST_CHECK enum bt_code request_try_answer(struct engine *engine, struct request *rq,
                                              enum msg_type type, const void *body,
                                              struct bt_error *err);
/* retry_after_ms 0: none, but BUSY and UNAVAILABLE always carry one. */
void request_refuse(struct engine *engine, struct request *rq, const struct bt_error *why,
                    enum err_class cls, uint64_t retry_after_ms, struct doc details);
void request_refuse_text(struct engine *engine, struct request *rq, enum bt_code code,
                         const char *fmt, ...) BT_PRINTF(4, 5);

/* Reads the body of a request; false after refusing. */
bool request_read(struct engine *engine, struct request *rq, enum msg_type type, void *body);

/* The open plan that a request changes; NULL after refusing: UNAUTHORIZED when it is another's,
 * NOT_FOUND when there is no such plan, CONFLICT when it has ended, INVALID for a job. */
struct open_plan *request_open_plan(struct engine *engine, struct request *rq, struct str plan_id);
/* CONFLICT: the plan of the row has ended, or is in quarantine, which is an end, too. */
void request_refuse_ended(struct engine *engine, struct request *rq,
                          const struct journal_plan *row);
/* INVALID: the id is that of a job, which only its owner changes. */
void request_refuse_job(struct engine *engine, struct request *rq, struct str of);
/* NOT_FOUND: "No state found for <id>" (M110). */
enum bt_code request_no_plan(struct str plan_id, struct bt_error *err);
/* The journal's row of any plan, open or ended, that the sender of the request in hand may see,
 * without its document. BT_NOT_FOUND as above, also for one of another. BT_GONE: it was deleted;
 * the sentence has when and why. */
BT_MUST_CHECK enum bt_code request_plan_row(struct engine *engine, struct str plan_id,
                                            struct journal_plan *ret, struct bt_error *err);
/* The same with the document that was submitted, which is long to read. */
BT_MUST_CHECK enum bt_code request_plan_document(struct engine *engine, struct str plan_id,
                                                 struct journal_plan *ret, struct bt_error *err);

/*
 * Feeds a request's event about the plan p. False: the core rejected it and the request was refused
 * with the reason, or the journal failed, which ends the cycle. not_waiting: the text for
 * REJECT_NOT_WAITING; NULL = the core's words.
 */
bool request_feed(struct engine *engine, struct request *rq, const struct open_plan *p,
                  struct core_event *ev, const char *not_waiting);
/* The same for an event that brings a revision: see engine_revise. */
bool request_revise(struct engine *engine, struct request *rq, const struct open_plan *p,
                    struct core_event *ev, struct new_revision *revision, const char *not_waiting);
/* The core's reason as an error: CONFLICT, NOT_FOUND, LIMIT or BUSY. revision: of the plan now. */
enum bt_code request_reject(enum core_reject reject, uint32_t revision, struct bt_error *err);
/* CONFLICT with the current revision, in words and in error.details {revision}. */
void request_refuse_revision(struct engine *engine, struct request *rq, const struct open_plan *p);
#endif
