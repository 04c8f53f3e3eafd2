/* A run: the mutable state of one plan, rebuilt from its records alone. It is one block without
 * pointers, so it can be copied, compared, hashed and dumped. Only run_apply() and run_revise()
 * change it. Pure. */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/record.h"

enum {
    RUN_END_TEXT = 96,    /* bytes that a run keeps of the sentence about its end */
    STEP_OWN_TEXT = 96,   /* and of the error of a step that a search agent got */
    RUN_SEARCHES_MAX = 64 /* such steps of a plan at a time: a search beyond them is not tried */
};

enum {
    STEP_DID_BEGIN = 1,   /* plan_step_started was emitted */
    STEP_DID_GATE = 2,    /* the gate passed, or failed open */
    STEP_DID_APPROVE = 4, /* a person approved an attempt */
    STEP_DID_WAIT = 8,    /* fallbacks that were used: each at most once a step */
    STEP_DID_SEARCH = 16,
    STEP_DID_HANDOFF = 32, /* the plan's first handoff to the step's agent was emitted */
    STEP_PAUSE_ASKED = 64, /* BACKOFF: its agent asked for the pause */
    STEP_MUST_ASK = 128,   /* a person approved it for another agent than the one that has it now */
};

struct run_step {
    uint8_t status;       /* enum step_status */
    uint8_t reason;       /* enum step_reason */
    uint8_t error_class;  /* enum err_class; of the last failure while it is open */
    uint8_t review;       /* enum review_kind, while WAITING */
    uint16_t attempt;     /* number of the attempt; 0 = none yet */
    uint16_t granted;     /* attempts that do not count against max_retries: after approvals,
                             fallbacks, handoffs */
    uint32_t deps_open;   /* dependencies that are not settled */
    uint32_t deps_failed; /* settled as failed, or skipped because of a failure */
    uint32_t last_dep;    /* the dependency that completed last; STEP_NONE = none did */
    uint32_t agent;       /* registry index of the executing agent: the plan's, until a handoff or a
                             fallback changes it */
    uint8_t phase;        /* enum step_phase: of the attempt or of the question */
    uint8_t did;          /* STEP_DID_* */
    uint8_t hops;         /* agent-initiated handoffs */
    uint8_t replans;
    uint16_t ask;        /* serial number of the question (CHECKING); never decreases */
    uint8_t alternative; /* fallback agents used */
    uint8_t doubt;       /* 1: it may have been done, for the plan before or, once it is over, by an
                            attempt without an answer; effects are unsafe */
    uint64_t visited;    /* set of indexes into plan.agents that have had the step */
    uint64_t epoch;      /* of the instance that has the attempt */
    struct uuid instance;
    struct uuid process; /* that got the attempt; nil = it did not name itself */
    msec started;        /* when the step began, monotonic; 0 = not yet */
    msec deadline; /* of the attempt, the backoff, the unknown outcome, the review or the question;
                      MSEC_NEVER = none */
    msec limit;    /* of the whole step; MSEC_NEVER = none, or stopped while a person decides */
    msec limit_left;  /* of the limit, while it is stopped; 0 = the next attempt has all of it */
    msec attempt_end; /* of the time of the attempt, also while its outcome is unknown; MSEC_NEVER =
                         none */
    struct blob_ref result; /* in phase VERIFY: the result that is verified */
    uint64_t transcript;    /* of the turns: a blob's id, 0 = none; kept over retries and
                               handoffs */
    uint64_t paid[2];       /* bit per attempt: its usage is in the run's */
    uint32_t review_serial; /* of its last review; 0 = none yet */
    uint32_t transcript_len;
    uint32_t deps_skipped; /* settled as skipped by a condition */
    uint8_t adopted;       /* 1: the instance said that it works on the attempt */
    uint8_t placeless;     /* 1: it takes no place within max_concurrency: it only waits */
    uint8_t judged;        /* 1: its condition is true; 2: it could not be evaluated */
    uint8_t rounded;       /* 1: the next child plan is another round of this attempt */
    uint32_t round;        /* of a loop: the round that is under way or next, from 0 */
    uint32_t turns;        /* turns in which its agent called others */
    uint32_t turned;       /* the attempt that made the last calls; 0 = none did */
    uint32_t ended;        /* of the steps that began the n-th to end; 0 = not yet */
};

/* Of a step that a search agent got: the beginning of its own error. Free once the step is over. */
struct run_own_text {
    uint32_t step; /* STEP_NONE = free */
    uint32_t n;
    char text[STEP_OWN_TEXT];
};

/* How a plan ends that has something to do after its steps, and what that and replanning spent. */
struct run_phases {
    struct usage replanning, synthesis;
    struct blob_ref answer;                       /* the synthesizer's; id 0 = none */
    uint32_t end_step;                            /* how the plan will end: as in PLAN_COMPLETED */
    uint8_t end_status, end_outcome, end_failure; /* 0 = not decided */
    uint8_t end_text_n;
    char end_text[RUN_END_TEXT];
};

/* Behind the steps: its struct run_phases, if its plan may need one; own_texts struct run_own_text,
 * for the steps of a plan with a search agent. */
struct run {
    uint32_t n_steps;
    uint8_t status;  /* enum plan_status */
    uint8_t outcome; /* enum plan_outcome */
    uint8_t cancelling;
    uint8_t paused;                                 /* bit per enum pause_reason */
    uint32_t open;                                  /* steps not final */
    uint32_t ready;                                 /* READY */
    uint32_t active;                                /* begun and not over */
    uint32_t waiting;                               /* WAITING */
    uint32_t completed, failed, skipped, cancelled; /* superseded steps not counted */
    uint32_t superseded;
    uint32_t revision;   /* 1, plus 1 for every modification, with or without a new plan */
    uint32_t reviews;    /* how many have been opened: the serial of the last one */
    uint32_t replans;    /* replans that have begun */
    uint32_t replanning; /* steps in phase REPLAN */
    uint32_t fallbacks;
    uint32_t current;    /* currentStepIndex: the last step that started */
    uint32_t last_agent; /* the agent of the last attempt; AGENT_SUPERVISOR at first */
    uint32_t last_done;  /* the last step that completed; STEP_NONE at first */
    uint32_t handoffs;
    uint64_t plan_seq; /* plan_seq of the last public record applied */
    msec started;
    msec deadline;               /* of the plan */
    msec review_deadline;        /* of its open review as a whole; MSEC_NEVER = none */
    uint32_t plan_review;        /* serial of its last review as a whole; 0 = none yet */
    uint32_t signed_off;         /* the revision that a person approved; 0 = none */
    struct usage usage;          /* of the whole plan */
    struct usage planning_usage; /* the part that planning spent */
    uint32_t texts;              /* pieces of the answer that were emitted */
    uint8_t job;                 /* enum job_kind: the job that the plan waits for */
    uint8_t asked;               /* requests to the planner since PLANNING_STARTED */
    uint8_t rectified;           /* rounds of failed steps that the synthesizer retried */
    uint8_t answered;            /* the synthesis is over: only PLAN_COMPLETED may follow */
    uint32_t sleeping;           /* SLEEPING */
    uint32_t placeless;          /* of the active ones: max_concurrency does not count them */
    uint32_t signals;            /* how many came: the serial of the last one */
    uint32_t kept;               /* signals that no step has taken */
    uint32_t ends;               /* steps that began and have ended */
    uint16_t undone;             /* 1: what it did is undone; 2: not all of it */
    uint8_t phased;              /* 1: it has a struct run_phases */
    uint8_t own_texts;           /* places behind the steps */
    struct run_step steps[];
};

size_t run_size(const struct plan *plan);
/* Of a run that is there. */
size_t run_bytes(const struct run *run);
/* mem has run_size(plan) bytes. All steps are pending, or ready when they have no
 * dependencies. */
struct run *run_init(void *mem, const struct plan *plan);
/* Applies one record, live (from core_handle) or on replay (from the journal). A record that does
 * not fit the state returns false and changes nothing. On replay the journal is damaged; live it is
 * a programmer error, and the caller asserts. */
bool run_apply(struct run *run, const struct plan *plan, const struct record *rec);
/* The run of the next revision, in mem (run_size(to) bytes). Steps keep their indexes, and
 * new ones follow them. Steps that `to` marks as superseded must be over. Steps that have not begun
 * may have other dependencies. rec is the record that brings the revision. NULL when record, plans
 * and run do not fit together. */
struct run *run_revise(void *mem, const struct plan *to, const struct run *run,
                       const struct plan *from, const struct record *rec);
/* Checks all that must hold between two events. For tests and debug builds. On false *ret_why is
 * the reason. */
bool run_invariant(const struct run *run, const struct plan *plan, const char **ret_why);
/* Whether the step may become ready: all its dependencies are settled in its favour. */
bool run_step_can_start(const struct run *run, const struct plan *plan, uint32_t step);
/* All zero, and end_step STEP_NONE, when the plan needs none. */
const struct run_phases *run_phases(const struct run *run);
/* Of its turns; id 0: there were none. */
struct blob_ref run_transcript(const struct run_step *step);
/* Whether another step may go to a search agent: RUN_SEARCHES_MAX of them keep their own error. */
bool run_may_search(const struct run *run);
/* The beginning of the step's own error before a search agent got it; empty when there is none. */
struct str run_own_text(const struct run *run, uint32_t step);
/* Whether a person still has to approve the plan as it is now: it wants a sign-off, and this
 * revision has none. */
/* Whether the usage of the attempt is in the run's already. */
bool run_attempt_is_paid(const struct run_step *step, uint32_t attempt);
bool run_needs_signoff(const struct run *run, const struct plan *plan);
/* Whether a child plan does the calls of the current attempt. */
bool run_step_calls(const struct run_step *step);
/* Whether there may be something to undo of the step: it completed here and has `compensate`, or
 * child plans of it did something. */
bool run_step_undoes(const struct run *run, const struct plan *plan, uint32_t step);
/* The steps of which there may be something to undo, the one that ended last first. ret has room
 * for all steps; returns how many. */
uint32_t run_undo_order(const struct run *run, const struct plan *plan, uint32_t *ret);
/* Whether the step has unsafe effects that it may have had, though it has not completed: an attempt
 * ended without an answer, or with one that did not count. Of one that is under way it is not said.
 */
bool run_may_be_done(const struct run *run, const struct plan *plan, uint32_t step);
/* FNV-1a over the block: equal states have equal hashes. */
uint64_t run_hash(const struct run *run);
#endif
