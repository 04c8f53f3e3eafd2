/* Results and progress of attempts. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* Whether the event comes from the instance that has the attempt. A current incarnation is known by
 * its slot. From a replaced or gone one only the epoch that got the attempt counts, and only when
 * the caller identifies the sender: by the lane of the event, or by the instance's id. */
static enum core_reject check_sender(const struct core *c, const struct core_event *ev,
                                     const struct core_run *entry)
{
    const struct run_step *state = &entry->run->steps[ev->step];
    struct instance_view view;
    if (!uuid_is_nil(ev->instance) && !uuid_eq(ev->instance, state->instance)) {
        return REJECT_FOREIGN;
    }
    if (ev->epoch < state->epoch && !MUTANT(NO_FENCING)) {
        return REJECT_STALE_EPOCH;
    }
    if (registry_is_current(c->registry, ev->slot, ev->epoch)) {
        const bool live = registry_instance_view(c->registry, ev->slot, &view);
        return live && uuid_eq(view.id, state->instance) ? REJECT_NONE : REJECT_FOREIGN;
    }
    const bool over_its_lane = ev->lane != LANE_NONE && ev->slot == entry->sched[ev->step].slot;
    const bool vouched = over_its_lane || !uuid_is_nil(ev->instance);
    return MUTANT(NO_FENCING) || (vouched && ev->epoch == state->epoch) ? REJECT_NONE
                                                                        : REJECT_STALE_EPOCH;
}

/* An answer to a question counts only over the lane that the question was sent on. */
static enum core_reject check_answer(const struct core *c, const struct core_event *ev,
                                     const struct core_run *entry)
{
    const struct run_step *state = &entry->run->steps[ev->step];
    const struct sched_step *sched = &entry->sched[ev->step];
    if (sched->list != LIST_HELD || ev->phase != state->phase || ev->attempt != state->ask) {
        return REJECT_STALE_ATTEMPT;
    }
    const bool its = ev->lane != LANE_NONE && ev->slot == sched->slot &&
                     registry_is_current(c->registry, ev->slot, ev->epoch);
    return its ? REJECT_NONE : REJECT_FOREIGN;
}

static enum core_reject check_attempt(const struct core *c, const struct core_event *ev,
                                      const struct core_run *entry)
{
    if (entry == NULL) {
        return REJECT_UNKNOWN_RUN;
    }
    if (ev->step >= entry->run->n_steps) {
        return REJECT_STALE_ATTEMPT;
    }
    const struct run_step *state = &entry->run->steps[ev->step];
    const enum list_kind list = entry->sched[ev->step].list;
    if (step_is_final(state->status)) {
        return REJECT_FINAL;
    }
    if (state->status == STEP_CHECKING) {
        return check_answer(c, ev, entry);
    }
    if ((list != LIST_HELD && list != LIST_UNKNOWN) || ev->attempt != state->attempt ||
        ev->phase > PHASE_SEARCH) {
        return REJECT_STALE_ATTEMPT;
    }
    return check_sender(c, ev, entry);
}

struct core_run *core_attempt(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    const enum core_reject why = check_attempt(c, ev, entry);
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return NULL;
    }
    return entry;
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
    core_mark_alive(c, ev);
    core_lane_answered(c, ev);
}

/* An unsafe step runs again after a failure only when the agent allows it. */
static bool worth_retrying(const struct core_ev_result *result, const struct step_policy *policy)
{
    if (result->retryable_given) {
        return result->retryable;
    }
    return policy->effects != EFFECTS_UNSAFE && err_class_retryable(result->error_class);
}

/* ---- late results ---- */

/* Over a lane one request is answered once. Without one the sender is the instance that has had the
 * newest attempt: the caller has looked at its process. */
static bool is_from_who_was_asked(const struct core_event *ev, const struct run_step *state)
{
    return ev->lane != LANE_NONE ||
           (ev->attempt == state->attempt && !uuid_is_nil(ev->instance) &&
            (uuid_eq(ev->instance, state->instance) || MUTANT(LATE_FROM_ANOTHER)));
}

/* An attempt that timed out, or was given up because its agent could not be reached, may still
 * return its result. It counts while nothing newer has finished: the step is between attempts, the
 * next attempt is still under way, or a person is asked about the outcome. */
static bool is_late(const struct core *c, const struct core_event *ev, const struct core_run *entry)
{
    if (entry == NULL || ev->step >= entry->run->n_steps ||
        !is_from_who_was_asked(ev, &entry->run->steps[ev->step]) ||
        CORE_EV(ev, result)->outcome != STEP_OUTCOME_COMPLETED || ev->phase > PHASE_SEARCH ||
        ev->attempt == 0 || entry->run->cancelling ||
        !registry_is_current(c->registry, ev->slot, ev->epoch)) {
        return false;
    }
    const struct run_step *state = &entry->run->steps[ev->step];
    if (ev->attempt <= state->turned && !MUTANT(LATE_BEFORE_CALLS)) {
        return false; /* its agent has gone on with calls */
    }
    switch ((enum step_status)state->status) {
    case STEP_IN_PROGRESS:
    case STEP_UNKNOWN:
        return ev->attempt < state->attempt;
    case STEP_BACKOFF:
        return ev->attempt <= state->attempt;
    case STEP_WAITING:
        return ev->attempt <= state->attempt &&
               (state->review == REVIEW_UNKNOWN_OUTCOME || state->review == REVIEW_FAILURE ||
                MUTANT(LATE_AFTER_NEWER));
    case STEP_PENDING:
    case STEP_READY:
    case STEP_CHECKING:
    case STEP_SLEEPING:
    case STEP_COMPLETED:
    case STEP_FAILED:
    case STEP_SKIPPED:
    case STEP_CANCELLED:
    case STEP_STATUS_COUNT:
        break;
    }
    return false;
}

static void take_late(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct holder who = core_holder(c, entry, ev->step);
    const enum list_kind list = entry->sched[ev->step].list;
    const bool out = list == LIST_HELD || list == LIST_UNKNOWN;
    core_unlink(c, entry, ev->step);
    if (out) {
        core_emit_cancel(c, entry, ev->step, &who, STR_LIT("An earlier attempt has completed"));
    }
    core_accept(c, entry, ev->step, CORE_EV(ev, result)->result, &CORE_EV(ev, result)->usage,
                out ? STOP_FENCED : STOP_NONE);
}

/* What a rejected result has used and the run does not have yet: the work was done, and is paid for
 * once. Over a lane a request is answered once, and the sender is known. Otherwise the sender must
 * be the instance that has, or had, the newest attempt. */
static struct usage usage_owed(const struct core_run *entry, const struct core_event *ev)
{
    const struct run_step *state = &entry->run->steps[ev->step];
    const bool over_lane = ev->lane != LANE_NONE;
    const bool its = over_lane || (ev->attempt == state->attempt && !uuid_is_nil(ev->instance) &&
                                   uuid_eq(ev->instance, state->instance));
    const bool question = ev->phase > PHASE_SEARCH;
    const bool was_made = ev->attempt > 0 && ev->attempt <= state->attempt;
    const bool owed =
        question
            ? over_lane
            : its && was_made && (!run_attempt_is_paid(state, ev->attempt) || MUTANT(PAID_TWICE));
    return owed && !MUTANT(REJECTED_UNPAID) ? CORE_EV(ev, result)->usage : (struct usage){0};
}

static bool is_nothing(const struct usage *u)
{
    return (u->input_tokens | u->output_tokens | u->cached_tokens | u->cost_micros) == 0;
}

/* Results over a lane are recorded, and what is owed, which is once per attempt: there are no more
 * of these records than requests. */
static void record_rejected(struct core *c, struct core_run *entry, const struct core_event *ev,
                            enum core_reject why)
{
    if (entry != NULL && ev->step < entry->run->n_steps) {
        const struct usage owed = usage_owed(entry, ev);
        if (ev->lane != LANE_NONE || !is_nothing(&owed)) {
            core_record(c, entry,
                        (struct record){REC_INIT(RESULT_REJECTED, assigned, .phase = ev->phase),
                                        .step = ev->step, .attempt = ev->attempt,
                                        .agent = entry->run->steps[ev->step].agent, .usage = owed,
                                        .text = str_from(core_reject_text(why))});
        }
    }
    core_reject(c, ev, why);
}

/* ---- results ---- */

/* The agent hands the step over to another one (F51, F52). */
static void handed_off(struct core *c, struct core_run *entry, const struct core_event *ev,
                       const struct failure *f)
{
    const struct plan *plan = entry->plan;
    const struct run_step *state = &entry->run->steps[ev->step];
    const uint32_t to = CORE_EV(ev, result)->agent;
    const uint32_t at = to == AGENT_NONE ? UINT32_MAX : plan_agent_find(plan, to);
    const char *why = NULL;
    if (entry->run->cancelling) {
        core_stopped(c, entry, ev->step, STOP_ACKNOWLEDGED, f);
        return;
    }
    if (at == UINT32_MAX) {
        why = "Handoff refused: the plan was not granted that agent";
    } else if (((state->visited | run_visit(plan, 0, state->agent)) & UINT64_C(1) << at) != 0 &&
               !MUTANT(HANDOFF_CYCLE)) {
        why = "Handoff refused: that agent has had this step before";
    } else if (state->hops >= plan->max_handoffs || state->attempt >= LIMIT_ATTEMPTS) {
        why = "Handoff refused: the step was handed over too often";
    }
    if (why != NULL) {
        const struct failure refused = {
            .error_class = CLASS_VALIDATION_ERROR, .text = str_from(why), .usage = f->usage};
        core_attempt_failed(c, entry, ev->step, &refused);
        return;
    }
    core_unlink(c, entry, ev->step);
    core_record(c, entry,
                (struct record){
                    REC_INIT(HANDOFF, handoff, .kind = HANDOFF_AGENT, .from_agent = state->agent),
                    .step = ev->step, .attempt = state->attempt, .agent = to, .usage = f->usage,
                    .text = ev->text});
    core_continue(c, entry, ev->step);
}

/* The agent calls skills of others: a child plan does the calls. */
static void called(struct core *c, struct core_run *entry, const struct core_event *ev,
                   const struct failure *f)
{
    const struct core_ev_result *result = CORE_EV(ev, result);
    const struct run_step *state = &entry->run->steps[ev->step];
    struct failure refused = {.error_class = CLASS_VALIDATION_ERROR, .usage = f->usage};
    if (entry->run->cancelling) {
        core_stopped(c, entry, ev->step, STOP_ACKNOWLEDGED, f);
        return;
    }
    if (state->turns >= LIMIT_TURNS && !MUTANT(TURNS_UNLIMITED)) {
        refused.error_class = CLASS_LOOP_LIMIT;
        refused.text = core_text_count(c, "No answer after ", LIMIT_TURNS, " turns of calls",
                                       (struct str){"", 0});
        core_give_up(c, entry, ev->step, &refused);
        return;
    }
    if (state->phase != PHASE_EXECUTE || entry->plan->job != JOB_NONE ||
        state->attempt >= LIMIT_ATTEMPTS) {
        refused.text = STR_LIT("Calls refused: only the work of a step may call others, in at most "
                               "100 attempts");
        core_attempt_failed(c, entry, ev->step, &refused);
        return;
    }
    core_unlink(c, entry, ev->step);
    core_record(c, entry,
                (struct record){REC_INIT(STEP_CALLS, turn, .n = state->turns + 1,
                                         .calls = result->calls, .result = result->result),
                                .step = ev->step, .attempt = state->attempt, .agent = state->agent,
                                .usage = f->usage});
    core_child_ask(c, entry, ev->step);
}

static void attempt_answered(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct core_ev_result *result = CORE_EV(ev, result);
    const struct failure f = {
        .error_class = result->error_class,
        .text = ev->text,
        .retryable = worth_retrying(result, &entry->plan->steps[ev->step].rules->policy),
        .retry_after_ms = result->retry_after_ms,
        .usage = result->usage};
    switch (result->outcome) {
    case STEP_OUTCOME_COMPLETED:
        core_accept(c, entry, ev->step, result->result, &result->usage,
                    entry->run->cancelling ? STOP_ACKNOWLEDGED : STOP_NONE);
        break;
    case STEP_OUTCOME_FAILED:
        if (result->error_class == CLASS_VERIFICATION_FAILED) {
            core_verification_failed(c, entry, ev->step, &f);
        } else {
            core_attempt_failed(c, entry, ev->step, &f);
        }
        break;
    case STEP_OUTCOME_NEEDS_INPUT:
        core_step_waits(c, entry, ev->step, REVIEW_INPUT, &f, result->data);
        break;
    case STEP_OUTCOME_NEEDS_APPROVAL:
        core_step_waits(c, entry, ev->step, REVIEW_APPROVAL, &f, result->data);
        break;
    case STEP_OUTCOME_HANDOFF:
        handed_off(c, entry, ev, &f);
        break;
    case STEP_OUTCOME_CALLS:
        called(c, entry, ev, &f);
        break;
    case STEP_OUTCOME_COUNT:
        ASSERT(!"a step outcome");
        break;
    }
}

void core_on_result(struct core *c, const struct core_event *ev)
{
    core_mark_alive(c, ev);
    if (registry_is_current(c->registry, ev->slot, ev->epoch) && ev->lane != LANE_NONE) {
        registry_not_full(c->registry, ev->slot); /* what ended had a place there */
    }
    core_lane_answered(c, ev);
    struct core_run *entry = core_find_run(c, ev->run);
    const enum core_reject why = check_attempt(c, ev, entry);
    if (why == REJECT_NONE) {
        const struct core_ev_result *result = CORE_EV(ev, result);
        const bool failed = result->outcome == STEP_OUTCOME_FAILED;
        core_breaker_result(c, ev->slot, ev->epoch, failed ? result->error_class : CLASS_NONE);
    }
    if (why != REJECT_NONE && is_late(c, ev, entry)) {
        take_late(c, entry, ev);
    } else if (why != REJECT_NONE) {
        record_rejected(c, entry, ev, why);
    } else if (entry->run->steps[ev->step].status == STEP_CHECKING) {
        core_check_answered(c, entry, ev);
    } else {
        attempt_answered(c, entry, ev);
    }
}

void core_on_progress(struct core *c, const struct core_event *ev)
{
    const struct core_ev_progress *news = CORE_EV(ev, progress);
    core_mark_alive(c, ev);
    struct core_run *entry = core_attempt(c, ev);
    if (entry == NULL) {
        return;
    }
    struct sched_step *sched = &entry->sched[ev->step];
    if (sched->list == LIST_HELD) {
        sched->last_sign = c->now;
        sched->asked = false;
        core_set_due(c, entry, ev->step, core_held_due(c, entry, ev->step));
    }
    if (entry->run->steps[ev->step].status == STEP_CHECKING) {
        return; /* progress of a question is not published */
    }
    if (c->now - sched->since >= 1000) {
        sched->since = c->now;
        sched->progress = 0;
    }
    if (sched->progress >=
        (entry->plan->job == JOB_NONE ? CORE_PROGRESS_PER_SECOND : CORE_TEXTS_PER_SECOND)) {
        core_reject(c, ev, REJECT_TOO_MUCH);
        return;
    }
    sched->progress++;
    core_record(c, entry,
                (struct record){REC_INIT(STEP_PROGRESS, progress, .n = news->n,
                                         .percent = news->percent, .data = news->data),
                                .step = ev->step, .attempt = ev->attempt,
                                .agent = entry->run->steps[ev->step].agent, .text = ev->text});
}
