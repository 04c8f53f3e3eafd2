/* Jobs as the shell knows them: an agent plans or writes, is slow, fails, answers nonsense, wants
 * steps again, or answers too late. Jobs outlive the daemon: a job has ended when the journal has
 * its end. */
#include "tests/sim/sim.h"

enum { PIECES_MAX = 3 };
enum { SAYS_END, SAYS_TEXT, SAYS_NOTHING /* its time has ended */ };

void sim_job_order(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (p == NULL || cmd->type == CMD_JOB_STOP) {
        if (p != NULL) {
            p->job.token = 0;
        }
        return;
    }
    if (p->job.token != 0 && p->job.kind == cmd->job) {
        return; /* it is still running */
    }
    const struct plan *plan = sim_plan_now(p);
    const msec most =
        cmd->job == JOB_PLANNING ? plan->planning.timeout_ms : plan->synthesis.timeout_ms;
    msec duration = sim_fault(s, FAULT_SLOW) ? sim_range(s, 100, 800) : sim_range(s, 0, 60);
    if (sim_fault(s, FAULT_HANG)) {
        duration = s->quiet - s->now + sim_range(s, 1, 1000);
    }
    struct sim_event ev = {.kind = SIM_JOB, .plan = (uint32_t)(p - s->plans)};
    p->job = (struct job){.token = ++s->tokens, .kind = cmd->job};
    ev.token = p->job.token;
    for (uint32_t i = sim_range(s, 0, PIECES_MAX); i > 0 && cmd->job == JOB_SYNTHESIS; i--) {
        ev.lane = SAYS_TEXT;
        sim_after(s, sim_range(s, 0, (uint32_t)duration), ev);
    }
    ev.lane = most > 0 && duration > most ? SAYS_NOTHING : SAYS_END;
    sim_after(s, ev.lane == SAYS_NOTHING ? most : duration, ev);
    ev.lane = SAYS_END;
    sim_after(s, duration + sim_range(s, 20, 400), ev); /* the duplicate */
}

/* ---- its answer ---- */

static void keep_offer(const struct core_new_plan *next, struct flat_event *ev)
{
    ev->plan = next->plan;
    ev->block = next->block;
    ev->result = next->document;
}

static bool offer_plan(struct sim *s, struct sim_plan *p, struct flat_event *ev, bool bad)
{
    struct core_event made = {.type = CORE_PLANNED};
    const bool offered = sim_offer_plan(s, p, &made, bad);
    keep_offer(event_plan(&made), ev);
    return offered;
}

static bool offer(struct sim *s, struct sim_plan *p, struct flat_event *ev, bool bad)
{
    struct core_event made = {.type = CORE_RECTIFY};
    const bool offered = sim_offer(s, p, &made, bad);
    keep_offer(event_plan(&made), ev);
    return offered;
}

static void say_plan(struct sim *s, struct sim_plan *p, struct flat_event *ev, bool nothing)
{
    ev->type = CORE_JOB_FAILED;
    ev->text = STR_LIT("no plan");
    if (nothing || sim_fault(s, FAULT_UNPLANNED)) {
        return;
    }
    if (sim_fault(s, FAULT_BAD_PLAN)) {
        ev->invalid = true;
        ev->n = sim_range(s, 1, 9);
    } else if (offer_plan(s, p, ev, sim_fault(s, FAULT_BAD_REVISION))) {
        ev->type = CORE_PLANNED;
    }
}

static void say_answer(struct sim *s, struct sim_plan *p, struct flat_event *ev, bool nothing)
{
    ev->type = CORE_JOB_FAILED;
    ev->text = STR_LIT("no answer");
    if (nothing || sim_fault(s, FAULT_NO_ANSWER)) {
        return;
    }
    ev->type = CORE_RECTIFY;
    if (p->shadow->n_steps > 0 && sim_fault(s, FAULT_RECTIFY) &&
        offer(s, p, ev, sim_fault(s, FAULT_BAD_REVISION))) {
        return;
    }
    ev->type = CORE_SYNTHESIZED;
    ev->result = (struct blob_ref){.id = SIM_RESULT_OTHER + ++s->tokens, .len = 3};
}

/* Whatever the job was, nothing waits for it. */
static void say_late(struct sim *s, struct flat_event *ev)
{
    static const enum core_event_type types[] = {CORE_PLANNED, CORE_JOB_FAILED, CORE_JOB_TEXT,
                                                 CORE_SYNTHESIZED, CORE_RECTIFY};
    ev->type = types[sim_range(s, 0, 4)];
    ev->attempt += sim_range(s, 1, 3);
    ev->job = ev->type == CORE_JOB_FAILED ? JOB_PLANNING : ev->job;
}

static struct flat_event draw(struct sim *s, struct sim_plan *p, uint32_t what, bool its)
{
    const struct run *run = p->shadow;
    struct flat_event ev = {.run = p->handle,
                            .step = STEP_NONE,
                            .lane = LANE_NONE,
                            .job = run->job,
                            .attempt = run->job == JOB_PLANNING ? run->asked : run->rectified + 1u};
    if (!its) {
        say_late(s, &ev);
        return ev;
    }
    if (what == SAYS_TEXT) {
        ev.type = CORE_JOB_TEXT;
        ev.text = STR_LIT("well, ");
        ev.invalid = sim_chance(s, 200);
        return ev;
    }
    ev.usage = (struct usage){.input_tokens = sim_range(s, 0, 9),
                              .output_tokens = sim_range(s, 0, 2),
                              .cost_micros = sim_range(s, 0, 12)};
    if (run->job == JOB_PLANNING) {
        say_plan(s, p, &ev, what == SAYS_NOTHING);
    } else {
        say_answer(s, p, &ev, what == SAYS_NOTHING);
    }
    return ev;
}

/* Between two turns: the journal alone decides whether it has ended. */
static bool is_open(const struct sim_plan *p, uint64_t token)
{
    return p->job.token == token && p->asking.kind == p->job.kind && !p->over;
}

/* True when the job waits for a daemon that can take its answer. */
static bool comes_again(struct sim *s, const struct sim_plan *p, const struct sim_event *event)
{
    if (!is_open(p, event->token) || s->failed || event->lane == SAYS_TEXT) {
        return false;
    }
    sim_after(s, sim_range(s, 10, 60), *event);
    return true;
}

void sim_job_says(struct sim *s, const struct sim_event *event)
{
    struct sim_plan *p = &s->plans[event->plan];
    sim_flush(s);
    const bool its = is_open(p, event->token);
    if (s->failed || (!its && !sim_fault(s, FAULT_JOB_LATE))) {
        return;
    }
    if (s->down || !p->submitted || p->handle == 0) {
        (void)comes_again(s, p, event);
        return;
    }
    const struct flat_event flat = draw(s, p, event->lane, its);
    const struct core_event ev = event_of_flat(&flat);
    if (!s->down && !s->failed) {
        sim_turn(s, ev, (struct uuid){{0}});
        sim_flush(s);
        sim_withdraw(p);
    }
    if (!s->down && !s->failed && flat.plan == NULL && !is_open(p, event->token) &&
        sim_fault(s, FAULT_DUPLICATE)) { /* the answer comes twice */
        sim_turn(s, ev, (struct uuid){{0}});
    }
    (void)comes_again(s, p, event); /* refused, or the daemon died */
}
