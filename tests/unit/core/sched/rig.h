/*
 * A core on a bench: events in by name, commands out as readable lines. After every event it checks
 * the invariants and that replaying the records gives the very bytes of the live run.
 *
 *   rig_submit(r, "A; B<A"); rig_up(r, "x", 1, 2);
 *   rig_ok(r, "A");
 *   RIG_TRACE(r, "[0] A#1 completed\n" "[0] B#1 started i1\n" "[0] dispatch B#1 i1/0\n");
 */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include "supervisor/core/sched/core.h"

struct rig;

struct rig *rig_new(void);
/* A core with other numbers. */
struct rig *rig_new_with(const struct core_config *config);
struct core_config rig_config(void);
void rig_free(struct rig *r);

struct core *rig_core(struct rig *r);
msec rig_now(const struct rig *r);
/* Names of steps must differ between the plans of a rig. Returns the handle. */
uint64_t rig_submit(struct rig *r, const char *plan);
/* With what an earlier plan left of its steps. */
uint64_t rig_submit_after(struct rig *r, const char *plan, const struct core_reuse *reuse,
                          uint32_t n);
const struct run *rig_run(const struct rig *r, uint64_t handle);
const struct plan *rig_plan(const struct rig *r, uint64_t handle);

/* Any event; now, wall are filled in. */
void rig_event(struct rig *r, struct core_event ev);
/* The event about a step's latest attempt, as its instance would send it (not sent yet). */
struct core_event rig_about(const struct rig *r, enum core_event_type type, const char *step);

void rig_register(struct rig *r, const char *agent, uint8_t instance, uint32_t capacity);
/* Its nth process; 0: it does not name its process. */
void rig_register_as(struct rig *r, const char *agent, uint8_t instance, uint32_t capacity,
                     uint8_t process);
/* Registers, brings all lanes up, and forgets the trace of that up to what it started. */
void rig_up(struct rig *r, const char *agent, uint8_t instance, uint32_t capacity);
void rig_lane(struct rig *r, uint8_t instance, uint32_t lane, bool up);
void rig_instance(struct rig *r, enum core_event_type type, uint8_t instance, const char *text);

void rig_ok(struct rig *r, const char *step);
void rig_fail(struct rig *r, const char *step, enum err_class c, const char *text);
void rig_needs(struct rig *r, const char *step, enum step_outcome outcome, const char *prompt);
/* Its agent makes so many calls; rig_child ends them. */
void rig_calls(struct rig *r, const char *step, uint32_t n);
void rig_lost(struct rig *r, const char *step, bool sent);
void rig_state(struct rig *r, const char *step, bool running);
void rig_decide(struct rig *r, const char *step, enum review_decision d, const char *comment);
/* What an agent says about the question that it was asked last about the step. */
void rig_verdict(struct rig *r, const char *step, bool passed, const char *text);
/* The child plan of the step's attempt has ended, or goes on. */
void rig_child(struct rig *r, const char *step, enum child_outcome outcome, const char *text);
/* The engine's verdict about the step's condition. */
void rig_condition(struct rig *r, const char *step, enum condition_verdict verdict,
                   const char *tested);
/* A signal with a result of that number; serial 0: a new one, else one that was kept, for `step`.
 */
void rig_signal(struct rig *r, uint64_t handle, const char *name, uint64_t result);
void rig_kept_signal(struct rig *r, const char *step, const char *name, uint32_t serial,
                     uint64_t result);
/* The wall clock, which shows 1000 s and the time of the rig, is set forward or back by this. A
 * tick follows when one is due. */
void rig_clock(struct rig *r, int64_t offset_ms);
void rig_handoff(struct rig *r, const char *step, const char *to, const char *why);
/* Places of a key of the core, and its rate: n 0 = none. */
void rig_key(struct rig *r, uint32_t key, uint32_t max, uint32_t n, msec per_ms);
/* The rate of an agent. */
void rig_rate(struct rig *r, const char *agent, uint32_t n, msec per_ms);
/* PAUSE, RESUME. */
void rig_plan_event(struct rig *r, enum core_event_type type, uint64_t handle, const char *why);
void rig_modify(struct rig *r, uint64_t handle, enum modify_kind kind, uint32_t step,
                uint32_t expect);
/* The text is the whole next revision: the old steps at their places (`gone` = superseded), new
 * ones behind. */
void rig_revise(struct rig *r, uint64_t handle, struct core_event ev, const char *text);
void rig_insert(struct rig *r, uint64_t handle, const char *text);
void rig_replan(struct rig *r, const char *step, const char *text);
void rig_cancel(struct rig *r, uint64_t handle, const char *why);
/* ---- rig_job.c: what comes of a plan's jobs ---- */
/* The planner's answer: the plan as in rig_submit, `tokens` used. */
void rig_planned(struct rig *r, uint64_t handle, const char *text, uint64_t tokens);
/* The job that is under way ended without an answer; `invalid`: with one that is no plan. */
void rig_job_failed(struct rig *r, uint64_t handle, bool invalid, const char *why, uint64_t tokens);
void rig_answer_text(struct rig *r, uint64_t handle, const char *text);
void rig_answered(struct rig *r, uint64_t handle, uint64_t result, uint64_t tokens);
/* The synthesizer wants failed steps to be tried again; the text is as in rig_revise. */
void rig_rectify(struct rig *r, uint64_t handle, const char *text);
/* The plan that undoes it has ended: ok, or not all of it. */
void rig_compensated(struct rig *r, uint64_t handle, bool ok, const char *text);
/* A person's word about the plan as a whole; the plan that comes with it, or NULL. */
void rig_decide_plan(struct rig *r, uint64_t handle, enum review_decision d, const char *plan);
/* The run of the nth plan that came in, over or not; how many records it has. */
const struct run *rig_nth(const struct rig *r, uint32_t n);
uint32_t rig_records(const struct rig *r, uint32_t n);
/* A restart on a journal that lost all of the nth plan's records but the first `keep`; its handle,
 * 0 when it is over. */
uint64_t rig_cut(struct rig *r, uint32_t n, uint32_t keep);

/* Time passes; ticks come exactly when the core asks for them. Instances are heard from meanwhile.
 */
void rig_until(struct rig *r, msec now);
/* As rig_until, but nobody is heard from. */
void rig_silence_until(struct rig *r, msec now);
/* A new core; every open plan is rebuilt from its records and recovered, `down` ms later. */
void rig_restart(struct rig *r, msec down);

enum step_status rig_status(const struct rig *r, const char *step);
/* The lines since the last call. */
void rig_forget(struct rig *r);
void rig_trace_is(struct rig *r, const char *expected, const char *file, int line);
#define RIG_TRACE(r, expected) rig_trace_is(r, expected, __FILE__, __LINE__)
#endif
