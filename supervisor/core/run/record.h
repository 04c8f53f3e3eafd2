/* Records: the state changes that the core decides. The journal stores them, the engine publishes
 * them and run_apply() replays them. Plain values. Texts are borrowed from the event that is
 * handled and must be encoded before the next event. Pure. */
#ifndef CORE_RECORD_H
#define CORE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/assert.h"
#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"
#include "protocol/wire/doc.h"

enum record_about { ABOUT_PLAN, ABOUT_AGENT, ABOUT_SESSION, ABOUT_SCHEDULE, ABOUT_SYSTEM };

enum record_type {
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence) REC_##name,
#include "supervisor/core/run/record.def"
    REC_COUNT
};

/* pending -> ready -> in_progress -> {completed | failed | skipped | cancelled}; see the table in
 * run.c */
enum step_status {
    STEP_PENDING,     /* a dependency is open */
    STEP_READY,       /* waits for a place within max_concurrency or for a free lane */
    STEP_IN_PROGRESS, /* an instance has the attempt */
    STEP_BACKOFF,     /* between attempts; users see "in_progress" */
    STEP_UNKNOWN,     /* the reply was lost: the instance is queried, or has to come back; users see
                         "in_progress" */
    STEP_WAITING,     /* waits for a person's decision */
    STEP_CHECKING, /* an agent answers a question about the step (phase GATE, VERIFY or REPLAN), or
                      will when it has a free lane; users see "in_progress" */
    STEP_SLEEPING, /* waits for a time or a signal, without a place; users see "in_progress" */
    STEP_COMPLETED,
    STEP_FAILED,
    STEP_SKIPPED,
    STEP_CANCELLED,
    STEP_STATUS_COUNT
};

enum plan_status {
    PLAN_PENDING,
    PLAN_RUNNING,
    PLAN_WAITING,
    PLAN_COMPLETED,
    PLAN_FAILED,
    PLAN_CANCELLED,
    PLAN_STATUS_COUNT
};
enum plan_outcome {
    OUTCOME_NONE,
    OUTCOME_SUCCESS,
    OUTCOME_PARTIAL,
    OUTCOME_FAILED,
    PLAN_OUTCOME_COUNT
};

/* Why a step ended as it did (the `reason` of plan_step_completed). */
enum step_reason {
    REASON_NONE,
    REASON_DEPENDENCY_FAILED,
    REASON_ON_FAILURE_SKIP,
    REASON_CANCELLED,
    REASON_PLAN_ABORTED,
    REASON_PLAN_TIMEOUT,
    REASON_REJECTED, /* by a person */
    REASON_APPROVAL_TIMEOUT,
    REASON_USER_SKIP,   /* a person skipped it; its dependents may start (M028) */
    REASON_USER_CANCEL, /* a person cancelled this step alone */
    REASON_SUPERSEDED,  /* a later revision of the plan does not need it */
    REASON_REUSED,      /* an earlier run or revision completed it; its result is reused */
    REASON_GATE_FAILED,
    REASON_CONDITION, /* its condition is false, or all steps before it were skipped by theirs */
    STEP_REASON_COUNT
};

/* Why a plan failed, for failureReason. The codec renders the sentence. */
enum plan_failure {
    PLAN_FAILURE_NONE,
    PLAN_FAILURE_STEP,
    PLAN_FAILURE_TIMEOUT,
    PLAN_FAILURE_NOTHING_COMPLETED,
    PLAN_FAILURE_BUDGET,
    PLAN_FAILURE_MAX_REPLANS,      /* limit of the plan */
    PLAN_FAILURE_MAX_REPLANS_STEP, /* limit of the step */
    PLAN_FAILURE_REPLAN,           /* the replanner returned no plan */
    PLAN_FAILURE_REPAIR_INVALID,   /* the plan check rejected the replanner's plan */
    PLAN_FAILURE_REJECTED,         /* a person rejected the sign-off */
    PLAN_FAILURE_DEADLOCK,
    PLAN_FAILURE_PLANNING,     /* the planner returned no plan */
    PLAN_FAILURE_INVALID_PLAN, /* the plan check rejected the planner's plan, and its repairs */
    PLAN_FAILURE_QUARANTINED,  /* put aside at a start, without the core */
    PLAN_FAILURE_COUNT
};

enum review_kind {
    REVIEW_UNKNOWN_OUTCOME, /* approve: run the step again; skip; reject: the step failed */
    REVIEW_APPROVAL,        /* the agent asks; approve: the next attempt */
    REVIEW_INPUT,           /* the agent asks for text or data, which the next attempt gets */
    REVIEW_BEFORE,          /* requires_approval: a review before the first attempt */
    REVIEW_STEP,            /* a step of type human_review: approve completes it */
    REVIEW_FAILURE,  /* on_failure ask; approve: one more attempt; skip; reject: the step failed */
    REVIEW_PLAN,     /* sign-off before the plan starts; belongs to no step */
    REVIEW_PLANNING, /* planning failed; approve: plan once more, or take the plan that comes with
                        the decision; belongs to no step */
    REVIEW_KIND_COUNT
};
enum review_decision { DECISION_APPROVE, DECISION_REJECT, DECISION_SKIP, DECISION_COUNT };

/* What an attempt, or the agent that answers a question about a step, has to do. */
enum step_phase {
    PHASE_EXECUTE,
    PHASE_SEARCH, /* a fallback: the search skill looks for the missing resource (M042) */
    PHASE_GATE,   /* are the results before the step sufficient to begin? (M061) */
    PHASE_VERIFY, /* is the result correct? (M060) */
    PHASE_REPLAN, /* make a new revision of the plan (M052) */
    STEP_PHASE_COUNT
};

enum pause_reason {
    PAUSE_REQUESTED,
    PAUSE_REVIEW,
    PAUSE_SIGNOFF,
    PAUSE_PLANNING, /* planning failed, and a person decides how the plan goes on */
    PAUSE_KEY,      /* it has not begun: its concurrency key has no free place */
    PAUSE_REASON_COUNT
};

enum modify_kind {
    MODIFY_SKIP_TO_STEP,
    MODIFY_SKIP_STEPS,
    MODIFY_CONVERSATION_ONLY,
    MODIFY_INSERT,
    MODIFY_REPLACE,
    MODIFY_CANCEL_STEP,
    MODIFY_KIND_COUNT
};

enum handoff_kind {
    HANDOFF_PLAN_STEP, /* M090: the plan goes to another agent with this step */
    HANDOFF_AGENT,     /* the agent asked for it */
    HANDOFF_BACK, /* control returns to the agent that handed over, when the plan wants that (C20)
                   */
    HANDOFF_FALLBACK, /* an alternative agent */
    HANDOFF_KIND_COUNT
};

enum fallback_action {
    FALLBACK_WAIT,  /* wait, then retry */
    FALLBACK_AGENT, /* use an alternative agent */
    FALLBACK_SEARCH,
    FALLBACK_ACTION_COUNT
};

/* How an attempt that was under way stopped when it was cancelled. */
enum step_stop {
    STOP_NONE,         /* nothing was under way */
    STOP_ACKNOWLEDGED, /* the agent answered */
    STOP_KILLED,       /* the supervisor ended its process */
    STOP_GONE,         /* the instance is gone */
    STOP_FENCED,       /* it may still run; its result will be rejected */
    STEP_STOP_COUNT
};

struct blob_ref {
    uint64_t id; /* 0 = none */
    uint64_t len;
    uint32_t truncated; /* 1: a result that is not whole. A word: runs are compared as bytes */
    uint32_t text_len;  /* of a step's result: bytes of its text; 0 = not known, or none */
};

struct usage {
    uint64_t input_tokens, output_tokens, cached_tokens, cost_micros;
};

#define STEP_NONE UINT32_MAX
#define AGENT_SUPERVISOR (UINT32_MAX - 1) /* from_agent of the first handoff */

/* ---- what a type of record has beside the common fields ---- */

struct rec_assigned { /* A nil instance: the step begins without an attempt. */
    struct uuid instance;
    struct uuid process; /* of the instance; nil = it did not name one */
    uint64_t epoch;
    enum step_phase phase;
    msec delay_ms;          /* STEP_UNKNOWN: how long the instance may take to come back */
    bool context_truncated; /* on replay: its context is not whole; the engine's, not the run's */
};
struct rec_timed {
    msec delay_ms; /* how long it may take */
};
struct rec_planning_retry {
    uint64_t n; /* errors of the plan */
    struct blob_ref result;
};
struct rec_planning_failed {
    enum plan_failure failure;
};
struct rec_revision {
    uint32_t revision;       /* of the plan, after the record */
    struct blob_ref result;  /* the plan's document; none: the steps stay as they are */
    enum modify_kind modify; /* PLAN_MODIFIED */
    bool ok;                 /* REPLAN_FINISHED */
};
struct rec_handoff {
    enum handoff_kind kind;
    uint32_t from_agent; /* registry index or AGENT_SUPERVISOR; the head's agent takes over */
};
struct rec_progress {
    uint64_t n;
    double percent;
    struct doc data; /* borrowed */
};
struct rec_retry {
    enum err_class error_class;
    msec delay_ms;
    bool asked; /* the agent of the record asked for the delay */
};
struct rec_waiting {
    enum review_kind review;
    enum err_class error_class;
    msec delay_ms;   /* 0 = no end */
    struct doc data; /* borrowed */
    uint32_t serial; /* of the review within the plan: 1, 2, ...; 0 = from an older journal */
};
/* Who decided. The daemon knows the address, and the credential's id; the rest is as the client
 * claims, and may be empty. */
struct actor {
    struct str user, host, via, address, id;
};
struct rec_decided {
    enum review_kind review;
    enum review_decision decision;
    uint32_t serial;        /* of the review that was open */
    uint32_t revision;      /* REVIEW_PLAN: of the plan that was shown */
    uint64_t digest;        /* of the request, to recognise its repetition; 0 = unknown */
    struct actor by;        /* borrowed */
    struct blob_ref result; /* edited parameters, given data or a plan's document */
    struct blob_ref shown;  /* what the person saw; the engine's, not the run's */
};
struct rec_gate {
    struct doc data; /* GATE_FAILED: what is missing; borrowed */
};
struct rec_fallback {
    enum fallback_action action;
    enum err_class error_class;
    msec delay_ms;
    bool asked; /* as in rec_retry */
};
struct rec_replan_started {
    enum err_class error_class;
    uint32_t revision; /* of the plan that failed */
    uint64_t n;        /* replans of the plan, with this one */
    msec delay_ms;     /* the cooldown before the replanner is asked */
};
struct rec_step_completed {
    enum step_status status; /* a final one */
    enum step_reason reason;
    enum err_class error_class;
    enum step_stop stop;
    bool doubt; /* it may have been done all the same */
    struct blob_ref result;
    uint32_t signal;       /* serial of the signal that completed it; 0 = none did */
    struct blob_ref state; /* on replay: the plan's state after it; the engine's, not the run's */
    msec duration_ms;
    struct uuid instance;
    uint64_t epoch;
};
struct rec_pause {
    enum pause_reason reason;
    msec delay_ms;     /* 0 = no end */
    uint32_t serial;   /* SIGNOFF, PLANNING: of the review */
    uint32_t revision; /* SIGNOFF: of the plan that is shown */
};
struct rec_synthesis_started { /* also of COMPENSATION_STARTED */
    enum plan_status status;   /* how the plan will end */
    enum plan_outcome outcome;
    enum plan_failure failure;
    msec delay_ms; /* how long it may take */
};
struct rec_text_delta {
    uint64_t n; /* 0: the text begins again */
};
struct rec_synthesis_finished {
    bool ok;
    struct blob_ref result;
};
struct rec_compensated {
    bool ok;               /* all of it is undone */
    uint32_t done, failed; /* compensations */
};
struct rec_plan_completed {
    enum plan_status status;
    enum plan_outcome outcome;
    enum plan_failure failure;
    msec duration_ms;
    struct blob_ref result;
};
struct rec_agent {
    struct uuid instance;
    uint64_t epoch;
    uint32_t capacity;
    uint32_t pid;
};
struct rec_turn_end {
    msec duration_ms;
};
struct rec_supervisor {
    uint32_t pid;
};
struct rec_damaged {
    uint64_t last_seq; /* of the events that are lost */
};
struct rec_rewound {
    uint64_t kept_seq, lost_seq; /* the last event that is as it was; that was acknowledged */
};
/* A condition that is true, or has no verdict. One that is false ends the step. */
struct rec_condition {
    bool failed; /* it could not be evaluated: the step fails */
};
struct rec_child {
    uint32_t round; /* from 0; only of a loop it is more */
};
struct rec_round {
    uint32_t n;             /* rounds that are over */
    struct blob_ref result; /* of the last one */
    msec delay_ms;
};
/* A turn of a step whose agent calls skills of others. */
struct rec_turn {
    uint32_t n;             /* 1, 2, ... */
    uint32_t calls;         /* STEP_CALLS: how many */
    struct blob_ref result; /* the transcript: this turn and all before it */
};
struct rec_signal {
    uint32_t serial;        /* of the signal within the plan: 1, 2, ... */
    uint64_t digest;        /* of its name and data, to recognise its repetition */
    struct str key;         /* clientKey of the sender; may be empty; borrowed */
    struct blob_ref result; /* its data, as the result of a step */
};
struct rec_checking {
    enum step_phase phase;
    struct blob_ref result; /* what is verified */
    msec delay_ms;
};

enum record_member {
    RECORD_none,
    RECORD_assigned,
    RECORD_timed,
    RECORD_planning_retry,
    RECORD_planning_failed,
    RECORD_revision,
    RECORD_handoff,
    RECORD_progress,
    RECORD_retry,
    RECORD_waiting,
    RECORD_decided,
    RECORD_gate,
    RECORD_fallback,
    RECORD_replan_started,
    RECORD_step_completed,
    RECORD_pause,
    RECORD_synthesis_started,
    RECORD_text_delta,
    RECORD_synthesis_finished,
    RECORD_plan_completed,
    RECORD_agent,
    RECORD_turn_end,
    RECORD_supervisor,
    RECORD_damaged,
    RECORD_rewound,
    RECORD_checking,
    RECORD_condition,
    RECORD_child,
    RECORD_round,
    RECORD_signal,
    RECORD_turn,
    RECORD_compensated,
};

struct record {
    enum record_type type;
    uint32_t step;    /* STEP_NONE for records about the plan */
    uint32_t attempt; /* 1-based */
    uint32_t agent;   /* registry index */
    uint64_t run;     /* handle; 0 for agent and system records */
    msec now;         /* CLOCK_MONOTONIC; re-based on replay */
    msec wall;
    struct usage usage; /* what the record adds to the sums of the run */
    struct str text;    /* error, reason, prompt, comment, progress text; borrowed */
    union {
        struct rec_step_completed step_completed;
        struct rec_assigned assigned;
        struct rec_timed timed;
        struct rec_planning_retry planning_retry;
        struct rec_planning_failed planning_failed;
        struct rec_revision revision;
        struct rec_handoff handoff;
        struct rec_progress progress;
        struct rec_retry retry;
        struct rec_waiting waiting;
        struct rec_decided decided;
        struct rec_gate gate;
        struct rec_fallback fallback;
        struct rec_replan_started replan_started;
        struct rec_pause pause;
        struct rec_synthesis_started synthesis_started;
        struct rec_text_delta text_delta;
        struct rec_synthesis_finished synthesis_finished;
        struct rec_plan_completed plan_completed;
        struct rec_agent agent;
        struct rec_turn_end turn_end;
        struct rec_supervisor supervisor;
        struct rec_damaged damaged;
        struct rec_rewound rewound;
        struct rec_checking checking;
        struct rec_condition condition;
        struct rec_child child;
        struct rec_round round;
        struct rec_signal signal;
        struct rec_turn turn;
        struct rec_compensated compensated;
    } as; /* through REC and REC_INIT only */
};

/* Which member of `as` a type has. */
enum {
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    RECORD_MEMBER_OF_##name = RECORD_##member,
#include "supervisor/core/run/record.def"
};
static inline enum record_member record_member(enum record_type t)
{
    static const uint8_t members[] = {
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    [REC_##name] = RECORD_##member,
#include "supervisor/core/run/record.def"
    };
    return (unsigned)t < REC_COUNT ? (enum record_member)members[t] : RECORD_none;
}

/*
 * A pointer to a member of `as`. In debug builds it asserts that the record's type has the member:
 *   REC(rec, retry)->delay_ms
 */
#define REC(rec, member)                                                                           \
    (&(DEBUG_ASSERT(record_member((rec)->type) == RECORD_##member), (rec))->as.member)
/*
 * The type and its member in an initialiser. It does not compile when the type has another member:
 *   (struct record){REC_INIT(STEP_RETRY, retry, .delay_ms = 5), .step = 3}
 */
#define REC_INIT(name, member, ...)                                                                \
    .type = (enum record_type)(REC_##name + 0 * RECORD_FITS(name, member)),                        \
    .as.member = {__VA_ARGS__}
#define RECORD_FITS(name, member)                                                                  \
    sizeof(char[(int)RECORD_MEMBER_OF_##name == (int)RECORD_##member ? 1 : -1])

const char *record_wire_type(enum record_type t);
enum record_type record_type_from_wire(struct str s); /* REC_COUNT when unknown */
bool record_is_public(enum record_type t);
enum record_about record_about(enum record_type t);
const char *
step_status_name(enum step_status s); /* as users see it: BACKOFF and UNKNOWN are "in_progress" */
const char *step_status_state_name(enum step_status s); /* "backoff", "unknown": for debug dumps */
const char *plan_status_name(enum plan_status s);
const char *plan_outcome_name(enum plan_outcome o);
const char *step_reason_name(enum step_reason r); /* "dependency_failed"; "" for NONE */
const char *plan_failure_name(enum plan_failure f);
const char *review_kind_name(enum review_kind k); /* "unknown_outcome", "approval", "input" */
const char *review_decision_name(enum review_decision d); /* "approve", "reject", "skip" */
const char *step_phase_name(enum step_phase p);           /* "execute", "gate", ... */
const char *pause_reason_name(enum pause_reason r);       /* "requested", "review", "signoff" */
const char *modify_kind_name(enum modify_kind k);         /* "skip_to_step", ... */
const char *handoff_kind_name(enum handoff_kind k); /* "plan_step", "agent_request", "handback",
                                                       "fallback" */
const char *fallback_action_name(enum fallback_action a); /* "wait_and_retry", "alternative_agent",
                                                             "search" */
const char *step_stop_name(enum step_stop s); /* "", "acknowledged", "killed", "gone", "fenced" */
/* "compensated", "compensation_failed" */
static inline const char *compensation_name(bool ok)
{
    return ok ? "compensated" : "compensation_failed";
}
/* Whether the record brings a new revision of the plan. Then run_revise() changes the run, not
 * run_apply(). */
bool record_revises(const struct record *rec);
bool step_is_final(enum step_status s);
bool plan_is_final(enum plan_status s);
/* The inverse of the names above, for replay; the _COUNT when there is none. */
enum step_status step_status_from_name(struct str s);
enum plan_status plan_status_from_name(struct str s);
enum plan_outcome plan_outcome_from_name(struct str s);
enum step_reason step_reason_from_name(struct str s);
enum review_kind review_kind_from_name(struct str s);
enum review_decision review_decision_from_name(struct str s);
enum step_phase step_phase_from_name(struct str s);
enum pause_reason pause_reason_from_name(struct str s);
enum modify_kind modify_kind_from_name(struct str s);
enum handoff_kind handoff_kind_from_name(struct str s);
enum fallback_action fallback_action_from_name(struct str s);
enum step_stop step_stop_from_name(struct str s);
#endif
