/*
 * Which earlier results go into a step's context, under a byte budget (M070, M071, C22). Chooses
 * references; the edge loads the bytes and renders the text with context_render (planned cuts are
 * in whole UTF-8 characters). Pure.
 */
#ifndef CORE_CONTEXT_H
#define CORE_CONTEXT_H

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/run.h"

struct context_pick {
    uint32_t step;
    struct blob_ref result;
    uint32_t bytes; /* at most so many bytes of its text are injected; less than len = cut, with a
                       marker */
};

struct context_choice {
    uint32_t n;       /* picks used, in step order */
    uint32_t omitted; /* completed steps left out for the budget: the oldest ones */
};

/* A result is left out rather than cut to less than this. */
#define CONTEXT_CUT_MIN 64u

/*
 * Completed steps with a result in the step's scope (all: every one; deps: its direct dependencies;
 * none), newest kept first when the budget is short, returned in step order. picks has room for cap
 * entries. No result takes more than plan->context_result bytes, all together no more than
 * plan->context_budget. Stops looking once the budget is spent: the cost is that of what is picked,
 * not of the plan's length.
 */
struct context_choice context_choose(const struct plan *plan, const struct run *run, uint32_t step,
                                     struct context_pick *picks, uint32_t cap);
#endif
