/* Runs that come in: new, or rebuilt from the journal. */
#include <stdalign.h>
#include <stddef.h>

#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* One that was released, or the first that has not been used. */
static struct core_run *take_slot(struct core *c)
{
    if (c->free_run == UINT32_MAX) {
        heap_add(&c->due, c->runs_made);
        return &c->runs[c->runs_made++];
    }
    struct core_run *entry = &c->runs[c->free_run];
    c->free_run = entry->next_free;
    return entry;
}

/* Takes a free slot for the run in the block, with new scheduler state. */
static struct core_run *attach(struct core *c, struct run *run, const struct plan *plan)
{
    struct core_run *entry = take_slot(c);
    ASSERT(plan->session < c->config.sessions);
    for (; c->sessions_made <= plan->session; c->sessions_made++) {
        core_list_init(&c->sessions[c->sessions_made].blocked);
    }
    c->open++;
    entry->generation = entry->generation == UINT32_MAX ? 1 : entry->generation + 1;
    core_entry_init(entry, run, plan);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        ASSERT(!plan_step_has_agent(&plan->steps[i]) ||
               plan->steps[i].agent < registry_agents(c->registry));
    }
    c->newest = core_handle_of(c, entry);
    return entry;
}

void core_release_run(struct core *c, struct core_run *entry)
{
    const uint32_t slot = (uint32_t)(entry - c->runs);
    heap_set(&c->due, slot, MSEC_NEVER);
    core_agents_released(c, entry);
    core_key_leave(c, entry);
    ASSERT(entry->ready.n == 0 && entry->queued == 0 && entry->held == 0 && entry->due_n == 0);
    ASSERT(entry->conditions.n == 0 && entry->children.n == 0);
    ASSERT(entry->reserved_tokens == 0 && entry->reserved_micros == 0);
    *entry = (struct core_run){.generation = entry->generation,
                               .next_free = c->free_run,
                               .woken = entry->woken /* its place in the list stays */,
                               .key_prev = REF_NONE,
                               .key_next = REF_NONE};
    c->free_run = slot;
    c->open--;
}

static bool has_room(struct core *c, const struct core_event *ev, const struct plan *plan,
                     const void *block)
{
    ASSERT(plan != NULL && block != NULL);
    ASSERT((uintptr_t)block % alignof(max_align_t) == 0);
    c->newest = 0;
    if (c->free_run == UINT32_MAX && c->runs_made == c->config.runs_max) {
        core_reject(c, ev, REJECT_TOO_MANY_RUNS);
        return false;
    }
    return true;
}

/* Completes steps with results of an earlier run. Steps that are over are left alone. */
static void reuse_results(struct core *c, struct core_run *entry, const struct core_ev_submit *from)
{
    for (uint32_t i = 0; i < from->n_reuse; i++) {
        const uint32_t step = from->reuse[i].step;
        const enum step_status status =
            step < entry->run->n_steps ? entry->run->steps[step].status : STEP_COMPLETED;
        const bool open = status == STEP_PENDING || status == STEP_READY;
        if (open && from->reuse[i].doubt && plan_step_has_agent(&entry->plan->steps[step])) {
            core_record(c, entry, (struct record){.type = REC_STEP_DOUBTED, .step = step});
        } else if (open && !from->reuse[i].doubt) {
            core_end_step(
                c, entry,
                (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_COMPLETED,
                                         .reason = REASON_REUSED, .result = from->reuse[i].result),
                                .step = step});
        }
    }
}

/* Skips what can never start after the steps that are over, lists the ready ones, and ends a plan
 * without open ones. */
static void start_ready_steps(struct core *c, struct core_run *entry)
{
    for (uint32_t i = 0; i < entry->run->n_steps; i++) {
        if (step_is_final(entry->run->steps[i].status)) {
            core_settle(c, entry, i);
        }
    }
    for (uint32_t i = 0; i < entry->run->n_steps; i++) {
        if (entry->run->steps[i].status == STEP_READY && entry->sched[i].list == LIST_NONE) {
            core_link(c, entry, i, LIST_READY, core_needs_no_place(entry, i));
        }
    }
    core_rearm(c, entry);
    core_advance(c, entry);
}

void core_start_run(struct core *c, struct core_run *entry)
{
    if (core_key_enter(c, entry)) {
        core_started(c, entry);
    }
}

void core_started(struct core *c, struct core_run *entry)
{
    core_record(c, entry, (struct record){.type = REC_PLAN_STARTED, .step = STEP_NONE});
    start_ready_steps(c, entry);
}

void core_ask_signoff(struct core *c, struct core_run *entry)
{
    core_record(c, entry,
                (struct record){REC_INIT(PLAN_PAUSED, pause, .reason = PAUSE_SIGNOFF,
                                         .delay_ms = entry->plan->signoff_timeout_ms,
                                         .serial = entry->run->reviews + 1,
                                         .revision = entry->run->revision),
                                .step = STEP_NONE});
    core_park(c, entry);
    core_rearm(c, entry);
}

void core_on_submit(struct core *c, const struct core_event *ev)
{
    const struct core_ev_submit *submit = CORE_EV(ev, submit);
    const struct plan *plan = submit->plan;
    if (!has_room(c, ev, plan, submit->block)) {
        return;
    }
    struct core_run *entry = attach(c, run_init(submit->block, plan), plan);
    if (plan->planning.pending) {
        core_start_planning(c, entry);
        return;
    }
    core_record(
        c, entry,
        (struct record){.type = REC_PLAN_GENERATED, .step = STEP_NONE, .usage = submit->planning});
    if ((!plan->dry_run || MUTANT(DRY_RUN_RUNS)) && !(plan->signoff && !MUTANT(SIGNOFF_SKIPPED)) &&
        core_key_of_run(c, entry) == NULL) {
        core_record(c, entry, (struct record){.type = REC_PLAN_STARTED, .step = STEP_NONE});
        reuse_results(c, entry, submit);
        start_ready_steps(c, entry);
        return;
    }
    reuse_results(c, entry, submit);
    core_plan_made(c, entry);
}

void core_plan_made(struct core *c, struct core_run *entry)
{
    if (entry->plan->dry_run && !MUTANT(DRY_RUN_RUNS)) {
        core_plan_finish(c, entry,
                         &(struct plan_end){.status = PLAN_COMPLETED,
                                            .outcome = OUTCOME_SUCCESS,
                                            .step = STEP_NONE},
                         (struct blob_ref){0});
    } else if (entry->plan->signoff && !MUTANT(SIGNOFF_SKIPPED)) {
        core_ask_signoff(c, entry);
    } else {
        core_start_run(c, entry);
    }
}

/* When the cooldown before a replan ends. Without a deadline its start is unknown. */
static msec asked_at(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const struct replan_policy *policy = &entry->plan->replan;
    const msec deadline = entry->run->steps[step].deadline;
    return deadline == MSEC_NEVER ? msec_add(c->now, policy->cooldown_ms)
                                  : deadline - policy->timeout_ms;
}

/* Puts one step of a rebuilt run where it waits for its next event. */
static void resume_step(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    core_key_recover_step(c, entry, step);
    switch ((enum step_status)state->status) {
    case STEP_READY:
        core_link(c, entry, step, LIST_READY, core_needs_no_place(entry, step));
        break;
    case STEP_BACKOFF:
        core_set_due(c, entry, step, state->deadline);
        break;
    case STEP_IN_PROGRESS:
    case STEP_UNKNOWN:
        if (entry->plan->steps[step].type == STEP_TYPE_PLAN ||
            (run_step_calls(state) && !MUTANT(CALLS_FORGOTTEN))) {
            if (!MUTANT(CHILD_FORGOTTEN)) {
                core_child_ask(c, entry, step);
            }
            break;
        }
        if (MUTANT(RECOVERY_RESENDS)) {
            core_enqueue(c, entry, step, true);
            break;
        }
        core_step_unknown(c, entry, step);
        break;
    case STEP_CHECKING:
        if (state->phase == PHASE_REPLAN && asked_at(c, entry, step) > c->now) {
            core_set_due(c, entry, step, asked_at(c, entry, step));
        } else {
            core_enqueue(c, entry, step, false);
        }
        break;
    case STEP_WAITING:
        core_set_due(c, entry, step, state->deadline);
        break;
    case STEP_SLEEPING:
        core_sleep_on(c, entry, step);
        break;
    case STEP_PENDING:
    case STEP_COMPLETED:
    case STEP_FAILED:
    case STEP_SKIPPED:
    case STEP_CANCELLED:
    case STEP_STATUS_COUNT:
        break;
    }
}

bool core_step_aborts(const struct core_run *entry, uint32_t step)
{
    const struct step_policy *rules = &entry->plan->steps[step].rules->policy;
    const struct run_step *state = &entry->run->steps[step];
    const bool verified = state->error_class == CLASS_VERIFICATION_FAILED &&
                          state->reason == REASON_NONE && rules->on_verify != ON_FAILURE_RETRY;
    const enum on_failure policy = verified ? rules->on_verify : rules->on_failure;
    return !entry->plan->steps[step].superseded && state->status == STEP_FAILED &&
           entry->plan->child.kind != CHILD_OF_UNDO &&
           (policy == ON_FAILURE_ABORT || policy == ON_FAILURE_RETRY || policy == ON_FAILURE_ASK);
}

/* A cycle is journaled as a whole, so its decisions are complete. A journal that was cut inside one
 * (by hand, by an import) may contain a cause without its effect. Then the effect is decided here.
 * In a plan whose steps are retried it is decided when they are over. */
static bool finish_decided(struct core *c, struct core_run *entry)
{
    const struct run *run = entry->run;
    for (uint32_t i = 0; run->failed > 0 && run->rectified == 0 && i < run->n_steps; i++) {
        if (core_step_aborts(entry, i)) {
            core_step_fails_plan(c, entry, i, PLAN_FAILURE_STEP,
                                 STR_LIT("A step failed before the restart"));
            return true;
        }
    }
    return false;
}

/* The plan waits for a job or its sign-off, or the journal was cut at its beginning. */
static void recover_unstarted(struct core *c, struct core_run *entry)
{
    if (core_job_recover(c, entry)) {
        return;
    }
    if (entry->run->plan_seq == 0) {
        core_record(c, entry, (struct record){.type = REC_PLAN_GENERATED, .step = STEP_NONE});
    }
    if ((entry->run->paused & 1u << PAUSE_SIGNOFF) != 0) {
        core_rearm(c, entry); /* time while the supervisor was down counts */
        return;
    }
    if ((entry->run->paused & 1u << PAUSE_KEY) != 0) {
        core_key_recover(c, entry);
        return;
    }
    core_plan_made(c, entry);
}

void core_on_recover(struct core *c, const struct core_event *ev)
{
    const struct core_ev_recover *from = CORE_EV(ev, recover);
    if (!has_room(c, ev, from->plan, from->block)) {
        return;
    }
    struct run *run = core_block_run(from->block);
    ASSERT(run->n_steps == from->plan->n_steps);
    if (plan_is_final(run->status)) {
        core_reject(c, ev, REJECT_FINAL);
        return;
    }
    c->recovered_at = c->now;
    struct core_run *entry = attach(c, run, from->plan);
    if (run->status != PLAN_PENDING) {
        core_key_recover(c, entry);
    }
    if ((run->job == JOB_COMPENSATION || run->undone != 0) && core_job_recover(c, entry)) {
        return;
    }
    if (run->cancelling) { /* the grace is over: attempts may still run, and are fenced */
        core_plan_cancelled(c, entry, STR_LIT(""));
        return;
    }
    if (run->status == PLAN_PENDING) {
        recover_unstarted(c, entry);
        return;
    }
    if (core_job_recover(c, entry)) {
        return;
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        resume_step(c, entry, i);
    }
    if (finish_decided(c, entry)) {
        return;
    }
    start_ready_steps(c, entry);
}
