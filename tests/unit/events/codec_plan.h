/* Plans for the codec's tests, made from a list of dependencies. */
#ifndef TESTS_CODEC_PLAN_H
#define TESTS_CODEC_PLAN_H

#include "supervisor/core/run/run.h"
#include "tests/support/random.h"

enum { CODEC_STEPS_MAX = 200, CODEC_AGENTS = 3 };

struct codec_plan {
    struct plan plan;
    struct uuid plan_id;
    struct plan_step steps[CODEC_STEPS_MAX];
    struct step_rules rules[CODEC_STEPS_MAX];
    uint32_t deps[2 * CODEC_STEPS_MAX];
    uint32_t dependents[2 * CODEC_STEPS_MAX];
    char ids[CODEC_STEPS_MAX][LIMIT_ID_BYTES + 1];
    struct str agent_ids[LIMIT_PLAN_AGENTS]; /* granted: CODEC_AGENTS of them */
    uint32_t agents_at[LIMIT_PLAN_AGENTS];
    uint32_t alternatives[CODEC_AGENTS];
};

/* n steps; step i depends on i / 2 (a tree). Ids are id_len bytes; agents of steps are 0 ..
 * agents-1; CODEC_AGENTS are granted. */
void codec_plan_make(struct codec_plan *p, uint32_t n, size_t id_len, struct str task,
                     uint32_t agents);
/* Gates, verifiers, reviews, fallbacks, handoffs, a replanner, a budget, as chance has it. */
void codec_plan_vary(struct codec_plan *p, struct rng *r);
/* A plan without steps: they are to be asked for. */
void codec_plan_blank(struct codec_plan *p, struct rng *r);
/* The plan that a planner brings for it: n steps. */
void codec_plan_fill(const struct codec_plan *blank, uint32_t n, struct rng *r,
                     struct codec_plan *ret);
/*
 * A next revision of the plan in ret: all rows of before, some new ones behind them. For a replan
 * some of what is completed stays, all else is superseded; else at most one row is. It may be one
 * that the core refuses.
 */
void codec_plan_revise(const struct codec_plan *from, const struct run *run, bool replan,
                       struct rng *r, struct codec_plan *ret);
#endif
