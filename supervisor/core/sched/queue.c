/* Lists, the time of steps, and the way to an agent's queue: admission, hold, what comes due. */
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
    struct core_run *row = &c->runs[ref >> 32];
    ASSERT(row->run != NULL && (uint32_t)ref < row->run->n_steps);
    *ret_step = (uint32_t)ref;
    return row;
}

static struct sched_step *sched_of(const struct core *c, uint64_t ref)
{
    uint32_t step;
    struct core_run *row = core_deref(c, ref, &step);
    return &row->sched[step];
}

struct list *core_list(struct core *c, struct core_run *row, uint32_t step, enum list_kind kind)
{
    switch (kind) {
    case LIST_READY:
        return &row->ready;
    case LIST_QUEUE:
        return &row->queues[row->sched[step].queue].steps;
    case LIST_BUDGET:
        return &row->broke;
    case LIST_PARKED:
        return &row->parked;
    case LIST_HELD:
        return &c->instances[row->sched[step].slot].held;
    case LIST_UNKNOWN:
        return &c->unknown;
    case LIST_LOST:
        return &c->lost;
    case LIST_NONE:
    case LIST_KIND_COUNT:
        break;
    }
    return NULL;
}

static uint8_t queue_of(const struct core_run *row, uint32_t step)
{
    const uint32_t at = plan_agent_find(row->plan, run_step_agent(row->run, row->plan, step));
    ASSERT(at < LIMIT_PLAN_AGENTS); /* whoever gives a step to an agent checks the grants */
    return (uint8_t)at;
}

void core_link(struct core *c, struct core_run *row, uint32_t step, enum list_kind kind, bool front)
{
    struct sched_step *sched = &row->sched[step];
    if (kind == LIST_QUEUE || kind == LIST_HELD) {
        sched->queue = queue_of(row, step);
    }
    struct list *list = core_list(c, row, step, kind);
    const uint64_t ref = core_ref(c, row, step);
    ASSERT(sched->list == LIST_NONE && list != NULL);
    sched->list = (uint8_t)kind;
    sched->prev = front ? REF_NONE : list->tail;
    sched->next = front ? list->head : REF_NONE;
    if (sched->prev != REF_NONE) {
        sched_of(c, sched->prev)->next = ref;
    } else {
        list->head = ref;
    }
    if (sched->next != REF_NONE) {
        sched_of(c, sched->next)->prev = ref;
    } else {
        list->tail = ref;
    }
    list->n++;
    core_charge(c, row, step, kind);
    if (kind == LIST_QUEUE) {
        core_ring_join(c, row, sched->queue, front);
    }
}

void core_unlink(struct core *c, struct core_run *row, uint32_t step)
{
    struct sched_step *sched = &row->sched[step];
    core_due(c, row, step, MSEC_NEVER);
    if (sched->list == LIST_NONE) {
        return;
    }
    struct list *list = core_list(c, row, step, sched->list);
    if (sched->prev != REF_NONE) {
        sched_of(c, sched->prev)->next = sched->next;
    } else {
        list->head = sched->next;
    }
    if (sched->next != REF_NONE) {
        sched_of(c, sched->next)->prev = sched->prev;
    } else {
        list->tail = sched->prev;
    }
    ASSERT(list->n > 0);
    list->n--;
    core_give_back(c, row, step);
    if (sched->list == LIST_QUEUE) {
        core_ring_leave(c, row, sched->queue);
    }
    sched->list = LIST_NONE;
    sched->prev = REF_NONE;
    sched->next = REF_NONE;
}

/* ---- time ---- */

/* The time of a job is for one question: it begins anew with the daemon. That of a plan's own
 * questions does not run while they wait for a lane: whether others ask, too, says nothing of the
 * planner. Who talks with a session has a person waiting. */
msec core_row_deadline(const struct core *c, const struct core_run *row)
{
    const msec deadline = row->run->deadline;
    const enum job_kind job = row->plan->job;
    msec since = c->recovered_at;

    if (job == JOB_NONE || deadline == MSEC_NEVER) {
        return deadline;
    }
    if (job == JOB_PLANNING || job == JOB_SYNTHESIS) {
        const struct run_step *question = &row->run->steps[0];
        if ((question->did & STEP_DID_BEGIN) == 0) {
            return MSEC_NEVER;
        }
        since = question->started > since ? question->started : since;
        return msec_add(since, row->plan->timeout_ms);
    }
    since = msec_add(since, row->plan->timeout_ms);
    return deadline < since ? since : deadline;
}

msec core_plan_deadline(const struct core *c, uint64_t handle)
{
    const struct core_run *row = core_find_run(c, handle);
    return row == NULL ? MSEC_NEVER : core_row_deadline(c, row);
}

void core_rearm(struct core *c, struct core_run *row)
{
    const msec steps = heap_min(&row->due);
    const msec plan = core_row_deadline(c, row);
    heap_set(&c->due, (uint32_t)(row - c->runs), steps < plan ? steps : plan);
}

void core_due(struct core *c, struct core_run *row, uint32_t step, msec when)
{
    heap_set(&row->due, step, when);
    core_rearm(c, row);
}

static msec sooner(msec a, msec b)
{
    return a < b ? a : b;
}

/* A question has its deadline; any other step its limit, wherever it waits. */
static msec end_of(const struct core_run *row, uint32_t step)
{
    const struct run_step *state = &row->run->steps[step];
    return state->status == STEP_CHECKING ? state->deadline : state->limit;
}

msec core_parked_due(const struct core_run *row, uint32_t step)
{
    const struct run_step *state = &row->run->steps[step];
    return state->status == STEP_CHECKING ? MSEC_NEVER : state->limit;
}

/* A question with a deadline needs nothing else: who does not answer by then is absent enough. */
static bool has_deadline(const struct core_run *row, uint32_t step)
{
    const struct run_step *state = &row->run->steps[step];
    return state->status == STEP_CHECKING && state->deadline != MSEC_NEVER;
}

/* When it has waited for a lane too long; a question has nothing but its deadline. */
static msec queue_end(const struct core_run *row, uint32_t step)
{
    const msec wait = row->plan->steps[step].policy.queue_timeout_ms;
    const bool question = row->run->steps[step].status == STEP_CHECKING;
    return wait == 0 || question || MUTANT(QUEUE_FOR_EVER) ? MSEC_NEVER
                                                           : msec_add(row->sched[step].since, wait);
}

/* Whether the agent is there at all: looked at now and then instead of whenever instances come and
 * go. */
static msec absence_end(const struct core *c, const struct core_run *row, uint32_t step)
{
    const struct agent_view agent =
        registry_agent_view(c->registry, run_step_agent(row->run, row->plan, step));
    const msec since = row->sched[step].since;
    const msec absent = agent.absent_since > since ? agent.absent_since : since;
    const msec wait = c->config.agent_wait_ms;
    return agent.instances > 0 ? msec_add(c->now, wait > 0 ? wait : 1000) : msec_add(absent, wait);
}

/* Nobody will come, and who asks has a better use for the answer than for the time. */
bool core_agent_unavailable(const struct core *c, const struct core_run *row, uint32_t step)
{
    const struct agent_view agent =
        registry_agent_view(c->registry, run_step_agent(row->run, row->plan, step));
    return agent.instances == 0 && agent.failure.len > 0 &&
           (row->plan->job != JOB_NONE || row->run->steps[step].status == STEP_CHECKING);
}

static void absent(struct core *c, struct core_run *row, uint32_t step)
{
    const uint32_t agent = run_step_agent(row->run, row->plan, step);
    const struct failure f = {.error_class = CLASS_AGENT_UNAVAILABLE,
                              .text = core_text_absent(c, agent)};
    if (row->run->steps[step].status == STEP_CHECKING) {
        core_check_error(c, row, &(struct core_event){.step = step, .text = f.text});
        return;
    }
    core_give_up(c, row, step, &f);
}

static void waited_too_long(struct core *c, struct core_run *row, uint32_t step, struct str text)
{
    const struct failure f = {.error_class = CLASS_TIMEOUT, .text = text};
    core_give_up(c, row, step, &f);
}

void core_queue_due(struct core *c, struct core_run *row, uint32_t step)
{
    const struct step_policy *policy = &row->plan->steps[step].policy;
    const bool question = row->run->steps[step].status == STEP_CHECKING;
    const bool queued = row->sched[step].list == LIST_QUEUE;
    msec next = end_of(row, step);
    if (next <= c->now && question) {
        core_check_timeout(c, row, step);
        return;
    }
    if (next <= c->now) {
        waited_too_long(c, row, step,
                        core_text_ms(c, "Step limit of ", policy->limit_ms, "ms reached"));
        return;
    }
    if (queued && core_agent_unavailable(c, row, step)) {
        absent(c, row, step);
        return;
    }
    if (queued && !has_deadline(row, step)) {
        if (queue_end(row, step) <= c->now) {
            waited_too_long(
                c, row, step,
                core_text_ms(c, "Queue timeout after ", policy->queue_timeout_ms, "ms"));
            return;
        }
        const msec look = absence_end(c, row, step);
        if (look <= c->now) {
            absent(c, row, step);
            return;
        }
        next = sooner(next, sooner(look, queue_end(row, step)));
    }
    core_due(c, row, step, next);
}

/* ---- the way to a lane ---- */

static bool is_held(const struct core_run *row)
{
    const uint32_t told = (MUTANT(PAUSE_IGNORED) ? 0 : 1u << PAUSE_REQUESTED) |
                          1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING;
    return (row->run->paused & told) != 0;
}

bool core_hold(const struct core_run *row)
{
    return is_held(row) || row->run->job != JOB_NONE ||
           (row->run->replanning > 0 && !MUTANT(BEGINS_REPLANNED)) ||
           (row->run->cancelling && !MUTANT(BEGINS_CANCELLED));
}

bool core_hold_step(const struct core_run *row, uint32_t step)
{
    const struct run_step *state = &row->run->steps[step];
    const bool replan = state->status == STEP_CHECKING && state->phase == PHASE_REPLAN;
    return replan ? is_held(row) || row->run->cancelling : core_hold(row);
}

/* A step on hold waits where its turn is kept. */
static void set_aside(struct core *c, struct core_run *row, uint32_t step, bool front)
{
    core_unlink(c, row, step);
    if (row->run->steps[step].status == STEP_READY) {
        core_link(c, row, step, LIST_READY, front);
    } else {
        core_link(c, row, step, LIST_PARKED, front);
        core_due(c, row, step, core_parked_due(row, step));
    }
}

void core_enqueue(struct core *c, struct core_run *row, uint32_t step, bool front)
{
    if (core_hold_step(row, step)) {
        set_aside(c, row, step, front);
        return;
    }
    core_unlink(c, row, step);
    row->sched[step].since = c->now;
    core_link(c, row, step, LIST_QUEUE, front);
    const bool looks = !has_deadline(row, step);
    const msec look = core_agent_unavailable(c, row, step) ? c->now
                      : looks ? msec_add(c->now, c->config.agent_wait_ms)
                              : MSEC_NEVER;
    core_due(c, row, step, sooner(end_of(row, step), sooner(look, queue_end(row, step))));
}

void core_admit(struct core *c, struct core_run *row)
{
    while (row->ready.head != REF_NONE && !core_hold(row) &&
           row->run->active + (MUTANT(QUEUED_NOT_COUNTED) ? 0 : row->queued) <
               run_concurrency(row->plan)) {
        const uint32_t step = (uint32_t)row->ready.head;
        if (!core_prepare(c, row, step)) {
            core_enqueue(c, row, step, false);
        }
    }
}

/* From the last to the first, each to the front: the order stays. */
static void park_list(struct core *c, struct core_run *row, const struct list *list)
{
    for (uint64_t ref = list->tail; ref != REF_NONE;) {
        const uint32_t step = (uint32_t)ref;
        ref = row->sched[step].prev;
        if (core_hold_step(row, step)) {
            set_aside(c, row, step, true);
        }
    }
}

void core_park(struct core *c, struct core_run *row)
{
    for (uint32_t i = row->plan->agents.n; i > 0; i--) {
        park_list(c, row, &row->queues[i - 1].steps);
    }
    park_list(c, row, &row->broke);
}

void core_unpark(struct core *c, struct core_run *row)
{
    for (uint32_t n = MUTANT(RESUME_FORGETS) ? 0 : row->parked.n; n > 0; n--) {
        core_enqueue(c, row, (uint32_t)row->parked.head, false);
    }
    core_admit(c, row);
}
