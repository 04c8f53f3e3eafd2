/* Why an open step does not move, for people. Looks at that step and its dependencies only. */
#include "protocol/base/assert.h"
#include "supervisor/core/sched/core_internal.h"

const char *wait_kind_name(enum wait_kind k)
{
    static const char *const names[] = {
        [WAIT_NOTHING] = "nothing",
        [WAIT_DEPENDENCY] = "dependency",
        [WAIT_CONCURRENCY] = "concurrency",
        [WAIT_AGENT] = "agent",
        [WAIT_LANE] = "lane",
        [WAIT_BREAKER] = "breaker",
        [WAIT_LIMIT] = "limit",
        [WAIT_BUDGET] = "budget",
        [WAIT_BACKOFF] = "backoff",
        [WAIT_REPLY] = "reply",
        [WAIT_PERSON] = "person",
        [WAIT_PAUSED] = "paused",
        [WAIT_REPLAN] = "replan",
    };
    _Static_assert(sizeof names / sizeof names[0] == WAIT_KIND_COUNT, "a name per kind");
    ASSERT((unsigned)k < WAIT_KIND_COUNT);
    return names[k];
}

static void for_dependency(const struct core_run *row, uint32_t step, struct step_wait *w)
{
    w->kind = WAIT_DEPENDENCY;
    w->n = row->run->steps[step].deps_open;
    for (uint32_t i = 0; i < run_deps(row->plan, step); i++) {
        const uint32_t dep = run_dep(row->plan, step, i);
        if (!step_is_final(row->run->steps[dep].status)) {
            w->step = dep;
            return;
        }
    }
}

static void for_hold(const struct core_run *row, struct step_wait *w)
{
    const uint32_t told = 1u << PAUSE_REQUESTED | 1u << PAUSE_SIGNOFF;
    w->kind = (row->run->paused & told) != 0 ? WAIT_PAUSED
              : row->run->replanning > 0     ? WAIT_REPLAN
                                             : WAIT_NOTHING;
}

static void for_turn(const struct core_run *row, struct step_wait *w)
{
    if (core_hold(row)) {
        for_hold(row, w);
        return;
    }
    w->kind = WAIT_CONCURRENCY;
    w->n = row->run->active + row->queued;
}

static bool reached(uint32_t n, uint32_t limit, struct step_wait *w)
{
    if (limit == 0 || n < limit) {
        return false;
    }
    w->kind = WAIT_LIMIT;
    w->n = limit;
    return true;
}

static void for_lane(const struct core *c, const struct core_run *row, uint32_t step,
                     struct step_wait *w)
{
    const struct core_queue *queue = &row->queues[row->sched[step].queue];
    const struct agent_view agent = registry_agent_view(c->registry, queue->agent);
    w->agent = queue->agent;
    if (agent.instances == 0 || !agent.enabled) {
        w->kind = WAIT_AGENT;
    } else if (agent.breaker.state != BREAKER_CLOSED) {
        w->kind = WAIT_BREAKER;
        w->until = agent.breaker.retry_at;
    } else if (queue->ring == RING_SESSION) {
        w->kind = WAIT_LIMIT;
        w->n = c->config.in_flight_session;
    } else if (!reached(c->agents[queue->agent].in_flight, c->config.in_flight_agent, w) &&
               !reached(c->in_flight, c->config.in_flight, w)) {
        w->kind = WAIT_LANE;
        w->n = agent.instances;
    }
}

static void for_nobody(const struct core_run *row, uint32_t step, struct step_wait *w)
{
    const struct run_step *state = &row->run->steps[step];
    switch ((enum step_status)state->status) {
    case STEP_PENDING:
        for_dependency(row, step, w);
        break;
    case STEP_BACKOFF:
        w->kind = WAIT_BACKOFF;
        w->until = state->deadline;
        break;
    case STEP_WAITING:
        w->kind = WAIT_PERSON;
        w->review = state->review;
        w->until = state->deadline;
        break;
    case STEP_CHECKING: /* the pause before a replan */
        w->kind = WAIT_REPLAN;
        w->until = row->due.keys[step];
        break;
    case STEP_READY: /* the plan waits for its sign-off */
        for_hold(row, w);
        break;
    case STEP_IN_PROGRESS:
    case STEP_UNKNOWN:
    case STEP_COMPLETED:
    case STEP_FAILED:
    case STEP_SKIPPED:
    case STEP_CANCELLED:
    case STEP_STATUS_COUNT:
        break;
    }
}

struct step_wait core_step_wait(const struct core *c, uint64_t run, uint32_t step)
{
    const struct core_run *row = core_find_run(c, run);
    struct step_wait w = {
        .kind = WAIT_NOTHING, .agent = AGENT_NONE, .step = STEP_NONE, .until = MSEC_NEVER};
    if (row == NULL || step >= row->run->n_steps) {
        return w;
    }
    switch ((enum list_kind)row->sched[step].list) {
    case LIST_NONE:
        for_nobody(row, step, &w);
        break;
    case LIST_READY:
        for_turn(row, &w);
        break;
    case LIST_QUEUE:
        for_lane(c, row, step, &w);
        break;
    case LIST_BUDGET:
        w.kind = WAIT_BUDGET;
        break;
    case LIST_PARKED:
        for_hold(row, &w);
        break;
    case LIST_UNKNOWN:
        w.kind = WAIT_REPLY;
        w.agent = row->run->steps[step].agent;
        w.until = row->run->steps[step].deadline;
        break;
    case LIST_HELD:
    case LIST_LOST:
    case LIST_KIND_COUNT:
        break;
    }
    return w;
}
