/* Random plans: 1-200 steps, chains and DAGs, every policy. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"
#include "tests/unit/core/plan/plan_text.h"

enum { DEPS_MAX = 3 };

const struct str sim_agent_names[SIM_AGENTS_MAX] = {
    {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}};

struct plan *sim_plan_now(const struct sim_plan *p)
{
    return p->revisions[p->n_revisions - 1];
}

static enum on_failure random_on_failure(struct sim *s)
{
    const enum on_failure any = (enum on_failure)sim_range(s, 0, ON_FAILURE_COUNT - 1);
    const enum on_failure on = sim_chance(s, 500) ? ON_FAILURE_SKIP : ON_FAILURE_CONTINUE;
    return sim_chance(s, 450) ? on : any; /* otherwise few plans live long */
}

static msec maybe(struct sim *s, uint32_t permille, uint32_t from, uint32_t to)
{
    const uint32_t ms = sim_range(s, from, to);
    return sim_chance(s, permille) ? ms : 0;
}

static void random_policy(struct sim *s, struct step_policy *p)
{
    p->max_retries = sim_range(s, 0, 3);
    p->backoff = (struct backoff){.kind = (enum backoff_kind)sim_range(s, 0, 2),
                                  .initial_ms = sim_range(s, 0, 200),
                                  .multiplier_permille = 2000,
                                  .max_ms = 1000,
                                  .jitter_permille = sim_chance(s, 500) ? 300 : 0};
    p->timeout_ms = maybe(s, 700, 60, 800);
    p->idle_ms = maybe(s, 150, 60, 300);
    p->queue_timeout_ms = maybe(s, 100, 50, 1500);
    p->agent_wait_ms = maybe(s, 200, 100, 4000);
    p->limit_ms = maybe(s, 150, 200, 2000);
    p->approval_timeout_ms = maybe(s, 400, 100, 1500);
    p->check_timeout_ms = maybe(s, 850, 100, 1500);
    p->no_retry = sim_chance(s, 100) ? 1u << sim_range(s, 1, CLASS_COUNT - 1) : 0;
    p->on_failure = random_on_failure(s);
    p->on_verify = sim_chance(s, 500) ? ON_FAILURE_RETRY : random_on_failure(s);
    p->requires_approval = sim_chance(s, 100);
    p->gate_closed = sim_chance(s, 400);
    p->verify_open = sim_chance(s, 400);
    p->estimate_tokens = sim_range(s, 0, 9);
    p->estimate_micros = sim_range(s, 0, 9);
    p->effects = (enum effects)sim_range(s, 0, EFFECTS_COUNT - 1);
    p->scope = (enum context_scope)sim_range(s, 0, SCOPE_COUNT - 1);
    p->run_if = sim_chance(s, 100)  ? RUN_IF_ALWAYS
                : sim_chance(s, 60) ? RUN_IF_FAILURE
                                    : RUN_IF_SUCCESS;
    p->retry_on = sim_chance(s, 100) ? 1u << sim_range(s, 1, CLASS_COUNT - 1) : 0;
}

/* A step that waits, for a time, a date or a signal. */
static void make_wait(struct sim *s, struct plan_step *row, struct plan_wait *wait)
{
    wait->what = (enum wait_for)sim_range(s, 0, WAIT_FOR_COUNT - 1);
    wait->until = wait->what == WAIT_FOR_DATE ? s->now + sim_range(s, 0, 3000) : 0;
    wait->ms = wait->what == WAIT_FOR_DATE   ? 0
               : wait->what == WAIT_FOR_TIME ? sim_range(s, 0, 2000)
                                             : maybe(s, 500, 100, 3000);
    wait->signal = sim_signal_names[sim_range(s, 0, 1)];
    row->type = STEP_TYPE_WAIT;
    row->wait = wait;
}

/* The core does not look into it. */
static const uint8_t condition[] = {0x80};

/* Whether the next step is one of a child plan: often in children, and not in the deepest. */
static bool child_comes(struct sim *s, const struct plan *plan)
{
    const uint32_t depth = plan->child.depth;
    return sim_chance(s, depth == 0 ? 80 : depth + 1 < NEST_DEPTHS ? 350 : 0);
}

void sim_make_step(struct sim *s, struct plan *plan, uint32_t step)
{
    struct plan_step *row = &plan->steps[step];
    const struct plan_agents *may = &plan->agents;
    const bool any = may->n == 0; /* no agent is granted yet: those named will be */
    const uint32_t n = any ? s->n_agents : may->n;
    const uint32_t who[3] = {sim_range(s, 0, n - 1), sim_range(s, 0, n - 1),
                             sim_range(s, 0, n - 1)};
    uint32_t agents[3];
    for (int i = 0; i < 3; i++) {
        agents[i] = any ? who[i] : may->at[who[i]];
    }
    random_policy(s, &row->rules->policy);
    row->task = row->step_id;
    row->rules->when =
        sim_chance(s, 150) ? (struct doc){condition, sizeof condition} : (struct doc){0};
    row->type = sim_chance(s, 50)      ? STEP_TYPE_REVIEW
                : child_comes(s, plan) ? STEP_TYPE_PLAN
                : sim_chance(s, 100)   ? STEP_TYPE_SYNTHESIS
                                       : STEP_TYPE_TASK;
    if (row->type == STEP_TYPE_TASK && sim_chance(s, 80)) {
        make_wait(s, row, plan_text_wait(plan, step));
    }
    row->agent = agents[0];
    row->agent_id = sim_agent_names[agents[0]];
    if (sim_chance(s, 150)) {
        row->rules->gate_agent = agents[1];
        row->rules->gate_with = sim_agent_names[agents[1]];
    }
    if (sim_chance(s, 150)) {
        row->rules->verify_agent = agents[2];
        row->rules->verify_with = sim_agent_names[agents[2]];
    }
    if (plan_step_is_agentless(row)) {
        row->agent = AGENT_NONE;
        row->agent_id = (struct str){0};
        row->rules->verify_with = (struct str){0};
        row->rules->policy.effects = EFFECTS_NONE;
    } else if (row->type == STEP_TYPE_PLAN) {
        row->agent = AGENT_NONE;
        row->agent_id = (struct str){0};
        row->rules->loop.max = sim_chance(s, 500) ? sim_range(s, 1, 3) : 0;
        row->rules->child =
            sim_chance(s, 500) ? (struct doc){condition, sizeof condition} : row->rules->child;
        row->rules->loop.accept = sim_chance(s, 500) ? 1 : 0;
        row->rules->loop.delay_ms = sim_chance(s, 500) ? sim_range(s, 1, 500) : 0;
    } else if (sim_chance(s, 400)) { /* the alternatives are all granted agents: plan_agents() */
        row->alternatives_n = 1;
    }
    sim_keys_step(s, plan, row);
    if (row->type != STEP_TYPE_WAIT && sim_chance(s, 150)) {
        row->undoes = true;
        row->rules->compensate = row->type == STEP_TYPE_PLAN
                                     ? (struct doc){0}
                                     : (struct doc){condition, sizeof condition};
    }
    sometimes->policies[row->rules->policy.on_failure]++;
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

static void plan_policy(struct sim *s, struct plan *p, bool called)
{
    const uint32_t planner = sim_range(s, 0, s->n_agents - 1);
    const uint32_t searcher = sim_range(s, 0, s->n_agents - 1);
    p->timeout_ms = maybe(s, 80, 500, 20000);
    p->max_fallbacks = sim_range(s, 0, 5);
    p->max_handoffs = sim_range(s, 0, 3);
    p->max_pause_ms = 400; /* agents ask for at most 500 */
    p->handback = sim_chance(s, 500);
    p->signoff = sim_chance(s, 70);
    p->undo = (enum undo_policy)sim_range(s, 0, UNDO_POLICY_COUNT - 1);
    p->budget_tokens = sim_chance(s, 120) ? sim_range(s, 10, 150) : 0;
    p->budget_micros = sim_chance(s, 120) ? sim_range(s, 10, 150) : 0;
    p->session = sim_range(s, 0, s->config.sessions - 1);
    sim_keys_plan(s, p);
    p->keys.n = called ? 0 : p->keys.n;
    p->keyed = p->keyed && !called;
    if (sim_chance(s, 750)) {
        p->replan = (struct replan_policy){.agent_id = sim_agent_names[planner],
                                           .agent = planner,
                                           .max_step = sim_range(s, 0, 3),
                                           .max_total = sim_range(s, 0, 4),
                                           .cooldown_ms = maybe(s, 700, 1, 400),
                                           .timeout_ms = maybe(s, 900, 100, 1000),
                                           .budget_tokens = maybe(s, 80, 1, 15),
                                           .budget_micros = maybe(s, 80, 1, 15)};
    }
    if (sim_chance(s, 500)) {
        p->search_with = sim_agent_names[searcher];
        p->search_agent = searcher;
    }
}

/* Agents besides those that steps name; all are alternatives of a step that has any. */
static void plan_agents(struct sim *s, struct plan *p)
{
    const bool fits = plan_agents_collect(p);
    ASSERT(fits);
    for (uint32_t a = 0; a < s->n_agents; a++) {
        /* One at least: revisions take from them. */
        if (plan_agent_find(p, a) == UINT32_MAX && (p->agents.n == 0 || sim_chance(s, 300))) {
            p->agents.ids[p->agents.n] = sim_agent_names[a];
            p->agents.at[p->agents.n++] = a;
        }
    }
    p->n_alternatives = p->agents.n;
    for (uint32_t i = 0; i < p->agents.n; i++) {
        p->alternatives[i] = i;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        p->steps[i].alternatives_n = p->steps[i].alternatives_n > 0 ? p->n_alternatives : 0;
    }
}

/* Results of an earlier run: mostly with all their dependencies. */
static void random_reuse(struct sim *s, struct sim_plan *p)
{
    const struct plan *plan = sim_plan_now(p);
    uint64_t reused = 0;
    if (!sim_chance(s, 80)) {
        return;
    }
    for (uint32_t i = 0; i < plan->n_steps && i < 64 && p->n_reuse < SIM_REUSE_MAX; i++) {
        bool all = true;
        for (uint32_t k = 0; k < run_deps(plan, i); k++) {
            all = all && (reused & UINT64_C(1) << run_dep(plan, i, k)) != 0;
        }
        if (sim_chance(s, all ? 700 : 50)) {
            reused |= UINT64_C(1) << i;
            p->reuse[p->n_reuse++] = (struct core_reuse){
                .step = i, .result = {.id = SIM_RESULT_OTHER + ++s->tokens, .len = 1}};
        } else if (plan->steps[i].rules->policy.effects == EFFECTS_UNSAFE && sim_chance(s, 300)) {
            p->reuse[p->n_reuse++] = (struct core_reuse){.step = i, .doubt = true};
        }
    }
}

/* The jobs of the plan as a whole. */
static void job_policy(struct sim *s, struct plan *p)
{
    const uint32_t writer = sim_range(s, 0, s->n_agents - 1);
    if (sim_chance(s, 400)) {
        p->synthesis = (struct synthesis_policy){.agent_id = sim_agent_names[writer],
                                                 .agent = writer,
                                                 .timeout_ms = maybe(s, 800, 50, 600),
                                                 .max_retries = sim_range(s, 0, 2)};
    }
    p->dry_run = sim_chance(s, 30);
    p->signoff_timeout_ms = maybe(s, 300, 100, 1500);
    p->job = sim_chance(s, 50) ? JOB_CONVERSE : JOB_NONE; /* its records are internal */
}

/* Of a map the items; what a child may use, its parent gives it. */
static void child_policy(struct sim *s, const struct nest *nest, struct plan *plan)
{
    const struct sim_plan *parent = &s->plans[nest->parent];
    const msec until = parent->shadow->steps[nest->step].deadline;
    uint64_t tokens;
    uint64_t micros;
    core_budget_left(s->core, parent->handle, nest->step, &tokens, &micros);
    plan->timeout_ms = until == MSEC_NEVER ? 0 : until > s->now ? until - s->now : 1;
    plan->budget_tokens = tokens == UINT64_MAX ? 0 : tokens == 0 ? 1 : tokens;
    plan->budget_micros = micros == UINT64_MAX ? 0 : micros == 0 ? 1 : micros;
    plan->session = sim_plan_now(parent)->session;
    plan->keyed = false; /* a plan inside does not wait for the plan around it */
    plan->job = JOB_NONE;
    plan->dry_run = false;
    for (uint32_t i = 0; nest->kind == CHILD_OF_MAP && i < plan->n_steps; i++) {
        plan->steps[i].item = (struct doc){condition, sizeof condition};
        plan->steps[i].index = i;
    }
}

static struct plan *make(struct sim *s, uint32_t n, const struct sim_plan *p)
{
    struct plan *plan = plan_text_blank(n, n * DEPS_MAX + 2, 0, "a");
    plan->child = (struct child_of){.kind = p->nest.kind,
                                    .of = STR_LIT("its parent"),
                                    .step = p->nest.step,
                                    .attempt = p->nest.attempt,
                                    .round = p->nest.round,
                                    .depth = p->nest.depth};
    plan->chain = sim_chance(s, 300);
    plan->max_concurrency = plan->chain ? 1 : sim_range(s, 1, 8);
    plan_policy(s, plan, p->nest.called);
    job_policy(s, plan);
    for (uint32_t i = 0; i < n; i++) {
        sim_make_step(s, plan, i);
        if (!plan->chain) {
            random_deps(s, plan, i);
        }
    }
    /* A cycle that no check has found (M026): its last step waits for itself. */
    if (!plan->chain && n > 0 && plan->steps[n - 1].deps_n == 0 && sim_chance(s, 60)) {
        plan->steps[n - 1].deps_at = plan->n_edges;
        plan->deps[plan->n_edges++] = n - 1;
        plan->steps[n - 1].deps_n = 1;
    }
    plan_link(plan);
    plan_agents(s, plan);
    sometimes->steps += n;
    return plan;
}

static uint32_t draw_steps(struct sim *s)
{
    const uint32_t n = sim_range(s, 1, s->steps_max);
    return s->shrink.steps > 0 && n > s->shrink.steps ? s->shrink.steps : n;
}

/* An agent plans its steps. */
static void without_steps(struct sim *s, struct plan *plan)
{
    const uint32_t planner = sim_range(s, 0, s->n_agents - 1);
    plan->planning = (struct planning_policy){
        .pending = true,
        .agent_id = sim_agent_names[planner],
        .agent = planner,
        .timeout_ms = maybe(s, 800, 50, 600),
        .repairs = sim_range(s, 0, 2),
        .on_invalid = (enum on_invalid)sim_range(s, 0, ON_INVALID_COUNT - 1)};
}

bool sim_offer_plan(struct sim *s, struct sim_plan *p, struct core_event *ev, bool bad)
{
    sim_flush(s);
    if (s->failed || s->down || p->over || !sim_plan_now(p)->planning.pending) {
        return false;
    }
    const struct plan *blank = sim_plan_now(p);
    struct plan *plan = make(s, draw_steps(s), p);
    const bool bring = bad && sim_chance(s, 500);
    plan->session = blank->session;
    plan->keys = blank->keys;
    plan->keyed = blank->keyed;
    plan->overlap = blank->overlap;
    plan->priority = blank->priority;
    plan->synthesis = blank->synthesis;
    plan->signoff = blank->signoff;
    plan->signoff_timeout_ms = blank->signoff_timeout_ms;
    plan->dry_run = blank->dry_run;
    plan->job = blank->job;
    plan->budget_tokens = blank->budget_tokens;
    plan->budget_micros = blank->budget_micros;
    plan->revision = p->shadow->revision + (bad && !bring ? 1 : 0);
    plan->planning.pending = bring; /* no plan */
    p->revisions[p->n_revisions] = plan;
    p->offer = sim_need(1, core_run_size(plan));
    *event_plan(ev) =
        (struct core_new_plan){.plan = plan,
                               .block = p->offer,
                               .document = {.id = SIM_RESULT_OTHER + ++s->tokens, .len = 9}};
    return true;
}

static void take_plan(struct sim *s, struct sim_plan *p, struct plan *plan)
{
    p->revisions[p->n_revisions++] = plan;
    p->block = sim_need(1, core_run_size(plan));
    p->shadow = run_init(sim_need(1, run_size(plan)), plan);
    sim_told_grow(p, 0, plan->n_steps);
    random_reuse(s, p);
}

void sim_make_plan(struct sim *s, struct sim_plan *p)
{
    const bool planned = sim_chance(s, 200);
    const uint32_t n = planned ? 0 : draw_steps(s);
    struct plan *plan = make(s, n, p);
    if (planned) {
        without_steps(s, plan);
    }
    take_plan(s, p, plan);
}

void sim_make_child(struct sim *s, struct sim_plan *p)
{
    const uint32_t n = draw_steps(s);
    struct plan *plan = make(s, n < SIM_CHILD_STEPS_MAX ? n : 1 + n % SIM_CHILD_STEPS_MAX, p);
    child_policy(s, &p->nest, plan);
    take_plan(s, p, plan);
}

void sim_free_plan(struct sim_plan *p)
{
    sim_withdraw(p);
    for (uint32_t i = 0; i < p->n_revisions; i++) {
        plan_text_free(p->revisions[i]);
    }
    free(p->block);
    free(p->shadow);
    free(p->journal);
    free(p->signals);
    free(p->told);
}
