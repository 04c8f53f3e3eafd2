/* Revisions of a plan, by the replanner after a failure (M050-M054, C16) or by a person. Steps keep
 * their indexes, so work under way is not affected; see run_revise(). */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* ---- asking for one ---- */

static struct str max_replans_text(struct core *c, uint32_t max, struct str last)
{
    return core_text_count(c, "Max replans (", max, ") exceeded. Last error: ", last);
}

static void fail_with(struct core *c, struct core_run *entry, uint32_t step,
                      const struct failure *f, enum plan_failure failure, struct str text)
{
    const struct holder who = core_holder(c, entry, step);
    c->quiet = true;
    core_end_step(c, entry,
                  (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED,
                                           .reason = f->reason, .error_class = f->error_class,
                                           .stop = f->cancel ? STOP_FENCED : STOP_NONE),
                                  .step = step, .usage = f->usage, .text = f->text});
    if (f->cancel) {
        core_emit_cancel(c, entry, step, &who, f->text);
    }
    core_step_fails_plan(c, entry, step, failure, text);
}

void core_replan(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f)
{
    const struct replan_policy *policy = &entry->plan->replan;
    const struct run_step *state = &entry->run->steps[step];
    const struct holder who = core_holder(c, entry, step);
    if (policy->agent_id.len == 0) {
        fail_with(c, entry, step, f, PLAN_FAILURE_STEP, f->text);
        return;
    }
    if (entry->run->replanning > 0) {
        /* The revision that is being made will drop the step, or contain it again. */
        core_fail_by(c, entry, step, f, ON_FAILURE_CONTINUE);
        return;
    }
    if (entry->run->replans >= policy->max_total) {
        fail_with(c, entry, step, f, PLAN_FAILURE_MAX_REPLANS,
                  max_replans_text(c, policy->max_total, f->text));
        return;
    }
    if (state->replans >= policy->max_step) {
        fail_with(c, entry, step, f, PLAN_FAILURE_MAX_REPLANS_STEP,
                  max_replans_text(c, policy->max_step, f->text));
        return;
    }
    core_begin_without_attempt(c, entry, step);
    core_unlink(c, entry, step);
    core_record(
        c, entry,
        (struct record){REC_INIT(REPLAN_STARTED, replan_started, .error_class = f->error_class,
                                 .revision = entry->run->revision, .n = entry->run->replans + 1u,
                                 .delay_ms = policy->cooldown_ms),
                        .step = step, .attempt = state->attempt, .agent = policy->agent,
                        .usage = f->usage, .text = f->text});
    core_park(c, entry);
    core_set_due(c, entry, step, msec_add(c->now, policy->cooldown_ms));
    if (f->cancel) {
        core_emit_cancel(c, entry, step, &who, f->text);
    }
}

void core_replan_due(struct core *c, struct core_run *entry, uint32_t step)
{
    if (entry->run->steps[step].deadline <= c->now) {
        core_check_timeout(c, entry, step);
    } else {
        core_enqueue(c, entry, step, false);
    }
}

void core_replan_failed(struct core *c, struct core_run *entry, uint32_t step,
                        enum plan_failure failure, struct str text, const struct usage *usage)
{
    const struct run_step *state = &entry->run->steps[step];
    core_unlink(c, entry, step);
    core_record(
        c, entry,
        (struct record){REC_INIT(REPLAN_FINISHED, revision, .revision = entry->run->revision),
                        .step = step, .attempt = state->attempt, .agent = entry->plan->replan.agent,
                        .usage = *usage, .text = text});
    const struct failure f = {.error_class = state->error_class, .text = text};
    fail_with(c, entry, step, &f, failure, text);
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

/* A step that has begun stays as it is: it gets no new dependencies. */
static bool row_fits(const struct plan *to, const struct core_run *entry, uint32_t i)
{
    const struct plan_step *was = &entry->plan->steps[i];
    const struct plan_step *is = &to->steps[i];
    const struct run_step *state = &entry->run->steps[i];
    if (was->superseded && !is->superseded) {
        return false;
    }
    if (state->status == STEP_CHECKING && state->phase == PHASE_REPLAN && !is->superseded) {
        return false;
    }
    return is->superseded || !run_step_is_active(state->status) || same_deps(entry->plan, to, i);
}

/* Granted agents stay at their places; only a person may grant more (G26). */
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

/* A replan runs nothing again that has completed: not a step under its id (C32), and no unsafe work
 * that has completed, or may have been done, without a person's approval. */
static bool repeats(const struct plan *to, const struct core_run *entry, uint32_t fresh)
{
    const struct plan_step *is = &to->steps[fresh];
    for (uint32_t i = 0; i < entry->plan->n_steps; i++) {
        const struct plan_step *was = &entry->plan->steps[i];
        const bool same_id = str_eq(was->step_id, is->step_id);
        const bool completed = entry->run->steps[i].status == STEP_COMPLETED;
        const bool doubtful =
            run_may_be_done(entry->run, entry->plan, i) && !MUTANT(DOUBT_REPLANNED);
        if ((!completed && !doubtful) ||
            (!same_id && was->rules->policy.effects != EFFECTS_UNSAFE)) {
            continue;
        }
        const bool same_work = plan_step_same_work(was, is);
        const bool again =
            completed && same_id && same_work && !was->superseded && !MUTANT(COMPLETED_AGAIN);
        const bool unsafe = was->rules->policy.effects == EFFECTS_UNSAFE &&
                            (same_work || (same_id && is->rules->policy.effects == EFFECTS_UNSAFE));
        const bool unasked =
            unsafe && !is->rules->policy.requires_approval && !MUTANT(UNSAFE_REPLANNED);
        if (again || unasked) {
            return true;
        }
    }
    return false;
}

static bool revision_fits(const struct plan *to, const struct core_run *entry, bool grows)
{
    if (to->revision != entry->run->revision + 1 || to->n_steps < entry->plan->n_steps ||
        !grants_fit(to, entry->plan, grows) || to->signoff != entry->plan->signoff) {
        return false;
    }
    for (uint32_t i = 0; i < entry->plan->n_steps; i++) {
        if (!row_fits(to, entry, i)) {
            return false;
        }
    }
    for (uint32_t i = entry->plan->n_steps; !grows && i < to->n_steps; i++) {
        if (repeats(to, entry, i)) {
            return false;
        }
    }
    return true;
}

/* Ends the steps that the revision drops. */
static void end_superseded(struct core *c, struct core_run *entry, const struct plan *to)
{
    for (uint32_t i = 0; i < entry->plan->n_steps; i++) {
        const struct run_step *state = &entry->run->steps[i];
        const bool out = core_is_out(entry, i);
        const bool failed = state->status == STEP_CHECKING && state->phase == PHASE_REPLAN;
        if (!to->steps[i].superseded || step_is_final(state->status)) {
            continue;
        }
        const struct holder who = core_holder(c, entry, i);
        struct record rec = {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_SKIPPED,
                                      .reason = REASON_SUPERSEDED,
                                      .stop = out && !failed ? STOP_FENCED : STOP_NONE),
                             .step = i, .text = STR_LIT("A revision of the plan does without it")};
        if (failed) {
            REC(&rec, step_completed)->status = STEP_FAILED;
            REC(&rec, step_completed)->error_class = state->error_class;
        } else if (run_step_is_active(state->status)) {
            REC(&rec, step_completed)->status = STEP_CANCELLED;
            REC(&rec, step_completed)->error_class = CLASS_CANCELLED;
        }
        core_end_step(c, entry, rec);
        if (out && !failed && !MUTANT(SUPERSEDED_GOES_ON)) {
            core_emit_cancel(c, entry, i, &who, rec.text);
        }
    }
}

/* Skips the steps that can never start, and lists the ready ones. */
static void settle_all(struct core *c, struct core_run *entry)
{
    for (uint32_t i = 0; i < entry->run->n_steps; i++) {
        if (step_is_final(entry->run->steps[i].status)) {
            core_settle(c, entry, i);
        }
    }
    for (uint32_t i = 0; i < entry->run->n_steps; i++) {
        if (entry->run->steps[i].status == STEP_READY && entry->sched[i].list == LIST_NONE) {
            core_link(c, entry, i, LIST_READY, false);
        }
    }
}

/* Steps that have not begun leave their lists: their dependencies may change. */
static void unlink_unbegun(struct core *c, struct core_run *entry)
{
    for (uint32_t i = 0; i < entry->run->n_steps; i++) {
        if (entry->run->steps[i].status == STEP_READY) {
            core_unlink(c, entry, i);
        }
    }
}

bool core_revise(struct core *c, struct core_run *entry, const struct core_new_plan *next,
                 struct record rec)
{
    const bool person = rec.type == REC_PLAN_MODIFIED;
    if (next->plan == NULL || next->block == NULL || !revision_fits(next->plan, entry, person)) {
        return false;
    }
    core_park(c, entry);
    c->quiet = true;
    end_superseded(c, entry, next->plan);
    unlink_unbegun(c, entry);
    REC(&rec, revision)->revision = next->plan->revision;
    REC(&rec, revision)->result = next->document;
    core_record_revision(c, entry, rec, next);
    core_emit(c, CMD_REVISED)->run = core_handle_of(c, entry);
    settle_all(c, entry);
    core_emit_waiting(c, entry);
    core_advance(c, entry);
    return true;
}

void core_replan_answered(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct run_step *state = &entry->run->steps[ev->step];
    const struct core_ev_result *answer = CORE_EV(ev, result);
    const struct record rec = {REC_INIT(REPLAN_FINISHED, revision, .ok = true),
                               .step = ev->step,
                               .attempt = state->attempt,
                               .agent = entry->plan->replan.agent,
                               .usage = answer->usage,
                               .text = ev->text};
    if (answer->outcome == STEP_OUTCOME_COMPLETED && core_revise(c, entry, &answer->next, rec)) {
        return;
    }
    const struct str why =
        ev->text.len > 0 ? ev->text : STR_LIT("the plan does not fit what is under way");
    core_replan_failed(c, entry, ev->step, PLAN_FAILURE_REPAIR_INVALID,
                       core_text_pair(c, "The replanner's plan is invalid: ", why), &answer->usage);
}
