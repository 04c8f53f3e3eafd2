/*
 * Which earlier results go into a step's context, within a byte budget (M070, M071, C22).
 * This module chooses references. The caller loads the bytes and renders the text. Pure.
 */
#ifndef CORE_CONTEXT_H
#define CORE_CONTEXT_H

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/run.h"

struct context_pick {
    uint32_t step;
    struct blob_ref result;
    uint32_t bytes; /* at most this many bytes of the text are injected */
    uint64_t whole; /* bytes of the text; more than `bytes`: it is cut and marked */
};

struct context_choice {
    uint32_t n;       /* picks used, in step order */
    uint32_t omitted; /* completed steps left out because of the budget: the oldest ones */
};

/* A result that would be cut to less than this is left out. */
#define CONTEXT_CUT_MIN 64u

/* Gives the bytes of a result's text; 0: there is nothing to inject. */
struct context_measure {
    uint64_t (*text_bytes)(void *self, struct blob_ref result);
    void *self;
};

/* The completed steps with a result in the step's scope, in step order. Scope all: every step.
 * Scope deps: the direct dependencies. When the budget is short, the newest results are kept. picks
 * has room for cap entries. No result takes more than plan->context_result bytes; together they
 * take at most plan->context_budget. The search stops when the budget is spent, so its cost depends
 * on the picks, not on the plan. */
struct context_choice context_choose(const struct plan *plan, const struct run *run, uint32_t step,
                                     const struct context_measure *measure,
                                     struct context_pick *picks, uint32_t cap);
/* The direct dependencies of the step; in a chain the step before it, which *before then holds. */
uint32_t context_deps(const struct plan *plan, uint32_t step, uint32_t *before,
                      const uint32_t **ret);
/* The steps in the step's scope that ended without completing, in step order: the last `cap` of
 * them in ret. Superseded ones are not among them. *ret_all = how many there are. */
uint32_t context_not_completed(const struct plan *plan, const struct run *run, uint32_t step,
                               uint32_t *ret, uint32_t cap, uint32_t *ret_all);
#endif
