/*
 * The table of a step's moves, and a fresh run.
 *
 *   PENDING --> READY --> IN_PROGRESS <--> BACKOFF
 *                          |  ^    \  \       ^
 *                          v  |     \  `--> WAITING (a person) --> BACKOFF
 *                        UNKNOWN     `--> COMPLETED | FAILED | SKIPPED | CANCELLED   (from every
 * state that is not final, but COMPLETED only from an attempt)
 */
#include "supervisor/core/run.h"

#include "protocol/base/assert.h"
#include "supervisor/core/run_internal.h"

#define BIT(s) (1u << STEP_##s)
#define ENDS (BIT(FAILED) | BIT(SKIPPED) | BIT(CANCELLED))

static const uint32_t moves[] = {
    [STEP_PENDING] = BIT(READY) | BIT(SKIPPED) | BIT(CANCELLED),
    [STEP_READY] = BIT(IN_PROGRESS) | ENDS,
    /* Again in progress: the request never left, and another instance gets the same attempt. */
    [STEP_IN_PROGRESS] =
        BIT(IN_PROGRESS) | BIT(BACKOFF) | BIT(UNKNOWN) | BIT(WAITING) | BIT(COMPLETED) | ENDS,
    [STEP_BACKOFF] = BIT(IN_PROGRESS) | ENDS,
    /* Again unknown: the supervisor was restarted and waits anew. */
    [STEP_UNKNOWN] =
        BIT(IN_PROGRESS) | BIT(UNKNOWN) | BIT(BACKOFF) | BIT(WAITING) | BIT(COMPLETED) | ENDS,
    [STEP_WAITING] = BIT(BACKOFF) | ENDS,
    [STEP_COMPLETED] = 0,
    [STEP_FAILED] = 0,
    [STEP_SKIPPED] = 0,
    [STEP_CANCELLED] = 0,
};
_Static_assert(sizeof moves / sizeof moves[0] == STEP_STATUS_COUNT, "a row per status");
#undef ENDS
#undef BIT

bool run_move_allowed(enum step_status from, enum step_status to)
{
    ASSERT((unsigned)from < STEP_STATUS_COUNT);
    return (unsigned)to < STEP_STATUS_COUNT && (moves[from] & 1u << to) != 0;
}

bool run_step_is_active(enum step_status s)
{
    return s >= STEP_IN_PROGRESS && s <= STEP_WAITING;
}

uint32_t run_concurrency(const struct plan *plan)
{
    return plan->max_concurrency > 0 ? plan->max_concurrency : 1;
}

uint32_t run_deps(const struct plan *plan, uint32_t step)
{
    if (plan->chain) {
        return step > 0 ? 1 : 0;
    }
    return plan->steps[step].deps_n;
}

uint32_t run_dep(const struct plan *plan, uint32_t step, uint32_t n)
{
    return plan->chain ? step - 1 : plan->deps[plan->steps[step].deps_at + n];
}

uint32_t run_dependents(const struct plan *plan, uint32_t step)
{
    if (plan->chain) {
        return step + 1 < plan->n_steps ? 1 : 0;
    }
    return plan->steps[step].dependents_n;
}

uint32_t run_dependent(const struct plan *plan, uint32_t step, uint32_t n)
{
    return plan->chain ? step + 1 : plan->dependents[plan->steps[step].dependents_at + n];
}

bool run_end_is_failure(const struct plan *plan, const struct run_step *step)
{
    if (plan->chain) {
        return false;
    }
    return step->status == STEP_FAILED || step->status == STEP_CANCELLED ||
           (step->status == STEP_SKIPPED && step->reason == REASON_DEPENDENCY_FAILED);
}

bool run_step_can_start(const struct run *run, const struct plan *plan, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    return s->deps_open == 0 && (s->deps_failed == 0 || plan->steps[step].policy.run_if_always);
}

bool run_step_is_doomed(const struct run *run, const struct plan *plan, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    return s->status == STEP_PENDING && s->deps_failed > 0 &&
           !plan->steps[step].policy.run_if_always;
}

size_t run_size(uint32_t n_steps)
{
    return sizeof(struct run) + n_steps * sizeof(struct run_step);
}

struct run *run_init(void *mem, const struct plan *plan)
{
    struct run *run = mem;
    memset(run, 0, run_size(plan->n_steps));
    run->n_steps = plan->n_steps;
    run->status = PLAN_PENDING;
    run->open = plan->n_steps;
    run->current = STEP_NONE;
    run->last_agent = AGENT_SUPERVISOR;
    run->last_done = STEP_NONE;
    run->deadline = MSEC_NEVER;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        struct run_step *step = &run->steps[i];
        step->deps_open = run_deps(plan, i);
        step->last_dep = STEP_NONE;
        step->deadline = MSEC_NEVER;
        step->status = step->deps_open == 0 ? STEP_READY : STEP_PENDING;
        run->ready += step->status == STEP_READY ? 1 : 0;
    }
    return run;
}

uint64_t run_hash(const struct run *run)
{
    /* No padding anywhere in the block: equal states are equal bytes. */
    _Static_assert(sizeof(struct run_step) == 80, "struct run_step has no padding");
    _Static_assert(sizeof(struct run) == 112, "struct run has no padding");
    return str_hash((struct str){(const char *)run, run_size(run->n_steps)});
}
