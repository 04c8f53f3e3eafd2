/* Time: what is due, in the order of deadlines, then of run slots and steps. */
#include "protocol/base/assert.h"
#include "supervisor/core/core_internal.h"

/* A queued step: is its agent there? Looked at now and then instead of whenever instances come and
 * go. */
static void queue_due(struct core *c, struct core_run *row, uint32_t step)
{
    const struct plan_step *about = &row->plan->steps[step];
    const struct agent_view agent = registry_agent_view(c->registry, about->agent);
    const msec since = row->soft[step].since;
    const msec absent = agent.absent_since > since ? agent.absent_since : since;
    const msec wait = c->config.agent_wait_ms;
    const msec until =
        agent.instances > 0 ? msec_add(c->now, wait > 0 ? wait : 1000) : msec_add(absent, wait);
    if (until > c->now) {
        core_due(c, row, step, until);
        return;
    }
    const struct failure f = {.error_class = CLASS_AGENT_UNAVAILABLE,
                              .text = core_text_absent(c, about->agent, about->agent_id)};
    core_give_up(c, row, step, &f);
}

static void step_due(struct core *c, struct core_run *row, uint32_t step)
{
    const struct failure timeout = {.error_class = CLASS_TIMEOUT,
                                    .text = STR_LIT("Step execution timeout"),
                                    .retryable = true,
                                    .blind = true,
                                    .tell = true};
    switch ((enum list_kind)row->soft[step].list) {
    case LIST_QUEUE:
        queue_due(c, row, step);
        break;
    case LIST_HELD:
        core_attempt_failed(c, row, step, &timeout);
        break;
    case LIST_UNKNOWN:
        core_resolve_unknown(c, row, step, CLASS_REPLY_LOST, STR_LIT("Reply lost"));
        break;
    case LIST_NONE:
        ASSERT(row->run->steps[step].status == STEP_BACKOFF);
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
    core_breaker_tick(c);
    while (heap_min(&c->due) <= c->now && c->due.n > 0) {
        struct core_run *row = &c->runs[heap_top(&c->due)];
        if (row->run->deadline <= c->now) {
            core_plan_timeout(c, row);
        } else {
            step_due(c, row, heap_top(&row->due));
        }
    }
}
