/* plan.stats and supervisor.stats: figures per step, plan and agent (M113). */
#include <stdio.h>
#include <unistd.h>

#include "supervisor/api/api.h"
#include "supervisor/dispatch/cards.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/query/agent_stats.h"
#include "supervisor/query/projection.h"
#include "supervisor/query/waits.h"

/* ---- plan.stats ---- */

enum { STATS_AGENTS_MAX = 1024 }; /* of one plan: `truncated` says that there were more */

struct plan_figures {
    struct projection *s;
    msec now; /* wall */
    struct msg_plan_stats_ok ok;
    uint64_t *ms;                /* by step */
    struct agent_stats *figures; /* by ok.agents */
};

static uint64_t run_ms(const struct plan_figures *g, uint32_t i)
{
    const struct projection_step *x = &g->s->steps[i];

    if (x->began != 0 && x->ended == 0) {
        return g->now > x->began ? g->now - x->began : 0;
    }
    return g->s->view.steps[i].duration_ms;
}

/* From the end of the last step that it waited for to its first attempt. */
static uint64_t queue_ms(const struct plan_figures *g, uint32_t i)
{
    const struct plan *plan = g->s->plan;
    const struct plan_step *p = &plan->steps[i];
    msec ready = g->s->started;

    if (plan->chain && i > 0 && g->s->steps[i - 1].ended > ready) {
        ready = g->s->steps[i - 1].ended;
    }
    for (uint32_t d = 0; d < p->deps_n; d++) {
        msec ended = g->s->steps[plan->deps[p->deps_at + d]].ended;
        ready = ended > ready ? ended : ready;
    }
    return g->s->steps[i].first_attempt > ready ? g->s->steps[i].first_attempt - ready : 0;
}

static struct agent_stats *agent_stats_of(struct plan_figures *g, struct str agent_id)
{
    for (uint32_t i = 0; i < g->ok.agents_n; i++) {
        if (str_eq(g->ok.agents[i].agent_id, agent_id)) {
            return &g->figures[i];
        }
    }
    if (g->ok.agents_n == STATS_AGENTS_MAX) {
        g->ok.truncated = true;
        return NULL;
    }
    g->ok.agents[g->ok.agents_n].agent_id = agent_id;
    return &g->figures[g->ok.agents_n++];
}

static void add_step(struct plan_figures *g, uint32_t i)
{
    const struct msg_step_view *v = &g->s->view.steps[i];
    const struct plan_step *p = &g->s->plan->steps[i];
    const struct projection_step *x = &g->s->steps[i];
    bool completed = str_is(v->status, "completed");
    bool own = !str_is(v->reason, step_reason_name(REASON_REUSED));
    struct agent_stats *f =
        x->began != 0 && v->agent_id.len > 0 ? agent_stats_of(g, v->agent_id) : NULL;

    g->ms[i] = run_ms(g, i);
    g->ok.steps[i] =
        (struct msg_step_figures){.step_id = v->step_id,
                                  .step_index = i,
                                  .agent_id = v->agent_id,
                                  .status = v->status,
                                  .attempts = v->attempts,
                                  .queue_ms = queue_ms(g, i),
                                  .run_ms = g->ms[i],
                                  .tokens = usage_tokens(&x->usage),
                                  .cost_micros = x->usage.cost_micros,
                                  .estimated_tokens = p->rules->policy.estimate_tokens,
                                  .estimated_cost_micros = p->rules->policy.estimate_micros,
                                  .error_class = v->error_class};
    if (!p->superseded) {
        g->ok.estimated_tokens += p->rules->policy.estimate_tokens;
        g->ok.estimated_cost_micros += p->rules->policy.estimate_micros;
    }
    if (f != NULL && own && (completed || str_is(v->status, "failed"))) {
        agent_stats_step(f, completed, g->ms[i], x->failed_attempts, usage_tokens(&x->usage));
    } else if (f != NULL) {
        f->errors += x->failed_attempts;
        f->tokens += usage_tokens(&x->usage);
    }
}

static void add_agents(struct plan_figures *g)
{
    for (uint32_t i = 0; i < g->ok.agents_n; i++) {
        const struct agent_stats *f = &g->figures[i];
        struct msg_agent_figures *to = &g->ok.agents[i];
        to->steps = f->steps;
        to->errors = f->errors;
        to->error_rate = agent_stats_error_rate(f);
        to->average_ms = agent_stats_average_ms(f);
        to->max_ms = f->max_ms;
        to->tokens = f->tokens;
    }
}

/* The chain of most steps, and the slowest step of the chain that took longest. */
static bool add_shape(struct plan_figures *g)
{
    const struct plan *plan = g->s->plan;
    uint64_t *nothing = arena_alloc(&g->s->arena, (plan->n_steps + 1) * sizeof *nothing);
    uint32_t *path = arena_alloc(&g->s->arena, (plan->n_steps + 1) * sizeof *path);
    uint64_t work = 0;
    uint32_t slowest = UINT32_MAX;
    uint32_t n;

    if (nothing == NULL || path == NULL) {
        return false;
    }
    n = critical_path(plan, nothing, &g->s->arena, path, plan->n_steps);
    g->ok.depth = n == UINT32_MAX ? 0 : n;
    n = critical_path(plan, g->ms, &g->s->arena, path, plan->n_steps);
    for (uint32_t i = 0; n != UINT32_MAX && i < n; i++) {
        slowest = slowest == UINT32_MAX || g->ms[path[i]] > g->ms[slowest] ? path[i] : slowest;
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        work += g->ms[i];
    }
    if (slowest != UINT32_MAX && g->ms[slowest] > 0) {
        g->ok.bottleneck_step_id = plan->steps[slowest].step_id;
    }
    g->ok.dependencies = plan->chain ? plan->n_steps - 1 : plan->n_edges;
    g->ok.parallelism = g->ok.duration_ms == 0 ? 0 : (double)work / (double)g->ok.duration_ms;
    return true;
}

static bool fill_stats(struct engine *engine, struct plan_figures *g)
{
    struct projection *s = g->s;
    const struct open_plan *p = open_plan_by_id(engine, s->view.plan_id);
    const struct usage *total =
        s->ended || p == NULL ? &s->total : &core_block_run(p->block)->usage;

    g->ok.plan_id = s->view.plan_id;
    g->ok.status = s->view.status;
    g->ok.usage = usage_view(total);
    g->ok.duration_ms = s->ended                                 ? s->view.duration_ms
                        : s->started != 0 && g->now > s->started ? g->now - s->started
                                                                 : 0;
    g->ok.steps = arena_alloc(&s->arena, (s->view.steps_n + 1) * sizeof *g->ok.steps);
    g->ok.agents = arena_alloc(&s->arena, STATS_AGENTS_MAX * sizeof *g->ok.agents);
    g->figures = arena_alloc(&s->arena, STATS_AGENTS_MAX * sizeof *g->figures);
    g->ms = arena_alloc(&s->arena, (s->view.steps_n + 1) * sizeof *g->ms);
    if (g->ok.steps == NULL || g->ok.agents == NULL || g->figures == NULL || g->ms == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < s->view.steps_n; i++) {
        add_step(g, i);
    }
    g->ok.steps_n = s->view.steps_n;
    add_agents(g);
    return add_shape(g);
}

static void answer_stats(struct engine *engine, struct request *rq, struct msg_plan_stats_ok *ok)
{
    struct bt_error err;

    while (request_try_answer(engine, rq, MSG_plan_stats_ok, ok, &err) != BT_OK) {
        if (ok->steps_n == 0) {
            request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        ok->steps_n /= 2;
        ok->truncated = true;
    }
}

void on_plan_stats(struct engine *engine, struct request *rq)
{
    struct plan_figures g = {.now = engine_wall(engine)};
    struct msg_plan_stats m;
    struct projection s;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_stats, &m)) {
        return;
    }
    if (projection_read(engine, m.plan_id, &s, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        g.s = &s;
        if (fill_stats(engine, &g)) {
            answer_stats(engine, rq, &g.ok);
        } else {
            request_refuse_text(engine, rq, BT_NOMEM, "out of memory for the figures of a plan");
        }
    }
    projection_done(&s);
}

/* ---- supervisor.stats ---- */

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f != NULL) {
        if (fscanf(f, "%*u %llu", &pages) != 1) {
            pages = 0;
        }
        (void)fclose(f);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* draining: by agent, zeroed; how many of its instances take no more. */
static void add_loads(struct engine *engine, struct msg_supervisor_stats_ok *ok, uint32_t *draining)
{
    const uint32_t n = registry_agents(engine_registry(engine));

    for (uint32_t i = 0; i < n; i++) {
        const struct agent_view a = registry_agent_view(engine_registry(engine), i);
        const struct agent_stats *f = &agent_card_of(engine, i)->agent_stats;
        ok->agents[i] =
            (struct msg_agent_load){.agent_id = a.id,
                                    .state = STR_LIT("up"),
                                    .breaker = str_from(breaker_state_name(a.breaker.state)),
                                    .instances = a.instances,
                                    .queued = core_agent_queued(engine_core(engine), i),
                                    .steps = f->steps,
                                    .errors = f->errors,
                                    .error_rate = agent_stats_error_rate(f),
                                    .average_ms = agent_stats_average_ms(f),
                                    .max_ms = f->max_ms,
                                    .tokens = f->tokens};
        ok->queued += ok->agents[i].queued;
    }
    for (uint32_t slot = 0; slot < registry_instances(engine_registry(engine)); slot++) {
        struct instance_view v;
        if (registry_instance_view(engine_registry(engine), slot, &v) && v.agent < n) {
            ok->agents[v.agent].capacity += v.capacity;
            ok->agents[v.agent].in_flight += v.outstanding;
            ok->in_flight += v.outstanding;
            draining[v.agent] += v.draining;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct agent_view a = registry_agent_view(engine_registry(engine), i);
        if (!a.enabled || a.instances == 0) {
            ok->agents[i].state = a.enabled ? STR_LIT("down") : STR_LIT("disabled");
        } else if (draining[i] == a.instances) {
            ok->agents[i].state = STR_LIT("draining");
        }
    }
    ok->agents_n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (agent_is_shown(engine, i)) {
            ok->agents[ok->agents_n++] = ok->agents[i];
        }
    }
}

static void add_plans(struct engine *engine, struct msg_supervisor_stats_ok *ok)
{
    for (const struct open_plan *p = NULL; (p = open_plan_next(engine, p)) != NULL;) {
        const struct run *run = core_block_run(p->block);
        if (p->job == NULL) {
            ok->plans_waiting += run->status == PLAN_WAITING;
            ok->reviews_open += run->waiting;
            ok->reviews_open +=
                (run->paused & (1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING)) != 0 ? 1u : 0u;
        }
    }
}

void on_supervisor_stats(struct engine *engine, struct request *rq)
{
    const struct engine_stats *n = engine_stats(engine);
    struct msg_supervisor_stats_ok ok = {.turns = n->cycles,
                                         .commits = n->commits,
                                         .commit_us = n->commit_us,
                                         .records = n->records,
                                         .published = n->published,
                                         .requests = n->requests,
                                         .refused_busy = n->refused_busy,
                                         .plans_open = engine_plans_open(engine),
                                         .plans_done = n->plans_done,
                                         .steps_dispatched = dispatch_sent(engine),
                                         .steps_retried = n->steps_retried,
                                         .results_rejected = n->results_rejected,
                                         .rss_bytes = resident_bytes(),
                                         .fallbacks = n->fallbacks,
                                         .replans = n->replans,
                                         .cycles_over_5ms = n->cycles_over_5ms,
                                         .cycles_over_20ms = n->cycles_over_20ms,
                                         .cycles_over_100ms = n->cycles_over_100ms,
                                         .longest_cycle_us = n->longest_cycle_us,
                                         .in_flight_max = engine_options(engine)->in_flight,
                                         .breakers_opened =
                                             registry_breakers_opened(engine_registry(engine))};
    struct journal_size size;
    struct bt_error err;
    struct arena arena = {0};
    uint32_t *draining;

    ok.agents =
        arena_alloc(&arena, (registry_agents(engine_registry(engine)) + 1) * sizeof *ok.agents);
    draining =
        arena_alloc(&arena, (registry_agents(engine_registry(engine)) + 1) * sizeof *draining);
    if (ok.agents != NULL && draining != NULL) {
        add_loads(engine, &ok, draining);
    }
    add_plans(engine, &ok);
    if (journal_size(engine_journal(engine), &size, &err) == BT_OK) {
        ok.journal_bytes = size.file;
    }
    request_answer(engine, rq, MSG_supervisor_stats_ok, &ok);
    arena_done(&arena);
}
