/* Shared by all rules: moving a step, updating its dependents, sums. */
#include "protocol/base/assert.h"
#include "supervisor/core/run/run_apply.h"

static uint32_t *counter_of(struct run *run, enum step_status s)
{
    switch (s) {
    case STEP_READY:
        return &run->ready;
    case STEP_COMPLETED:
        return &run->completed;
    case STEP_FAILED:
        return &run->failed;
    case STEP_SKIPPED:
        return &run->skipped;
    case STEP_CANCELLED:
        return &run->cancelled;
    case STEP_WAITING:
        return &run->waiting;
    case STEP_SLEEPING:
        return &run->sleeping;
    case STEP_PENDING:
    case STEP_IN_PROGRESS:
    case STEP_BACKOFF:
    case STEP_UNKNOWN:
    case STEP_CHECKING:
    case STEP_STATUS_COUNT:
        break;
    }
    return NULL;
}

void run_step_count(struct run *run, const struct run_step *step, bool in)
{
    uint32_t *counter = counter_of(run, step->status);
    const uint32_t active = run_step_is_active(step->status) ? 1 : 0;
    const uint32_t open = step_is_final(step->status) ? 0 : 1;
    const uint32_t replanning =
        step->status == STEP_CHECKING && step->phase == PHASE_REPLAN ? 1 : 0;
    const uint32_t placeless = step->placeless != 0 ? active : 0;
    if (in) {
        run->active += active;
        run->placeless += placeless;
        run->open += open;
        run->replanning += replanning;
    } else {
        ASSERT(run->active >= active && run->open >= open && run->replanning >= replanning);
        run->active -= active;
        run->placeless -= placeless;
        run->open -= open;
        run->replanning -= replanning;
    }
    if (counter != NULL) {
        ASSERT(in || *counter > 0);
        *counter += in ? 1 : UINT32_MAX;
    }
}

void run_step_move(struct run *run, struct run_step *step, enum step_status to,
                   enum step_phase phase)
{
    ASSERT(run_move_allowed(step->status, to));
    run_step_count(run, step, false);
    step->status = (uint8_t)to;
    step->phase = (uint8_t)phase;
    step->deadline = MSEC_NEVER;
    run_step_count(run, step, true);
}

void run_settle_dependents(struct run *run, const struct plan *plan, uint32_t ended)
{
    for (uint32_t i = 0; i < run_dependents(plan, ended); i++) {
        const uint32_t step = run_dependent(plan, ended, i);
        struct run_step *s = &run->steps[step];
        ASSERT(s->deps_open > 0);
        s->deps_open--;
        s->deps_failed += run_end_is_failure(plan, &run->steps[ended], step) ? 1 : 0;
        s->deps_skipped += run_end_is_bypass(plan, &run->steps[ended], step) ? 1 : 0;
        s->last_dep = run->steps[ended].status == STEP_COMPLETED ? ended : s->last_dep;
        if (s->status == STEP_PENDING && run_step_can_start(run, plan, step)) {
            run_step_move(run, s, STEP_READY, PHASE_EXECUTE);
        }
    }
}

void run_end_open_steps(struct run *run)
{
    ASSERT(run->active == 0);
    for (uint32_t i = 0; run->open > 0 && i < run->n_steps; i++) {
        if (!step_is_final(run->steps[i].status)) {
            run_step_move(run, &run->steps[i], STEP_CANCELLED, PHASE_EXECUTE);
        }
    }
}

/* Agents report their usage. The cap keeps a sum within what a record can store. */
static uint64_t add_capped(uint64_t a, uint64_t b)
{
    return a > INT64_MAX || b > INT64_MAX - a ? INT64_MAX : a + b;
}

void run_usage_add(struct usage *sum, const struct usage *u)
{
    sum->input_tokens = add_capped(sum->input_tokens, u->input_tokens);
    sum->output_tokens = add_capped(sum->output_tokens, u->output_tokens);
    sum->cached_tokens = add_capped(sum->cached_tokens, u->cached_tokens);
    sum->cost_micros = add_capped(sum->cost_micros, u->cost_micros);
}

static bool is_nothing(const struct usage *u)
{
    return (u->input_tokens | u->output_tokens | u->cached_tokens | u->cost_micros) == 0;
}

bool run_attempt_is_paid(const struct run_step *step, uint32_t attempt)
{
    return attempt / 64 < 2 && (step->paid[attempt / 64] & UINT64_C(1) << attempt % 64) != 0;
}

void run_mark_paid(struct run_step *step, uint32_t attempt, const struct usage *u)
{
    if (!is_nothing(u) && attempt / 64 < 2) {
        step->paid[attempt / 64] |= UINT64_C(1) << attempt % 64;
    }
}

void run_spend(struct run *run, struct run_step *step, const struct usage *u)
{
    run_usage_add(&run->usage, u);
    if (step->status != STEP_CHECKING) {
        run_mark_paid(step, step->attempt, u);
    }
}

void run_spend_replan(struct run *run, const struct usage *u)
{
    struct run_phases *phases = run_phases_change(run);
    if (phases != NULL) { /* else the plan names no replanner any more */
        run_usage_add(&phases->replanning, u);
    }
}

enum step_phase run_next_phase(const struct plan *plan, const struct run_step *step)
{
    const bool search = (step->did & STEP_DID_SEARCH) != 0 && step->agent == plan->search_agent;
    return search ? PHASE_SEARCH : PHASE_EXECUTE;
}

void run_renew_questions(struct run *run, const struct plan *plan, msec now)
{
    for (uint32_t i = 0; run->active > 0 && i < run->n_steps; i++) {
        struct run_step *step = &run->steps[i];
        if (step->status != STEP_CHECKING) {
            continue;
        }
        const msec time = step->phase == PHASE_REPLAN
                              ? plan->replan.timeout_ms
                              : plan->steps[i].rules->policy.check_timeout_ms;
        const msec until = time == 0 ? MSEC_NEVER : msec_add(now, time);
        step->deadline = until > step->deadline ? until : step->deadline;
    }
}

bool run_is_current_attempt(const struct run *run, const struct record *rec)
{
    const struct run_step *step = &run->steps[rec->step];
    return (step->status == STEP_IN_PROGRESS || step->status == STEP_UNKNOWN) &&
           step->attempt == rec->attempt;
}

bool run_may_recover(const struct run *run, const struct record *rec)
{
    const struct run_step *step = &run->steps[rec->step];
    return step->attempt == rec->attempt && run_step_is_active(step->status);
}

uint64_t run_visit(const struct plan *plan, uint64_t visited, uint32_t agent)
{
    const uint32_t at = plan_agent_find(plan, agent);
    return at == UINT32_MAX ? visited : visited | UINT64_C(1) << at;
}

void run_derive_status(struct run *run, const struct plan *plan)
{
    if (plan_is_final(run->status) || run->status == PLAN_PENDING) {
        return;
    }
    /* PLAN_WAITING: all active steps wait for people and none may begin, or the plan is paused. */
    const bool may_begin = run->ready > 0 && run_places(run) < run_concurrency(plan);
    const bool waits = run->active > 0 && run->waiting == run->active && !may_begin;
    const bool held = (run->paused & ~(1u << PAUSE_REVIEW)) != 0;
    run->status = (waits || held) && !run->cancelling ? PLAN_WAITING : PLAN_RUNNING;
}

void run_void_signoff(struct run *run)
{
    run->paused &= (uint8_t) ~(1u << PAUSE_SIGNOFF);
    run->review_deadline = MSEC_NEVER;
}

void run_revised(struct run *run, bool same_work)
{
    if (!same_work) {
        run_void_signoff(run); /* an open one is about the revision before */
    } else if (run->signed_off == run->revision) {
        run->signed_off++;
    }
    run->revision++;
}

bool run_review_follows(const struct run *run, uint32_t serial)
{
    return run->reviews < UINT32_MAX && (serial == 0 || serial == run->reviews + 1);
}

void run_grant(struct run_step *step)
{
    step->granted = (uint16_t)(step->granted + (step->granted < step->attempt ? 1 : 0));
}
