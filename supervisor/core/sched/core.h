/*
 * The core is a pure state machine: core_handle(state, event) appends commands. It reads no clock,
 * draws no random number, logs nothing, opens nothing, parses nothing and allocates nothing
 * (commands grow through the caller's function).
 *
 * Order of commands: a RECORD stands before the actions that it causes. The engine appends all
 * records of a cycle in one commit, and performs the actions only after it.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/record.h"
#include "supervisor/core/run/run.h"
#include "supervisor/core/sched/core_event.h"
#include "supervisor/core/sched/window.h"

struct core;

struct core_config {
    uint32_t runs_max; /* open runs at the same time */
    struct registry_limits registry;
    msec agent_wait_ms;   /* how long a ready step waits for an agent that has no live instance */
    msec unknown_wait_ms; /* how long an unknown outcome waits for its instance to come back */
    msec last_word_ms; /* an adopted attempt is asked about once more, that long before its time is
                          over; 0 = it is not */
    msec cancel_grace_ms; /* an attempt of a cancelled plan has this long to stop; then its process
                             is ended, or it is fenced */
    uint32_t sessions;    /* places for plan.session: >= 1 */
    uint32_t keys;        /* places for plan.keys.at */
    /* attempts and questions under way at the same time; 0 = no limit */
    uint32_t in_flight, in_flight_agent, in_flight_session;
    uint64_t seed; /* for the jitter */
};

/* What may change while runs are open. */
struct core_tuning {
    msec agent_wait_ms, unknown_wait_ms, cancel_grace_ms; /* of core_config: from now on */
    msec lease_ms, suspect_ms;                            /* registry_lease_set */
};
void core_retune(struct core *c, const struct core_tuning *to);

/*
 * Rates and places, from now on. `starts` has rate.n elements; it is the caller's, stays with the
 * core until the next call for the same agent or key, and may be NULL without a rate. A rate counts
 * all that is sent to an agent; of a key the attempts of its steps, or the starts of its plans.
 */
void core_agent_rate(struct core *c, uint32_t agent, struct core_rate rate, msec *starts);
/* max: places; 0 = no limit. */
void core_key_rule(struct core *c, uint32_t key, uint32_t max, struct core_rate rate, msec *starts);
/* Before the first event: a start of before the restart. In the order of time. */
void core_agent_started(struct core *c, uint32_t agent, msec when);
void core_key_was_started(struct core *c, uint32_t key, msec when);
/* No plan has the key or waits for it, and its rate forgets nothing with it. */
bool core_key_is_idle(const struct core *c, uint32_t key);

size_t core_size(const struct core_config *c);
/* mem: core_size bytes, all zero. Places for runs and sessions are written when they are first
 * used, so a large limit costs address space, not memory. */
struct core *core_init(void *mem, const struct core_config *c);
struct registry *core_registry(struct core *c);
/* Forgets the agent that has been away longest among those that nobody needs. False = there is
 * none, and a full registry takes no new agent. */
bool core_agent_room(struct core *c);
/* Forgets an agent that has left, unless the configuration or an open plan names it. */
void core_agent_forget(struct core *c, uint32_t agent);

enum core_cmd_type {
    CMD_RECORD,      /* rec */
    CMD_DISPATCH,    /* run, step, phase, attempt, slot, epoch, lane */
    CMD_CANCEL_STEP, /* run, step, phase, attempt, slot, epoch, text: send a cancel request. The
                        instance still answers on the lane */
    CMD_KILL,        /* slot, epoch: end the process tree of a spawned instance */
    CMD_PROBE,   /* slot, epoch: ping the instance on its control lane; the answer is CORE_PROBED */
    CMD_REVISED, /* run: plan and block of the previous revision return to the caller */
    /* run, job, attempt, text (errors of the previous answer): start the job. The plan waits for
     * CORE_PLANNED, CORE_SYNTHESIZED, CORE_RECTIFY or CORE_JOB_FAILED. After a rejected
     * CORE_PLANNED or CORE_RECTIFY it still waits. After a restart the command comes again, also
     * for a job that is still under way. */
    CMD_JOB,
    CMD_JOB_STOP,  /* run: the plan does not need the job any more */
    CMD_QUERY,     /* run, step, attempt, slot, epoch: query the state of the attempt on the control
                      lane */
    CMD_CONDITION, /* run, step, attempt: evaluate the step's condition; CORE_CONDITION answers. It
                      is asked again after a hold, a revision or a restart */
    /* run, step, attempt, round: have a child plan do the step; CORE_CHILD reports its end. After a
     * restart the command comes again, also for a child that is still under way or has ended. */
    CMD_CHILD,
    CMD_CHILD_STOP,   /* run, step, attempt, round, text: cancel the child. During the grace of a
                         cancelled plan CORE_CHILD is still awaited, otherwise not */
    CMD_CHILD_PAUSE,  /* run, step, attempt, round */
    CMD_CHILD_RESUME, /* run, step, attempt, round */
    /* run: have a child plan undo what the plan did (run_undo_order); CORE_COMPENSATED reports its
     * end. After a restart the command comes again, also for one that is still under way. */
    CMD_COMPENSATE,
    CMD_SIGNAL,     /* run, step: the step waits for a signal and the plan has kept some. When one
                       has its name, CORE_SIGNAL brings the oldest */
    CMD_REGISTERED, /* slot, epoch */
    CMD_CLOSE,      /* slot, epoch: close all lanes of this incarnation */
    CMD_RUN_DONE,   /* run: after the commit, plan and block return to the caller */
    CMD_REJECT,     /* reject: the event changed nothing */
    CORE_CMD_TYPE_COUNT
};

enum core_reject {
    REJECT_NONE,
    REJECT_TOO_MANY_RUNS,
    REJECT_UNKNOWN_RUN,   /* it never existed, or has ended */
    REJECT_FINAL,         /* the run or step has ended */
    REJECT_STALE_ATTEMPT, /* another attempt is the current one */
    REJECT_STALE_REVIEW,  /* another review is open there by now */
    REJECT_STALE_EPOCH,   /* from an incarnation that was replaced */
    REJECT_FOREIGN,       /* the attempt belongs to another instance */
    REJECT_PROCESS,       /* the instance is registered by another process */
    REJECT_NOT_WAITING,   /* there is nothing to decide */
    REJECT_TOO_MANY_INSTANCES,
    REJECT_TOO_MUCH, /* more often than the rate or the limit allows */
    REJECT_REVISION, /* the plan has a newer revision */
    REJECT_BEGUN,    /* a step that has begun cannot be changed or skipped to */
    REJECT_CANCELLING,
    REJECT_UNDOING, /* the plan's end is decided, and what it did is being undone */
    REJECT_PAUSED,  /* the plan is paused already */
    REJECT_NO_STEP,
    REJECT_JOB,     /* the plan waits for a planning or synthesis job */
    REJECT_SIGNALS, /* no step waits for it, and as many are kept as may be */
    CORE_REJECT_COUNT
};
const char *core_reject_text(enum core_reject r);

struct core_cmd {
    enum core_cmd_type type;
    uint64_t run;
    uint32_t step;
    uint32_t attempt;
    uint32_t round; /* of CMD_CHILD... */
    enum step_phase phase;
    uint32_t slot;
    uint64_t epoch;
    uint32_t lane;
    enum core_reject reject;
    enum job_kind job;
    struct str text;
    struct record rec; /* CMD_RECORD */
};

/* Grows through `grow`, which makes room for at least one more command or does not return. */
struct commands {
    struct core_cmd *at;
    uint32_t n;
    uint32_t cap;
    void (*grow)(struct commands *c);
};

/* Bytes of the block of a plan's run: the run, followed by its scheduler state. */
size_t core_run_size(const struct plan *plan);
/* The struct run inside a block. */
struct run *core_block_run(void *block);

/* Handles one event and appends commands to out, which is not cleared first. After SUBMIT the first
 * record's `run` is the new handle. Invalid input is rejected and never asserts. */
void core_handle(struct core *c, const struct core_event *ev, struct commands *out);
/* When the next CORE_TICK is due; MSEC_NEVER = none is needed. */
msec core_deadline(const struct core *c);
/* The wall clock was set, or the machine slept: a CORE_TICK is due, because a step waits for a date
 * whose time may have come. */
bool core_clock_jumped(const struct core *c, msec now, msec wall);

/* The handle of the last SUBMIT or RECOVER; 0 when it was rejected. RECOVER may emit no record. */
uint64_t core_newest_run(const struct core *c);
/* The handle of the run that core_handle works on, or worked on last; 0 = of none. Only reads one
 * word, so a signal handler may ask, too. */
uint64_t core_at(const struct core *c);
uint32_t core_runs_open(const struct core *c);
/* NULL when the handle is unknown or its run has ended. Borrowed until the next core_handle. */
const struct run *core_run(const struct core *c, uint64_t run, const struct plan **ret_plan);
/* An attempt that an instance said to work on, without a lane of ours. */
struct core_adopted {
    uint64_t run;
    uint32_t step;
    uint32_t attempt;
    enum step_phase phase;
};
/* Those of the instance in the slot, at most `max` of them; returns how many. */
uint32_t core_adopted(const struct core *c, uint32_t slot, struct core_adopted *ret, uint32_t max);
/* Steps that wait for the agent. */
uint32_t core_agent_queued(const struct core *c, uint32_t agent);
/* The plan's deadline; MSEC_NEVER = none. For a job after a restart it is later than its run's: the
 * time while the supervisor was down does not count. */
msec core_plan_deadline(const struct core *c, uint64_t run);
/* The revision that a client sends as expectRevision. */
uint32_t core_revision(const struct core *c, uint64_t run);

/* Why an open step does not move. */
enum wait_kind {
    WAIT_NOTHING,     /* it has ended, or an instance has it */
    WAIT_DEPENDENCY,  /* n of them are open; step: the first */
    WAIT_CONCURRENCY, /* max_concurrency: n steps of the plan are under way */
    WAIT_AGENT,       /* agent: it has no live instance */
    WAIT_LANE,        /* agent: all n instances are busy */
    WAIT_BREAKER,     /* agent: its breaker is open; until */
    WAIT_LIMIT,       /* a limit of attempts in flight: global, of the agent or of the session */
    WAIT_BUDGET,      /* the budget is reserved by other steps */
    WAIT_BACKOFF,     /* until; agent: it asked for the pause, AGENT_NONE = nobody did */
    WAIT_REPLY,       /* the reply was lost; until */
    WAIT_PERSON,      /* review; until, or MSEC_NEVER */
    WAIT_PAUSED,
    WAIT_REPLAN, /* the plan waits for a replan */
    WAIT_CHILD,  /* a child plan does it */
    WAIT_TIMER,  /* until; a wait step for a time or a date */
    WAIT_SIGNAL, /* a wait step for a signal; until, or MSEC_NEVER */
    WAIT_KEY,    /* key: all its n places are taken */
    WAIT_RATE,   /* agent or (AGENT_NONE) key: n started within its per_ms; until */
    WAIT_KIND_COUNT
};
struct step_wait {
    enum wait_kind kind;
    uint32_t agent;
    uint32_t n;
    uint32_t step;
    enum review_kind review;
    msec until;
    struct str key;  /* the plan's own text */
    uint64_t holder; /* KEY: the run of the plan that has had it longest; 0 = steps have it */
    msec per_ms;     /* RATE: the length of the window */
};
/* "dependency", "agent", ... */
const char *wait_kind_name(enum wait_kind k);
struct step_wait core_step_wait(const struct core *c, uint64_t run, uint32_t step);
/* What the step (STEP_NONE: the plan) may spend: the plan's budget without what is spent and what
 * other steps have reserved. UINT64_MAX = no budget; both 0 when the run is not open. */
void core_budget_left(const struct core *c, uint64_t run, uint32_t step, uint64_t *ret_tokens,
                      uint64_t *ret_micros);

bool core_invariant(const struct core *c, const char **ret_why);
#endif
