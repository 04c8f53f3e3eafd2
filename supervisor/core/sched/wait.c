/* Why an open step does not move. Looks only at the step and its dependencies. */
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
        [WAIT_CHILD] = "child",
        [WAIT_TIMER] = "timer",
        [WAIT_SIGNAL] = "signal",
        [WAIT_KEY] = "key",
        [WAIT_RATE] = "rate",
    };
    _Static_assert(sizeof names / sizeof names[0] == WAIT_KIND_COUNT, "a name per kind");
    ASSERT((unsigned)k < WAIT_KIND_COUNT);
    return names[k];
}

static void for_dependency(const struct core_run *entry, uint32_t step, struct step_wait *w)
{
    w->kind = WAIT_DEPENDENCY;
    w->n = entry->run->steps[step].deps_open;
    for (uint32_t i = 0; i < run_deps(entry->plan, step); i++) {
        const uint32_t dep = run_dep(entry->plan, step, i);
        if (!step_is_final(entry->run->steps[dep].status)) {
            w->step = dep;
            return;
        }
    }
}

/* Whether there is a place and the rate is why: nobody else is asked for it. */
static void for_key(const struct core *c, const struct core_key *key, struct str name, bool keyed,
                    struct step_wait *w)
{
    w->key = name;
    w->kind = WAIT_KEY;
    w->n = key->max;
    w->holder = key->holders.head == REF_NONE ? 0 : core_handle_of(c, &c->runs[key->holders.head]);
    if ((keyed || key->max == 0 || key->held < key->max) && !window_is_open(&key->rate, c->now)) {
        w->kind = WAIT_RATE;
        w->n = key->rate.rate.n;
        w->per_ms = key->rate.rate.per_ms;
        w->until = window_opens(&key->rate);
    }
}

static void for_hold(const struct core *c, const struct core_run *entry, struct step_wait *w)
{
    const uint32_t holds = 1u << PAUSE_REQUESTED | 1u << PAUSE_SIGNOFF;
    if ((entry->run->paused & 1u << PAUSE_KEY) != 0 && (entry->run->paused & holds) == 0 &&
        core_key_of_run(c, entry) != NULL) {
        for_key(c, core_key_of_run(c, entry), entry->plan->keys.names[0], false, w);
        return;
    }
    w->kind = (entry->run->paused & holds) != 0 ? WAIT_PAUSED
              : entry->run->replanning > 0      ? WAIT_REPLAN
                                                : WAIT_NOTHING;
}

static void for_turn(const struct core *c, const struct core_run *entry, struct step_wait *w)
{
    if (core_on_hold(entry)) {
        for_hold(c, entry, w);
        return;
    }
    w->kind = WAIT_CONCURRENCY;
    w->n = run_places(entry->run) + entry->queued;
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

static void for_lane(const struct core *c, const struct core_run *entry, uint32_t step,
                     struct step_wait *w)
{
    const struct core_queue *queue = &core_queues(entry)[entry->sched[step].queue];
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
    } else if (!window_is_open(&c->agents[queue->agent].rate, c->now)) {
        w->kind = WAIT_RATE;
        w->n = c->agents[queue->agent].rate.rate.n;
        w->per_ms = c->agents[queue->agent].rate.rate.per_ms;
        w->until = window_opens(&c->agents[queue->agent].rate);
    } else if (!reached(c->agents[queue->agent].in_flight, c->config.in_flight_agent, w) &&
               !reached(c->in_flight, c->config.in_flight, w)) {
        w->kind = WAIT_LANE;
        w->n = agent.instances;
    }
}

static void for_nobody(const struct core *c, const struct core_run *entry, uint32_t step,
                       struct step_wait *w)
{
    const struct run_step *state = &entry->run->steps[step];
    switch ((enum step_status)state->status) {
    case STEP_PENDING:
        for_dependency(entry, step, w);
        break;
    case STEP_BACKOFF:
        w->kind = WAIT_BACKOFF;
        w->agent = (state->did & STEP_PAUSE_ASKED) != 0 ? state->agent : AGENT_NONE;
        w->until = state->deadline;
        break;
    case STEP_WAITING:
        w->kind = WAIT_PERSON;
        w->review = state->review;
        w->until = state->deadline;
        break;
    case STEP_CHECKING: /* the cooldown before a replan */
        w->kind = WAIT_REPLAN;
        w->until = core_entry_heap(entry).keys[step];
        break;
    case STEP_SLEEPING:
        w->kind = entry->plan->steps[step].wait->what == WAIT_FOR_SIGNAL ? WAIT_SIGNAL : WAIT_TIMER;
        w->until = core_entry_heap(entry).keys[step];
        break;
    case STEP_READY: /* the plan waits for its sign-off or its key */
        for_hold(c, entry, w);
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
    const struct core_run *entry = core_find_run(c, run);
    struct step_wait w = {
        .kind = WAIT_NOTHING, .agent = AGENT_NONE, .step = STEP_NONE, .until = MSEC_NEVER};
    if (entry == NULL || step >= entry->run->n_steps) {
        return w;
    }
    switch ((enum list_kind)entry->sched[step].list) {
    case LIST_NONE:
    case LIST_DATED:
        for_nobody(c, entry, step, &w);
        break;
    case LIST_READY:
        for_turn(c, entry, &w);
        break;
    case LIST_QUEUE:
        for_lane(c, entry, step, &w);
        break;
    case LIST_BUDGET:
        w.kind = WAIT_BUDGET;
        break;
    case LIST_PARKED:
        for_hold(c, entry, &w);
        break;
    case LIST_KEY:
        w.n = entry->plan->steps[step].key;
        for_key(c, core_key_of_step(c, entry, step), entry->plan->keys.names[w.n - 1],
                entry->sched[step].keyed, &w);
        break;
    case LIST_UNKNOWN:
        w.kind = WAIT_REPLY;
        w.agent = entry->run->steps[step].agent;
        w.until = entry->run->steps[step].deadline;
        break;
    case LIST_CHILD:
        w.kind = WAIT_CHILD;
        break;
    case LIST_HELD:
    case LIST_CONDITION: /* within the cycle */
    case LIST_LOST:
    case LIST_KIND_COUNT:
        break;
    }
    return w;
}
