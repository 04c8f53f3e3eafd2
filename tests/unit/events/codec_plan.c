#include "tests/unit/events/codec_plan.h"

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
    p->plan_id = uuid_new();
    p->plan = (struct plan){.revision = 1,
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
        s->rules = &p->rules[i];
        s->rules->policy = (struct step_policy){
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

static bool chance(struct rng *r, uint32_t one_in)
{
    return rng_below(r, one_in) == 0;
}

static struct str some_agent(struct codec_plan *p, struct rng *r, uint32_t *ret)
{
    *ret = rng_below(r, CODEC_AGENTS);
    return p->agent_ids[*ret];
}

/* The core does not look into it. */
static const uint8_t condition[] = {0x80};

static const struct plan_wait waits[] = {
    {.what = WAIT_FOR_TIME, .ms = 300},
    {.what = WAIT_FOR_DATE, .until = 1700000000300},
    {.what = WAIT_FOR_SIGNAL, .signal = {"go", 2}, .ms = 4000},
};

static void vary_step(struct codec_plan *p, struct rng *r, struct plan_step *s)
{
    struct step_policy *policy = &s->rules->policy;

    policy->on_failure = (enum on_failure)rng_below(r, ON_FAILURE_COUNT);
    policy->on_verify = (enum on_failure)rng_below(r, ON_FAILURE_COUNT);
    policy->limit_ms = chance(r, 4) ? 8000 : 0;
    policy->queue_timeout_ms = chance(r, 6) ? 1500 : 0;
    policy->approval_timeout_ms = chance(r, 2) ? 4000 : 0;
    policy->check_timeout_ms = chance(r, 4) ? 0 : 3000;
    policy->requires_approval = chance(r, 6);
    policy->gate_closed = chance(r, 2);
    policy->verify_open = chance(r, 2);
    policy->run_if = chance(r, 6) ? RUN_IF_ALWAYS : RUN_IF_SUCCESS;
    s->rules->when =
        chance(r, 8) ? (struct doc){condition, sizeof condition} : (struct doc){NULL, 0};
    s->undoes = chance(r, 3);
    s->rules->compensate =
        s->undoes ? (struct doc){condition, sizeof condition} : (struct doc){NULL, 0};
    policy->estimate_tokens = rng_below(r, 3);
    if (chance(r, 3)) {
        s->rules->gate_with = some_agent(p, r, &s->rules->gate_agent);
    }
    if (chance(r, 3)) {
        s->rules->verify_with = some_agent(p, r, &s->rules->verify_agent);
    }
    if (chance(r, 2)) {
        s->alternatives_at = 0;
        s->alternatives_n = CODEC_AGENTS;
    }
    if (chance(r, 5)) {
        s->type = chance(r, 2) ? STEP_TYPE_REVIEW : STEP_TYPE_WAIT;
        s->wait = s->type == STEP_TYPE_WAIT ? &waits[rng_below(r, 3)] : NULL;
        s->agent = AGENT_NONE;
        s->agent_id = STR_LIT("");
        s->rules->verify_with = STR_LIT("");
        s->rules->policy.effects = EFFECTS_NONE;
    } else if (chance(r, 6)) {
        s->type = STEP_TYPE_PLAN;
        s->agent = AGENT_NONE;
        s->agent_id = STR_LIT("");
        s->rules->loop =
            (struct loop_policy){.max = rng_below(r, 4), .delay_ms = rng_below(r, 2) * 20};
    }
}

void codec_plan_vary(struct codec_plan *p, struct rng *r)
{
    struct plan *plan = &p->plan;

    for (uint32_t i = 0; i < CODEC_AGENTS; i++) {
        p->alternatives[i] = i;
    }
    plan->alternatives = p->alternatives;
    plan->n_alternatives = CODEC_AGENTS;
    plan->max_fallbacks = rng_below(r, 6);
    plan->max_handoffs = rng_below(r, 4);
    plan->handback = chance(r, 2);
    plan->signoff = chance(r, 5);
    plan->undo = (enum undo_policy)rng_below(r, UNDO_POLICY_COUNT);
    plan->budget_tokens = chance(r, 8) ? 40 : 0;
    if (!chance(r, 4)) {
        plan->replan = (struct replan_policy){
            .max_step = 2, .max_total = 4, .cooldown_ms = 100, .timeout_ms = 3000};
        plan->replan.agent_id = some_agent(p, r, &plan->replan.agent);
    }
    if (!chance(r, 3)) {
        plan->synthesis =
            (struct synthesis_policy){.timeout_ms = 3000, .max_retries = rng_below(r, 3)};
        plan->synthesis.agent_id = some_agent(p, r, &plan->synthesis.agent);
    }
    if (!chance(r, 3)) {
        plan->search_with = some_agent(p, r, &plan->search_agent);
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        vary_step(p, r, &p->steps[i]);
    }
}

void codec_plan_blank(struct codec_plan *p, struct rng *r)
{
    struct planning_policy *planning = &p->plan.planning;

    codec_plan_make(p, 0, 0, STR_LIT("a goal"), CODEC_AGENTS);
    codec_plan_vary(p, r);
    *planning =
        (struct planning_policy){.pending = true,
                                 .timeout_ms = 3000,
                                 .repairs = rng_below(r, 3),
                                 .on_invalid = (enum on_invalid)rng_below(r, ON_INVALID_COUNT)};
    planning->agent_id = some_agent(p, r, &planning->agent);
    p->plan.signoff_timeout_ms = chance(r, 2) ? 4000 : 0;
}

void codec_plan_fill(const struct codec_plan *blank, uint32_t n, struct rng *r,
                     struct codec_plan *ret)
{
    codec_plan_make(ret, n, 0, STR_LIT("a task"), CODEC_AGENTS);
    codec_plan_vary(ret, r);
    ret->plan_id = blank->plan_id;
    ret->plan.synthesis = blank->plan.synthesis;
    ret->plan.budget_tokens = blank->plan.budget_tokens;
    ret->plan.signoff = blank->plan.signoff;
    ret->plan.job = blank->plan.job;
    ret->plan.dry_run = chance(r, 12);
}

static void add_dep(struct codec_plan *p, struct plan_step *s, uint32_t dep)
{
    p->deps[p->plan.n_edges++] = dep;
    s->deps_n++;
}

/* The old rows: own copies of their ids and edges. A chain becomes edges. */
static void copy_rows(const struct codec_plan *from, struct codec_plan *ret)
{
    for (uint32_t i = 0; i < from->plan.n_steps; i++) {
        struct plan_step *s = &ret->steps[i];
        s->step_id.ptr = ret->ids[i];
        s->rules = &ret->rules[i];
        if (from->plan.chain) {
            s->after_any_end = true;
            s->deps_at = ret->plan.n_edges;
            s->deps_n = 0;
            if (i > 0) {
                add_dep(ret, s, i - 1);
            }
        }
    }
}

static void add_row(struct codec_plan *p, struct rng *r)
{
    const uint32_t i = p->plan.n_steps++;
    const uint32_t from = rng_below(r, i);
    struct plan_step *s = &p->steps[i];
    int len = snprintf(p->ids[i], sizeof p->ids[i], "r%u-%u", p->plan.revision, i);

    *s = p->steps[0];
    s->rules = &p->rules[i];
    *s->rules = p->rules[0];
    s->revision = p->plan.revision;
    s->superseded = false;
    s->step_id = (struct str){p->ids[i], (size_t)len};
    if (p->steps[from].superseded && chance(r, 2)) { /* new work under an old name */
        memcpy(p->ids[i], p->ids[from], sizeof p->ids[i]);
        s->step_id.len = p->steps[from].step_id.len;
    }
    s->deps_at = p->plan.n_edges;
    s->deps_n = 0;
    for (uint32_t k = rng_below(r, i + 3); k < i && s->deps_n < 2; k += 1 + rng_below(r, 4)) {
        if (!p->steps[k].superseded) {
            add_dep(p, s, k);
        }
    }
}

void codec_plan_revise(const struct codec_plan *from, const struct run *run, bool replan,
                       struct rng *r, struct codec_plan *ret)
{
    const uint32_t n = from->plan.n_steps;
    const uint32_t victim = rng_below(r, n);

    *ret = *from;
    ret->plan.steps = ret->steps;
    ret->plan.deps = ret->deps;
    ret->plan.dependents = ret->dependents;
    ret->plan.alternatives = ret->alternatives;
    ret->plan.agents = (struct plan_agents){ret->agent_ids, ret->agents_at, CODEC_AGENTS};
    ret->plan.revision = run->revision + 1;
    ret->plan.n_edges = from->plan.chain ? 0 : from->plan.n_edges;
    ret->plan.chain = false;
    ret->plan.dry_run = false;
    copy_rows(from, ret);
    for (uint32_t i = 0; i < n; i++) {
        const bool stays = run->steps[i].status == STEP_COMPLETED && !chance(r, 3);
        if (replan ? !stays : i == victim && chance(r, 2)) {
            ret->steps[i].superseded = true;
        }
    }
    for (uint32_t k = 1 + rng_below(r, 3); k > 0; k--) {
        add_row(ret, r);
    }
    plan_link(&ret->plan);
}
