/* The rules of the records about the whole plan. */
#include "tests/explore/world.h"
#include "tests/unit/core/run/flat_record.h"

bool world_take_generated(struct world *w, const struct record *rec, const char **ret_why)
{
    RULE(!w->at.generated, "generated twice");
    w->at.generated = true;
    return world_take_planned(w, rec, ret_why);
}

bool world_take_plan_started(struct world *w, const struct record *rec, const char **ret_why)
{
    (void)rec;
    const bool alone = w->doing.kind == WORLD_JOB_FAILED &&
                       world_plan(w)->planning.on_invalid == ON_INVALID_SYNTHESIZE;
    RULE((w->at.generated || alone) && !w->at.begun && w->at.paused == 0 && !w->at.cancelling,
         "started out of turn");
    RULE(!world_plan(w)->dry_run, "a dry run runs");
    RULE(!world_plan(w)->signoff || w->at.signed_off || alone, "started without its sign-off");
    w->at.begun = true;
    w->at.started_at = w->at.now;
    return true;
}

void world_changed(struct world *w)
{
    w->at.signed_off = false;
    w->at.paused &= (uint8_t) ~(1u << PAUSE_SIGNOFF);
}

bool world_take_voided(struct world *w, const struct record *rec, const char **ret_why)
{
    const bool replan = w->doing.kind == WORLD_RESULT && w->doing.phase == PHASE_REPLAN;
    RULE((w->at.paused & 1u << PAUSE_SIGNOFF) != 0 && !w->at.signed_off, "void, but not open");
    RULE(REC(rec, pause)->serial == w->shadow->plan_review &&
             REC(rec, pause)->revision == w->at.revision,
         "another review is void");
    RULE(w->doing.kind == WORLD_MODIFY || w->doing.kind == WORLD_REVISE || replan,
         "void without a change");
    world_changed(w);
    return true;
}

bool world_take_modified(struct world *w, const struct record *rec, const char **ret_why)
{
    const bool revise = w->doing.kind == WORLD_REVISE;
    RULE(w->doing.kind == WORLD_MODIFY || revise, "changed by nobody");
    RULE(w->doing.charged, "changed although it was not to be");
    RULE(w->at.job.kind == JOB_NONE, "changed while it is made or answered");
    RULE(!w->at.cancelling, "changed while it is cancelled");
    RULE(record_revises(rec) == revise, "a revision without a plan");
    w->seen->modifies[REC(rec, revision)->modify]++;
    if (REC(rec, revision)->modify != MODIFY_CONVERSATION_ONLY) {
        RULE((w->at.paused & 1u << PAUSE_SIGNOFF) == 0, "a change during a sign-off");
        world_changed(w);
    }
    return true;
}

bool world_take_paused(struct world *w, const struct record *rec, const char **ret_why)
{
    const uint8_t bit = (uint8_t)(1u << REC(rec, pause)->reason);
    RULE((w->at.paused & bit) == 0, "paused twice");
    RULE(REC(rec, pause)->reason != PAUSE_REQUESTED || w->doing.kind == WORLD_PAUSE,
         "paused by nobody");
    RULE(w->at.job.kind == JOB_NONE, "paused while it is made or answered");
    RULE(REC(rec, pause)->reason != PAUSE_PLANNING ||
             (w->doing.kind == WORLD_JOB_FAILED &&
              world_plan(w)->planning.on_invalid == ON_INVALID_INTERRUPT),
         "asks a person without need");
    w->at.paused |= bit;
    return true;
}

bool world_take_resumed(struct world *w, const struct record *rec, const char **ret_why)
{
    const uint8_t bit = (uint8_t)(1u << REC(rec, pause)->reason);
    RULE((w->at.paused & bit) != 0, "resumed, but not paused");
    RULE(REC(rec, pause)->reason != PAUSE_REQUESTED || w->doing.kind == WORLD_RESUME,
         "resumed by nobody");
    w->at.paused &= (uint8_t)~bit;
    return true;
}

bool world_take_cancelling(struct world *w, const struct record *rec, const char **ret_why)
{
    (void)rec;
    RULE(!w->at.cancelling && w->doing.kind == WORLD_CANCEL, "cancelled by nobody, or twice");
    w->at.cancelling = true;
    w->at.cancelled_at = w->at.now;
    for (uint32_t i = 0; i < WORLD_BODIES; i++) {
        const struct request *req = &w->at.bodies[i].now;
        const struct run_step *state = &w->shadow->steps[req->step];
        const bool current = req->out && state->phase == req->phase &&
                             run_step_serial(w->shadow, req->step) == req->attempt;
        RULE(!current || (state->status != STEP_IN_PROGRESS && state->status != STEP_CHECKING) ||
                 world_told_to_stop(w, req->step),
             "not told that the plan is called off");
    }
    return true;
}

bool world_ended_rightly(const struct world *w, const struct record *rec, const char **ret_why)
{
    const struct flat_record end = flat_record(rec); /* SYNTHESIS_STARTED or PLAN_COMPLETED */
    const struct plan *plan = world_plan(w);
    bool well = true;
    if (!w->at.begun || plan->n_steps == 0) {
        RULE(end.plan_status != PLAN_COMPLETED || plan->dry_run || w->at.job.ok,
             "completed without having run");
        return true;
    }
    uint32_t completed = 0;
    uint32_t bypassed = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct run_step *s = &w->shadow->steps[i];
        const bool bypass = s->status == STEP_SKIPPED && s->reason == REASON_CONDITION;
        const bool skip = bypass || (s->status == STEP_SKIPPED && s->reason == REASON_USER_SKIP);
        bypassed += bypass && !plan->steps[i].superseded ? 1 : 0;
        completed += s->status == STEP_COMPLETED && !plan->steps[i].superseded ? 1 : 0;
        well = well && (s->status == STEP_COMPLETED || skip || plan->steps[i].superseded);
        RULE(step_is_final(s->status) || end.plan_status != PLAN_COMPLETED, "completed too early");
    }
    const bool success = end.outcome == OUTCOME_SUCCESS;
    RULE(end.plan_status != PLAN_COMPLETED || completed > 0 || bypassed > 0,
         "completed with nothing");
    RULE(end.plan_status != PLAN_COMPLETED || success == well, "success or partial");
    RULE(end.plan_status == PLAN_COMPLETED || end.outcome == OUTCOME_FAILED, "outcome");
    RULE((end.plan_status == PLAN_CANCELLED) ==
             (w->at.cancelling || end.failure == PLAN_FAILURE_REJECTED),
         "cancelled or not");
    RULE(end.failure != PLAN_FAILURE_DEADLOCK, "a deadlock in a plan without a cycle");
    RULE(end.failure != PLAN_FAILURE_STEP || plan->child.kind != CHILD_OF_UNDO,
         "a compensation that failed ended those before it");
    RULE(end.failure != PLAN_FAILURE_TIMEOUT || w->at.now >= w->at.started_at + plan->timeout_ms,
         "a timeout before its time");
    if (end.failure == PLAN_FAILURE_STEP) {
        const struct step_policy *policy = &plan->steps[rec->step].rules->policy;
        const struct run_step *s = &w->shadow->steps[rec->step];
        const bool sched =
            policy->on_failure == ON_FAILURE_SKIP || policy->on_failure == ON_FAILURE_CONTINUE;
        RULE(s->status == STEP_FAILED, "failed by a step that did not");
        RULE(!sched || s->error_class == CLASS_VERIFICATION_FAILED, "failed against its policy");
    }
    return true;
}

bool world_take_plan_completed(struct world *w, const struct record *rec, const char **ret_why)
{
    if (!world_answered_rightly(w, rec, ret_why)) {
        return false;
    }
    w->at.over = true;
    w->at.job.kind = JOB_NONE;
    w->at.paused = 0;
    w->seen->failures[REC(rec, plan_completed)->failure]++;
    w->seen->outcomes[REC(rec, plan_completed)->outcome]++;
    for (uint32_t i = 0; i < world_plan(w)->n_steps; i++) {
        const struct told *told = &w->at.told[i];
        RULE(told->started == 0 || told->completed == 1, "a step started and never ended");
    }
    return true;
}

/* The same on the replayed run. */
bool world_replay(struct world *w, const struct record *rec, const char **ret_why)
{
    if (rec->type == REC_PLAN_MODIFIED ||
        (rec->type == REC_REPLAN_FINISHED && REC(rec, revision)->ok) ||
        rec->type == REC_SYNTHESIS_RETRY) {
        RULE(REC(rec, revision)->revision == w->at.revision + 1,
             "revisions are not numbered one by one");
        w->at.revision++;
    }
    if (!record_revises(rec)) {
        RULE(run_apply(w->shadow, world_plan(w), rec), "a record does not fit on replay");
        return true;
    }
    RULE(w->coming != NULL, "a revision out of nothing");
    struct run *next = run_revise(w->spare, w->coming, w->shadow, world_plan(w), rec);
    RULE(next != NULL, "a revision does not fit on replay");
    w->spare = w->shadow;
    w->shadow = next;
    w->at.plan = (uint16_t)w->coming_at;
    w->at.block = 1 - w->at.block;
    return true;
}
