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

static void lay_out(struct core_run *entry, struct run *run, const struct plan *plan)
{
    const uint32_t n = plan->n_steps;
    ASSERT(plan->agents.n <= LIMIT_PLAN_AGENTS);
    entry->run = run;
    entry->plan = plan;
    entry->sched = (struct sched_step *)((unsigned char *)run + run_bytes(run));
    entry->queues = (struct core_queue *)(entry->sched + n);
    msec *keys = (msec *)(entry->queues + plan->agents.n);
    uint32_t *items = (uint32_t *)(keys + n);
    heap_init(&entry->due, items, items + n, keys, n);
    entry->work = items + 2 * (size_t)n;
    memset(entry->work, 0, n * sizeof *entry->work);
}

/* Initialises new entries: of steps from n_steps on, of agents from n_agents on. */
static void fill(struct core_run *entry, uint32_t n_steps, uint32_t n_agents)
{
    const struct sched_step sched = {.prev = REF_NONE, .next = REF_NONE, .slot = REGISTRY_NONE};
    for (uint32_t i = n_steps; i < entry->plan->n_steps; i++) {
        entry->sched[i] = sched;
    }
    for (uint32_t i = n_agents; i < entry->plan->agents.n; i++) {
        entry->queues[i] = (struct core_queue){
            .prev = REF_NONE, .next = REF_NONE, .agent = entry->plan->agents.at[i]};
        core_list_init(&entry->queues[i].steps);
    }
}

void core_entry_init(struct core_run *entry, struct run *run, const struct plan *plan)
{
    core_list_init(&entry->ready);
    core_list_init(&entry->budget_waiters);
    core_list_init(&entry->parked);
    core_list_init(&entry->conditions);
    core_list_init(&entry->children);
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
    memcpy(entry->queues, before.queues, n_agents * sizeof *entry->queues);
    fill(entry, n_steps, n_agents);
    entry->reserved_tokens = 0;
    entry->reserved_micros = 0;
    for (uint32_t i = 0; i < n_steps; i++) {
        heap_set(&entry->due, i, before.due.keys[i]);
        if ((entry->sched[i].holds & HOLDS_BUDGET) != 0) {
            core_budget_reserve(entry, i); /* the estimates of this revision */
        }
    }
}
