/* Steps that wait: the engine's side of signals, who sends them, and the rules. */
#include "tests/sim/sim.h"

const struct str sim_signal_names[2] = {{"go", 2}, {"stop", 4}};

static uint8_t name_of(struct str name)
{
    return str_eq(name, sim_signal_names[0]) ? 1 : 2;
}

void sim_signals_record(struct sim_plan *p, const struct record *rec)
{
    if (rec->type == REC_SIGNAL_RECEIVED) {
        p->signals = sim_room(p->signals, p->n_signals, &p->cap_signals, sizeof *p->signals);
        p->signals[p->n_signals++] =
            (uint8_t)((REC(rec, signal)->result.id - SIM_RESULT_OTHER) % 10);
    } else if (rec->type == REC_STEP_COMPLETED) {
        const uint32_t serial = REC(rec, step_completed)->signal;
        if (serial > 0 && serial <= p->n_signals) {
            p->signals[serial - 1] = 0;
        }
    }
}

static uint32_t oldest(const struct sim_plan *p, uint8_t name)
{
    for (uint32_t i = 0; i < p->n_signals; i++) {
        if (p->signals[i] == name) {
            return i + 1;
        }
    }
    return 0;
}

bool sim_signals_bring(struct sim *s, struct core_event *ev)
{
    const struct sim_plan *p = sim_plan_of(s, ev->run);
    const struct plan_wait *wait = p == NULL || ev->step >= sim_plan_now(p)->n_steps
                                       ? NULL
                                       : sim_plan_now(p)->steps[ev->step].wait;
    struct core_ev_signal *signal = CORE_EV(ev, signal);
    if (wait == NULL || wait->what != WAIT_FOR_SIGNAL) {
        return false;
    }
    signal->serial = oldest(p, name_of(wait->signal));
    signal->result = (struct blob_ref){
        .id = SIM_RESULT_OTHER + 10 * (uint64_t)signal->serial + name_of(wait->signal), .len = 2};
    ev->text = wait->signal;
    return signal->serial != 0;
}

void sim_signals_send(struct sim *s, const struct sim_plan *p)
{
    const uint32_t n = sim_chance(s, 5) ? LIMIT_SIGNALS_KEPT + 2 : 1;
    for (uint32_t i = 0; i < n && !p->over && !s->down && !s->failed; i++) {
        const uint32_t name = sim_range(s, 0, 1);
        const uint64_t serial = p->n_signals + 1;
        sim_turn(
            s,
            (struct core_event){
                CORE_EV_INIT(SIGNAL, signal,
                             .result = {.id = SIM_RESULT_OTHER + 10 * serial + name + 1, .len = 2}),
                .run = p->handle, .step = STEP_NONE, .lane = LANE_NONE,
                .text = sim_signal_names[name]},
            (struct uuid){{0}});
    }
}

/* Who sleeps wakes by its time, its date, or a signal with its name, and at no other time. */
void sim_check_wait(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct plan_wait *wait = sim_plan_now(p)->steps[rec->step].wait;
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct core_event *ev = &s->turn->ev;
    const struct rec_step_completed *end = REC(rec, step_completed);
    SIM_RULE(wait != NULL, "it slept, and waits for nothing");
    if (wait == NULL) {
        return;
    }
    SIM_RULE((wait->what == WAIT_FOR_SIGNAL) == (end->signal != 0), "woken by something else");
    SIM_RULE(wait->what != WAIT_FOR_TIME || rec->now >= was->deadline, "woken before its time");
    SIM_RULE(wait->what != WAIT_FOR_DATE || rec->wall >= wait->until, "woken before its date");
    SIM_RULE(end->signal == 0 ||
                 (ev->type == CORE_SIGNAL && str_eq(ev->text, wait->signal) && p->shadow->kept > 0),
             "woken by another signal");
    SIM_RULE(end->signal == 0 || end->result.id == SIM_RESULT_OTHER + 10 * (uint64_t)end->signal +
                                                       name_of(wait->signal),
             "the data of another signal");
}
