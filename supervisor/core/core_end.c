/* How attempts, steps and plans end. */
#include "protocol/base/assert.h"
#include "supervisor/core/core_internal.h"

/* Numbers for the jitter: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, 2014). */
static uint32_t next_random(struct core *c)
{
    c->random += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = c->random;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* Tells the instance that has, or may have, the attempt to stop. It still answers its lane. */
static void tell_to_stop(struct core *c, const struct core_run *row, uint32_t step, struct str why)
{
    const struct run_step *state = &row->run->steps[step];
    struct instance_view to;
    const uint32_t slot = registry_instance(c->registry, state->instance);
    if (slot == REGISTRY_NONE || !registry_instance_view(c->registry, slot, &to)) {
        return;
    }
    struct core_cmd *cmd = core_emit(c, CMD_CANCEL_STEP);
    cmd->run = core_handle_of(c, row);
    cmd->step = step;
    cmd->attempt = state->attempt;
    cmd->slot = slot;
    cmd->epoch = to.epoch;
    cmd->text = why;
}

/* ---- a step ---- */

void core_settle(struct core *c, struct core_run *row, uint32_t step)
{
    uint32_t n = 0;
    row->work[n++] = step;
    for (uint32_t done = 0; done < n; done++) {
        const uint32_t ended = row->work[done];
        for (uint32_t i = 0; i < run_dependents(row->plan, ended); i++) {
            const uint32_t next = run_dependent(row->plan, ended, i);
            if (row->run->steps[next].status == STEP_READY) {
                if (row->soft[next].list == LIST_NONE) {
                    core_link(c, row, next, LIST_READY, false);
                }
            } else if (run_step_is_doomed(row->run, row->plan, next)) {
                core_record(c, row,
                            (struct record){.type = REC_STEP_COMPLETED,
                                            .step = next,
                                            .agent = row->plan->steps[next].agent,
                                            .status = STEP_SKIPPED,
                                            .reason = REASON_DEPENDENCY_FAILED,
                                            .error_class = CLASS_DEPENDENCY_FAILED,
                                            .text = STR_LIT("A dependency failed")});
                row->work[n++] = next;
            }
        }
    }
}

void core_end_step(struct core *c, struct core_run *row, struct record rec)
{
    const struct run_step *state = &row->run->steps[rec.step];
    core_unlink(c, row, rec.step);
    rec.type = REC_STEP_COMPLETED;
    rec.agent = row->plan->steps[rec.step].agent;
    rec.attempt = state->attempt;
    rec.instance = state->instance;
    rec.epoch = state->epoch;
    rec.duration_ms = state->attempt > 0 ? c->now - state->started : 0;
    core_record(c, row, rec);
}

static void after_step(struct core *c, struct core_run *row, uint32_t step)
{
    core_settle(c, row, step);
    if (row->run->open == 0) {
        core_plan_over_naturally(c, row);
    } else {
        core_admit(c, row);
    }
}

void core_step_over(struct core *c, struct core_run *row, struct record rec)
{
    core_end_step(c, row, rec);
    after_step(c, row, rec.step);
}

void core_give_up(struct core *c, struct core_run *row, uint32_t step, const struct failure *f)
{
    const enum on_failure policy = row->plan->steps[step].policy.on_failure;
    struct record rec = {.step = step,
                         .status = STEP_FAILED,
                         .reason = f->reason,
                         .error_class = f->error_class,
                         .usage = f->usage,
                         .text = f->text};
    if (rec.text.len == 0) {
        rec.text = STR_LIT("Unknown error after retries");
    }
    if (policy == ON_FAILURE_SKIP) {
        rec.status = STEP_SKIPPED;
        rec.reason = f->reason == REASON_NONE ? REASON_ON_FAILURE_SKIP : f->reason;
    }
    core_end_step(c, row, rec);
    if (f->tell) {
        tell_to_stop(c, row, step, rec.text);
    }
    if (policy == ON_FAILURE_ABORT) {
        core_plan_over(c, row,
                       &(struct plan_end){.status = PLAN_FAILED,
                                          .outcome = OUTCOME_FAILED,
                                          .failure = PLAN_FAILURE_STEP,
                                          .reason = REASON_PLAN_ABORTED,
                                          .step = step,
                                          .text = rec.text});
        return;
    }
    after_step(c, row, step);
}

void core_step_waits(struct core *c, struct core_run *row, uint32_t step, enum review_kind kind,
                     const struct failure *why, struct doc data)
{
    core_unlink(c, row, step);
    core_record(c, row,
                (struct record){.type = REC_STEP_WAITING,
                                .step = step,
                                .attempt = row->run->steps[step].attempt,
                                .agent = row->plan->steps[step].agent,
                                .review = kind,
                                .error_class = why->error_class,
                                .text = why->text,
                                .data = data});
    if (why->tell) {
        tell_to_stop(c, row, step, why->text);
    }
}

static void retry(struct core *c, struct core_run *row, uint32_t step, const struct failure *f)
{
    const struct run_step *state = &row->run->steps[step];
    const struct backoff *backoff = &row->plan->steps[step].policy.backoff;
    const msec asked =
        f->retry_after_ms < CORE_RETRY_AFTER_MAX_MS ? f->retry_after_ms : CORE_RETRY_AFTER_MAX_MS;
    const msec ours = backoff_delay(backoff, state->attempt, next_random(c));
    core_unlink(c, row, step);
    core_record(c, row,
                (struct record){.type = REC_STEP_RETRY,
                                .step = step,
                                .attempt = state->attempt,
                                .agent = row->plan->steps[step].agent,
                                .error_class = f->error_class,
                                .delay_ms = asked > ours ? asked : ours,
                                .text = f->text});
    core_due(c, row, step, state->deadline);
    if (f->tell) {
        tell_to_stop(c, row, step, f->text);
    }
}

void core_attempt_failed(struct core *c, struct core_run *row, uint32_t step,
                         const struct failure *f)
{
    const struct run_step *state = &row->run->steps[step];
    const struct step_policy *policy = &row->plan->steps[step].policy;
    const uint32_t counted = (uint32_t)state->attempt - state->granted;
    if (!f->retryable || counted > policy->max_retries || state->attempt >= LIMIT_ATTEMPTS) {
        core_give_up(c, row, step, f);
    } else if (f->blind && policy->effects == EFFECTS_UNSAFE) {
        core_step_waits(c, row, step, REVIEW_UNKNOWN_OUTCOME, f, (struct doc){0});
    } else {
        retry(c, row, step, f);
    }
}

/* ---- the plan ---- */

/* Ends one step of a plan that is over. Those that never began only leave the lists: PLAN_COMPLETED
 * says it all. */
static void stop_step(struct core *c, struct core_run *row, uint32_t step,
                      const struct plan_end *end)
{
    const enum step_status status = row->run->steps[step].status;
    const enum list_kind list = row->soft[step].list;
    const bool out = list == LIST_HELD || list == LIST_UNKNOWN;
    if (!run_step_is_active(status)) {
        core_unlink(c, row, step);
        return;
    }
    core_end_step(c, row,
                  (struct record){.step = step,
                                  .status = STEP_CANCELLED,
                                  .reason = end->reason,
                                  .error_class = CLASS_CANCELLED,
                                  .text = end->text});
    if (out) {
        tell_to_stop(c, row, step, end->text);
    }
}

void core_plan_over(struct core *c, struct core_run *row, const struct plan_end *end)
{
    for (uint32_t i = 0; row->run->open > 0 && i < row->run->n_steps; i++) {
        stop_step(c, row, i, end);
    }
    core_record(c, row,
                (struct record){.type = REC_PLAN_COMPLETED,
                                .step = end->step,
                                .plan_status = end->status,
                                .outcome = end->outcome,
                                .failure = end->failure,
                                .duration_ms = c->now - row->run->started,
                                .text = end->text});
    core_emit(c, CMD_RUN_DONE)->run = core_handle_of(c, row);
    core_release_run(c, row);
}

void core_plan_over_naturally(struct core *c, struct core_run *row)
{
    const struct run *run = row->run;
    struct plan_end end = {.status = PLAN_COMPLETED, .outcome = OUTCOME_PARTIAL, .step = STEP_NONE};
    if (run->completed == 0) {
        end.status = PLAN_FAILED;
        end.outcome = OUTCOME_FAILED;
        end.failure = PLAN_FAILURE_NOTHING_COMPLETED;
    } else if (run->completed == run->n_steps) {
        end.outcome = OUTCOME_SUCCESS;
    }
    core_plan_over(c, row, &end);
}

void core_plan_timeout(struct core *c, struct core_run *row)
{
    core_plan_over(c, row,
                   &(struct plan_end){.status = PLAN_FAILED,
                                      .outcome = OUTCOME_FAILED,
                                      .failure = PLAN_FAILURE_TIMEOUT,
                                      .reason = REASON_PLAN_TIMEOUT,
                                      .step = STEP_NONE,
                                      .text = core_text_timeout(c, row->plan->timeout_ms)});
}
