/* Concurrency keys and rates: their rules, and the starts that outlive the daemon. Key 0 is for
 * plans, the others are for steps. */
#include <string.h>

#include "tests/sim/sim.h"

static uint32_t numbers[SIM_KEYS] = {0, 1, 2};
static struct str names[SIM_KEYS] = {{"plans", 5}, {"pair", 4}, {"slow", 4}};

static struct core_rate random_rate(struct sim *s, uint32_t permille, uint32_t longest)
{
    const uint32_t n = sim_range(s, 1, SIM_RATE_MAX);
    const msec per_ms = sim_range(s, 1, longest);
    return sim_chance(s, permille) ? (struct core_rate){n, per_ms} : (struct core_rate){0};
}

void sim_keys_draw(struct sim *s)
{
    s->config.keys = SIM_KEYS;
    s->keys[0] = (struct sim_limit){.max = 1, .rate = random_rate(s, 200, 300)};
    s->keys[1] = (struct sim_limit){.max = 2, .rate = random_rate(s, 300, 100)};
    s->keys[2] = (struct sim_limit){.max = sim_range(s, 0, 1), .rate = random_rate(s, 700, 100)};
    for (uint32_t i = 0; i < s->n_agents; i++) {
        s->rates[i] = (struct sim_limit){.rate = random_rate(s, 150, 60)};
    }
}

void sim_keys_apply(struct sim *s)
{
    for (uint32_t i = 0; i < SIM_KEYS; i++) {
        struct sim_limit *k = &s->keys[i];
        core_key_rule(s->core, i, k->max, k->rate, k->ring);
        for (uint32_t n = k->n < SIM_RATE_MAX ? k->n : SIM_RATE_MAX; n > 0; n--) {
            core_key_was_started(s->core, i, k->last[(k->n - n) % SIM_RATE_MAX]);
        }
    }
    for (uint32_t i = 0; i < s->n_agents; i++) {
        struct sim_limit *a = &s->rates[i];
        core_agent_rate(s->core, i, a->rate, a->ring);
        for (uint32_t n = a->n < SIM_RATE_MAX ? a->n : SIM_RATE_MAX; n > 0; n--) {
            core_agent_started(s->core, i, a->last[(a->n - n) % SIM_RATE_MAX]);
        }
    }
}

void sim_keys_plan(struct sim *s, struct plan *p)
{
    p->keys = (struct plan_keys){.names = names, .at = numbers, .n = SIM_KEYS};
    p->keyed = sim_chance(s, 150);
    p->overlap = sim_chance(s, 700) ? KEY_QUEUE : sim_chance(s, 500) ? KEY_SKIP : KEY_CANCEL;
    p->priority = sim_chance(s, 500) ? PLAN_PRIORITY : sim_range(s, 0, PLAN_PRIORITY_MAX);
}

/* What an agent calls has no keys: it would wait for the step that calls. */
void sim_keys_step(struct sim *s, const struct plan *p, struct plan_step *step)
{
    const uint32_t key = sim_range(s, 1, SIM_KEYS - 1);
    step->key = p->keys.n > 0 && plan_step_has_agent(step) && sim_chance(s, 120) ? key + 1 : 0;
}

/* It is written down with the records of its turn. At most n in any window. */
static void start(struct sim *s, struct sim_limit *k, const struct record *rec)
{
    const struct sim_plan *p = &s->plans[0];
    if (k->rate.n > 0 && k->n >= k->rate.n) {
        const msec first = k->last[(k->n - k->rate.n) % SIM_RATE_MAX];
        SIM_RULE(s->turn->ev.now >= first + k->rate.per_ms, "more starts than the rate allows");
    }
    k->last[k->n++ % SIM_RATE_MAX] = s->turn->ev.now;
}

void sim_keys_dispatch(struct sim *s, const struct sim_plan *p, const struct core_cmd *cmd,
                       uint32_t agent)
{
    const struct record *rec = &(struct record){.step = cmd->step};
    const uint32_t key = sim_plan_now(p)->steps[cmd->step].key;
    uint32_t held = 0;
    start(s, &s->rates[agent], rec);
    if (key == 0 || cmd->phase > PHASE_SEARCH) {
        return;
    }
    start(s, &s->keys[key - 1], rec);
    for (uint32_t i = 0; i < s->n_plans; i++) {
        const struct sim_plan *of = &s->plans[i];
        for (uint32_t k = 0; of->submitted && !of->over && k < of->shadow->n_steps; k++) {
            const struct run_step *step = &of->shadow->steps[k];
            held += sim_plan_now(of)->steps[k].key == key && step->attempt > 0 &&
                            run_step_is_active(step->status)
                        ? 1
                        : 0;
        }
    }
    SIM_RULE(s->keys[key - 1].max == 0 || held <= s->keys[key - 1].max,
             "more steps than their key has places");
}

static bool has_key(const struct sim_plan *p)
{
    const struct plan *plan = sim_plan_now(p);
    return plan->keyed && plan->job == JOB_NONE && !plan->planning.pending;
}

void sim_keys_started(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    uint32_t held = 0;
    if (!has_key(p)) {
        return;
    }
    start(s, &s->keys[0], rec);
    for (uint32_t i = 0; i < s->n_plans; i++) {
        const struct sim_plan *of = &s->plans[i];
        held += of != p && of->started && !of->over && has_key(of) ? 1 : 0;
    }
    SIM_RULE(held == 0, "two plans have a key with one place");
}
