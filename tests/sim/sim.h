/*
 * One simulated run of a daemon: the real core, a fake shell that performs its commands, fake
 * agents that crash, hang, lie, answer late, twice or not at all, people that decide, pause and
 * change plans, and a daemon that is killed at any turn. One seed determines everything; time is
 * virtual.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "supervisor/core/sched/core_internal.h"
#include "tests/sim/sim_sometimes.h"
#include "tests/unit/core/run/flat_record.h"
#include "tests/unit/core/sched/event_plan.h"
#include "tests/unit/core/sched/flat_event.h"

enum {
    SIM_PLANS_MAX = 6,
    SIM_CHILDREN_MAX = 24, /* child plans that are plans of the simulation, all together */
    SIM_ALL_PLANS = SIM_PLANS_MAX + SIM_CHILDREN_MAX,
    SIM_CHILD_STEPS_MAX = 6,
    SIM_AGENTS_MAX = 5,
    SIM_BODIES_MAX = 8,
    SIM_CAPACITY_MAX = 3,
    SIM_STEPS_MAX = 200,
    SIM_SESSIONS_MAX = 3,
    SIM_REVISIONS_MAX = 10, /* of one plan, the first one included */
    SIM_BATCH_MAX = 4,      /* turns that are committed together */
    SIM_REUSE_MAX = 8,
    SIM_QUIET_MAX_MS = 20000, /* faults stop at the latest then */
    SIM_MUST_TELL_MAX = 64,
    SIM_WHY_BYTES = 200,
    SIM_SENTENCES_MAX = 16,    /* requests for an answer, and fallbacks */
    SIM_TURNS_AT_ONCE = 20000, /* more in one millisecond is a loop */
};

/* Ids from here on: results that no agent made. A lower id is the execution's. */
#define SIM_RESULT_OTHER (UINT64_C(1) << 40)

struct request {
    uint64_t token; /* 0 = the lane is free */
    uint32_t plan, step, attempt;
    enum step_phase phase;
    uint64_t epoch;
};

/* One process of an agent. */
struct body {
    struct uuid id; /* of the process; sim_instance is its name to the supervisor */
    uint32_t agent, capacity;
    uint32_t slot;
    uint64_t epoch; /* 0 = not registered, or refused as unknown */
    bool alive, draining, spawned;
    msec silent_until, cut_until;
    uint32_t others; /* places that other supervisors have until then */
    msec others_until;
    struct request lanes[SIM_CAPACITY_MAX];
};

/* One execution of one attempt, or one question, as its process knows it. */
struct exec {
    uint32_t plan, step, attempt, body;
    enum step_phase phase;
    struct uuid process;
    uint32_t lane;
    uint64_t token;
    bool done;
    bool bad_plan; /* the replanner's answer is invalid */
    struct core_event answer;
};

enum sim_kind {
    SIM_CORE,
    SIM_SUBMIT,
    SIM_ARRIVE,
    SIM_REPLY,
    SIM_REFUSE,
    SIM_PROGRESS,
    SIM_REGISTER,
    SIM_LANE_UP,
    SIM_BEAT,
    SIM_CHAOS,
    SIM_QUERY,
    SIM_PROBE,
    SIM_BIRTH,
    SIM_PEOPLE,
    SIM_JOB,
    SIM_NEST, /* of child `plan`; lane: enum nest_news */
    SIM_BOOT
};

struct sim_event {
    msec at;
    uint64_t seq; /* order of arrival */
    enum sim_kind kind;
    uint32_t life; /* of the daemon; messages to a dead one are lost */
    uint32_t body, lane, exec, plan;
    uint64_t token;
    struct uuid process;
    struct core_event core;
};

/* A request that was sent, and its receiver. */
struct sent {
    uint32_t plan, step, serial, agent;
    enum step_phase phase;
    struct uuid process;
    uint32_t slot;
    uint64_t epoch;
    uint32_t prev; /* of the same step; UINT32_MAX = the first */
    msec at;
    bool back; /* no longer outstanding */
    bool told; /* a cancel was sent */
};

/* The state of a step computed from the records alone, to compare with the run. */
struct told {
    bool started, completed, gated, approved;
    uint32_t allowed; /* further executions of an unsafe step that were allowed */
    uint32_t executions, retries, hops;
    uint32_t retried;  /* attempt */
    uint32_t in_a_row; /* times the same attempt was sent, in this life of the daemon */
    uint32_t life;
    uint32_t fell;        /* fallbacks used: bit per action */
    uint32_t granted;     /* attempts beside max_retries: after approvals and fallbacks */
    uint64_t executed[2]; /* bit per attempt */
    uint64_t visited;     /* agents that were assigned it */
    uint32_t sent;        /* the last one; UINT32_MAX = none */
    uint32_t replans;
    msec sign; /* time of the last progress */
};

/* A job of the plan as a whole, as the shell keeps it; outlives the daemon. */
struct job {
    uint64_t token; /* 0 = none is open */
    enum job_kind kind;
};

/* Its state computed from the records alone. */
struct asking {
    enum job_kind kind;
    bool out; /* the shell of this life has the command */
    bool answered;
    uint32_t undone; /* as run.undone */
    uint32_t asked, rectified, texts;
    uint64_t answer; /* 0 = none */
    bool failed;     /* the plan was about to fail when its answer was requested */
    uint32_t failed_by;
    struct usage planning, replanning, synthesis;
};

/* What passes between a child plan and its parent. */
enum nest_news { NEST_END, NEST_PROGRESS, NEST_STOP, NEST_PAUSE, NEST_RESUME };

/* A child plan: whose it is, and what the shell and the rules know about it. */
struct nest {
    enum child_kind kind; /* NONE = it is nobody's child */
    uint32_t parent, step, attempt, round, depth;
    bool called;            /* an agent calls it, or a plan around it */
    bool again;             /* of a round: the condition of the loop asks for another one */
    enum plan_failure ends; /* as in its last record */
    /* By the records and commands of this life of the daemon. */
    bool asked, told_stop, told_pause, reported;
    bool paid; /* a record of its parent has its usage */
};

struct sim_plan {
    struct nest nest;
    struct plan *revisions[SIM_REVISIONS_MAX + 1];
    uint32_t n_revisions; /* committed ones */
    void *block;          /* with the live run */
    void *offer;          /* the memory of revisions[n_revisions], while it is offered */
    struct run *shadow;   /* from the records */
    struct record *journal;
    uint32_t n_journal, cap_journal;
    uint64_t handle;
    struct core_reuse reuse[SIM_REUSE_MAX];
    uint32_t n_reuse;
    bool submitted, generated, signed_off, started, over;
    uint32_t fallbacks, replans;
    msec replan_from;   /* the pause before the last one ends */
    struct usage spent; /* of all records */
    struct job job;
    struct asking asking;
    char sentences[SIM_SENTENCES_MAX][RUN_END_TEXT]; /* that a run keeps */
    uint32_t n_sentences;
    struct told *told; /* of the steps of the newest revision */
    uint8_t *signals;  /* of each that came, as the engine knows it: its name + 1; 0 = taken */
    uint32_t n_signals, cap_signals;
    /* Turns of other plans at an agent while this plan waited for it. */
    bool waits[SIM_AGENTS_MAX];
    uint32_t overtaken[SIM_AGENTS_MAX][SIM_ALL_PLANS];
};

/* A turn that the core has handled and that is not yet in the journal. */
struct turn {
    struct core_event ev;
    struct uuid sender; /* of the event; nil = the shell itself */
    uint32_t from, to;  /* its commands */
};

/* What is left out of a failing seed, while the simulator looks for a shorter one. */
struct shrink {
    uint64_t without; /* bit per fault */
    uint32_t plans, steps, quiet, children;
};

/* The process and incarnation that an epoch belongs to. */
struct incarnation {
    struct uuid process;
    uint32_t slot, agent;
    uint64_t epoch;
    msec full_until, full_ms; /* it answered BUSY: the wait until it is asked again */
};

enum { SIM_KEYS = 3, SIM_RATE_MAX = 4 };

/* The rule of a key or an agent; its last starts, as the journal has them; the core's memory. */
struct sim_limit {
    uint32_t max;
    struct core_rate rate;
    uint32_t n;
    msec last[SIM_RATE_MAX], ring[SIM_RATE_MAX];
};

struct sim {
    uint64_t seed, random, hash, tokens, seq;
    struct shrink shrink;
    bool trace;
    msec now, quiet;
    uint32_t life;
    bool down; /* the daemon is dead, and the next one has not started */
    bool recovering, performing;
    uint32_t batch_max;
    uint32_t rate[FAULT_COUNT]; /* permille */
    uint32_t steps_max;
    struct core_config config;
    struct core *core;
    struct commands out;
    struct turn batch[SIM_BATCH_MAX];
    uint32_t n_batch;
    const struct turn *turn; /* being checked or performed */
    struct sim_limit keys[SIM_KEYS], rates[SIM_AGENTS_MAX];
    struct sim_plan plans[SIM_ALL_PLANS]; /* children are appended */
    uint32_t n_plans, n_agents, n_bodies;
    uint32_t n_children, children_max,
        child_places; /* at all; open ones, and one more for each depth */
    struct body bodies[SIM_BODIES_MAX];
    struct exec *execs;
    uint32_t n_execs, cap_execs;
    struct sent *sent;
    uint32_t n_sent, cap_sent, first_out;
    struct incarnation *incarnations;
    uint32_t n_incarnations, cap_incarnations;
    struct sim_event *queue; /* a heap */
    uint32_t n_queue, cap_queue;
    uint64_t journal_seq;
    struct buf body, topic; /* of the record that goes through the journal */
    struct arena arena;
    /* Of the turn that is being committed. */
    uint32_t must_tell[SIM_MUST_TELL_MAX]; /* indexes into sent */
    uint32_t n_must_tell, queries;
    int kills; /* kill commands that still lack their record */
    bool closed, rejected;
    uint64_t turns;
    msec last; /* when the last turn was */
    uint32_t at_once;
    bool failed;
    char why[SIM_WHY_BYTES];
};

/* The instance id of a process: an earlier process may have had it, too. */
enum { SIM_NONCE_BYTE = 14 };
static inline struct uuid sim_instance(struct uuid process)
{
    process.b[SIM_NONCE_BYTE] = 0;
    return process;
}

/* ---- sim_chance.c ---- */
uint64_t sim_random(struct sim *s);
uint32_t sim_range(struct sim *s, uint32_t from, uint32_t to); /* both included */
bool sim_chance(struct sim *s, uint32_t permille);
/* True when the fault occurs now. Counts it. */
bool sim_fault(struct sim *s, enum fault f);
void sim_after(struct sim *s, msec delay, struct sim_event ev);
/* Takes the next event out; there must be one. */
struct sim_event sim_next(struct sim *s);
/* Memory that may not fail; room for one more element of that size. */
void *sim_need(size_t n, size_t size);
void *sim_room(void *at, uint32_t n, uint32_t *cap, size_t size);

/* ---- sim_day.c ---- */
struct day {
    bool fine;
    uint64_t hash, turns;
    msec at;
    char why[SIM_WHY_BYTES]; /* the broken rule */
};
struct day sim_day(uint64_t seed, const struct shrink *shrink, bool trace);

/* ---- sim_turn.c ---- */
void sim_fail(struct sim *s, const char *why, uint32_t plan, uint32_t step);
void sim_say(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives the event to the core; its commands are performed after the commit. */
void sim_turn(struct sim *s, struct core_event ev, struct uuid sender);
/* Commits the handled turns and performs their commands. */
void sim_flush(struct sim *s);
/* ---- sim_restart.c ---- */
/* The daemon dies; another one starts later. */
void sim_die(struct sim *s, msec down);
void sim_boot(struct sim *s);
/* The plan's run replayed from the journal; the caller frees it. */
struct run *sim_replay(struct sim *s, const struct sim_plan *p);

/* ---- sim_plan.c ---- */
extern const struct str sim_agent_names[SIM_AGENTS_MAX];
struct plan *sim_plan_now(const struct sim_plan *p);
void sim_make_plan(struct sim *s, struct sim_plan *p);
/* The plan of a child; p->nest is filled in. */
void sim_make_child(struct sim *s, struct sim_plan *p);
void sim_free_plan(struct sim_plan *p);
/* Random work, agent and policy for an entry; the caller sets the edges. */
void sim_make_step(struct sim *s, struct plan *plan, uint32_t step);

/* Puts the requested plan and its memory into the event. */
bool sim_offer_plan(struct sim *s, struct sim_plan *p, struct core_event *ev, bool bad);

/* ---- sim_job.c ---- */
void sim_job_order(struct sim *s, const struct core_cmd *cmd);
void sim_job_says(struct sim *s, const struct sim_event *ev);

/* ---- sim_asking.c ---- */
void sim_check_asking(struct sim *s, struct sim_plan *p, const struct record *rec);
void sim_check_job(struct sim *s, const struct core_cmd *cmd);
void sim_check_undo(struct sim *s, const struct core_cmd *cmd);
void sim_check_answered(struct sim *s, struct sim_plan *p, const struct record *rec);
/* Between turns. */
void sim_check_asked(struct sim *s, const struct sim_plan *p);

/* ---- sim_revise.c ---- */
/* Puts a next revision of the plan and its memory into the event; false at the cap of revisions. */
bool sim_offer(struct sim *s, struct sim_plan *p, struct core_event *ev, bool bad);
/* After the turn: frees a refused revision. */
void sim_withdraw(struct sim_plan *p);

/* ---- sim_agents.c ---- */
void sim_to_core(struct sim *s, msec delay, struct core_event ev, struct uuid sender);
void sim_born(struct sim *s, uint32_t body);
void sim_step_agents(struct sim *s, const struct sim_event *ev);
void sim_register(struct sim *s, uint32_t body);
void sim_crash(struct sim *s, uint32_t body, bool told);
/* Closes the lanes of the process; outstanding requests are reported as lost. */
void sim_drop_lanes(struct sim *s, struct body *b);

/* ---- sim_work.c ---- */
void sim_arrive(struct sim *s, const struct sim_event *ev);
void sim_reply(struct sim *s, const struct sim_event *ev);
void sim_progress(struct sim *s, const struct sim_event *ev);
void sim_query(struct sim *s, const struct sim_event *ev);
/* The instance's answer about an execution, over no lane. */
void sim_tell(struct sim *s, const struct exec *x, msec delay);

/* ---- sim_answer.c ---- */
void sim_draw_answer(struct sim *s, struct exec *x);
msec sim_draw_duration(struct sim *s, const struct exec *x);

/* ---- sim_full.c ---- */
/* Whether it begins nothing more: it drains, or its work and that of others take all places. */
bool sim_is_full(const struct sim *s, const struct body *b);
/* The answer BUSY leaves the process. */
void sim_refuse(struct sim *s, const struct sim_event *ev);
/* The waits, as the events report; what is sent in them; what the registry says about them. */
void sim_full_event(struct sim *s, const struct core_event *ev);
void sim_full_record(struct sim *s, const struct record *rec);
void sim_full_turn(struct sim *s);
void sim_full_end(struct sim *s);

/* ---- sim_chaos.c ---- */
void sim_chaos(struct sim *s);

/* ---- sim_signals.c ---- */
extern const struct str sim_signal_names[2];
/* What the engine keeps of the records of a turn, or of a journal that is read again. */
void sim_signals_record(struct sim_plan *p, const struct record *rec);
/* The signal that the event asks for becomes the oldest that fits; false: none does. */
/* ---- sim_keys.c ---- */
void sim_keys_draw(struct sim *s);
/* A new core gets the rules, and the starts of before. */
void sim_keys_apply(struct sim *s);
void sim_keys_plan(struct sim *s, struct plan *p);
void sim_keys_step(struct sim *s, const struct plan *p, struct plan_step *step);
void sim_keys_dispatch(struct sim *s, const struct sim_plan *p, const struct core_cmd *cmd,
                       uint32_t agent);
void sim_keys_started(struct sim *s, const struct sim_plan *p, const struct record *rec);

bool sim_signals_bring(struct sim *s, struct core_event *ev);
/* Somebody sends one; now and then far too many. */
void sim_signals_send(struct sim *s, const struct sim_plan *p);
void sim_check_wait(struct sim *s, const struct sim_plan *p, const struct record *rec);

/* ---- sim_nest.c ---- */
/* The child with the command's key; NULL: it is none of the plans. */
struct sim_plan *sim_nest_of(struct sim *s, const struct core_cmd *cmd);
/* Whether the parent's step waits for it, by the records. */
bool sim_nest_is_awaited(const struct sim *s, const struct sim_plan *c);
/* A command about a child plan. False: it is none of the plans, the shell answers itself. */
bool sim_nest_command(struct sim *s, const struct core_cmd *cmd);
/* Before it is submitted. False: not now, or never. */
bool sim_nest_may_begin(struct sim *s, struct sim_plan *c);
void sim_nest_begun(struct sim *s, const struct sim_plan *c);
/* The record of a child is in the journal. */
void sim_nest_record(struct sim *s, const struct record *rec);
void sim_nest_happens(struct sim *s, const struct sim_event *ev);
void sim_nest_booted(struct sim *s);
/* What the step gets: of a map its items, in their order. */
uint64_t sim_nest_result(const struct sim_plan *c);

/* ---- sim_nest_rules.c ---- */
/* A record of a parent, before it is applied; a command; a turn as a whole; between turns. */
void sim_check_nest_record(struct sim *s, struct sim_plan *p, const struct record *rec);
void sim_check_nest_command(struct sim *s, const struct core_cmd *cmd);
void sim_check_nest_turn(struct sim *s);
void sim_check_nests(struct sim *s);

/* ---- sim_people.c ---- */
void sim_people(struct sim *s);

/* ---- sim_shell.c ---- */
void sim_perform(struct sim *s, const struct core_cmd *cmd);
/* The plan with that handle in this life of the daemon, ended or not. */
struct sim_plan *sim_plan_of(struct sim *s, uint64_t handle);
struct body *sim_body_of(struct sim *s, uint32_t slot, uint64_t epoch);

/* ---- sim_check.c ---- */
/* `back`: the same record, read back from the journal. */
void sim_check_record(struct sim *s, const struct record *rec, const struct record *back);
void sim_check_execution(struct sim *s, const struct exec *x);
void sim_check_turn(struct sim *s);
void sim_check_end(struct sim *s);
void sim_mix(struct sim *s, uint64_t v);
/* The rows of a further revision. */
void sim_told_grow(struct sim_plan *p, uint32_t from, uint32_t to);

/* ---- sim_step_rules.c ---- */
void sim_check_step(struct sim *s, struct sim_plan *p, const struct record *rec);

/* ---- sim_journal.c ---- */
/* The record as read back; its texts live until the next call. False = a rule is broken. */
bool sim_through_journal(struct sim *s, const struct sim_plan *p, const struct record *rec,
                         struct record *ret);

/* ---- sim_turn_rules.c ---- */
void sim_rules_begin(struct sim *s);
/* Before the command is taken. */
void sim_rules_command(struct sim *s, const struct core_cmd *cmd);
void sim_rules_end(struct sim *s);

/* ---- sim_limits.c ---- */
/* Outstanding according to the records. An execution that resumes after its reply was lost is not
 * counted: the core cannot refuse it. */
bool sim_is_out(const struct sim *s, const struct sent *x);
/* In the order in which commands and events come. */
void sim_check_dispatch(struct sim *s, const struct core_cmd *cmd);
void sim_limits_event(struct sim *s, const struct core_event *ev);
void sim_limits_closed(struct sim *s, uint32_t slot, uint64_t epoch);
void sim_limits_turn(struct sim *s);
bool sim_was_sent(const struct sim *s, const struct sim_plan *p, uint32_t step,
                  enum step_phase most, uint32_t serial, struct uuid to);

#define SIM_RULE(cond, why)                                                                        \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            sim_fail(s, (why), (uint32_t)(p - s->plans), rec->step);                               \
            return;                                                                                \
        }                                                                                          \
    } while (0)
#endif
