/* Events: the input of the core. Plain values; texts and documents are borrowed for the call. */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/record.h"

enum core_event_type {
#define EVENT(name, member) CORE_##name,
#include "supervisor/core/sched/core_event.def"
#undef EVENT
    CORE_EVENT_TYPE_COUNT
};

enum step_outcome {
    STEP_OUTCOME_COMPLETED,
    STEP_OUTCOME_FAILED,
    STEP_OUTCOME_NEEDS_INPUT,
    STEP_OUTCOME_NEEDS_APPROVAL,
    STEP_OUTCOME_HANDOFF, /* text: why */
    STEP_OUTCOME_CALLS,   /* result: the transcript with these calls in it */
    STEP_OUTCOME_COUNT
};

#define LANE_NONE UINT32_MAX

/* A step that need not run: an earlier run's result is reused (M007, C32). With `doubt` it has no
 * result, and may have been done all the same: a person is asked before it begins. */
struct core_reuse {
    uint32_t step;
    bool doubt;
    struct blob_ref result;
};

/* A plan that replaces the run's. */
struct core_new_plan {
    const struct plan *plan; /* borrowed until CMD_RUN_DONE or the next CMD_REVISED */
    void *block;             /* core_run_size(plan) bytes, the caller's, for as long */
    struct blob_ref document;
};

/* ---- what a type of event has beside the common fields ---- */

struct core_ev_submit {
    const struct plan *plan;        /* borrowed until CMD_RUN_DONE or CMD_REVISED */
    void *block;                    /* core_run_size(plan) bytes, the caller's, for as long */
    const struct core_reuse *reuse; /* dependencies come first */
    uint32_t n_reuse;
    struct usage planning; /* the cost of making the plan */
};
struct core_ev_recover {
    const struct plan *plan; /* as in core_ev_submit */
    void *block;             /* holds the run */
};
struct core_ev_modify {
    enum modify_kind kind; /* all but INSERT and REPLACE */
    uint32_t expect;       /* what core_revision() must return; 0 = anything */
    const uint32_t *steps;
    uint32_t n_steps;
};
struct core_ev_revise {
    enum modify_kind kind; /* INSERT or REPLACE */
    uint32_t expect;       /* what core_revision() must return; 0 = anything */
    struct core_new_plan next;
};
struct core_ev_registration {
    uint32_t agent;
    uint32_t capacity;
    uint32_t pid;
    bool spawned;
    struct uuid process; /* nil: the agent does not name its process */
};
struct core_ev_result {
    enum step_outcome outcome;
    enum err_class error_class;
    bool retryable_given; /* the agent set `retryable` */
    bool retryable;
    bool passed;    /* GATE and VERIFY */
    bool invalid;   /* REPLAN, FAILED: there was a plan, and the plan check rejected it */
    uint32_t agent; /* HANDOFF: the agent that takes over; AGENT_NONE = unknown */
    uint32_t calls; /* CALLS: how many */
    msec retry_after_ms;
    struct blob_ref result; /* FAILED: the attempt's details, which the core does not look at */
    struct usage usage;
    struct doc data;
    struct core_new_plan next; /* REPLAN, COMPLETED */
};
struct core_ev_lost {
    bool sent; /* the request had left, so the instance may have begun */
};
struct core_ev_state {
    bool running;
    bool never; /* not running, and the instance says that it never got the attempt; otherwise its
                   outcome is unknown */
};
struct core_ev_progress {
    uint64_t n;
    double percent;
    struct doc data;
};
struct core_ev_decide {
    enum review_decision decision;
    uint64_t digest; /* of the request; 0 = none */
    struct actor by;
    struct blob_ref result;    /* for a step: edited parameters or given data */
    struct blob_ref shown;     /* what the person saw */
    struct core_new_plan next; /* for failed planning, APPROVE: the plan; NULL: plan once more */
};
enum condition_verdict {
    CONDITION_FALSE,
    CONDITION_TRUE,
    CONDITION_FAILED,
    CONDITION_VERDICT_COUNT
};
struct core_ev_condition {
    enum condition_verdict verdict; /* FAILED: it could not be evaluated */
};
enum child_outcome {
    CHILD_PROGRESS, /* it goes on */
    CHILD_COMPLETED,
    CHILD_AGAIN, /* it completed, and the condition of the loop asks for another round */
    CHILD_FAILED,
    CHILD_OUTCOME_COUNT
};
struct core_ev_child {
    enum child_outcome outcome;
    uint32_t round;             /* as in the command */
    enum err_class error_class; /* FAILED */
    struct blob_ref result;     /* COMPLETED, AGAIN */
    struct usage usage;
    uint64_t n;      /* PROGRESS: of the step's progress records */
    double percent;  /* PROGRESS */
    struct doc data; /* PROGRESS */
};
struct core_ev_signal {
    uint32_t serial; /* of one that was kept; 0: it is new */
    uint64_t digest;
    struct str key;         /* of the sender */
    struct blob_ref result; /* its data, as the result of a step */
};
struct core_ev_probed {
    bool ok;
};
struct core_ev_planned {
    struct core_new_plan next;
    struct usage usage;
};
struct core_ev_job_failed {
    enum job_kind job;
    bool invalid; /* there was an answer, but no valid plan */
    uint64_t n;   /* errors of that answer */
    struct blob_ref result;
    struct usage usage;
};
struct core_ev_job_text {
    bool restarts; /* another attempt begins the text again; the earlier pieces are void */
};
struct core_ev_synthesized {
    struct blob_ref result;
    struct usage usage;
};
struct core_ev_compensated {
    bool ok; /* all is undone */
    uint32_t done, failed;
    struct usage usage;
};
struct core_ev_stalled {
    msec delay_ms;
};
struct core_ev_process {
    uint32_t agent;
    uint32_t pid;
};

enum core_ev_member {
    CORE_EV_none,
    CORE_EV_submit,
    CORE_EV_recover,
    CORE_EV_modify,
    CORE_EV_revise,
    CORE_EV_registration,
    CORE_EV_result,
    CORE_EV_lost,
    CORE_EV_state,
    CORE_EV_progress,
    CORE_EV_decide,
    CORE_EV_probed,
    CORE_EV_planned,
    CORE_EV_job_failed,
    CORE_EV_job_text,
    CORE_EV_synthesized,
    CORE_EV_process,
    CORE_EV_stalled,
    CORE_EV_condition,
    CORE_EV_child,
    CORE_EV_signal,
    CORE_EV_compensated,
};

struct core_event {
    enum core_event_type type;
    uint32_t step;
    uint32_t attempt; /* for a question its number, for a decision the serial of its review */
    enum step_phase phase;
    uint64_t run;
    msec now;
    msec wall;
    uint32_t slot;
    uint32_t lane; /* LANE_NONE when no lane is concerned */
    uint64_t epoch;
    struct uuid instance; /* nil: slot and lane identify the sender */
    struct str text;      /* error, reason, comment */
    union {
        struct core_ev_result result;
        struct core_ev_submit submit;
        struct core_ev_recover recover;
        struct core_ev_modify modify;
        struct core_ev_revise revise;
        struct core_ev_registration registration;
        struct core_ev_lost lost;
        struct core_ev_state state;
        struct core_ev_progress progress;
        struct core_ev_decide decide;
        struct core_ev_probed probed;
        struct core_ev_planned planned;
        struct core_ev_job_failed job_failed;
        struct core_ev_job_text job_text;
        struct core_ev_synthesized synthesized;
        struct core_ev_process process;
        struct core_ev_stalled stalled;
        struct core_ev_condition condition;
        struct core_ev_child child;
        struct core_ev_signal signal;
        struct core_ev_compensated compensated;
    } as; /* through CORE_EV and CORE_EV_INIT only */
};

/* Which member of `as` a type has. */
enum {
#define EVENT(name, member) CORE_EV_MEMBER_OF_##name = CORE_EV_##member,
#include "supervisor/core/sched/core_event.def"
#undef EVENT
};
static inline enum core_ev_member core_ev_member(enum core_event_type t)
{
    static const uint8_t members[] = {
#define EVENT(name, member) [CORE_##name] = CORE_EV_##member,
#include "supervisor/core/sched/core_event.def"
#undef EVENT
    };
    return (unsigned)t < CORE_EVENT_TYPE_COUNT ? (enum core_ev_member)members[t] : CORE_EV_none;
}

/*
 * A pointer to a member of `as`. In debug builds it asserts that the event's type has the member:
 *   CORE_EV(ev, lost)->sent
 */
#define CORE_EV(ev, member)                                                                        \
    (&(DEBUG_ASSERT(core_ev_member((ev)->type) == CORE_EV_##member), (ev))->as.member)
/*
 * The type and its member in an initialiser. It does not compile when the type has another member:
 *   (struct core_event){CORE_EV_INIT(LOST, lost, .sent = true), .run = run}
 */
#define CORE_EV_INIT(name, member, ...)                                                            \
    .type = (enum core_event_type)(CORE_##name + 0 * CORE_EV_FITS(name, member)),                  \
    .as.member = {__VA_ARGS__}
#define CORE_EV_FITS(name, member)                                                                 \
    sizeof(char[(int)CORE_EV_MEMBER_OF_##name == (int)CORE_EV_##member ? 1 : -1])
#endif
