/*
 * The scheduler state: what the core keeps about runs, steps, queues, agents, sessions and
 * instances beside the runs themselves. RECOVER rebuilds all of it.
 *
 * A ref names a step: run slot << 32 | step. At any time a step is in at most one list:
 *   - READY: the ready list of its run (waits for a place within max_concurrency)
 *   - QUEUE: the queue of its run at an agent (waits for a lane)
 *   - BUDGET: the steps of the run that wait for its budget
 *   - PARKED: the parked steps of a run on hold
 *   - HELD: what an instance holds (under way)
 *   - UNKNOWN: lost replies
 *   - CONDITION: the steps of the run whose condition is being evaluated
 *   - CHILD: the steps of the run that a child plan does
 *   - DATED: steps that wait for a date: due at another time when the wall clock is set
 *   - KEY: the steps that wait for a concurrency key, or for its rate
 *   - LOST: attempts that are being resolved, within one event only
 *
 * A ref names a queue, too: run slot << 32 | index into the plan's agents. While the queue has
 * steps, it is in the ring of its agent, or among the blocked ones of its session.
 */
#ifndef CORE_ENTRIES_H
#define CORE_ENTRIES_H

#include "supervisor/core/run/run_internal.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/core/sched/heap.h"
#include "supervisor/core/sched/window.h"

#define REF_NONE UINT64_MAX

enum {
    CORE_TEXT_BYTES = 16 * 1024, /* texts made while one event is handled; see text.c */
    CORE_REASON_BYTES = 256,     /* bytes of an instance's log tail in an error */
    CORE_PROGRESS_PER_SECOND = 10,
    CORE_TEXTS_PER_SECOND = 1000, /* of a job: pieces of an answer, none of which may be lost */
    CORE_UNSENT_MAX = 8,    /* failures in a row to send one attempt, before it counts as failed */
    CORE_ASKS_MAX = 1000,   /* questions about one step; every question checks it first */
    CORE_TEXTS_MAX = 65536, /* pieces of one answer: each is a row of the journal */
};

enum list_kind {
    LIST_NONE,
    LIST_READY,
    LIST_QUEUE,
    LIST_BUDGET,
    LIST_PARKED,
    LIST_HELD,
    LIST_UNKNOWN,
    LIST_CONDITION,
    LIST_CHILD,
    LIST_DATED,
    LIST_KEY,
    LIST_LOST,
    LIST_KIND_COUNT
};

struct list {
    uint64_t head, tail;
    uint32_t n;
};

/* A list that has steps of one run only: their numbers, without the run's slot. */
struct own_list {
    uint32_t head, tail; /* STEP_NONE = empty */
    uint32_t n;
};
#define OWN_LIST_EMPTY                                                                             \
    {                                                                                              \
        .head = STEP_NONE, .tail = STEP_NONE                                                       \
    }

/* What waits in turn: a list per priority, each in the order of time. Which of them is next: see
 * core_turn. */
struct turns {
    struct list of[PLAN_PRIORITY_MAX + 1];
    uint32_t n;
};

/* What a step holds of the counts of its run and of the core. It returns them when it leaves its
 * list. */
enum {
    HOLDS_PLACE = 1,  /* in core_run.queued */
    HOLDS_LANE = 2,   /* in the counts of attempts in flight */
    HOLDS_BUDGET = 4, /* its estimate is reserved */
    HOLDS_TURN = 8,   /* QUEUE: in core_key.woken */
};

/* The scheduler state of a step. */
struct sched_step {
    uint64_t prev, next;
    msec
        since; /* queued: since when; under way: start of the second in which progress is counted */
    msec queued_at; /* since when it waits for a lane: also when an instance had no place for it */
    msec last_sign; /* last sign of life of the attempt under way; KEY: since when it waits */
    uint64_t epoch; /* of the incarnation that got it last */
    uint32_t slot;  /* of the instance that has or had the attempt; REGISTRY_NONE = not seen by this
                       daemon */
    uint16_t progress; /* progress records in that second */
    uint16_t serial; /* of the last dispatch, with its phase; CONDITION: the revision that asked */
    uint8_t phase;
    uint8_t list;   /* enum list_kind */
    uint8_t unsent; /* failures in a row to send the attempt */
    uint8_t queue;  /* index into the plan's agents: in QUEUE and HELD */
    uint8_t holds;  /* HOLDS_* */
    bool adopted;   /* HELD, without a lane: the instance said that it works on it */
    bool asked;     /* adopted: asked once more before its time is over */
    bool keyed;     /* it has its concurrency key: from its first attempt until it is over */
};

enum ring_kind { RING_NONE, RING_AGENT, RING_SESSION };

/* The steps of one run that wait for one agent. */
struct core_queue {
    uint64_t prev, next; /* in its ring */
    msec since;          /* its last turn, or its first step */
    struct own_list steps;
    uint32_t agent; /* registry index */
    uint8_t ring;   /* enum ring_kind */
    bool woken;     /* it was the first of its session when a place became free: its next try counts
                       before all later ones */
};

struct core_run {
    struct run *run; /* NULL = the slot is free */
    const struct plan *plan;
    struct sched_step *sched; /* core_queues are behind them */
    struct own_list ready;
    struct own_list budget_waiters; /* LIST_BUDGET */
    struct own_list parked;         /* LIST_PARKED */
    struct own_list conditions;     /* LIST_CONDITION */
    struct own_list children;       /* LIST_CHILD */
    uint32_t due_n;                 /* steps in core_entry_heap */
    uint64_t reserved_tokens, reserved_micros;
    uint32_t queued; /* queued steps that have not begun: each has a place within max_concurrency */
    uint32_t held;   /* its steps in flight */
    uint32_t generation;
    uint32_t next_free;
    /* Of a keyed plan: in one of the lists of its key. */
    uint64_t key_prev, key_next; /* slots */
    msec key_since;
    uint8_t key_list; /* enum key_list */
    bool woken;       /* in core.woken: a reservation was returned */
};

/* Its queues, one per agent of the plan. */
static inline struct core_queue *core_queues(const struct core_run *entry)
{
    return (struct core_queue *)(entry->sched + entry->plan->n_steps);
}

enum key_list { KEY_LIST_NONE, KEY_LIST_WAITS, KEY_LIST_HOLDS };

/* A concurrency key: of plans or of steps. */
struct core_key {
    uint32_t max;            /* places; 0 = no limit */
    uint32_t held;           /* by plans that have begun, or by steps with an attempt */
    uint32_t woken;          /* steps that were told to go on and have no attempt yet */
    struct core_window rate; /* of starts */
    struct turns runs;       /* plans that wait */
    struct list holders;     /* plans that have it, in the order of their start */
    struct turns steps;      /* steps that wait: LIST_KEY */
    uint32_t next_woken;     /* UINT32_MAX = the last one */
    bool fresh;              /* in core.woken_keys: somebody who waits may go on */
};

struct core_agent {
    struct turns ring; /* queues in turn */
    struct core_window rate;
    uint32_t queued;     /* steps in the queues of this agent, with the blocked ones */
    uint32_t in_flight;  /* attempts and questions that its instances hold */
    uint32_t next_dirty; /* UINT32_MAX = the last one */
    bool dirty;          /* a step may start: the agent is in core.dirty */
};

struct core_session {
    struct list blocked; /* in the order of their turns: queues whose turn came while the session
                            was at its limit */
    uint32_t in_flight;
    uint32_t next_woken; /* UINT32_MAX = the last one */
    bool woken;          /* a place became free */
};

/* First in, first out, linked through the entries. */
struct core_fifo {
    uint32_t head, tail; /* UINT32_MAX = empty */
};

struct core_instance {
    struct list held;
    bool up_emitted;
    bool spawned; /* the supervisor can end its process */
};

struct core {
    struct core_config config;
    msec now;
    msec recovered_at; /* 0 = not yet */
    msec wall;
    uint64_t random;
    struct commands *out; /* of the event that is handled */
    struct registry *registry;
    struct core_run *runs;
    struct core_agent *agents;
    struct core_instance *instances;
    struct core_session *sessions;
    struct core_key *keys;
    struct heap opens; /* when a rate lets somebody start again: of agents, then of keys */
    struct heap due;   /* of the runs: the earliest of their steps' and their own deadline */
    struct list unknown;
    struct list dated;
    msec clock_offset; /* of the wall clock, when the dated steps were armed; may wrap */
    struct list lost;
    struct core_fifo dirty;          /* agents, in turn when they share a limit */
    struct core_fifo woken_sessions; /* sessions with a free place and blocked queues */
    struct core_fifo woken_keys;     /* keys with a free place and somebody who waits */
    uint32_t *woken;                 /* runs whose steps waited for a reservation */
    uint32_t n_woken;
    uint32_t in_flight;
    uint32_t free_run;      /* released before; UINT32_MAX = none */
    uint32_t runs_made;     /* slots from here on have never been used, and are not written yet */
    uint32_t sessions_made; /* likewise */
    uint32_t open;
    uint64_t newest;
    uint64_t at;     /* the run that it works on, or the last one */
    bool recovering; /* in RECOVER: other plans that have a key may come yet */
    bool quiet; /* several steps end together: PLAN_PAUSED or PLAN_RESUMED is decided after all of
                   them */
    uint32_t text_used;
    uint32_t text_agent; /* agent of the last core_text_absent in this event */
    msec text_wait;
    struct str text_absent;
    char text[CORE_TEXT_BYTES];
};
#endif
