/*
 * Undoing what a plan did (`compensate`). When its end is decided, and before PLAN_COMPLETED, a
 * child plan of its own runs the compensations of the steps that completed, the last one first. The
 * engine makes that plan; its retries, reviews and restarts are those of every plan.
 *
 *   the end is decided --COMPENSATION_STARTED--> undoing --COMPENSATION_FINISHED--> ended
 *
 * A child plan that is cancelled leaves the undoing to its parent, which may end like it.
 */
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

static bool wants(const struct core_run *entry, const struct plan_end *end)
{
    const struct plan *plan = entry->plan;
    const struct run *run = entry->run;
    const bool cancelled = end->status == PLAN_CANCELLED && !MUTANT(UNDO_CANCELLED);
    const bool child = plan->child.kind != CHILD_OF_NONE;
    if ((plan->undo == UNDO_NEVER && !MUTANT(NEVER_UNDONE)) || end->status == PLAN_COMPLETED ||
        run->status == PLAN_PENDING || (run->undone != 0 && !MUTANT(UNDONE_TWICE)) ||
        (cancelled && (child || plan->undo != UNDO_ALWAYS))) {
        return false;
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (run_step_undoes(run, plan, i)) {
            return true;
        }
    }
    return false;
}

void core_undo_ask(struct core *c, const struct core_run *entry)
{
    core_emit(c, CMD_COMPENSATE)->run = core_handle_of(c, entry);
}

bool core_undo(struct core *c, struct core_run *entry, const struct plan_end *end)
{
    if (!wants(entry, end)) {
        return false;
    }
    const bool quiet = c->quiet;
    c->quiet = true; /* whether it waits for people is no business of a plan that ends */
    core_record(
        c, entry,
        (struct record){REC_INIT(COMPENSATION_STARTED, synthesis_started, .status = end->status,
                                 .outcome = end->outcome, .failure = end->failure),
                        .step = end->step, .text = end->text});
    c->quiet = quiet;
    core_rearm(c, entry);
    core_undo_ask(c, entry);
    return true;
}

void core_on_compensated(struct core *c, const struct core_event *ev)
{
    const struct core_ev_compensated *undone = CORE_EV(ev, compensated);
    struct core_run *entry = core_find_run(c, ev->run);
    if (entry == NULL || entry->run->job != JOB_COMPENSATION) {
        core_reject(c, ev, entry == NULL ? REJECT_UNKNOWN_RUN : REJECT_NOT_WAITING);
        return;
    }
    core_record(c, entry,
                (struct record){REC_INIT(COMPENSATION_FINISHED, compensated, .ok = undone->ok,
                                         .done = undone->done, .failed = undone->failed),
                                .step = STEP_NONE, .usage = undone->usage, .text = ev->text});
    const struct plan_end end = core_decided_end(entry->run);
    core_plan_finish(c, entry, &end, run_phases(entry->run)->answer);
}
