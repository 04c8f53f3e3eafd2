/* Time: what is due, in the order of deadlines, then of run slots and steps. */
#include "protocol/base/assert.h"
#include "supervisor/core/core_internal.h"

static void step_due(struct core *c, struct core_run *row, uint32_t step)
{
    const struct failure timeout = {.error_class = CLASS_TIMEOUT,
                                    .text = STR_LIT("Step execution timeout"),
                                    .retryable = true,
                                    .blind = true,
                                    .tell = true};
    switch ((enum list_kind)row->soft[step].list) {
    case LIST_QUEUE:
    case LIST_BUDGET:
    case LIST_PARKED:
        core_queue_due(c, row, step);
        break;
    case LIST_HELD:
        if (row->run->steps[step].status == STEP_CHECKING) {
            core_check_timeout(c, row, step);
        } else {
            core_attempt_failed(c, row, step, &timeout);
        }
        break;
    case LIST_UNKNOWN:
        core_resolve_unknown(c, row, step, CLASS_REPLY_LOST, STR_LIT("Reply lost"));
        break;
    case LIST_NONE:
        ASSERT(row->run->steps[step].status == STEP_BACKOFF ||
               row->run->steps[step].status == STEP_CHECKING); /* a replan's pause is over */
        core_enqueue(c, row, step, false);
        break;
    case LIST_READY:
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
    while (heap_min(&c->due) <= c->now && c->due.n > 0) {
        struct core_run *row = &c->runs[heap_top(&c->due)];
        if (row->run->deadline <= c->now) {
            core_plan_timeout(c, row);
        } else {
            step_due(c, row, heap_top(&row->due));
        }
    }
}
