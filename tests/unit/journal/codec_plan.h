/* Plans for the codec's tests, made from a list of dependencies. */
#ifndef TESTS_CODEC_PLAN_H
#define TESTS_CODEC_PLAN_H

#include "supervisor/core/plan.h"

enum { CODEC_STEPS_MAX = 200, CODEC_AGENTS = 3 };

struct codec_plan {
    struct plan plan;
    struct plan_step steps[CODEC_STEPS_MAX];
    uint32_t deps[CODEC_STEPS_MAX];
    uint32_t dependents[CODEC_STEPS_MAX];
    char ids[CODEC_STEPS_MAX][LIMIT_ID_BYTES + 1];
    struct str agent_ids[LIMIT_PLAN_AGENTS]; /* granted: CODEC_AGENTS of them */
    uint32_t agents_at[LIMIT_PLAN_AGENTS];
};

/* n steps; step i depends on i / 2 (a tree). Ids are id_len bytes; agents of steps are 0 ..
 * agents-1; CODEC_AGENTS are granted. */
void codec_plan_make(struct codec_plan *p, uint32_t n, size_t id_len, struct str task,
                     uint32_t agents);
#endif
