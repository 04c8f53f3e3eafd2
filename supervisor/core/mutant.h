/*
 * The mutants: defects that a test build puts into the core, and the schedules, on purpose. Each
 * must turn a test red (tests/mutants). In other builds MUTANT(x) is a constant zero and compiles
 * away.
 *
 *   -DBATON_MUTANT=7   builds with mutant 7
 *   -DBATON_MUTANTS    the variable baton_mutant chooses one at run time
 */
#ifndef CORE_MUTANT_H
#define CORE_MUTANT_H

enum mutant {
    MUTANT_NONE,
    MUTANT_NO_FENCING,           /* 1: any incarnation of an instance may answer */
    MUTANT_LATE_AFTER_NEWER,     /* 2: a late result counts after a newer attempt finished */
    MUTANT_UNDECLARED_CONTEXT,   /* 3: a step gets results of steps that it does not depend on */
    MUTANT_LOST_WAKE_UP,         /* 4: a returned agent does not wake the steps that wait */
    MUTANT_TERMINAL_OVERWRITTEN, /* 5: the core skips a step that has ended */
    MUTANT_CYCLIC_PLAN,          /* 6: the plan check accepts a cycle */
    MUTANT_REPLAN_ADDS_AGENT,    /* 7: a replan uses an agent that the plan was not granted */
    MUTANT_UNSAFE_AGAIN,         /* 8: an unsafe step runs again after a timeout */
    MUTANT_PAUSE_IGNORED,        /* 9: a paused plan starts steps */
    MUTANT_RESUME_FORGETS,       /* 10: a resumed plan leaves its parked steps parked */
    MUTANT_BUDGET_NOT_RESERVED,  /* 11: estimates of running steps do not count as spent */
    MUTANT_FALLBACKS_UNLIMITED,  /* 12: a run may use more fallbacks than max_fallbacks */
    MUTANT_REPLANS_FORGOTTEN,    /* 13: a new step forgets the replans of its id */
    MUTANT_ONE_RETRY_MORE,       /* 14: a step has one retry more than max_retries */
    MUTANT_HANDOFF_CYCLE,        /* 15: a step returns to an agent that has had it */
    MUTANT_GATE_NEVER_CLOSED,    /* 16: a step begins although its closed gate cannot answer */
    MUTANT_GRACE_NOT_ARMED,      /* 17: a cancelled attempt has no deadline */
    MUTANT_KILLS_BYSTANDERS,     /* 18: the core ends a process that also has other work */
    MUTANT_VERDICT_IGNORED,      /* 19: a verifier's rejection completes the step */
    MUTANT_SIGNOFF_SKIPPED,      /* 20: a plan starts before its sign-off */
    MUTANT_RECOVERY_RESENDS,     /* 21: recovery sends attempts again that were under way */
    MUTANT_QUEUED_NOT_COUNTED,   /* 22: queued steps do not count against max_concurrency */
    MUTANT_RUN_BESIDE_APPLY,     /* 23: a handler changes a run without a record */
    MUTANT_EXPECT_IGNORED,       /* 24: a change is made although expectRevision is old */
    MUTANT_SUPERSEDED_GOES_ON,   /* 25: a superseded attempt gets no cancel request */
    MUTANT_IDLE_IGNORED,         /* 26: an attempt without progress does not time out */
    MUTANT_QUEUE_FOR_EVER,       /* 27: queue_timeout_ms has no effect */
    MUTANT_LANE_FREED_EARLY,     /* 28: the lane of a timed-out attempt is used before it answers */
    MUTANT_REVIEW_FOR_EVER,      /* 29: approval_timeout_ms has no effect */
    MUTANT_SKIP_IS_FAILURE,      /* 30: a step that a person skips fails its dependents */
    MUTANT_UNKNOWN_NOT_ASKED,  /* 31: an instance that is back is not queried about its attempts */
    MUTANT_BEGINS_CANCELLED,   /* 32: a plan that is being cancelled starts steps */
    MUTANT_BEGINS_REPLANNED,   /* 33: a plan starts steps while it waits for a replan */
    MUTANT_UNSAFE_FALLBACK,    /* 34: an unsafe step that ran gets a fallback */
    MUTANT_STALE_PLANNER,      /* 35: the failure of an earlier request ends this one */
    MUTANT_REPAIRS_UNLIMITED,  /* 36: an invalid plan goes back without a limit */
    MUTANT_RECTIFY_UNLIMITED,  /* 37: the synthesizer may have steps retried without a limit */
    MUTANT_DRY_RUN_RUNS,       /* 38: a dry run starts its steps */
    MUTANT_PLANNING_FREE,      /* 39: the usage of a failed planning request is not counted */
    MUTANT_ANSWER_AFTER_END,   /* 40: a cancelled or timed-out plan gets a synthesis */
    MUTANT_ANSWERED_TWICE,     /* 41: a stored answer is requested again */
    MUTANT_JOB_GOES_ON,        /* 42: the end of a plan does not stop its job */
    MUTANT_END_FORGOTTEN,      /* 43: a synthesizer's retry forgets how the plan ends */
    MUTANT_JOB_FORGOTTEN,      /* 44: recovery does not request the job again */
    MUTANT_CHANGED_AT_JOB,     /* 45: a plan is paused while it waits for planning or synthesis */
    MUTANT_STALE_DECISION,     /* 46: a decision about an earlier review counts for the open one */
    MUTANT_WAIT_TOO_SHORT,     /* 47: the first wait of a rate-limited step is 1 s */
    MUTANT_RETRY_ON_IGNORED,   /* 48: retry_on does not make a class retried */
    MUTANT_PAUSE_UNLIMITED,    /* 49: an agent may ask for a pause of any length */
    MUTANT_COMPLETED_AGAIN,    /* 50: a replan runs a completed step again */
    MUTANT_UNSAFE_REPLANNED,   /* 51: a replan repeats an unsafe step without an approval */
    MUTANT_SINGLE_UNANSWERED,  /* 52: one result is the answer, although a synthesis is wanted */
    MUTANT_LEFT_REMEMBERED,    /* 53: an agent that left is known for ever */
    MUTANT_NEEDED_FORGOTTEN,   /* 54: an agent is forgotten while an open plan names it */
    MUTANT_SEARCH_ERROR_TAKEN, /* 55: the error of a failed search replaces the step's own */
    MUTANT_CHANGE_UNSIGNED,    /* 56: a changed plan goes on without a new sign-off */
    MUTANT_APPROVED_FOR_ANOTHER, /* 57: an approval for one agent holds for another */
    MUTANT_CONTEXT_CUT_UNNAMED,  /* 58: the end does not name who read only a part */
    MUTANT_VOID_UNTOLD,          /* 59: a sign-off becomes void without an event */
    MUTANT_REJECTED_UNPAID,      /* 60: the usage of a rejected result is not counted */
    MUTANT_PAID_TWICE,           /* 61: the usage of an attempt is counted again */
    MUTANT_PROCESS_REPLACED,     /* 62: a new process takes the place of one that is registered */
    MUTANT_UNKNOWN_TO_ANOTHER,   /* 63: any process may say that an attempt never ran */
    MUTANT_RAN_AND_NEVER_RAN,    /* 64: an attempt that was at work may be said to have never run */
    MUTANT_CLOCK_ANEW,           /* 65: the time of an attempt begins again when it is adopted */
    MUTANT_LIMIT_ANEW,           /* 66: the limit of a step begins again after a review */
    MUTANT_NOT_LISTED_IGNORED,   /* 67: an attempt that no heartbeat lists is not asked about */
    MUTANT_LAST_WORD_UNHEARD,    /* 68: the time of an adopted attempt ends without a question */
    MUTANT_ENDED_UNSEEN,         /* 69: the end of all connections of an instance is not seen */
    MUTANT_STALL_IS_SILENCE,  /* 70: time in which the supervisor read nothing counts as silence */
    MUTANT_BYPASS_SATISFIES,  /* 71: a step runs although conditions skipped all that come before */
    MUTANT_CLEANS_UP_ALWAYS,  /* 72: a step for failures runs although nothing failed */
    MUTANT_CONDITION_UNASKED, /* 73: a step begins without the verdict about its condition */
    MUTANT_CONDITION_STALE,   /* 74: a verdict from before a revision counts */
    MUTANT_CONDITION_PASSED,  /* 75: a condition that cannot be evaluated only skips its step */
    MUTANT_CHILD_STALE = 76,  /* 76: the end of an earlier child plan or round counts */
    MUTANT_CHILD_GOES_ON,     /* 77: the pause of a plan does not reach its child plans */
    MUTANT_LOOP_UNBOUNDED,    /* 78: a loop goes on after its last round */
    MUTANT_LOOP_AT_ONCE,      /* 79: the pause between two rounds is left out */
    MUTANT_UNDO_IN_PLAN_ORDER = 80, /* 80: what completed is undone in the order of the plan */
    MUTANT_UNDO_CANCELLED,        /* 81: a cancelled plan is undone although nobody asked for it */
    MUTANT_UNDO_FORGOTTEN,        /* 82: a restart forgets that a plan is being undone */
    MUTANT_UNDONE_TWICE,          /* 83: what was undone is undone again after a restart */
    MUTANT_UNDO_STOPS,            /* 84: a compensation that fails ends those before it */
    MUTANT_PRIORITY_IGNORED = 85, /* 85: plans take turns whatever their priority */
    MUTANT_PRIORITY_STARVES,      /* 86: however long a step waits, a higher priority goes first */
    MUTANT_KEY_SHARED,            /* 87: a concurrency key has more holders than places */
    MUTANT_KEY_FORGOTTEN,         /* 88: after a restart nobody has a concurrency key */
    MUTANT_RATE_EARLY,            /* 89: a window of a rate ends a millisecond early */
    MUTANT_CLOCK_NOT_FOLLOWED = 90, /* 90: a date is not armed again when the wall clock is set */
    MUTANT_DATE_BY_DELAY,           /* 91: a date comes early when the wall clock is put back */
    MUTANT_EARLY_SIGNAL_LOST,       /* 92: a step does not take a signal that came before it */
    MUTANT_SIGNALS_UNLIMITED,       /* 93: more signals are kept than a plan may keep */
    MUTANT_SIGNAL_OVERTAKES,        /* 94: a new signal is taken before one that was kept */
    /* 95 to 99, 114, 128 to 131 are of the journal on PostgreSQL (edge.postgres_*);
     * 115, in the engine, by test_fleet.py of a build with -DBATON_MUTANT=115 */
    MUTANT_FENCE_WITHOUT_EPOCH,     /* pg 95: a turn of an earlier owner is stored */
    MUTANT_FENCE_WITHOUT_POS,       /* pg 96: a turn is stored that does not follow the last one */
    MUTANT_OWNER_NOT_ENDED,         /* pg 97: a take-over leaves the old owner its connection */
    MUTANT_EFFECTS_UNANSWERED,      /* pg 98: a commit is believed before the answer */
    MUTANT_RENEWED_BY_ANOTHER,      /* pg 99: who is no owner any more renews the lease */
    MUTANT_LATE_FROM_ANOTHER = 100, /* 100: whoever brings a late result is believed */
    MUTANT_RETUNE_IGNORED = 101,    /* 101: what a reload sets anew has no effect */
    MUTANT_WAIT_TAKES_PLACE,        /* 102: a step that waits takes a place of other steps */
    MUTANT_SIGNAL_WITHOUT_END,      /* 103: a step waits for its signal past its time */
    MUTANT_SKIP_WAITS,              /* 104: a plan with overlap skip waits for its key */
    MUTANT_NEVER_UNDONE,            /* 105: a plan is undone although its policy says never */
    MUTANT_CATCH_UP_IGNORED,        /* 106: a time fires however late it is */
    MUTANT_OVERLAP_IGNORED,         /* 107: a time fires beside an open plan, with overlap skip */
    MUTANT_DOUBLED_HOUR_TWICE, /* 108: a time in the doubled hour fires twice, one in the gap never
                                */
    MUTANT_CURSOR_FORGOTTEN,   /* 109: the plan is made, and how far the schedule is, is not */
    MUTANT_OWN_WAIT_IGNORED = 110, /* 110: agentWaitMs of a step has no effect */
    MUTANT_CHILD_FORGOTTEN,        /* 111: a restart does not ask again for child plans */
    MUTANT_CHILD_NOT_STOPPED,      /* 112: the end of a step is not passed to its child plan */
    MUTANT_CHILD_WITHOUT_ROUND,    /* 113: every round asks for the child plan of the first */
    MUTANT_NEVER_TOO_LATE,         /* pg 114: effects are performed however old the lease is */
    MUTANT_EFFECTS_UNKEPT,         /* by hand: effects are performed without a look at the lease */
    MUTANT_DOUBT_FORGOTTEN = 116,  /* 116: the end of a step does not say that it may be done */
    MUTANT_DOUBT_UNASKED,          /* 117: a step that may have been done begins unasked */
    MUTANT_BUSY_IS_AN_ATTEMPT = 118, /* 118: an instance without a place uses up an attempt */
    MUTANT_BUSY_ASKED_AT_ONCE,       /* 119: it is asked again without a wait */
    MUTANT_TURNS_UNLIMITED = 120,    /* 120: an agent calls others in more turns than the limit */
    MUTANT_CALLS_FORGOTTEN,          /* 121: a restart forgets that an attempt has made its calls */
    MUTANT_CALLS_WHILE_PAUSED,       /* 122: calls begin while the plan is paused */
    MUTANT_LATE_BEFORE_CALLS,        /* 123: a late result of an attempt before the calls counts */
    MUTANT_BUSY_OPENS_BREAKER = 124, /* 124: it counts as a failure of the instance */
    MUTANT_CURSOR_WITHOUT_ID = 125,  /* 125: a cursor is taken although its event is another one */
    MUTANT_GROWN_UNFENCED,           /* pg 126: a fleet grows, and its leaders keep their epochs */
    MUTANT_FINALIZED_FOR_SOME,       /* pg 127: the format rises although one does not know it */
    MUTANT_READ_ONLY_ENDS = 128,     /* pg 128: a server that takes no writes ends the owner */
    MUTANT_LEASE_FOR_EVER,           /* pg 129: the lease of a lost owner ends in an hour */
    MUTANT_OUTCOME_BY_SELECT = 130,  /* pg 130: a lost commit is looked for, not fenced */
    MUTANT_RIDE_TAKES_ANY,           /* pg 131: who connects again takes what another owns */
    MUTANT_BUSY_ANSWERS = 132,       /* 132: a question to an instance without a place has failed */
    MUTANT_BUSY_KEEPS_LANE,          /* 133: BUSY to an older attempt leaves the lane taken */
    MUTANT_BUSY_IS_UNSENT,           /* 134: it counts as a request that could not be sent */
    MUTANT_BUSY_IGNORES_PAUSE,       /* 135: the step comes again while its plan is paused */
    MUTANT_SHARE_IGNORED = 136,      /* pg 136: a node takes what it finds, also beyond its share */
    MUTANT_MOVE_UNFENCED,            /* pg 137: a shard that moves keeps its epoch */
    MUTANT_MOVE_FOR_ANYBODY,         /* pg 138: whoever comes first takes a shard that moves */
    MUTANT_BLOBS_OF_NO_SHARD,        /* pg 139: the ids of blobs of all shards begin at 1 */
    MUTANT_GATHER_COMMIT_HELD = 140, /* 140: a commit's last frame is held, not written */
    MUTANT_GATHER_ERROR_LOST,        /* 141: the write of held frames fails, and nobody is told */
    MUTANT_GATHER_READ_BEHIND,       /* 142: a read of held frames gives what was there before */
    MUTANT_DOUBT_REPLANNED,          /* 143: a replan repeats what may have been done, unasked */
    MUTANT_LATE_ANSWERS_TAKEN = 150, /* pg 150: late answers are those of what is asked next */
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
