/*
 * Dispatch: what is asked of agents, and what they answer. Steps and questions go out over lanes;
 * results, verdicts and plans come back; jobs run for plans and sessions.
 */
#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

#include "supervisor/dispatch/process.h"
#include "supervisor/engine/engine.h"

struct dispatch;
struct job;
struct job_end;

/* Called when a job of a session has ended (JOB_CONVERSE, JOB_SUMMARY), before the commit. */
typedef void session_job_fn(struct engine *engine, const struct job *e, const struct job_end *end);

/* The link stays the caller's. */
BT_MUST_CHECK enum bt_code dispatch_new(const struct engine_options *opt, struct link *link,
                                        const struct process_hooks *processes,
                                        session_job_fn *session_job_over, struct dispatch **ret,
                                        struct bt_error *err);
struct dispatch *dispatch_of(const struct engine *engine);
const struct process_hooks *dispatch_processes(const struct engine *engine);
/* Steps and questions that went out. */
uint64_t dispatch_sent(const struct engine *engine);
/* The daemon read nothing for this time: no agent can have opened a lane in it. */
void dispatch_excuse(struct engine *engine, msec ms);

/* ---- hooks of the engine ---- */
/* CMD_DISPATCH, CMD_CANCEL_STEP, CMD_QUERY, CMD_CLOSE, CMD_PROBE, CMD_KILL. */
void dispatch_perform(struct engine *engine, const struct core_cmd *cmd);
/* The task of the step, with the values of its templates. */
bool dispatch_step_task(struct engine *engine, const struct open_plan *p, uint32_t step,
                        struct buf *out);
/* Counts for the agent of the record. */
void dispatch_on_attempt_over(struct engine *engine, const struct record *rec);
#endif
