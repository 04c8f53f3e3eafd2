/* What the files of the run share with the core and its tests: the transition table and the edges
 * of a plan. Pure. */
#ifndef CORE_RUN_INTERNAL_H
#define CORE_RUN_INTERNAL_H

#include "supervisor/core/run.h"

/* The declared table: whether a step may go from one status to the other. */
bool run_move_allowed(enum step_status from, enum step_status to);

/* The edges as they count: a chain has one from each step to the next and no others, whatever the
 * plan's arrays say. */
uint32_t run_deps(const struct plan *plan, uint32_t step);
uint32_t run_dep(const struct plan *plan, uint32_t step, uint32_t n);
uint32_t run_dependents(const struct plan *plan, uint32_t step);
uint32_t run_dependent(const struct plan *plan, uint32_t step, uint32_t n);

/* Whether this end of a dependency counts as a failure for those that wait for it (C12, M028).
 * Never in a chain. */
bool run_end_is_failure(const struct plan *plan, const struct run_step *step);
/* Whether a pending step can never become ready: a dependency failed and it does not run always. */
bool run_step_is_doomed(const struct run *run, const struct plan *plan, uint32_t step);
/* IN_PROGRESS, BACKOFF, UNKNOWN or WAITING: begun and not over. */
bool run_step_is_active(enum step_status s);
/* The plan's max_concurrency, at least 1. */
uint32_t run_concurrency(const struct plan *plan);
#endif
