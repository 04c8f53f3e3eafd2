/* Spontaneous faults: instances and lanes that come and go, lies, floods, restarts. */
#include "tests/sim/sim.h"

/* An attempt without a timeout lasts as long as its live instance reports it. A lie about such an
 * attempt would keep it open for ever, so there is none, in either direction. */
static void lie(struct sim *s, const struct body *b)
{
    const struct sim_plan *p = &s->plans[sim_range(s, 0, s->n_plans - 1)];
    const struct plan *plan = sim_plan_now(p);
    const uint32_t step = sim_range(s, 0, plan->n_steps); /* one too many */
    const bool timed = step == plan->n_steps || plan->steps[step].rules->policy.timeout_ms > 0;
    const struct flat_event flat = {
        .type = sim_chance(s, 700) || !timed ? CORE_RESULT : CORE_STATE,
        .run = sim_chance(s, 50) ? sim_random(s) : p->handle,
        .step = step,
        .attempt = sim_range(s, 0, 3),
        .phase = (enum step_phase)(sim_chance(s, 600) ? 0 : sim_range(s, 0, PHASE_REPLAN)),
        .slot = b->slot,
        .epoch = sim_chance(s, 200) && b->epoch > 0 ? b->epoch - 1 : b->epoch,
        .instance = sim_chance(s, 500) ? sim_instance(b->id) : (struct uuid){{0}},
        .lane = LANE_NONE,
        .passed = true,
        .running = true,
        .result = {.id = SIM_RESULT_OTHER + ++s->tokens}};
    sim_turn(s, event_of_flat(&flat), b->id);
}

static void flood(struct sim *s, const struct body *b)
{
    for (uint32_t i = 0; i < b->capacity; i++) {
        const struct request r = b->lanes[i];
        for (uint32_t k = 0; r.token != 0 && b->epoch != 0 && k < 12; k++) {
            const struct core_event ev = {CORE_EV_INIT(PROGRESS, progress, .n = k),
                                          .run = s->plans[r.plan].handle,
                                          .step = r.step,
                                          .attempt = r.attempt,
                                          .phase = r.phase,
                                          .slot = b->slot,
                                          .epoch = b->epoch,
                                          .lane = LANE_NONE};
            sim_turn(s, ev, b->id);
        }
    }
}

/* From an earlier incarnation, or a lane that does not exist. */
static void stale(struct sim *s, const struct body *b)
{
    static const enum core_event_type types[] = {
        CORE_SEEN,      CORE_LANE_UP, CORE_LANE_DOWN, CORE_GONE,  CORE_DRAIN,
        CORE_LANE_FREE, CORE_LOST,    CORE_PROBED,    CORE_STATE, CORE_BUSY};
    const struct flat_event flat = {.type =
                                        types[sim_range(s, 0, sizeof types / sizeof types[0] - 1)],
                                    .run = s->plans[0].handle,
                                    .slot = sim_chance(s, 500) ? b->slot : 1000,
                                    .epoch = b->epoch - 1,
                                    .lane = sim_chance(s, 500) ? LANE_NONE : sim_range(s, 0, 70),
                                    .sent = true};
    sim_turn(s, event_of_flat(&flat), b->id);
}

static void lane_down(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    const uint32_t lane = sim_chance(s, 300)  ? REGISTRY_CONTROL_LANE
                          : sim_chance(s, 50) ? b->capacity
                                              : sim_range(s, 0, b->capacity - 1);
    struct core_event ev = {
        .type = CORE_LANE_DOWN, .slot = b->slot, .epoch = b->epoch, .lane = lane};
    sim_turn(s, ev, b->id);
    if (lane < b->capacity && b->lanes[lane].token != 0) {
        const struct request r = b->lanes[lane];
        b->lanes[lane].token = 0;
        sim_turn(s,
                 (struct core_event){CORE_EV_INIT(LOST, lost, .sent = true),
                                     .run = s->plans[r.plan].handle, .step = r.step,
                                     .attempt = r.attempt, .phase = r.phase, .slot = b->slot,
                                     .epoch = r.epoch, .lane = lane},
                 b->id);
    }
    ev.type = CORE_LANE_UP;
    sim_after(s, sim_range(s, 5, 300),
              (struct sim_event){.kind = SIM_LANE_UP, .body = ix, .process = b->id, .core = ev});
}

/* The daemon may die in any of these; then no instance has an epoch. */
static void to_body(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    if (sim_fault(s, FAULT_CRASH)) {
        sim_crash(s, ix, true);
    } else if (sim_fault(s, FAULT_CRASH_UNSEEN)) {
        sim_crash(s, ix, false);
    } else if (sim_fault(s, FAULT_SILENCE)) {
        b->silent_until = s->now + sim_range(s, 300, 3000);
        if (sim_chance(s, 300)) { /* nobody was heard, and not for being silent */
            const msec deaf = sim_range(s, 1, 300);
            sim_turn(s, (struct core_event){CORE_EV_INIT(STALLED, stalled, .delay_ms = deaf)},
                     (struct uuid){{0}});
        }
    } else if (sim_fault(s, FAULT_PARTITION)) {
        b->cut_until = s->now + sim_range(s, 20, 2500);
    } else if (sim_fault(s, FAULT_BUSY)) {
        b->others = sim_range(s, 1, b->capacity);
        b->others_until = s->now + sim_range(s, 20, 2500);
    } else if (sim_fault(s, FAULT_REREGISTER)) {
        sim_register(s, ix);
    } else if (sim_fault(s, FAULT_STOLEN_ID)) {
        sim_turn(
            s,
            (struct core_event){CORE_EV_INIT(REGISTER, registration,
                                             .agent = (b->agent + 1) % s->n_agents, .capacity = 1),
                                .instance = sim_instance(b->id)},
            b->id);
    } else if (sim_fault(s, FAULT_LANE_DOWN)) {
        lane_down(s, ix);
    } else if (!b->draining && sim_fault(s, FAULT_DRAIN)) {
        b->draining = true;
        sim_turn(s, (struct core_event){.type = CORE_DRAIN, .slot = b->slot, .epoch = b->epoch},
                 b->id);
    } else if (sim_fault(s, FAULT_LIE)) {
        lie(s, b);
    } else if (sim_fault(s, FAULT_FLOOD)) {
        flood(s, b);
    } else if (sim_fault(s, FAULT_STALE)) {
        stale(s, b);
    }
}

/* Instances that were due to stop finally do so now. */
static void calm_down(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_bodies; i++) {
        if (s->bodies[i].draining && s->bodies[i].alive) {
            sim_crash(s, i, true);
        }
    }
}

void sim_chaos(struct sim *s)
{
    const uint32_t ix = sim_range(s, 0, s->n_bodies - 1);
    if (s->now >= s->quiet) {
        calm_down(s);
        return;
    }
    sim_after(s, sim_range(s, 5, 60), (struct sim_event){.kind = SIM_CHAOS});
    if (s->down) {
        return;
    }
    if (s->bodies[ix].alive && s->bodies[ix].epoch != 0) {
        to_body(s, ix);
    }
    if (!s->down && sim_fault(s, FAULT_RESTART)) {
        sim_flush(s);
        if (!s->down && !s->failed) {
            sim_die(s, sim_fault(s, FAULT_DOWN) ? sim_range(s, 50, 2000) : 0);
        }
    }
}
