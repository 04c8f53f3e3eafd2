/* Time: handles what is due, in the order of deadlines, then of run slots and steps. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* When an attempt under way has had its time. */
static msec held_end(const struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    const msec idle = entry->plan->steps[step].rules->policy.idle_ms;
    if (idle == 0 || MUTANT(IDLE_IGNORED) || state->status != STEP_IN_PROGRESS ||
        entry->run->cancelling) {
        return state->deadline;
    }
    const msec silent = msec_add(entry->sched[step].last_sign, idle);
    return silent < state->deadline ? silent : state->deadline;
}

/* No lane brings the result of an adopted attempt, so it is asked for before the time is over. */
msec core_held_due(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const struct sched_step *sched = &entry->sched[step];
    const msec end = held_end(entry, step);
    const bool asks = sched->adopted && !sched->asked && !entry->run->cancelling;
    return asks && end != MSEC_NEVER && end > c->config.last_word_ms ? end - c->config.last_word_ms
                                                                     : end;
}

static bool asks_last(struct core *c, struct core_run *entry, uint32_t step)
{
    struct sched_step *sched = &entry->sched[step];
    if (!sched->adopted || sched->asked || entry->run->cancelling ||
        held_end(entry, step) <= c->now) {
        return false;
    }
    sched->asked = true;
    core_query(c, entry, step);
    core_set_due(c, entry, step, core_held_due(c, entry, step));
    return true;
}

/* An attempt under way is due: it timed out, its step reached the limit, or the agent was silent.
 */
void core_held_over(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    const struct step_policy *policy = &entry->plan->steps[step].rules->policy;
    struct failure timeout = {.error_class = CLASS_TIMEOUT,
                              .text = STR_LIT("Step execution timeout"),
                              .retryable = true,
                              .may_have_run = true,
                              .cancel = true};
    if (asks_last(c, entry, step)) {
        return;
    }
    if (entry->run->cancelling) {
        core_grace_over(c, entry, step);
        return;
    }
    if (state->status == STEP_CHECKING && state->deadline > c->now) {
        core_set_due(c, entry, step, state->deadline); /* its time was renewed after a hold */
        return;
    }
    if (state->limit > c->now) { /* the step's limit is no fault of the agent */
        core_breaker_result(c, entry->sched[step].slot, entry->sched[step].epoch, CLASS_TIMEOUT);
    }
    if (state->status == STEP_CHECKING) {
        core_check_timeout(c, entry, step);
        return;
    }
    if (state->limit <= c->now) {
        timeout.text = core_text_ms(c, "Step limit of ", policy->limit_ms, "ms reached");
        timeout.retryable = false;
    } else if (state->deadline > c->now) {
        timeout.text = core_text_ms(c, "No progress for ", policy->idle_ms, "ms");
    }
    if (MUTANT(LANE_FREED_EARLY)) {
        registry_release(c->registry, entry->sched[step].slot, 0);
    }
    core_attempt_failed(c, entry, step, &timeout);
}

static void idle_step_due(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    if (state->status == STEP_WAITING) {
        core_review_timeout(c, entry, step);
    } else if (state->status == STEP_CHECKING) {
        core_replan_due(c, entry, step);
    } else if (state->status == STEP_SLEEPING) {
        core_slept(c, entry, step);
    } else {
        ASSERT(state->status == STEP_BACKOFF);
        core_continue(c, entry, step);
    }
}

static void step_due(struct core *c, struct core_run *entry, uint32_t step)
{
    switch ((enum list_kind)entry->sched[step].list) {
    case LIST_QUEUE:
    case LIST_BUDGET:
    case LIST_PARKED:
    case LIST_KEY:
        core_queue_due(c, entry, step);
        break;
    case LIST_HELD:
        core_held_over(c, entry, step);
        break;
    case LIST_CHILD:
        core_child_over(c, entry, step);
        break;
    case LIST_UNKNOWN:
        core_resolve_unknown(
            c, entry, step, CLASS_REPLY_LOST,
            STR_LIT("Reply lost: the agent ended, or its connection, and no answer came"));
        break;
    case LIST_NONE:
    case LIST_DATED:
        idle_step_due(c, entry, step);
        break;
    case LIST_READY:
    case LIST_CONDITION:
    case LIST_LOST:
    case LIST_KIND_COUNT:
        ASSERT(!"nothing else has a deadline");
        break;
    }
}

void core_on_tick(struct core *c, const struct core_event *ev)
{
    (void)ev;
    core_expire_instances(c);
    core_breaker_tick(c);
    core_full_tick(c);
    core_rates_open(c);
    /* When the text buffer is half full, the rest stays due: the next tick comes at once. */
    while (heap_min(&c->due) <= c->now && c->due.n > 0 && c->text_used <= CORE_TEXT_BYTES / 2) {
        struct core_run *entry = &c->runs[heap_top(&c->due)];
        c->at = core_handle_of(c, entry);
        if (core_entry_deadline(c, entry) <= c->now) {
            core_plan_timeout(c, entry);
        } else if (entry->run->review_deadline <= c->now) {
            core_signoff_timeout(c, entry);
        } else {
            const struct heap due = core_entry_heap(entry);
            step_due(c, entry, heap_top(&due));
        }
    }
}
