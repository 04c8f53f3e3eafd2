/*
 * The plan's budget (E7). Before an attempt gets a lane, its estimated cost is reserved.
 * The check has three results:
 *   - it fits
 *   - it would fit without the reservations of other steps: the step waits for them
 *   - it does not fit into what is left: the step fails, and the plan with it
 *
 * At the end of an attempt its reservation is returned and its real cost is spent. Then the waiting
 * steps are checked again. They have a place within max_concurrency, so they are few.
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

static uint64_t spent_tokens(const struct core_run *entry)
{
    return tokens_of(&entry->run->usage);
}

static bool is_spent(uint64_t budget, uint64_t spent)
{
    return budget > 0 && spent >= budget;
}

/* A question reserves nothing: its cost is known only afterwards. It may be asked while anything is
 * left of the plan's budget and, for a replan, of the phase's (M111). */
static bool may_ask(const struct core_run *entry, enum step_phase phase)
{
    const struct replan_policy *replan = &entry->plan->replan;
    const struct usage *used = &run_phases(entry->run)->replanning;
    if (phase == PHASE_REPLAN && (is_spent(replan->budget_tokens, tokens_of(used)) ||
                                  is_spent(replan->budget_micros, used->cost_micros))) {
        return false;
    }
    return !is_spent(entry->plan->budget_tokens, spent_tokens(entry)) &&
           !is_spent(entry->plan->budget_micros, entry->run->usage.cost_micros);
}

static enum budget_verdict check_limit(uint64_t budget, uint64_t spent, uint64_t reserved,
                                       uint64_t needs)
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

static enum budget_verdict check_tokens(const struct core_run *entry, uint32_t step)
{
    return check_limit(entry->plan->budget_tokens, spent_tokens(entry), entry->reserved_tokens,
                       entry->plan->steps[step].rules->policy.estimate_tokens);
}

static enum budget_verdict check_micros(const struct core_run *entry, uint32_t step)
{
    return check_limit(entry->plan->budget_micros, entry->run->usage.cost_micros,
                       entry->reserved_micros,
                       entry->plan->steps[step].rules->policy.estimate_micros);
}

bool core_budget_is_spent(const struct core_run *entry, const struct usage *more)
{
    return is_spent(entry->plan->budget_tokens, sum(spent_tokens(entry), tokens_of(more))) ||
           is_spent(entry->plan->budget_micros,
                    sum(entry->run->usage.cost_micros, more->cost_micros));
}

enum budget_verdict core_budget_check(const struct core_run *entry, uint32_t step)
{
    const enum step_phase phase = entry->run->steps[step].phase;
    if (phase > PHASE_SEARCH) {
        return may_ask(entry, phase) ? BUDGET_FITS : BUDGET_EXCEEDED;
    }
    const enum budget_verdict tokens = check_tokens(entry, step);
    const enum budget_verdict micros = check_micros(entry, step);
    return tokens > micros ? tokens : micros;
}

void core_budget_reserve(struct core_run *entry, uint32_t step)
{
    const struct step_policy *policy = &entry->plan->steps[step].rules->policy;
    entry->reserved_tokens += policy->estimate_tokens;
    entry->reserved_micros += policy->estimate_micros;
}

void core_budget_return(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct step_policy *policy = &entry->plan->steps[step].rules->policy;
    entry->reserved_tokens -= policy->estimate_tokens;
    entry->reserved_micros -= policy->estimate_micros;
    if (entry->budget_waiters.n > 0 && !entry->woken) {
        ASSERT(c->n_woken < c->config.runs_max);
        entry->woken = true;
        c->woken[c->n_woken++] = (uint32_t)(entry - c->runs);
    }
}

void core_budget_wait(struct core *c, struct core_run *entry, uint32_t step)
{
    core_unlink(c, entry, step);
    core_link(c, entry, step, LIST_BUDGET, false);
    core_set_due(c, entry, step, core_wait_end(entry, step));
}

void core_budget_exceeded(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct plan *plan = entry->plan;
    const struct step_policy *policy = &plan->steps[step].rules->policy;
    struct str text;
    if (entry->run->steps[step].phase > PHASE_SEARCH) {
        text = may_ask(entry, PHASE_GATE)
                   ? STR_LIT("Budget exceeded: nothing is left for replanning")
                   : STR_LIT("Budget exceeded: nothing is left to ask about the step");
    } else if (check_tokens(entry, step) == BUDGET_EXCEEDED) {
        text = core_text_budget(c, "tokens", spent_tokens(entry), plan->budget_tokens,
                                policy->estimate_tokens);
    } else {
        text = core_text_budget(c, "millionths", entry->run->usage.cost_micros, plan->budget_micros,
                                policy->estimate_micros);
    }
    c->quiet = true;
    core_end_step(c, entry,
                  (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED,
                                           .error_class = CLASS_BUDGET_EXCEEDED),
                                  .step = step, .text = text});
    core_end_plan(c, entry,
                  &(struct plan_end){.status = PLAN_FAILED,
                                     .outcome = OUTCOME_FAILED,
                                     .failure = PLAN_FAILURE_BUDGET,
                                     .reason = REASON_PLAN_ABORTED,
                                     .step = step,
                                     .text = text});
}

/* False when the plan has ended. */
static bool check_again(struct core *c, struct core_run *entry, uint32_t step)
{
    switch (core_budget_check(entry, step)) {
    case BUDGET_FITS:
        core_enqueue(c, entry, step, false);
        break;
    case BUDGET_WAITS:
        break;
    case BUDGET_EXCEEDED:
        core_budget_exceeded(c, entry, step);
        return false;
    }
    return true;
}

void core_budget_wake(struct core *c)
{
    while (c->n_woken > 0) {
        struct core_run *entry = &c->runs[c->woken[--c->n_woken]];
        entry->woken = false;
        uint64_t ref =
            entry->run == NULL ? REF_NONE : core_list_of(c, entry, entry->budget_waiters).head;
        while (ref != REF_NONE) {
            const uint32_t step = (uint32_t)ref;
            ref = entry->sched[step].next;
            if (!check_again(c, entry, step)) {
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
    const struct core_run *entry = core_find_run(c, run);
    *ret_tokens = 0;
    *ret_micros = 0;
    if (entry == NULL || (step >= entry->run->n_steps && step != STEP_NONE)) {
        return;
    }
    uint64_t tokens = entry->reserved_tokens;
    uint64_t micros = entry->reserved_micros;
    if (step != STEP_NONE && (entry->sched[step].holds & HOLDS_BUDGET) != 0) {
        tokens -= entry->plan->steps[step].rules->policy.estimate_tokens;
        micros -= entry->plan->steps[step].rules->policy.estimate_micros;
    }
    *ret_tokens = left(entry->plan->budget_tokens, spent_tokens(entry), tokens);
    *ret_micros = left(entry->plan->budget_micros, entry->run->usage.cost_micros, micros);
}
