/*
 * The core's own rows: what it keeps about runs, steps, queues, agents, sessions and instances
 * beside the runs themselves. All of it is rebuilt on RECOVER.
 *
 * A step is named by a ref, run slot << 32 | step. At any time it is in at most one list: the ready
 * list of its run (waits for a place in the concurrency), the queue of its run at an agent (waits
 * for a lane), the list of those that wait for the run's budget, the parked ones of a run that is
 * on hold, what an instance holds (in progress), the unknown ones, or, within one event only, the
 * lost ones that are being resolved.
 *
 * A queue is named by a ref, too: run slot << 32 | index into the plan's agents. It is in the ring
 * of its agent while it holds steps, or among the blocked ones of its session.
 */
#ifndef CORE_CORE_ROWS_H
#define CORE_CORE_ROWS_H

#include "supervisor/core/run/run_internal.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/core/sched/heap.h"

#define REF_NONE UINT64_MAX

enum {
    CORE_TEXT_BYTES = 16 * 1024, /* texts made while one event is handled; see core_text.c */
    CORE_REASON_BYTES = 256,     /* of an instance's last message that go into an error */
    CORE_PROGRESS_PER_SECOND = 10,
    CORE_TEXTS_PER_SECOND = 1000, /* of a job: pieces of an answer, of which none may be lost */
    CORE_UNSENT_MAX =
        8, /* times in a row that one attempt may fail to leave before it counts as failed */
    CORE_ASKS_MAX = 1000,   /* questions about one step; what comes before a question looks at it */
    CORE_TEXTS_MAX = 65536, /* pieces that one answer may come in: each is a row of the journal */
    CORE_RETRY_AFTER_MAX_MS = 3600 * 1000, /* an agent may ask for a pause, not for ever */
};

enum list_kind {
    LIST_NONE,
    LIST_READY,
    LIST_QUEUE,
    LIST_BUDGET,
    LIST_PARKED,
    LIST_HELD,
    LIST_UNKNOWN,
    LIST_LOST,
    LIST_KIND_COUNT
};

struct list {
    uint64_t head, tail;
    uint32_t n;
};

/* What a step has of its run's and the core's counts; given back when it leaves its list. */
enum {
    HOLDS_PLACE = 1,  /* in core_run.queued */
    HOLDS_LANE = 2,   /* in the counts of what is in flight */
    HOLDS_BUDGET = 4, /* its estimate is reserved */
};

/* Of a step; rebuilt on RECOVER. */
struct sched_step {
    uint64_t prev, next;
    msec since;     /* in a queue: when it came; in progress: start of the second that progress is
                       counted in */
    msec sign;      /* last sign of life of the attempt that is out */
    uint64_t epoch; /* of the incarnation that it was dispatched to last */
    uint32_t slot;  /* of the instance that has or had the attempt; REGISTRY_NONE = not seen by this
                       daemon */
    uint16_t progress; /* records in that second */
    uint16_t serial;   /* of what was dispatched last, with its phase */
    uint8_t phase;
    uint8_t list;   /* enum list_kind */
    uint8_t unsent; /* times in a row that the attempt did not leave */
    uint8_t queue;  /* index into the plan's agents: in QUEUE and HELD */
    uint8_t holds;  /* HOLDS_* */
    uint8_t unused[3];
};

enum ring_kind { RING_NONE, RING_AGENT, RING_SESSION };

/* The steps of one run that wait for one agent. */
struct core_queue {
    uint64_t prev, next; /* in its ring */
    struct list steps;
    uint32_t agent; /* registry index */
    uint8_t ring;   /* enum ring_kind */
    bool woken;     /* it was the first of its session when a place came free: its next try counts
                       before all that came later */
};

struct core_run {
    struct run *run; /* NULL = the slot is free */
    const struct plan *plan;
    struct sched_step *sched;
    uint32_t *work;  /* n_steps: the steps whose dependents are still to be told */
    struct heap due; /* of the steps: what each waits for in time */
    struct list ready;
    struct list broke;         /* LIST_BUDGET */
    struct list parked;        /* LIST_PARKED */
    struct core_queue *queues; /* one per agent of the plan */
    uint64_t reserved_tokens, reserved_micros;
    uint32_t queued; /* steps that wait for an agent and have not begun: they have a place in the
                        concurrency */
    uint32_t held;   /* of its steps: in flight */
    uint32_t generation;
    uint32_t next_free;
    bool woken; /* in core.woken: a reservation came back */
};

struct core_agent {
    struct list ring;    /* of queues: whose turn it is */
    uint32_t queued;     /* steps in the queues of this agent, blocked ones too */
    uint32_t in_flight;  /* attempts and questions that its instances hold */
    uint32_t next_dirty; /* UINT32_MAX = the last one */
    bool dirty;          /* something may start: it has a place in the turn of the agents */
};

struct core_session {
    struct list blocked; /* queues whose turn came while the session had all it may have */
    uint32_t in_flight;
    uint32_t next_woken; /* UINT32_MAX = the last one */
    bool woken;          /* a place came free */
};

/* First in, first out, linked through the rows. */
struct core_fifo {
    uint32_t head, tail; /* UINT32_MAX = empty */
};

struct core_instance {
    struct list held;
    bool told_up;
    bool spawned; /* its process can be ended by us */
};

struct core {
    struct core_config config;
    msec now;
    msec recovered_at; /* 0 = not yet */
    msec wall;
    uint64_t random;
    struct commands *out; /* of the event being handled */
    struct registry *registry;
    struct core_run *runs;
    struct core_agent *agents;
    struct core_instance *instances;
    struct core_session *sessions;
    struct heap due; /* of the runs: the earliest of their steps' and their own deadline */
    struct list unknown;
    struct list lost;
    struct core_fifo dirty;          /* agents: whose turn it is when all share a limit */
    struct core_fifo woken_sessions; /* with a free place and blocked queues */
    uint32_t *woken;                 /* runs with steps that waited for a reservation */
    uint32_t n_woken;
    uint32_t in_flight;
    uint32_t free_run;
    uint32_t open;
    uint64_t newest;
    bool quiet; /* several steps end together: whether the plan waits is told after all of them */
    uint32_t text_used;
    uint32_t text_agent; /* whose absence the last text of this event speaks of */
    struct str text_absent;
    char text[CORE_TEXT_BYTES];
};
#endif
