/* Instances that serve several supervisors: the places that the others have, the answer BUSY, and
 * the rules about it. The others are other shards, whose work is not simulated. */
#include "tests/sim/sim.h"

bool sim_is_full(const struct sim *s, const struct body *b)
{
    uint32_t taken = s->now < b->others_until ? b->others : 0;
    if (b->draining) {
        return true;
    }
    if (s->rate[FAULT_BUSY] == 0) {
        return false;
    }
    for (uint32_t i = 0; i < s->n_execs; i++) {
        taken += !s->execs[i].done && uuid_eq(s->execs[i].process, b->id) ? 1 : 0;
    }
    return taken >= b->capacity;
}

void sim_refuse(struct sim *s, const struct sim_event *ev)
{
    struct body *b = &s->bodies[ev->body];
    const struct request r = b->lanes[ev->lane];
    if (r.token != ev->token) {
        return; /* the pipe closed before; the loss is reported */
    }
    if (s->now < b->cut_until) {
        sim_after(s, b->cut_until - s->now, *ev);
        return;
    }
    struct core_event answer = {.type = CORE_BUSY,
                                .run = s->plans[r.plan].handle,
                                .step = r.step,
                                .attempt = r.attempt,
                                .phase = r.phase,
                                .slot = b->slot,
                                .epoch = r.epoch,
                                .lane = ev->lane};
    if (sim_fault(s, FAULT_REPLY_LOST)) {
        answer.type = CORE_LOST;
        *CORE_EV(&answer, lost) = (struct core_ev_lost){.sent = true};
    }
    b->lanes[ev->lane].token = 0;
    sim_turn(s, answer, b->id);
}

/* ---- the rules ---- */

static struct incarnation *incarnation_of(struct sim *s, uint32_t slot, uint64_t epoch)
{
    for (uint32_t i = s->n_incarnations; i > 0; i--) {
        struct incarnation *x = &s->incarnations[i - 1];
        if (x->slot == slot && x->epoch == epoch) {
            return x;
        }
    }
    return NULL;
}

/* One that says BUSY is left alone, half as long again each time, until a result comes from it. */
void sim_full_event(struct sim *s, const struct core_event *ev)
{
    struct incarnation *x = incarnation_of(s, ev->slot, ev->epoch);
    if (x == NULL || ev->lane == LANE_NONE) {
        return;
    }
    if (ev->type == CORE_RESULT) {
        x->full_until = 0;
        x->full_ms = 0;
    } else if (ev->type == CORE_BUSY && ev->now >= x->full_until) {
        const msec longer = x->full_ms + x->full_ms / 2;
        x->full_ms = x->full_ms == 0                 ? REGISTRY_FULL_MS
                     : longer < REGISTRY_FULL_MAX_MS ? longer
                                                     : REGISTRY_FULL_MAX_MS;
        x->full_until = ev->now + x->full_ms;
    }
}

/* It has not begun: BUSY uses up nothing, and decides nothing. */
void sim_full_record(struct sim *s, const struct record *rec)
{
    const struct core_event *ev = &s->turn->ev;
    const struct sim_plan *p = sim_plan_of(s, rec->run);
    if (p == NULL || ev->run != rec->run || ev->step != rec->step || p->shadow->cancelling) {
        return;
    }
    /* A revision may have changed who hands it over. */
    SIM_RULE(ev->type != CORE_BUSY || rec->type == REC_STEP_ASSIGNED || rec->type == REC_HANDOFF,
             "an instance without a place decided about a step");
    SIM_RULE(ev->type != CORE_LOST || CORE_EV(ev, lost)->sent || rec->type != REC_STEP_RETRY ||
                 p->told[rec->step].in_a_row == CORE_UNSENT_MAX,
             "given up before it was sent often enough");
}

/* Between turns: the registry leaves nobody alone for longer than that. */
void sim_full_turn(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_bodies && !s->failed; i++) {
        const struct body *b = &s->bodies[i];
        const struct incarnation *x = incarnation_of(s, b->slot, b->epoch);
        struct instance_view view;
        if (b->epoch != 0 && x != NULL &&
            registry_is_current(s->core->registry, b->slot, b->epoch) &&
            registry_instance_view(s->core->registry, b->slot, &view) &&
            view.full_until > x->full_until) {
            sim_fail(s, "an instance is left alone for longer than its wait", 0, STEP_NONE);
        }
    }
}

static uint32_t on_the_way(const struct sim *s, const struct body *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_queue; i++) {
        const struct sim_event *ev = &s->queue[i];
        n += ev->kind == SIM_CORE && ev->life == s->life && ev->core.type == CORE_LOST &&
                     ev->core.slot == b->slot && ev->core.epoch == b->epoch
                 ? 1
                 : 0;
    }
    return n;
}

/* At the end: a lane is taken by what its process has, or by a loss that is on the way. */
void sim_full_end(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_bodies && !s->failed && !s->down; i++) {
        const struct body *b = &s->bodies[i];
        struct instance_view view;
        uint32_t n = 0;
        for (uint32_t k = 0; k < b->capacity; k++) {
            n += b->lanes[k].token != 0 ? 1 : 0;
        }
        if (b->epoch != 0 && registry_is_current(s->core->registry, b->slot, b->epoch) &&
            registry_instance_view(s->core->registry, b->slot, &view) &&
            view.outstanding > n + on_the_way(s, b)) {
            sim_fail(s, "a lane stays taken although nothing is out on it", 0, STEP_NONE);
        }
    }
}
