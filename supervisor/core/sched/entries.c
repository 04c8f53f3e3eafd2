/* Where the core's own rows lie: behind the run, in the block that the shell gives. */
#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/core/sched/fair.h"

/* The run, then the rows, the 8-byte ones first. */
size_t core_run_size(const struct plan *plan)
{
    const size_t per_step = sizeof(struct sched_step) + sizeof(msec) + 3 * sizeof(uint32_t);
    return run_size(plan->n_steps) + plan->n_steps * per_step +
           plan->agents.n * sizeof(struct core_queue);
}

struct run *core_block_run(void *block)
{
    return block;
}

static void lay_out(struct core_run *row, struct run *run, const struct plan *plan)
{
    const uint32_t n = plan->n_steps;
    ASSERT(plan->agents.n <= LIMIT_PLAN_AGENTS);
    row->run = run;
    row->plan = plan;
    row->sched = (struct sched_step *)((unsigned char *)run + run_size(n));
    row->queues = (struct core_queue *)(row->sched + n);
    msec *keys = (msec *)(row->queues + plan->agents.n);
    uint32_t *items = (uint32_t *)(keys + n);
    heap_init(&row->due, items, items + n, keys, n);
    row->work = items + 2 * (size_t)n;
    memset(row->work, 0, n * sizeof *row->work);
}

/* Rows that were not there before: of steps from n_steps on, of agents from n_agents on. */
static void fill(struct core_run *row, uint32_t n_steps, uint32_t n_agents)
{
    const struct sched_step sched = {.prev = REF_NONE, .next = REF_NONE, .slot = REGISTRY_NONE};
    for (uint32_t i = n_steps; i < row->plan->n_steps; i++) {
        row->sched[i] = sched;
    }
    for (uint32_t i = n_agents; i < row->plan->agents.n; i++) {
        row->queues[i] = (struct core_queue){
            .prev = REF_NONE, .next = REF_NONE, .agent = row->plan->agents.at[i]};
        core_list_init(&row->queues[i].steps);
    }
}

void core_rows_init(struct core_run *row, struct run *run, const struct plan *plan)
{
    core_list_init(&row->ready);
    core_list_init(&row->broke);
    core_list_init(&row->parked);
    row->queued = 0;
    row->held = 0;
    row->reserved_tokens = 0;
    row->reserved_micros = 0;
    lay_out(row, run, plan);
    fill(row, 0, 0);
}

/* Lists name steps and queues by number, so nothing that points at them changes. */
void core_rows_move(struct core_run *row, struct run *run, const struct plan *plan)
{
    const struct core_run before = *row;
    const uint32_t n_steps = before.plan->n_steps;
    const uint32_t n_agents = before.plan->agents.n;
    ASSERT(plan->n_steps >= n_steps && plan->agents.n >= n_agents);
    ASSERT(plan->session == before.plan->session);
    lay_out(row, run, plan);
    memcpy(row->sched, before.sched, n_steps * sizeof *row->sched);
    memcpy(row->queues, before.queues, n_agents * sizeof *row->queues);
    fill(row, n_steps, n_agents);
    row->reserved_tokens = 0;
    row->reserved_micros = 0;
    for (uint32_t i = 0; i < n_steps; i++) {
        heap_set(&row->due, i, before.due.keys[i]);
        if ((row->sched[i].holds & HOLDS_BUDGET) != 0) {
            core_budget_reserve(row, i); /* what this revision says that it needs */
        }
    }
}
