/* What the requests have in common: reading the body, finding the plan, saying why not. */
#ifndef ENGINE_CONTROL_H
#define ENGINE_CONTROL_H

#include "supervisor/engine/engine.h"

/* Reads the body of a request; false after refusing. */
bool request_read(struct engine *engine, struct request *rq, enum msg_type type, void *body);

/* The open plan that a request is about; NULL after refusing: NOT_FOUND when there is no such plan,
 * CONFLICT when it has ended, INVALID for a job. */
struct open_plan *request_open_plan(struct engine *engine, struct request *rq, struct str plan_id);
/* INVALID: the id is that of a job, which nobody but its owner changes. */
void request_refuse_job(struct engine *engine, struct request *rq, struct str of);
/* NOT_FOUND: "No state found for <id>" (M110). */
enum bt_code request_no_plan(struct str plan_id, struct bt_error *err);
/* The journal's row of any plan, open or ended. BT_NOT_FOUND as above. */
BT_MUST_CHECK enum bt_code request_plan_row(struct engine *engine, struct str plan_id,
                                            struct journal_plan *ret, struct bt_error *err);
/* The document of a revision of the plan, in the arena. BT_NOT_FOUND: no such plan or revision. */
BT_MUST_CHECK enum bt_code request_document(struct engine *engine, struct str plan_id,
                                            uint64_t revision, struct arena *arena, struct doc *ret,
                                            struct bt_error *err);

/*
 * Feeds a request's event. False when the request was refused with the core's reason (the journal's
 * failure is the cycle's, not the request's: false, too). p is the plan that the event is about.
 * not_waiting: what to say for REJECT_NOT_WAITING; NULL = the core's words.
 */
bool request_feed(struct engine *engine, struct request *rq, const struct open_plan *p,
                  struct core_event *ev, const char *not_waiting);
/* CONFLICT with the current revision, in words and in error.details {revision}. */
void request_refuse_revision(struct engine *engine, struct request *rq, const struct open_plan *p);
/* The core's reason as an error: CONFLICT, NOT_FOUND, LIMIT or BUSY. revision: of the plan now. */
enum bt_code request_reject(enum core_reject reject, uint32_t revision, struct bt_error *err);
/* Why a plan cannot be paused, resumed or changed now, when the core says that nothing waits;
 * otherwise: when there is no better reason. */
const char *request_why_not(const struct open_plan *p, const char *otherwise);
/* api_revise.c: the kinds of plan.modify that bring new steps. Answers. */
void api_revise(struct engine *engine, struct request *rq, struct open_plan *p,
                const struct msg_plan_modify *m, enum modify_kind kind, uint32_t expect);

/* The handlers, one per REQUEST of messages.def. Each answers rq once: at once, or later when it
 * parks rq. */
typedef void request_fn(struct engine *engine, struct request *rq);
#define REQUEST(name, handler, answer, sender, sentence) request_fn handler;
#include "protocol/messages.def"
#endif
