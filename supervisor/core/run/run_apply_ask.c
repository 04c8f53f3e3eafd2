/* Records about a step's reviews, gates, verifications and replans. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/run/run_apply.h"

static msec until(msec now, msec delay_ms)
{
    return delay_ms == 0 ? MSEC_NEVER : msec_add(now, delay_ms);
}

/* The step is between two attempts, or before its first when `fresh`. */
static bool is_between(const struct run_step *step, const struct record *rec, bool fresh)
{
    return step->status == STEP_BACKOFF &&
           (fresh ? step->attempt == 0 : step->attempt == rec->attempt);
}

/* Time in review does not count. A limit that is used up begins again: whoever approves then wants
 * another attempt. */
static void stop_limit(struct run_step *step, msec now)
{
    const bool some = step->limit != MSEC_NEVER && step->limit > now && !MUTANT(LIMIT_ANEW);
    step->limit_left = some ? step->limit - now : 0;
    step->limit = MSEC_NEVER;
}

static void go_on_with_limit(struct run_step *step, msec now)
{
    step->limit = step->limit_left > 0 ? msec_add(now, step->limit_left) : MSEC_NEVER;
    step->limit_left = 0;
}

bool run_apply_waiting(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct rec_waiting *asks = REC(rec, waiting);
    bool fits = false;
    (void)plan;
    switch (asks->review) {
    case REVIEW_UNKNOWN_OUTCOME:
        fits =
            run_is_current_attempt(run, rec) || (is_between(step, rec, true) && step->doubt != 0);
        break;
    case REVIEW_APPROVAL:
    case REVIEW_INPUT:
        fits = run_is_current_attempt(run, rec);
        break;
    case REVIEW_BEFORE:
        fits = is_between(step, rec, false);
        break;
    case REVIEW_STEP:
        fits = is_between(step, rec, true);
        break;
    case REVIEW_FAILURE:
        fits = run_may_recover(run, rec) && step->status != STEP_WAITING;
        break;
    case REVIEW_PLAN:
    case REVIEW_PLANNING:
    case REVIEW_KIND_COUNT:
        break;
    }
    if (!fits || !run_review_follows(run, asks->serial)) {
        return false;
    }
    run_spend(run, step, &rec->usage);
    run_step_move(run, step, STEP_WAITING, PHASE_EXECUTE);
    step->review_serial = ++run->reviews;
    step->review = (uint8_t)asks->review;
    step->error_class = (uint8_t)asks->error_class;
    step->deadline = until(rec->now, asks->delay_ms);
    stop_limit(step, rec->now);
    return true;
}

bool run_apply_decided(struct run *run, const struct plan *plan, const struct record *rec)
{
    const enum review_decision decision = REC(rec, decided)->decision;
    const uint32_t serial = REC(rec, decided)->serial;
    if ((unsigned)decision >= DECISION_COUNT) {
        return false;
    }
    if (rec->step == STEP_NONE) {
        const uint8_t bits = 1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING;
        if ((run->paused & bits) == 0 || (serial != 0 && serial != run->plan_review)) {
            return false;
        }
        if ((run->paused & 1u << PAUSE_SIGNOFF) != 0 && decision == DECISION_APPROVE) {
            run->signed_off = run->revision;
        }
        run->paused &= (uint8_t)~bits;
        run->review_deadline = MSEC_NEVER;
        run_renew_questions(run, plan, rec->now);
        return true;
    }
    struct run_step *step = &run->steps[rec->step];
    if (step->status != STEP_WAITING || (serial != 0 && serial != step->review_serial)) {
        return false;
    }
    /* After a rejection, a skip, or the approval of a human_review the end of the step is the next
     * record. */
    if (decision == DECISION_APPROVE && step->review != REVIEW_STEP) {
        run_step_move(run, step, STEP_BACKOFF, run_next_phase(plan, step));
        step->deadline = rec->now;
        go_on_with_limit(step, rec->now);
        run_grant(step);
        step->doubt = 0;
        /* Before the first attempt it may be about a gate. */
        if (step->review == REVIEW_BEFORE || step->review == REVIEW_UNKNOWN_OUTCOME ||
            (step->review != REVIEW_INPUT && step->attempt > 0)) {
            step->did = (uint8_t)((step->did & ~STEP_MUST_ASK) | STEP_DID_APPROVE);
        }
    }
    return true;
}

static void begin_question(struct run *run, struct run_step *step, enum step_phase phase,
                           msec deadline)
{
    run_step_move(run, step, STEP_CHECKING, phase);
    step->ask++;
    step->deadline = deadline;
}

bool run_apply_checking(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const bool begun = run_may_recover(run, rec) && step->attempt > 0 &&
                       step->status != STEP_CHECKING && step->ask < UINT16_MAX;
    const struct rec_checking *asks = REC(rec, checking);
    (void)plan;
    if (!begun || asks->phase != PHASE_VERIFY) {
        return false;
    }
    run_spend(run, step, &rec->usage);
    begin_question(run, step, PHASE_VERIFY, until(rec->now, asks->delay_ms));
    step->result = asks->result;
    return true;
}

bool run_apply_gate_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    (void)plan;
    if (!is_between(step, rec, true) || step->ask == UINT16_MAX) {
        return false;
    }
    begin_question(run, step, PHASE_GATE, until(rec->now, REC(rec, timed)->delay_ms));
    return true;
}

static bool is_asked(const struct run_step *step, enum step_phase phase)
{
    return step->status == STEP_CHECKING && step->phase == phase;
}

bool run_apply_gate_passed(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    (void)plan;
    if (!is_asked(step, PHASE_GATE)) {
        return false;
    }
    run_step_move(run, step, STEP_BACKOFF, PHASE_EXECUTE);
    step->deadline = rec->now;
    step->did |= STEP_DID_GATE;
    run_usage_add(&run->usage, &rec->usage);
    return true;
}

bool run_apply_gate_error(struct run *run, const struct plan *plan, const struct record *rec)
{
    return plan->steps[rec->step].rules->policy.gate_closed && !MUTANT(GATE_NEVER_CLOSED)
               ? run_apply_gate_failed(run, plan, rec)
               : run_apply_gate_passed(run, plan, rec);
}

bool run_apply_gate_failed(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (!is_asked(&run->steps[rec->step], PHASE_GATE)) {
        return false;
    }
    run_usage_add(&run->usage, &rec->usage);
    return true;
}

bool run_apply_verification(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    (void)plan;
    if (!run_may_recover(run, rec) || step->status == STEP_WAITING) {
        return false;
    }
    run_spend(run, step, &rec->usage);
    return true;
}

bool run_apply_replan_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    if (!run_may_recover(run, rec) || is_asked(step, PHASE_REPLAN) ||
        plan->replan.agent_id.len == 0 || step->ask == UINT16_MAX || step->replans == UINT8_MAX) {
        return false;
    }
    const msec asked = msec_add(rec->now, REC(rec, replan_started)->delay_ms);
    run_spend(run, step, &rec->usage);
    begin_question(run, step, PHASE_REPLAN,
                   plan->replan.timeout_ms == 0 ? MSEC_NEVER
                                                : msec_add(asked, plan->replan.timeout_ms));
    step->error_class = (uint8_t)REC(rec, replan_started)->error_class;
    step->replans++;
    run->replans++;
    return true;
}

/* Only a replan without a plan; run_revise() applies the others. */
bool run_apply_replan_finished(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (!is_asked(&run->steps[rec->step], PHASE_REPLAN) || REC(rec, revision)->ok) {
        return false;
    }
    run_usage_add(&run->usage, &rec->usage);
    run_spend_replan(run, &rec->usage);
    return true;
}
