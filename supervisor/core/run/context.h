/*
 * Which earlier results go into a step's context, within a byte budget (M070, M071, C22).
 * This module chooses references. The caller loads the bytes and renders the text with
 * context_render. Planned cuts are in whole UTF-8 characters. Pure.
 */
#ifndef CORE_CONTEXT_H
#define CORE_CONTEXT_H

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/run.h"

struct context_pick {
    uint32_t step;
    struct blob_ref result;
    uint32_t bytes; /* at most this many bytes of the text are injected; less than len: the text is
                       cut and marked */
};

struct context_choice {
    uint32_t n;       /* picks used, in step order */
    uint32_t omitted; /* completed steps left out because of the budget: the oldest ones */
};

/* A result that would be cut to less than this is left out. */
#define CONTEXT_CUT_MIN 64u

/* The completed steps with a result in the step's scope, in step order. Scope all: every step.
 * Scope deps: the direct dependencies. When the budget is short, the newest results are kept. picks
 * has room for cap entries. No result takes more than plan->context_result bytes; together they
 * take at most plan->context_budget. The search stops when the budget is spent, so its cost depends
 * on the picks, not on the plan. */
struct context_choice context_choose(const struct plan *plan, const struct run *run, uint32_t step,
                                     struct context_pick *picks, uint32_t cap);
#endif
