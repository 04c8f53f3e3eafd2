/*
 * The table of a step's moves, and a fresh run.
 *
 *   PENDING --> READY --> IN_PROGRESS <--> BACKOFF <--> WAITING (a person), CHECKING (an agent),
 *                          |  ^    \                    SLEEPING (a time or a signal)
 *                          v  |     `--> WAITING, CHECKING
 *                        UNKNOWN
 *
 * COMPLETED, FAILED, SKIPPED and CANCELLED from every state that is not final; COMPLETED of a step
 * that has not begun only when its result is taken over from an earlier run.
 */
#include "supervisor/core/run/run.h"

#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/run/run_internal.h"

#define BIT(s) (1u << STEP_##s)
#define ENDS (BIT(FAILED) | BIT(SKIPPED) | BIT(CANCELLED))

static const uint32_t moves[] = {
    [STEP_PENDING] = BIT(READY) | BIT(SKIPPED) | BIT(CANCELLED) | BIT(COMPLETED),
    /* BACKOFF: the step has begun, but a gate or a person comes before its first attempt. */
    [STEP_READY] = BIT(IN_PROGRESS) | BIT(BACKOFF) | BIT(COMPLETED) | ENDS,
    /* IN_PROGRESS again: the request never left, and another instance gets the same attempt. */
    [STEP_IN_PROGRESS] = BIT(IN_PROGRESS) | BIT(BACKOFF) | BIT(UNKNOWN) | BIT(WAITING) |
                         BIT(CHECKING) | BIT(COMPLETED) | ENDS,
    /* COMPLETED, CHECKING: by a late result of the previous attempt. BACKOFF again: a fallback. */
    [STEP_BACKOFF] = BIT(IN_PROGRESS) | BIT(BACKOFF) | BIT(WAITING) | BIT(CHECKING) |
                     BIT(SLEEPING) | BIT(COMPLETED) | ENDS,
    /* UNKNOWN again: the supervisor was restarted, and the wait starts again. */
    [STEP_UNKNOWN] = BIT(IN_PROGRESS) | BIT(UNKNOWN) | BIT(BACKOFF) | BIT(WAITING) | BIT(CHECKING) |
                     BIT(COMPLETED) | ENDS,
    /* CHECKING: a late result, or a review whose end leads to a replan. */
    [STEP_WAITING] = BIT(BACKOFF) | BIT(CHECKING) | BIT(COMPLETED) | ENDS,
    /* CHECKING again: a step whose verification failed is replanned. */
    [STEP_CHECKING] = BIT(BACKOFF) | BIT(WAITING) | BIT(CHECKING) | BIT(COMPLETED) | ENDS,
    /* WAITING, CHECKING: its time is over, and a person or the replanner is asked. */
    [STEP_SLEEPING] = BIT(WAITING) | BIT(CHECKING) | BIT(COMPLETED) | ENDS,
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
    return (unsigned)to < STEP_STATUS_COUNT &&
           ((moves[from] & 1u << to) != 0 || MUTANT(TERMINAL_OVERWRITTEN));
}

bool run_step_is_active(enum step_status s)
{
    return s >= STEP_IN_PROGRESS && s <= STEP_SLEEPING;
}

bool run_step_calls(const struct run_step *step)
{
    return step->status == STEP_IN_PROGRESS && step->turned != 0 && step->turned == step->attempt;
}

uint32_t run_concurrency(const struct plan *plan)
{
    return plan->max_concurrency > 0 ? plan->max_concurrency : 1;
}

uint32_t run_places(const struct run *run)
{
    return MUTANT(WAIT_TAKES_PLACE) ? run->active : run->active - run->placeless;
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

bool run_end_is_failure(const struct plan *plan, const struct run_step *step, uint32_t dependent)
{
    const bool any_end = plan->chain || plan->steps[dependent].after_any_end;
    if (any_end && plan->steps[dependent].rules->policy.run_if != RUN_IF_FAILURE) {
        return false;
    }
    return step->status == STEP_FAILED || step->status == STEP_CANCELLED ||
           (step->status == STEP_SKIPPED && MUTANT(SKIP_IS_FAILURE)) ||
           (step->status == STEP_SKIPPED && step->reason == REASON_DEPENDENCY_FAILED);
}

bool run_end_is_bypass(const struct plan *plan, const struct run_step *step, uint32_t dependent)
{
    const bool any_end = plan->chain || plan->steps[dependent].after_any_end;
    return !any_end && step->status == STEP_SKIPPED && step->reason == REASON_CONDITION;
}

uint32_t run_step_agent(const struct run *run, const struct plan *plan, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    switch ((enum step_phase)s->phase) {
    case PHASE_GATE:
        return plan->steps[step].rules->gate_agent;
    case PHASE_VERIFY:
        return plan->steps[step].rules->verify_agent;
    case PHASE_REPLAN:
        return plan->replan.agent;
    case PHASE_EXECUTE:
    case PHASE_SEARCH:
    case STEP_PHASE_COUNT:
        break;
    }
    return s->agent;
}

uint32_t run_step_serial(const struct run *run, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    return s->phase > PHASE_SEARCH ? s->ask : s->attempt;
}

/* There are dependencies, and conditions have skipped all of them. */
static bool all_bypassed(const struct plan *plan, const struct run_step *s, uint32_t step)
{
    return s->deps_skipped > 0 && s->deps_skipped == run_deps(plan, step) &&
           !MUTANT(BYPASS_SATISFIES);
}

bool run_step_can_start(const struct run *run, const struct plan *plan, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    if (s->deps_open > 0) {
        return false;
    }
    switch (plan->steps[step].rules->policy.run_if) {
    case RUN_IF_ALWAYS:
        return true;
    case RUN_IF_FAILURE: /* without dependencies there is nothing that may fail */
        return s->deps_failed > 0 || run_deps(plan, step) == 0 || MUTANT(CLEANS_UP_ALWAYS);
    case RUN_IF_SUCCESS:
    case RUN_IF_COUNT:
        break;
    }
    return s->deps_failed == 0 && !all_bypassed(plan, s, step);
}

enum step_reason run_step_doom(const struct run *run, const struct plan *plan, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    const enum run_if rule = plan->steps[step].rules->policy.run_if;
    if (s->status != STEP_PENDING || run_step_can_start(run, plan, step)) {
        return REASON_NONE;
    }
    if (rule == RUN_IF_SUCCESS && s->deps_failed > 0) {
        return REASON_DEPENDENCY_FAILED; /* at once: the others need not be over */
    }
    return s->deps_open == 0 ? REASON_CONDITION : REASON_NONE;
}

bool run_needs_signoff(const struct run *run, const struct plan *plan)
{
    return plan->signoff && run->signed_off != run->revision;
}

static uint8_t own_texts_of(const struct plan *plan)
{
    const uint32_t most = plan->n_steps < RUN_SEARCHES_MAX ? plan->n_steps : RUN_SEARCHES_MAX;
    return plan->search_with.len > 0 ? (uint8_t)most : 0;
}

/* It may be replanned, an agent writes its answer, or something may have to be undone. */
static uint8_t phased_of(const struct plan *plan)
{
    bool phased = plan->replan.agent_id.len > 0 || plan->synthesis.agent_id.len > 0;
    for (uint32_t i = 0; !phased && i < plan->n_steps; i++) {
        phased = plan->steps[i].undoes;
    }
    return phased ? 1 : 0;
}

static size_t bytes_of(uint32_t n_steps, uint32_t phased, uint32_t own_texts)
{
    return sizeof(struct run) + n_steps * sizeof(struct run_step) +
           phased * sizeof(struct run_phases) + own_texts * sizeof(struct run_own_text);
}

size_t run_size(const struct plan *plan)
{
    return bytes_of(plan->n_steps, phased_of(plan), own_texts_of(plan));
}

size_t run_bytes(const struct run *run)
{
    return bytes_of(run->n_steps, run->phased, run->own_texts);
}

const struct run_phases *run_phases(const struct run *run)
{
    static const struct run_phases none = {.end_step = STEP_NONE};
    return run->phased == 0 ? &none
                            : (const struct run_phases *)(const void *)&run->steps[run->n_steps];
}

struct run_phases *run_phases_change(struct run *run)
{
    return run->phased == 0 ? NULL : (struct run_phases *)(void *)&run->steps[run->n_steps];
}

struct blob_ref run_transcript(const struct run_step *step)
{
    return (struct blob_ref){.id = step->transcript, .len = step->transcript_len};
}

struct run_own_text *run_own_texts(struct run *run)
{
    struct run_phases *behind = (struct run_phases *)(void *)&run->steps[run->n_steps];
    return (struct run_own_text *)(void *)(behind + run->phased);
}

const struct run_own_text *run_own_texts_of(const struct run *run)
{
    const struct run_phases *behind = (const void *)&run->steps[run->n_steps];
    return (const struct run_own_text *)(const void *)(behind + run->phased);
}

bool run_may_search(const struct run *run)
{
    const struct run_own_text *own = run_own_texts_of(run);
    for (uint32_t i = 0; i < run->own_texts; i++) {
        if (own[i].step == STEP_NONE || step_is_final(run->steps[own[i].step].status)) {
            return true;
        }
    }
    return false;
}

struct str run_own_text(const struct run *run, uint32_t step)
{
    const struct run_own_text *own = run_own_texts_of(run);
    for (uint32_t i = 0; i < run->own_texts; i++) {
        if (own[i].step == step) {
            return (struct str){own[i].text, own[i].n};
        }
    }
    return (struct str){"", 0};
}

struct run *run_init(void *mem, const struct plan *plan)
{
    struct run *run = mem;
    memset(run, 0, run_size(plan));
    run->n_steps = plan->n_steps;
    run->phased = phased_of(plan);
    run->own_texts = own_texts_of(plan);
    run->status = PLAN_PENDING;
    run->open = plan->n_steps;
    run->current = STEP_NONE;
    run->last_agent = AGENT_SUPERVISOR;
    run->last_done = STEP_NONE;
    run->revision = plan->revision;
    run->deadline = MSEC_NEVER;
    run->review_deadline = MSEC_NEVER;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        struct run_step *step = &run->steps[i];
        step->deps_open = run_deps(plan, i);
        step->last_dep = STEP_NONE;
        step->placeless = plan->steps[i].type == STEP_TYPE_WAIT ? 1 : 0;
        step->agent = plan->steps[i].agent;
        step->deadline = MSEC_NEVER;
        step->limit = MSEC_NEVER;
        step->attempt_end = MSEC_NEVER;
        step->status = run_step_can_start(run, plan, i) ? STEP_READY : STEP_PENDING;
        run->ready += step->status == STEP_READY ? 1 : 0;
    }
    if (run->phased != 0) {
        run_phases_change(run)->end_step = STEP_NONE;
    }
    for (uint32_t i = 0; i < run->own_texts; i++) {
        run_own_texts(run)[i].step = STEP_NONE;
    }
    return run;
}

uint64_t run_hash(const struct run *run)
{
    /* There is no padding in the block, so equal states are equal bytes. */
    _Static_assert(sizeof(struct run_step) == 200, "struct run_step has no padding");
    _Static_assert(sizeof(struct run) == 216, "struct run has no padding");
    _Static_assert(sizeof(struct run_phases) == 192, "struct run_phases has no padding");
    return str_hash((struct str){(const char *)run, run_bytes(run)});
}
