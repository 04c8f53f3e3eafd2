/*
 * Whether conditions can hold together, by their words alone. For warnings: what is said to exclude
 * itself never holds; about the rest nothing is said.
 *
 * Proved: a value that is to be two values, or on two sides of a number or text; a test and its
 * negation (branches of a switch); a value that is to be there and not; inputs of a recipe, whose
 * values are written in the condition; a status that a step before cannot have. Not proved: what
 * patterns, schemas and results mean, and whatever would take more than the steps of the budget.
 */
#ifndef PLAN_FLOW_EXCLUDE_H
#define PLAN_FLOW_EXCLUDE_H

#include "supervisor/core/plan/plan.h"

enum {
    EXCLUDE_PLAN_STEPS = 100000, /* steps of the search, for all conditions of a plan */
    EXCLUDE_ONE_STEPS = 1000,    /* for one question; bounds the depth of its recursion, too */
    EXCLUDE_CHAIN_MAX = 8        /* conditions of one question */
};

struct exclusion {
    char why[300];     /* two tests that exclude each other, in words */
    struct str failed; /* not empty, and no words: this step would have to fail */
};

/*
 * Whether the conditions of the n steps never hold together. The first is that of the step in
 * question, the others of steps before it, whose tests of the state do not count: it changes.
 * *io_budget loses what the search took; at 0 nothing is proved.
 */
bool conditions_exclude(const struct plan *plan, const uint32_t *steps, uint32_t n,
                        uint32_t *io_budget, struct exclusion *ret);
/* A step that waits for how those before it end: neither a chain, nor after any end. */
bool step_needs_success(const struct plan *plan, uint32_t step);
#endif
