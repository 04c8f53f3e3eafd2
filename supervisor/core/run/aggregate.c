#include "supervisor/core/run/aggregate.h"

#include "supervisor/core/mutant.h"

/* Superseded steps are no part of the answer. */
static bool has_result(const struct plan *plan, const struct run *run, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    return s->status == STEP_COMPLETED && s->result.id != 0 && s->result.len != 0 &&
           !plan->steps[step].superseded;
}

struct aggregate_choice aggregate_choose(const struct plan *plan, const struct run *run,
                                         struct aggregate_part *parts)
{
    uint32_t results = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (has_result(plan, run, i)) {
            results++;
            last = i;
        }
    }
    if (results == 0) {
        return (struct aggregate_choice){AGGREGATE_FORM_NOTHING, 0};
    }
    if (results == 1) {
        parts[0] = (struct aggregate_part){last, AGGREGATE_PART_RESULT, run->steps[last].result};
        return (struct aggregate_choice){AGGREGATE_FORM_RAW, 1};
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct run_step *s = &run->steps[i];
        if (has_result(plan, run, i)) {
            parts[n++] = (struct aggregate_part){i, AGGREGATE_PART_RESULT, s->result};
        } else if (s->status == STEP_SKIPPED && !plan->steps[i].superseded &&
                   s->reason != REASON_CONDITION) {
            parts[n++] = (struct aggregate_part){.step = i, .kind = AGGREGATE_PART_SKIPPED};
        }
    }
    return (struct aggregate_choice){AGGREGATE_FORM_SECTIONS, n};
}

struct str aggregate_nothing(const struct plan *plan, const struct run *run, enum plan_status end)
{
    if (plan->dry_run && end == PLAN_COMPLETED) {
        return STR_LIT(AGGREGATE_DRY_RUN);
    }
    if (end == PLAN_COMPLETED && run->completed == 0 && run->skipped > 0) {
        return STR_LIT(AGGREGATE_BYPASSED);
    }
    if (end == PLAN_COMPLETED && run->completed > 0 && run->failed == 0) {
        return STR_LIT(AGGREGATE_EMPTY);
    }
    return end == PLAN_CANCELLED ? STR_LIT(AGGREGATE_CANCELLED) : STR_LIT(AGGREGATE_NOTHING);
}

uint32_t aggregate_not_done(const struct plan *plan, const struct run *run, uint32_t *steps,
                            uint32_t max)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].superseded || run->steps[i].status == STEP_COMPLETED ||
            run->steps[i].reason == REASON_CONDITION) {
            continue;
        }
        if (n < max) {
            steps[n] = i;
        }
        n++;
    }
    return n;
}

uint32_t aggregate_not_whole(const struct plan *plan, const struct run *run,
                             const struct aggregate_readers *readers, unsigned what,
                             struct aggregate_lack *ret, uint32_t max)
{
    uint32_t n = 0;
    uint32_t next = 0; /* of the readers */
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct run_step *s = &run->steps[i];
        struct aggregate_lack lack = {.step = i};
        if (s->status == STEP_COMPLETED && s->result.truncated != 0) {
            lack.what |= AGGREGATE_RESULT;
        }
        if (next < readers->n && readers->at[next] == i) {
            lack.what |= MUTANT(CONTEXT_CUT_UNNAMED) ? 0u : AGGREGATE_CONTEXT;
            next++;
        }
        lack.what &= what;
        if (plan->steps[i].superseded || lack.what == 0) {
            continue;
        }
        if (n < max) {
            ret[n] = lack;
        }
        n++;
    }
    return n;
}

struct str aggregate_ended_how(const struct run_step *step)
{
    if (step->status == STEP_FAILED) {
        return STR_LIT("failed");
    }
    if (step->status == STEP_SKIPPED) {
        return step->reason == REASON_USER_SKIP ? STR_LIT("was skipped by a person")
                                                : STR_LIT("was skipped");
    }
    if (step->reason == REASON_USER_CANCEL) {
        return STR_LIT("was cancelled by a person");
    }
    return (step->did & STEP_DID_BEGIN) != 0 ? STR_LIT("was cancelled") : STR_LIT("did not begin");
}
