/* What never happened was not tested. */
#include <stdio.h>

#include "tests/explore/scenarios.h"

struct need {
    const char *what;
    const uint64_t *counts;
    int n;
    const char *(*name)(int i);
    uint64_t except; /* set of those that cannot happen in these worlds */
};

/* The name functions take an enum each. */
#define NAME(function, type)                                                                       \
    static const char *name_##function(int i)                                                      \
    {                                                                                              \
        return function((enum type)i);                                                             \
    }
NAME(record_wire_type, record_type)
NAME(core_reject_text, core_reject)
NAME(step_reason_name, step_reason)
NAME(plan_failure_name, plan_failure)
NAME(review_kind_name, review_kind)
NAME(review_decision_name, review_decision)
NAME(step_phase_name, step_phase)
NAME(modify_kind_name, modify_kind)
NAME(handoff_kind_name, handoff_kind)
NAME(fallback_action_name, fallback_action)
NAME(step_stop_name, step_stop)
NAME(plan_outcome_name, plan_outcome)
#undef NAME

static const char *event_name(int i)
{
    static char name[16];
    (void)snprintf(name, sizeof name, "%d", i);
    return name;
}

static int check(const struct need *need)
{
    int missing = 0;
    for (int i = 0; i < need->n; i++) {
        if (need->counts[i] == 0 && (need->except & UINT64_C(1) << i) == 0) {
            (void)fprintf(stderr, "never happened: %s %d %s\n", need->what, i, need->name(i));
            missing++;
        }
    }
    return missing;
}

/* PENDING -> READY, and the ends of steps that had not begun when their plan ended, happen inside
 * other records. */
static int check_moves(const struct coverage *seen)
{
    int missing = 0;
    for (int from = STEP_PENDING; from < STEP_COMPLETED; from++) {
        for (int to = 0; to < STEP_STATUS_COUNT; to++) {
            const bool allowed = run_move_allowed((enum step_status)from, (enum step_status)to);
            const bool inside = from == STEP_PENDING && to == STEP_READY;
            if (allowed && !inside && seen->moves[from][to] == 0) {
                (void)fprintf(stderr, "never happened: a step from %s to %s\n",
                              step_status_state_name((enum step_status)from),
                              step_status_state_name((enum step_status)to));
                missing++;
            }
        }
    }
    return missing;
}

static int check_lives(const struct coverage *seen)
{
    int missing = 0;
    for (int from = 0; from < LIFE_COUNT; from++) {
        for (int to = 0; to < LIFE_COUNT; to++) {
            if (plan_life_may((enum plan_life)from, (enum plan_life)to) &&
                seen->lives[from][to] == 0) {
                (void)fprintf(stderr, "never happened: a plan from %s to %s\n",
                              plan_life_name((enum plan_life)from),
                              plan_life_name((enum plan_life)to));
                missing++;
            }
        }
    }
    return missing;
}

#define BIT(n) (UINT64_C(1) << (n))

int coverage_check(const struct coverage *seen)
{
    const uint64_t shell = BIT(REC_AGENT_RESTARTED) | BIT(REC_SUPERVISOR_STARTED) |
                           BIT(REC_SUPERVISOR_STOPPING) | BIT(REC_EVENT_DAMAGED) |
                           BIT(REC_JOURNAL_REWOUND) | BIT(REC_TURN_START) | BIT(REC_TURN_END) |
                           BIT(REC_SCHEDULE_FIRED) | BIT(REC_SCHEDULE_SKIPPED) |
                           BIT(REC_SCHEDULE_PAUSED);
    /* One plan, three instances that are what they say, little progress. */
    const uint64_t rejects = BIT(REJECT_NONE) | BIT(REJECT_TOO_MANY_RUNS) |
                             BIT(REJECT_TOO_MANY_INSTANCES) | BIT(REJECT_TOO_MUCH) |
                             BIT(REJECT_NO_STEP) | BIT(REJECT_PAUSED) | BIT(REJECT_SIGNALS);
    const struct need needs[] = {
        {"event", seen->kinds, WORLD_KIND_COUNT, event_name, 0},
        {"command", seen->commands, CORE_CMD_TYPE_COUNT, event_name, 0},
        {"record", seen->records, REC_COUNT, name_record_wire_type, shell},
        {"rejection", seen->rejects, CORE_REJECT_COUNT, name_core_reject_text, rejects},
        {"reason", seen->reasons, STEP_REASON_COUNT, name_step_reason_name, 0},
        {"failure", seen->failures, PLAN_FAILURE_COUNT, name_plan_failure_name,
         BIT(PLAN_FAILURE_DEADLOCK) | BIT(PLAN_FAILURE_QUARANTINED)}, /* the shell decides */
        {"review", seen->reviews, REVIEW_KIND_COUNT, name_review_kind_name, 0},
        {"decision", seen->decisions, DECISION_COUNT, name_review_decision_name, 0},
        {"phase", seen->phases, STEP_PHASE_COUNT, name_step_phase_name, 0},
        {"change", seen->modifies, MODIFY_KIND_COUNT, name_modify_kind_name, 0},
        {"handoff", seen->handoffs, HANDOFF_KIND_COUNT, name_handoff_kind_name, 0},
        {"fallback", seen->fallbacks, FALLBACK_ACTION_COUNT, name_fallback_action_name, 0},
        {"stop", seen->stops, STEP_STOP_COUNT, name_step_stop_name, 0},
        {"outcome", seen->outcomes, PLAN_OUTCOME_COUNT, name_plan_outcome_name, BIT(OUTCOME_NONE)},
    };
    int missing = check_moves(seen) + check_lives(seen);
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        missing += check(&needs[i]);
    }
    return missing;
}
