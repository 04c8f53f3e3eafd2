/* The fake agents: processes that start, send heartbeats, and end. Their work: sim_work.c. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

void sim_to_core(struct sim *s, msec delay, struct core_event ev, struct uuid sender)
{
    delay += sim_fault(s, FAULT_REORDER) ? sim_range(s, 1, 150) : 0;
    sim_after(s, delay,
              (struct sim_event){.kind = SIM_CORE, .life = s->life, .core = ev, .process = sender});
}

void sim_born(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    const uint64_t n = ++s->tokens;
    if (!uuid_is_nil(b->id) && b->id.b[SIM_NONCE_BYTE] < 200 && sim_fault(s, FAULT_SAME_NAME)) {
        b->id.b[SIM_NONCE_BYTE]++; /* against the rules, but it happens */
    } else {
        b->id = (struct uuid){{0}};
        memcpy(b->id.b, &n, sizeof n);
        b->id.b[15] = 1;
    }
    b->alive = true;
    b->epoch = 0;
    b->draining = false;
    b->silent_until = 0;
    b->cut_until = 0;
    b->others_until = 0;
    if (b->spawned && n % 2 == 0) {
        sim_turn(s,
                 (struct core_event){CORE_EV_INIT(RESTARTED, process, .agent = b->agent),
                                     .instance = sim_instance(b->id), .lane = LANE_NONE,
                                     .text = STR_LIT("it ended")},
                 (struct uuid){{0}});
    }
    sim_after(s, sim_range(s, 0, 30),
              (struct sim_event){.kind = SIM_REGISTER, .body = ix, .process = b->id});
    sim_after(s, sim_range(s, 0, 300),
              (struct sim_event){.kind = SIM_BEAT, .body = ix, .process = b->id});
}

void sim_drop_lanes(struct sim *s, struct body *b)
{
    for (uint32_t i = 0; i < b->capacity; i++) {
        struct request *r = &b->lanes[i];
        const struct sim_plan *p = &s->plans[r->plan];
        if (r->token != 0) {
            sim_to_core(s, sim_range(s, 0, 20),
                        (struct core_event){CORE_EV_INIT(LOST, lost, .sent = true),
                                            .run = p->handle, .step = r->step,
                                            .attempt = r->attempt, .phase = r->phase,
                                            .slot = b->slot, .epoch = r->epoch, .lane = i},
                        b->id);
        }
        r->token = 0;
    }
}

void sim_crash(struct sim *s, uint32_t ix, bool told)
{
    struct body *b = &s->bodies[ix];
    const struct core_event gone = {.type = CORE_GONE,
                                    .slot = b->slot,
                                    .epoch = b->epoch,
                                    .lane = LANE_NONE,
                                    .text = STR_LIT("killed by signal 9")};
    b->alive = false;
    if (told && b->epoch != 0) {
        sim_to_core(s, sim_range(s, 0, 20), gone, b->id);
    }
    sim_drop_lanes(s, b);
    b->epoch = 0;
    if (b->spawned && s->tokens % 4 == 1) { /* until a person starts it */
        sim_to_core(s, sim_range(s, 20, 40),
                    (struct core_event){CORE_EV_INIT(GAVE_UP, process, .agent = b->agent),
                                        .lane = LANE_NONE,
                                        .text = STR_LIT("it gave up: exit code 2")},
                    b->id);
    }
    sim_after(s, sim_range(s, 50, 1500), (struct sim_event){.kind = SIM_BIRTH, .body = ix});
}

void sim_register(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    sim_drop_lanes(s, b); /* it opens new ones */
    b->draining = false;
    sim_turn(s,
             (struct core_event){CORE_EV_INIT(REGISTER, registration, .agent = b->agent,
                                              .capacity = b->capacity, .spawned = b->spawned,
                                              .pid = ix + 1, .process = b->id),
                                 .instance = sim_instance(b->id)},
             b->id);
}

static bool works_on(const struct sim *s, const struct body *b, const struct core_adopted *what)
{
    for (uint32_t i = 0; i < s->n_execs; i++) {
        const struct exec *x = &s->execs[i];
        if (!x->done && uuid_eq(x->process, b->id) && x->step == what->step &&
            x->attempt == what->attempt && s->plans[x->plan].handle == what->run) {
            return true;
        }
    }
    return false;
}

/* The heartbeat lists what the process works on. */
static void list(struct sim *s, const struct body *b)
{
    struct core_adopted adopted[SIM_CAPACITY_MAX];
    const uint32_t n = core_adopted(s->core, b->slot, adopted, SIM_CAPACITY_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (!works_on(s, b, &adopted[i])) {
            sim_turn(s,
                     (struct core_event){.type = CORE_NOT_LISTED,
                                         .run = adopted[i].run,
                                         .step = adopted[i].step,
                                         .phase = adopted[i].phase,
                                         .attempt = adopted[i].attempt,
                                         .slot = b->slot,
                                         .epoch = b->epoch,
                                         .lane = LANE_NONE},
                     b->id);
        }
    }
}

static void beat(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    sim_after(s, 300, (struct sim_event){.kind = SIM_BEAT, .body = ix, .process = b->id});
    if (s->now < b->silent_until || s->now < b->cut_until || s->down) {
        return;
    }
    if (b->epoch == 0 || !registry_is_current(s->core->registry, b->slot, b->epoch)) {
        sim_register(s, ix); /* the answer: this instance is unknown */
        return;
    }
    sim_turn(s,
             (struct core_event){
                 .type = CORE_SEEN, .slot = b->slot, .epoch = b->epoch, .lane = LANE_NONE},
             b->id);
    if (b->epoch != 0 && !s->down && registry_is_current(s->core->registry, b->slot, b->epoch)) {
        list(s, b);
    }
}

static void probed(struct sim *s, const struct sim_event *ev)
{
    const struct body *b = &s->bodies[ev->body];
    if (b->epoch == ev->core.epoch && s->now >= b->cut_until && !sim_fault(s, FAULT_PROBE_LOST)) {
        struct core_event answer = ev->core;
        CORE_EV(&answer, probed)->ok = !sim_fault(s, FAULT_CHECK_ERROR);
        sim_to_core(s, 1, answer, b->id);
    }
}

void sim_step_agents(struct sim *s, const struct sim_event *ev)
{
    struct body *b = &s->bodies[ev->body];
    const bool same = b->alive && uuid_eq(b->id, ev->process);
    if (ev->kind == SIM_BIRTH) {
        sim_born(s, ev->body);
    } else if (!same) {
        return; /* of a process that is dead */
    } else if (ev->kind == SIM_REGISTER) {
        sim_register(s, ev->body);
    } else if (ev->kind == SIM_BEAT) {
        beat(s, ev->body);
    } else if (ev->kind == SIM_LANE_UP) {
        if (b->epoch == ev->core.epoch && b->epoch != 0) {
            sim_turn(s, ev->core, b->id);
        }
    } else if (ev->kind == SIM_ARRIVE) {
        sim_arrive(s, ev);
    } else if (ev->kind == SIM_REFUSE) {
        sim_refuse(s, ev);
    } else if (ev->kind == SIM_REPLY) {
        sim_reply(s, ev);
    } else if (ev->kind == SIM_PROGRESS) {
        sim_progress(s, ev);
    } else if (ev->kind == SIM_QUERY) {
        sim_query(s, ev);
    } else if (ev->kind == SIM_PROBE) {
        probed(s, ev);
    }
}
