/* Plans coming in: new, rebuilt from the journal, and called off. */
#include <stdalign.h>
#include <stddef.h>

#include "protocol/base/assert.h"
#include "supervisor/core/core_internal.h"

/* Takes a free slot for the run that the block holds, with empty soft rows. */
static struct core_run *attach(struct core *c, struct run *run, const struct plan *plan)
{
    struct core_run *row = &c->runs[c->free_run];
    c->free_run = row->next_free;
    c->open++;
    row->generation = row->generation == UINT32_MAX ? 1 : row->generation + 1;
    core_rows_init(row, run, plan);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        ASSERT(plan->steps[i].type == STEP_TYPE_REVIEW ||
               plan->steps[i].agent < registry_agents(c->registry));
    }
    ASSERT(plan->session < c->config.sessions);
    c->newest = core_handle_of(c, row);
    return row;
}

void core_release_run(struct core *c, struct core_run *row)
{
    const uint32_t slot = (uint32_t)(row - c->runs);
    heap_set(&c->due, slot, MSEC_NEVER);
    ASSERT(row->ready.n == 0 && row->queued == 0 && row->held == 0 && row->due.n == 0);
    ASSERT(row->reserved_tokens == 0 && row->reserved_micros == 0);
    *row = (struct core_run){.generation = row->generation,
                             .next_free = c->free_run,
                             .woken = row->woken /* its place in the list is still there */};
    c->free_run = slot;
    c->open--;
}

static bool has_room(struct core *c, const struct core_event *ev)
{
    ASSERT(ev->plan != NULL && ev->block != NULL);
    ASSERT((uintptr_t)ev->block % alignof(max_align_t) == 0);
    c->newest = 0;
    if (c->free_run == UINT32_MAX) {
        core_reject(c, ev, REJECT_TOO_MANY_RUNS);
        return false;
    }
    return true;
}

/* Everything may begin that is ready, and a plan of which nothing is left ends. */
static void go_on(struct core *c, struct core_run *row)
{
    core_rearm(c, row);
    if (row->run->open == 0) {
        core_plan_over_naturally(c, row);
    } else {
        core_admit(c, row);
    }
}

static void begin(struct core *c, struct core_run *row)
{
    if (row->run->plan_seq == 0) {
        core_record(c, row, (struct record){.type = REC_PLAN_GENERATED, .step = STEP_NONE});
    }
    core_record(c, row, (struct record){.type = REC_PLAN_STARTED, .step = STEP_NONE});
}

void core_on_submit(struct core *c, const struct core_event *ev)
{
    if (!has_room(c, ev)) {
        return;
    }
    struct core_run *row = attach(c, run_init(ev->block, ev->plan), ev->plan);
    begin(c, row);
    for (uint32_t i = 0; i < row->run->n_steps; i++) {
        if (row->run->steps[i].status == STEP_READY) {
            core_link(c, row, i, LIST_READY, false);
        }
    }
    go_on(c, row);
}

/* Puts one step of a rebuilt run where it waits for what comes next. */
static void resume_step(struct core *c, struct core_run *row, uint32_t step)
{
    const struct run_step *state = &row->run->steps[step];
    switch ((enum step_status)state->status) {
    case STEP_READY:
        core_link(c, row, step, LIST_READY, false);
        break;
    case STEP_BACKOFF:
        core_due(c, row, step, state->deadline);
        break;
    case STEP_IN_PROGRESS:
    case STEP_UNKNOWN:
        core_step_unknown(c, row, step);
        break;
    case STEP_PENDING:
    case STEP_WAITING:
    case STEP_CHECKING:
    case STEP_COMPLETED:
    case STEP_FAILED:
    case STEP_SKIPPED:
    case STEP_CANCELLED:
    case STEP_STATUS_COUNT:
        break;
    }
}

/*
 * A turn is journaled as a whole, so its decisions are complete. A journal that was cut inside a
 * turn (by hand, by an import) may still hold a cause without its effect: what follows from the
 * steps is decided again here.
 */
static bool finish_decided(struct core *c, struct core_run *row)
{
    const struct run *run = row->run;
    if (run->cancelling) {
        core_plan_over(c, row,
                       &(struct plan_end){.status = PLAN_CANCELLED,
                                          .outcome = OUTCOME_FAILED,
                                          .reason = REASON_CANCELLED,
                                          .step = STEP_NONE});
        return true;
    }
    for (uint32_t i = 0; run->failed > 0 && i < run->n_steps; i++) {
        if (run->steps[i].status == STEP_FAILED &&
            row->plan->steps[i].policy.on_failure == ON_FAILURE_ABORT) {
            core_plan_over(c, row,
                           &(struct plan_end){.status = PLAN_FAILED,
                                              .outcome = OUTCOME_FAILED,
                                              .failure = PLAN_FAILURE_STEP,
                                              .reason = REASON_PLAN_ABORTED,
                                              .step = i,
                                              .text = STR_LIT("A step failed before the restart")});
            return true;
        }
    }
    return false;
}

void core_on_recover(struct core *c, const struct core_event *ev)
{
    if (!has_room(c, ev)) {
        return;
    }
    struct run *run = core_block_run(ev->block);
    ASSERT(run->n_steps == ev->plan->n_steps);
    if (plan_is_final(run->status)) {
        core_reject(c, ev, REJECT_FINAL);
        return;
    }
    struct core_run *row = attach(c, run, ev->plan);
    if (run->status == PLAN_PENDING) {
        begin(c, row);
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        resume_step(c, row, i);
    }
    if (finish_decided(c, row)) {
        return;
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (step_is_final(run->steps[i].status)) {
            core_settle(c, row, i);
        }
    }
    go_on(c, row);
}

void core_on_cancel(struct core *c, const struct core_event *ev)
{
    struct core_run *row = core_find_run(c, ev->run);
    if (row == NULL) {
        core_reject(c, ev, REJECT_UNKNOWN_RUN);
        return;
    }
    core_record(c, row,
                (struct record){.type = REC_PLAN_CANCELLING, .step = STEP_NONE, .text = ev->text});
    core_plan_over(c, row,
                   &(struct plan_end){.status = PLAN_CANCELLED,
                                      .outcome = OUTCOME_FAILED,
                                      .reason = REASON_CANCELLED,
                                      .step = STEP_NONE,
                                      .text = ev->text});
}
