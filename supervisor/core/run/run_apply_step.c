/* Records about attempts. */
#include "supervisor/core/run/run_apply.h"

#include <string.h>

#include "protocol/base/utf8.h"
#include "supervisor/core/mutant.h"

static msec after(msec now, msec ms)
{
    return ms == 0 ? MSEC_NEVER : msec_add(now, ms);
}

static void set_pause_asked(struct run_step *step, bool asked)
{
    step->did = (uint8_t)((step->did & ~STEP_PAUSE_ASKED) | (asked ? STEP_PAUSE_ASKED : 0));
}

static void give_attempt(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct step_policy *policy = &plan->steps[rec->step].rules->policy;
    const struct rec_assigned *to = REC(rec, assigned);
    /* Only an attempt that was with an instance becomes unknown: its time goes on. */
    step->adopted = step->status == STEP_UNKNOWN ? 1 : 0;
    if (step->adopted == 0 || MUTANT(CLOCK_ANEW)) {
        step->attempt_end = after(rec->now, policy->timeout_ms);
    }
    run_step_move(run, step, STEP_IN_PROGRESS, to->phase);
    step->attempt = (uint16_t)rec->attempt;
    step->agent = rec->agent;
    step->visited = run_visit(plan, step->visited, rec->agent);
    step->instance = to->instance;
    step->process = to->process;
    step->epoch = to->epoch;
    if (step->limit == MSEC_NEVER) {
        step->limit = after(rec->now, policy->limit_ms);
    }
    step->deadline = step->attempt_end < step->limit ? step->attempt_end : step->limit;
    run->last_agent = rec->agent;
}

bool run_apply_condition(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    if (step->status != STEP_READY || step->judged != 0 ||
        plan->steps[rec->step].rules->when.ptr == NULL) {
        return false;
    }
    step->judged = REC(rec, condition)->failed ? 2 : 1;
    return true;
}

bool run_apply_doubted(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    if ((step->status != STEP_PENDING && step->status != STEP_READY) || step->doubt != 0 ||
        !plan_step_has_agent(&plan->steps[rec->step])) {
        return false;
    }
    step->doubt = 1;
    return true;
}

bool run_apply_wait_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const msec delay = REC(rec, timed)->delay_ms;
    const struct plan_wait *wait = plan->steps[rec->step].wait;
    if (step->status != STEP_BACKOFF || wait == NULL) {
        return false;
    }
    run_step_move(run, step, STEP_SLEEPING, PHASE_EXECUTE);
    /* A date is a matter of the wall clock, which a run does not know. */
    step->deadline = wait->what == WAIT_FOR_DATE   ? MSEC_NEVER
                     : wait->what == WAIT_FOR_TIME ? msec_add(rec->now, delay)
                                                   : after(rec->now, delay);
    return true;
}

bool run_apply_signal(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (REC(rec, signal)->serial != run->signals + 1 || run->kept > LIMIT_SIGNALS_KEPT) {
        return false;
    }
    run->signals++;
    run->kept++;
    return true;
}

bool run_apply_step_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    if (step->status != STEP_READY || rec->attempt != 1 ||
        REC(rec, assigned)->phase != PHASE_EXECUTE ||
        (plan->steps[rec->step].rules->when.ptr != NULL && step->judged == 0)) {
        return false;
    }
    if (uuid_is_nil(
            REC(rec, assigned)->instance)) { /* a gate or a review comes before the first attempt */
        run_step_move(run, step, STEP_BACKOFF, PHASE_EXECUTE);
        step->deadline = rec->now;
    } else {
        give_attempt(run, plan, rec);
    }
    step->did |= STEP_DID_BEGIN;
    step->started = rec->now;
    run->current = rec->step;
    return true;
}

bool run_apply_child(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct step_policy *policy = &plan->steps[rec->step].rules->policy;
    const uint32_t next = step->attempt + (step->rounded != 0 ? 0u : 1u);
    if (step->status != STEP_BACKOFF || plan->steps[rec->step].type != STEP_TYPE_PLAN ||
        rec->attempt != next || rec->attempt > UINT16_MAX ||
        REC(rec, child)->round != step->round) {
        return false;
    }
    if (step->rounded == 0) {
        step->attempt_end = after(rec->now, policy->timeout_ms);
    }
    run_step_move(run, step, STEP_IN_PROGRESS, PHASE_EXECUTE);
    step->attempt = (uint16_t)rec->attempt;
    step->rounded = 0;
    if (step->limit == MSEC_NEVER) {
        step->limit = after(rec->now, policy->limit_ms);
    }
    step->deadline = step->attempt_end < step->limit ? step->attempt_end : step->limit;
    return true;
}

static bool begin_calls(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct rec_turn *turn = REC(rec, turn);
    if (!run_is_current_attempt(run, rec) || run_step_calls(step) ||
        plan->steps[rec->step].type == STEP_TYPE_PLAN || step->phase != PHASE_EXECUTE ||
        turn->n != step->turns + 1 || turn->calls == 0 || turn->calls > LIMIT_CALLS) {
        return false;
    }
    run_spend(run, step, &rec->usage);
    run_step_move(run, step, STEP_IN_PROGRESS, PHASE_EXECUTE);
    step->adopted = 0;
    step->attempt_end = MSEC_NEVER; /* the calls have times of their own */
    step->deadline = step->limit;
    step->turned = step->attempt;
    step->turns = turn->n;
    return true;
}

bool run_apply_turn(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct rec_turn *turn = REC(rec, turn);
    if (rec->type == REC_STEP_CALLS) {
        if (!begin_calls(run, plan, rec)) {
            return false;
        }
    } else if (run_step_calls(step) && rec->attempt == step->attempt && turn->n == step->turns) {
        run_usage_add(&run->usage, &rec->usage);
        run_step_move(run, step, STEP_BACKOFF, PHASE_EXECUTE);
        step->deadline = rec->now;
        set_pause_asked(step, false);
        run_grant(step);
    } else {
        return false;
    }
    step->transcript = turn->result.id;
    step->transcript_len = (uint32_t)turn->result.len;
    return true;
}

bool run_apply_round(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct rec_round *round = REC(rec, round);
    if (!run_is_current_attempt(run, rec) || plan->steps[rec->step].rules->loop.max == 0 ||
        round->n != step->round + 1) {
        return false;
    }
    run_usage_add(&run->usage, &rec->usage);
    run_step_move(run, step, STEP_BACKOFF, PHASE_EXECUTE);
    step->deadline = msec_add(rec->now, round->delay_ms);
    step->round = round->n;
    step->rounded = 1;
    step->result = round->result;
    return true;
}

bool run_apply_assigned(struct run *run, const struct plan *plan, const struct record *rec)
{
    const struct run_step *step = &run->steps[rec->step];
    const bool next = step->status == STEP_BACKOFF && rec->attempt == step->attempt + 1u &&
                      rec->attempt <= UINT16_MAX;
    if ((!next && !run_is_current_attempt(run, rec)) || REC(rec, assigned)->phase > PHASE_SEARCH) {
        return false;
    }
    give_attempt(run, plan, rec);
    return true;
}

/* An approval names the agent: it does not hold for another one. */
static void change_agent(struct run_step *step, const struct plan *plan, uint32_t agent)
{
    if ((step->did & STEP_DID_APPROVE) != 0 && step->agent != agent) {
        step->did = (uint8_t)((step->did & ~STEP_DID_APPROVE) | STEP_MUST_ASK);
    }
    step->agent = agent;
    step->visited = run_visit(plan, step->visited, agent);
}

bool run_apply_handoff(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    switch (REC(rec, handoff)->kind) {
    case HANDOFF_PLAN_STEP:
        if (step->status != STEP_IN_PROGRESS) {
            return false;
        }
        step->did |= STEP_DID_HANDOFF;
        break;
    case HANDOFF_AGENT:
        if (!run_is_current_attempt(run, rec) || step->hops == UINT8_MAX) {
            return false;
        }
        run_spend(run, step, &rec->usage);
        run_step_move(run, step, STEP_BACKOFF, PHASE_EXECUTE);
        step->deadline = rec->now;
        change_agent(step, plan, rec->agent);
        step->hops++;
        run_grant(step);
        break;
    case HANDOFF_FALLBACK:
        if (step->status != STEP_BACKOFF) {
            return false;
        }
        break;
    case HANDOFF_BACK:
        if (step->status != STEP_COMPLETED) {
            return false;
        }
        run->last_agent = rec->agent;
        break;
    case HANDOFF_KIND_COUNT:
        return false;
    }
    run->handoffs++;
    return true;
}

bool run_apply_progress(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    return run_is_current_attempt(run, rec);
}

bool run_apply_retry(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const bool verified = step->status == STEP_CHECKING && step->phase == PHASE_VERIFY &&
                          step->attempt == rec->attempt;
    if (!run_is_current_attempt(run, rec) && !verified) {
        return false;
    }
    run_spend(run, step, &rec->usage);
    run_step_move(run, step, STEP_BACKOFF, run_next_phase(plan, step));
    step->deadline = msec_add(rec->now, REC(rec, retry)->delay_ms);
    set_pause_asked(step, REC(rec, retry)->asked);
    step->error_class = (uint8_t)REC(rec, retry)->error_class;
    if (plan->steps[rec->step].rules->loop.max == 0) { /* the next round gets the one before */
        step->result = (struct blob_ref){0};
    }
    return true;
}

bool run_apply_unknown(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (!run_is_current_attempt(run, rec)) {
        return false;
    }
    struct run_step *step = &run->steps[rec->step];
    run_step_move(run, step, STEP_UNKNOWN, step->phase);
    step->deadline = msec_add(rec->now, REC(rec, assigned)->delay_ms);
    return true;
}

/* When the search fails, the step fails with its own error. */
static void keep_own_text(struct run *run, uint32_t step, struct str text)
{
    const size_t n = utf8_cut(text.ptr, text.len, STEP_OWN_TEXT);
    struct run_own_text *own = run_own_texts(run);
    struct run_own_text *to = NULL;
    for (uint32_t i = 0; i < run->own_texts && to == NULL; i++) {
        const bool is_free =
            own[i].step == STEP_NONE || step_is_final(run->steps[own[i].step].status);
        to = is_free ? &own[i] : NULL;
    }
    if (n > 0 && to != NULL) {
        *to = (struct run_own_text){.step = step, .n = (uint32_t)n};
        memcpy(to->text, text.ptr, n);
    }
}

bool run_apply_fallback(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct rec_fallback *instead = REC(rec, fallback);
    if (!run_may_recover(run, rec) || step->status == STEP_WAITING ||
        step->status == STEP_SLEEPING || (unsigned)instead->action >= FALLBACK_ACTION_COUNT) {
        return false;
    }
    const bool search = instead->action == FALLBACK_SEARCH;
    const bool wait = instead->action == FALLBACK_WAIT;
    run_spend(run, step, &rec->usage);
    run_step_move(run, step, STEP_BACKOFF,
                  search ? PHASE_SEARCH
                  : wait ? run_next_phase(plan, step)
                         : PHASE_EXECUTE);
    step->deadline = msec_add(rec->now, instead->delay_ms);
    set_pause_asked(step, instead->asked);
    step->error_class = (uint8_t)instead->error_class;
    step->result = (struct blob_ref){0};
    run_grant(step);
    if (wait) {
        step->did |= STEP_DID_WAIT;
    } else {
        if (search) {
            keep_own_text(run, rec->step, rec->text);
        }
        change_agent(step, plan, rec->agent);
        step->did |= search ? STEP_DID_SEARCH : 0;
        step->alternative = (uint8_t)(step->alternative + (search ? 0 : 1));
    }
    run->fallbacks++;
    return true;
}

bool run_apply_rejected(struct run *run, const struct plan *plan, const struct record *rec)
{
    const enum step_phase phase = REC(rec, assigned)->phase;
    (void)plan;
    /* It changes nothing but what was spent: the work was done. */
    run_usage_add(&run->usage, &rec->usage);
    if (phase == PHASE_REPLAN) {
        run_spend_replan(run, &rec->usage);
    } else if (phase <= PHASE_SEARCH && rec->step != STEP_NONE) {
        run_mark_paid(&run->steps[rec->step], rec->attempt, &rec->usage);
    }
    return true;
}

bool run_apply_step_completed(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    const struct rec_step_completed *end = REC(rec, step_completed);
    const bool begun = step->status != STEP_PENDING && step->status != STEP_READY;
    if (!step_is_final(end->status) || !run_move_allowed(step->status, end->status) ||
        (unsigned)end->reason >= STEP_REASON_COUNT || (unsigned)end->error_class >= CLASS_COUNT ||
        (end->status == STEP_COMPLETED &&
         (end->doubt || begun != (end->reason != REASON_REUSED))) ||
        (end->signal != 0 && (step->status != STEP_SLEEPING || run->kept == 0))) {
        return false;
    }
    run->kept -= end->signal != 0 ? 1 : 0;
    const bool replan = step->status == STEP_CHECKING && step->phase == PHASE_REPLAN;
    if (end->status == STEP_COMPLETED && end->stop == STOP_FENCED) {
        run_usage_add(&run->usage, &rec->usage); /* of an earlier attempt than the one under way */
    } else {
        run_spend(run, step, &rec->usage);
    }
    run_step_move(run, step, end->status, PHASE_EXECUTE);
    if ((step->did & STEP_DID_BEGIN) != 0) {
        run->ends++;
        step->ended = MUTANT(UNDO_IN_PLAN_ORDER) ? rec->step + 1 : run->ends;
    }
    step->reason = (uint8_t)end->reason;
    step->error_class = (uint8_t)end->error_class;
    step->result = end->result;
    step->doubt = end->doubt ? 1 : 0;
    step->limit = MSEC_NEVER;
    if (replan) {
        run_spend_replan(run, &rec->usage);
        run_renew_questions(run, plan, rec->now);
    }
    run->last_done = end->status == STEP_COMPLETED ? rec->step : run->last_done;
    run_settle_dependents(run, plan, rec->step);
    return true;
}
