/* The work of processes: they execute requests and answer over the lane or the control socket,
 * once, twice or never. */
#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

void sim_arrive(struct sim *s, const struct sim_event *ev)
{
    struct body *b = &s->bodies[ev->body];
    const struct request *r = &b->lanes[ev->lane];
    if (r->token != ev->token) {
        return; /* the pipe closed before it arrived; the loss is reported */
    }
    if (s->now < b->cut_until) {
        sim_after(s, b->cut_until - s->now, *ev);
        return;
    }
    if (sim_is_full(s, b)) {
        struct sim_event refusal = *ev;
        refusal.kind = SIM_REFUSE;
        sim_after(s, sim_fault(s, FAULT_DELAY) ? sim_range(s, 10, 300) : sim_range(s, 0, 5),
                  refusal);
        return;
    }
    s->execs = sim_room(s->execs, s->n_execs, &s->cap_execs, sizeof *s->execs);
    struct exec *x = &s->execs[s->n_execs];
    *x = (struct exec){.plan = r->plan,
                       .step = r->step,
                       .attempt = r->attempt,
                       .phase = r->phase,
                       .body = ev->body,
                       .process = b->id,
                       .lane = ev->lane,
                       .token = ev->token};
    sim_check_execution(s, x);
    sim_draw_answer(s, x);
    struct core_ev_result *answer = CORE_EV(&x->answer, result);
    if (answer->outcome == STEP_OUTCOME_COMPLETED && x->phase <= PHASE_SEARCH) {
        answer->result = (struct blob_ref){.id = s->n_execs + 1u, .len = 1};
    }
    struct sim_event event = {.body = ev->body, .exec = s->n_execs, .process = b->id};
    event.kind = SIM_REPLY;
    sim_after(s, sim_draw_duration(s, x), event);
    if (sim_fault(s, FAULT_SLOW)) {
        event.kind = SIM_PROGRESS;
        sim_after(s, 10, event);
    }
    s->n_execs++;
}

static struct core_event about(const struct sim *s, const struct exec *x)
{
    struct core_event ev = x->answer;
    ev.run = s->plans[x->plan].handle;
    ev.step = x->step;
    ev.attempt = x->attempt;
    ev.phase = x->phase;
    ev.slot = s->bodies[x->body].slot;
    ev.lane = LANE_NONE;
    return ev;
}

void sim_tell(struct sim *s, const struct exec *x, msec delay)
{
    const struct body *b = &s->bodies[x->body];
    struct core_event ev = about(s, x);
    ev.epoch = b->epoch;
    ev.instance = sim_instance(b->id);
    if (b->epoch != 0) {
        sim_to_core(s, delay, ev, b->id);
    }
}

/* The shell turns the replanner's answer into a revision of the current plan. */
static void answer(struct sim *s, const struct exec *x, struct core_event ev, struct uuid sender)
{
    struct sim_plan *p = &s->plans[x->plan];
    const bool plan = x->phase == PHASE_REPLAN && ev.type == CORE_RESULT &&
                      CORE_EV(&ev, result)->outcome == STEP_OUTCOME_COMPLETED;
    if (plan) {
        sim_flush(s);
    }
    if (plan && p->submitted && !p->over && !s->down && ev.step < p->shadow->n_steps) {
        if (!sim_offer(s, p, &ev, x->bad_plan)) {
            CORE_EV(&ev, result)->outcome = STEP_OUTCOME_FAILED;
            CORE_EV(&ev, result)->invalid = true;
        }
    }
    sim_turn(s, ev, sender);
    if (plan) {
        sim_withdraw(p);
    }
}

void sim_reply(struct sim *s, const struct sim_event *event)
{
    struct exec *x = &s->execs[event->exec];
    struct body *b = &s->bodies[x->body];
    if (x->done) {
        return;
    }
    if (s->now < b->cut_until) {
        sim_after(s, b->cut_until - s->now, *event);
        return;
    }
    x->done = true;
    struct request *r = &b->lanes[x->lane];
    if (r->token != x->token) {
        sim_tell(s, x, sim_range(s, 0, 30)); /* its lane is closed: over the control socket */
        return;
    }
    struct core_event ev = about(s, x);
    ev.epoch = r->epoch;
    ev.lane = x->lane;
    r->token = 0;
    if (sim_fault(s, FAULT_REPLY_LOST)) {
        ev.type = CORE_LOST;
        *CORE_EV(&ev, lost) = (struct core_ev_lost){.sent = true};
    } else if (s->plans[x->plan].over && x->token % 2 == 0) {
        ev.type = CORE_LANE_FREE; /* the shell no longer knows the key */
    }
    if (sim_fault(s, FAULT_DUPLICATE)) {
        sim_tell(s, x, sim_range(s, 0, 200));
    }
    answer(s, x, ev, b->id);
}

void sim_progress(struct sim *s, const struct sim_event *event)
{
    const struct exec *x = &s->execs[event->exec];
    const struct body *b = &s->bodies[x->body];
    struct core_event ev = about(s, x);
    if (x->done) {
        return;
    }
    ev.type = CORE_PROGRESS;
    *CORE_EV(&ev, progress) = (struct core_ev_progress){.percent = 0.5, .n = 1};
    ev.epoch = b->epoch;
    if (b->epoch != 0 && s->now >= b->cut_until) {
        sim_turn(s, ev, b->id);
    }
    sim_after(s, 40, *event);
}

void sim_query(struct sim *s, const struct sim_event *ev)
{
    const struct body *b = &s->bodies[ev->body];
    if (b->epoch != ev->core.epoch || s->now < b->cut_until || sim_fault(s, FAULT_QUERY_LOST)) {
        return;
    }
    for (uint32_t i = 0; i < s->n_execs; i++) {
        const struct exec *x = &s->execs[i];
        if (uuid_eq(x->process, b->id) && x->plan == ev->plan && x->step == ev->core.step &&
            x->attempt == ev->core.attempt && x->phase == ev->core.phase) {
            if (x->done) {
                sim_tell(s, x, sim_range(s, 0, 10));
                return;
            }
            struct core_event state = ev->core;
            CORE_EV(&state, state)->running = true;
            sim_to_core(s, sim_range(s, 0, 10), state, b->id);
            return;
        }
    }
    struct core_event never = ev->core;
    CORE_EV(&never, state)->never = true;
    sim_to_core(s, sim_range(s, 0, 10), never, b->id);
}
