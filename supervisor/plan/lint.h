/*
 * The worst case of a plan, its critical path, its parallel levels, and warnings about its shape
 * (F08). For plan.lint. None of these warnings rejects a plan.
 *
 * The worst case of a step: every attempt and every fallback of its policy takes its whole timeout,
 * every backoff its longest jitter, every gate and verification its whole checkTimeoutMs. It is at
 * most its stepLimitMs. A person takes approvalTimeoutMs, or no time without one. Not counted: the
 * wait for an agent or a lane, and replans, which make another plan.
 *
 * A step with forEach: as many items as its list has, or maxItems, and so many of them at a time. A
 * step with repeat: max rounds and their pauses. A sub-plan has no bound but its timeoutMs.
 *
 * The worst case of a plan with c = maxConcurrency: the work of all steps / c + the longest path *
 * (c - 1) / c. No order in which the core starts ready steps takes longer (Graham, Bounds on
 * multiprocessing timing anomalies, 1969). For c = 1 that is the sum of all steps, without a limit
 * the longest path. It is at most planTimeoutMs.
 */
#ifndef PLAN_LINT_H
#define PLAN_LINT_H

#include "protocol/base/arena.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/plan/plan_check.h"

/* A time without a bound. */
#define LINT_NO_BOUND UINT64_MAX
#define LINT_NO_LEVEL UINT32_MAX

struct lint_step {
    uint64_t worst_ms;
    uint32_t attempts; /* with all retries and fallbacks; 0 for a step of a person */
    uint32_t level;    /* 0 = no dependencies; LINT_NO_LEVEL for a superseded entry */
};

struct plan_lint {
    struct lint_step *steps; /* per entry */
    uint32_t n_levels;
    uint32_t *path; /* entries of the critical path, first to last */
    uint32_t n_path;
    uint64_t path_ms;
    uint64_t work_ms; /* of all steps together */
    uint64_t worst_ms;
    uint64_t undo_ms;                    /* after that: the compensations, one after the other */
    uint64_t worst_tokens, worst_micros; /* estimates times attempts, of compensations too */
    uint32_t unestimated; /* steps of agents without an estimate; they are not in these sums */
};

/* The worst case of one step, in milliseconds; *ret_attempts may be NULL. */
uint64_t plan_lint_step_ms(const struct plan *plan, uint32_t step, uint32_t *ret_attempts);

/*
 * The plan must be linked and without cycles, as plan_read makes it. Arrays are allocated in the
 * arena. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code plan_lint(const struct plan *plan, struct arena *arena,
                                     struct plan_lint *ret, struct bt_error *err);
/* The plan of one item or round of a step with forEach or repeat, in the arena; NULL when the step
 * has none. BT_NOMEM. */
BT_MUST_CHECK enum bt_code plan_lint_body(const struct plan_step *step, struct arena *arena,
                                          struct plan **ret, struct bt_error *err);
/*
 * Appends warnings: missing_gate, parallel_explosion, optimism_bias, orphan_task,
 * disconnected_flow; agents without a live instance; a deadline or budget below the worst case;
 * steps that can never run (flow/reach.h), also inside forEach and repeat.
 * registry NULL = agents are not checked.
 */
BT_MUST_CHECK enum bt_code plan_lint_style(const struct plan *plan, const struct plan_lint *lint,
                                           const struct registry *registry, struct arena *arena,
                                           struct problems *problems, struct bt_error *err);
/* Only the last of them, which need no agents: steps that can never run. */
BT_MUST_CHECK enum bt_code plan_lint_never(const struct plan *plan, struct arena *arena,
                                           struct problems *problems, struct bt_error *err);
#endif
