/*
 * The core: everything that decides. (state, event) -> commands. Reads no clock, draws no random
 * number, logs nothing, opens nothing, allocates nothing (commands grow through the caller's
 * function), parses nothing.
 *
 * Order of commands: each RECORD stands before the actions it causes. The shell appends all records
 * of a turn in one commit and only then performs the actions.
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

struct core;

struct core_config {
    uint32_t runs_max; /* open runs */
    struct registry_limits registry;
    msec agent_wait_ms;   /* how long a ready step waits for an agent that has no live instance */
    msec unknown_wait_ms; /* how long an unknown outcome waits for its instance to come back */
    msec cancel_grace_ms; /* of an attempt that is called off; then its process is ended, or it is
                             fenced */
    uint32_t sessions;    /* rows for plan.session: >= 1 */
    /* attempts and questions that may be out at the same time; 0 = no limit */
    uint32_t in_flight, in_flight_agent, in_flight_session;
    uint64_t seed; /* of the jitter */
};

size_t core_size(const struct core_config *c);
struct core *core_init(void *mem, const struct core_config *c);
struct registry *core_registry(struct core *c);

enum core_cmd_type {
    CMD_RECORD,      /* rec */
    CMD_DISPATCH,    /* run, step, phase, attempt, slot, epoch, lane */
    CMD_CANCEL_STEP, /* run, step, phase, attempt, slot, epoch, text: tell the instance; it still
                        answers its lane */
    CMD_KILL,        /* slot, epoch: end the process tree of a spawned instance */
    CMD_PROBE,       /* slot, epoch: ping it on its control lane; the answer is CORE_PROBED */
    CMD_REVISED,     /* run: the plan and the block of the revision before go back to the shell */
    CMD_JOB,         /* run, job, attempt, text (of what is wrong with the answer before): the plan
                           waits for CORE_PLANNED, CORE_SYNTHESIZED, CORE_RECTIFY or CORE_JOB_FAILED.
                           Who rejects a CORE_PLANNED or CORE_RECTIFY goes on waiting.
                           After a restart it comes again: a job that is under way already goes on */
    CMD_JOB_STOP,    /* run: nobody waits for it any more */
    CMD_QUERY, /* run, step, attempt, slot, epoch: ask the instance about the key on its control
                  lane */
    CMD_REGISTERED, /* slot, epoch */
    CMD_CLOSE,      /* slot, epoch: retire all lanes of this incarnation */
    CMD_RUN_DONE,   /* run: after the commit, plan and block go back to the shell */
    CMD_REJECT,     /* reject: the event changed nothing */
    CORE_CMD_TYPE_COUNT
};

enum core_reject {
    REJECT_NONE,
    REJECT_TOO_MANY_RUNS,
    REJECT_UNKNOWN_RUN,   /* never existed, or ended and is gone */
    REJECT_FINAL,         /* the run or step has ended */
    REJECT_STALE_ATTEMPT, /* another attempt is the current one */
    REJECT_STALE_EPOCH,   /* from an incarnation that was replaced */
    REJECT_FOREIGN,       /* the attempt belongs to another instance */
    REJECT_NOT_WAITING,   /* nothing to decide */
    REJECT_TOO_MANY_INSTANCES,
    REJECT_TOO_MUCH, /* progress over its rate */
    REJECT_REVISION, /* the plan has been changed since */
    REJECT_BEGUN,    /* a step that has begun cannot be changed or skipped over */
    REJECT_CANCELLING,
    REJECT_PAUSED, /* it is, already */
    REJECT_NO_STEP,
    REJECT_JOB, /* the plan is being made, or its answer is */
    CORE_REJECT_COUNT
};
const char *core_reject_text(enum core_reject r);

struct core_cmd {
    enum core_cmd_type type;
    uint64_t run;
    uint32_t step;
    uint32_t attempt;
    enum step_phase phase;
    uint32_t slot;
    uint64_t epoch;
    uint32_t lane;
    enum core_reject reject;
    enum job_kind job;
    struct str text;
    struct record rec; /* CMD_RECORD */
};

/* Grows through `grow`, which must make room for at least one more or not return. */
struct commands {
    struct core_cmd *at;
    uint32_t n;
    uint32_t cap;
    void (*grow)(struct commands *c);
};

/* Bytes of the block that a plan's run needs: the run itself and the core's scheduler state behind
 * it. */
size_t core_run_size(const struct plan *plan);
/* The struct run inside a block. */
struct run *core_block_run(void *block);

/* Appends to out (not cleared). SUBMIT: the first record's `run` is the new handle. Input never
 * asserts. */
void core_handle(struct core *c, const struct core_event *ev, struct commands *out);
/* When CORE_TICK is due; MSEC_NEVER = not needed. */
msec core_deadline(const struct core *c);

/* The handle that the last SUBMIT or RECOVER gave; 0 when it was rejected. (RECOVER may cause no
 * record at all.) */
uint64_t core_newest_run(const struct core *c);
uint32_t core_runs_open(const struct core *c);
/* NULL when the handle is unknown or over. Borrowed until the next core_handle. */
const struct run *core_run(const struct core *c, uint64_t run, const struct plan **ret_plan);
/* Steps that wait for the agent. */
uint32_t core_agent_queued(const struct core *c, uint32_t agent);
/* When the plan is over, ms; MSEC_NEVER = at no time. Of a job this is later than its run says
 * after a recovery: for the plan that waits it is an attempt, and nobody worked on it while the
 * supervisor was down. */
msec core_plan_deadline(const struct core *c, uint64_t run);
/* What a client names as expectRevision. */
uint32_t core_revision(const struct core *c, uint64_t run);

/* Why an open step does not move, for people. */
enum wait_kind {
    WAIT_NOTHING,     /* it is over, or an instance has it */
    WAIT_DEPENDENCY,  /* n of them are open; step: the first */
    WAIT_CONCURRENCY, /* n steps of the plan are under way: all it may have */
    WAIT_AGENT,       /* agent: none of its instances is there */
    WAIT_LANE,        /* agent: all n instances are busy */
    WAIT_BREAKER,     /* agent: it failed too often; until */
    WAIT_LIMIT,       /* a limit of attempts in flight: global, of the agent or of the session */
    WAIT_BUDGET,      /* what others have reserved must come back first */
    WAIT_BACKOFF,     /* until */
    WAIT_REPLY,       /* the reply was lost; until */
    WAIT_PERSON,      /* review; until, or MSEC_NEVER */
    WAIT_PAUSED,
    WAIT_REPLAN, /* a replan of the plan is under way */
    WAIT_KIND_COUNT
};
struct step_wait {
    enum wait_kind kind;
    uint32_t agent;
    uint32_t n;
    uint32_t step;
    enum review_kind review;
    msec until;
};
/* "dependency", "agent", ... */
const char *wait_kind_name(enum wait_kind k);
struct step_wait core_step_wait(const struct core *c, uint64_t run, uint32_t step);
/* What the step (STEP_NONE: the plan as a whole) may spend: the plan's budget without what is spent
 * and what other steps have reserved. UINT64_MAX = there is no such budget; 0 and 0 when the run is
 * not open. */
void core_budget_left(const struct core *c, uint64_t run, uint32_t step, uint64_t *ret_tokens,
                      uint64_t *ret_micros);

bool core_invariant(const struct core *c, const char **ret_why);
#endif
