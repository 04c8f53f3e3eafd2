/*
 * The plan's budget (G40): before an attempt gets a lane, what it is expected to cost is reserved.
 * Three words: it fits; it would fit if others did not hold what they have reserved, so it waits
 * for them; it does not fit into what is left, so the step fails and the plan with it.
 *
 * What was reserved comes back when the attempt is over, and what it really cost is spent: then
 * those that wait are looked at again. They have a place in max_concurrency, so they are few.
 */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/fair.h"

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t tokens_of(const struct usage *u)
{
    return sum(u->input_tokens, u->output_tokens);
}

static uint64_t spent_tokens(const struct core_run *row)
{
    return tokens_of(&row->run->usage);
}

static bool is_spent(uint64_t budget, uint64_t spent)
{
    return budget > 0 && spent >= budget;
}

/* A question reserves nothing, since it says only afterwards what it cost: it is asked as long as
 * anything is left, of the plan's budget and, to replan, of the phase's (M111). */
static bool may_ask(const struct core_run *row, enum step_phase phase)
{
    const struct replan_policy *replan = &row->plan->replan;
    const struct usage *used = &row->run->replan_usage;
    if (phase == PHASE_REPLAN && (is_spent(replan->budget_tokens, tokens_of(used)) ||
                                  is_spent(replan->budget_micros, used->cost_micros))) {
        return false;
    }
    return !is_spent(row->plan->budget_tokens, spent_tokens(row)) &&
           !is_spent(row->plan->budget_micros, row->run->usage.cost_micros);
}

static enum budget_word ask(uint64_t budget, uint64_t spent, uint64_t reserved, uint64_t needs)
{
    if (budget == 0) {
        return BUDGET_FITS;
    }
    if (spent >= budget || sum(spent, needs) > budget) {
        return BUDGET_EXCEEDED;
    }
    return sum(sum(spent, needs), MUTANT(BUDGET_NOT_RESERVED) ? 0 : reserved) > budget
               ? BUDGET_WAITS
               : BUDGET_FITS;
}

static enum budget_word ask_tokens(const struct core_run *row, uint32_t step)
{
    return ask(row->plan->budget_tokens, spent_tokens(row), row->reserved_tokens,
               row->plan->steps[step].policy.estimate_tokens);
}

static enum budget_word ask_micros(const struct core_run *row, uint32_t step)
{
    return ask(row->plan->budget_micros, row->run->usage.cost_micros, row->reserved_micros,
               row->plan->steps[step].policy.estimate_micros);
}

bool core_budget_is_spent(const struct core_run *row, const struct usage *more)
{
    return is_spent(row->plan->budget_tokens, sum(spent_tokens(row), tokens_of(more))) ||
           is_spent(row->plan->budget_micros, sum(row->run->usage.cost_micros, more->cost_micros));
}

enum budget_word core_budget_asks(const struct core_run *row, uint32_t step)
{
    const enum step_phase phase = row->run->steps[step].phase;
    if (phase > PHASE_SEARCH) {
        return may_ask(row, phase) ? BUDGET_FITS : BUDGET_EXCEEDED;
    }
    const enum budget_word tokens = ask_tokens(row, step);
    const enum budget_word micros = ask_micros(row, step);
    return tokens > micros ? tokens : micros;
}

void core_budget_reserve(struct core_run *row, uint32_t step)
{
    const struct step_policy *policy = &row->plan->steps[step].policy;
    row->reserved_tokens += policy->estimate_tokens;
    row->reserved_micros += policy->estimate_micros;
}

void core_budget_return(struct core *c, struct core_run *row, uint32_t step)
{
    const struct step_policy *policy = &row->plan->steps[step].policy;
    row->reserved_tokens -= policy->estimate_tokens;
    row->reserved_micros -= policy->estimate_micros;
    if (row->broke.n > 0 && !row->woken) {
        ASSERT(c->n_woken < c->config.runs_max);
        row->woken = true;
        c->woken[c->n_woken++] = (uint32_t)(row - c->runs);
    }
}

void core_budget_wait(struct core *c, struct core_run *row, uint32_t step)
{
    core_unlink(c, row, step);
    core_link(c, row, step, LIST_BUDGET, false);
    core_due(c, row, step, row->run->steps[step].limit);
}

void core_budget_exceeded(struct core *c, struct core_run *row, uint32_t step)
{
    const struct plan *plan = row->plan;
    const struct step_policy *policy = &plan->steps[step].policy;
    struct str text;
    if (row->run->steps[step].phase > PHASE_SEARCH) {
        text = may_ask(row, PHASE_GATE)
                   ? STR_LIT("Budget exceeded: nothing is left for replanning")
                   : STR_LIT("Budget exceeded: nothing is left to ask about the step");
    } else if (ask_tokens(row, step) == BUDGET_EXCEEDED) {
        text = core_text_budget(c, "tokens", spent_tokens(row), plan->budget_tokens,
                                policy->estimate_tokens);
    } else {
        text = core_text_budget(c, "millionths", row->run->usage.cost_micros, plan->budget_micros,
                                policy->estimate_micros);
    }
    c->quiet = true;
    core_end_step(c, row,
                  (struct record){.step = step,
                                  .status = STEP_FAILED,
                                  .error_class = CLASS_BUDGET_EXCEEDED,
                                  .text = text});
    core_plan_over(c, row,
                   &(struct plan_end){.status = PLAN_FAILED,
                                      .outcome = OUTCOME_FAILED,
                                      .failure = PLAN_FAILURE_BUDGET,
                                      .reason = REASON_PLAN_ABORTED,
                                      .step = step,
                                      .text = text});
}

/* False when the plan is over. */
static bool look_again(struct core *c, struct core_run *row, uint32_t step)
{
    switch (core_budget_asks(row, step)) {
    case BUDGET_FITS:
        core_enqueue(c, row, step, false);
        break;
    case BUDGET_WAITS:
        break;
    case BUDGET_EXCEEDED:
        core_budget_exceeded(c, row, step);
        return false;
    }
    return true;
}

void core_budget_wake(struct core *c)
{
    while (c->n_woken > 0) {
        struct core_run *row = &c->runs[c->woken[--c->n_woken]];
        row->woken = false;
        uint64_t ref = row->run == NULL ? REF_NONE : row->broke.head;
        while (ref != REF_NONE) {
            const uint32_t step = (uint32_t)ref;
            ref = row->sched[step].next;
            if (!look_again(c, row, step)) {
                break;
            }
        }
    }
}

/* ---- asking ---- */

static uint64_t left(uint64_t budget, uint64_t spent, uint64_t reserved)
{
    const uint64_t gone = sum(spent, reserved);
    if (budget == 0) {
        return UINT64_MAX;
    }
    return gone < budget ? budget - gone : 0;
}

void core_budget_left(const struct core *c, uint64_t run, uint32_t step, uint64_t *ret_tokens,
                      uint64_t *ret_micros)
{
    const struct core_run *row = core_find_run(c, run);
    *ret_tokens = 0;
    *ret_micros = 0;
    if (row == NULL || (step >= row->run->n_steps && step != STEP_NONE)) {
        return;
    }
    uint64_t tokens = row->reserved_tokens;
    uint64_t micros = row->reserved_micros;
    if (step != STEP_NONE && (row->sched[step].holds & HOLDS_BUDGET) != 0) {
        tokens -= row->plan->steps[step].policy.estimate_tokens;
        micros -= row->plan->steps[step].policy.estimate_micros;
    }
    *ret_tokens = left(row->plan->budget_tokens, spent_tokens(row), tokens);
    *ret_micros = left(row->plan->budget_micros, row->run->usage.cost_micros, micros);
}
