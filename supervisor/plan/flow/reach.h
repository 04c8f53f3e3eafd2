/* Warnings about steps that can never run. */
#ifndef PLAN_FLOW_REACH_H
#define PLAN_FLOW_REACH_H

#include "supervisor/core/plan/plan_check.h"

/* Steps for failures after steps that stop the plan when they fail; conditions over a failed step
 * that runs only after it completed. */
void plan_lint_reach(const struct plan *plan, struct problems *problems);
#endif
