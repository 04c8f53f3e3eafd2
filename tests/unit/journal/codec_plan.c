#include "tests/unit/journal/codec_plan.h"

#include <stdio.h>
#include <string.h>

static const char *const AGENTS[CODEC_AGENTS] = {"files", "sql-agent", "calc"};

static void grant_all(struct codec_plan *p)
{
    p->plan.agents = (struct plan_agents){p->agent_ids, p->agents_at, CODEC_AGENTS};
    for (uint32_t i = 0; i < CODEC_AGENTS; i++) {
        p->agent_ids[i] = str_from(AGENTS[i]);
        p->agents_at[i] = i;
    }
}

void codec_plan_make(struct codec_plan *p, uint32_t n, size_t id_len, struct str task,
                     uint32_t agents)
{
    memset(p, 0, sizeof *p);
    p->plan = (struct plan){.plan_id = uuid_new(),
                            .revision = 1,
                            .session_id = STR_LIT("chat/1"),
                            .goal = task,
                            .planner = STR_LIT("file"),
                            .steps = p->steps,
                            .n_steps = n,
                            .deps = p->deps,
                            .dependents = p->dependents,
                            .max_concurrency = 3,
                            .timeout_ms = 100000,
                            .context_budget = 1000,
                            .context_result = 1000};
    for (uint32_t i = 0; i < n; i++) {
        struct plan_step *s = &p->steps[i];
        s->revision = 1;
        int len = snprintf(p->ids[i], sizeof p->ids[i], "s%u", i);
        for (; (size_t)len < id_len; len++) {
            p->ids[i][len] = 'x';
        }
        s->step_id = (struct str){p->ids[i], (size_t)len};
        s->agent = i % agents;
        s->agent_id = str_from(AGENTS[i % agents]);
        s->task = task;
        s->policy = (struct step_policy){
            .max_retries = 2,
            .backoff = {.kind = BACKOFF_LINEAR,
                        .initial_ms = 100,
                        .multiplier_permille = 2000,
                        .max_ms = 1000},
            .timeout_ms = 5000,
            .on_failure = (enum on_failure)(i % ON_FAILURE_COUNT),
            .effects = (enum effects)(i % EFFECTS_COUNT),
        };
        s->deps_at = p->plan.n_edges;
        if (i > 0) {
            p->deps[p->plan.n_edges++] = i / 2;
            s->deps_n = 1;
        }
    }
    grant_all(p);
    plan_link(&p->plan);
}
