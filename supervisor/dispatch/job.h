/*
 * Jobs: what a plan as a whole, or a session, asks of an agent. A job is a plan of one step
 * of its own, run by the same core as all others: lanes, retries, deadlines, budget and recovery
 * are the core's. Its records are internal rows. Here it is started, and its end is taken to who
 * waits for it, in the same cycle and so in the same commit as the records on both sides.
 *
 *   CMD_JOB of a plan ──► job_start ──► the job's own run ──► PLAN_COMPLETED of it
 *        ^                                                                   │
 *        └── PLANNING_RETRY ── CORE_JOB_FAILED │ CORE_PLANNED │ ... ◄─────┘ jobs_cycle
 */
#ifndef DISPATCH_JOB_H
#define DISPATCH_JOB_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

/* A person may write a plan of LIMIT_STEPS; from a model it is rather an accident, and dear. */
enum { PLANNED_STEPS_MAX = 1000 };

/* What is asked of an agent for a plan or a session. */
struct job_ask {
    enum job_kind kind;
    uint32_t attempt; /* of asking the planner */
    struct str of, turn;
    struct str session_id;
    struct str agent_id, skill;
    struct str task;
    msec timeout_ms;         /* of all its attempts; 0 = none */
    uint64_t tokens, micros; /* that it may spend; UINT64_MAX = no budget */
};

/* How a job ended; lives until the cycle has been performed. */
struct job_end {
    bool ok;
    struct blob_ref result; /* ok: {text?, data?} */
    enum err_class error_class;
    struct str text; /* why it failed */
    struct usage usage;
};

/* Starts one in this cycle. *ret_run: its run. BT_BUSY: no room. A failure of the journal is the
 * engine's (engine_has_failed). */
BT_MUST_CHECK enum bt_code job_start(struct engine *engine, const struct job_ask *ask,
                                     uint64_t *ret_run, struct bt_error *err);
/* Nobody waits for it any more: calls it off. Unknown runs are passed by. */
void job_stop(struct engine *engine, uint64_t run);

/* ---- hooks of the engine ---- */
void job_on_command(struct engine *engine, const struct core_cmd *cmd);
/* p is a job. */
void job_on_record(struct engine *engine, const struct open_plan *p, const struct record *rec);
/* Does what the cycle's commands and records of jobs lead to, until nothing is left. Before the
 * commit. False: there was nothing. */
bool jobs_cycle(struct engine *engine);
/* After a recovery: plans find the jobs that go on for them. Before jobs_cycle. */
void jobs_find(struct engine *engine);

/* ---- job_planned.c, job_answer.c: what a job of a plan brought ---- */
void job_planned(struct engine *engine, struct open_plan *p, const struct job *e,
                 const struct job_end *end);
void job_answered(struct engine *engine, struct open_plan *p, const struct job *e,
                  const struct job_end *end);
/* Gives the core what a job brought: CORE_PLANNED or CORE_RECTIFY. False when it does not take
 * it: the plan still waits. */
bool job_bring(struct engine *engine, const struct open_plan *p, enum core_event_type type,
               struct new_revision *revision, struct blob_ref document, struct str text,
               const struct usage *usage);
/* Reports to the core that a job has failed; problems: of the plan that it made, 0 = it made none.
 */
void job_failed(struct engine *engine, const struct open_plan *p, const struct job *e,
                const struct job_end *end, struct str why, uint64_t problems);
#endif
