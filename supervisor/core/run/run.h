/*
 * A run: the mutable state of one plan, rebuilt from its records alone. No pointers, one block, so
 * it can be copied, compared, hashed and dumped. Only run_apply() changes it. Pure.
 */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/record.h"

enum {
    RUN_END_TEXT = 96, /* what of the sentence about its end a run keeps */
};

enum {
    STEP_DID_BEGIN = 1,   /* plan_step_started was said */
    STEP_DID_GATE = 2,    /* the gate let it pass, or could not say and is open */
    STEP_DID_APPROVE = 4, /* a person approved its beginning */
    STEP_DID_WAIT = 8,    /* the fallbacks that were used: each once per step */
    STEP_DID_SEARCH = 16,
    STEP_DID_HANDOFF = 32, /* the first handoff of the plan to its agent was said */
};

struct run_step {
    uint8_t status;       /* enum step_status */
    uint8_t reason;       /* enum step_reason */
    uint8_t error_class;  /* enum err_class; of the last failure while it is open */
    uint8_t review;       /* enum review_kind, while WAITING */
    uint16_t attempt;     /* of executing it; 0 = none yet */
    uint16_t granted;     /* attempts that do not count against max_retries: after approvals,
                             fallbacks, handoffs */
    uint32_t deps_open;   /* dependencies that are not settled */
    uint32_t deps_failed; /* settled as failed, or skipped because of a failure */
    uint32_t last_dep;    /* the dependency that completed last; STEP_NONE = none did */
    uint32_t agent;       /* registry index of who executes it: the plan's, until a handoff or a
                             fallback gives it to another */
    uint8_t phase;        /* enum step_phase: of the attempt, or what is being asked */
    uint8_t did;          /* STEP_DID_* */
    uint8_t hops;         /* agent-initiated handoffs */
    uint8_t replans;
    uint16_t ask;         /* serial number of what is asked about it (CHECKING); never runs back */
    uint16_t alternative; /* fallback agents used */
    uint64_t visited;     /* set of indexes into plan.agents that have had it */
    uint64_t epoch;       /* of the instance that has the attempt */
    struct uuid instance;
    msec started;  /* when it began, monotonic; 0 = not yet */
    msec deadline; /* of the attempt, the backoff, the unknown outcome, the review or the question;
                      MSEC_NEVER = none */
    msec limit;    /* of the whole step; MSEC_NEVER = none, or not counting */
    struct blob_ref result; /* while VERIFY is open: what is being verified */
};

struct run {
    uint32_t n_steps;
    uint8_t status;  /* enum plan_status */
    uint8_t outcome; /* enum plan_outcome */
    uint8_t cancelling;
    uint8_t paused;   /* bit per enum pause_reason */
    uint32_t open;    /* steps not final */
    uint32_t ready;   /* READY */
    uint32_t active;  /* IN_PROGRESS, BACKOFF, UNKNOWN, WAITING: what max_concurrency counts */
    uint32_t waiting; /* WAITING */
    uint32_t completed, failed, skipped, cancelled; /* superseded steps not counted */
    uint32_t superseded;
    uint32_t revision; /* 1, and 1 more with every modification, whether it brought a plan or not */
    uint32_t unused;
    uint32_t replans;    /* begun */
    uint32_t replanning; /* steps in phase REPLAN */
    uint32_t fallbacks;
    uint32_t current;    /* currentStepIndex: the step started last */
    uint32_t last_agent; /* who has, or had, the last attempt; AGENT_SUPERVISOR at first */
    uint32_t last_done;  /* step completed last; STEP_NONE at first */
    uint32_t handoffs;
    uint64_t plan_seq; /* of the last public record applied */
    msec started;
    msec deadline;             /* of the plan */
    struct usage usage;        /* all of it */
    struct usage replan_usage; /* what of it was spent on replanning */
    struct usage planning_usage, synthesis_usage;
    struct blob_ref answer; /* of the synthesizer; id 0 = none */
    uint32_t end_step;      /* how the plan will end once it has its answer: as in PLAN_COMPLETED */
    uint32_t texts;         /* pieces of the answer that were told */
    uint8_t job;            /* enum job_kind: what the plan as a whole waits for */
    uint8_t asked;          /* times that the planner was asked since PLANNING_STARTED */
    uint8_t rectified;      /* times that failed steps were tried again for the answer's sake */
    uint8_t answered; /* whether there is an answer is settled: only PLAN_COMPLETED may follow */
    uint8_t end_status, end_outcome, end_failure; /* 0 = nothing is decided */
    uint8_t end_text_n;
    char end_text[RUN_END_TEXT];
    struct run_step steps[];
};

size_t run_size(uint32_t n_steps);
/* mem: run_size(plan->n_steps) bytes. All steps pending or (no dependencies) ready. */
struct run *run_init(void *mem, const struct plan *plan);
/*
 * Applies one fact. Records come from core_handle (live) or the journal (replay): a record that
 * does not fit the state (damaged journal) returns false and changes nothing; live, that is a
 * programmer error and asserted by the caller.
 */
bool run_apply(struct run *run, const struct plan *plan, const struct record *rec);
/*
 * The run of the next revision, in mem (run_size(to->n_steps) bytes), out of the run of the one
 * before: rows keep their indexes, new ones stand behind them, rows that `to` marks as superseded
 * must be over, rows that have not begun may have other dependencies. rec is the PLAN_MODIFIED or
 * REPLAN_FINISHED that brings it. NULL when record, plans and run do not fit.
 */
struct run *run_revise(void *mem, const struct plan *to, const struct run *run,
                       const struct plan *from, const struct record *rec);
/* Everything that must hold between two events; for tests and debug builds. On false *ret_why says
 * what. */
bool run_invariant(const struct run *run, const struct plan *plan, const char **ret_why);
/* Whether the step may become ready: all dependencies settled in its favour. */
bool run_step_can_start(const struct run *run, const struct plan *plan, uint32_t step);
/* FNV-1a over the block: equal states have equal hashes. */
uint64_t run_hash(const struct run *run);
#endif
