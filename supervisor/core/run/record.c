/* The names of records and statuses, in both directions. */
#include "supervisor/core/run/record.h"

#include "protocol/base/assert.h"

static const struct {
    const char *wire;
    bool is_public;
    enum record_about about;
} records[] = {
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    [REC_##name] = {wire, is_public, ABOUT_##about},
#include "supervisor/core/run/record.def"
};
_Static_assert(sizeof records / sizeof records[0] == REC_COUNT, "a row per record");

/* The names that users see. The three inner states between attempts are "in_progress" to them. */
static const char *const step_status_names[] = {
    [STEP_PENDING] = "pending",         [STEP_READY] = "ready",
    [STEP_IN_PROGRESS] = "in_progress", [STEP_BACKOFF] = "in_progress",
    [STEP_UNKNOWN] = "in_progress",     [STEP_WAITING] = "waiting",
    [STEP_CHECKING] = "in_progress",    [STEP_SLEEPING] = "in_progress",
    [STEP_COMPLETED] = "completed",     [STEP_FAILED] = "failed",
    [STEP_SKIPPED] = "skipped",         [STEP_CANCELLED] = "cancelled",
};
_Static_assert(sizeof step_status_names / sizeof step_status_names[0] == STEP_STATUS_COUNT, "all");

static const char *const plan_status_names[] = {
    [PLAN_PENDING] = "pending",     [PLAN_RUNNING] = "running", [PLAN_WAITING] = "waiting",
    [PLAN_COMPLETED] = "completed", [PLAN_FAILED] = "failed",   [PLAN_CANCELLED] = "cancelled",
};
_Static_assert(sizeof plan_status_names / sizeof plan_status_names[0] == PLAN_STATUS_COUNT, "all");

static const char *const plan_outcome_names[] = {
    [OUTCOME_NONE] = "",
    [OUTCOME_SUCCESS] = "success",
    [OUTCOME_PARTIAL] = "partial",
    [OUTCOME_FAILED] = "failed",
};
_Static_assert(sizeof plan_outcome_names / sizeof plan_outcome_names[0] == PLAN_OUTCOME_COUNT,
               "all");

static const char *const step_reason_names[] = {
    [REASON_NONE] = "",
    [REASON_DEPENDENCY_FAILED] = "dependency_failed",
    [REASON_ON_FAILURE_SKIP] = "on_failure_skip",
    [REASON_CANCELLED] = "cancelled",
    [REASON_PLAN_ABORTED] = "plan_aborted",
    [REASON_PLAN_TIMEOUT] = "plan_timeout",
    [REASON_REJECTED] = "rejected",
    [REASON_APPROVAL_TIMEOUT] = "approval_timeout",
    [REASON_USER_SKIP] = "user_skip",
    [REASON_USER_CANCEL] = "user_cancel",
    [REASON_SUPERSEDED] = "superseded",
    [REASON_REUSED] = "already_completed",
    [REASON_GATE_FAILED] = "quality_gate_failed",
    [REASON_CONDITION] = "condition",
};
_Static_assert(sizeof step_reason_names / sizeof step_reason_names[0] == STEP_REASON_COUNT, "all");

static const char *const plan_failure_names[] = {
    [PLAN_FAILURE_NONE] = "",
    [PLAN_FAILURE_STEP] = "step",
    [PLAN_FAILURE_TIMEOUT] = "timeout",
    [PLAN_FAILURE_NOTHING_COMPLETED] = "nothing_completed",
    [PLAN_FAILURE_BUDGET] = "budget_exceeded",
    [PLAN_FAILURE_MAX_REPLANS] = "max_replans_exceeded",
    [PLAN_FAILURE_MAX_REPLANS_STEP] = "max_replans_exceeded_per_task",
    [PLAN_FAILURE_REPLAN] = "replan_generation_failed",
    [PLAN_FAILURE_REPAIR_INVALID] = "repair_plan_invalid",
    [PLAN_FAILURE_REJECTED] = "rejected",
    [PLAN_FAILURE_DEADLOCK] = "deadlock",
    [PLAN_FAILURE_PLANNING] = "planning_failed",
    [PLAN_FAILURE_INVALID_PLAN] = "invalid_plan",
    [PLAN_FAILURE_QUARANTINED] = "quarantined",
};
_Static_assert(sizeof plan_failure_names / sizeof plan_failure_names[0] == PLAN_FAILURE_COUNT,
               "all");

static const char *const review_kind_names[] = {
    [REVIEW_UNKNOWN_OUTCOME] = "unknown_outcome",
    [REVIEW_APPROVAL] = "approval",
    [REVIEW_INPUT] = "input",
    [REVIEW_BEFORE] = "before_step",
    [REVIEW_STEP] = "human_review",
    [REVIEW_FAILURE] = "failure",
    [REVIEW_PLAN] = "plan",
    [REVIEW_PLANNING] = "planning",
};
_Static_assert(sizeof review_kind_names / sizeof review_kind_names[0] == REVIEW_KIND_COUNT, "all");

static const char *const review_decision_names[] = {
    [DECISION_APPROVE] = "approve",
    [DECISION_REJECT] = "reject",
    [DECISION_SKIP] = "skip",
};
_Static_assert(sizeof review_decision_names / sizeof review_decision_names[0] == DECISION_COUNT,
               "all");

static const char *const step_phase_names[] = {
    [PHASE_EXECUTE] = "execute", [PHASE_SEARCH] = "search", [PHASE_GATE] = "gate",
    [PHASE_VERIFY] = "verify",   [PHASE_REPLAN] = "replan",
};
_Static_assert(sizeof step_phase_names / sizeof step_phase_names[0] == STEP_PHASE_COUNT, "all");

static const char *const pause_reason_names[] = {[PAUSE_REQUESTED] = "requested",
                                                 [PAUSE_REVIEW] = "review",
                                                 [PAUSE_SIGNOFF] = "signoff",
                                                 [PAUSE_PLANNING] = "planning",
                                                 [PAUSE_KEY] = "concurrency"};
_Static_assert(sizeof pause_reason_names / sizeof pause_reason_names[0] == PAUSE_REASON_COUNT,
               "all");

static const char *const modify_kind_names[] = {
    [MODIFY_SKIP_TO_STEP] = "skip_to_step",
    [MODIFY_SKIP_STEPS] = "skip_steps",
    [MODIFY_CONVERSATION_ONLY] = "conversation_only",
    [MODIFY_INSERT] = "insert",
    [MODIFY_REPLACE] = "replace",
    [MODIFY_CANCEL_STEP] = "cancel_step",
};
_Static_assert(sizeof modify_kind_names / sizeof modify_kind_names[0] == MODIFY_KIND_COUNT, "all");

static const char *const handoff_kind_names[] = {
    [HANDOFF_PLAN_STEP] = "plan_step",
    [HANDOFF_AGENT] = "agent_request",
    [HANDOFF_BACK] = "handback",
    [HANDOFF_FALLBACK] = "fallback",
};
_Static_assert(sizeof handoff_kind_names / sizeof handoff_kind_names[0] == HANDOFF_KIND_COUNT,
               "all");

static const char *const fallback_action_names[] = {
    [FALLBACK_WAIT] = "wait_and_retry",
    [FALLBACK_AGENT] = "alternative_agent",
    [FALLBACK_SEARCH] = "search",
};
_Static_assert(sizeof fallback_action_names / sizeof fallback_action_names[0] ==
                   FALLBACK_ACTION_COUNT,
               "all");

static const char *const step_stop_names[] = {
    [STOP_NONE] = "",         [STOP_ACKNOWLEDGED] = "acknowledged",
    [STOP_KILLED] = "killed", [STOP_GONE] = "gone",
    [STOP_FENCED] = "fenced",
};
_Static_assert(sizeof step_stop_names / sizeof step_stop_names[0] == STEP_STOP_COUNT, "all");

/* The first entry with the name, so "in_progress" is STEP_IN_PROGRESS; n when there is none. */
static uint32_t index_of(const char *const *names, uint32_t n, struct str s)
{
    uint32_t i = 0;
    while (i < n && !str_is(s, names[i])) {
        i++;
    }
    return i;
}

const char *record_wire_type(enum record_type t)
{
    ASSERT((unsigned)t < REC_COUNT);
    return records[t].wire;
}

enum record_type record_type_from_wire(struct str s)
{
    uint32_t i = 0;
    while (i < REC_COUNT && !str_is(s, records[i].wire)) {
        i++;
    }
    return (enum record_type)i;
}

bool record_is_public(enum record_type t)
{
    ASSERT((unsigned)t < REC_COUNT);
    return records[t].is_public;
}

enum record_about record_about(enum record_type t)
{
    ASSERT((unsigned)t < REC_COUNT);
    return records[t].about;
}

const char *step_status_name(enum step_status s)
{
    ASSERT((unsigned)s < STEP_STATUS_COUNT);
    return step_status_names[s];
}

const char *step_status_state_name(enum step_status s)
{
    if (s == STEP_BACKOFF) {
        return "backoff";
    }
    if (s == STEP_CHECKING) {
        return "checking";
    }
    if (s == STEP_SLEEPING) {
        return "sleeping";
    }
    return s == STEP_UNKNOWN ? "unknown" : step_status_name(s);
}

const char *plan_status_name(enum plan_status s)
{
    ASSERT((unsigned)s < PLAN_STATUS_COUNT);
    return plan_status_names[s];
}

const char *plan_outcome_name(enum plan_outcome o)
{
    ASSERT((unsigned)o < PLAN_OUTCOME_COUNT);
    return plan_outcome_names[o];
}

const char *step_reason_name(enum step_reason r)
{
    ASSERT((unsigned)r < STEP_REASON_COUNT);
    return step_reason_names[r];
}

const char *plan_failure_name(enum plan_failure f)
{
    ASSERT((unsigned)f < PLAN_FAILURE_COUNT);
    return plan_failure_names[f];
}

const char *review_kind_name(enum review_kind k)
{
    ASSERT((unsigned)k < REVIEW_KIND_COUNT);
    return review_kind_names[k];
}

const char *review_decision_name(enum review_decision d)
{
    ASSERT((unsigned)d < DECISION_COUNT);
    return review_decision_names[d];
}

#define NAME_OF(what, type, count)                                                                 \
    const char *what##_name(enum type v)                                                           \
    {                                                                                              \
        ASSERT((unsigned)v < (count));                                                             \
        return what##_names[v];                                                                    \
    }                                                                                              \
    enum type what##_from_name(struct str s)                                                       \
    {                                                                                              \
        return (enum type)index_of(what##_names, (count), s);                                      \
    }
NAME_OF(step_phase, step_phase, STEP_PHASE_COUNT)
NAME_OF(pause_reason, pause_reason, PAUSE_REASON_COUNT)
NAME_OF(modify_kind, modify_kind, MODIFY_KIND_COUNT)
NAME_OF(handoff_kind, handoff_kind, HANDOFF_KIND_COUNT)
NAME_OF(fallback_action, fallback_action, FALLBACK_ACTION_COUNT)
NAME_OF(step_stop, step_stop, STEP_STOP_COUNT)
#undef NAME_OF

bool record_revises(const struct record *rec)
{
    return record_member(rec->type) == RECORD_revision && REC(rec, revision)->result.id != 0;
}

bool step_is_final(enum step_status s)
{
    return s >= STEP_COMPLETED;
}

bool plan_is_final(enum plan_status s)
{
    return s >= PLAN_COMPLETED;
}

enum step_status step_status_from_name(struct str s)
{
    return (enum step_status)index_of(step_status_names, STEP_STATUS_COUNT, s);
}

enum plan_status plan_status_from_name(struct str s)
{
    return (enum plan_status)index_of(plan_status_names, PLAN_STATUS_COUNT, s);
}

enum plan_outcome plan_outcome_from_name(struct str s)
{
    return (enum plan_outcome)index_of(plan_outcome_names, PLAN_OUTCOME_COUNT, s);
}

enum step_reason step_reason_from_name(struct str s)
{
    return (enum step_reason)index_of(step_reason_names, STEP_REASON_COUNT, s);
}

enum review_kind review_kind_from_name(struct str s)
{
    return (enum review_kind)index_of(review_kind_names, REVIEW_KIND_COUNT, s);
}

enum review_decision review_decision_from_name(struct str s)
{
    return (enum review_decision)index_of(review_decision_names, DECISION_COUNT, s);
}
