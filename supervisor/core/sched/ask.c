/* Questions about a step: gates and verifications by agents, and what comes before the first
 * attempt. Reviews by people: review.c. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* ---- before the first attempt ---- */

static bool has_gate(const struct core_run *entry, uint32_t step)
{
    /* Without dependencies there are no results to judge. */
    return entry->plan->steps[step].rules->gate_with.len > 0 && run_deps(entry->plan, step) > 0;
}

void core_begin_without_attempt(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    if (state->status != STEP_READY) {
        return;
    }
    core_unlink(c, entry, step);
    core_record(c, entry,
                (struct record){
                    .type = REC_STEP_STARTED, .step = step, .attempt = 1, .agent = state->agent});
}

void core_continue(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct plan_step *about = &entry->plan->steps[step];
    const struct run_step *state = &entry->run->steps[step];
    const struct failure nothing = {0};
    const struct failure doubt = {
        .error_class = CLASS_REPLY_LOST,
        .text = STR_LIT("The plan before this one got no answer to it that counts")};
    if ((state->did & STEP_MUST_ASK) != 0 && !MUTANT(APPROVED_FOR_ANOTHER)) {
        core_step_waits(c, entry, step, REVIEW_BEFORE, &nothing, (struct doc){0});
    } else if (state->doubt != 0 && !MUTANT(DOUBT_UNASKED)) {
        core_step_waits(c, entry, step, REVIEW_UNKNOWN_OUTCOME, &doubt, (struct doc){0});
    } else if (state->attempt > 0) {
        core_enqueue(c, entry, step, false);
    } else if (has_gate(entry, step) && (state->did & STEP_DID_GATE) == 0) {
        core_unlink(c, entry, step);
        core_record(c, entry,
                    (struct record){REC_INIT(GATE_STARTED, timed,
                                             .delay_ms = about->rules->policy.check_timeout_ms),
                                    .step = step, .agent = about->rules->gate_agent});
        core_enqueue(c, entry, step, false);
    } else if (about->type == STEP_TYPE_REVIEW) {
        core_step_waits(c, entry, step, REVIEW_STEP, &nothing, (struct doc){0});
    } else if (about->rules->policy.requires_approval && (state->did & STEP_DID_APPROVE) == 0) {
        core_step_waits(c, entry, step, REVIEW_BEFORE, &nothing, (struct doc){0});
    } else if (about->type == STEP_TYPE_WAIT) {
        core_sleep(c, entry, step);
    } else {
        core_enqueue(c, entry, step, false);
    }
}

bool core_prepare(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct plan_step *about = &entry->plan->steps[step];
    if (!plan_step_is_agentless(about) && !about->rules->policy.requires_approval &&
        !has_gate(entry, step) && entry->run->steps[step].doubt == 0) {
        return false;
    }
    core_begin_without_attempt(c, entry, step);
    core_continue(c, entry, step);
    return true;
}

/* ---- results ---- */

void core_accept(struct core *c, struct core_run *entry, uint32_t step, struct blob_ref result,
                 const struct usage *usage, enum step_stop stop)
{
    const struct plan_step *about = &entry->plan->steps[step];
    const struct run_step *state = &entry->run->steps[step];
    if (about->rules->verify_with.len == 0 || entry->run->cancelling) {
        core_step_ended(
            c, entry,
            (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_COMPLETED,
                                     .stop = stop, .result = result),
                            .step = step, .usage = *usage});
        return;
    }
    core_unlink(c, entry, step);
    core_record(
        c, entry,
        (struct record){REC_INIT(STEP_CHECKING, checking, .phase = PHASE_VERIFY, .result = result,
                                 .delay_ms = about->rules->policy.check_timeout_ms),
                        .step = step, .attempt = state->attempt,
                        .agent = about->rules->verify_agent, .usage = *usage});
    core_enqueue(c, entry, step, false);
}

static void record_gate(struct core *c, struct core_run *entry, enum record_type type,
                        const struct core_event *ev, struct str text)
{
    struct record rec = {.type = type,
                         .step = ev->step,
                         .agent = entry->plan->steps[ev->step].rules->gate_agent,
                         .usage = CORE_EV(ev, result)->usage,
                         .text = text};
    REC(&rec, gate)->data = CORE_EV(ev, result)->data;
    core_unlink(c, entry, ev->step);
    core_record(c, entry, rec);
}

static void gate_answered(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    if (CORE_EV(ev, result)->passed) {
        record_gate(c, entry, REC_GATE_PASSED, ev, ev->text);
        core_continue(c, entry, ev->step);
        return;
    }
    record_gate(c, entry, REC_GATE_FAILED, ev, ev->text);
    const struct failure f = {.error_class = CLASS_VERIFICATION_FAILED,
                              .text = ev->text.len > 0 ? ev->text : STR_LIT("Quality gate failed"),
                              .reason = REASON_GATE_FAILED};
    core_give_up(c, entry, ev->step, &f);
}

/* The result that waited for its verification becomes the step's. */
static void verified(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    core_step_ended(
        c, entry,
        (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_COMPLETED,
                                 .result = entry->run->steps[ev->step].result),
                        .step = ev->step, .usage = CORE_EV(ev, result)->usage});
}

static void verify_answered(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    if (CORE_EV(ev, result)->passed || MUTANT(VERDICT_IGNORED)) {
        verified(c, entry, ev);
        return;
    }
    const struct failure f = {.text = ev->text.len > 0 ? ev->text : STR_LIT("Verification failed"),
                              .retryable = true,
                              .usage = CORE_EV(ev, result)->usage};
    core_verification_failed(c, entry, ev->step, &f);
}

void core_check_error(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct step_policy *policy = &entry->plan->steps[ev->step].rules->policy;
    const struct run_step *state = &entry->run->steps[ev->step];
    const struct str text = ev->text.len > 0 ? ev->text : STR_LIT("the agent could not answer");
    const struct usage *usage = &CORE_EV(ev, result)->usage;
    struct failure f = {.error_class = CLASS_VERIFICATION_FAILED, .usage = *usage};
    switch ((enum step_phase)state->phase) {
    case PHASE_GATE:
        record_gate(c, entry, REC_GATE_ERROR, ev, text);
        if (!policy->gate_closed || MUTANT(GATE_NEVER_CLOSED)) {
            core_continue(c, entry, ev->step);
            return;
        }
        f.text = core_text_pair(c, "Quality gate error: ", text);
        f.reason = REASON_GATE_FAILED;
        f.usage = (struct usage){0};
        core_give_up(c, entry, ev->step, &f);
        return;
    case PHASE_VERIFY:
        if (policy->verify_open) {
            verified(c, entry, ev);
            return;
        }
        f.text = core_text_pair(c, "Verifier error: ", text);
        core_verification_failed(c, entry, ev->step, &f);
        return;
    case PHASE_REPLAN:
        core_replan_failed(c, entry, ev->step, PLAN_FAILURE_REPLAN, text, usage);
        return;
    case PHASE_EXECUTE:
    case PHASE_SEARCH:
    case STEP_PHASE_COUNT:
        break;
    }
    ASSERT(!"a question");
}

void core_check_answered(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const enum step_phase phase = entry->run->steps[ev->step].phase;
    const struct core_ev_result *answer = CORE_EV(ev, result);
    if (answer->outcome != STEP_OUTCOME_COMPLETED && !(phase == PHASE_REPLAN && answer->invalid)) {
        core_check_error(c, entry, ev);
    } else if (phase == PHASE_GATE) {
        gate_answered(c, entry, ev);
    } else if (phase == PHASE_VERIFY) {
        verify_answered(c, entry, ev);
    } else {
        core_replan_answered(c, entry, ev);
    }
}

void core_check_failed(struct core *c, struct core_run *entry, uint32_t step, struct str text)
{
    core_check_error(
        c, entry,
        &(struct core_event){CORE_EV_INIT(RESULT, result, .outcome = STEP_OUTCOME_FAILED),
                             .step = step, .text = text});
}

void core_check_timeout(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct holder who = core_holder(c, entry, step);
    const bool held = entry->sched[step].list == LIST_HELD;
    if (held) {
        core_emit_cancel(c, entry, step, &who, STR_LIT("Timeout"));
    }
    core_unlink(c, entry, step);
    core_check_failed(c, entry, step, STR_LIT("no answer in time"));
}

void core_check_lost(struct core *c, struct core_run *entry, uint32_t step)
{
    struct sched_step *sched = &entry->sched[step];
    if (entry->run->cancelling) {
        core_stopped(c, entry, step, STOP_NONE, &(struct failure){0});
    } else if (++sched->unsent < CORE_UNSENT_MAX) {
        core_enqueue(c, entry, step, true); /* asking again is safe: a question only reads */
    } else {
        core_unlink(c, entry, step);
        core_check_failed(c, entry, step, STR_LIT("the answer was lost again and again"));
    }
}
