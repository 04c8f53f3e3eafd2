/* A plan as it is kept while it is open, however long that is. */
#ifndef PLAN_PACK_H
#define PLAN_PACK_H

#include "supervisor/core/plan/plan.h"

/*
 * A copy of the plan and all its texts in one piece of memory of just that size: free() ends it.
 * The policy of the plan is left out (NULL): all that runs a plan has it in the steps, and what
 * changes one (plan_revise) reads it again from the canonical document. NULL when out of memory.
 */
struct plan *plan_pack(const struct plan *plan);
#endif
