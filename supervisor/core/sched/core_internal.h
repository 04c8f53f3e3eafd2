/*
 * The functions that the core's files share. Outside this folder only the tests include it.
 */
#ifndef CORE_CORE_INTERNAL_H
#define CORE_CORE_INTERNAL_H

#include "supervisor/core/sched/entries.h"

/* Why an attempt, or a step that never got one, failed. */
struct failure {
    enum err_class error_class;
    struct str text;
    enum step_reason reason;
    bool retryable;
    bool blind; /* nobody knows whether it ran: an unsafe step asks a person instead of running
                   again */
    bool tell;  /* the instance may still work on it: tell it to stop */
    msec retry_after_ms;
    struct usage usage;
};

struct plan_end {
    enum plan_status status;
    enum plan_outcome outcome;
    enum plan_failure failure;
    enum step_reason reason; /* of the steps that are still under way */
    uint32_t step;
    struct str text;
};

typedef void core_handler(struct core *c, const struct core_event *ev);

/* ---- core.c ---- */
struct core_cmd *core_emit(struct core *c, enum core_cmd_type type);
/* Fills in run, now and wall, applies the record to the run (NULL: about an agent), and emits it.
 */
void core_record(struct core *c, struct core_run *entry, struct record rec);
/* The record brings a revision: its plan and block take the place of the run's. */
void core_record_revision(struct core *c, struct core_run *entry, struct record rec,
                          const struct core_new_plan *next);
/* The end of what was done while c->quiet: tells whether the plan waits for people. */
void core_emit_waiting(struct core *c, struct core_run *entry);
void core_reject(struct core *c, const struct core_event *ev, enum core_reject why);
struct core_run *core_find_run(const struct core *c, uint64_t handle);
uint64_t core_handle_of(const struct core *c, const struct core_run *entry);
uint64_t core_ref(const struct core *c, const struct core_run *entry, uint32_t step);

/* ---- core_text.c ---- */
/* The parts joined in memory that lives until the next event; `instead` when there is no room left.
 */
struct str core_text(struct core *c, const struct str *parts, uint32_t n, struct str instead);
/* "before<ms>after"; "before<text>"; "before<n>after<text>". */
struct str core_text_ms(struct core *c, const char *before, msec ms, const char *after);
struct str core_text_pair(struct core *c, const char *before, struct str text);
struct str core_text_count(struct core *c, const char *before, uint32_t n, const char *after,
                           struct str text);
struct str core_text_crashed(struct core *c, struct str reason);
struct str core_text_timeout(struct core *c, msec timeout_ms);
struct str core_text_absent(struct core *c, uint32_t agent);
struct str core_text_budget(struct core *c, const char *unit, uint64_t spent, uint64_t budget,
                            uint64_t needs);

/* ---- core_queue.c ---- */
void core_list_init(struct list *list);
void core_link(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind,
               bool front);
/* Takes the step out of its list, if it is in one, and out of the heap. */
void core_unlink(struct core *c, struct core_run *entry, uint32_t step);
struct list *core_list(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind);
struct core_run *core_deref(const struct core *c, uint64_t ref, uint32_t *ret_step);
void core_due(struct core *c, struct core_run *entry, uint32_t step, msec when);
msec core_entry_deadline(const struct core *c,
                         const struct core_run *entry); /* see core_plan_deadline */
/* The run's key in the core's heap follows its steps and its own deadline. */
void core_rearm(struct core *c, struct core_run *entry);
/* To the queue of the agent that the step wants now: at its end, or (a request that never left)
 * before all others. A step of a run that is on hold is parked instead. */
void core_enqueue(struct core *c, struct core_run *entry, uint32_t step, bool front);
/* Moves ready steps to their agents' queues as far as max_concurrency goes; none of a run on hold.
 */
void core_admit(struct core *c, struct core_run *entry);
/* Nothing may begin: it is paused, being replanned or cancelled. */
bool core_hold(const struct core_run *entry);
/* The same for one step: the replanner is asked while all others wait for it. */
bool core_hold_step(const struct core_run *entry, uint32_t step);
/* Once a run is on hold: what waits for a lane or for the budget no longer does. */
void core_park(struct core *c, struct core_run *entry);
/* Once it is no longer, or for another reason: back to the queues, and what is ready after it. */
void core_unpark(struct core *c, struct core_run *entry);
/* When a parked step is due: at its limit. A question that may not be asked has no clock; it has
 * its whole time again when it may. */
msec core_parked_due(const struct core_run *entry, uint32_t step);
/* A step that waits for a lane, or did until it was parked, and whose time has come. */
void core_queue_due(struct core *c, struct core_run *entry, uint32_t step);
/* Its agent will not come, and it is a question, or a job: it fails instead of waiting. */
bool core_agent_unavailable(const struct core *c, const struct core_run *entry, uint32_t step);

/* ---- core_fair.c; more in core_fair.h ---- */
void core_mark_dirty(struct core *c, uint32_t agent);
/* Gives free lanes to queued steps; at the end of every event. */
void core_start_queued(struct core *c);

/* ---- core_rows.c ---- */
/* The core's rows in the block of a run that comes in. */
void core_entry_init(struct core_run *entry, struct run *run, const struct plan *plan);
/* A revision: the rows move to the block of the next one, and all that is in a list stays there.
 * The plan has all steps and agents of the one before, at their places. */
void core_entry_move(struct core_run *entry, struct run *run, const struct plan *plan);

/* ---- core_end.c ---- */
/* Who has a step's attempt or question, as far as it can be told something; slot REGISTRY_NONE =
 * nobody. Asked before the record that changes the step. */
struct holder {
    uint32_t slot;
    uint64_t epoch;
    enum step_phase phase;
    uint32_t serial;
};
struct holder core_holder(const struct core *c, const struct core_run *entry, uint32_t step);
/* Tells the instance that has, or may have, the attempt to stop. It still answers its lane. */
void core_tell_to_stop(struct core *c, const struct core_run *entry, uint32_t step,
                       const struct holder *who, struct str why);
/* Records the end of a step, out of all lists; its dependents are not told yet. */
void core_end_step(struct core *c, struct core_run *entry, struct record rec);
/* A step ended with rec; tells dependents, starts what became possible, ends the plan after the
 * last step. */
void core_step_over(struct core *c, struct core_run *entry, struct record rec);
/* After steps ended or holds were lifted: begins what may begin, ends a plan that is over. */
void core_carry_on(struct core *c, struct core_run *entry);
void core_plan_over(struct core *c, struct core_run *entry, const struct plan_end *end);
/* It was called off, and nothing of it is out any more. */
void core_plan_cancelled(struct core *c, struct core_run *entry, struct str why);
/* The plan fails because of a step. */
void core_step_fails_plan(struct core *c, struct core_run *entry, uint32_t step,
                          enum plan_failure failure, struct str text);
/* The end that follows from the steps alone, when all are over. */
void core_plan_over_naturally(struct core *c, struct core_run *entry);
/* Skips what can never start because `step` failed, and lists what became ready. */
void core_settle(struct core *c, struct core_run *entry, uint32_t step);
void core_plan_timeout(struct core *c, struct core_run *entry);

/* The last record of the plan, and its rows are given back. Nothing of it may be under way. result:
 * of SYNTHESIS_FINISHED. */
void core_plan_finish(struct core *c, struct core_run *entry, const struct plan_end *end,
                      struct blob_ref result);

/* ---- core_job.c ---- */
core_handler core_on_planned, core_on_job_failed, core_on_job_text, core_on_synthesized,
    core_on_rectify;
/* An agent is asked for the plan's steps. */
void core_start_planning(struct core *c, struct core_run *entry);
/* The event has a plan, a block and a document that can take the place of one without steps. */
bool core_brings_plan(const struct core_run *entry, const struct core_new_plan *next);
/* What a person decided about a plan that could not be made. A plan that comes with it fits. */
void core_planning_decided(struct core *c, struct core_run *entry, const struct core_event *ev);
/* A rebuilt run waits for a job, or a cut journal lost what followed from its end; false when
 * there is nothing of the kind. */
bool core_job_recover(struct core *c, struct core_run *entry);
/* All steps are over (or end now with the plan): asks for one answer out of their results; false
 * when the plan wants none, or none is to be had. */
bool core_synthesize(struct core *c, struct core_run *entry, const struct plan_end *end);
/* The plan's time is over, or it is called off, while an agent is asked. */
void core_job_stop(struct core *c, struct core_run *entry);
void core_synthesis_timeout(struct core *c, struct core_run *entry);
/* What had failed the plan before other steps were tried again, and still stands; false when there
 * is nothing of the kind. */
bool core_end_stands(const struct core_run *entry, struct plan_end *ret);

/* ---- core_retry.c ---- */
void core_attempt_failed(struct core *c, struct core_run *entry, uint32_t step,
                         const struct failure *f);
/* No further attempt: a fallback, or on_failure decides. The run may be over after it. */
void core_give_up(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f);
/* The policy decides, without a fallback. */
void core_fail_by(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f,
                  enum on_failure policy);
void core_verification_failed(struct core *c, struct core_run *entry, uint32_t step,
                              const struct failure *f);

/* ---- core_ask.c ---- */
/* A ready step begins without an attempt (nothing happens to others). */
void core_begin_bare(struct core *c, struct core_run *entry, uint32_t step);
/* Called for a READY step before it is queued: true when something else comes before its first
 * attempt, and it is no longer READY. */
bool core_prepare(struct core *c, struct core_run *entry, uint32_t step);
/* What comes next for a step in BACKOFF that is due: a gate, a person, the queue. */
void core_continue(struct core *c, struct core_run *entry, uint32_t step);
/* An attempt's result: verified first when the plan says so. */
void core_accept(struct core *c, struct core_run *entry, uint32_t step, struct blob_ref result,
                 const struct usage *usage, enum step_stop stop);
void core_check_answered(struct core *c, struct core_run *entry, const struct core_event *ev);
/* The agent could not answer the question about ev->step. */
void core_check_error(struct core *c, struct core_run *entry, const struct core_event *ev);
/* No answer to the question about the step came, or comes any more. */
void core_check_failed(struct core *c, struct core_run *entry, uint32_t step, struct str text);
void core_check_timeout(struct core *c, struct core_run *entry, uint32_t step);
/* The question or its answer was lost: it is asked again. */
void core_check_lost(struct core *c, struct core_run *entry, uint32_t step);

/* ---- core_review.c ---- */
core_handler core_on_decide;
void core_step_waits(struct core *c, struct core_run *entry, uint32_t step, enum review_kind kind,
                     const struct failure *why, struct doc data);
void core_signoff_timeout(struct core *c, struct core_run *entry);
void core_review_timeout(struct core *c, struct core_run *entry, uint32_t step);

/* ---- core_replan.c ---- */
/* The step failed and the replanner is to be asked, as far as the limits go. */
void core_replan(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f);
/* The cooldown or the replanner's time is over. */
void core_replan_due(struct core *c, struct core_run *entry, uint32_t step);
void core_replan_answered(struct core *c, struct core_run *entry, const struct core_event *ev);
void core_replan_failed(struct core *c, struct core_run *entry, uint32_t step,
                        enum plan_failure failure, struct str text, const struct usage *usage);
/* Takes over the plan and block as the next revision, with rec to say so; false, and nothing has
 * changed, when they do not fit the run. */
bool core_revise(struct core *c, struct core_run *entry, const struct core_new_plan *next,
                 struct record rec);

/* ---- core_cancel.c ---- */
core_handler core_on_cancel;
/* An attempt of a plan that is being cancelled is over. */
void core_stopped(struct core *c, struct core_run *entry, uint32_t step, enum step_stop stop,
                  const struct failure *why);
/* It did not stop within the grace. */
void core_grace_over(struct core *c, struct core_run *entry, uint32_t step);

/* ---- core_results.c ---- */
core_handler core_on_result, core_on_progress, core_on_lane_free;
/* Finds the attempt that the event speaks of and checks that it comes from who has it; else emits
 * the rejection. */
struct core_run *core_attempt(struct core *c, const struct core_event *ev);
/* Frees the lane that the event came over, if it still belongs to that incarnation. */
void core_lane_answered(struct core *c, const struct core_event *ev);

/* ---- core_lost.c ---- */
core_handler core_on_lost, core_on_state;
/* The reply will not come by itself: asks, and waits for unknown_wait_ms. */
void core_step_unknown(struct core *c, struct core_run *entry, uint32_t step);
/* Asks the instance of every unknown attempt that it may have. */
void core_query_instance(struct core *c, uint32_t slot);
/* All that the incarnation in this slot holds becomes unknown: it may come back. */
void core_instance_lost(struct core *c, uint32_t slot);
/* All that this instance holds or held is resolved: it will never come back. */
void core_instance_gone(struct core *c, uint32_t slot, struct uuid instance, struct str reason);
/* An attempt whose outcome stays unknown. */
void core_resolve_unknown(struct core *c, struct core_run *entry, uint32_t step,
                          enum err_class error_class, struct str text);

/* ---- core_submit.c ---- */
core_handler core_on_submit, core_on_recover;
/* The plan has its steps: it ends (a dry run), waits for its sign-off, or starts. */
void core_plan_made(struct core *c, struct core_run *entry);
/* PLAN_STARTED, and what may begin begins. */
void core_start_run(struct core *c, struct core_run *entry);
void core_release_run(struct core *c, struct core_run *entry);
/* The step failed, and its policy says that the plan fails with it. */
bool core_step_aborts(const struct core_run *entry, uint32_t step);

/* ---- core_registry.c ---- */
core_handler core_on_register, core_on_seen, core_on_lane_up, core_on_lane_down, core_on_gone,
    core_on_drain, core_on_restarted, core_on_gave_up;
void core_expire_instances(struct core *c);
/* Whatever came from this incarnation shows that it lives. */
void core_alive(struct core *c, const struct core_event *ev);

/* ---- core_modify.c ---- */
core_handler core_on_pause, core_on_resume, core_on_modify, core_on_revise;

/* ---- core_breaker.c ---- */
core_handler core_on_probed;
/* What the end of an attempt, or of a question, says about who had it; CLASS_NONE: it did what it
 * should. Called once per attempt that was out, whether the incarnation is still there or not (slot
 * REGISTRY_NONE: not seen by this daemon, says nothing). */
void core_breaker_result(struct core *c, uint32_t slot, uint64_t epoch, enum err_class cls);
/* Asks who is due to be asked. */
void core_breaker_tick(struct core *c);

/* ---- core_tick.c ---- */
core_handler core_on_tick;
/* When an attempt that is out is due: its deadline, or its silence. */
msec core_held_due(const struct core_run *entry, uint32_t step);
#endif
