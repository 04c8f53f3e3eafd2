/*
 * A simulated day of a daemon: the real core, a fake shell that performs its commands, fake agents
 * that crash, hang, lie, answer late, twice or not at all, and a daemon that is killed at any turn.
 * Everything is drawn from one seed and happens in virtual milliseconds.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "supervisor/core/core_internal.h"

enum {
    SIM_PLANS_MAX = 6,
    SIM_AGENTS_MAX = 4,
    SIM_BODIES_MAX = 8,
    SIM_CAPACITY_MAX = 3,
    SIM_STEPS_MAX = 200,
    SIM_QUIET_MAX_MS = 20000, /* faults stop at the latest then */
};

/* What can go wrong. Each seed draws a subset and a rate for each. */
enum fault {
    FAULT_FAILURE,      /* the agent says that it failed */
    FAULT_NEEDS_PERSON, /* the agent asks for an approval or for input */
    FAULT_UNSENT,       /* the request never left */
    FAULT_REQUEST_LOST, /* it left and never came */
    FAULT_REPLY_LOST,   /* it ran and the answer was lost */
    FAULT_LATE,         /* the answer comes after the timeout */
    FAULT_HANG,         /* the answer does not come before the faults stop */
    FAULT_DUPLICATE,    /* the answer comes twice */
    FAULT_LIE,          /* an instance answers for what it does not have */
    FAULT_CRASH,        /* an instance dies; another takes its place */
    FAULT_CRASH_UNSEEN, /* the same, and nobody tells: the lease has to end */
    FAULT_SILENCE,      /* no heartbeats for a while; it works on */
    FAULT_REREGISTER,   /* an instance registers again under its id */
    FAULT_LANE_DOWN,
    FAULT_DRAIN,
    FAULT_QUERY_LOST,    /* the answer to a query is lost */
    FAULT_FLOOD,         /* progress without end */
    FAULT_CANCEL,        /* a user calls a plan off */
    FAULT_RESTART,       /* the daemon is stopped between two turns */
    FAULT_BEFORE_COMMIT, /* the daemon dies: the turn never happened */
    FAULT_AFTER_COMMIT,  /* the daemon dies: the turn is journaled, its actions were not done */
    FAULT_ABSENT,        /* an agent has no instance at first */
    FAULT_COUNT
};

struct request {
    uint64_t token; /* 0 = the lane is free */
    uint32_t plan, step, attempt;
    uint64_t epoch;
};

/* One process of an agent. */
struct body {
    struct uuid id;
    uint32_t agent, capacity;
    uint32_t slot;
    uint64_t epoch; /* 0 = not registered, or it was told that it is not */
    bool alive, draining;
    msec silent_until;
    struct request lanes[SIM_CAPACITY_MAX];
};

/* One execution of one attempt, as its process knows it. */
struct exec {
    uint32_t plan, step, attempt, body;
    struct uuid process;
    uint32_t lane;
    uint64_t token;
    bool done;
    struct core_event answer;
};

enum sim_kind {
    SIM_CORE,
    SIM_SUBMIT,
    SIM_ARRIVE,
    SIM_REPLY,
    SIM_REGISTER,
    SIM_LANE_UP,
    SIM_BEAT,
    SIM_CHAOS,
    SIM_QUERY,
    SIM_BIRTH
};

struct sim_event {
    msec at;
    uint64_t seq; /* first come, first served */
    enum sim_kind kind;
    uint32_t life; /* SIM_CORE: of the daemon; what was under way to a dead one is lost */
    uint32_t body, lane, exec, plan;
    uint64_t token;
    struct uuid process;
    struct core_event core;
};

/* What the records told about a step, apart from the run: a second opinion. */
struct told {
    bool started, completed;
    uint32_t allowed; /* further executions of an unsafe step that somebody allowed */
    uint32_t executions;
    uint64_t executed[2]; /* bit per attempt */
};

struct sim_plan {
    struct plan *plan;
    void *block;
    struct run *shadow; /* from the records */
    struct record *journal;
    uint32_t n_journal, cap_journal;
    uint64_t handle;
    bool submitted, generated, started, over;
    struct told *told;
};

struct sim {
    uint64_t seed, random, hash, tokens, seq;
    bool trace;
    msec now, quiet;
    uint32_t life;
    bool recovering;
    uint32_t rate[FAULT_COUNT]; /* permille */
    struct core_config config;
    struct core *core;
    struct commands out;
    const struct core_event *turn; /* being handled */
    struct uuid sender;            /* of it; nil = the shell itself */
    struct sim_plan plans[SIM_PLANS_MAX];
    uint32_t n_plans, n_agents, n_bodies;
    struct body bodies[SIM_BODIES_MAX];
    struct exec *execs;
    uint32_t n_execs, cap_execs;
    struct sim_event *queue; /* a heap */
    uint32_t n_queue, cap_queue;
    uint64_t turns;
    bool failed;
};

/* Over all seeds: what never happened was not tested. */
struct sometimes {
    uint64_t faults[FAULT_COUNT];
    uint64_t moves[STEP_STATUS_COUNT][STEP_STATUS_COUNT];
    uint64_t rejects[CORE_REJECT_COUNT];
    uint64_t ends[PLAN_STATUS_COUNT][PLAN_OUTCOME_COUNT];
    uint64_t turns, plans, executions;
};
extern struct sometimes sometimes;

/* ---- sim_chance.c ---- */
uint64_t sim_random(struct sim *s);
uint32_t sim_range(struct sim *s, uint32_t from, uint32_t to); /* both included */
bool sim_chance(struct sim *s, uint32_t permille);
/* Whether the fault strikes here and now. Counts it. */
bool sim_fault(struct sim *s, enum fault f);
void sim_after(struct sim *s, msec delay, struct sim_event ev);
/* Takes the next event out; there must be one. */
struct sim_event sim_next(struct sim *s);

/* ---- sim_turn.c ---- */
void sim_fail(struct sim *s, const char *why, uint32_t plan, uint32_t step);
void sim_say(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Hands the event to the core and performs what it commands. */
void sim_turn(struct sim *s, struct core_event ev, struct uuid sender);
void sim_restart(struct sim *s);

/* ---- sim_plan.c ---- */
void sim_make_plan(struct sim *s, struct sim_plan *p);
void sim_free_plan(struct sim_plan *p);

/* ---- sim_agents.c ---- */
void sim_born(struct sim *s, uint32_t body);
void sim_step_agents(struct sim *s, const struct sim_event *ev);
void sim_crash(struct sim *s, uint32_t body, bool told);
/* The lanes of the body are no more; what was out on them is reported as lost. */
void sim_drop_lanes(struct sim *s, struct body *b);
void sim_chaos(struct sim *s);

/* ---- sim_shell.c ---- */
void sim_perform(struct sim *s, const struct core_cmd *cmd);
struct sim_plan *sim_plan_of(struct sim *s, uint64_t handle);
struct body *sim_body_of(struct sim *s, uint32_t slot, uint64_t epoch);

/* ---- sim_check.c ---- */
void sim_check_record(struct sim *s, const struct record *rec);
void sim_check_dispatch(struct sim *s, const struct core_cmd *cmd);
void sim_check_execution(struct sim *s, uint32_t plan, uint32_t step, uint32_t attempt);
void sim_check_turn(struct sim *s);
void sim_check_end(struct sim *s);
void sim_mix(struct sim *s, uint64_t v);
int sim_check_sometimes(void);
#endif
