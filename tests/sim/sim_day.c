/* One seed: its random choices, and the loop until every plan has ended. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

/* ---- random choices ---- */

static void draw_faults(struct sim *s)
{
    static const uint32_t most[FAULT_COUNT] = {
        [FAULT_BEFORE_COMMIT] = 4, [FAULT_AFTER_COMMIT] = 4,   [FAULT_DISK_FULL] = 2,
        [FAULT_RESTART] = 60,      [FAULT_DOWN] = 1000,        [FAULT_CANCEL] = 20,
        [FAULT_UNSENT] = 900,      [FAULT_REPLY_LOST] = 500,   [FAULT_HANG] = 60,
        [FAULT_ABSENT] = 500,      [FAULT_SLOW] = 300,         [FAULT_UNDECIDED] = 900,
        [FAULT_PARTITION] = 60,    [FAULT_VERDICT_NO] = 500,   [FAULT_FAILURE] = 400,
        [FAULT_REVISE] = 300,      [FAULT_BAD_REVISION] = 400, [FAULT_UNPLANNED] = 400,
        [FAULT_BAD_PLAN] = 700,    [FAULT_NO_ANSWER] = 500,    [FAULT_RECTIFY] = 900,
        [FAULT_JOB_LATE] = 900,    [FAULT_SAME_NAME] = 500,    [FAULT_NEST] = 1000,
        [FAULT_LATE_COMMIT] = 20,  [FAULT_BUSY] = 900,
    };
    const uint32_t many = sim_chance(s, 250) ? 650 : 300;
    for (int f = 0; f < FAULT_COUNT; f++) {
        const bool in = sim_chance(s, f == FAULT_NEST ? 500 : many);
        const uint32_t rate = sim_range(s, 1, most[f] > 0 ? most[f] : 200);
        s->rate[f] = in && (s->shrink.without & UINT64_C(1) << f) == 0 ? rate : 0;
    }
}

/* Most runs are short and have few plans; some are long. */
static void draw_size(struct sim *s)
{
    const uint32_t size = sim_range(s, 0, 99);
    uint32_t plans = sim_range(s, 1, 2);
    s->quiet = sim_range(s, 300, 2500);
    s->steps_max = 8;
    if (size >= 96) {
        plans = sim_range(s, 1, SIM_PLANS_MAX);
        s->quiet = sim_range(s, 1000, SIM_QUIET_MAX_MS);
        s->steps_max = SIM_STEPS_MAX;
    } else if (size >= 75) {
        plans = sim_range(s, 1, SIM_PLANS_MAX);
        s->quiet = sim_range(s, 500, 6000);
        s->steps_max = 20;
    }
    s->n_plans = s->shrink.plans > 0 && plans > s->shrink.plans ? s->shrink.plans : plans;
    s->quiet = s->shrink.quiet > 0 && s->quiet > s->shrink.quiet ? s->shrink.quiet : s->quiet;
    s->n_agents = sim_range(s, 1, SIM_AGENTS_MAX);
    s->n_bodies = sim_range(s, s->n_agents, SIM_BODIES_MAX);
    s->child_places = sim_chance(s, 300) ? sim_range(s, 1, 3) : SIM_CHILDREN_MAX;
    s->children_max = s->shrink.children > 0 && s->shrink.children < SIM_CHILDREN_MAX
                          ? s->shrink.children
                          : SIM_CHILDREN_MAX;
    s->batch_max = sim_chance(s, 400) ? sim_range(s, 2, SIM_BATCH_MAX) : 1;
}

static uint32_t maybe(struct sim *s, uint32_t permille, uint32_t from, uint32_t to)
{
    const uint32_t n = sim_range(s, from, to);
    return sim_chance(s, permille) ? n : 0;
}

static void draw_config(struct sim *s)
{
    const bool few = sim_chance(s, 80); /* fewer places than processes */
    s->config = (struct core_config){
        .runs_max = sim_chance(s, 200) ? 1 : SIM_ALL_PLANS,
        .registry = {.agents = SIM_AGENTS_MAX,
                     .instances = few ? sim_range(s, 1, s->n_bodies) : 2 * SIM_BODIES_MAX,
                     .lease_ms = 1000,
                     .suspect_ms = 600,
                     .ended_ms = maybe(s, 500, 50, 300),
                     .breaker_failures = maybe(s, 400, 1, 3),
                     .breaker_cooldown_ms = sim_range(s, 50, 400),
                     .breaker_cooldown_max_ms = 1000,
                     .breaker_probe_ms = 50},
        .agent_wait_ms = maybe(s, 950, 300, 2000),
        .unknown_wait_ms = 1500,
        .last_word_ms = 50,
        .cancel_grace_ms = sim_chance(s, 900) ? 100 : 0,
        .sessions = sim_range(s, 1, SIM_SESSIONS_MAX),
        .in_flight = maybe(s, 200, 1, 4),
        .in_flight_agent = maybe(s, 200, 1, 2),
        .in_flight_session = maybe(s, 200, 1, 3),
        .seed = s->seed};
}

static void grow(struct commands *c)
{
    c->cap = c->cap == 0 ? 64 : 2 * c->cap;
    c->at = realloc(c->at, c->cap * sizeof *c->at);
    ASSERT(c->at != NULL);
}

static void set_up(struct sim *s)
{
    s->random = s->seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    s->hash = 1;
    s->out.grow = grow;
    buf_init(&s->body, LIMIT_EVENT_BYTES);
    buf_init(&s->topic, 1000);
    draw_size(s);
    draw_faults(s);
    draw_config(s);
    s->children_max = s->config.runs_max == 1 ? 0 : s->children_max; /* there is no room */
    sim_keys_draw(s);
    s->core = core_init(sim_need(1, core_size(&s->config)), &s->config);
    for (uint32_t i = 0; i < s->n_agents; i++) {
        (void)registry_agent_configure(s->core->registry, sim_agent_names[i], 0);
    }
    sim_keys_apply(s);
    for (uint32_t i = 0; i < s->n_plans; i++) {
        sim_make_plan(s, &s->plans[i]);
        sim_after(s, sim_chance(s, 500) ? 0 : sim_range(s, 0, (uint32_t)s->quiet),
                  (struct sim_event){.kind = SIM_SUBMIT, .plan = i});
    }
    for (uint32_t i = 0; i < s->n_bodies; i++) {
        s->bodies[i] = (struct body){.agent = i % s->n_agents,
                                     .capacity = sim_range(s, 1, SIM_CAPACITY_MAX),
                                     .spawned = sim_chance(s, 500)};
        sim_after(s, sim_fault(s, FAULT_ABSENT) ? sim_range(s, 1000, 5000) : 0,
                  (struct sim_event){.kind = SIM_BIRTH, .body = i});
    }
    sim_after(s, 50, (struct sim_event){.kind = SIM_CHAOS});
    sim_after(s, 20, (struct sim_event){.kind = SIM_PEOPLE});
}

static void tear_down(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        sim_free_plan(&s->plans[i]);
    }
    free(s->core);
    free(s->execs);
    free(s->sent);
    free(s->incarnations);
    free(s->queue);
    free(s->out.at);
    buf_done(&s->body);
    buf_done(&s->topic);
    arena_done(&s->arena);
}

/* ---- the loop ---- */

static bool all_over(const struct sim *s)
{
    uint32_t over = 0;
    for (uint32_t i = 0; i < s->n_plans; i++) {
        over += s->plans[i].over ? 1 : 0;
    }
    return over == s->n_plans;
}

/* G8: once the faults stop, everything ends within this: waits for rate limits, the attempts that
 * hang, and the rest of the steps one after the other. */
static msec bound_of(const struct sim *s)
{
    msec bound = s->quiet + 60000;
    for (uint32_t i = 0; i < s->n_plans; i++) {
        bound += sim_plan_now(&s->plans[i])->n_steps * (msec)1000;
    }
    return bound;
}

static void submit(struct sim *s, uint32_t ix)
{
    struct sim_plan *p = &s->plans[ix];
    sim_flush(s);
    if (p->nest.kind != CHILD_OF_NONE && !sim_nest_may_begin(s, p)) {
        return;
    }
    if (!s->down && !s->failed && !p->submitted) {
        sim_turn(s,
                 (struct core_event){CORE_EV_INIT(
                     SUBMIT, submit, .plan = p->revisions[0], .block = p->block, .reuse = p->reuse,
                     .n_reuse = p->n_reuse, .planning = {.input_tokens = 1, .cost_micros = 1})},
                 (struct uuid){{0}});
    }
    if (!p->submitted) { /* busy, or the daemon died before it accepted the plan */
        sim_after(s, 200, (struct sim_event){.kind = SIM_SUBMIT, .plan = ix});
    } else if (p->nest.kind != CHILD_OF_NONE) {
        sim_nest_begun(s, p);
    }
}

static void let_happen(struct sim *s, const struct sim_event *ev)
{
    switch (ev->kind) {
    case SIM_CORE:
        if (ev->life == s->life) {
            sim_turn(s, ev->core, ev->process);
        }
        break;
    case SIM_SUBMIT:
        submit(s, ev->plan);
        break;
    case SIM_CHAOS:
        sim_chaos(s);
        break;
    case SIM_PEOPLE:
        sim_people(s);
        sim_after(s, s->now < s->quiet ? sim_range(s, 10, 150) : 100,
                  (struct sim_event){.kind = SIM_PEOPLE});
        break;
    case SIM_JOB:
        sim_job_says(s, ev);
        break;
    case SIM_NEST:
        sim_nest_happens(s, ev);
        break;
    case SIM_BOOT:
        sim_boot(s);
        break;
    case SIM_ARRIVE:
    case SIM_REPLY:
    case SIM_REFUSE:
    case SIM_PROGRESS:
    case SIM_REGISTER:
    case SIM_LANE_UP:
    case SIM_BEAT:
    case SIM_QUERY:
    case SIM_PROBE:
    case SIM_BIRTH:
        sim_step_agents(s, ev);
        break;
    }
}

static void live(struct sim *s)
{
    while (!s->failed && !all_over(s)) {
        const msec due = s->down ? MSEC_NEVER : core_deadline(s->core);
        const msec next = s->n_queue > 0 ? s->queue[0].at : MSEC_NEVER;
        const msec then = due < next ? due : next;
        if (then > s->now && s->n_batch > 0) {
            sim_flush(s); /* nothing waits longer than a millisecond for its commit */
            continue;
        }
        s->now = then > s->now ? then : s->now;
        if (s->now > bound_of(s)) {
            sim_fail(s, "a plan did not end in bounded time after the faults stopped", 0, 0);
        } else if (due < next) {
            sim_turn(s, (struct core_event){.type = CORE_TICK, .lane = LANE_NONE},
                     (struct uuid){{0}});
        } else {
            const struct sim_event ev = sim_next(s);
            let_happen(s, &ev);
        }
    }
    sim_flush(s);
    if (!s->failed) {
        sim_check_end(s);
    }
    if (s->now > s->quiet && s->now - s->quiet > sometimes->longest) {
        sometimes->longest = s->now - s->quiet;
    }
}

struct day sim_day(uint64_t seed, const struct shrink *shrink, bool trace)
{
    struct sim *s = sim_need(1, sizeof *s);
    struct day day;
    s->seed = seed;
    s->shrink = *shrink;
    s->trace = trace;
    set_up(s);
    live(s);
    sometimes->plans += s->n_plans;
    sometimes->seeds++;
    day = (struct day){.fine = !s->failed, .hash = s->hash, .turns = s->turns, .at = s->now};
    memcpy(day.why, s->why, sizeof day.why);
    tear_down(s);
    free(s);
    return day;
}
