/*
 * Counts what occurred over all seeds of a batch. A fault or state that never occurred was not
 * tested, so such a batch fails.
 */
#ifndef TESTS_SIM_SOMETIMES_H
#define TESTS_SIM_SOMETIMES_H

#include "supervisor/core/sched/core.h"
#include "tests/unit/core/run/plan_life.h"

/* Faults, and actions of people. Each seed draws a subset and a rate for each. */
enum fault {
    FAULT_FAILURE,       /* the agent reports a failure */
    FAULT_NEEDS_PERSON,  /* the agent asks for an approval or for input */
    FAULT_HANDOFF,       /* the agent gives the step to another one */
    FAULT_VERDICT_NO,    /* a gate or a verifier rejects */
    FAULT_CHECK_ERROR,   /* a gate, a verifier or the replanner cannot answer */
    FAULT_BAD_REVISION,  /* the replanner's plan, or a person's, does not fit */
    FAULT_UNSENT,        /* the request was not sent */
    FAULT_REQUEST_LOST,  /* it was sent and did not arrive */
    FAULT_REPLY_LOST,    /* it ran and the answer was lost */
    FAULT_DELAY,         /* the request is long under way */
    FAULT_REORDER,       /* a message is overtaken by later ones */
    FAULT_LATE,          /* the answer comes after the timeout */
    FAULT_SLOW,          /* the work takes long and reports progress */
    FAULT_HANG,          /* the answer does not come before the faults stop */
    FAULT_DUPLICATE,     /* the answer comes twice */
    FAULT_LIE,           /* an instance answers for what it does not have */
    FAULT_CRASH,         /* an instance dies; another takes its place */
    FAULT_CRASH_UNSEEN,  /* the same without a notice: the lease has to end */
    FAULT_SILENCE,       /* no heartbeats for a while; it works on */
    FAULT_PARTITION,     /* nothing passes between it and the daemon for a while */
    FAULT_REREGISTER,    /* an instance registers again under its id */
    FAULT_STOLEN_ID,     /* an agent registers under the id of another one's instance */
    FAULT_SAME_NAME,     /* a new process registers under the id of the one before it */
    FAULT_LANE_DOWN,     /* and up again */
    FAULT_DRAIN,         /* an instance takes no more work */
    FAULT_QUERY_LOST,    /* the answer to a query is lost */
    FAULT_PROBE_LOST,    /* a ping is not answered */
    FAULT_FLOOD,         /* progress without end */
    FAULT_STALE,         /* an event of an incarnation that was replaced */
    FAULT_CANCEL,        /* a user cancels a plan */
    FAULT_PAUSE,         /* a user pauses a plan */
    FAULT_MODIFY,        /* a user skips or cancels steps, or writes */
    FAULT_REVISE,        /* a user inserts or replaces steps */
    FAULT_NONSENSE,      /* a user sends an invalid request */
    FAULT_UNDECIDED,     /* no person decides the reviews */
    FAULT_RESTART,       /* the daemon is stopped between two turns */
    FAULT_DOWN,          /* and stays away for a while */
    FAULT_BEFORE_COMMIT, /* the daemon dies: the turns that were not synced never happened */
    FAULT_AFTER_COMMIT,  /* the daemon dies: they are journaled, their actions were not done */
    FAULT_DISK_FULL,     /* the commit fails: the daemon stops until there is room */
    FAULT_ABSENT,        /* an agent has no instance at first */
    FAULT_UNPLANNED,     /* the planner fails */
    FAULT_BAD_PLAN,      /* the planner returns no plan */
    FAULT_NO_ANSWER,     /* the synthesizer fails */
    FAULT_RECTIFY,       /* the synthesizer wants steps to run again first */
    FAULT_JOB_LATE,      /* an answer arrives for a job that has ended */
    FAULT_LATE_COMMIT,   /* its outcome is not known for a while; then it is stored */
    FAULT_BUSY,          /* other supervisors have places of an instance for a while */
    FAULT_NEST,          /* a step's child plan is a plan of the simulation */
    FAULT_COUNT
};

/* What occurs between parents and children. */
enum nest_case {
    NEST_MADE_AGAIN, /* a restart asks for a child that is under way */
    NEST_SAID_AGAIN, /* and for one that has ended: its report was lost */
    NEST_STOPPED,    /* a child gets the cancel of its parent */
    NEST_UNMADE,     /* one that has not begun */
    NEST_ORPHANED,   /* a restart cancels a child that nobody waits for */
    NEST_PAUSED,
    NEST_RESUMED,
    NEST_TOO_DEEP,
    NEST_WITHOUT_ROOM, /* it waits until another child ends */
    NEST_PAID,         /* its usage is in its parent's */
    NEST_PAID_LATE,    /* although nobody waited for it any more */
    NEST_CASE_COUNT
};
enum { NEST_KINDS = CHILD_OF_CALLS + 1, NEST_DEPTHS = 4 /* 1 to 3 */ };

struct sometimes {
    uint64_t faults[FAULT_COUNT];
    uint64_t moves[STEP_STATUS_COUNT][STEP_STATUS_COUNT];
    uint64_t rejects[CORE_REJECT_COUNT];
    uint64_t ends[PLAN_STATUS_COUNT][PLAN_OUTCOME_COUNT];
    uint64_t records[REC_COUNT];
    uint64_t commands[CORE_CMD_TYPE_COUNT];
    uint64_t events[CORE_EVENT_TYPE_COUNT];
    uint64_t waits[WAIT_KIND_COUNT];
    uint64_t reviews[REVIEW_KIND_COUNT][DECISION_COUNT];
    uint64_t phases[STEP_PHASE_COUNT]; /* dispatched */
    uint64_t pauses[PAUSE_REASON_COUNT];
    uint64_t modifies[MODIFY_KIND_COUNT];
    uint64_t handoffs[HANDOFF_KIND_COUNT];
    uint64_t fallbacks[FALLBACK_ACTION_COUNT];
    uint64_t stops[STEP_STOP_COUNT];
    uint64_t reasons[STEP_REASON_COUNT];
    uint64_t failures[PLAN_FAILURE_COUNT];
    uint64_t policies[ON_FAILURE_COUNT];
    uint64_t types[STEP_TYPE_COUNT]; /* completed */
    uint64_t lives[LIFE_COUNT][LIFE_COUNT];
    uint64_t on_invalid[ON_INVALID_COUNT];   /* planning came to nothing */
    uint64_t nests[NEST_KINDS][NEST_DEPTHS]; /* ended */
    uint64_t nest_cases[NEST_CASE_COUNT];
    uint64_t late, revised, refused, granted_later;
    uint64_t seeds, plans, steps, turns, executions;
    uint64_t seed;      /* being run */
    uint64_t longest;   /* ms that a plan went on after the faults stopped */
    uint64_t overtaken; /* most turns that one plan waited for another */
};
extern struct sometimes *sometimes;

const char *sim_fault_name(enum fault f);
/* Returns the number of things that never occurred, and prints each to stderr; with counts, also
 * how often the others did. */
int sim_check_sometimes(bool counts);
void sim_print_sometimes(void);
#endif
