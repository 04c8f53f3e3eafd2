/* Functions shared by the files of core/sched. Outside this folder only the tests include it. */
#ifndef CORE_SCHED_INTERNAL_H
#define CORE_SCHED_INTERNAL_H

#include "supervisor/core/sched/entries.h"

/* Why an attempt failed, or a step without an attempt. */
struct failure {
    enum err_class error_class;
    struct str text;
    enum step_reason reason;
    bool retryable;
    bool may_have_run; /* it may have run: an unsafe step asks a person instead of running again */
    bool cancel;       /* the instance may still work on it: send a cancel request */
    msec retry_after_ms;
    struct usage usage;
};

struct plan_end {
    enum plan_status status;
    enum plan_outcome outcome;
    enum plan_failure failure;
    enum step_reason reason; /* of the steps under way */
    uint32_t step;
    struct str text;
};

typedef void core_handler(struct core *c, const struct core_event *ev);

/* ---- core.c ---- */
struct core_cmd *core_emit(struct core *c, enum core_cmd_type type);
/* Fills in run, now and wall, applies the record to the run (NULL: about an agent) and emits it. */
void core_record(struct core *c, struct core_run *entry, struct record rec);
/* The same for a record with a revision: its plan and block replace the run's. */
void core_record_revision(struct core *c, struct core_run *entry, struct record rec,
                          const struct core_new_plan *next);
/* Ends c->quiet, and emits PLAN_PAUSED or PLAN_RESUMED when the plan begins or stops waiting. */
void core_emit_waiting(struct core *c, struct core_run *entry);
void core_reject(struct core *c, const struct core_event *ev, enum core_reject why);
struct core_run *core_find_run(const struct core *c, uint64_t handle);
uint64_t core_handle_of(const struct core *c, const struct core_run *entry);
uint64_t core_ref(const struct core *c, const struct core_run *entry, uint32_t step);

/* ---- text.c ---- */
/* The parts joined, in memory that lives until the next event; `instead` when it is full. */
struct str core_text(struct core *c, const struct str *parts, uint32_t n, struct str instead);
/* "before<ms>after"; "before<text>"; "before<n>after<text>". */
struct str core_text_ms(struct core *c, const char *before, msec ms, const char *after);
struct str core_text_pair(struct core *c, const char *before, struct str text);
struct str core_text_count(struct core *c, const char *before, uint32_t n, const char *after,
                           struct str text);
struct str core_text_crashed(struct core *c, struct str reason);
struct str core_text_timeout(struct core *c, msec timeout_ms);
struct str core_text_absent(struct core *c, uint32_t agent, msec wait);
/* An agent asks for a longer pause than the plan grants. */
struct str core_text_pause(struct core *c, msec asked_ms, msec max_ms, struct str text);
struct str core_text_budget(struct core *c, const char *unit, uint64_t spent, uint64_t budget,
                            uint64_t needs);

/* ---- queue.c ---- */
void core_list_init(struct list *list);
void core_link(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind,
               bool front);
/* Takes the step out of its list, if it is in one, and out of the heap. */
void core_unlink(struct core *c, struct core_run *entry, uint32_t step);
/* A run's own list, with refs in the place of step numbers. */
struct list core_list_of(const struct core *c, const struct core_run *entry, struct own_list own);
struct core_run *core_deref(const struct core *c, uint64_t ref, uint32_t *ret_step);
void core_set_due(struct core *c, struct core_run *entry, uint32_t step, msec when);
msec core_entry_deadline(const struct core *c,
                         const struct core_run *entry); /* see core_plan_deadline */
/* The earliest deadline of the run: of its steps, its review, or its own. */
msec core_entry_due(const struct core *c, const struct core_run *entry);
/* Updates the run's key in the core's heap: core_entry_due. */
void core_rearm(struct core *c, struct core_run *entry);
/* Puts the step into the queue of its agent: at the end, or at the front when its request never
 * left. A step of a run on hold is parked instead. */
void core_enqueue(struct core *c, struct core_run *entry, uint32_t step, bool front);
/* The same at the front for what an instance had no place for: it goes on waiting, as if it had
 * never left its queue. */
void core_enqueue_again(struct core *c, struct core_run *entry, uint32_t step);
/* Moves ready steps to their agents' queues within max_concurrency; none of a run on hold. */
void core_admit(struct core *c, struct core_run *entry);
/* The step only waits, so it needs no place within max_concurrency. Such steps stand at the front
 * of the ready list. */
bool core_needs_no_place(const struct core_run *entry, uint32_t step);
/* Nothing may begin: the plan is paused, replanned or cancelled, or waits for a job. */
bool core_on_hold(const struct core_run *entry);
/* The same for one step: the replanner is asked while the other steps wait for it. */
bool core_step_on_hold(const struct core_run *entry, uint32_t step);
/* After a run is put on hold: parks the steps that wait for a lane or for the budget. */
void core_park(struct core *c, struct core_run *entry);
/* Puts parked steps back into the queues, and admits ready ones. */
void core_unpark(struct core *c, struct core_run *entry);
/* When a step has waited too long for a lane, its key or the budget: at its limit. The time of an
 * attempt that was with an instance goes on, although the request has not left. */
msec core_wait_end(const struct core_run *entry, uint32_t step);
/* When a parked step is due: at the end of its wait. A parked question has no deadline; it gets its
 * full time again when it is unparked. */
msec core_parked_due(const struct core_run *entry, uint32_t step);
/* The deadline of a queued or parked step has come. */
void core_queue_due(struct core *c, struct core_run *entry, uint32_t step);
/* The agent is not available and will not be, and the step is a question or a job. It fails instead
 * of waiting. */
bool core_agent_unavailable(const struct core *c, const struct core_run *entry, uint32_t step);
/* How long the step waits for an agent that has no instance. */
msec core_agent_wait(const struct core *c, const struct core_run *entry, uint32_t step);

/* ---- fair.c; more in fair.h ---- */
void core_mark_dirty(struct core *c, uint32_t agent);
/* Gives free lanes to queued steps. Called at the end of every event. */
void core_start_queued(struct core *c);

/* ---- key.c; more in fair.h ---- */
/* A plan that is to start has its key now. False: it waits, or has ended. */
bool core_key_enter(struct core *c, struct core_run *entry);
/* A rebuilt plan waits for its key again, or has it. */
void core_key_recover(struct core *c, struct core_run *entry);
/* A rebuilt step has its key. */
void core_key_recover_step(struct core *c, struct core_run *entry, uint32_t step);
/* The plan has ended: its key, or its place among those that wait, is free. */
void core_key_leave(struct core *c, struct core_run *entry);
/* The step is over. */
void core_key_step_over(struct core *c, struct core_run *entry, uint32_t step);
/* A plan that waits for its key is paused: it cannot be next. Resumed, it waits again. */
void core_key_pause(struct core *c, struct core_run *entry);
void core_key_resume(struct core *c, struct core_run *entry);
/* The time has come at which a rate lets somebody start. */
void core_rates_open(struct core *c);
/* The key of a step, of a plan that waits or has it; NULL = it has none. */
struct core_key *core_key_of_step(const struct core *c, const struct core_run *entry,
                                  uint32_t step);
struct core_key *core_key_of_run(const struct core *c, const struct core_run *entry);

/* ---- cancel.c ---- */
void core_cancel_run(struct core *c, struct core_run *entry, struct str why);

/* ---- entries.c ---- */
/* Initialises the scheduler state in the block of a new run. */
void core_entry_init(struct core_run *entry, struct run *run, const struct plan *plan);
/* A revision: moves the scheduler state to the block of the next revision. Lists stay valid: the
 * plan has all steps and agents of the previous one at their indexes. */
void core_entry_move(struct core_run *entry, struct run *run, const struct plan *plan);
/* When each step of the run is due. core_entry_due_set changes it. */
struct heap core_entry_heap(const struct core_run *entry);
void core_entry_due_set(struct core_run *entry, uint32_t step, msec when);
/* Room for the numbers of all steps, of those whose dependents are to be settled. */
uint32_t *core_entry_work(const struct core_run *entry);

/* ---- end.c ---- */
/* The instance that has a step's attempt or question; slot REGISTRY_NONE = none. Read before the
 * record that changes the step. */
struct holder {
    uint32_t slot;
    uint64_t epoch;
    enum step_phase phase;
    uint32_t serial;
    bool child; /* a child plan has it, no instance */
    uint32_t round;
};
/* Whether somebody has the attempt or question: an instance, perhaps one that is gone, or a child
 * plan. */
bool core_is_out(const struct core_run *entry, uint32_t step);
struct holder core_holder(const struct core *c, const struct core_run *entry, uint32_t step);
/* Sends a cancel request to the instance that has, or may have, the attempt. It still answers on
 * its lane. A child plan is cancelled. */
void core_emit_cancel(struct core *c, const struct core_run *entry, uint32_t step,
                      const struct holder *who, struct str why);
/* Records the end of a step and takes it out of all lists. core_settle follows for its dependents.
 */
void core_end_step(struct core *c, struct core_run *entry, struct record rec);
/* Ends a step with rec, settles its dependents, and starts or ends what follows. */
void core_step_ended(struct core *c, struct core_run *entry, struct record rec);
/* After steps ended or a hold was lifted: starts ready steps, or ends the plan. */
void core_advance(struct core *c, struct core_run *entry);
void core_end_plan(struct core *c, struct core_run *entry, const struct plan_end *end);
/* The plan was cancelled, and nothing is under way any more. */
void core_plan_cancelled(struct core *c, struct core_run *entry, struct str why);
/* The plan fails because of a step. */
void core_step_fails_plan(struct core *c, struct core_run *entry, uint32_t step,
                          enum plan_failure failure, struct str text);
/* All steps are over: the plan's end follows from theirs. */
void core_end_plan_by_steps(struct core *c, struct core_run *entry);
/* Skips the steps that can never start after `step`, and lists those that became ready. */
void core_settle(struct core *c, struct core_run *entry, uint32_t step);
void core_plan_timeout(struct core *c, struct core_run *entry);

/* Emits PLAN_COMPLETED and releases the run, perhaps after what it did is undone. Nothing may be
 * under way. result: of SYNTHESIS_FINISHED. */
void core_plan_finish(struct core *c, struct core_run *entry, const struct plan_end *end,
                      struct blob_ref result);

/* ---- job.c ---- */
core_handler core_on_planned, core_on_job_failed, core_on_job_text, core_on_synthesized,
    core_on_rectify;
/* Asks the planner for the plan's steps. */
void core_start_planning(struct core *c, struct core_run *entry);
/* Whether plan, block and document can replace a plan without steps. */
bool core_brings_plan(const struct core_run *entry, const struct core_new_plan *next);
/* Applies a person's decision about failed planning. A plan that comes with it fits. */
void core_planning_decided(struct core *c, struct core_run *entry, const struct core_event *ev);
/* A rebuilt run waits for a job, or the journal was cut after the end of one. False otherwise. */
bool core_job_recover(struct core *c, struct core_run *entry);
/* Starts the synthesis when all steps are over or end with the plan. False when the plan has none,
 * or the budget is spent. */
bool core_synthesize(struct core *c, struct core_run *entry, const struct plan_end *end);
/* The plan ends or is cancelled while a job is under way. */
void core_job_stop(struct core *c, struct core_run *entry);
void core_synthesis_timeout(struct core *c, struct core_run *entry);
/* A failure of the plan that still stands after other steps were retried; false when there is none.
 */
bool core_end_stands(const struct core_run *entry, struct plan_end *ret);

/* How the plan ends, as it was decided. */
struct plan_end core_decided_end(const struct run *run);

/* ---- undo.c ---- */
core_handler core_on_compensated;
/* The plan ends like this. True: first it is undone what it did; PLAN_COMPLETED follows later. */
bool core_undo(struct core *c, struct core_run *entry, const struct plan_end *end);
/* Asks for the plan that undoes it; also after a restart. */
void core_undo_ask(struct core *c, const struct core_run *entry);

/* ---- retry.c ---- */
void core_attempt_failed(struct core *c, struct core_run *entry, uint32_t step,
                         const struct failure *f);
/* There is no further attempt: a fallback, or on_failure decides. The run may have ended after it.
 */
void core_give_up(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f);
/* Applies the policy, without a fallback. */
void core_fail_by(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f,
                  enum on_failure policy);
void core_verification_failed(struct core *c, struct core_run *entry, uint32_t step,
                              const struct failure *f);

/* ---- ask.c ---- */
/* A ready step begins without an attempt. Nothing changes for other steps. */
void core_begin_without_attempt(struct core *c, struct core_run *entry, uint32_t step);
/* Called for a READY step before it is queued. True when a gate or a review comes before its first
 * attempt; then it is no longer READY. */
bool core_prepare(struct core *c, struct core_run *entry, uint32_t step);
/* The next stage of a step in BACKOFF that is due: a gate, a review, or the queue. */
void core_continue(struct core *c, struct core_run *entry, uint32_t step);
/* Takes an attempt's result, after a verification when the plan wants one. */
void core_accept(struct core *c, struct core_run *entry, uint32_t step, struct blob_ref result,
                 const struct usage *usage, enum step_stop stop);
void core_check_answered(struct core *c, struct core_run *entry, const struct core_event *ev);
/* The agent could not answer the question about ev->step. */
void core_check_error(struct core *c, struct core_run *entry, const struct core_event *ev);
/* There will be no answer to the question about the step. */
void core_check_failed(struct core *c, struct core_run *entry, uint32_t step, struct str text);
void core_check_timeout(struct core *c, struct core_run *entry, uint32_t step);
/* The question or its answer was lost: it is asked again. */
void core_check_lost(struct core *c, struct core_run *entry, uint32_t step);

/* ---- condition.c ---- */
core_handler core_on_condition;
/* Asks for the verdict about the condition of a READY step that has none. It keeps its place within
 * max_concurrency. False: there is nothing to ask. */
bool core_ask_condition(struct core *c, struct core_run *entry, uint32_t step);

/* ---- child.c ---- */
core_handler core_on_child;
/* A step of STEP_TYPE_PLAN has its turn: records the attempt or the next round of it, and asks for
 * the child plan. Or it waits for the budget. */
void core_child_start(struct core *c, struct core_run *entry, uint32_t step);
/* Asks for the child plan of the attempt under way; also for the first time after a restart. */
void core_child_ask(struct core *c, struct core_run *entry, uint32_t step);
/* The time of the attempt is over. */
void core_child_over(struct core *c, struct core_run *entry, uint32_t step);
/* Emits the command for every child plan of the run. */
void core_children_tell(struct core *c, struct core_run *entry, enum core_cmd_type type);
/* ---- sleep.c ---- */
core_handler core_on_signal;
/* The step, in BACKOFF, waits for its time, its date or its signal. */
void core_sleep(struct core *c, struct core_run *entry, uint32_t step);
/* After a restart the step goes on waiting. */
void core_sleep_on(struct core *c, struct core_run *entry, uint32_t step);
/* A sleeping step is due. */
void core_slept(struct core *c, struct core_run *entry, uint32_t step);
/* When the wall clock was set since the last event, steps that wait for a date are due at another
 * time. */
void core_follow_clock(struct core *c);

/* ---- review.c ---- */
core_handler core_on_decide;
void core_step_waits(struct core *c, struct core_run *entry, uint32_t step, enum review_kind kind,
                     const struct failure *why, struct doc data);
void core_signoff_timeout(struct core *c, struct core_run *entry);
void core_review_timeout(struct core *c, struct core_run *entry, uint32_t step);

/* ---- replan.c ---- */
/* The step failed, and the replanner is asked as far as the limits allow. */
void core_replan(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f);
/* The cooldown, or the replanner's time, is over. */
void core_replan_due(struct core *c, struct core_run *entry, uint32_t step);
void core_replan_answered(struct core *c, struct core_run *entry, const struct core_event *ev);
void core_replan_failed(struct core *c, struct core_run *entry, uint32_t step,
                        enum plan_failure failure, struct str text, const struct usage *usage);
/* Takes over the plan and block as the next revision and emits rec. False when they do not fit the
 * run; then nothing has changed. */
bool core_revise(struct core *c, struct core_run *entry, const struct core_new_plan *next,
                 struct record rec);

/* ---- cancel.c ---- */
core_handler core_on_cancel;
/* An attempt of a plan that is being cancelled has ended. */
void core_stopped(struct core *c, struct core_run *entry, uint32_t step, enum step_stop stop,
                  const struct failure *why);
/* The attempt did not stop within the grace. */
void core_grace_over(struct core *c, struct core_run *entry, uint32_t step);

/* ---- results.c ---- */
core_handler core_on_result, core_on_progress, core_on_lane_free;
/* The run of the event's attempt, when the event comes from the instance that has it. Otherwise
 * emits the rejection and returns NULL. */
struct core_run *core_attempt(struct core *c, const struct core_event *ev);
/* Frees the lane that the event came over, if it still belongs to that incarnation. */
void core_lane_answered(struct core *c, const struct core_event *ev);

/* ---- lost.c ---- */
core_handler core_on_lost, core_on_busy, core_on_state, core_on_not_listed;
/* The reply is lost: queries the instance and waits for unknown_wait_ms. */
void core_step_unknown(struct core *c, struct core_run *entry, uint32_t step);
/* Queries the instance that has the attempt, when its control lane is up. */
void core_query(struct core *c, const struct core_run *entry, uint32_t step);
/* Queries the instance about every attempt that it may have without a lane of ours. */
void core_query_instance(struct core *c, uint32_t slot);
/* All that this incarnation holds becomes unknown: the instance may come back. */
void core_instance_lost(struct core *c, uint32_t slot);
/* Resolves all that this instance holds or held: it will not come back. */
void core_instance_gone(struct core *c, uint32_t slot, struct uuid instance, struct str reason);
/* The attempt is over, and its request has not left. */
void core_never_sent(struct core *c, struct core_run *entry, uint32_t step);
/* The outcome of an attempt stays unknown. */
void core_resolve_unknown(struct core *c, struct core_run *entry, uint32_t step,
                          enum err_class error_class, struct str text);

/* ---- submit.c ---- */
core_handler core_on_submit, core_on_recover;
/* The plan has its steps: it ends (dry run), waits for its sign-off, or starts. */
void core_plan_made(struct core *c, struct core_run *entry);
/* Asks a person to sign the plan off as it is now. Nothing begins before. */
void core_ask_signoff(struct core *c, struct core_run *entry);
/* Starts the plan, or has it wait for its concurrency key. */
void core_start_run(struct core *c, struct core_run *entry);
/* The same for a plan that needs no concurrency key, or has it. */
void core_started(struct core *c, struct core_run *entry);
void core_release_run(struct core *c, struct core_run *entry);
/* The step failed, and by its policy the plan fails with it. */
bool core_step_aborts(const struct core_run *entry, uint32_t step);

/* ---- registry.c ---- */
core_handler core_on_register, core_on_seen, core_on_lane_up, core_on_lane_down, core_on_gone,
    core_on_drain, core_on_restarted, core_on_gave_up, core_on_stalled;
void core_expire_instances(struct core *c);
/* Any message of this incarnation shows that it is alive. */
void core_mark_alive(struct core *c, const struct core_event *ev);

/* ---- forget.c ---- */
/* Forgets the agents that have been away for agent_wait_ms and that nobody needs. */
void core_forget_agents(struct core *c);
/* The run ends: agents that only it needed are looked at again. */
void core_agents_released(struct core *c, const struct core_run *entry);

/* ---- modify.c ---- */
core_handler core_on_pause, core_on_resume, core_on_modify, core_on_revise;

/* ---- breaker.c ---- */
core_handler core_on_probed;
/* Reports the end of an attempt or a question to the instance's breaker; CLASS_NONE: success.
 * Called once per attempt, also when the incarnation is gone. Slot REGISTRY_NONE (not seen by this
 * daemon) is ignored. */
void core_breaker_result(struct core *c, uint32_t slot, uint64_t epoch, enum err_class cls);
/* Emits the probes that are due. */
void core_breaker_tick(struct core *c);
/* Instances that had no place may be asked again. */
void core_full_tick(struct core *c);

/* ---- tick.c ---- */
core_handler core_on_tick;
/* When an attempt under way is due: at its deadline, or after idle_ms without a sign of life; an
 * adopted one is asked about before that. */
msec core_held_due(const struct core *c, const struct core_run *entry, uint32_t step);
/* An attempt under way is due. */
void core_held_over(struct core *c, struct core_run *entry, uint32_t step);
#endif
