/*
 * Errands: what a plan as a whole, or a session, asks of an agent. An errand is a plan of one step
 * of its own, run by the same core as all others: lanes, retries, deadlines, budget and recovery
 * are the core's. Its records are internal rows. Here it is started, and its end is taken to who
 * waits for it, in the same turn and so in the same commit as the records on both sides.
 *
 *   CMD_ERRAND of a plan ──► errand_start ──► the errand's own run ──► PLAN_COMPLETED of it
 *        ^                                                                   │
 *        └── PLANNING_RETRY ── CORE_ERRAND_FAILED │ CORE_PLANNED │ ... ◄─────┘ errands_turn
 */
#ifndef BUS_ERRAND_H
#define BUS_ERRAND_H

#include "supervisor/engine/bus.h"

/* A person may write a plan of LIMIT_STEPS; from a model it is rather an accident, and dear. */
enum { PLANNED_STEPS_MAX = 1000 };

/* What a plan that is an errand knows of it. */
struct errand {
    enum errand_kind kind;
    uint32_t attempt;             /* of asking the planner; filled in at its end */
    uint32_t told;                /* attempt whose text was told last; 0 = none yet */
    char of[LIMIT_ID_BYTES + 1];  /* the plan, or the session, that it is for */
    char turn[UUID_TEXT_LEN + 1]; /* CONVERSE: the turn; DIGEST: the last message in it */
};

struct errand_ask {
    enum errand_kind kind;
    uint32_t attempt; /* of asking the planner */
    struct str of, turn;
    struct str session_id;
    struct str agent_id, skill;
    struct str task;
    msec timeout_ms;         /* of all its attempts; 0 = none */
    uint64_t tokens, micros; /* that it may spend; UINT64_MAX = no budget */
};

/* How an errand ended; lives until the turn has been performed. */
struct errand_end {
    bool ok;
    struct blob_ref result; /* ok: {text?, data?} */
    enum err_class error_class;
    struct str text; /* why it failed */
    struct usage usage;
};

/* Starts one in this turn. *ret_run: its run. BT_BUSY: no room. A failure of the journal is the
 * bus's (b->failed). */
BT_MUST_CHECK enum bt_code errand_start(struct bus *b, const struct errand_ask *ask,
                                        uint64_t *ret_run, struct bt_error *err);
/* Nobody waits for it any more: calls it off. Unknown runs are passed by. */
void errand_stop(struct bus *b, uint64_t run);

/* ---- within the turn; called by bus.c and records.c ---- */
void errand_on_command(struct bus *b, const struct core_cmd *cmd);
void errand_on_record(struct bus *b, const struct bus_plan *p, const struct record *rec);
/* Does what the turn's commands and records of errands lead to, until nothing is left. Before the
 * commit. */
void errands_turn(struct bus *b);
/* After a recovery: plans find the errands that go on for them. Before errands_turn. */
void errands_find(struct bus *b);
/* Of a plan that was read: NULL when it is no errand; free() it. *ret_ok false: out of memory. */
struct errand *errand_of_document(struct doc document, bool *ret_ok);

/* ---- errand_planned.c, errand_answer.c: what an errand of a plan brought ---- */
void errand_planned(struct bus *b, struct bus_plan *p, const struct errand *e,
                    const struct errand_end *end);
void errand_answered(struct bus *b, struct bus_plan *p, const struct errand *e,
                     const struct errand_end *end);
/* Gives the core what an errand brought: CORE_PLANNED or CORE_RECTIFY. False when it does not take
 * it: the plan still waits. */
bool errand_bring(struct bus *b, const struct bus_plan *p, enum core_event_type type,
                  struct bus_revision *revision, struct blob_ref document, struct str text,
                  const struct usage *usage);
/* Tells the core that an errand came to nothing. */
void errand_failed(struct bus *b, const struct bus_plan *p, const struct errand *e,
                   const struct errand_end *end, struct str why, bool invalid, uint64_t problems);
#endif
