/*
 * The order in which queued steps start. Each limit is shared fairly:
 *
 *   an agent's lanes    a ring of queues, one per run that waits for it: one step, then the next
 * run a session's places  a queue that finds the session full is blocked. A free place wakes the
 * next one; later queues wait after those blocked before all places          the agents take turns,
 * one step each
 *
 * Who is next in a ring, or among the blocked: who has waited longest, where each priority counts
 * for CORE_AGE_MS of waiting. So a plan of the highest priority goes before one of the lowest that
 * began to wait up to nine times CORE_AGE_MS earlier, and before no other: nobody starves.
 *
 * Nothing is tried again before its condition has changed, and every move is a few links. So the
 * cost of an event is the cost of what it starts and wakes.
 */
#include "supervisor/core/sched/fair.h"

#include "protocol/base/assert.h"

/* ---- rings of queues ---- */

static struct core_queue *queue_at(const struct core *c, uint64_t ref)
{
    ASSERT(ref >> 32 < c->config.runs_max && c->runs[ref >> 32].run != NULL);
    return &core_queues(&c->runs[ref >> 32])[(uint32_t)ref];
}

static struct core_session *session_of(struct core *c, const struct core_run *entry)
{
    return &c->sessions[entry->plan->session];
}

static msec turn_of(const struct core *c, uint64_t ref)
{
    return core_turn(queue_at(c, ref)->since, core_priority(&c->runs[ref >> 32]));
}

static struct list *ring_of(struct core *c, uint64_t ref)
{
    const struct core_queue *queue = queue_at(c, ref);
    return queue->ring == RING_AGENT
               ? &c->agents[queue->agent].ring.of[core_priority(&c->runs[ref >> 32])]
               : &session_of(c, &c->runs[ref >> 32])->blocked;
}

/* The queue whose turn is next; REF_NONE = none waits. */
static uint64_t next_in(const struct core *c, const struct turns *ring)
{
    uint64_t best = REF_NONE;
    msec earliest = MSEC_NEVER;
    for (uint32_t p = PLAN_PRIORITY_MAX + 1; ring->n > 0 && p > 0; p--) {
        const uint64_t ref = ring->of[p - 1].head;
        const msec turn = ref == REF_NONE ? MSEC_NEVER : turn_of(c, ref);
        if (turn < earliest) {
            earliest = turn;
            best = ref;
        }
    }
    return best;
}

/* Where a queue goes: after this one. Those of a session are few, and stand in order. */
static uint64_t before(const struct core *c, const struct list *ring, uint64_t ref,
                       enum ring_kind kind, bool front)
{
    uint64_t prev = front ? REF_NONE : ring->tail;
    while (kind == RING_SESSION && prev != REF_NONE && turn_of(c, prev) > turn_of(c, ref)) {
        prev = queue_at(c, prev)->prev;
    }
    return prev;
}

static void ring_put(struct core *c, uint64_t ref, enum ring_kind kind, bool front)
{
    struct core_queue *queue = queue_at(c, ref);
    ASSERT(queue->ring == RING_NONE);
    queue->ring = (uint8_t)kind;
    struct list *ring = ring_of(c, ref);
    if (front && ring->head != REF_NONE && queue_at(c, ring->head)->since < queue->since) {
        queue->since = queue_at(c, ring->head)->since;
    }
    queue->prev = before(c, ring, ref, kind, front);
    queue->next = queue->prev == REF_NONE ? ring->head : queue_at(c, queue->prev)->next;
    if (queue->prev != REF_NONE) {
        queue_at(c, queue->prev)->next = ref;
    } else {
        ring->head = ref;
    }
    if (queue->next != REF_NONE) {
        queue_at(c, queue->next)->prev = ref;
    } else {
        ring->tail = ref;
    }
    ring->n++;
    c->agents[queue->agent].ring.n += kind == RING_AGENT ? 1 : 0;
}

static void ring_take(struct core *c, uint64_t ref)
{
    struct core_queue *queue = queue_at(c, ref);
    struct list *ring = ring_of(c, ref);
    ASSERT(queue->ring != RING_NONE && ring->n > 0);
    if (queue->prev != REF_NONE) {
        queue_at(c, queue->prev)->next = queue->next;
    } else {
        ring->head = queue->next;
    }
    if (queue->next != REF_NONE) {
        queue_at(c, queue->next)->prev = queue->prev;
    } else {
        ring->tail = queue->prev;
    }
    ring->n--;
    c->agents[queue->agent].ring.n -= queue->ring == RING_AGENT ? 1 : 0;
    queue->prev = queue->next = REF_NONE;
    queue->ring = RING_NONE;
}

void core_ring_join(struct core *c, struct core_run *entry, uint32_t queue, bool front)
{
    const uint64_t ref = core_ref(c, entry, queue);
    struct core_queue *of = &core_queues(entry)[queue];
    if (front && of->ring == RING_AGENT) {
        ring_take(c, ref);
    }
    if (of->ring == RING_NONE) {
        of->since = c->now;
        ring_put(c, ref, RING_AGENT, front);
        of->woken = front;
    }
    c->agents[of->agent].queued++;
    core_mark_dirty(c, of->agent);
}

void core_ring_leave(struct core *c, struct core_run *entry, uint32_t queue)
{
    struct core_queue *of = &core_queues(entry)[queue];
    ASSERT(c->agents[of->agent].queued > 0);
    c->agents[of->agent].queued--;
    if (of->steps.n == 0) {
        ring_take(c, core_ref(c, entry, queue));
        of->woken = false;
    }
}

/* ---- turns ---- */

void core_mark_dirty(struct core *c, uint32_t agent)
{
    struct core_agent *entry = &c->agents[agent];
    if (entry->dirty || entry->ring.n == 0) {
        return;
    }
    entry->dirty = true;
    entry->next_dirty = UINT32_MAX;
    if (c->dirty.head == UINT32_MAX) {
        c->dirty.head = agent;
    } else {
        c->agents[c->dirty.tail].next_dirty = agent;
    }
    c->dirty.tail = agent;
}

static uint32_t next_agent(struct core *c)
{
    const uint32_t agent = c->dirty.head;
    if (agent != UINT32_MAX) {
        c->dirty.head = c->agents[agent].next_dirty;
        c->agents[agent].dirty = false;
    }
    return agent;
}

static void wake_session(struct core *c, struct core_session *session)
{
    const uint32_t at = (uint32_t)(session - c->sessions);
    if (session->woken || session->blocked.n == 0) {
        return;
    }
    session->woken = true;
    session->next_woken = UINT32_MAX;
    if (c->woken_sessions.head == UINT32_MAX) {
        c->woken_sessions.head = at;
    } else {
        c->sessions[c->woken_sessions.tail].next_woken = at;
    }
    c->woken_sessions.tail = at;
}

static bool is_full(uint32_t n, uint32_t limit)
{
    return limit > 0 && n >= limit;
}

/* Returns the first blocked queue of a session with a free place to its agent; false when there is
 * none. */
static bool unblock_one(struct core *c)
{
    while (c->woken_sessions.head != UINT32_MAX) {
        struct core_session *session = &c->sessions[c->woken_sessions.head];
        if (session->blocked.n > 0 && !is_full(session->in_flight, c->config.in_flight_session)) {
            const uint64_t ref = session->blocked.head;
            struct core_queue *queue = queue_at(c, ref);
            ring_take(c, ref);
            ring_put(c, ref, RING_AGENT, true);
            queue->woken = true;
            core_mark_dirty(c, queue->agent);
            return true;
        }
        c->woken_sessions.head = session->next_woken;
        session->woken = false;
    }
    return false;
}

/* ---- counts ---- */

void core_charge(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind)
{
    struct sched_step *sched = &entry->sched[step];
    const struct run_step *state = &entry->run->steps[step];
    if ((kind == LIST_QUEUE || kind == LIST_BUDGET || kind == LIST_CONDITION || kind == LIST_KEY) &&
        state->status == STEP_READY && state->placeless == 0) {
        sched->holds |= HOLDS_PLACE;
        entry->queued++;
    }
    if (kind == LIST_HELD) {
        sched->holds |= HOLDS_LANE;
        c->in_flight++;
        c->agents[core_queues(entry)[sched->queue].agent].in_flight++;
        session_of(c, entry)->in_flight++;
        entry->held++;
    }
    if ((kind == LIST_HELD || kind == LIST_UNKNOWN || kind == LIST_LOST || kind == LIST_CHILD) &&
        state->phase <= PHASE_SEARCH) {
        sched->holds |= HOLDS_BUDGET;
        core_budget_reserve(entry, step);
    }
}

void core_give_back(struct core *c, struct core_run *entry, uint32_t step)
{
    struct sched_step *sched = &entry->sched[step];
    if ((sched->holds & HOLDS_PLACE) != 0) {
        ASSERT(entry->queued > 0);
        entry->queued--;
    }
    if ((sched->holds & HOLDS_LANE) != 0) {
        const uint32_t agent = core_queues(entry)[sched->queue].agent;
        struct core_session *session = session_of(c, entry);
        ASSERT(c->in_flight > 0 && c->agents[agent].in_flight > 0 && session->in_flight > 0);
        c->in_flight--;
        c->agents[agent].in_flight--;
        session->in_flight--;
        entry->held--;
        core_mark_dirty(c, agent);
        wake_session(c, session);
    }
    if ((sched->holds & HOLDS_BUDGET) != 0) {
        core_budget_return(c, entry, step);
    }
    if ((sched->holds & HOLDS_TURN) != 0) {
        core_key_turn_over(c, entry, step);
    }
    sched->holds = 0;
}

/* ---- starting ---- */

/* Whether the session has a place for the queue whose turn came; otherwise the queue is blocked. */
static bool session_allows(struct core *c, uint64_t ref)
{
    struct core_queue *queue = queue_at(c, ref);
    const struct core_session *session = session_of(c, &c->runs[ref >> 32]);
    const bool full = is_full(session->in_flight, c->config.in_flight_session);
    if (!full && (queue->woken || session->blocked.n == 0)) {
        return true;
    }
    ring_take(c, ref);
    ring_put(c, ref, RING_SESSION, queue->woken);
    queue->woken = false;
    return false;
}

/* Starts the first step of a queue, if the budget allows. */
static bool start_first(struct core *c, uint64_t ref, uint32_t slot)
{
    struct core_run *entry = &c->runs[ref >> 32];
    struct core_queue *queue = queue_at(c, ref);
    const uint32_t step = (uint32_t)queue->steps.head;
    switch (core_budget_check(entry, step)) {
    case BUDGET_WAITS:
        core_budget_wait(c, entry, step);
        return false;
    case BUDGET_EXCEEDED:
        core_budget_exceeded(c, entry, step);
        return false;
    case BUDGET_FITS:
        break;
    }
    if (!core_key_allows(c, entry, step)) {
        core_key_wait(c, entry, step);
        return false;
    }
    core_dispatch(c, entry, step, slot);
    queue->woken = false;
    if (queue->steps.n > 0) { /* the next run's turn */
        ring_take(c, ref);
        queue->since = c->now;
        ring_put(c, ref, RING_AGENT, false);
    }
    return true;
}

/* Starts one step of the agent's next queue; false when it has none, no lane or no place. */
static bool start_one(struct core *c, uint32_t agent)
{
    const struct core_agent *entry = &c->agents[agent];
    while (entry->ring.n > 0 && !is_full(entry->in_flight, c->config.in_flight_agent) &&
           core_agent_rate_allows(c, agent)) {
        const uint32_t slot = registry_select(c->registry, agent);
        if (slot == REGISTRY_NONE) {
            return false;
        }
        const uint64_t ref = next_in(c, &entry->ring);
        if (session_allows(c, ref) && start_first(c, ref, slot)) {
            return true;
        }
    }
    return false;
}

void core_start_queued(struct core *c)
{
    for (;;) {
        core_budget_wake(c);
        core_keys_wake(c);
        if (is_full(c->in_flight, c->config.in_flight)) {
            return; /* the turns stay as they are until a place becomes free */
        }
        const uint32_t agent = next_agent(c);
        if (agent != UINT32_MAX) {
            if (start_one(c, agent)) {
                core_mark_dirty(c, agent);
            }
        } else if (!unblock_one(c)) {
            return;
        }
    }
}
