/*
 * Bugs that are put in on purpose, to see that a test turns red for each (tests/mutants). In every
 * build that does not ask for them MUTANT(x) is a constant zero and compiles away.
 *
 *   -DBATON_MUTANT=7      number 7 is in
 *   -DBATON_MUTANTS    the variable baton_mutant says at run time which one is
 */
#ifndef CORE_MUTANT_H
#define CORE_MUTANT_H

enum mutant {
    MUTANT_NONE,
    MUTANT_NO_FENCING,           /* 1: any incarnation may answer for an attempt */
    MUTANT_LATE_AFTER_NEWER,     /* 2: a late result counts although a newer attempt has finished */
    MUTANT_UNDECLARED_CONTEXT,   /* 3: a step is given results that it did not declare */
    MUTANT_LOST_WAKE_UP,         /* 4: nobody looks who waits when an agent is back */
    MUTANT_TERMINAL_OVERWRITTEN, /* 5: a step that has ended can be skipped */
    MUTANT_CYCLIC_PLAN,          /* 6: a plan with a cycle is accepted */
    MUTANT_REPLAN_ADDS_AGENT,    /* 7: a replan may bring an agent that was not granted */
    MUTANT_UNSAFE_AGAIN,         /* 8: an unsafe step runs again after a timeout */
    MUTANT_PAUSE_IGNORED,        /* 9: a paused plan goes on */
    MUTANT_RESUME_FORGETS,       /* 10: what was parked stays parked */
    MUTANT_BUDGET_NOT_RESERVED,  /* 11: what others may cost is not counted */
    MUTANT_FALLBACKS_UNLIMITED,  /* 12: max_fallbacks is not looked at */
    MUTANT_REPLANS_FORGOTTEN,    /* 13: new work under an old name may be replanned anew */
    MUTANT_ONE_RETRY_MORE,       /* 14 */
    MUTANT_HANDOFF_CYCLE,        /* 15: a step can go back to who has had it */
    MUTANT_GATE_NEVER_CLOSED,    /* 16: a closed gate that cannot answer lets pass */
    MUTANT_GRACE_NOT_ARMED,      /* 17: who does not stop is waited for */
    MUTANT_KILLS_BYSTANDERS,     /* 18: a process with other work is ended, too */
    MUTANT_VERDICT_IGNORED,      /* 19: a verifier's no is a yes */
    MUTANT_SIGNOFF_SKIPPED,      /* 20 */
    MUTANT_RECOVERY_RESENDS,     /* 21: what was out at the restart is sent again */
    MUTANT_QUEUED_NOT_COUNTED,   /* 22: max_concurrency forgets the queued */
    MUTANT_RUN_BESIDE_APPLY,     /* 23: a run is changed by something else than a record */
    MUTANT_EXPECT_IGNORED,       /* 24: changes against an old revision are made */
    MUTANT_SUPERSEDED_GOES_ON,   /* 25: what a revision does without is not told to stop */
    MUTANT_IDLE_IGNORED,         /* 26: silence is no timeout */
    MUTANT_QUEUE_FOR_EVER,       /* 27: the queue timeout is not armed */
    MUTANT_LANE_FREED_EARLY,     /* 28: the lane of an attempt that timed out is used again */
    MUTANT_REVIEW_FOR_EVER,      /* 29: no decision is waited for for ever */
    MUTANT_SKIP_IS_FAILURE,      /* 30: what a person skips fails its dependents */
    MUTANT_UNKNOWN_NOT_ASKED,    /* 31: who comes back is not asked */
    MUTANT_BEGINS_CANCELLED,     /* 32: steps begin while the plan is called off */
    MUTANT_BEGINS_REPLANNED,     /* 33: steps begin while a replan is asked for */
    MUTANT_UNSAFE_FALLBACK,      /* 34: an unsafe step that ran has a fallback */
    MUTANT_STALE_PLANNER,        /* 35: the failure of an earlier question counts for this one */
    MUTANT_REPAIRS_UNLIMITED,    /* 36: what is no plan is sent back for ever */
    MUTANT_RECTIFY_UNLIMITED,    /* 37: steps are tried again as often as somebody wants */
    MUTANT_DRY_RUN_RUNS,         /* 38 */
    MUTANT_PLANNING_FREE,        /* 39: what a planner used in vain is not counted */
    MUTANT_ANSWER_AFTER_END,     /* 40: a plan that is called off, or out of time, is answered */
    MUTANT_ANSWERED_TWICE,       /* 41: an answer that was written is asked for again */
    MUTANT_JOB_GOES_ON,          /* 42: nobody is told that the plan is called off */
    MUTANT_END_FORGOTTEN,  /* 43: what failed a plan is forgotten when others are tried again */
    MUTANT_JOB_FORGOTTEN,  /* 44: after a restart nobody asks again */
    MUTANT_CHANGED_AT_JOB, /* 45: a plan is paused while it is made or answered */
    MUTANT_SINGLE_ASKED,   /* 46: one result is not the answer */
    MUTANT_COUNT
};

#if defined(BATON_MUTANTS)
extern int baton_mutant;
#define BATON_MUTANT baton_mutant
#elif !defined(BATON_MUTANT)
#define BATON_MUTANT 0
#endif
#define MUTANT(name) (BATON_MUTANT == MUTANT_##name)
#endif
