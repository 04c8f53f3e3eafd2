/* Counts what occurred over all seeds, and what never did. */
#include "tests/sim/sim_sometimes.h"

#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/assert.h"
#include "supervisor/core/sched/core_internal.h"

struct sometimes *sometimes;

const char *sim_fault_name(enum fault f)
{
    static const char *const names[] = {
        [FAULT_FAILURE] = "failure",
        [FAULT_NEEDS_PERSON] = "needs-person",
        [FAULT_HANDOFF] = "handoff",
        [FAULT_VERDICT_NO] = "verdict-no",
        [FAULT_CHECK_ERROR] = "check-error",
        [FAULT_BAD_REVISION] = "bad-revision",
        [FAULT_UNSENT] = "unsent",
        [FAULT_REQUEST_LOST] = "request-lost",
        [FAULT_REPLY_LOST] = "reply-lost",
        [FAULT_DELAY] = "delay",
        [FAULT_REORDER] = "reorder",
        [FAULT_LATE] = "late",
        [FAULT_SLOW] = "slow",
        [FAULT_HANG] = "hang",
        [FAULT_DUPLICATE] = "duplicate",
        [FAULT_LIE] = "lie",
        [FAULT_CRASH] = "crash",
        [FAULT_CRASH_UNSEEN] = "crash-unseen",
        [FAULT_SILENCE] = "silence",
        [FAULT_PARTITION] = "partition",
        [FAULT_REREGISTER] = "reregister",
        [FAULT_STOLEN_ID] = "stolen-id",
        [FAULT_SAME_NAME] = "same-name",
        [FAULT_LANE_DOWN] = "lane-down",
        [FAULT_DRAIN] = "drain",
        [FAULT_QUERY_LOST] = "query-lost",
        [FAULT_PROBE_LOST] = "probe-lost",
        [FAULT_FLOOD] = "flood",
        [FAULT_STALE] = "stale",
        [FAULT_CANCEL] = "cancel",
        [FAULT_PAUSE] = "pause",
        [FAULT_MODIFY] = "modify",
        [FAULT_REVISE] = "revise",
        [FAULT_NONSENSE] = "nonsense",
        [FAULT_UNDECIDED] = "undecided",
        [FAULT_RESTART] = "restart",
        [FAULT_DOWN] = "down",
        [FAULT_BEFORE_COMMIT] = "before-commit",
        [FAULT_AFTER_COMMIT] = "after-commit",
        [FAULT_DISK_FULL] = "disk-full",
        [FAULT_ABSENT] = "absent",
        [FAULT_UNPLANNED] = "unplanned",
        [FAULT_BAD_PLAN] = "bad-plan",
        [FAULT_NO_ANSWER] = "no-answer",
        [FAULT_RECTIFY] = "rectify",
        [FAULT_JOB_LATE] = "errand-late",
        [FAULT_LATE_COMMIT] = "late-commit",
        [FAULT_BUSY] = "busy",
        [FAULT_NEST] = "nest",
    };
    _Static_assert(sizeof names / sizeof names[0] == FAULT_COUNT, "a name per fault");
    ASSERT((unsigned)f < FAULT_COUNT);
    return names[f];
}

static bool all_counts; /* print each */

static int never(const char *what, const char *which, uint64_t n)
{
    if (n == 0) {
        (void)fprintf(stderr, "never happened: %s %s\n", what, which);
    } else if (all_counts) {
        (void)printf("%8" PRIu64 "  %s %s\n", n, what, which);
    }
    return n == 0 ? 1 : 0;
}

static int never_nth(const char *what, int which, uint64_t n)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%d", which);
    return never(what, name, n);
}

static int moves(void)
{
    int missing = 0;
    for (int from = 0; from < STEP_COMPLETED; from++) {
        for (int to = 0; to < STEP_STATUS_COUNT; to++) {
            char move[64];
            (void)snprintf(move, sizeof move, "%s -> %s",
                           step_status_state_name((enum step_status)from),
                           step_status_state_name((enum step_status)to));
            /* PENDING -> READY happens inside the record of another step. */
            if (run_move_allowed((enum step_status)from, (enum step_status)to) &&
                !(from == STEP_PENDING && to == STEP_READY)) {
                missing += never("move", move, sometimes->moves[from][to]);
            }
        }
    }
    return missing;
}

static int lives(void)
{
    int missing = 0;
    for (int from = 0; from < LIFE_COUNT; from++) {
        for (int to = 0; to < LIFE_COUNT; to++) {
            char move[64];
            (void)snprintf(move, sizeof move, "%s -> %s", plan_life_name((enum plan_life)from),
                           plan_life_name((enum plan_life)to));
            if (plan_life_may((enum plan_life)from, (enum plan_life)to)) {
                missing += never("plan", move, sometimes->lives[from][to]);
            }
        }
    }
    for (int i = 0; i < ON_INVALID_COUNT; i++) {
        missing +=
            never("unplanned", on_invalid_name((enum on_invalid)i), sometimes->on_invalid[i]);
    }
    return missing;
}

static int records(void)
{
    int missing = 0;
    for (int t = 0; t < REC_COUNT; t++) {
        const enum record_about about = record_about((enum record_type)t);
        const bool of_shell =
            about == ABOUT_SYSTEM || about == ABOUT_SESSION || about == ABOUT_SCHEDULE;
        missing += of_shell ? 0
                            : never("record", record_wire_type((enum record_type)t),
                                    sometimes->records[t]);
    }
    for (int r = 0; r < PAUSE_REASON_COUNT; r++) {
        missing += never("pause", pause_reason_name((enum pause_reason)r), sometimes->pauses[r]);
    }
    for (int m = 0; m < MODIFY_KIND_COUNT; m++) {
        missing +=
            never("modification", modify_kind_name((enum modify_kind)m), sometimes->modifies[m]);
    }
    for (int h = 0; h < HANDOFF_KIND_COUNT; h++) {
        missing +=
            never("handoff", handoff_kind_name((enum handoff_kind)h), sometimes->handoffs[h]);
    }
    for (int f = 0; f < FALLBACK_ACTION_COUNT; f++) {
        missing += never("fallback", fallback_action_name((enum fallback_action)f),
                         sometimes->fallbacks[f]);
    }
    for (int k = 0; k < STEP_STOP_COUNT; k++) {
        missing += never("stop", step_stop_name((enum step_stop)k), sometimes->stops[k]);
    }
    for (int r = 0; r < STEP_REASON_COUNT; r++) {
        missing += never("reason", step_reason_name((enum step_reason)r), sometimes->reasons[r]);
    }
    for (int f = 0; f < PLAN_FAILURE_COUNT; f++) {
        if (f != PLAN_FAILURE_QUARANTINED) { /* the shell decides */
            missing += never("plan failure", plan_failure_name((enum plan_failure)f),
                             sometimes->failures[f]);
        }
    }
    return missing;
}

static int people(void)
{
    int missing = 0;
    for (int r = 0; r < REVIEW_KIND_COUNT; r++) {
        for (int d = 0; d < DECISION_COUNT; d++) {
            char name[64];
            const bool none = (r == REVIEW_PLAN || r == REVIEW_PLANNING) && d == DECISION_SKIP;
            (void)snprintf(name, sizeof name, "%s %s", review_kind_name((enum review_kind)r),
                           review_decision_name((enum review_decision)d));
            missing += none ? 0 : never("decision", name, sometimes->reviews[r][d]);
        }
    }
    return missing;
}

static int ends(void)
{
    int missing = 0;
    missing += never("end", "success", sometimes->ends[PLAN_COMPLETED][OUTCOME_SUCCESS]);
    missing += never("end", "partial", sometimes->ends[PLAN_COMPLETED][OUTCOME_PARTIAL]);
    missing += never("end", "failed", sometimes->ends[PLAN_FAILED][OUTCOME_FAILED]);
    missing += never("end", "cancelled", sometimes->ends[PLAN_CANCELLED][OUTCOME_FAILED]);
    missing += never("late result", "taken", sometimes->late);
    missing += never("revision", "taken", sometimes->revised);
    missing += never("revision", "refused", sometimes->refused);
    missing += never("agent", "granted later", sometimes->granted_later);
    return missing;
}

static int nests(void)
{
    static const char *const kinds[NEST_KINDS] = {[CHILD_OF_MAP] = "forEach",
                                                  [CHILD_OF_LOOP] = "repeat",
                                                  [CHILD_OF_SUB] = "plan",
                                                  [CHILD_OF_CALLS] = "calls"};
    static const char *const cases[NEST_CASE_COUNT] = {[NEST_MADE_AGAIN] = "asked for again",
                                                       [NEST_SAID_AGAIN] = "reported again",
                                                       [NEST_STOPPED] = "cancelled",
                                                       [NEST_UNMADE] = "cancelled before",
                                                       [NEST_ORPHANED] = "orphaned",
                                                       [NEST_PAUSED] = "paused",
                                                       [NEST_RESUMED] = "resumed",
                                                       [NEST_TOO_DEEP] = "too deep",
                                                       [NEST_WITHOUT_ROOM] = "without room",
                                                       [NEST_PAID] = "paid for",
                                                       [NEST_PAID_LATE] = "paid for late"};
    int missing = 0;
    for (int k = 0; k < NEST_KINDS; k++) {
        for (int depth = 1; kinds[k] != NULL && depth < NEST_DEPTHS; depth++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%s at depth %d", kinds[k], depth);
            missing += never("child plan", name, sometimes->nests[k][depth]);
        }
    }
    for (int i = 0; i < NEST_CASE_COUNT; i++) {
        missing += never("child plan", cases[i], sometimes->nest_cases[i]);
    }
    return missing;
}

int sim_check_sometimes(bool counts)
{
    all_counts = counts;
    int missing = moves() + lives() + records() + people() + ends() + nests();
    for (int f = 0; f < FAULT_COUNT; f++) {
        missing += never("fault", sim_fault_name((enum fault)f), sometimes->faults[f]);
    }
    for (int r = REJECT_NONE + 1; r < CORE_REJECT_COUNT; r++) {
        missing += never("rejection", core_reject_text((enum core_reject)r), sometimes->rejects[r]);
    }
    for (int k = 0; k < CORE_CMD_TYPE_COUNT; k++) {
        missing += never_nth("command", k, sometimes->commands[k]);
    }
    for (int e = 0; e < CORE_EVENT_TYPE_COUNT; e++) {
        missing += never_nth("event", e, sometimes->events[e]);
    }
    for (int w = 0; w < WAIT_KIND_COUNT; w++) {
        missing += never("wait for", wait_kind_name((enum wait_kind)w), sometimes->waits[w]);
    }
    for (int p = 0; p < STEP_PHASE_COUNT; p++) {
        missing += never("dispatch to", step_phase_name((enum step_phase)p), sometimes->phases[p]);
    }
    for (int p = 0; p < ON_FAILURE_COUNT; p++) {
        missing += never("policy", on_failure_name((enum on_failure)p), sometimes->policies[p]);
    }
    for (int t = 0; t < STEP_TYPE_COUNT; t++) {
        missing += never("completed", step_type_name((enum step_type)t), sometimes->types[t]);
    }
    return missing;
}

void sim_print_sometimes(void)
{
    (void)printf("%" PRIu64 " seeds, %" PRIu64 " plans, %" PRIu64 " steps, %" PRIu64
                 " turns, %" PRIu64 " executions\n",
                 sometimes->seeds, sometimes->plans, sometimes->steps, sometimes->turns,
                 sometimes->executions);
    (void)printf("%" PRIu64 " revisions, %" PRIu64
                 " late results; longest after the faults %" PRIu64
                 " ms; passed by at most %" PRIu64 " times\n",
                 sometimes->revised, sometimes->late, sometimes->longest, sometimes->overtaken);
}
