/* The invariants of a run, computed from the steps alone. */
#include "protocol/base/assert.h"
#include "supervisor/core/run/run_internal.h"

#define CHECK(cond, why)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            *ret_why = (why);                                                                      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool deps_hold(const struct run *run, const struct plan *plan, uint32_t ix,
                      const char **ret_why)
{
    const struct run_step *step = &run->steps[ix];
    uint32_t open = 0;
    uint32_t failed = 0;
    uint32_t skipped = 0;
    for (uint32_t i = 0; i < run_deps(plan, ix); i++) {
        const struct run_step *dep = &run->steps[run_dep(plan, ix, i)];
        open += step_is_final(dep->status) ? 0 : 1;
        failed += step_is_final(dep->status) && run_end_is_failure(plan, dep, ix) ? 1 : 0;
        skipped += run_end_is_bypass(plan, dep, ix) ? 1 : 0;
    }
    const bool ending = run->job == JOB_SYNTHESIS || run->job == JOB_COMPENSATION ||
                        run->answered || run->undone != 0;
    if (!plan_is_final(run->status) &&
        !ending) { /* steps that end with the plan settle no dependents */
        CHECK(step->deps_open == open, "deps_open is not the number of open dependencies");
        CHECK(step->deps_failed == failed, "deps_failed is not the number of failed dependencies");
        CHECK(step->deps_skipped == skipped, "deps_skipped is not the number of skipped ones");
        CHECK(step->status != STEP_PENDING || !run_step_can_start(run, plan, ix),
              "a pending step could start");
    }
    const bool begun = step->status == STEP_READY || run_step_is_active(step->status) ||
                       step->status == STEP_COMPLETED || step->status == STEP_FAILED;
    CHECK(!begun || plan->steps[ix].superseded || step->reason == REASON_REUSED ||
              run_step_can_start(run, plan, ix),
          "a step began before its dependencies");
    return true;
}

static bool step_holds(const struct run *run, const struct plan *plan, uint32_t ix,
                       const char **ret_why)
{
    const struct run_step *step = &run->steps[ix];
    const bool timed = step->deadline != MSEC_NEVER;
    CHECK(step->status < STEP_STATUS_COUNT, "no such step status");
    const struct step_policy *policy = &plan->steps[ix].rules->policy;
    const bool begun = (step->did & STEP_DID_BEGIN) != 0;
    CHECK(!timed || run_step_is_active(step->status), "a deadline without a reason");
    CHECK(step->status != STEP_IN_PROGRESS || run->cancelling ||
              timed ==
                  ((policy->timeout_ms != 0 && !run_step_calls(step)) || policy->limit_ms != 0),
          "an attempt's deadline does not fit its timeout");
    CHECK(step->deadline <= step->limit || step->status != STEP_IN_PROGRESS || run->cancelling,
          "an attempt may last longer than its step");
    CHECK(!begun || plan->steps[ix].rules->when.ptr == NULL || step->judged != 0,
          "a step began before its condition was evaluated");
    CHECK(!run_step_is_active(step->status) || begun, "under way without a beginning");
    CHECK((step->status != STEP_IN_PROGRESS && step->status != STEP_UNKNOWN) || step->attempt > 0,
          "out without an attempt");
    CHECK(step->status != STEP_COMPLETED || begun || step->reason == REASON_REUSED,
          "completed without a beginning");
    CHECK(step->status == STEP_CHECKING || step->phase <= PHASE_SEARCH,
          "a question without a phase of questions");
    CHECK(step->status != STEP_CHECKING || step->phase > PHASE_SEARCH,
          "checking without a question");
    CHECK((step->status != STEP_READY && step->status != STEP_PENDING) || step->attempt == 0,
          "an attempt of a step that has not begun");
    CHECK((step->placeless != 0) == (plan->steps[ix].type == STEP_TYPE_WAIT), "a place for a wait");
    CHECK(step->doubt == 0 || step->status != STEP_COMPLETED, "completed, and in doubt");
    CHECK(step->doubt == 0 || step->attempt == 0 || step_is_final(step->status),
          "an attempt of a step in doubt");
    CHECK(step->status != STEP_SLEEPING || plan->steps[ix].wait != NULL, "sleeps without a wait");
    CHECK(step->granted <= step->attempt, "more approvals than attempts");
    CHECK(step->review_serial <= run->reviews, "a review with a serial that was not given");
    CHECK(step->status != STEP_WAITING || step->review_serial > 0, "a review without a serial");
    return true;
}

static bool counts_hold(const struct run *run, const struct plan *plan, const char **ret_why)
{
    uint32_t n[STEP_STATUS_COUNT] = {0};
    uint32_t superseded = 0;
    uint32_t replanning = 0;
    uint32_t placeless = 0;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        const struct run_step *step = &run->steps[i];
        if (plan->steps[i].superseded) {
            CHECK(step_is_final(step->status), "a superseded step is not over");
            superseded++;
            continue;
        }
        n[step->status]++;
        placeless += step->placeless != 0 && run_step_is_active(step->status) ? 1 : 0;
        replanning += step->status == STEP_CHECKING && step->phase == PHASE_REPLAN ? 1 : 0;
    }
    CHECK(run->superseded == superseded, "count of superseded steps");
    CHECK(run->replanning == replanning, "count of steps that are replanned");
    CHECK(run->ready == n[STEP_READY], "count of ready steps");
    CHECK(run->waiting == n[STEP_WAITING], "count of waiting steps");
    CHECK(run->placeless == placeless, "count of steps without a place");
    CHECK(run->sleeping == n[STEP_SLEEPING], "count of sleeping steps");
    CHECK(run->active == n[STEP_IN_PROGRESS] + n[STEP_BACKOFF] + n[STEP_UNKNOWN] + n[STEP_WAITING] +
                             n[STEP_CHECKING] + n[STEP_SLEEPING],
          "count of active steps");
    CHECK(run->completed == n[STEP_COMPLETED], "count of completed steps");
    CHECK(run->failed == n[STEP_FAILED], "count of failed steps");
    CHECK(run->skipped == n[STEP_SKIPPED], "count of skipped steps");
    CHECK(run->cancelled == n[STEP_CANCELLED], "count of cancelled steps");
    CHECK(run->open == n[STEP_PENDING] + run->ready + run->active, "count of open steps");
    return true;
}

/* The last attempt failed in a way that does not say that it had no effects. */
static bool is_without_answer(const struct run_step *step)
{
    return step->attempt > 0 &&
           (step->error_class == CLASS_TIMEOUT || step->error_class == CLASS_REPLY_LOST ||
            step->error_class == CLASS_AGENT_CRASHED || step->error_class == CLASS_PROTOCOL_ERROR ||
            step->error_class == CLASS_VERIFICATION_FAILED);
}

bool run_may_be_done(const struct run *run, const struct plan *plan, uint32_t step)
{
    const struct run_step *state = &run->steps[step];
    if (plan->steps[step].rules->policy.effects != EFFECTS_UNSAFE) {
        return false;
    }
    if (state->status == STEP_CHECKING) {
        return state->phase == PHASE_VERIFY ||
               (state->phase == PHASE_REPLAN && is_without_answer(state));
    }
    return state->doubt != 0 || (state->status == STEP_WAITING &&
                                 (state->review == REVIEW_UNKNOWN_OUTCOME ||
                                  (state->review == REVIEW_FAILURE && is_without_answer(state))));
}

/* Its conditions left nothing to do. */
static bool some_bypassed(const struct run *run)
{
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (run->steps[i].status == STEP_SKIPPED && run->steps[i].reason == REASON_CONDITION) {
            return true;
        }
    }
    return false;
}

bool run_invariant(const struct run *run, const struct plan *plan, const char **ret_why)
{
    CHECK(run->n_steps == plan->n_steps, "the run has another number of steps than its plan");
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (!step_holds(run, plan, i, ret_why) || !deps_hold(run, plan, i, ret_why)) {
            return false;
        }
    }
    if (!counts_hold(run, plan, ret_why)) {
        return false;
    }
    CHECK(!plan_is_final(run->status) || run->open == 0, "an open step in a plan that ended");
    CHECK(!plan_is_final(run->status) || run->deadline == MSEC_NEVER, "deadline of an ended plan");
    CHECK(plan_is_final(run->status) == (run->outcome != OUTCOME_NONE), "outcome and status");
    CHECK(run->status != PLAN_COMPLETED || run->completed > 0 || plan->dry_run ||
              run->n_steps == 0 || some_bypassed(run),
          "completed with nothing completed");
    CHECK(run->outcome != OUTCOME_SUCCESS || plan->dry_run ||
              (run->failed == 0 && run->cancelled == 0),
          "success with something that failed");
    CHECK(run->job == JOB_NONE || (run->active == 0 && !plan_is_final(run->status)),
          "an errand of a plan that has steps under way, or has ended");
    CHECK(run->job != JOB_PLANNING || run->status == PLAN_PENDING, "planned while it runs");
    CHECK(run->job != JOB_SYNTHESIS || (run->status != PLAN_PENDING && run->open == 0),
          "an answer out of steps that are not over");
    CHECK(run->job != JOB_COMPENSATION || (run->status == PLAN_RUNNING && run->open == 0),
          "undone while its steps go on");
    CHECK(run->ends <= run->n_steps, "more ends than steps");
    CHECK(run->status != PLAN_WAITING || run->waiting > 0 || run->paused != 0,
          "waits without a reason");
    CHECK(run->plan_review <= run->reviews, "a review of the plan that was not opened");
    CHECK(run->kept <= run->signals && run->kept <= LIMIT_SIGNALS_KEPT, "signals that are kept");
    CHECK(run_places(run) <= run_concurrency(plan), "more steps under way than max_concurrency");
    return true;
}
#undef CHECK
