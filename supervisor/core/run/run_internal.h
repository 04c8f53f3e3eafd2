/* The transition table and the edges of a plan. Shared with core_sched and the tests. Pure. */
#ifndef CORE_RUN_INTERNAL_H
#define CORE_RUN_INTERNAL_H

#include "supervisor/core/run/run.h"

/* Whether a step may go from one status to the other. */
bool run_move_allowed(enum step_status from, enum step_status to);

/* The effective edges: in a chain each step depends on the one before it, whatever the plan's
 * arrays hold. */
uint32_t run_deps(const struct plan *plan, uint32_t step);
uint32_t run_dep(const struct plan *plan, uint32_t step, uint32_t n);
uint32_t run_dependents(const struct plan *plan, uint32_t step);
uint32_t run_dependent(const struct plan *plan, uint32_t step, uint32_t n);

/* Whether the dependent counts this end as a failure (C12, M028). Never in a chain. */
bool run_end_is_failure(const struct plan *plan, const struct run_step *step, uint32_t dependent);
/* Whether the dependent counts this end as skipped by a condition. Never in a chain. */
bool run_end_is_bypass(const struct plan *plan, const struct run_step *step, uint32_t dependent);
/* Why a pending step can never become ready: DEPENDENCY_FAILED, or CONDITION when all steps before
 * it were skipped by theirs or none failed (RUN_IF_FAILURE). REASON_NONE: it can. */
enum step_reason run_step_doom(const struct run *run, const struct plan *plan, uint32_t step);
/* How many places within max_concurrency are taken: active steps that do not only wait. */
uint32_t run_places(const struct run *run);
/* IN_PROGRESS, BACKOFF, UNKNOWN, WAITING, CHECKING or SLEEPING: begun and not over. */
bool run_step_is_active(enum step_status s);
/* The agent that the step needs a lane of: the executing one, or the one that answers the question.
 */
uint32_t run_step_agent(const struct run *run, const struct plan *plan, uint32_t step);
/* The number in a request of this phase: the attempt, or the question's number. */
uint32_t run_step_serial(const struct run *run, uint32_t step);
/* Sets PLAN_WAITING or PLAN_RUNNING. A plan waits when all its active steps wait for people, or
 * when it is paused. */
void run_derive_status(struct run *run, const struct plan *plan);
/* The set `visited` (run_step.visited) with the agent added. */
uint64_t run_visit(const struct plan *plan, uint64_t visited, uint32_t agent);
/* Whether a record may open a review with the serial. Serials count the reviews of a plan; 0 is
 * what a journal without serials has. */
bool run_review_follows(const struct run *run, uint32_t serial);
/* NULL when the plan needs none. */
struct run_phases *run_phases_change(struct run *run);
/* The places for own texts: run->own_texts of them. */
struct run_own_text *run_own_texts(struct run *run);
const struct run_own_text *run_own_texts_of(const struct run *run);
/* The plan's max_concurrency, at least 1. */
uint32_t run_concurrency(const struct plan *plan);
#endif
