/* The invariants of queues, rings and counts between two events. Everything is counted again. */
#include "supervisor/core/sched/fair.h"

#define CHECK(cond, why)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            *ret_why = (why);                                                                      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

bool core_list_holds(const struct core *c, const struct list *list, enum list_kind kind,
                     const char **ret_why)
{
    uint64_t prev = REF_NONE;
    uint32_t n = 0;
    for (uint64_t ref = list->head; ref != REF_NONE;) {
        uint32_t step;
        const struct core_run *entry = core_deref(c, ref, &step);
        const struct sched_step *sched = &entry->sched[step];
        CHECK(sched->list == kind, "a step in another list than its own");
        CHECK(sched->prev == prev, "a list's links do not fit");
        CHECK(n < list->n, "a list is longer than its count");
        n++;
        prev = ref;
        ref = sched->next;
    }
    CHECK(list->tail == prev && n == list->n, "a list's end or length");
    return true;
}

/* ---- one run ---- */

static bool own_list_holds(const struct core *c, const struct core_run *entry, struct own_list own,
                           enum list_kind kind, const char **ret_why)
{
    const struct list list = core_list_of(c, entry, own);
    CHECK((own.n == 0) == (own.head == STEP_NONE) && (own.n == 0) == (own.tail == STEP_NONE),
          "an empty list with a step, or the other way round");
    return core_list_holds(c, &list, kind, ret_why);
}

static bool queue_holds(const struct core *c, const struct core_run *entry, uint32_t at,
                        const char **ret_why)
{
    const struct core_queue *queue = &core_queues(entry)[at];
    CHECK(queue->agent == entry->plan->agents.at[at], "a queue of another agent than the plan's");
    CHECK((queue->steps.n > 0) == (queue->ring != RING_NONE),
          "a queue with steps that has no turn, or one without that has");
    CHECK(!queue->woken || queue->ring == RING_AGENT, "woken without a turn");
    const struct list steps = core_list_of(c, entry, queue->steps);
    if (!core_list_holds(c, &steps, LIST_QUEUE, ret_why)) {
        return false;
    }
    for (uint64_t ref = steps.head; ref != REF_NONE;) {
        uint32_t step;
        const struct core_run *of = core_deref(c, ref, &step);
        CHECK(of == entry && entry->sched[step].queue == at,
              "a step in another queue than its own");
        CHECK(run_step_agent(entry->run, entry->plan, step) == queue->agent,
              "a step in the queue of an agent that it does not want");
        ref = entry->sched[step].next;
    }
    return true;
}

/* The counts that a step holds fit its list. */
static bool holds_fit(const struct core *c, const struct core_run *entry, uint32_t step,
                      const char **ret_why)
{
    const struct sched_step *sched = &entry->sched[step];
    const struct run_step *state = &entry->run->steps[step];
    const bool waits = sched->list == LIST_QUEUE || sched->list == LIST_BUDGET ||
                       sched->list == LIST_CONDITION || sched->list == LIST_KEY;
    const bool out = core_is_out(entry, step);
    const bool attempt = state->phase <= PHASE_SEARCH;
    const unsigned holds =
        (waits && state->status == STEP_READY && state->placeless == 0 ? HOLDS_PLACE : 0u) |
        (sched->list == LIST_HELD ? HOLDS_LANE : 0u) | (out && attempt ? HOLDS_BUDGET : 0u);
    CHECK((sched->holds & ~(unsigned)HOLDS_TURN) == holds,
          "a step holds other counts than those of its list");
    CHECK((sched->holds & HOLDS_TURN) == 0 || sched->list == LIST_QUEUE,
          "told to go on, but not in its queue");
    CHECK(sched->list != LIST_HELD || core_queues(entry)[sched->queue].agent ==
                                          run_step_agent(entry->run, entry->plan, step),
          "held for another agent than the step's");
    CHECK(!waits || !core_step_on_hold(entry, step),
          "a step on hold waits for a lane or a verdict");
    CHECK(sched->list != LIST_PARKED || core_step_on_hold(entry, step), "parked without a reason");
    CHECK(sched->list != LIST_BUDGET || core_budget_check(entry, step) != BUDGET_FITS,
          "a step waits for a budget that is there");
    CHECK(sched->list != LIST_BUDGET || c->n_woken > 0 || entry->reserved_tokens > 0 ||
              entry->reserved_micros > 0,
          "a step waits for a reservation that no step has");
    return true;
}

bool core_run_queues_hold(const struct core *c, const struct core_run *entry, const char **ret_why)
{
    uint32_t queued = 0;
    uint32_t held = 0;
    uint64_t tokens = 0;
    uint64_t micros = 0;
    if (!own_list_holds(c, entry, entry->ready, LIST_READY, ret_why) ||
        !own_list_holds(c, entry, entry->budget_waiters, LIST_BUDGET, ret_why) ||
        !own_list_holds(c, entry, entry->parked, LIST_PARKED, ret_why) ||
        !own_list_holds(c, entry, entry->conditions, LIST_CONDITION, ret_why) ||
        !own_list_holds(c, entry, entry->children, LIST_CHILD, ret_why)) {
        return false;
    }
    for (uint32_t i = 0; i < entry->plan->agents.n; i++) {
        if (!queue_holds(c, entry, i, ret_why)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < entry->run->n_steps; i++) {
        const struct sched_step *sched = &entry->sched[i];
        const struct step_policy *policy = &entry->plan->steps[i].rules->policy;
        if (!holds_fit(c, entry, i, ret_why)) {
            return false;
        }
        queued += (sched->holds & HOLDS_PLACE) != 0 ? 1 : 0;
        held += (sched->holds & HOLDS_LANE) != 0 ? 1 : 0;
        tokens += (sched->holds & HOLDS_BUDGET) != 0 ? policy->estimate_tokens : 0;
        micros += (sched->holds & HOLDS_BUDGET) != 0 ? policy->estimate_micros : 0;
    }
    CHECK(queued == entry->queued, "count of queued steps");
    CHECK(held == entry->held, "count of steps in flight");
    CHECK(tokens == entry->reserved_tokens && micros == entry->reserved_micros, "what is reserved");
    CHECK(!entry->woken, "a run was left woken");
    return true;
}

/* ---- rings ---- */

static bool list_of_ring_holds(const struct core *c, const struct list *ring, uint32_t priority,
                               enum ring_kind kind, uint32_t agent, uint32_t session,
                               const char **ret_why)
{
    uint64_t prev = REF_NONE;
    uint32_t n = 0;
    for (uint64_t ref = ring->head; ref != REF_NONE;) {
        CHECK(ref >> 32 < c->config.runs_max, "a ring leads nowhere");
        const struct core_run *entry = &c->runs[ref >> 32];
        CHECK(entry->run != NULL && (uint32_t)ref < entry->plan->agents.n,
              "a ring leads to no queue");
        const struct core_queue *queue = &core_queues(entry)[(uint32_t)ref];
        CHECK(kind != RING_AGENT || core_priority(entry) == priority,
              "a queue with the turns of another priority");
        CHECK(queue->ring == kind, "a queue in another ring than its own");
        CHECK(queue->prev == prev, "a ring's links do not fit");
        CHECK(kind != RING_AGENT || queue->agent == agent, "in the ring of another agent");
        CHECK(kind != RING_SESSION || entry->plan->session == session,
              "blocked by another session");
        CHECK(n < ring->n, "a ring is longer than its count");
        n++;
        prev = ref;
        ref = queue->next;
    }
    CHECK(ring->tail == prev && n == ring->n, "a ring's end or length");
    return true;
}

static bool ring_holds(const struct core *c, const struct turns *ring, uint32_t agent,
                       const char **ret_why)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p <= PLAN_PRIORITY_MAX; p++) {
        if (!list_of_ring_holds(c, &ring->of[p], p, RING_AGENT, agent, 0, ret_why)) {
            return false;
        }
        n += ring->of[p].n;
    }
    CHECK(n == ring->n, "the length of a ring");
    return true;
}

static bool is_full(uint32_t n, uint32_t limit)
{
    return limit > 0 && n >= limit;
}

static bool agent_holds(const struct core *c, uint32_t agent, uint32_t *rings, const char **ret_why)
{
    const struct core_agent *entry = &c->agents[agent];
    const bool all = is_full(c->in_flight, c->config.in_flight);
    uint32_t queued = 0;
    uint32_t in_flight = 0;
    if (!ring_holds(c, &entry->ring, agent, ret_why)) {
        return false;
    }
    for (uint32_t i = 0; i < c->runs_made; i++) {
        const struct core_run *run = &c->runs[i];
        const uint32_t at = run->run == NULL ? UINT32_MAX : plan_agent_find(run->plan, agent);
        queued += at == UINT32_MAX ? 0 : core_queues(run)[at].steps.n;
    }
    for (uint32_t i = 0; i < registry_instances(c->registry); i++) {
        struct instance_view view;
        const bool there = registry_instance_view(c->registry, i, &view);
        in_flight += there && view.agent == agent ? c->instances[i].held.n : 0;
    }
    CHECK(queued == entry->queued, "count of steps that wait for an agent");
    CHECK(in_flight == entry->in_flight, "count of what an agent has in flight");
    CHECK(!entry->dirty || all, "an agent was left dirty");
    CHECK(entry->ring.n == 0 || entry->dirty ||
              is_full(entry->in_flight, c->config.in_flight_agent) ||
              registry_select(c->registry, agent) == REGISTRY_NONE ||
              c->opens.keys[agent] <= window_opens(&entry->rate),
          "a step waits although a lane is free");
    *rings += entry->ring.n;
    return true;
}

/* The session of this run, checked once: by its first run. */
static bool session_holds(const struct core *c, uint32_t at, uint32_t *rings, const char **ret_why)
{
    const uint32_t session = c->runs[at].plan->session;
    const struct core_session *entry = &c->sessions[session];
    const bool full = is_full(entry->in_flight, c->config.in_flight_session);
    const bool all = is_full(c->in_flight, c->config.in_flight);
    uint32_t in_flight = 0;
    for (uint32_t i = 0; i < c->runs_made; i++) {
        const struct core_run *run = &c->runs[i];
        if (run->run != NULL && run->plan->session == session) {
            if (i < at) {
                return true;
            }
            in_flight += run->held;
        }
    }
    CHECK(in_flight == entry->in_flight, "count of what a session has in flight");
    CHECK(entry->blocked.n == 0 || full || (entry->woken && all),
          "a queue is blocked by a session that has room");
    CHECK(!entry->woken || all, "a session was left woken");
    *rings += entry->blocked.n;
    return list_of_ring_holds(c, &entry->blocked, 0, RING_SESSION, 0, session, ret_why);
}

bool core_queues_hold(const struct core *c, const char **ret_why)
{
    uint32_t rings = 0;
    uint32_t in_rings = 0;
    uint32_t held = 0;
    uint32_t of_sessions = 0;
    for (uint32_t i = 0; i < registry_agents(c->registry); i++) {
        if (!agent_holds(c, i, &rings, ret_why)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < c->runs_made; i++) {
        const struct core_run *entry = &c->runs[i];
        if (entry->run == NULL) {
            continue;
        }
        if (!session_holds(c, i, &rings, ret_why)) {
            return false;
        }
        held += entry->held;
        for (uint32_t k = 0; k < entry->plan->agents.n; k++) {
            in_rings += core_queues(entry)[k].ring != RING_NONE ? 1 : 0;
        }
    }
    for (uint32_t i = 0; i < c->sessions_made; i++) {
        of_sessions += c->sessions[i].in_flight;
    }
    CHECK(rings == in_rings, "a queue is in a ring that does not know it");
    CHECK(held == c->in_flight && of_sessions == c->in_flight, "count of all that is in flight");
    CHECK(c->n_woken == 0, "runs were left woken");
    return true;
}

/* ---- concurrency keys ---- */

struct tally {
    uint32_t held, runs, steps;
};

static bool count(const struct core *c, const struct core_key *key, struct tally *ret,
                  const char **ret_why)
{
    for (uint32_t i = 0; i < c->runs_made; i++) {
        const struct core_run *entry = &c->runs[i];
        if (entry->run == NULL || entry->plan->keys.n == 0) {
            continue;
        }
        const bool own = core_key_of_run(c, entry) == key;
        const bool begun = entry->run->status != PLAN_PENDING;
        const bool waits = (entry->run->paused & 1u << PAUSE_KEY) != 0;
        CHECK(!own || (entry->key_list == KEY_LIST_HOLDS) == begun,
              "a plan that has begun without its key, or has one too early");
        CHECK(!own || !waits ||
                  (entry->key_list == KEY_LIST_WAITS) ==
                      ((entry->run->paused & 1u << PAUSE_REQUESTED) == 0),
              "a plan that nobody gives its key, or one on hold that could get it");
        ret->held += own && begun ? 1 : 0;
        ret->runs += own && entry->key_list == KEY_LIST_WAITS ? 1 : 0;
        for (uint32_t s = 0; s < entry->run->n_steps; s++) {
            const struct run_step *state = &entry->run->steps[s];
            const bool of = core_key_of_step(c, entry, s) == key;
            CHECK(!of || entry->sched[s].keyed ==
                             (state->attempt > 0 && run_step_is_active(state->status)),
                  "a step with an attempt has no key, or one without has it");
            ret->held += of && entry->sched[s].keyed ? 1 : 0;
            ret->steps += of && entry->sched[s].list == LIST_KEY ? 1 : 0;
        }
    }
    return true;
}

static bool key_holds(const struct core *c, uint32_t at, const char **ret_why)
{
    const struct core_key *key = &c->keys[at];
    const msec armed = c->opens.keys[c->config.registry.agents + at];
    const bool place = key->max == 0 || key->held < key->max;
    struct tally n = {0};
    if (!count(c, key, &n, ret_why)) {
        return false;
    }
    CHECK(n.held == key->held, "count of those that have a key");
    CHECK(n.runs == key->runs.n && n.steps == key->steps.n, "count of those that wait for a key");
    CHECK(key->fresh || (key->runs.n == 0 && key->steps.n == 0) || !place || armed != MSEC_NEVER,
          "somebody waits for a key that is free");
    CHECK(!key->fresh || c->recovering || c->text_used > CORE_TEXT_BYTES / 2,
          "a key was left fresh");
    return true;
}

bool core_keys_hold(const struct core *c, const char **ret_why)
{
    for (uint32_t i = 0; i < c->config.keys; i++) {
        if (!key_holds(c, i, ret_why)) {
            return false;
        }
    }
    CHECK(heap_ok(&c->opens, c->config.registry.agents + c->config.keys), "the heap of the rates");
    return true;
}
#undef CHECK
