/* Cancelling a plan. Steps that no instance has end at once. For the others the instance gets a
 * cancel request and the grace to answer. After it a spawned process without other work is ended.
 * Any other attempt is fenced: it may run on, but its result is rejected. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

void core_stopped(struct core *c, struct core_run *entry, uint32_t step, enum step_stop stop,
                  const struct failure *why)
{
    core_step_ended(c, entry,
                    (struct record){REC_INIT(STEP_COMPLETED, step_completed,
                                             .status = STEP_CANCELLED, .reason = REASON_CANCELLED,
                                             .error_class = CLASS_CANCELLED, .stop = stop),
                                    .step = step, .usage = why->usage,
                                    .text = STR_LIT("Cancelled")});
}

/* True when an instance or a child plan has the step and gets the grace. */
static bool cancel_step(struct core *c, struct core_run *entry, uint32_t step, struct str why)
{
    const struct run_step *state = &entry->run->steps[step];
    const enum list_kind list = entry->sched[step].list;
    const struct holder who = core_holder(c, entry, step);
    const bool out = list == LIST_CHILD || (list == LIST_HELD && state->status == STEP_IN_PROGRESS);
    if (list == LIST_CHILD) {
        core_set_due(c, entry, step, MSEC_NEVER); /* its own cancelling has a grace, and an end */
    } else if (out && MUTANT(GRACE_NOT_ARMED)) {
        core_set_due(c, entry, step, MSEC_NEVER);
    } else if (out) {
        core_set_due(c, entry, step, state->deadline);
    } else if (run_step_is_active(state->status)) {
        core_end_step(
            c, entry,
            (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_CANCELLED,
                                     .reason = REASON_CANCELLED, .error_class = CLASS_CANCELLED,
                                     .stop = list == LIST_UNKNOWN ? STOP_FENCED : STOP_NONE),
                            .step = step, .text = why});
    }
    if (list == LIST_HELD || list == LIST_UNKNOWN || list == LIST_CHILD) {
        core_emit_cancel(c, entry, step, &who, why);
    }
    return out;
}

void core_on_cancel(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    const bool undoing = entry != NULL && entry->run->job == JOB_COMPENSATION;
    if (entry == NULL || undoing || entry->run->cancelling) {
        core_reject(c, ev,
                    entry == NULL ? REJECT_UNKNOWN_RUN
                    : undoing     ? REJECT_UNDOING
                                  : REJECT_CANCELLING);
        return;
    }
    core_cancel_run(c, entry, ev->text);
}

void core_cancel_run(struct core *c, struct core_run *entry, struct str text)
{
    const struct str why = text.len > 0 ? text : STR_LIT("Cancelled");
    core_record(
        c, entry,
        (struct record){REC_INIT(PLAN_CANCELLING, timed, .delay_ms = c->config.cancel_grace_ms),
                        .step = STEP_NONE, .text = text});
    core_rearm(c, entry);
    core_job_stop(c, entry);
    uint32_t out = 0;
    for (uint32_t i = 0; entry->run->open > 0 && i < entry->run->n_steps; i++) {
        out += cancel_step(c, entry, i, why) ? 1 : 0;
    }
    if (out > 0) {
        core_park(c, entry); /* nothing starts any more */
    } else {
        core_plan_cancelled(c, entry, text);
    }
}

void core_grace_over(struct core *c, struct core_run *entry, uint32_t step)
{
    const uint32_t slot = entry->sched[step].slot;
    struct instance_view view;
    const bool there = registry_instance_view(c->registry, slot, &view);
    const bool kill = there && c->instances[slot].spawned &&
                      (c->instances[slot].held.n == 1 || MUTANT(KILLS_BYSTANDERS));
    if (kill) {
        struct core_cmd *cmd = core_emit(c, CMD_KILL);
        cmd->slot = slot;
        cmd->epoch = view.epoch;
    }
    core_stopped(c, entry, step, kill ? STOP_KILLED : STOP_FENCED, &(struct failure){0});
}
