/* Warnings about steps that can never run. */
#ifndef PLAN_FLOW_REACH_H
#define PLAN_FLOW_REACH_H

#include "supervisor/core/plan/plan_check.h"

/*
 * Warns of steps whose condition never holds (exclude.h), alone or after the steps before; of steps
 * for failures after steps that cannot fail and let the plan go on; and of steps after those. What
 * a person may do (skip or cancel one step, change the plan) does not count. marks: a number for
 * each entry, zero, and zero again afterwards.
 */
void plan_lint_reach(const struct plan *plan, uint32_t *marks, struct problems *problems);
#endif
