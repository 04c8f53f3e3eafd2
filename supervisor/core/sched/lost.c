/* Lost replies. A lost reply is not a failure: the instance is queried first (step.query), as soon
 * as its control lane is up. The outcome stays unknown only when the instance is gone, or does not
 * come back in time. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

void core_query(struct core *c, const struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    struct instance_view to;
    const uint32_t slot = registry_instance(c->registry, state->instance);
    if (slot == REGISTRY_NONE || !registry_instance_view(c->registry, slot, &to) ||
        !to.control_up) {
        return;
    }
    struct core_cmd *cmd = core_emit(c, CMD_QUERY);
    cmd->run = core_handle_of(c, entry);
    cmd->step = step;
    cmd->phase = state->phase;
    cmd->attempt = state->attempt;
    cmd->slot = slot;
    cmd->epoch = to.epoch;
}

void core_step_unknown(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    if (state->status == STEP_CHECKING) {
        core_check_lost(c, entry, step);
        return;
    }
    if (entry->run->cancelling) {
        core_stopped(c, entry, step, STOP_FENCED, &(struct failure){0});
        return;
    }
    core_unlink(c, entry, step);
    core_record(c, entry,
                (struct record){REC_INIT(STEP_UNKNOWN, assigned, .instance = state->instance,
                                         .process = state->process, .epoch = state->epoch,
                                         .delay_ms = c->config.unknown_wait_ms),
                                .step = step, .attempt = state->attempt, .agent = state->agent});
    core_link(c, entry, step, LIST_UNKNOWN, false);
    core_set_due(c, entry, step, state->deadline);
    core_query(c, entry, step);
}

void core_query_instance(struct core *c, uint32_t slot)
{
    struct instance_view view;
    if (!registry_instance_view(c->registry, slot, &view) || MUTANT(UNKNOWN_NOT_ASKED)) {
        return;
    }
    for (uint64_t ref = c->unknown.head; ref != REF_NONE;) {
        uint32_t step;
        const struct core_run *entry = core_deref(c, ref, &step);
        if (uuid_eq(entry->run->steps[step].instance, view.id)) {
            core_query(c, entry, step);
        }
        ref = entry->sched[step].next;
    }
    for (uint64_t ref = c->instances[slot].held.head; ref != REF_NONE;) {
        uint32_t step;
        const struct core_run *entry = core_deref(c, ref, &step);
        if (entry->sched[step].adopted) {
            core_query(c, entry, step);
        }
        ref = entry->sched[step].next;
    }
}

void core_instance_lost(struct core *c, uint32_t slot)
{
    while (c->instances[slot].held.head != REF_NONE) {
        uint32_t step;
        struct core_run *entry = core_deref(c, c->instances[slot].held.head, &step);
        core_step_unknown(c, entry, step);
    }
}

void core_resolve_unknown(struct core *c, struct core_run *entry, uint32_t step,
                          enum err_class error_class, struct str text)
{
    const struct failure f = {
        .error_class = error_class, .text = text, .retryable = err_class_retryable(error_class)};
    if (entry->run->steps[step].status == STEP_CHECKING) {
        core_check_lost(c, entry, step);
        return;
    }
    if (entry->run->cancelling) {
        core_stopped(c, entry, step, error_class == CLASS_AGENT_CRASHED ? STOP_GONE : STOP_FENCED,
                     &f);
        return;
    }
    if (entry->plan->steps[step].rules->policy.effects == EFFECTS_UNSAFE) {
        core_step_waits(c, entry, step, REVIEW_UNKNOWN_OUTCOME, &f, (struct doc){0});
    } else {
        core_attempt_failed(c, entry, step, &f);
    }
}

/* Moves a step to the list of those being resolved. The list stays valid when plans end meanwhile.
 */
static void set_aside(struct core *c, struct core_run *entry, uint32_t step)
{
    core_unlink(c, entry, step);
    core_link(c, entry, step, LIST_LOST, false);
}

void core_instance_gone(struct core *c, uint32_t slot, struct uuid instance, struct str reason)
{
    const struct str text = core_text_crashed(c, reason);
    uint32_t step;
    while (c->instances[slot].held.head != REF_NONE) {
        struct core_run *entry = core_deref(c, c->instances[slot].held.head, &step);
        set_aside(c, entry, step);
    }
    for (uint64_t ref = c->unknown.head; ref != REF_NONE;) {
        struct core_run *entry = core_deref(c, ref, &step);
        ref = entry->sched[step].next;
        if (uuid_eq(entry->run->steps[step].instance, instance)) {
            set_aside(c, entry, step);
        }
    }
    while (c->lost.head != REF_NONE) {
        struct core_run *entry = core_deref(c, c->lost.head, &step);
        core_resolve_unknown(c, entry, step, CLASS_AGENT_CRASHED, text);
    }
}

/* The request never left: the attempt goes to any free instance, before other steps. The number of
 * tries is limited. */
static void not_sent(struct core *c, struct core_run *entry, uint32_t step)
{
    struct sched_step *sched = &entry->sched[step];
    if (entry->run->cancelling) {
        core_stopped(c, entry, step, STOP_NONE, &(struct failure){0});
        return;
    }
    if (++sched->unsent < CORE_UNSENT_MAX) {
        core_enqueue(c, entry, step, true);
    } else {
        core_never_sent(c, entry, step);
    }
}

void core_never_sent(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct failure f = {.error_class = CLASS_SERVICE_UNAVAILABLE,
                              .text = STR_LIT("The request could not be sent"),
                              .retryable = true};
    core_attempt_failed(c, entry, step, &f);
}

void core_on_lost(struct core *c, const struct core_event *ev)
{
    const bool sent = CORE_EV(ev, lost)->sent;
    core_lane_answered(c, ev);
    struct core_run *entry = core_attempt(c, ev);
    if (entry == NULL) {
        return;
    }
    const struct run_step *state = &entry->run->steps[ev->step];
    core_breaker_result(c, ev->slot, ev->epoch,
                        sent ? CLASS_REPLY_LOST : CLASS_SERVICE_UNAVAILABLE);
    if (state->status == STEP_CHECKING) {
        core_check_lost(c, entry, ev->step);
    } else if (state->epoch != ev->epoch) {
        core_reject(c, ev, REJECT_STALE_EPOCH);
    } else if (!sent) {
        not_sent(c, entry, ev->step);
    } else if (state->status == STEP_IN_PROGRESS) {
        core_step_unknown(c, entry, ev->step);
    } else {
        core_reject(c, ev, REJECT_STALE_ATTEMPT); /* it is unknown already */
    }
}

/* It did not begin, and that is nobody's fault: the attempt goes to any instance that has a place,
 * before other steps, as often as it takes. Its time in the queue and its limit go on. */
void core_on_busy(struct core *c, const struct core_event *ev)
{
    core_mark_alive(c, ev);
    if (registry_is_current(c->registry, ev->slot, ev->epoch) && !MUTANT(BUSY_ASKED_AT_ONCE)) {
        registry_full(c->registry, ev->slot, c->now);
    }
    struct core_run *entry = core_attempt(c, ev);
    if (entry != NULL || !MUTANT(BUSY_KEEPS_LANE)) {
        core_lane_answered(c, ev);
    }
    if (entry == NULL) {
        return;
    }
    const struct run_step *state = &entry->run->steps[ev->step];
    if (MUTANT(BUSY_IS_UNSENT)) {
        entry->sched[ev->step].unsent++;
    }
    if (MUTANT(BUSY_OPENS_BREAKER)) {
        core_breaker_result(c, ev->slot, ev->epoch, CLASS_SERVICE_UNAVAILABLE);
    }
    if (entry->run->cancelling) {
        core_stopped(c, entry, ev->step, STOP_NONE, &(struct failure){0});
    } else if (state->status == STEP_UNKNOWN || entry->sched[ev->step].adopted) {
        core_reject(c, ev, REJECT_STALE_ATTEMPT); /* it is asked about: somebody began it */
    } else if (MUTANT(BUSY_ANSWERS) && state->status == STEP_CHECKING) {
        core_check_failed(c, entry, ev->step, STR_LIT("all places are taken"));
    } else if (MUTANT(BUSY_IS_AN_ATTEMPT)) {
        core_never_sent(c, entry, ev->step);
    } else {
        core_enqueue_again(c, entry, ev->step);
    }
}

/* Whether the attempt never ran. Only the very process that was asked can say so: its successor
 * knows nothing, and who was at work on it has forgotten it. */
static bool never_ran(const struct run_step *state, const struct core_event *ev,
                      const struct instance_view *of)
{
    const bool its = !uuid_is_nil(of->process) && uuid_eq(of->process, state->process);
    return CORE_EV(ev, state)->never &&
           ((its && (state->adopted == 0 || MUTANT(RAN_AND_NEVER_RAN))) ||
            MUTANT(UNKNOWN_TO_ANOTHER));
}

/* An attempt that never ran runs again, also of an unsafe step. Otherwise its outcome is unknown.
 */
static void not_running(struct core *c, struct core_run *entry, const struct core_event *ev,
                        const struct instance_view *of)
{
    if (!never_ran(&entry->run->steps[ev->step], ev, of)) {
        core_resolve_unknown(
            c, entry, ev->step, CLASS_REPLY_LOST,
            STR_LIT("Reply lost: the agent that answers cannot say what became of the attempt"));
        return;
    }
    const struct failure f = {.error_class = CLASS_REPLY_LOST,
                              .text = STR_LIT("Reply lost: the agent does not know of the attempt"),
                              .retryable = true};
    core_attempt_failed(c, entry, ev->step, &f);
}

static bool is_asked_about(const struct core_run *entry, uint32_t step)
{
    const enum step_status status = entry->run->steps[step].status;
    return status == STEP_UNKNOWN || (status == STEP_IN_PROGRESS && entry->sched[step].adopted);
}

void core_on_not_listed(struct core *c, const struct core_event *ev)
{
    const struct core_run *entry = core_attempt(c, ev);
    if (entry == NULL) {
        return;
    }
    if (!is_asked_about(entry, ev->step)) {
        core_reject(c, ev, REJECT_NOT_WAITING);
    } else if (!MUTANT(NOT_LISTED_IGNORED)) {
        core_query(c, entry, ev->step);
    }
}

static void adopt(struct core *c, struct core_run *entry, const struct core_event *ev,
                  const struct instance_view *by)
{
    const uint32_t step = ev->step;
    const struct run_step *state = &entry->run->steps[step];
    struct sched_step *sched = &entry->sched[step];
    core_unlink(c, entry, step);
    core_record(
        c, entry,
        (struct record){REC_INIT(STEP_ASSIGNED, assigned, .phase = state->phase, .instance = by->id,
                                 .process = by->process, .epoch = by->epoch),
                        .step = step, .attempt = state->attempt, .agent = state->agent});
    sched->slot = ev->slot;
    sched->epoch = by->epoch;
    sched->last_sign = c->now;
    sched->adopted = true;
    sched->asked = MUTANT(LAST_WORD_UNHEARD);
    core_link(c, entry, step, LIST_HELD, false);
    core_set_due(c, entry, step, core_held_due(c, entry, step));
    if (state->deadline <= c->now) {
        core_held_over(c, entry, step);
    }
}

/* An instance's answer to step.query, other than a result. */
void core_on_state(struct core *c, const struct core_event *ev)
{
    core_mark_alive(c, ev);
    struct core_run *entry = core_attempt(c, ev);
    if (entry == NULL) {
        return;
    }
    const uint32_t step = ev->step;
    const struct run_step *state = &entry->run->steps[step];
    struct instance_view view;
    if (!is_asked_about(entry, step)) {
        core_reject(c, ev, REJECT_NOT_WAITING);
        return;
    }
    if (!registry_is_current(c->registry, ev->slot, ev->epoch) ||
        !registry_instance_view(c->registry, ev->slot, &view)) {
        core_reject(c, ev, REJECT_STALE_EPOCH);
        return;
    }
    if (!CORE_EV(ev, state)->running) {
        not_running(c, entry, ev, &view);
        return;
    }
    if (state->status == STEP_UNKNOWN) {
        adopt(c, entry, ev, &view);
    }
}
