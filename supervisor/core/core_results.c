/* What instances and people say about an attempt. */
#include "protocol/base/assert.h"
#include "supervisor/core/core_internal.h"

/*
 * Whether the event comes from the instance that has the attempt. A current incarnation is known by
 * its slot. Of one that was replaced or is gone only the word about the very epoch that got the
 * attempt counts, and only when the shell vouches for it: by the lane that it came over, or by the
 * instance's id.
 */
static enum core_reject check_sender(const struct core *c, const struct core_event *ev,
                                     const struct core_run *row)
{
    const struct run_step *state = &row->run->steps[ev->step];
    struct instance_view view;
    if (!uuid_is_nil(ev->instance) && !uuid_eq(ev->instance, state->instance)) {
        return REJECT_FOREIGN;
    }
    if (ev->epoch < state->epoch) {
        return REJECT_STALE_EPOCH;
    }
    if (registry_is_current(c->registry, ev->slot, ev->epoch)) {
        const bool live = registry_instance_view(c->registry, ev->slot, &view);
        return live && uuid_eq(view.id, state->instance) ? REJECT_NONE : REJECT_FOREIGN;
    }
    const bool over_its_lane = ev->lane != LANE_NONE && ev->slot == row->soft[ev->step].slot;
    const bool vouched = over_its_lane || !uuid_is_nil(ev->instance);
    return vouched && ev->epoch == state->epoch ? REJECT_NONE : REJECT_STALE_EPOCH;
}

struct core_run *core_attempt(struct core *c, const struct core_event *ev)
{
    struct core_run *row = core_find_run(c, ev->run);
    enum core_reject why = REJECT_NONE;
    if (row == NULL) {
        why = REJECT_UNKNOWN_RUN;
    } else if (ev->step >= row->run->n_steps) {
        why = REJECT_STALE_ATTEMPT;
    } else {
        const struct run_step *state = &row->run->steps[ev->step];
        const bool out =
            row->soft[ev->step].list == LIST_HELD || row->soft[ev->step].list == LIST_UNKNOWN;
        if (step_is_final(state->status)) {
            why = REJECT_FINAL;
        } else if (!out || ev->attempt != state->attempt) {
            why = REJECT_STALE_ATTEMPT;
        } else {
            why = check_sender(c, ev, row);
        }
    }
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return NULL;
    }
    return row;
}

void core_lane_answered(struct core *c, const struct core_event *ev)
{
    struct instance_view view;
    if (ev->lane == LANE_NONE || !registry_is_current(c->registry, ev->slot, ev->epoch) ||
        !registry_instance_view(c->registry, ev->slot, &view) || ev->lane >= view.capacity) {
        return;
    }
    registry_release(c->registry, ev->slot, ev->lane);
    core_mark_dirty(c, view.agent);
}

void core_on_lane_free(struct core *c, const struct core_event *ev)
{
    if (!registry_is_current(c->registry, ev->slot, ev->epoch)) {
        core_reject(c, ev, REJECT_STALE_EPOCH);
        return;
    }
    core_alive(c, ev);
    core_lane_answered(c, ev);
}

/* An unsafe step runs again after a failure only when the agent itself said that this is fine. */
static bool worth_retrying(const struct core_event *ev, const struct step_policy *policy)
{
    if (ev->retryable_given) {
        return ev->retryable;
    }
    return policy->effects != EFFECTS_UNSAFE && err_class_retryable(ev->error_class);
}

void core_on_result(struct core *c, const struct core_event *ev)
{
    core_alive(c, ev);
    core_lane_answered(c, ev);
    struct core_run *row = core_attempt(c, ev);
    if (row == NULL) {
        return;
    }
    const struct failure f = {.error_class = ev->error_class,
                              .text = ev->text,
                              .retryable = worth_retrying(ev, &row->plan->steps[ev->step].policy),
                              .retry_after_ms = ev->retry_after_ms,
                              .usage = ev->usage};
    switch (ev->outcome) {
    case STEP_OUTCOME_COMPLETED:
        core_step_over(c, row,
                       (struct record){.step = ev->step,
                                       .status = STEP_COMPLETED,
                                       .result = ev->result,
                                       .usage = ev->usage});
        break;
    case STEP_OUTCOME_FAILED:
        core_attempt_failed(c, row, ev->step, &f);
        break;
    case STEP_OUTCOME_NEEDS_INPUT:
        core_step_waits(c, row, ev->step, REVIEW_INPUT, &f, ev->data);
        break;
    case STEP_OUTCOME_NEEDS_APPROVAL:
        core_step_waits(c, row, ev->step, REVIEW_APPROVAL, &f, ev->data);
        break;
    case STEP_OUTCOME_HANDOFF:
    case STEP_OUTCOME_COUNT:
        ASSERT(!"a step outcome");
        break;
    }
}

void core_on_progress(struct core *c, const struct core_event *ev)
{
    core_alive(c, ev);
    struct core_run *row = core_attempt(c, ev);
    if (row == NULL) {
        return;
    }
    struct soft_step *soft = &row->soft[ev->step];
    if (c->now - soft->since >= 1000) {
        soft->since = c->now;
        soft->progress = 0;
    }
    if (soft->progress >= CORE_PROGRESS_PER_SECOND) {
        core_reject(c, ev, REJECT_TOO_MUCH);
        return;
    }
    soft->progress++;
    core_record(c, row,
                (struct record){.type = REC_STEP_PROGRESS,
                                .step = ev->step,
                                .attempt = ev->attempt,
                                .agent = row->plan->steps[ev->step].agent,
                                .instance = row->run->steps[ev->step].instance,
                                .epoch = row->run->steps[ev->step].epoch,
                                .n = ev->n,
                                .percent = ev->percent,
                                .text = ev->text,
                                .data = ev->data});
}

/* ---- people ---- */

static enum core_reject check_decision(const struct core_event *ev, const struct core_run *row)
{
    if (row == NULL) {
        return REJECT_UNKNOWN_RUN;
    }
    if (ev->step >= row->run->n_steps || (unsigned)ev->decision >= DECISION_COUNT) {
        return REJECT_NOT_WAITING;
    }
    const struct run_step *state = &row->run->steps[ev->step];
    if (step_is_final(state->status)) {
        return REJECT_FINAL;
    }
    if (state->status != STEP_WAITING) {
        return REJECT_NOT_WAITING;
    }
    if (ev->attempt != state->attempt) {
        return REJECT_STALE_ATTEMPT;
    }
    /* Approvals do not count against max_retries, but there is an end to everything: only "reject"
     * is left. */
    return ev->decision == DECISION_APPROVE && state->attempt >= LIMIT_ATTEMPTS ? REJECT_TOO_MUCH
                                                                                : REJECT_NONE;
}

void core_on_decide(struct core *c, const struct core_event *ev)
{
    struct core_run *row = core_find_run(c, ev->run);
    const enum core_reject why = check_decision(ev, row);
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return;
    }
    const struct run_step *state = &row->run->steps[ev->step];
    const enum review_kind review = state->review;
    core_record(c, row,
                (struct record){.type = REC_REVIEW_DECIDED,
                                .step = ev->step,
                                .attempt = ev->attempt,
                                .agent = row->plan->steps[ev->step].agent,
                                .review = review,
                                .decision = ev->decision,
                                .text = ev->text});
    if (ev->decision == DECISION_APPROVE) {
        core_enqueue(c, row, ev->step, false);
        return;
    }
    const struct failure f = {
        .error_class =
            review == REVIEW_UNKNOWN_OUTCOME ? CLASS_REPLY_LOST : CLASS_PERMISSION_DENIED,
        .text = ev->text.len > 0 ? ev->text : STR_LIT("Rejected by a reviewer"),
        .reason = REASON_REJECTED};
    core_give_up(c, row, ev->step, &f);
}
