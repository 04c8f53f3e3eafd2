/*
 * A small world around one core: one plan of at most four steps (and what revisions add), up to
 * three instances of one lane each, and a shell that reports what could happen to them. Everything
 * that changes lies in a few blocks that are copied as bytes, so that any state can be left and
 * entered again.
 */
#ifndef TESTS_EXPLORE_WORLD_H
#define TESTS_EXPLORE_WORLD_H

#include "supervisor/core/sched/core_internal.h"
#include "tests/unit/core/run/plan_life.h"
#include "tests/unit/core/sched/flat_event.h"

enum { WORLD_SIGNALS = 16 };
enum { WORLD_STEPS = 8, WORLD_BODIES = 3, WORLD_EVENTS_MAX = 256, WORLD_PLANS = 16384 };
enum { WORLD_NOBODY = 255, WORLD_SUPERVISOR = 254 }; /* in place of an agent */

/* How often a path may do what would make it endless. */
struct budget {
    uint8_t faults;        /* all of the others together */
    uint8_t registrations; /* of an instance that is there */
    uint8_t gones;         /* crashes */
    uint8_t drains;
    uint8_t restarts; /* of the daemon */
    uint8_t losses;   /* requests that left and were lost */
    uint8_t unsent;   /* requests that never left */
    uint8_t busies;   /* instances without a place */
    uint8_t strays;   /* results and states that nobody waits for */
    uint8_t silences; /* time passing without heartbeats */
    uint8_t asks;     /* an agent asking for words or an approval */
    uint8_t handoffs; /* an agent asking for another */
    uint8_t pauses;
    uint8_t modifies;  /* skipping and cancelling by people */
    uint8_t revisions; /* inserting and replacing by people */
    uint8_t cancels;
    uint8_t progress;
    uint8_t signals; /* that no step waits for yet */
    uint8_t clocks;  /* the wall clock is set */
};

/* What an agent may say about what it was asked. */
enum world_answer {
    ANSWER_OK, /* of a gate or a verifier: yes; of a replanner: a plan that keeps what is completed
                */
    ANSWER_FAIL,  /* class UNKNOWN, retryable; of a question: it cannot be answered */
    ANSWER_NO,    /* of a gate or a verifier; of a step: failed, not retryable */
    ANSWER_AGAIN, /* failed, and the agent says that it may be tried again */
    ANSWER_RATE_LIMITED,
    ANSWER_SERVICE,
    ANSWER_NOT_FOUND,
    ANSWER_TOOL,
    ANSWER_UNVERIFIED, /* the shell found that the result does not fit its schema */
    ANSWER_INPUT,
    ANSWER_APPROVAL,
    ANSWER_CALLS,          /* a child plan makes them */
    ANSWER_HAND_X,         /* to the plan's first agent, ... */
    ANSWER_HAND_Y,         /* ... its second, ... */
    ANSWER_HAND_Z,         /* ... its third, ... */
    ANSWER_HAND_FORBIDDEN, /* ... one that it was not granted */
    ANSWER_PLAN_KEEP,      /* of a replanner: a plan that keeps all but the failed step */
    ANSWER_PLAN_MISFIT,    /* one that does not fit what is under way */
    ANSWER_PLAN_INVALID,   /* one that the plan check refuses */
    ANSWER_PLAN_STRANGER,  /* one with an agent that was not granted */
    ANSWER_PLAN_REPEAT,    /* one that runs a completed step again */
    ANSWER_COUNT
};
#define SAYS(name) (1u << ANSWER_##name)

struct scenario {
    const char *family;
    const char *plan;
    const char *bodies; /* the agent of each instance, one letter; a capital: it was spawned */
    struct budget left;
    uint32_t answers; /* SAYS(...) besides OK and FAIL; SAYS(OK) alone takes FAIL away */
    bool fine;        /* instances come up lane by lane; else all are there at the beginning */
    bool alone; /* the plan must end by time alone, without a word of anybody; else when all goes
                   well from here on */
    uint8_t in_flight, in_flight_agent, in_flight_session;
    uint8_t spends;   /* tokens that each attempt and question uses */
    uint8_t breakers; /* failures in a row that open one; 0 = none */
    uint8_t reuse;    /* set of steps whose results are known at the beginning */
    uint8_t doubts;   /* set of steps that may have been done before */
    const char *made; /* the plan that the planner, or a person in its place, brings */
};

struct request {
    bool out;
    uint8_t slot, lane, step, phase;
    uint16_t attempt;
    uint64_t epoch;
};

/* The state of a step computed from the records alone, to compare with the run. */
struct told {
    uint8_t started, completed, handed;
    uint8_t executions; /* attempts that left and may have run */
    uint8_t attempts;   /* as the records number them */
    uint8_t granted;    /* of them: without counting against max_retries */
    uint8_t allowed; /* how often somebody said that it may run once more, whatever its effects */
    uint8_t status;  /* after the last event */
    uint8_t waited, searched; /* fallbacks */
    uint8_t replans, hops;
    uint8_t gate, approved; /* said yes */
    uint8_t again;          /* to another agent than it has by now */
    uint8_t refused;        /* the gate rejected, or is closed and did not answer */
    uint8_t approvals;
    uint8_t out;      /* an attempt of it is with an instance, or its reply was lost */
    uint8_t adopted;  /* an instance says that it works on it, without a lane of ours */
    uint8_t finished; /* the newest attempt that brought a result */
    uint8_t agent;    /* who has it; WORLD_NOBODY */
    uint8_t from;     /* who hands it over */
    uint8_t nth;      /* of the completed ones */
    uint8_t body;     /* that has it, + 1 */
    uint8_t process;  /* of that body, that got the attempt */
    uint8_t ran;      /* an instance said that it works on the attempt */
    uint8_t visited;  /* set of agents */
    uint8_t asked;    /* adopted, and asked about since */
    uint8_t wanted;   /* the revision whose verdict about its condition is asked for; 0 = none */
    uint8_t judged;   /* as run_step.judged */
    uint8_t child;    /* a child plan does it: 1; 2 = it was told to stop, and its end is awaited */
    uint8_t child_attempt, child_round; /* of the newest one; attempt 0 = none yet */
    uint8_t turns;                      /* in which its agent called others */
    uint8_t turned;                     /* the attempt that made the last calls */
    uint8_t rounded;                    /* the next child is another round */
    uint8_t calls;                      /* the engine is asked for a signal that was kept */
    uint8_t slept;                      /* WAIT_STARTED came */
    uint8_t doubt; /* it may have been done: nobody knows the outcome of an attempt */
    msec sent, sign, begun;
    msec clock; /* when the attempt began */
    msec used;  /* of the step's limit, while a person decides */
};

/* One instance as the shell sees it. */
struct body {
    uint64_t epoch; /* 0 = not registered */
    bool control, lane;
    bool leaving;       /* its process was ended, or it drains */
    bool probed;        /* a ping is out */
    uint8_t process;    /* how many processes it has had before this one */
    struct request now; /* out on its lane */
    struct request
        old; /* was out when it registered again or went: only LOST can still be said of it */
};

/* The state of the plan's jobs computed from the records alone. */
struct asking {
    uint8_t kind;   /* enum job_kind: what is asked for */
    bool out;       /* somebody has been asked and not told to stop */
    bool may_plan;  /* it came in, or a person said so */
    bool answered;  /* whether there is an answer is settled */
    bool ok;        /* there is one */
    uint8_t undone; /* 1: what it did; 2: not all of it */
    uint8_t asked, rectified, texts;
    uint8_t pardoned; /* set of steps that had failed when the answer was asked for */
    uint8_t status, outcome, failure; /* how the plan will end; 0 = not decided */
    uint32_t step;
};

struct situation {
    msec now;
    uint64_t handle;
    msec cancelled_at, started_at, replan_at;
    uint64_t spent;
    uint32_t revision;
    uint16_t plan; /* index into world.plans */
    uint8_t block; /* which of the two */
    bool over, begun, generated, cancelling, signed_off;
    uint8_t paused;                /* bit per reason */
    uint8_t replanning, replanned; /* step + 1 */
    uint8_t fallbacks, replans, done;
    uint8_t last_agent;
    uint8_t signals;              /* how many came */
    uint8_t names[WORLD_SIGNALS]; /* of each: a letter; 0 = a step took it */
    int32_t clock;                /* by how much the wall clock was set */
    struct asking job;
    struct budget left;
    struct body bodies[WORLD_BODIES];
    struct told told[WORLD_STEPS];
};

enum world_kind {
    WORLD_TICK,
    WORLD_SILENT_TICK, /* variant: the supervisor stood still */
    WORLD_RESULT,
    WORLD_LOST,
    WORLD_BUSY, /* the instance has no place for it, and has not begun it */
    WORLD_LOST_OLD,
    WORLD_RESULT_OLD, /* over a lane of an incarnation that is no more */
    WORLD_STRAY,      /* a result over no lane */
    WORLD_STATE,      /* variant: enum world_state */
    WORLD_NOT_LISTED, /* a heartbeat leaves out what the instance said to work on */
    WORLD_REGISTER,   /* variant: a new process */
    WORLD_LANE_UP,
    WORLD_CONTROL_UP,
    WORLD_UP, /* all of that at once; variant: a new process */
    WORLD_GONE,
    WORLD_DRAIN,
    WORLD_PROGRESS,
    WORLD_PROBED,
    WORLD_CONDITION, /* variant: enum condition_verdict; attempt: the revision that asked */
    WORLD_SIGNAL,    /* variant: its name, a letter */
    WORLD_CALLED,    /* the engine brings the oldest that was kept and fits; step */
    WORLD_CLOCK,     /* variant: the wall clock is set back, or forward */
    WORLD_CHILD,     /* variant: enum child_outcome; attempt: with its round, see world_child_of */
    WORLD_CANCEL,
    WORLD_PAUSE,
    WORLD_RESUME,
    WORLD_DECIDE,  /* variant: decision */
    WORLD_SIGNOFF, /* variant: decision */
    WORLD_MODIFY,  /* variant: kind */
    WORLD_REVISE,  /* variant: enum world_change */
    WORLD_PLANNED, /* variant: whether it fits */
    WORLD_BRING,   /* a person's plan in place of one that could not be made; variant: decision */
    WORLD_JOB_FAILED, /* variant: an answer came that is no plan */
    WORLD_TEXT,       /* variant: the answer begins anew */
    WORLD_ANSWERED,
    WORLD_RECTIFY,     /* variant: enum world_change; step */
    WORLD_JOB_LATE,    /* variant: enum world_late; nobody waits for it */
    WORLD_COMPENSATED, /* variant: not all of it */
    WORLD_RESTART,
    WORLD_KIND_COUNT
};

enum world_state { STATE_NEVER, STATE_RUNNING, STATE_FORGOTTEN };
enum world_late {
    LATE_PLAN,
    LATE_FAILURE,
    LATE_TEXT,
    LATE_ANSWER,
    LATE_RECTIFY,
    LATE_UNDONE,
    LATE_COUNT
};

/* How a revision differs from the plan before it. */
enum world_change {
    CHANGE_FRESH,  /* the replanner keeps what is completed; one new step in place of the failed */
    CHANGE_KEEP,   /* it only puts a new step in the failed one's place */
    CHANGE_MISFIT, /* the same, but the failed one stays */
    CHANGE_STRANGER, /* the same as KEEP, with an agent more */
    CHANGE_REPEAT,   /* the new step is a completed one; of an unsafe one it has another name */
    CHANGE_BEFORE,   /* a person puts a step before this one */
    CHANGE_FREE,     /* a person adds a step that depends on nothing */
    CHANGE_REPLACE,
    CHANGE_COUNT
};

struct world_event {
    enum world_kind kind;
    uint8_t body, step, phase, variant;
    uint16_t attempt;
    bool charged; /* against the budget */
};

struct made_plan;

/* What happened at least once. */
struct coverage {
    uint64_t kinds[WORLD_KIND_COUNT];
    uint64_t moves[STEP_STATUS_COUNT][STEP_STATUS_COUNT];
    uint64_t records[REC_COUNT];
    uint64_t commands[CORE_CMD_TYPE_COUNT];
    uint64_t rejects[CORE_REJECT_COUNT];
    uint64_t reasons[STEP_REASON_COUNT];
    uint64_t failures[PLAN_FAILURE_COUNT];
    uint64_t reviews[REVIEW_KIND_COUNT];
    uint64_t decisions[DECISION_COUNT];
    uint64_t phases[STEP_PHASE_COUNT];
    uint64_t modifies[MODIFY_KIND_COUNT];
    uint64_t handoffs[HANDOFF_KIND_COUNT];
    uint64_t fallbacks[FALLBACK_ACTION_COUNT];
    uint64_t stops[STEP_STOP_COUNT];
    uint64_t outcomes[PLAN_OUTCOME_COUNT];
    uint64_t lives[LIFE_COUNT][LIFE_COUNT];
};

struct world {
    const struct scenario *scenario;
    struct coverage *seen;
    const struct plan *plans[WORLD_PLANS];
    struct made_plan *made;
    uint32_t n_plans;
    struct core_config config;
    struct core *core;
    void *blocks[2];
    struct run *shadow; /* from the records alone */
    struct run *before; /* the shadow before the event in hand */
    struct run *spare;
    struct situation at;
    struct commands out;
    struct world_event doing;
    struct request about;      /* that the event answers */
    uint64_t usage;            /* in the records of this event */
    const struct plan *coming; /* with the event; NULL: none */
    uint32_t coming_at;
};

struct world *world_new(const struct scenario *scenario, struct coverage *seen);
void world_free(struct world *w);
size_t world_size(const struct world *w); /* of the largest snapshot */
void world_save(const struct world *w, unsigned char *snapshot);
void world_load(struct world *w, const unsigned char *snapshot);
const struct plan *world_plan(const struct world *w);
uint32_t world_agent(const struct world *w, uint32_t body);
uint32_t world_body_of(const struct uuid *id);
struct uuid world_id(uint32_t body);
/* Lets it happen. False when a rule was broken; *ret_why says which. */
bool world_do(struct world *w, const struct world_event *ev, const char **ret_why);

/* ---- world_events.c ---- */
/* What can happen next, first what happens when all goes well. Returns the number. */
uint32_t world_events(const struct world *w, struct world_event *ret);
void world_event_text(const struct world *w, const struct world_event *ev, char *buf, size_t size);
/* The budget's counter of an event; NULL when it is free. */
uint8_t *world_counter(struct budget *left, const struct world_event *ev);

/* ---- world_plan.c ---- */
/* The next revision: an index into plans, or UINT32_MAX when it would have too many steps. */
uint32_t world_change(struct world *w, enum world_change change, uint32_t step);
void world_plans_free(struct world *w);

/* ---- world_told.c, world_told_plan.c, world_rules.c ---- */
#define RULE(cond, why)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            *ret_why = (why);                                                                      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)
typedef bool taker(struct world *w, const struct record *rec, const char **ret_why);
taker world_take_generated, world_take_plan_started, world_take_modified, world_take_paused,
    world_take_voided, world_take_resumed, world_take_cancelling, world_take_plan_completed;
/* The plan is another one than a person approved, or is asked about. */
void world_changed(struct world *w);
/* The same on the replayed run. */
taker world_replay;
/* One record of the plan: the rules of its order, the second opinion, the replay. */
/* Whether an instance is told in this turn to stop the attempt or question that it has. */
bool world_told_to_stop(const struct world *w, uint32_t step);
/* ---- world_wait.c ---- */
taker world_take_wait_started, world_take_signal;
/* The step's end: by its time, its date or its signal. */
bool world_slept_rightly(struct world *w, const struct record *rec, const char **ret_why);
bool world_take_called(struct world *w, const struct core_cmd *cmd, const char **ret_why);
/* The letter of the signal that the step sleeps for; 0 = for none. */
uint8_t world_sleeps_for(const struct world *w, uint32_t step);
/* The serial of the oldest that is kept; 0 = none is. */
uint32_t world_kept(const struct world *w, uint8_t name);
void world_wait_translate(struct world *w, const struct world_event *ev, struct flat_event *out);
msec world_wall(const struct world *w);
/* What may be said to steps that wait; at most `room` of them. Returns the number. */
uint32_t world_wait_events(const struct world *w, struct world_event *ret);
/* Nothing that waits is overdue. */
bool world_waits_hold(const struct world *w, const char **ret_why);
/* ---- world_told.c ---- */
/* ---- world_child.c ---- */
taker world_take_child, world_take_round, world_take_turn;
bool world_take_child_command(struct world *w, const struct core_cmd *cmd, const char **ret_why);
/* Whether the event is about the newest child of its step, and that has not ended. */
bool world_child_ends(const struct world *w, const struct world_event *ev);
/* Whether a step may complete by the event. */
bool world_child_completes(const struct world *w, const struct record *rec, const char **ret_why);
/* A child plan is under way: its end will come. */
bool world_child_out(const struct world *w);
/* attempt | round << 8 */
uint16_t world_child_of(const struct told *told);
bool world_take_condition_asked(struct world *w, const struct core_cmd *cmd, const char **ret_why);
bool world_take_record(struct world *w, const struct record *rec, const char **ret_why);
/* Reads the commands of one event: the shell's side of them, and the rules. */
bool world_take(struct world *w, const char **ret_why);

/* ---- world_job.c ---- */
taker world_take_planning, world_take_synthesis_started, world_take_text,
    world_take_synthesis_ended;
/* ---- world_undo.c ---- */
taker world_take_undo, world_take_undone;
/* CMD_COMPENSATE. */
bool world_take_compensate(struct world *w, const char **ret_why);
/* The plan ends like this, so what it did is to be undone. */
bool world_wants_undo(const struct world *w, enum plan_status end);
/* Whether the plan has anything that could be undone. */
bool world_may_undo(const struct world *w);
/* ---- world_job.c ---- */
/* Of PLAN_GENERATED: what of a job it ends. */
taker world_take_planned;
/* ---- world_rules.c ---- */
/* The step failed for good, and by its policy so does the plan. */
bool world_step_fails_plan(const struct world *w, uint32_t step);
/* There is such a step. */
bool world_is_failed(const struct world *w);
/* ---- world_job.c ---- */
/* The plan ends as was decided, and with an answer when it wants one. */
bool world_answered_rightly(const struct world *w, const struct record *rec, const char **ret_why);
bool world_take_job(struct world *w, const struct core_cmd *cmd, const char **ret_why);
bool world_job_holds(const struct world *w, const char **ret_why);
/* The event has an effect of its own (or none at all: it was rejected). */
bool world_job_said(const struct world *w);
/* What may be said about the plan's jobs; at most `room` of them. Returns the number. */
uint32_t world_job_events(const struct world *w, struct world_event *ret);
void world_job_translate(struct world *w, const struct world_event *ev, struct flat_event *out);
/* How the plan ends by the steps as they stand. */
bool world_ended_rightly(const struct world *w, const struct record *rec, const char **ret_why);
/* The revision is coming with the event. */
void world_bring(struct world *w, struct flat_event *out, uint32_t plan);

/* ---- world_hash.c ---- */
/* Equal for states that differ only in the time of day and in counters that decide nothing. */
uint64_t world_hash(const struct world *w);
#endif
