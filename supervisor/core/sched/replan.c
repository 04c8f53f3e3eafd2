/*
 * Revisions of a plan: asked of the replanner when a step failed (M050-M054, C16), or made by a
 * person. Rows keep their indexes, so whatever is out goes on untouched; see run_revise().
 */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* ---- asking for one ---- */

static struct str max_replans_text(struct core *c, uint32_t max, struct str last)
{
    return core_text_count(c, "Max replans (", max, ") exceeded. Last error: ", last);
}

static void fail_with(struct core *c, struct core_run *row, uint32_t step, const struct failure *f,
                      enum plan_failure failure, struct str text)
{
    const struct holder who = core_holder(c, row, step);
    c->quiet = true;
    core_end_step(c, row,
                  (struct record){.step = step,
                                  .status = STEP_FAILED,
                                  .reason = f->reason,
                                  .error_class = f->error_class,
                                  .stop = f->tell ? STOP_FENCED : STOP_NONE,
                                  .usage = f->usage,
                                  .text = f->text});
    if (f->tell) {
        core_tell_to_stop(c, row, step, &who, f->text);
    }
    core_step_fails_plan(c, row, step, failure, text);
}

void core_replan(struct core *c, struct core_run *row, uint32_t step, const struct failure *f)
{
    const struct replan_policy *policy = &row->plan->replan;
    const struct run_step *state = &row->run->steps[step];
    const struct holder who = core_holder(c, row, step);
    if (policy->agent_id.len == 0) {
        fail_with(c, row, step, f, PLAN_FAILURE_STEP, f->text);
        return;
    }
    if (row->run->replanning > 0) {
        /* The revision that is being made will do without it, or take it up again. */
        core_fail_by(c, row, step, f, ON_FAILURE_CONTINUE);
        return;
    }
    if (row->run->replans >= policy->max_total) {
        fail_with(c, row, step, f, PLAN_FAILURE_MAX_REPLANS,
                  max_replans_text(c, policy->max_total, f->text));
        return;
    }
    if (state->replans >= policy->max_step) {
        fail_with(c, row, step, f, PLAN_FAILURE_MAX_REPLANS_STEP,
                  max_replans_text(c, policy->max_step, f->text));
        return;
    }
    core_begin_bare(c, row, step);
    core_unlink(c, row, step);
    core_record(c, row,
                (struct record){.type = REC_REPLAN_STARTED,
                                .step = step,
                                .attempt = state->attempt,
                                .agent = policy->agent,
                                .error_class = f->error_class,
                                .revision = row->run->revision,
                                .n = row->run->replans + 1u,
                                .delay_ms = policy->cooldown_ms,
                                .usage = f->usage,
                                .text = f->text});
    core_park(c, row);
    core_due(c, row, step, msec_add(c->now, policy->cooldown_ms));
    if (f->tell) {
        core_tell_to_stop(c, row, step, &who, f->text);
    }
}

void core_replan_due(struct core *c, struct core_run *row, uint32_t step)
{
    if (row->run->steps[step].deadline <= c->now) {
        core_check_timeout(c, row, step);
    } else {
        core_enqueue(c, row, step, false);
    }
}

void core_replan_failed(struct core *c, struct core_run *row, uint32_t step,
                        enum plan_failure failure, struct str text, const struct usage *usage)
{
    const struct run_step *state = &row->run->steps[step];
    core_unlink(c, row, step);
    core_record(c, row,
                (struct record){.type = REC_REPLAN_FINISHED,
                                .step = step,
                                .attempt = state->attempt,
                                .agent = row->plan->replan.agent,
                                .revision = row->run->revision,
                                .usage = *usage,
                                .text = text});
    const struct failure f = {.error_class = state->error_class, .text = text};
    fail_with(c, row, step, &f, failure, text);
}

/* ---- taking one over ---- */

static bool same_deps(const struct plan *a, const struct plan *b, uint32_t step)
{
    if (run_deps(a, step) != run_deps(b, step)) {
        return false;
    }
    for (uint32_t i = 0; i < run_deps(a, step); i++) {
        if (run_dep(a, step, i) != run_dep(b, step, i)) {
            return false;
        }
    }
    return true;
}

/* A row that has begun stays as it is: nothing new may come before it. */
static bool row_fits(const struct plan *to, const struct core_run *row, uint32_t i)
{
    const struct plan_step *was = &row->plan->steps[i];
    const struct plan_step *is = &to->steps[i];
    const struct run_step *state = &row->run->steps[i];
    if (was->superseded && !is->superseded) {
        return false;
    }
    if (state->status == STEP_CHECKING && state->phase == PHASE_REPLAN && !is->superseded) {
        return false;
    }
    return is->superseded || !run_step_is_active(state->status) || same_deps(row->plan, to, i);
}

/* Whoever was granted stays where it is; only a person may grant more (G26). */
static bool grants_fit(const struct plan *to, const struct plan *from, bool grows)
{
    const struct plan_agents *had = &from->agents;
    if (to->agents.n < had->n || (to->agents.n > had->n && !grows && !MUTANT(REPLAN_ADDS_AGENT))) {
        return false;
    }
    for (uint32_t i = 0; i < had->n; i++) {
        if (to->agents.at[i] != had->at[i]) {
            return false;
        }
    }
    return true;
}

static bool revision_fits(const struct plan *to, const struct core_run *row, bool grows)
{
    if (to->revision != row->run->revision + 1 || to->n_steps < row->plan->n_steps ||
        !grants_fit(to, row->plan, grows)) {
        return false;
    }
    for (uint32_t i = 0; i < row->plan->n_steps; i++) {
        if (!row_fits(to, row, i)) {
            return false;
        }
    }
    return true;
}

/* Ends the rows that the revision does without. */
static void end_superseded(struct core *c, struct core_run *row, const struct plan *to)
{
    for (uint32_t i = 0; i < row->plan->n_steps; i++) {
        const struct run_step *state = &row->run->steps[i];
        const bool out = row->sched[i].list == LIST_HELD || row->sched[i].list == LIST_UNKNOWN;
        const bool failed = state->status == STEP_CHECKING && state->phase == PHASE_REPLAN;
        if (!to->steps[i].superseded || step_is_final(state->status)) {
            continue;
        }
        const struct holder who = core_holder(c, row, i);
        struct record rec = {.step = i,
                             .status = STEP_SKIPPED,
                             .reason = REASON_SUPERSEDED,
                             .stop = out && !failed ? STOP_FENCED : STOP_NONE,
                             .text = STR_LIT("A revision of the plan does without it")};
        if (failed) {
            rec.status = STEP_FAILED;
            rec.error_class = state->error_class;
        } else if (run_step_is_active(state->status)) {
            rec.status = STEP_CANCELLED;
            rec.error_class = CLASS_CANCELLED;
        }
        core_end_step(c, row, rec);
        if (out && !failed && !MUTANT(SUPERSEDED_GOES_ON)) {
            core_tell_to_stop(c, row, i, &who, rec.text);
        }
    }
}

/* What follows from the steps as they stand: doomed ones are skipped, ready ones listed. */
static void settle_all(struct core *c, struct core_run *row)
{
    for (uint32_t i = 0; i < row->run->n_steps; i++) {
        if (step_is_final(row->run->steps[i].status)) {
            core_settle(c, row, i);
        }
    }
    for (uint32_t i = 0; i < row->run->n_steps; i++) {
        if (row->run->steps[i].status == STEP_READY && row->sched[i].list == LIST_NONE) {
            core_link(c, row, i, LIST_READY, false);
        }
    }
}

/* Rows that have not begun leave their lists: their dependencies may change. */
static void unlink_unbegun(struct core *c, struct core_run *row)
{
    for (uint32_t i = 0; i < row->run->n_steps; i++) {
        if (row->run->steps[i].status == STEP_READY) {
            core_unlink(c, row, i);
        }
    }
}

bool core_revise(struct core *c, struct core_run *row, const struct core_event *ev,
                 struct record rec)
{
    const bool person = rec.type == REC_PLAN_MODIFIED;
    if (ev->plan == NULL || ev->block == NULL || !revision_fits(ev->plan, row, person)) {
        return false;
    }
    core_park(c, row);
    c->quiet = true;
    end_superseded(c, row, ev->plan);
    unlink_unbegun(c, row);
    rec.revision = ev->plan->revision;
    rec.result = ev->result;
    rec.n = ev->plan->n_steps - row->plan->n_steps;
    core_record_revision(c, row, rec, ev->plan, ev->block);
    core_emit(c, CMD_REVISED)->run = core_handle_of(c, row);
    settle_all(c, row);
    core_emit_waiting(c, row);
    core_carry_on(c, row);
    return true;
}

void core_replan_answered(struct core *c, struct core_run *row, const struct core_event *ev)
{
    const struct run_step *state = &row->run->steps[ev->step];
    const struct record rec = {.type = REC_REPLAN_FINISHED,
                               .step = ev->step,
                               .attempt = state->attempt,
                               .agent = row->plan->replan.agent,
                               .ok = true,
                               .usage = ev->usage,
                               .text = ev->text};
    if (ev->outcome == STEP_OUTCOME_COMPLETED && core_revise(c, row, ev, rec)) {
        return;
    }
    const struct str why =
        ev->text.len > 0 ? ev->text : STR_LIT("the plan does not fit what is under way");
    core_replan_failed(c, row, ev->step, PLAN_FAILURE_REPAIR_INVALID,
                       core_text_pair(c, "The replanner's plan is invalid: ", why), &ev->usage);
}
