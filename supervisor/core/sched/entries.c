/* The scheduler state of a run: its layout in the caller's block, after the run. */
#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/core/sched/fair.h"

/* The run, then the arrays, those with 8-byte alignment first. */
size_t core_run_size(const struct plan *plan)
{
    const size_t per_step = sizeof(struct sched_step) + sizeof(msec) + 3 * sizeof(uint32_t);
    return run_size(plan) + plan->n_steps * per_step + plan->agents.n * sizeof(struct core_queue);
}

struct run *core_block_run(void *block)
{
    return block;
}

/* The arrays of the heap lie behind the queues: keys, items, places. */
static msec *due_keys(const struct core_run *entry)
{
    return (msec *)(core_queues(entry) + entry->plan->agents.n);
}

static uint32_t *due_items(const struct core_run *entry)
{
    return (uint32_t *)(due_keys(entry) + entry->plan->n_steps);
}

struct heap core_entry_heap(const struct core_run *entry)
{
    uint32_t *items = due_items(entry);
    return (struct heap){.items = items,
                         .pos = items + entry->plan->n_steps,
                         .keys = due_keys(entry),
                         .n = entry->due_n};
}

void core_entry_due_set(struct core_run *entry, uint32_t step, msec when)
{
    struct heap due = core_entry_heap(entry);
    heap_set(&due, step, when);
    entry->due_n = due.n;
}

uint32_t *core_entry_work(const struct core_run *entry)
{
    return due_items(entry) + 2 * (size_t)entry->plan->n_steps;
}

static void lay_out(struct core_run *entry, struct run *run, const struct plan *plan)
{
    const uint32_t n = plan->n_steps;
    struct heap due;
    ASSERT(plan->agents.n <= LIMIT_PLAN_AGENTS);
    entry->run = run;
    entry->plan = plan;
    entry->sched = (struct sched_step *)((unsigned char *)run + run_bytes(run));
    heap_init(&due, due_items(entry), due_items(entry) + n, due_keys(entry), n);
    entry->due_n = 0;
    memset(core_entry_work(entry), 0, n * sizeof(uint32_t));
}

/* Initialises new entries: of steps from n_steps on, of agents from n_agents on. */
static void fill(struct core_run *entry, uint32_t n_steps, uint32_t n_agents)
{
    const struct sched_step sched = {.prev = REF_NONE, .next = REF_NONE, .slot = REGISTRY_NONE};
    for (uint32_t i = n_steps; i < entry->plan->n_steps; i++) {
        entry->sched[i] = sched;
    }
    for (uint32_t i = n_agents; i < entry->plan->agents.n; i++) {
        core_queues(entry)[i] = (struct core_queue){.prev = REF_NONE,
                                                    .next = REF_NONE,
                                                    .steps = OWN_LIST_EMPTY,
                                                    .agent = entry->plan->agents.at[i]};
    }
}

void core_entry_init(struct core_run *entry, struct run *run, const struct plan *plan)
{
    const struct own_list none = OWN_LIST_EMPTY;
    entry->ready = entry->budget_waiters = entry->parked = none;
    entry->conditions = entry->children = none;
    entry->queued = 0;
    entry->held = 0;
    entry->key_prev = entry->key_next = REF_NONE;
    entry->key_list = KEY_LIST_NONE;
    entry->reserved_tokens = 0;
    entry->reserved_micros = 0;
    lay_out(entry, run, plan);
    fill(entry, 0, 0);
}

/* Lists link steps and queues by number, so all links stay valid. */
void core_entry_move(struct core_run *entry, struct run *run, const struct plan *plan)
{
    const struct core_run before = *entry;
    const uint32_t n_steps = before.plan->n_steps;
    const uint32_t n_agents = before.plan->agents.n;
    ASSERT(plan->n_steps >= n_steps && plan->agents.n >= n_agents);
    ASSERT(plan->session == before.plan->session);
    lay_out(entry, run, plan);
    memcpy(entry->sched, before.sched, n_steps * sizeof *entry->sched);
    memcpy(core_queues(entry), core_queues(&before), n_agents * sizeof(struct core_queue));
    fill(entry, n_steps, n_agents);
    entry->reserved_tokens = 0;
    entry->reserved_micros = 0;
    for (uint32_t i = 0; i < n_steps; i++) {
        core_entry_due_set(entry, i, due_keys(&before)[i]);
        if ((entry->sched[i].holds & HOLDS_BUDGET) != 0) {
            core_budget_reserve(entry, i); /* the estimates of this revision */
        }
    }
}
