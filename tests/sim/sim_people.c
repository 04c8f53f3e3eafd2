/* People: they decide or do not, pause, change and cancel plans, and make mistakes. After the
 * faults have stopped, a person decides every review and resumes every plan. */
#include "tests/sim/sim.h"

static void ask(struct sim *s, const struct sim_plan *p, struct core_event ev)
{
    ev.run = ev.run != 0 ? ev.run : p->handle;
    ev.lane = LANE_NONE;
    sim_turn(s, ev, (struct uuid){{0}});
}

/* ---- decisions ---- */

static struct core_event draw_decision(struct sim *s)
{
    struct core_event ev = {.type = CORE_DECIDE, .text = STR_LIT("because")};
    const uint32_t word = sim_range(s, 0, 9);
    CORE_EV(&ev, decide)->decision = word < 6   ? DECISION_APPROVE
                                     : word < 8 ? DECISION_REJECT
                                                : DECISION_SKIP;
    ev.text.len = sim_chance(s, 300) ? 0 : ev.text.len;
    if (sim_chance(s, 300)) { /* other parameters, or the requested data */
        CORE_EV(&ev, decide)->result =
            (struct blob_ref){.id = SIM_RESULT_OTHER + ++s->tokens, .len = 2};
    }
    return ev;
}

static void decide(struct sim *s, struct sim_plan *p)
{
    const bool lazy = sim_fault(s, FAULT_UNDECIDED);
    const bool all = s->now >= s->quiet;
    if (!all && (lazy || !sim_chance(s, 500))) {
        return;
    }
    if ((p->shadow->paused & (1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING)) != 0) {
        struct core_event ev = draw_decision(s);
        ev.step = STEP_NONE;
        ev.attempt = p->shadow->plan_review - (sim_fault(s, FAULT_STALE) ? 1 : 0);
        if (sim_plan_now(p)->planning.pending && sim_chance(s, 400) &&
            !sim_offer_plan(s, p, &ev, sim_fault(s, FAULT_BAD_REVISION))) {
            return;
        }
        ask(s, p, ev);
        sim_withdraw(p);
    }
    for (uint32_t i = 0; p->shadow->waiting > 0 && i < p->shadow->n_steps; i++) {
        const struct run_step *step = &p->shadow->steps[i];
        if (step->status != STEP_WAITING || (!all && sim_chance(s, 300))) {
            continue;
        }
        struct core_event ev = draw_decision(s);
        ev.step = i;
        ev.attempt = step->review_serial - (sim_fault(s, FAULT_STALE) ? 1 : 0);
        /* Two people decide: the second is too late. */
        for (uint32_t n = sim_chance(s, 100) ? 2 : 1; n > 0; n--) {
            ask(s, p, ev);
        }
        if (p->over || s->down || s->failed) {
            return;
        }
    }
}

/* ---- changes ---- */

/* The revision that a person names: the current one, an old one, or none. */
static uint32_t expected(struct sim *s, const struct sim_plan *p)
{
    const uint32_t now = p->shadow->revision;
    const uint32_t how = sim_range(s, 0, 9);
    return how < 4 ? now : how < 8 ? 0 : how == 8 ? now + 1 : now - 1;
}

static void modify(struct sim *s, const struct sim_plan *p)
{
    static const enum modify_kind kinds[] = {MODIFY_SKIP_TO_STEP, MODIFY_SKIP_STEPS,
                                             MODIFY_CONVERSATION_ONLY, MODIFY_CANCEL_STEP};
    const uint32_t n = p->shadow->n_steps;
    uint32_t steps[3];
    for (int i = 0; i < 3; i++) {
        steps[i] = sim_range(s, 0, sim_chance(s, 30) ? n : n - 1);
    }
    struct core_event ev = {.type = CORE_MODIFY, .text = STR_LIT("a reason")};
    struct core_ev_modify *change = CORE_EV(&ev, modify);
    ev.step = sim_range(s, 0, sim_chance(s, 50) ? n : n - 1) / 2;
    change->kind = kinds[sim_range(s, 0, 3)];
    change->expect = expected(s, p);
    change->steps = steps;
    change->n_steps = sim_chance(s, 30) ? 0 : sim_range(s, 1, 3);
    ask(s, p, ev);
    sim_flush(s); /* the steps are on this stack */
}

static void revise(struct sim *s, struct sim_plan *p)
{
    struct core_event ev = {
        CORE_EV_INIT(REVISE, revise, .kind = sim_chance(s, 500) ? MODIFY_INSERT : MODIFY_REPLACE),
        .text = STR_LIT("a reason")};
    const bool bad = sim_fault(s, FAULT_BAD_REVISION);
    if (sim_offer(s, p, &ev, bad)) {
        CORE_EV(&ev, revise)->expect = expected(s, p);
        ask(s, p, ev);
        sim_withdraw(p);
    }
}

static void nonsense(struct sim *s, const struct sim_plan *p)
{
    static const enum core_event_type types[] = {CORE_DECIDE, CORE_PAUSE,  CORE_RESUME,
                                                 CORE_MODIFY, CORE_CANCEL, CORE_REVISE};
    const struct flat_event ev = {
        .type = types[sim_range(s, 0, 5)],
        .run = sim_chance(s, 400) ? sim_random(s) | 1 : 0,
        .step = sim_chance(s, 200) ? STEP_NONE : sim_range(s, 0, p->shadow->n_steps + 1),
        .modify = (enum modify_kind)sim_range(s, 0, MODIFY_KIND_COUNT - 1),
        .decision = (enum review_decision)sim_range(s, 0, DECISION_COUNT - 1),
        .result = {.id = SIM_RESULT_OTHER + ++s->tokens}};
    if (ev.type != CORE_CANCEL || ev.run != 0) {
        ask(s, p, event_of_flat(&ev));
    }
}

static void interfere(struct sim *s, struct sim_plan *p)
{
    const bool paused = (p->shadow->paused & 1u << PAUSE_REQUESTED) != 0;
    if (sim_fault(s, FAULT_PAUSE)) {
        ask(s, p, (struct core_event){.type = CORE_PAUSE, .text = STR_LIT("a moment")});
    } else if (paused && (s->now >= s->quiet || sim_chance(s, 200))) {
        ask(s, p, (struct core_event){.type = CORE_RESUME, .text = STR_LIT("go on")});
    }
    if (p->shadow->n_steps > 0 && sim_fault(s, FAULT_MODIFY)) {
        modify(s, p);
    }
    if (p->shadow->n_steps > 0 && sim_fault(s, FAULT_REVISE)) {
        revise(s, p);
    }
    if (sim_chance(s, s->now >= s->quiet ? 500 : 60)) {
        sim_signals_send(s, p);
    }
    if (p->over || s->down || s->failed) {
        return;
    }
    if (sim_fault(s, FAULT_NONSENSE)) {
        nonsense(s, p);
    }
    /* Often while the plan is answered: else hardly a seed undoes such a plan. */
    if (sim_fault(s, FAULT_CANCEL) ||
        (p->asking.kind == JOB_SYNTHESIS && s->rate[FAULT_CANCEL] > 0 && sim_chance(s, 50))) {
        const uint32_t impatient = sim_chance(s, 200) ? 2 : 1;
        for (uint32_t i = 0; i < impatient; i++) {
            ask(s, p, (struct core_event){.type = CORE_CANCEL, .text = STR_LIT("never mind")});
        }
    }
}

void sim_people(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans && !s->down && !s->failed; i++) {
        struct sim_plan *p = &s->plans[i];
        if (p->submitted && !p->over) {
            decide(s, p);
        }
        if (p->submitted && !p->over) {
            interfere(s, p);
        }
    }
}
