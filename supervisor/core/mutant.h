/*
 * Bugs that are put in on purpose, to see that a test turns red for each (tests/planted). In every
 * build that does not ask for them BUG(x) is a constant zero and compiles away.
 *
 *   -DBATON_BUG=7      number 7 is in
 *   -DBATON_PLANTED    the variable baton_bug says at run time which one is
 */
#ifndef CORE_BUG_H
#define CORE_BUG_H

enum planted_bug {
    BUG_NONE,
    BUG_NO_FENCING,           /* 1: any incarnation may answer for an attempt */
    BUG_LATE_AFTER_NEWER,     /* 2: a late result counts although a newer attempt has finished */
    BUG_UNDECLARED_CONTEXT,   /* 3: a step is given results that it did not declare */
    BUG_LOST_WAKE_UP,         /* 4: nobody looks who waits when an agent is back */
    BUG_TERMINAL_OVERWRITTEN, /* 5: a step that has ended can be skipped */
    BUG_CYCLIC_PLAN,          /* 6: a plan with a cycle is accepted */
    BUG_REPLAN_ADDS_AGENT,    /* 7: a replan may bring an agent that was not granted */
    BUG_UNSAFE_AGAIN,         /* 8: an unsafe step runs again after a timeout */
    BUG_PAUSE_IGNORED,        /* 9: a paused plan goes on */
    BUG_RESUME_FORGETS,       /* 10: what was parked stays parked */
    BUG_BUDGET_NOT_RESERVED,  /* 11: what others may cost is not counted */
    BUG_FALLBACKS_UNLIMITED,  /* 12: max_fallbacks is not looked at */
    BUG_REPLANS_FORGOTTEN,    /* 13: new work under an old name may be replanned anew */
    BUG_ONE_RETRY_MORE,       /* 14 */
    BUG_HANDOFF_CYCLE,        /* 15: a step can go back to who has had it */
    BUG_GATE_NEVER_CLOSED,    /* 16: a closed gate that cannot answer lets pass */
    BUG_GRACE_NOT_ARMED,      /* 17: who does not stop is waited for */
    BUG_KILLS_BYSTANDERS,     /* 18: a process with other work is ended, too */
    BUG_VERDICT_IGNORED,      /* 19: a verifier's no is a yes */
    BUG_SIGNOFF_SKIPPED,      /* 20 */
    BUG_RECOVERY_RESENDS,     /* 21: what was out at the restart is sent again */
    BUG_QUEUED_NOT_COUNTED,   /* 22: max_concurrency forgets the queued */
    BUG_RUN_BESIDE_APPLY,     /* 23: a run is changed by something else than a record */
    BUG_EXPECT_IGNORED,       /* 24: changes against an old revision are made */
    BUG_SUPERSEDED_GOES_ON,   /* 25: what a revision does without is not told to stop */
    BUG_IDLE_IGNORED,         /* 26: silence is no timeout */
    BUG_QUEUE_FOR_EVER,       /* 27: the queue timeout is not armed */
    BUG_LANE_FREED_EARLY,     /* 28: the lane of an attempt that timed out is used again */
    BUG_REVIEW_FOR_EVER,      /* 29: no decision is waited for for ever */
    BUG_SKIP_IS_FAILURE,      /* 30: what a person skips fails its dependents */
    BUG_UNKNOWN_NOT_ASKED,    /* 31: who comes back is not asked */
    BUG_BEGINS_CANCELLED,     /* 32: steps begin while the plan is called off */
    BUG_BEGINS_REPLANNED,     /* 33: steps begin while a replan is asked for */
    BUG_UNSAFE_FALLBACK,      /* 34: an unsafe step that ran has a fallback */
    BUG_STALE_PLANNER,        /* 35: the failure of an earlier question counts for this one */
    BUG_REPAIRS_UNLIMITED,    /* 36: what is no plan is sent back for ever */
    BUG_RECTIFY_UNLIMITED,    /* 37: steps are tried again as often as somebody wants */
    BUG_DRY_RUN_RUNS,         /* 38 */
    BUG_PLANNING_FREE,        /* 39: what a planner used in vain is not counted */
    BUG_ANSWER_AFTER_END,     /* 40: a plan that is called off, or out of time, is answered */
    BUG_ANSWERED_TWICE,       /* 41: an answer that was written is asked for again */
    BUG_JOB_GOES_ON,          /* 42: nobody is told that the plan is called off */
    BUG_END_FORGOTTEN,        /* 43: what failed a plan is forgotten when others are tried again */
    BUG_JOB_FORGOTTEN,        /* 44: after a restart nobody asks again */
    BUG_CHANGED_AT_JOB,       /* 45: a plan is paused while it is made or answered */
    BUG_SINGLE_ASKED,         /* 46: one result is not the answer */
    BUG_COUNT
};

#if defined(BATON_PLANTED)
extern int baton_bug;
#define BATON_BUG baton_bug
#elif !defined(BATON_BUG)
#define BATON_BUG 0
#endif
#define BUG(name) (BATON_BUG == BUG_##name)
#endif
