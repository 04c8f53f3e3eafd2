/* Lists, deadlines of steps, and the way to an agent's queue: admission, hold, expiry. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/fair.h"

/* ---- lists ---- */

void core_list_init(struct list *list)
{
    *list = (struct list){.head = REF_NONE, .tail = REF_NONE};
}

struct core_run *core_deref(const struct core *c, uint64_t ref, uint32_t *ret_step)
{
    ASSERT(ref >> 32 < c->config.runs_max);
    struct core_run *entry = &c->runs[ref >> 32];
    ASSERT(entry->run != NULL && (uint32_t)ref < entry->run->n_steps);
    *ret_step = (uint32_t)ref;
    return entry;
}

static struct sched_step *sched_of(const struct core *c, uint64_t ref)
{
    uint32_t step;
    struct core_run *entry = core_deref(c, ref, &step);
    return &entry->sched[step];
}

/* The list of the step's run of that kind; NULL when runs share it. */
static struct own_list *own_list(struct core_run *entry, uint32_t step, enum list_kind kind)
{
    switch (kind) {
    case LIST_READY:
        return &entry->ready;
    case LIST_QUEUE:
        return &core_queues(entry)[entry->sched[step].queue].steps;
    case LIST_BUDGET:
        return &entry->budget_waiters;
    case LIST_PARKED:
        return &entry->parked;
    case LIST_CONDITION:
        return &entry->conditions;
    case LIST_CHILD:
        return &entry->children;
    case LIST_HELD:
    case LIST_UNKNOWN:
    case LIST_DATED:
    case LIST_KEY:
    case LIST_LOST:
    case LIST_NONE:
    case LIST_KIND_COUNT:
        break;
    }
    return NULL;
}

/* The list of that kind that runs share. */
static struct list *shared_list(struct core *c, struct core_run *entry, uint32_t step,
                                enum list_kind kind)
{
    switch (kind) {
    case LIST_HELD:
        return &c->instances[entry->sched[step].slot].held;
    case LIST_UNKNOWN:
        return &c->unknown;
    case LIST_DATED:
        return &c->dated;
    case LIST_KEY:
        return &core_key_of_step(c, entry, step)->steps.of[core_priority(entry)];
    case LIST_LOST:
        return &c->lost;
    case LIST_READY:
    case LIST_QUEUE:
    case LIST_BUDGET:
    case LIST_PARKED:
    case LIST_CONDITION:
    case LIST_CHILD:
    case LIST_NONE:
    case LIST_KIND_COUNT:
        break;
    }
    return NULL;
}

struct list core_list_of(const struct core *c, const struct core_run *entry, struct own_list own)
{
    return (struct list){.head = own.n > 0 ? core_ref(c, entry, own.head) : REF_NONE,
                         .tail = own.n > 0 ? core_ref(c, entry, own.tail) : REF_NONE,
                         .n = own.n};
}

static struct list list_of(struct core *c, struct core_run *entry, uint32_t step,
                           enum list_kind kind)
{
    const struct own_list *own = own_list(entry, step, kind);
    return own != NULL ? core_list_of(c, entry, *own) : *shared_list(c, entry, step, kind);
}

static void list_set(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind,
                     const struct list *list)
{
    struct own_list *own = own_list(entry, step, kind);
    if (own != NULL) { /* the number of REF_NONE is STEP_NONE */
        *own = (struct own_list){(uint32_t)list->head, (uint32_t)list->tail, list->n};
    } else {
        *shared_list(c, entry, step, kind) = *list;
    }
}

static uint8_t queue_of(const struct core_run *entry, uint32_t step)
{
    const uint32_t at = plan_agent_find(entry->plan, run_step_agent(entry->run, entry->plan, step));
    ASSERT(at < LIMIT_PLAN_AGENTS); /* the assignment of an agent checks the grants */
    return (uint8_t)at;
}

void core_link(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind,
               bool front)
{
    struct sched_step *sched = &entry->sched[step];
    if (kind == LIST_QUEUE || kind == LIST_HELD) {
        sched->queue = queue_of(entry, step);
    }
    struct list list = list_of(c, entry, step, kind);
    const uint64_t ref = core_ref(c, entry, step);
    ASSERT(sched->list == LIST_NONE);
    sched->list = (uint8_t)kind;
    sched->prev = front ? REF_NONE : list.tail;
    sched->next = front ? list.head : REF_NONE;
    if (sched->prev != REF_NONE) {
        sched_of(c, sched->prev)->next = ref;
    } else {
        list.head = ref;
    }
    if (sched->next != REF_NONE) {
        sched_of(c, sched->next)->prev = ref;
    } else {
        list.tail = ref;
    }
    list.n++;
    list_set(c, entry, step, kind, &list);
    if (kind == LIST_KEY) {
        core_key_of_step(c, entry, step)->steps.n++;
    }
    core_charge(c, entry, step, kind);
    if (kind == LIST_QUEUE) {
        core_ring_join(c, entry, sched->queue, front);
    }
}

void core_unlink(struct core *c, struct core_run *entry, uint32_t step)
{
    struct sched_step *sched = &entry->sched[step];
    core_set_due(c, entry, step, MSEC_NEVER);
    if (sched->list == LIST_NONE) {
        return;
    }
    struct list list = list_of(c, entry, step, sched->list);
    if (sched->prev != REF_NONE) {
        sched_of(c, sched->prev)->next = sched->next;
    } else {
        list.head = sched->next;
    }
    if (sched->next != REF_NONE) {
        sched_of(c, sched->next)->prev = sched->prev;
    } else {
        list.tail = sched->prev;
    }
    ASSERT(list.n > 0);
    list.n--;
    list_set(c, entry, step, sched->list, &list);
    if (sched->list == LIST_KEY) {
        core_key_of_step(c, entry, step)->steps.n--;
    }
    core_give_back(c, entry, step);
    if (sched->list == LIST_QUEUE) {
        core_ring_leave(c, entry, sched->queue);
    }
    sched->list = LIST_NONE;
    sched->prev = REF_NONE;
    sched->next = REF_NONE;
}

/* ---- time ---- */

/* The deadline of a job belongs to one question, so it starts again after a restart. The time of a
 * planning or synthesis job does not run while it waits for a lane: other plans' jobs must not use
 * it up. A conversation job has no such rule: a person waits. */
msec core_entry_deadline(const struct core *c, const struct core_run *entry)
{
    const msec deadline = entry->run->deadline;
    const enum job_kind job = entry->plan->job;
    msec since = c->recovered_at;

    if (job == JOB_NONE || deadline == MSEC_NEVER) {
        return deadline;
    }
    if (job == JOB_PLANNING || job == JOB_SYNTHESIS) {
        const struct run_step *question = &entry->run->steps[0];
        if ((question->did & STEP_DID_BEGIN) == 0) {
            return MSEC_NEVER;
        }
        since = question->started > since ? question->started : since;
        return msec_add(since, entry->plan->timeout_ms);
    }
    since = msec_add(since, entry->plan->timeout_ms);
    return deadline < since ? since : deadline;
}

msec core_plan_deadline(const struct core *c, uint64_t handle)
{
    const struct core_run *entry = core_find_run(c, handle);
    return entry == NULL ? MSEC_NEVER : core_entry_deadline(c, entry);
}

msec core_entry_due(const struct core *c, const struct core_run *entry)
{
    const struct heap due = core_entry_heap(entry);
    const msec steps = heap_min(&due);
    const msec plan = core_entry_deadline(c, entry);
    const msec first = steps < plan ? steps : plan;
    return first < entry->run->review_deadline ? first : entry->run->review_deadline;
}

void core_rearm(struct core *c, struct core_run *entry)
{
    heap_set(&c->due, (uint32_t)(entry - c->runs), core_entry_due(c, entry));
}

void core_set_due(struct core *c, struct core_run *entry, uint32_t step, msec when)
{
    core_entry_due_set(entry, step, when);
    core_rearm(c, entry);
}

static msec sooner(msec a, msec b)
{
    return a < b ? a : b;
}

msec core_wait_end(const struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    return state->status == STEP_UNKNOWN ? sooner(state->limit, state->attempt_end) : state->limit;
}

/* Of a question it is its deadline. */
static msec end_of(const struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    return state->status == STEP_CHECKING ? state->deadline : core_wait_end(entry, step);
}

msec core_parked_due(const struct core_run *entry, uint32_t step)
{
    return entry->run->steps[step].status == STEP_CHECKING ? MSEC_NEVER
                                                           : core_wait_end(entry, step);
}

/* A question with a deadline needs no absence check: the deadline covers an absent agent. */
static bool has_deadline(const struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    return state->status == STEP_CHECKING && state->deadline != MSEC_NEVER;
}

/* When the step has waited too long for a lane; a question has only its deadline. */
static msec queue_end(const struct core_run *entry, uint32_t step)
{
    const msec wait = entry->plan->steps[step].rules->policy.queue_timeout_ms;
    const bool question = entry->run->steps[step].status == STEP_CHECKING;
    return wait == 0 || question || MUTANT(QUEUE_FOR_EVER)
               ? MSEC_NEVER
               : msec_add(entry->sched[step].since, wait);
}

msec core_agent_wait(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const msec own = entry->plan->steps[step].rules->policy.agent_wait_ms;
    return own > 0 && !MUTANT(OWN_WAIT_IGNORED) ? own : c->config.agent_wait_ms;
}

/* When to check whether the agent has an instance that can be reached. Checking now and then is
 * cheaper than on every change. */
static msec absence_end(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const struct agent_view agent =
        registry_agent_view(c->registry, run_step_agent(entry->run, entry->plan, step));
    const msec since = entry->sched[step].since;
    const msec absent = agent.unreached_since > since ? agent.unreached_since : since;
    const msec wait = core_agent_wait(c, entry, step);
    return agent.unreached_since == MSEC_NEVER ? msec_add(c->now, wait > 0 ? wait : 1000)
                                               : msec_add(absent, wait);
}

/* For questions and jobs a prompt failure is better than waiting for an agent that gave up. */
bool core_agent_unavailable(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const struct agent_view agent =
        registry_agent_view(c->registry, run_step_agent(entry->run, entry->plan, step));
    return agent.instances == 0 && agent.failure.len > 0 &&
           (entry->plan->job != JOB_NONE || entry->run->steps[step].status == STEP_CHECKING);
}

static void absent(struct core *c, struct core_run *entry, uint32_t step)
{
    const uint32_t agent = run_step_agent(entry->run, entry->plan, step);
    const struct failure f = {.error_class = CLASS_AGENT_UNAVAILABLE,
                              .text = core_text_absent(c, agent, core_agent_wait(c, entry, step))};
    if (entry->run->steps[step].status == STEP_CHECKING) {
        core_check_failed(c, entry, step, f.text);
        return;
    }
    core_give_up(c, entry, step, &f);
}

static void waited_too_long(struct core *c, struct core_run *entry, uint32_t step, struct str text)
{
    const struct failure f = {.error_class = CLASS_TIMEOUT, .text = text};
    core_give_up(c, entry, step, &f);
}

void core_queue_due(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct step_policy *policy = &entry->plan->steps[step].rules->policy;
    const bool question = entry->run->steps[step].status == STEP_CHECKING;
    const bool queued = entry->sched[step].list == LIST_QUEUE;
    msec next = end_of(entry, step);
    if (next <= c->now && question) {
        core_check_timeout(c, entry, step);
        return;
    }
    if (next <= c->now && entry->run->steps[step].limit > c->now) {
        core_never_sent(c, entry, step);
        return;
    }
    if (next <= c->now) {
        waited_too_long(c, entry, step,
                        core_text_ms(c, "Step limit of ", policy->limit_ms, "ms reached"));
        return;
    }
    if (queued && core_agent_unavailable(c, entry, step)) {
        absent(c, entry, step);
        return;
    }
    if (queued && !has_deadline(entry, step)) {
        if (queue_end(entry, step) <= c->now) {
            waited_too_long(
                c, entry, step,
                core_text_ms(c, "Queue timeout after ", policy->queue_timeout_ms, "ms"));
            return;
        }
        const msec look = absence_end(c, entry, step);
        if (look <= c->now) {
            absent(c, entry, step);
            return;
        }
        next = sooner(next, sooner(look, queue_end(entry, step)));
    }
    core_set_due(c, entry, step, next);
}

/* ---- the way to a lane ---- */

static bool is_held(const struct core_run *entry)
{
    const uint32_t holds = (MUTANT(PAUSE_IGNORED) ? 0 : 1u << PAUSE_REQUESTED) |
                           1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING | 1u << PAUSE_KEY;
    return (entry->run->paused & holds) != 0;
}

bool core_on_hold(const struct core_run *entry)
{
    return is_held(entry) || entry->run->job != JOB_NONE ||
           (entry->run->replanning > 0 && !MUTANT(BEGINS_REPLANNED)) ||
           (entry->run->cancelling && !MUTANT(BEGINS_CANCELLED));
}

bool core_step_on_hold(const struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    const bool replan = state->status == STEP_CHECKING && state->phase == PHASE_REPLAN;
    return replan ? is_held(entry) || entry->run->cancelling : core_on_hold(entry);
}

/* Puts a step on hold where it keeps its order. */
static void set_aside(struct core *c, struct core_run *entry, uint32_t step, bool front)
{
    core_unlink(c, entry, step);
    if (entry->run->steps[step].status == STEP_READY) {
        core_link(c, entry, step, LIST_READY, front);
    } else {
        core_link(c, entry, step, LIST_PARKED, front);
        core_set_due(c, entry, step, core_parked_due(entry, step));
    }
}

static void enqueue(struct core *c, struct core_run *entry, uint32_t step, bool front, msec since)
{
    if (core_step_on_hold(entry, step) && !(MUTANT(BUSY_IGNORES_PAUSE) && since != c->now)) {
        set_aside(c, entry, step, front);
        return;
    }
    if (entry->plan->steps[step].type == STEP_TYPE_PLAN &&
        entry->run->steps[step].status != STEP_CHECKING) {
        core_child_start(c, entry, step);
        return;
    }
    core_unlink(c, entry, step);
    entry->sched[step].since = since;
    core_link(c, entry, step, LIST_QUEUE, front);
    const bool looks = !has_deadline(entry, step);
    const msec look = core_agent_unavailable(c, entry, step) ? c->now
                      : looks ? msec_add(c->now, core_agent_wait(c, entry, step))
                              : MSEC_NEVER;
    core_set_due(c, entry, step, sooner(end_of(entry, step), sooner(look, queue_end(entry, step))));
}

void core_enqueue(struct core *c, struct core_run *entry, uint32_t step, bool front)
{
    enqueue(c, entry, step, front, c->now);
}

void core_enqueue_again(struct core *c, struct core_run *entry, uint32_t step)
{
    enqueue(c, entry, step, true, entry->sched[step].queued_at);
}

static bool has_place(const struct core_run *entry)
{
    return run_places(entry->run) + (MUTANT(QUEUED_NOT_COUNTED) ? 0 : entry->queued) <
           run_concurrency(entry->plan);
}

bool core_needs_no_place(const struct core_run *entry, uint32_t step)
{
    return entry->run->steps[step].placeless != 0;
}

void core_admit(struct core *c, struct core_run *entry)
{
    while (entry->ready.n > 0 && !core_on_hold(entry) &&
           (core_needs_no_place(entry, entry->ready.head) || has_place(entry))) {
        const uint32_t step = entry->ready.head;
        if (!core_ask_condition(c, entry, step) && !core_prepare(c, entry, step)) {
            core_enqueue(c, entry, step, false);
        }
    }
}

/* From the last to the first, each to the front: the order stays. */
static void park_list(struct core *c, struct core_run *entry, const struct own_list *own)
{
    for (uint64_t ref = core_list_of(c, entry, *own).tail; ref != REF_NONE;) {
        const uint32_t step = (uint32_t)ref;
        ref = entry->sched[step].prev;
        if (core_step_on_hold(entry, step)) {
            set_aside(c, entry, step, true);
        }
    }
}

void core_park(struct core *c, struct core_run *entry)
{
    for (uint32_t i = entry->plan->agents.n; i > 0; i--) {
        park_list(c, entry, &core_queues(entry)[i - 1].steps);
    }
    park_list(c, entry, &entry->budget_waiters);
    park_list(c, entry, &entry->conditions);
    /* Those that wait for keys are in lists that plans share. */
    for (uint32_t i = entry->plan->keys.n > 0 ? entry->run->n_steps : 0; i > 0; i--) {
        if (entry->sched[i - 1].list == LIST_KEY && core_step_on_hold(entry, i - 1)) {
            set_aside(c, entry, i - 1, true);
        }
    }
}

void core_unpark(struct core *c, struct core_run *entry)
{
    for (uint32_t n = MUTANT(RESUME_FORGETS) ? 0 : entry->parked.n; n > 0; n--) {
        core_enqueue(c, entry, entry->parked.head, false);
    }
    core_admit(c, entry);
}
