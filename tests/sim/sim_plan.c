/* Random plans: 1-200 steps, chains and DAGs, every policy. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"
#include "tests/unit/core/plan_text.h"

enum { DEPS_MAX = 3 };

static struct step_policy random_policy(struct sim *s)
{
    struct step_policy p = {0};
    p.max_retries = sim_range(s, 0, 3);
    p.timeout_ms = sim_chance(s, 700) ? sim_range(s, 50, 800) : 0;
    p.on_failure = (enum on_failure)sim_range(s, sim_chance(s, 200) ? 0 : 1, 2);
    p.effects = (enum effects)sim_range(s, 0, 2);
    p.run_if_always = sim_chance(s, 100);
    p.backoff.kind = (enum backoff_kind)sim_range(s, 0, 2);
    p.backoff.initial_ms = sim_range(s, 0, 200);
    p.backoff.multiplier_permille = 2000;
    p.backoff.max_ms = 1000;
    p.backoff.jitter_permille = sim_chance(s, 500) ? 300 : 0;
    return p;
}

static void random_deps(struct sim *s, struct plan *p, uint32_t step)
{
    p->steps[step].deps_at = p->n_edges;
    const uint32_t want = step == 0 ? 0 : sim_range(s, 0, DEPS_MAX);
    for (uint32_t i = 0; i < want; i++) {
        const uint32_t near = step > 8 && sim_chance(s, 700) ? step - 8 : 0;
        const uint32_t dep = sim_range(s, near, step - 1);
        bool twice = false;
        for (uint32_t k = p->steps[step].deps_at; k < p->n_edges; k++) {
            twice = twice || p->deps[k] == dep;
        }
        if (!twice) {
            p->deps[p->n_edges++] = dep;
            p->steps[step].deps_n++;
        }
    }
}

void sim_make_plan(struct sim *s, struct sim_plan *p)
{
    const uint32_t most = sim_chance(s, 50) ? SIM_STEPS_MAX : sim_chance(s, 200) ? 40 : 8;
    const uint32_t n = sim_range(s, 1, most);
    p->plan = plan_text_blank(n, n * DEPS_MAX, 0, "a");
    p->plan->n_edges = 0;
    p->plan->chain = sim_chance(s, 300);
    p->plan->max_concurrency = p->plan->chain ? 1 : sim_range(s, 1, 8);
    p->plan->timeout_ms = sim_chance(s, 100) ? sim_range(s, 500, 20000) : 0;
    for (uint32_t i = 0; i < n; i++) {
        p->plan->steps[i].policy = random_policy(s);
        p->plan->steps[i].agent = sim_range(s, 0, s->n_agents - 1);
        if (!p->plan->chain) {
            random_deps(s, p->plan, i);
        }
    }
    plan_link(p->plan);
    ASSERT(plan_agents_collect(p->plan));
    p->block = calloc(1, core_run_size(p->plan));
    p->shadow = calloc(1, run_size(n));
    p->told = calloc(n, sizeof *p->told);
    ASSERT(p->block != NULL && p->shadow != NULL && p->told != NULL);
    (void)run_init(p->shadow, p->plan);
}

void sim_free_plan(struct sim_plan *p)
{
    plan_text_free(p->plan);
    free(p->block);
    free(p->shadow);
    free(p->journal);
    free(p->told);
}
