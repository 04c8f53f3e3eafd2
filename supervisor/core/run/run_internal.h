/* What the files of the run share with the core and its tests: the transition table and the edges
 * of a plan. Pure. */
#ifndef CORE_RUN_INTERNAL_H
#define CORE_RUN_INTERNAL_H

#include "supervisor/core/run/run.h"

/* The declared table: whether a step may go from one status to the other. */
bool run_move_allowed(enum step_status from, enum step_status to);

/* The edges as they count: a chain has one from each step to the next and no others, whatever the
 * plan's arrays say. */
uint32_t run_deps(const struct plan *plan, uint32_t step);
uint32_t run_dep(const struct plan *plan, uint32_t step, uint32_t n);
uint32_t run_dependents(const struct plan *plan, uint32_t step);
uint32_t run_dependent(const struct plan *plan, uint32_t step, uint32_t n);

/* Whether this end of a dependency counts as a failure for the dependent (C12, M028). Never in a
 * chain. */
bool run_end_is_failure(const struct plan *plan, const struct run_step *step, uint32_t dependent);
/* Whether a pending step can never become ready: a dependency failed and it does not run always. */
bool run_step_is_doomed(const struct run *run, const struct plan *plan, uint32_t step);
/* IN_PROGRESS, BACKOFF, UNKNOWN, WAITING or CHECKING: begun and not over. */
bool run_step_is_active(enum step_status s);
/* The agent that the step needs a lane of now: who executes it, or who is asked about it. */
uint32_t run_step_agent(const struct run *run, const struct plan *plan, uint32_t step);
/* The number that goes with a request in this phase: the attempt, or the number of the question. */
uint32_t run_step_serial(const struct run *run, uint32_t step);
/* What WAITING means for a plan: everything that is under way waits for a person, or it is paused.
 */
void run_derive_status(struct run *run, const struct plan *plan);
/* The set in run_step.visited with the agent in it. */
uint64_t run_visit(const struct plan *plan, uint64_t visited, uint32_t agent);
/* The plan's max_concurrency, at least 1. */
uint32_t run_concurrency(const struct plan *plan);
#endif
