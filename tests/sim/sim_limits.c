/* Limits of concurrency and budgets, and fairness between plans: checked at each request that is
 * sent, in the order of the commands. */
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

enum { OVERTAKEN_MAX = 4, OVERTAKEN_IN_GROUP = 8 }; /* of turns that are committed together */

/* ---- sent requests ---- */

bool sim_was_sent(const struct sim *s, const struct sim_plan *p, uint32_t step,
                  enum step_phase most, uint32_t serial, struct uuid to)
{
    for (uint32_t i = p->told[step].sent; i != UINT32_MAX; i = s->sent[i].prev) {
        const struct sent *x = &s->sent[i];
        const bool same = most > PHASE_SEARCH ? x->phase == most : x->phase <= PHASE_SEARCH;
        if (same && x->serial == serial && uuid_eq(x->process, sim_instance(to))) {
            return true;
        }
    }
    return false;
}

bool sim_is_out(const struct sim *s, const struct sent *x)
{
    const struct sim_plan *p = &s->plans[x->plan];
    const struct run_step *step = &p->shadow->steps[x->step];
    if (x->back || p->over || (x->phase <= PHASE_SEARCH && run_step_calls(step))) {
        return false;
    }
    return x->phase <= PHASE_SEARCH
               ? step->status == STEP_IN_PROGRESS && step->attempt == x->serial
               : step->status == STEP_CHECKING && step->phase == x->phase && step->ask == x->serial;
}

/* Only the last ones can be outstanding: each lane has one. */
static uint32_t oldest(struct sim *s)
{
    while (s->first_out < s->n_sent && !sim_is_out(s, &s->sent[s->first_out])) {
        s->sent[s->first_out++].back = true;
    }
    return s->first_out;
}

void sim_limits_event(struct sim *s, const struct core_event *ev)
{
    const bool back = ev->type == CORE_LOST || ev->type == CORE_BUSY;
    const struct sim_plan *p = back ? sim_plan_of(s, ev->run) : NULL;
    for (uint32_t i = oldest(s); p != NULL && i < s->n_sent; i++) {
        struct sent *x = &s->sent[i];
        const bool its = &s->plans[x->plan] == p && x->step == ev->step &&
                         x->serial == ev->attempt && x->slot == ev->slot && x->epoch == ev->epoch;
        struct told *told = &p->told[x->step];
        if (its && !x->back && ev->type == CORE_BUSY && told->sent == i && told->in_a_row > 0) {
            told->in_a_row--; /* as often as it takes */
        }
        x->back = x->back || its;
    }
}

void sim_limits_closed(struct sim *s, uint32_t slot, uint64_t epoch)
{
    for (uint32_t i = oldest(s); i < s->n_sent; i++) {
        struct sent *x = &s->sent[i];
        x->back = x->back || (x->slot == slot && x->epoch <= epoch);
    }
}

/* ---- limits ---- */

static void check_limits(struct sim *s, struct sim_plan *p, const struct sent *last)
{
    const struct core_config *c = &s->config;
    const struct plan *plan = sim_plan_now(p);
    const struct record *rec = &(struct record){.step = last->step};
    uint32_t all = 0;
    uint32_t agent = 0;
    uint32_t session = 0;
    uint64_t tokens = p->shadow->usage.input_tokens + p->shadow->usage.output_tokens;
    uint64_t micros = p->shadow->usage.cost_micros;
    for (uint32_t i = oldest(s); i < s->n_sent; i++) {
        const struct sent *x = &s->sent[i];
        const struct sim_plan *of = &s->plans[x->plan];
        if (!sim_is_out(s, x)) {
            continue;
        }
        all++;
        agent += x->agent == last->agent ? 1 : 0;
        session += sim_plan_now(of)->session == plan->session ? 1 : 0;
        if (of == p && x->phase <= PHASE_SEARCH) {
            tokens += plan->steps[x->step].rules->policy.estimate_tokens;
            micros += plan->steps[x->step].rules->policy.estimate_micros;
        }
    }
    SIM_RULE(c->in_flight == 0 || all <= c->in_flight, "more in flight than the limit");
    SIM_RULE(c->in_flight_agent == 0 || agent <= c->in_flight_agent,
             "more in flight at an agent than its limit");
    SIM_RULE(c->in_flight_session == 0 || session <= c->in_flight_session,
             "more in flight of a session than its limit");
    SIM_RULE(last->phase > PHASE_SEARCH || plan->budget_tokens == 0 ||
                 tokens <= plan->budget_tokens,
             "dispatched beyond the budget of tokens");
    SIM_RULE(last->phase > PHASE_SEARCH || plan->budget_micros == 0 ||
                 micros <= plan->budget_micros,
             "dispatched beyond the budget of money");
}

/* A question reserves no budget, but some must be left. */
static void check_left(struct sim *s, struct sim_plan *p, const struct sent *x)
{
    const struct plan *plan = sim_plan_now(p);
    const struct usage *spent = &p->shadow->usage;
    const struct usage *on_replans = &run_phases(p->shadow)->replanning;
    const struct record *rec = &(struct record){.step = x->step};
    if (x->phase <= PHASE_SEARCH) {
        return;
    }
    SIM_RULE(plan->budget_tokens == 0 ||
                 spent->input_tokens + spent->output_tokens < plan->budget_tokens,
             "asked with no tokens left");
    SIM_RULE(plan->budget_micros == 0 || spent->cost_micros < plan->budget_micros,
             "asked with no money left");
    SIM_RULE(x->phase != PHASE_REPLAN || plan->replan.budget_tokens == 0 ||
                 on_replans->input_tokens + on_replans->output_tokens < plan->replan.budget_tokens,
             "replanned with no tokens left");
    SIM_RULE(x->phase != PHASE_REPLAN || plan->replan.budget_micros == 0 ||
                 on_replans->cost_micros < plan->replan.budget_micros,
             "replanned with no money left");
}

/* ---- fairness ---- */

/* No plan starves: between two turns of one plan, each other plan has only a few. */
static void check_fairness(struct sim *s, struct sim_plan *p, const struct sent *x, bool again)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    const struct record *rec = &(struct record){.step = x->step};
    for (uint32_t i = 0; i < s->n_plans && !again; i++) {
        struct sim_plan *other = &s->plans[i];
        if (i == ix || !other->waits[x->agent] ||
            sim_plan_now(other)->priority < sim_plan_now(p)->priority) {
            continue;
        }
        const uint32_t n = ++other->overtaken[x->agent][ix];
        sometimes->overtaken = n > sometimes->overtaken ? n : sometimes->overtaken;
        SIM_RULE(n <= (s->batch_max > 1 ? OVERTAKEN_IN_GROUP : OVERTAKEN_MAX),
                 "a plan is passed by again and again");
    }
    memset(p->overtaken[x->agent], 0, sizeof p->overtaken[x->agent]);
    p->waits[x->agent] = false; /* computed again between turns */
}

void sim_limits_turn(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        struct sim_plan *p = &s->plans[i];
        const struct core_run *row = p->over ? NULL : core_find_run(s->core, p->handle);
        for (uint32_t a = 0; a < s->n_agents; a++) {
            const uint32_t at = row == NULL ? UINT32_MAX : plan_agent_find(row->plan, a);
            p->waits[a] = at != UINT32_MAX && core_queues(row)[at].ring == RING_AGENT;
            if (!p->waits[a]) {
                memset(p->overtaken[a], 0, sizeof p->overtaken[a]);
            }
        }
    }
}

/* ---- a request is sent ---- */

static const struct incarnation *incarnation_of(const struct sim *s, const struct core_cmd *cmd)
{
    for (uint32_t i = s->n_incarnations; i > 0; i--) {
        const struct incarnation *x = &s->incarnations[i - 1];
        if (x->slot == cmd->slot && x->epoch == cmd->epoch) {
            return x;
        }
    }
    return NULL;
}

static void check_state(struct sim *s, const struct sim_plan *p, const struct core_cmd *cmd)
{
    const struct record *rec = &(struct record){.step = cmd->step};
    const struct run *run = p->shadow;
    const struct run_step *state = &run->steps[cmd->step];
    const uint32_t told = 1u << PAUSE_REQUESTED | 1u << PAUSE_SIGNOFF;
    if (cmd->phase <= PHASE_SEARCH) {
        SIM_RULE(state->status == STEP_IN_PROGRESS && state->attempt == cmd->attempt &&
                     state->epoch == cmd->epoch && state->phase == cmd->phase,
                 "dispatch of an attempt that is not journaled");
    } else {
        SIM_RULE(state->status == STEP_CHECKING && state->ask == cmd->attempt &&
                     state->phase == cmd->phase,
                 "dispatch of a question that is not journaled");
    }
    SIM_RULE(cmd->phase != PHASE_REPLAN || s->turn->ev.now >= p->replan_from,
             "asked for a replan before its pause was over");
    SIM_RULE((run->paused & told) == 0 && !run->cancelling, "dispatch while the plan is on hold");
    SIM_RULE(!sim_plan_now(p)->signoff || p->signed_off, "dispatch without a sign-off of the plan");
    SIM_RULE(p->asking.kind == JOB_NONE, "dispatch while the plan is made or answered");
    SIM_RULE(run->replanning == 0 || cmd->phase == PHASE_REPLAN,
             "dispatch while the plan is being replanned");
}

/* The receiver is present, enabled, and its breaker is closed. */
static void check_instance(struct sim *s, const struct sim_plan *p, const struct core_cmd *cmd)
{
    const struct record *rec = &(struct record){.step = cmd->step};
    struct instance_view to;
    if (s->n_batch > 1) {
        return; /* the registry is a few turns ahead */
    }
    SIM_RULE(registry_is_current(s->core->registry, cmd->slot, cmd->epoch) &&
                 registry_instance_view(s->core->registry, cmd->slot, &to),
             "sent to an instance that is not there");
    const struct agent_view agent = registry_agent_view(s->core->registry, to.agent);
    SIM_RULE(!to.draining && to.health == HEALTH_HEALTHY, "sent to an instance that takes no work");
    SIM_RULE(to.breaker.state != BREAKER_OPEN && to.breaker.state != BREAKER_PROBING &&
                 agent.breaker.state != BREAKER_OPEN && agent.breaker.state != BREAKER_PROBING,
             "sent although the breaker is open");
}

void sim_check_dispatch(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *p = sim_plan_of(s, cmd->run);
    const struct incarnation *to = incarnation_of(s, cmd);
    if (p == NULL || p->over || to == NULL) {
        sim_fail(s, "dispatch for a plan that is over, or to nobody", 0, cmd->step);
        return;
    }
    const struct record *rec = &(struct record){.step = cmd->step};
    const struct plan *plan = sim_plan_now(p);
    SIM_RULE(to->agent == run_step_agent(p->shadow, plan, cmd->step), "sent to another agent");
    SIM_RULE(plan_agent_find(plan, to->agent) != UINT32_MAX, "sent to an agent not granted");
    SIM_RULE(s->turn->ev.now >= to->full_until, "sent to who said that it has no place");
    check_state(s, p, cmd);
    check_instance(s, p, cmd);
    sim_keys_dispatch(s, p, cmd, to->agent);
    if (s->failed) {
        return;
    }
    struct told *told = &p->told[cmd->step];
    const struct sent *before = told->sent == UINT32_MAX ? NULL : &s->sent[told->sent];
    const bool again =
        before != NULL && before->serial == cmd->attempt && before->phase == cmd->phase;
    if (before != NULL) {
        s->sent[told->sent].back = true;
    }
    told->in_a_row = again && told->life == s->life ? told->in_a_row + 1 : 1;
    told->life = s->life;
    SIM_RULE(told->in_a_row <= CORE_UNSENT_MAX, "sent again and again");
    s->sent = sim_room(s->sent, s->n_sent, &s->cap_sent, sizeof *s->sent);
    struct sent *x = &s->sent[s->n_sent];
    *x = (struct sent){.plan = (uint32_t)(p - s->plans),
                       .step = cmd->step,
                       .serial = cmd->attempt,
                       .agent = to->agent,
                       .phase = cmd->phase,
                       .process = to->process,
                       .slot = cmd->slot,
                       .epoch = cmd->epoch,
                       .at = s->turn->ev.now,
                       .prev = told->sent};
    told->sent = s->n_sent++;
    sometimes->phases[cmd->phase]++;
    check_limits(s, p, x);
    if (!s->failed) {
        check_left(s, p, x);
    }
    if (!s->failed) {
        check_fairness(s, p, x, again);
    }
}
