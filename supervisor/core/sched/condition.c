/*
 * Conditions. The core does not know results, so the engine evaluates a condition and its verdict
 * is an event. Until then the step keeps its place within max_concurrency. A verdict that counts is
 * a record before it has an effect; one that is lost is asked for again.
 */
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

bool core_ask_condition(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    if (entry->plan->steps[step].rules->when.ptr == NULL || state->judged != 0 ||
        MUTANT(CONDITION_UNASKED)) {
        return false;
    }
    core_unlink(c, entry, step);
    core_link(c, entry, step, LIST_CONDITION, false);
    struct core_cmd *cmd = core_emit(c, CMD_CONDITION);
    cmd->run = core_handle_of(c, entry);
    cmd->step = step;
    cmd->attempt = entry->sched[step].serial = (uint16_t)entry->run->revision;
    return true;
}

/* The step that waits for this verdict; the rejection is emitted when there is none. */
static struct core_run *asked_for(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    enum core_reject why = REJECT_NONE;
    if (entry == NULL) {
        why = REJECT_UNKNOWN_RUN;
    } else if (ev->step >= entry->run->n_steps) {
        why = REJECT_NO_STEP;
    } else if (entry->sched[ev->step].list != LIST_CONDITION) {
        why = REJECT_NOT_WAITING;
    } else if (ev->attempt != entry->sched[ev->step].serial && !MUTANT(CONDITION_STALE)) {
        why = REJECT_REVISION;
    }
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return NULL;
    }
    return entry;
}

static void record_verdict(struct core *c, struct core_run *entry, const struct core_event *ev,
                           bool failed)
{
    core_record(c, entry,
                (struct record){REC_INIT(STEP_CONDITION, condition, .failed = failed),
                                .step = ev->step, .text = ev->text});
}

/* It has no attempt yet, so there is nothing to retry or to hand over. */
static void fail(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct failure f = {.error_class = CLASS_VALIDATION_ERROR, .text = ev->text};
    record_verdict(c, entry, ev, true);
    core_fail_by(c, entry, ev->step, &f, entry->plan->steps[ev->step].rules->policy.on_failure);
}

void core_on_condition(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = asked_for(c, ev);
    if (entry == NULL) {
        return;
    }
    switch (CORE_EV(ev, condition)->verdict) {
    case CONDITION_TRUE:
        record_verdict(c, entry, ev, false);
        if (!core_prepare(c, entry, ev->step)) {
            core_enqueue(c, entry, ev->step, false);
        }
        return;
    case CONDITION_FAILED:
        if (!MUTANT(CONDITION_PASSED)) {
            fail(c, entry, ev);
            return;
        }
        break;
    case CONDITION_FALSE:
    case CONDITION_VERDICT_COUNT:
        break;
    }
    core_step_ended(c, entry,
                    (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_SKIPPED,
                                             .reason = REASON_CONDITION),
                                    .step = ev->step, .text = ev->text});
}
