/*
 * What a plan may come to before anything runs: the worst case, what decides it, what may run side
 * by side, and what experience says of its shape (F08). For plan.lint: none of these warnings
 * stands in the way of a submission.
 *
 * The worst case of a step: every attempt and every fallback that its policy allows takes its whole
 * timeout, every backoff its longest jitter, every gate and every verification its whole
 * checkTimeoutMs; at most its stepLimitMs. People count with their approvalTimeoutMs, without one
 * not at all. Not counted: waiting for an agent or a lane, and replans, which make another plan.
 *
 * The worst case of a plan: with c = maxConcurrency, the work of all steps / c + the longest path *
 * (c - 1) / c. No order in which the core may begin ready steps takes longer (Graham, Bounds on
 * multiprocessing timing anomalies, 1969). At c = 1 that is the sum of all steps, without a limit
 * the longest path. At most planTimeoutMs.
 */
#ifndef PLAN_LINT_H
#define PLAN_LINT_H

#include "protocol/base/arena.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/plan/plan_check.h"

/* Of times: there is no bound. */
#define LINT_NO_BOUND UINT64_MAX
#define LINT_NO_LEVEL UINT32_MAX

struct lint_step {
    uint64_t worst_ms;
    uint32_t attempts; /* with all retries and fallbacks; 0 of a step for a person */
    uint32_t level;    /* 0 = depends on nothing; LINT_NO_LEVEL of a superseded row */
};

struct plan_lint {
    struct lint_step *steps; /* per row */
    uint32_t n_levels;
    uint32_t *path; /* rows, first to last: the chain of steps that may take longest */
    uint32_t n_path;
    uint64_t path_ms;
    uint64_t work_ms; /* of all steps */
    uint64_t worst_ms;
    uint64_t worst_tokens, worst_micros; /* estimates times attempts */
    uint32_t unestimated; /* steps of agents without an estimate: not in these two sums */
};

/* The worst case of one step; *ret_attempts may be NULL. */
uint64_t plan_lint_step_ms(const struct plan *plan, uint32_t step, uint32_t *ret_attempts);

/* Of a plan as plan_read makes it (linked, without cycles). Arrays live in the arena. BT_NOMEM. */
BT_MUST_CHECK enum bt_code plan_lint(const struct plan *plan, struct arena *arena,
                                     struct plan_lint *ret, struct bt_error *err);
/*
 * Appends warnings: missing_gate, parallel_explosion, optimism_bias, orphan_task,
 * disconnected_flow; steps whose agent has no live instance; a deadline or budget that the worst
 * case goes over. registry NULL = agents are not looked at.
 */
BT_MUST_CHECK enum bt_code plan_lint_style(const struct plan *plan, const struct plan_lint *lint,
                                           const struct registry *registry, struct arena *arena,
                                           struct problems *problems, struct bt_error *err);
#endif
