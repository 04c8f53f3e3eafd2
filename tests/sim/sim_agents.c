/* The fake agents: processes that register, beat, work, and fail in every way there is. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

static void to_core(struct sim *s, msec delay, struct core_event ev, struct uuid sender)
{
    sim_after(s, delay,
              (struct sim_event){.kind = SIM_CORE, .life = s->life, .core = ev, .process = sender});
}

/* ---- coming and going ---- */

void sim_born(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    const uint64_t n = ++s->tokens;
    b->id = (struct uuid){{0}};
    memcpy(b->id.b, &n, sizeof n);
    b->id.b[15] = 1;
    b->alive = true;
    b->epoch = 0;
    b->draining = false;
    b->silent_until = 0;
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
            to_core(s, sim_range(s, 0, 20),
                    (struct core_event){.type = CORE_LOST,
                                        .run = p->handle,
                                        .step = r->step,
                                        .attempt = r->attempt,
                                        .slot = b->slot,
                                        .epoch = r->epoch,
                                        .lane = i,
                                        .sent = true},
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
        to_core(s, sim_range(s, 0, 20), gone, b->id);
    }
    sim_drop_lanes(s, b);
    b->epoch = 0;
    sim_after(s, sim_range(s, 50, 1500), (struct sim_event){.kind = SIM_BIRTH, .body = ix});
}

static void register_body(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    sim_drop_lanes(s, b); /* it opens new ones */
    b->draining = false;
    sim_turn(s,
             (struct core_event){.type = CORE_REGISTER,
                                 .agent = b->agent,
                                 .instance = b->id,
                                 .capacity = b->capacity,
                                 .pid = ix + 1},
             b->id);
}

static void beat(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    sim_after(s, 300, (struct sim_event){.kind = SIM_BEAT, .body = ix, .process = b->id});
    if (s->now < b->silent_until) {
        return;
    }
    if (b->epoch == 0 || !registry_is_current(s->core->registry, b->slot, b->epoch)) {
        register_body(s, ix); /* the answer said that it is not known any more */
        return;
    }
    sim_turn(s,
             (struct core_event){
                 .type = CORE_SEEN, .slot = b->slot, .epoch = b->epoch, .lane = LANE_NONE},
             b->id);
}

/* ---- work ---- */

static struct core_event draw_answer(struct sim *s, uint32_t plan, uint32_t step)
{
    static const enum err_class classes[] = {CLASS_TIMEOUT, CLASS_UNKNOWN, CLASS_VALIDATION_ERROR,
                                             CLASS_RATE_LIMITED, CLASS_PERMISSION_DENIED};
    struct core_event ev = {.type = CORE_RESULT, .step = step, .lane = LANE_NONE};
    (void)plan;
    if (sim_fault(s, FAULT_FAILURE)) {
        ev.outcome = STEP_OUTCOME_FAILED;
        ev.error_class = classes[sim_range(s, 0, 4)];
        ev.retryable_given = sim_chance(s, 300);
        ev.retryable = sim_chance(s, 500);
        ev.retry_after_ms = sim_chance(s, 100) ? sim_range(s, 1, 500) : 0;
        ev.text = STR_LIT("it did not work");
    } else if (sim_fault(s, FAULT_NEEDS_PERSON)) {
        ev.outcome = sim_chance(s, 500) ? STEP_OUTCOME_NEEDS_APPROVAL : STEP_OUTCOME_NEEDS_INPUT;
        ev.text = STR_LIT("may I?");
    } else {
        ev.result = (struct blob_ref){.id = ++s->tokens, .len = 1};
        ev.usage = (struct usage){.input_tokens = sim_range(s, 0, 9)};
    }
    return ev;
}

static msec draw_duration(struct sim *s, uint32_t plan, uint32_t step)
{
    const msec timeout = s->plans[plan].plan->steps[step].policy.timeout_ms;
    if (sim_fault(s, FAULT_HANG)) {
        return s->quiet - s->now + sim_range(s, 1, 3000);
    }
    if (timeout > 0 && sim_fault(s, FAULT_LATE)) {
        return timeout + sim_range(s, 0, 400);
    }
    return sim_range(s, 0, 40);
}

static void arrive(struct sim *s, const struct sim_event *ev)
{
    struct body *b = &s->bodies[ev->body];
    const struct request *r = &b->lanes[ev->lane];
    if (!b->alive || r->token != ev->token) {
        return; /* the pipe went before it came; the loss is reported */
    }
    sim_check_execution(s, r->plan, r->step, r->attempt);
    if (s->n_execs == s->cap_execs) {
        s->cap_execs = s->cap_execs == 0 ? 64 : 2 * s->cap_execs;
        s->execs = realloc(s->execs, s->cap_execs * sizeof *s->execs);
        ASSERT(s->execs != NULL);
    }
    s->execs[s->n_execs] = (struct exec){.plan = r->plan,
                                         .step = r->step,
                                         .attempt = r->attempt,
                                         .body = ev->body,
                                         .process = b->id,
                                         .lane = ev->lane,
                                         .token = ev->token,
                                         .answer = draw_answer(s, r->plan, r->step)};
    sim_after(s, draw_duration(s, r->plan, r->step),
              (struct sim_event){
                  .kind = SIM_REPLY, .body = ev->body, .exec = s->n_execs, .process = b->id});
    s->n_execs++;
}

/* The instance's word about an execution, over no lane. */
static void tell(struct sim *s, const struct exec *x, msec delay)
{
    const struct body *b = &s->bodies[x->body];
    struct core_event ev = x->answer;
    ev.run = s->plans[x->plan].handle;
    ev.attempt = x->attempt;
    ev.slot = b->slot;
    ev.epoch = b->epoch;
    ev.instance = b->id;
    ev.lane = LANE_NONE;
    if (b->epoch != 0) {
        to_core(s, delay, ev, b->id);
    }
}

static void reply(struct sim *s, const struct sim_event *event)
{
    struct exec *x = &s->execs[event->exec];
    struct body *b = &s->bodies[x->body];
    if (x->done || !b->alive) {
        return;
    }
    x->done = true;
    struct request *r = &b->lanes[x->lane];
    if (r->token != x->token) {
        tell(s, x, sim_range(s, 0, 30)); /* its lane is gone: over the control socket */
        return;
    }
    struct core_event ev = x->answer;
    ev.run = s->plans[x->plan].handle;
    ev.attempt = x->attempt;
    ev.slot = b->slot;
    ev.epoch = r->epoch;
    ev.lane = x->lane;
    r->token = 0;
    if (sim_fault(s, FAULT_REPLY_LOST)) {
        ev.type = CORE_LOST;
        ev.sent = true;
    }
    if (sim_fault(s, FAULT_DUPLICATE)) {
        tell(s, x, sim_range(s, 0, 200));
    }
    sim_turn(s, ev, b->id);
}

static void query(struct sim *s, const struct sim_event *ev)
{
    const struct body *b = &s->bodies[ev->body];
    if (!b->alive || b->epoch != ev->core.epoch || sim_fault(s, FAULT_QUERY_LOST)) {
        return;
    }
    for (uint32_t i = 0; i < s->n_execs; i++) {
        const struct exec *x = &s->execs[i];
        if (uuid_eq(x->process, b->id) && x->plan == ev->plan && x->step == ev->core.step &&
            x->attempt == ev->core.attempt) {
            if (x->done) {
                tell(s, x, sim_range(s, 0, 10));
                return;
            }
            struct core_event state = ev->core;
            state.running = true;
            to_core(s, sim_range(s, 0, 10), state, b->id);
            return;
        }
    }
    to_core(s, sim_range(s, 0, 10), ev->core, b->id);
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
        register_body(s, ev->body);
    } else if (ev->kind == SIM_BEAT) {
        beat(s, ev->body);
    } else if (ev->kind == SIM_LANE_UP) {
        if (b->epoch == ev->core.epoch && b->epoch != 0) {
            sim_turn(s, ev->core, b->id);
        }
    } else if (ev->kind == SIM_ARRIVE) {
        arrive(s, ev);
    } else if (ev->kind == SIM_REPLY) {
        reply(s, ev);
    } else if (ev->kind == SIM_QUERY) {
        query(s, ev);
    }
}

/* ---- what goes wrong by itself ---- */

/* An attempt without a timeout lasts as long as its live instance says so: nobody lies about those,
 * or it lasts for ever. */
static void lie(struct sim *s, const struct body *b)
{
    const struct sim_plan *p = &s->plans[sim_range(s, 0, s->n_plans - 1)];
    const uint32_t step = sim_range(s, 0, p->plan->n_steps); /* one too many */
    const bool timed = step == p->plan->n_steps || p->plan->steps[step].policy.timeout_ms > 0;
    const struct core_event ev = {.type = sim_chance(s, 700) || !timed ? CORE_RESULT : CORE_STATE,
                                  .run = sim_chance(s, 50) ? sim_random(s) : p->handle,
                                  .step = step,
                                  .attempt = sim_range(s, 0, 3),
                                  .slot = b->slot,
                                  .epoch =
                                      sim_chance(s, 200) && b->epoch > 0 ? b->epoch - 1 : b->epoch,
                                  .instance = sim_chance(s, 500) ? b->id : (struct uuid){{0}},
                                  .lane = LANE_NONE,
                                  .running = true,
                                  .result = {.id = ++s->tokens}};
    sim_turn(s, ev, b->id);
}

static void flood(struct sim *s, const struct body *b)
{
    for (uint32_t i = 0; i < b->capacity; i++) {
        const struct request *r = &b->lanes[i];
        for (uint32_t k = 0; r->token != 0 && b->epoch != 0 && k < 12; k++) {
            const struct core_event ev = {.type = CORE_PROGRESS,
                                          .run = s->plans[r->plan].handle,
                                          .step = r->step,
                                          .attempt = r->attempt,
                                          .slot = b->slot,
                                          .epoch = b->epoch,
                                          .lane = LANE_NONE,
                                          .n = k};
            sim_turn(s, ev, b->id);
        }
    }
}

static void lane_down(struct sim *s, uint32_t ix)
{
    struct body *b = &s->bodies[ix];
    const uint32_t lane =
        sim_chance(s, 300) ? REGISTRY_CONTROL_LANE : sim_range(s, 0, b->capacity - 1);
    struct core_event ev = {
        .type = CORE_LANE_DOWN, .slot = b->slot, .epoch = b->epoch, .lane = lane};
    sim_turn(s, ev, b->id);
    if (lane != REGISTRY_CONTROL_LANE && b->lanes[lane].token != 0) {
        const struct request r = b->lanes[lane];
        b->lanes[lane].token = 0;
        sim_turn(s,
                 (struct core_event){.type = CORE_LOST,
                                     .run = s->plans[r.plan].handle,
                                     .step = r.step,
                                     .attempt = r.attempt,
                                     .slot = b->slot,
                                     .epoch = r.epoch,
                                     .lane = lane,
                                     .sent = true},
                 b->id);
    }
    ev.type = CORE_LANE_UP;
    sim_after(s, sim_range(s, 5, 300),
              (struct sim_event){.kind = SIM_LANE_UP, .body = ix, .process = b->id, .core = ev});
}

void sim_chaos(struct sim *s)
{
    const uint32_t ix = sim_range(s, 0, s->n_bodies - 1);
    struct body *b = &s->bodies[ix];
    if (b->alive && b->epoch != 0) {
        if (sim_fault(s, FAULT_CRASH)) {
            sim_crash(s, ix, true);
        } else if (sim_fault(s, FAULT_CRASH_UNSEEN)) {
            sim_crash(s, ix, false);
        } else if (sim_fault(s, FAULT_SILENCE)) {
            b->silent_until = s->now + sim_range(s, 300, 3000);
        } else if (sim_fault(s, FAULT_REREGISTER)) {
            register_body(s, ix);
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
        }
    }
    struct sim_plan *p = &s->plans[sim_range(s, 0, s->n_plans - 1)];
    if (p->submitted && sim_fault(s, FAULT_CANCEL)) {
        sim_turn(s,
                 (struct core_event){.type = CORE_CANCEL,
                                     .run = p->handle,
                                     .lane = LANE_NONE,
                                     .text = STR_LIT("never mind")},
                 (struct uuid){{0}});
    }
    if (sim_fault(s, FAULT_RESTART)) {
        sim_restart(s);
    }
}
