/* How steps and plans end. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* ---- telling instances ---- */

bool core_is_out(const struct core_run *entry, uint32_t step)
{
    const enum list_kind list = entry->sched[step].list;
    return list == LIST_HELD || list == LIST_UNKNOWN || list == LIST_CHILD;
}

struct holder core_holder(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    struct instance_view view;
    struct holder who = {
        .slot = REGISTRY_NONE, .phase = state->phase, .serial = run_step_serial(entry->run, step)};
    if ((entry->plan->steps[step].type == STEP_TYPE_PLAN && state->status == STEP_IN_PROGRESS) ||
        run_step_calls(state)) {
        who.child = true;
        who.round = state->round;
        return who;
    }
    if (state->status == STEP_CHECKING) {
        who.slot = entry->sched[step].list == LIST_HELD ? entry->sched[step].slot : REGISTRY_NONE;
    } else {
        who.slot = registry_instance(c->registry, state->instance);
    }
    if (who.slot != REGISTRY_NONE && registry_instance_view(c->registry, who.slot, &view)) {
        who.epoch = view.epoch;
    } else {
        who.slot = REGISTRY_NONE;
    }
    return who;
}

void core_emit_cancel(struct core *c, const struct core_run *entry, uint32_t step,
                      const struct holder *who, struct str why)
{
    if (who->slot == REGISTRY_NONE && (!who->child || MUTANT(CHILD_NOT_STOPPED))) {
        return;
    }
    struct core_cmd *cmd = core_emit(c, who->child ? CMD_CHILD_STOP : CMD_CANCEL_STEP);
    cmd->run = core_handle_of(c, entry);
    cmd->step = step;
    cmd->round = who->round;
    cmd->phase = who->phase;
    cmd->attempt = who->serial;
    cmd->slot = who->slot;
    cmd->epoch = who->epoch;
    cmd->text = why;
}

/* ---- a step ---- */

/* Skips a step that can never start; false when it may. */
static bool skip_doomed(struct core *c, struct core_run *entry, uint32_t step)
{
    const enum step_reason why = run_step_doom(entry->run, entry->plan, step);
    const struct plan_step *about = &entry->plan->steps[step];
    if (why == REASON_NONE) {
        return false;
    }
    const bool failed = why == REASON_DEPENDENCY_FAILED;
    core_record(c, entry,
                (struct record){
                    REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_SKIPPED, .reason = why,
                             .error_class = failed ? CLASS_DEPENDENCY_FAILED : CLASS_NONE,
                             .doubt = entry->run->steps[step].doubt != 0),
                    .step = step, .agent = about->agent,
                    .text = failed ? STR_LIT("A dependency failed")
                            : about->rules->policy.run_if == RUN_IF_FAILURE
                                ? STR_LIT("no step before it failed")
                                : STR_LIT("every step before it was skipped")});
    return true;
}

void core_settle(struct core *c, struct core_run *entry, uint32_t step)
{
    uint32_t *work = core_entry_work(entry);
    uint32_t n = 0;
    work[n++] = step;
    for (uint32_t done = 0; done < n; done++) {
        const uint32_t ended = work[done];
        for (uint32_t i = 0; i < run_dependents(entry->plan, ended); i++) {
            const uint32_t next = run_dependent(entry->plan, ended, i);
            if (entry->run->steps[next].status == STEP_READY) {
                if (entry->sched[next].list == LIST_NONE) {
                    core_link(c, entry, next, LIST_READY, core_needs_no_place(entry, next));
                }
            } else if (skip_doomed(c, entry, next)) {
                work[n++] = next;
            }
        }
    }
}

/* An unsafe step that ends without an answer to its last attempt, or with one that says nothing
 * about its effects: a timeout that the agent itself reports, bytes that cannot be read. */
static bool leaves_doubt(const struct core_run *entry, const struct record *rec)
{
    const struct rec_step_completed *end = REC(rec, step_completed);
    const enum step_status status = entry->run->steps[rec->step].status;
    const bool gone = entry->sched[rec->step].list == LIST_LOST; /* and not resolved yet */
    const bool cut = gone || end->error_class == CLASS_TIMEOUT ||
                     end->error_class == CLASS_PROTOCOL_ERROR ||
                     (end->stop != STOP_NONE && end->stop != STOP_ACKNOWLEDGED);
    if (end->status == STEP_COMPLETED || MUTANT(DOUBT_FORGOTTEN) ||
        entry->plan->steps[rec->step].rules->policy.effects != EFFECTS_UNSAFE) {
        return false;
    }
    return (cut && (status == STEP_IN_PROGRESS || status == STEP_UNKNOWN)) ||
           run_may_be_done(entry->run, entry->plan, rec->step);
}

void core_end_step(struct core *c, struct core_run *entry, struct record rec)
{
    const struct run_step *state = &entry->run->steps[rec.step];
    struct rec_step_completed *end = REC(&rec, step_completed);
    end->doubt = leaves_doubt(entry, &rec);
    core_unlink(c, entry, rec.step);
    core_key_step_over(c, entry, rec.step);
    rec.agent = state->agent;
    rec.attempt = state->attempt;
    end->instance = state->instance;
    end->epoch = state->epoch;
    end->duration_ms = (state->did & STEP_DID_BEGIN) != 0 ? c->now - state->started : 0;
    core_record(c, entry, rec);
}

void core_plan_cancelled(struct core *c, struct core_run *entry, struct str why)
{
    core_end_plan(c, entry,
                  &(struct plan_end){.status = PLAN_CANCELLED,
                                     .outcome = OUTCOME_FAILED,
                                     .reason = REASON_CANCELLED,
                                     .step = STEP_NONE,
                                     .text = why});
}

static bool nothing_can_happen(const struct core_run *entry)
{
    return entry->run->active == 0 && entry->run->ready == 0 && !core_on_hold(entry);
}

void core_advance(struct core *c, struct core_run *entry)
{
    if (entry->run->job != JOB_NONE) {
        return; /* the steps are over, or there are none yet */
    }
    if (entry->run->cancelling) {
        if (entry->run->active == 0) {
            core_plan_cancelled(c, entry, STR_LIT(""));
        }
        return;
    }
    if (entry->run->open == 0) {
        core_end_plan_by_steps(c, entry);
        return;
    }
    if (run_needs_signoff(entry->run, entry->plan) && !MUTANT(CHANGE_UNSIGNED) &&
        (entry->run->paused & 1u << PAUSE_SIGNOFF) == 0) {
        core_ask_signoff(c, entry);
    }
    if (nothing_can_happen(entry)) { /* only in a plan that was not checked (M026) */
        core_end_plan(
            c, entry,
            &(struct plan_end){.status = PLAN_FAILED,
                               .outcome = OUTCOME_FAILED,
                               .failure = PLAN_FAILURE_DEADLOCK,
                               .reason = REASON_PLAN_ABORTED,
                               .step = STEP_NONE,
                               .text = STR_LIT("Deadlock: no steps ready and none in progress")});
        return;
    }
    if (!core_on_hold(entry)) {
        core_unpark(c, entry);
    }
}

void core_step_ended(struct core *c, struct core_run *entry, struct record rec)
{
    const struct run_step *state = &entry->run->steps[rec.step];
    const uint32_t planned = entry->plan->steps[rec.step].agent;
    core_end_step(c, entry, rec);
    if (REC(&rec, step_completed)->status == STEP_COMPLETED && state->hops > 0 &&
        entry->plan->handback) {
        core_record(c, entry,
                    (struct record){REC_INIT(HANDOFF, handoff, .kind = HANDOFF_BACK,
                                             .from_agent = state->agent),
                                    .step = rec.step, .attempt = state->attempt, .agent = planned});
    }
    if (!entry->run->cancelling) {
        core_settle(c, entry, rec.step);
    }
    core_advance(c, entry);
}

/* ---- the plan ---- */

/* Ends one step of a plan that is over. A step that never began only leaves its list:
 * PLAN_COMPLETED covers it. */
static void stop_step(struct core *c, struct core_run *entry, uint32_t step,
                      const struct plan_end *end)
{
    const enum step_status status = entry->run->steps[step].status;
    const bool out =
        core_is_out(entry, step) ||
        (entry->sched[step].list == LIST_NONE && status == STEP_IN_PROGRESS); /* before a restart */
    if (!run_step_is_active(status)) {
        core_unlink(c, entry, step);
        return;
    }
    const struct holder who = core_holder(c, entry, step);
    core_end_step(c, entry,
                  (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_CANCELLED,
                                           .reason = end->reason, .error_class = CLASS_CANCELLED,
                                           .stop = out ? STOP_FENCED : STOP_NONE),
                                  .step = step, .text = end->text});
    if (out) {
        core_emit_cancel(c, entry, step, &who, end->text);
    }
}

void core_plan_finish(struct core *c, struct core_run *entry, const struct plan_end *end,
                      struct blob_ref result)
{
    if (core_undo(c, entry, end)) {
        return;
    }
    const bool begun = entry->run->status != PLAN_PENDING;
    c->quiet = true;
    core_record(c, entry,
                (struct record){REC_INIT(PLAN_COMPLETED, plan_completed, .status = end->status,
                                         .outcome = end->outcome, .failure = end->failure,
                                         .duration_ms = begun ? c->now - entry->run->started : 0,
                                         .result = result),
                                .step = end->step, .text = end->text});
    c->quiet = false;
    core_emit(c, CMD_RUN_DONE)->run = core_handle_of(c, entry);
    core_release_run(c, entry);
}

void core_end_plan(struct core *c, struct core_run *entry, const struct plan_end *end)
{
    c->quiet = true; /* the plan ends: no PLAN_PAUSED or PLAN_RESUMED any more */
    for (uint32_t i = 0; entry->run->open > 0 && i < entry->run->n_steps; i++) {
        stop_step(c, entry, i, end);
    }
    if (!core_synthesize(c, entry, end)) {
        core_plan_finish(c, entry, end, (struct blob_ref){0});
    }
    c->quiet = false;
}

void core_step_fails_plan(struct core *c, struct core_run *entry, uint32_t step,
                          enum plan_failure failure, struct str text)
{
    core_end_plan(c, entry,
                  &(struct plan_end){.status = PLAN_FAILED,
                                     .outcome = OUTCOME_FAILED,
                                     .failure = failure,
                                     .reason = REASON_PLAN_ABORTED,
                                     .step = step,
                                     .text = text});
}

/* C07: steps that a person or a condition skipped, and superseded ones, are no failure. */
static bool is_success(const struct core_run *entry)
{
    for (uint32_t i = 0; i < entry->run->n_steps; i++) {
        const struct run_step *state = &entry->run->steps[i];
        const bool wanted = state->status == STEP_COMPLETED ||
                            (state->status == STEP_SKIPPED && (state->reason == REASON_USER_SKIP ||
                                                               state->reason == REASON_CONDITION));
        if (!wanted && !entry->plan->steps[i].superseded) {
            return false;
        }
    }
    return true;
}

/* Without it, nothing was done because people skipped everything. */
static bool some_bypassed(const struct run *run)
{
    for (uint32_t i = 0; run->skipped > 0 && i < run->n_steps; i++) {
        if (run->steps[i].status == STEP_SKIPPED && run->steps[i].reason == REASON_CONDITION) {
            return true;
        }
    }
    return false;
}

void core_end_plan_by_steps(struct core *c, struct core_run *entry)
{
    struct plan_end end = {.status = PLAN_COMPLETED, .outcome = OUTCOME_PARTIAL, .step = STEP_NONE};
    if (core_end_stands(entry, &end)) {
        core_end_plan(c, entry, &end);
        return;
    }
    if (entry->run->completed == 0 && !(some_bypassed(entry->run) && is_success(entry))) {
        end.status = PLAN_FAILED;
        end.outcome = OUTCOME_FAILED;
        end.failure = PLAN_FAILURE_NOTHING_COMPLETED;
    } else if (is_success(entry)) {
        end.outcome = OUTCOME_SUCCESS;
    }
    core_end_plan(c, entry, &end);
}

void core_plan_timeout(struct core *c, struct core_run *entry)
{
    if (entry->run->job == JOB_SYNTHESIS) {
        core_synthesis_timeout(c, entry);
        return;
    }
    core_end_plan(c, entry,
                  &(struct plan_end){.status = PLAN_FAILED,
                                     .outcome = OUTCOME_FAILED,
                                     .failure = PLAN_FAILURE_TIMEOUT,
                                     .reason = REASON_PLAN_TIMEOUT,
                                     .step = STEP_NONE,
                                     .text = core_text_timeout(c, entry->plan->timeout_ms)});
}
