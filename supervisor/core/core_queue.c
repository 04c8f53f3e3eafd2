/* Lists, the agents' queues, and giving free lanes to those who wait. */
#include "protocol/base/assert.h"
#include "supervisor/core/core_internal.h"

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

static struct soft_step *soft_of(const struct core *c, uint64_t ref)
{
    uint32_t step;
    struct core_run *row = core_deref(c, ref, &step);
    return &row->soft[step];
}

struct list *core_list(struct core *c, struct core_run *row, uint32_t step, enum list_kind kind)
{
    switch (kind) {
    case LIST_READY:
        return &row->ready;
    case LIST_QUEUE:
        return &c->agents[row->plan->steps[step].agent].queue;
    case LIST_HELD:
        return &c->instances[row->soft[step].slot].held;
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

void core_link(struct core *c, struct core_run *row, uint32_t step, enum list_kind kind, bool front)
{
    struct soft_step *soft = &row->soft[step];
    struct list *list = core_list(c, row, step, kind);
    const uint64_t ref = core_ref(c, row, step);
    ASSERT(soft->list == LIST_NONE && list != NULL);
    soft->list = (uint8_t)kind;
    soft->prev = front ? REF_NONE : list->tail;
    soft->next = front ? list->head : REF_NONE;
    if (soft->prev != REF_NONE) {
        soft_of(c, soft->prev)->next = ref;
    } else {
        list->head = ref;
    }
    if (soft->next != REF_NONE) {
        soft_of(c, soft->next)->prev = ref;
    } else {
        list->tail = ref;
    }
    list->n++;
}

void core_unlink(struct core *c, struct core_run *row, uint32_t step)
{
    struct soft_step *soft = &row->soft[step];
    core_due(c, row, step, MSEC_NEVER);
    if (soft->list == LIST_NONE) {
        return;
    }
    struct list *list = core_list(c, row, step, soft->list);
    if (soft->prev != REF_NONE) {
        soft_of(c, soft->prev)->next = soft->next;
    } else {
        list->head = soft->next;
    }
    if (soft->next != REF_NONE) {
        soft_of(c, soft->next)->prev = soft->prev;
    } else {
        list->tail = soft->prev;
    }
    ASSERT(list->n > 0);
    list->n--;
    /* Called before the record that moves the step, so READY still says that it had not begun. */
    if (soft->list == LIST_QUEUE && row->run->steps[step].status == STEP_READY) {
        ASSERT(row->queued > 0);
        row->queued--;
    }
    soft->list = LIST_NONE;
    soft->prev = REF_NONE;
    soft->next = REF_NONE;
}

/* ---- time ---- */

void core_rearm(struct core *c, struct core_run *row)
{
    const msec steps = heap_min(&row->due);
    const msec plan = row->run->deadline;
    heap_set(&c->due, (uint32_t)(row - c->runs), steps < plan ? steps : plan);
}

void core_due(struct core *c, struct core_run *row, uint32_t step, msec when)
{
    heap_set(&row->due, step, when);
    core_rearm(c, row);
}

/* ---- waiting for a lane ---- */

void core_mark_dirty(struct core *c, uint32_t agent)
{
    if (!c->agents[agent].dirty) {
        c->agents[agent].dirty = true;
        c->dirty[c->n_dirty++] = agent;
    }
}

void core_enqueue(struct core *c, struct core_run *row, uint32_t step, bool front)
{
    core_unlink(c, row, step);
    core_link(c, row, step, LIST_QUEUE, front);
    row->queued += row->run->steps[step].status == STEP_READY ? 1 : 0;
    row->soft[step].since = c->now;
    /* Whether the agent is there at all is looked at when this is due: see core_tick.c. */
    core_due(c, row, step, msec_add(c->now, c->config.agent_wait_ms));
    core_mark_dirty(c, row->plan->steps[step].agent);
}

void core_admit(struct core *c, struct core_run *row)
{
    while (row->ready.head != REF_NONE &&
           row->run->active + row->queued < run_concurrency(row->plan)) {
        core_enqueue(c, row, (uint32_t)row->ready.head, false);
    }
}

/* ---- dispatching ---- */

/* Who hands over to the step (C20): in a chain whoever began last; else whose result came last
 * among those it needs. */
static uint32_t handed_over_by(const struct core_run *row, uint32_t step)
{
    if (row->plan->chain) {
        return row->run->last_agent;
    }
    const uint32_t dep = row->run->steps[step].last_dep;
    return dep == STEP_NONE ? AGENT_SUPERVISOR : row->plan->steps[dep].agent;
}

static void record_attempt(struct core *c, struct core_run *row, uint32_t step,
                           const struct instance_view *to)
{
    const struct run_step *state = &row->run->steps[step];
    const uint32_t agent = row->plan->steps[step].agent;
    struct record rec = {.step = step, .agent = agent, .instance = to->id, .epoch = to->epoch};
    if (state->status == STEP_READY) {
        const uint32_t from = handed_over_by(row, step);
        rec.type = REC_STEP_STARTED;
        rec.attempt = 1;
        core_record(c, row, rec);
        if (from != agent) {
            core_record(c, row,
                        (struct record){.type = REC_HANDOFF,
                                        .step = step,
                                        .attempt = 1,
                                        .agent = agent,
                                        .from_agent = from});
        }
        return;
    }
    rec.type = REC_STEP_ASSIGNED;
    rec.attempt = state->attempt + (state->status == STEP_BACKOFF ? 1u : 0u);
    core_record(c, row, rec);
}

static void start(struct core *c, uint64_t ref, uint32_t slot)
{
    uint32_t step;
    struct core_run *row = core_deref(c, ref, &step);
    struct instance_view to;
    const bool live = registry_instance_view(c->registry, slot, &to);
    ASSERT(live);
    const uint32_t attempt = row->run->steps[step].attempt;
    core_unlink(c, row, step);
    const uint32_t lane = registry_take(c->registry, slot);
    record_attempt(c, row, step, &to);
    const struct run_step *state = &row->run->steps[step];
    struct soft_step *soft = &row->soft[step];
    soft->slot = slot;
    soft->since = c->now;
    soft->progress = 0;
    soft->unsent = state->attempt == attempt ? soft->unsent : 0;
    core_link(c, row, step, LIST_HELD, false);
    core_due(c, row, step, state->deadline);
    struct core_cmd *cmd = core_emit(c, CMD_DISPATCH);
    cmd->run = core_handle_of(c, row);
    cmd->step = step;
    cmd->attempt = state->attempt;
    cmd->slot = slot;
    cmd->epoch = to.epoch;
    cmd->lane = lane;
}

void core_start_queued(struct core *c)
{
    for (uint32_t i = 0; i < c->n_dirty; i++) {
        struct core_agent *agent = &c->agents[c->dirty[i]];
        while (agent->queue.head != REF_NONE) {
            const uint32_t slot = registry_select(c->registry, c->dirty[i]);
            if (slot == REGISTRY_NONE) {
                break;
            }
            start(c, agent->queue.head, slot);
        }
        agent->dirty = false;
    }
    c->n_dirty = 0;
}
