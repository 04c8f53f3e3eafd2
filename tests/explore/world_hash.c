/* When two states count as one: all of their bytes but what decides nothing, times from now on. A
 * new field joins by itself; only what is taken out is named here. */
#include <string.h>

#include "tests/explore/world.h"

struct digest {
    const struct world *world;
    uint64_t h;
};

static void mix(struct digest *d, uint64_t v)
{
    d->h ^= v;
    d->h *= UINT64_C(0x9E3779B97F4A7C15);
    d->h ^= d->h >> 29;
}

static void mix_bytes(struct digest *d, const void *at, size_t bytes)
{
    const unsigned char *p = at;
    for (; bytes > 0;) {
        uint64_t word = 0;
        const size_t n = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, p, n);
        mix(d, word);
        p += n;
        bytes -= n;
    }
}

/* Never is itself, and what is over is now. */
static msec ahead(const struct digest *d, msec t)
{
    const msec now = d->world->at.now;
    return t == MSEC_NEVER ? t : t > now ? t - now : 0;
}

/* How long ago, as far as anybody counts. */
static msec ago(const struct digest *d, msec t, msec longest)
{
    const msec now = d->world->at.now;
    const msec age = now > t ? now - t : 0;
    return age < longest ? age : longest;
}

/* An epoch decides only by whose it is: current, or an old one. */
static uint64_t rank_of(const struct digest *d, uint64_t epoch)
{
    uint64_t rank = 0;
    for (uint32_t i = 0; i < WORLD_BODIES; i++) {
        const uint64_t now = d->world->at.bodies[i].epoch;
        rank = rank * 4 + (epoch > now ? 2 : epoch == now);
    }
    return rank;
}

/* ---- steps ---- */

/* Names of processes are never used again: only whether it is still the one that got the attempt.
 */
static uint8_t is_current_process(const struct digest *d, const struct run_step *s)
{
    const uint32_t body = world_body_of(&s->instance);
    if (uuid_is_nil(s->instance)) {
        return 0; /* a child plan does it */
    }
    return s->process.b[0] == 1 + d->world->at.bodies[body].process;
}

static void mix_run_step(struct digest *d, struct run_step s)
{
    s.started = 0;
    s.deadline = ahead(d, s.deadline);
    s.limit = ahead(d, s.limit);
    if (s.status == STEP_IN_PROGRESS || s.status == STEP_UNKNOWN) {
        s.attempt_end = ahead(d, s.attempt_end);
        s.process = (struct uuid){{is_current_process(d, &s)}};
    } else {
        s.attempt_end = 0;
        s.adopted = 0;
        s.process = (struct uuid){{0}};
    }
    s.epoch = rank_of(d, s.epoch);
    s.review_serial = 0;           /* only whether it is the open one counts */
    if (step_is_final(s.status)) { /* only what its dependents and the end of the plan look at */
        s = (struct run_step){.status = s.status,
                              .reason = s.reason,
                              .error_class = s.error_class,
                              .replans = s.replans,
                              .agent = s.agent};
    }
    mix_bytes(d, &s, sizeof s);
}

/* Times matter as far as a rule looks at them. */
static void mix_told(struct digest *d, struct told t, const struct step_policy *policy)
{
    const bool waits = t.status == STEP_WAITING || t.status == STEP_SLEEPING;
    const msec sign = t.sign > t.sent ? t.sign : t.sent;
    if (t.completed) {
        mix(d, 1 | (uint64_t)t.agent << 8 | (uint64_t)t.nth << 16 | (uint64_t)t.replans << 24 |
                   (uint64_t)t.wanted << 32);
        return;
    }
    t.sign = t.out && policy->idle_ms > 0 ? ago(d, sign, policy->idle_ms) : 0;
    t.sent = t.status == STEP_SLEEPING ? ago(d, t.sent, 1000)
             : waits                   ? ago(d, t.sent, policy->approval_timeout_ms)
             : t.out                   ? ago(d, t.sent, policy->timeout_ms)
                                       : 0;
    t.used = waits ? t.used : 0;
    t.process = t.out && t.body > 0 && t.process == d->world->at.bodies[t.body - 1].process;
    t.ran = t.out ? t.ran : 0;
    t.asked = t.out && t.adopted ? t.asked : 0;
    t.clock = t.out || t.child != 0 || t.rounded != 0 ? ago(d, t.clock, policy->timeout_ms) : 0;
    t.begun = policy->limit_ms > 0 && t.begun > 0 ? 1 + ago(d, t.begun - 1, policy->limit_ms) : 0;
    mix_bytes(d, &t, sizeof t);
}

static void mix_sched(struct digest *d, const struct core_run *row, uint32_t i)
{
    struct sched_step s = row->sched[i];
    const bool queued = s.list == LIST_QUEUE;
    const bool held = s.list == LIST_HELD;
    const struct step_policy *policy = &row->plan->steps[i].rules->policy;
    const msec wait = d->world->config.agent_wait_ms;
    const msec own = policy->agent_wait_ms > wait ? policy->agent_wait_ms : wait;
    const msec longest = policy->queue_timeout_ms > own ? policy->queue_timeout_ms : own;
    s.since = queued ? ago(d, s.since, longest) : 0;
    s.queued_at = held ? ago(d, s.queued_at, longest) : 0;
    s.last_sign = held && policy->idle_ms > 0 ? ago(d, s.last_sign, policy->idle_ms) : 0;
    s.epoch = held ? rank_of(d, s.epoch) : 0;
    s.slot = held || s.list == LIST_UNKNOWN ? s.slot : 0;
    s.progress = 0;
    if (s.unsent == 0) {
        s.serial = 0;
        s.phase = 0;
    }
    mix_bytes(d, &s, sizeof s);
    mix(d, ahead(d, core_entry_heap(row).keys[i]));
}

/* ---- the core ---- */

static void mix_row(struct digest *d, const struct core_run *row)
{
    mix_bytes(d, &row->ready, sizeof row->ready);
    mix_bytes(d, &row->budget_waiters, sizeof row->budget_waiters);
    mix_bytes(d, &row->parked, sizeof row->parked);
    mix(d, row->reserved_tokens);
    for (uint32_t i = 0; i < row->plan->agents.n; i++) {
        const struct core_queue *q = &core_queues(row)[i];
        mix(d, q->prev);
        mix(d, q->next);
        mix_bytes(d, &q->steps, sizeof q->steps);
        mix(d, (uint64_t)q->ring << 8 | q->woken);
    }
    for (uint32_t i = 0; i < row->plan->n_steps; i++) {
        mix_sched(d, row, i);
    }
}

/* More failures than open it decide nothing. */
static void mix_breaker(struct digest *d, const struct breaker_view *b)
{
    const uint32_t enough = 2 * d->world->config.registry.breaker_failures;
    mix(d, (uint64_t)b->state << 32 | (b->failures < enough ? b->failures : enough));
    mix(d, ahead(d, b->retry_at));
}

static void mix_core(struct digest *d)
{
    const struct core *c = d->world->core;
    mix_bytes(d, &c->unknown, sizeof c->unknown);
    mix_bytes(d, &c->dated, sizeof c->dated);
    mix(d, (uint64_t)c->dirty.head << 32 | c->woken_sessions.head);
    for (uint32_t i = 0; i < registry_agents(c->registry); i++) {
        const struct core_agent *a = &c->agents[i];
        const struct agent_view view = registry_agent_view(c->registry, i);
        mix_bytes(d, &a->ring, sizeof a->ring);
        mix(d, a->dirty ? 1 + (uint64_t)a->next_dirty : 0);
        if (view.instances == 0) {
            mix(d, 1 + ago(d, view.absent_since, c->config.agent_wait_ms));
        }
        mix_breaker(d, &view.breaker);
    }
    for (uint32_t i = 0; i < c->config.keys; i++) {
        const struct core_key *k = &c->keys[i];
        mix(d, (uint64_t)k->held << 32 | k->woken << 1 | (k->fresh ? 1 : 0));
        mix_bytes(d, &k->steps, sizeof k->steps);
        mix(d, ahead(d, c->opens.keys[c->config.registry.agents + i]));
    }
    mix_bytes(d, &c->sessions[0].blocked, sizeof c->sessions[0].blocked);
    mix(d, c->sessions[0].woken);
}

static void mix_request(struct digest *d, const struct request *req)
{
    mix(d, req->out);
    if (req->out) {
        mix(d, (uint64_t)req->slot << 48 | (uint64_t)req->phase << 40 | (uint64_t)req->step << 32 |
                   (uint64_t)req->attempt << 16 | req->lane);
        mix(d, rank_of(d, req->epoch));
    }
}

static void mix_body(struct digest *d, uint32_t i)
{
    const struct core *c = d->world->core;
    const struct body *b = &d->world->at.bodies[i];
    struct instance_view v = {0};
    const uint32_t slot = registry_instance(c->registry, world_id(i));
    mix(d, slot);
    mix(d, rank_of(d, b->epoch) << 8 | (uint64_t)b->leaving << 1 | b->probed);
    mix_request(d, &b->now);
    mix_request(d, &b->old);
    if (slot == REGISTRY_NONE || !registry_instance_view(c->registry, slot, &v)) {
        return;
    }
    mix(d, (uint64_t)v.lanes_up << 32 | (uint64_t)v.outstanding << 16 | (uint64_t)v.draining << 12 |
               (uint64_t)v.control_up << 8 | (uint64_t)v.health);
    if (d->world->config.registry.lease_ms < 1000) {
        mix(d, ago(d, v.last_seen, 1000));
    }
    mix(d, v.full ? 1 + ahead(d, v.full_until) : 0);
    mix(d, v.full_ms);
    mix_breaker(d, &v.breaker);
    mix_bytes(d, &c->instances[slot].held, sizeof c->instances[slot].held);
    mix(d, c->instances[slot].spawned);
}

/* ---- all ---- */

static void mix_run(struct digest *d, struct run r)
{
    const bool budget = world_plan(d->world)->budget_tokens > 0;
    r.plan_seq = 0;
    r.started = 0;
    r.handoffs = 0;
    r.current = 0;
    r.reviews = r.plan_review = 0;
    r.last_done = 0;
    r.signals = 0;
    r.deadline = ahead(d, r.deadline);
    r.planning_usage = (struct usage){0};
    r.usage = budget ? r.usage : (struct usage){0};
    mix_bytes(d, &r, sizeof r);
}

static void mix_phases(struct digest *d, struct run_phases p)
{
    const bool budget = world_plan(d->world)->replan.budget_tokens > 0;
    p.synthesis = (struct usage){0};
    p.replanning = budget ? p.replanning : (struct usage){0};
    mix_bytes(d, &p, p.end_text_n == 0 ? offsetof(struct run_phases, end_text) : sizeof p);
}

uint64_t world_hash(const struct world *w)
{
    struct digest d = {.world = w, .h = 1};
    const struct situation *at = &w->at;
    const struct core_run *row = core_find_run(w->core, at->handle);
    mix(&d, at->over);
    const bool dated = row != NULL && w->core->dated.n > 0;
    if (at->over) { /* all ends are one, as far as anything can follow */
        return d.h;
    }
    mix_run(&d, *w->shadow);
    mix_phases(&d, *run_phases(w->shadow));
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        mix_run_step(&d, w->shadow->steps[i]);
        mix_told(&d, at->told[i], &world_plan(w)->steps[i].rules->policy);
    }
    mix_row(&d, row);
    mix_core(&d);
    for (uint32_t i = 0; w->scenario->bodies[i] != '\0'; i++) {
        mix_body(&d, i);
    }
    mix(&d, (uint64_t)at->plan << 16 | (uint64_t)at->begun << 8 | at->last_agent);
    mix(&d, (uint64_t)at->replanning << 8 | at->cancelling);
    mix(&d, at->job.out);
    mix(&d, at->job.undone);
    mix(&d, (uint64_t)at->clock);
    for (uint32_t i = 0; i < at->signals; i++) {
        if (at->names[i] != 0) {
            mix(&d, at->names[i]);
        }
    }
    mix(&d, dated ? world_wall(w) : 0);
    mix(&d, at->replanning ? ahead(&d, at->replan_at) : 0);
    mix(&d, at->cancelling ? ago(&d, at->cancelled_at, 1000) : 0);
    if (at->left.faults > 0) {
        mix_bytes(&d, &at->left, sizeof at->left);
    }
    return d.h;
}
