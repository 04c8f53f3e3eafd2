/* Runs by hand: only what context and aggregate read. "c10" = completed with a result of 10 bytes,
 * c0 = without one, s = skipped, f = failed, p = pending; one per step. */
#ifndef TEST_CORE_RUN_BUILDER_H
#define TEST_CORE_RUN_BUILDER_H

#include "tests/unit/core/plan/plan_builder.h"

static inline struct run *build_run(const struct plan *plan, const char *states)
{
    struct run *run = calloc(1, run_size(plan));
    assert_non_null(run);
    run->n_steps = plan->n_steps;
    const char *at = states;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        struct run_step *s = &run->steps[i];
        const struct str w = word(&at, " ");
        assert_true(w.len > 0);
        s->status = w.ptr[0] == 'c'   ? STEP_COMPLETED
                    : w.ptr[0] == 's' ? STEP_SKIPPED
                    : w.ptr[0] == 'f' ? STEP_FAILED
                                      : STEP_PENDING;
        run->failed += s->status == STEP_FAILED;
        run->skipped += s->status == STEP_SKIPPED;
        if (s->status == STEP_COMPLETED) {
            const uint64_t len = strtoull(w.ptr + 1, NULL, 10);
            s->result = (struct blob_ref){len == 0 ? 0 : 100 + i, len};
            run->completed++;
        }
    }
    return run;
}
#endif
