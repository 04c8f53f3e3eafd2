/* Reviews of steps, sign-offs of plans, and their timeouts. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* No person sees a review of a job, and another plan waits for it: the job fails. */
static void job_fails(struct core *c, struct core_run *entry, uint32_t step, enum review_kind kind,
                      const struct failure *why)
{
    struct failure f = *why;
    if (kind == REVIEW_INPUT || kind == REVIEW_APPROVAL) {
        f.error_class = CLASS_VALIDATION_ERROR;
        f.text = kind == REVIEW_INPUT
                     ? STR_LIT("The agent needs input from a person, which nobody gives for this")
                     : STR_LIT("The agent needs approval by a person, which nobody gives for this");
    }
    core_fail_by(c, entry, step, &f, ON_FAILURE_ABORT);
}

void core_step_waits(struct core *c, struct core_run *entry, uint32_t step, enum review_kind kind,
                     const struct failure *why, struct doc data)
{
    if (entry->run->cancelling) {
        core_stopped(c, entry, step, STOP_ACKNOWLEDGED, why);
        return;
    }
    if (entry->plan->job != JOB_NONE && kind != REVIEW_STEP && kind != REVIEW_BEFORE) {
        job_fails(c, entry, step, kind, why);
        return;
    }
    const struct run_step *state = &entry->run->steps[step];
    const struct holder who = core_holder(c, entry, step);
    core_unlink(c, entry, step);
    core_record(c, entry,
                (struct record){
                    REC_INIT(STEP_WAITING, waiting, .review = kind, .error_class = why->error_class,
                             .delay_ms = entry->plan->steps[step].rules->policy.approval_timeout_ms,
                             .data = data, .serial = entry->run->reviews + 1),
                    .step = step, .attempt = state->attempt, .agent = state->agent,
                    .usage = why->usage, .text = why->text});
    core_set_due(c, entry, step, MUTANT(REVIEW_FOR_EVER) ? MSEC_NEVER : state->deadline);
    if (why->cancel) {
        core_emit_cancel(c, entry, step, &who, why->text);
    }
}

/* A decision is about the review with the serial that the person saw, and about no later one. */
static bool is_about(const struct core_event *ev, uint32_t serial)
{
    return ev->attempt == serial || MUTANT(STALE_DECISION);
}

static enum core_reject check_decision(const struct core_event *ev, const struct core_run *entry)
{
    const enum review_decision decision = CORE_EV(ev, decide)->decision;
    const struct core_new_plan *next = &CORE_EV(ev, decide)->next;
    if (entry == NULL) {
        return REJECT_UNKNOWN_RUN;
    }
    if (entry->run->cancelling) {
        return REJECT_CANCELLING;
    }
    if ((unsigned)decision >= DECISION_COUNT) {
        return REJECT_NOT_WAITING;
    }
    if (ev->step == STEP_NONE) {
        const uint32_t asks = 1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING;
        const bool planning = (entry->run->paused & 1u << PAUSE_PLANNING) != 0;
        const bool fits = next->plan == NULL || (planning && decision == DECISION_APPROVE &&
                                                 core_brings_plan(entry, next));
        const bool waits = (entry->run->paused & asks) != 0;
        if (waits && !is_about(ev, entry->run->plan_review)) {
            return REJECT_STALE_REVIEW;
        }
        return waits && fits && decision != DECISION_SKIP ? REJECT_NONE : REJECT_NOT_WAITING;
    }
    if (ev->step >= entry->run->n_steps) {
        return REJECT_NOT_WAITING;
    }
    const struct run_step *state = &entry->run->steps[ev->step];
    if (step_is_final(state->status)) {
        return REJECT_FINAL;
    }
    if (state->status != STEP_WAITING) {
        return REJECT_NOT_WAITING;
    }
    if (!is_about(ev, state->review_serial)) {
        return REJECT_STALE_REVIEW;
    }
    /* Approvals do not count against max_retries. At these limits only "reject" and "skip" are
     * left. */
    const bool enough = state->attempt >= LIMIT_ATTEMPTS || state->ask >= CORE_ASKS_MAX;
    return decision == DECISION_APPROVE && enough ? REJECT_TOO_MUCH : REJECT_NONE;
}

static void record_decision(struct core *c, struct core_run *entry, const struct core_event *ev,
                            enum review_kind review)
{
    const struct run_step *step = ev->step != STEP_NONE ? &entry->run->steps[ev->step] : NULL;
    const struct core_ev_decide *decided = CORE_EV(ev, decide);
    const bool brings = decided->next.plan != NULL;
    core_record(
        c, entry,
        (struct record){
            REC_INIT(REVIEW_DECIDED, decided, .review = review, .decision = decided->decision,
                     .digest = decided->digest, .by = decided->by, .shown = decided->shown,
                     .revision = review == REVIEW_PLAN ? entry->run->revision : 0,
                     .serial = step != NULL ? step->review_serial : entry->run->plan_review,
                     .result = brings ? decided->next.document : decided->result),
            .step = ev->step, .attempt = step != NULL ? step->attempt : 0,
            .agent = step != NULL ? step->agent : 0, .text = ev->text});
}

static void decide_signoff(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    if ((entry->run->paused & 1u << PAUSE_PLANNING) != 0) {
        record_decision(c, entry, ev, REVIEW_PLANNING);
        core_planning_decided(c, entry, ev);
        return;
    }
    record_decision(c, entry, ev, REVIEW_PLAN);
    const bool approved = CORE_EV(ev, decide)->decision == DECISION_APPROVE;
    if (approved && entry->run->status == PLAN_PENDING) {
        core_start_run(c, entry);
        return;
    }
    if (approved) { /* of a change */
        core_rearm(c, entry);
        core_unpark(c, entry); /* also the question to the replanner, as in core_on_resume */
        core_advance(c, entry);
        return;
    }
    core_end_plan(c, entry,
                  &(struct plan_end){.status = PLAN_CANCELLED,
                                     .outcome = OUTCOME_FAILED,
                                     .failure = PLAN_FAILURE_REJECTED,
                                     .reason = REASON_PLAN_ABORTED,
                                     .step = STEP_NONE,
                                     .text = ev->text.len > 0 ? ev->text
                                                              : STR_LIT("Rejected by a reviewer")});
}

void core_signoff_timeout(struct core *c, struct core_run *entry)
{
    const struct str text =
        core_text_ms(c, "No decision within ", entry->plan->signoff_timeout_ms, "ms: denied");
    decide_signoff(c, entry,
                   &(struct core_event){CORE_EV_INIT(DECIDE, decide, .decision = DECISION_REJECT,
                                                     .by = {.via = STR_LIT("supervisor")}),
                                        .step = STEP_NONE, .text = text});
}

static void rejected(struct core *c, struct core_run *entry, uint32_t step, enum review_kind review,
                     enum step_reason reason, struct str text)
{
    const struct run_step *state = &entry->run->steps[step];
    const enum on_failure policy = entry->plan->steps[step].rules->policy.on_failure;
    struct failure f = {.error_class = CLASS_PERMISSION_DENIED, .text = text, .reason = reason};
    if (review == REVIEW_UNKNOWN_OUTCOME) {
        f.error_class = CLASS_REPLY_LOST;
    } else if (review == REVIEW_FAILURE) {
        f.error_class = state->error_class;
    }
    core_fail_by(c, entry, step, &f, policy == ON_FAILURE_ASK ? ON_FAILURE_ABORT : policy);
}

static void approved(struct core *c, struct core_run *entry, const struct core_event *ev,
                     enum review_kind review)
{
    if (review == REVIEW_STEP) {
        core_step_ended(
            c, entry,
            (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_COMPLETED,
                                     .result = CORE_EV(ev, decide)->result),
                            .step = ev->step});
        return;
    }
    core_continue(c, entry, ev->step);
}

void core_on_decide(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    const enum core_reject why = check_decision(ev, entry);
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return;
    }
    if (ev->step == STEP_NONE) {
        decide_signoff(c, entry, ev);
        return;
    }
    const enum review_kind review = entry->run->steps[ev->step].review;
    core_set_due(c, entry, ev->step, MSEC_NEVER);
    record_decision(c, entry, ev, review);
    switch (CORE_EV(ev, decide)->decision) {
    case DECISION_APPROVE:
        approved(c, entry, ev, review);
        break;
    case DECISION_SKIP:
        core_step_ended(
            c, entry,
            (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_SKIPPED,
                                     .reason = REASON_USER_SKIP),
                            .step = ev->step, .text = ev->text});
        break;
    case DECISION_REJECT:
        rejected(c, entry, ev->step, review, REASON_REJECTED,
                 ev->text.len > 0 ? ev->text : STR_LIT("Rejected by a reviewer"));
        break;
    case DECISION_COUNT:
        ASSERT(!"a decision");
        break;
    }
}

void core_review_timeout(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    const enum review_kind review = state->review;
    const struct str text =
        core_text_ms(c, "No decision within ",
                     entry->plan->steps[step].rules->policy.approval_timeout_ms, "ms: denied");
    const struct core_event ev = {CORE_EV_INIT(DECIDE, decide, .decision = DECISION_REJECT,
                                               .by = {.via = STR_LIT("supervisor")}),
                                  .step = step, .attempt = state->review_serial, .text = text};
    core_set_due(c, entry, step, MSEC_NEVER);
    record_decision(c, entry, &ev, review);
    rejected(c, entry, step, review, REASON_APPROVAL_TIMEOUT, text);
}
