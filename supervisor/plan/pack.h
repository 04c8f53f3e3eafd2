/* A plan as the engine keeps it while it is open. */
#ifndef PLAN_PACK_H
#define PLAN_PACK_H

#include "supervisor/core/plan/plan.h"

/*
 * A copy of the plan and its texts in one allocation of the exact size; the caller frees it with
 * free(). policy is NULL: a run needs only the steps' policies, and plan_revise reads the plan's
 * policy from the canonical document. NULL when out of memory.
 */
struct plan *plan_pack(const struct plan *plan);
#endif
