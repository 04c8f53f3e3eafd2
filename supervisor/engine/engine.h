/*
 * The engine room: what the supervisor says to clients and agents and what they say to it. A thin
 * shell around the core: requests and lane answers become core events, commands become journal
 * rows, answers, dispatches and publications.
 *
 * One cycle:   engine_begin -> engine_on_link / engine_feed ... -> engine_end
 * engine_end commits every row of the cycle at once and only then answers, dispatches and publishes
 * (nothing is said before its cause is durable). All calls come from the loop thread.
 */
#ifndef ENGINE_BUS_H
#define ENGINE_BUS_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/base/map.h"
#include "protocol/link/link.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/dispatch/verify.h"
#include "supervisor/engine/blob_cache.h"
#include "supervisor/engine/process.h"
#include "supervisor/engine/session_slots.h"
#include "supervisor/engine/step_notes.h"
#include "supervisor/journal/journal.h"
#include "supervisor/plan/plan_read.h"
#include "supervisor/query/agent_stats.h"

enum {
    ENGINE_PARKED_MAX = 64,
    ENGINE_CONTROL_QUEUE = 130,
    ENGINE_CYCLE_EVENTS = 256,
    ENGINE_RUNS_SPARE = 64
};

/* What tokens cost of an agent that tells no cost ("*": of every one without a price of its own):
 * millionths of the currency per token. */
struct token_price {
    const char *agent_id;
    double input, output, cached;
};

struct engine_options {
    struct str token;
    const char *state_dir;
    const char *control_url; /* where to listen; port 0 = any */
    const char *events_url;
    enum durability durability;
    struct plan_defaults defaults;
    const char *planner;
    const struct token_price *prices;
    uint32_t n_prices;
    msec heartbeat_ms;
    msec lease_ms;
    msec agent_wait_ms;
    msec cancel_grace_ms;
    uint32_t plans_max;
    uint32_t agents_max;
    uint32_t instances_max;
    uint32_t result_max; /* bytes of one result; at most LIMIT_RESULT_BYTES */
    /* Attempts and questions that are out at the same time; 0 = no limit. */
    uint32_t in_flight, in_flight_agent, in_flight_session;
    uint32_t breaker_failures; /* as in struct registry_limits; 0 = no breakers */
    msec breaker_cooldown_ms, breaker_cooldown_max_ms;
};

/* An open plan: everything it owns, by the slot of its run. */
struct open_plan {
    uint64_t run;      /* 0 = free */
    uint64_t ix;       /* the journal's number */
    uint64_t plan_seq; /* of the last public record */
    bool recovered;    /* from the journal, and nothing has happened to it since */
    char id[UUID_TEXT_LEN + 1];
    struct uuid parent; /* of a retry or a fork; nil = none. Known until it is in the rows */
    struct plan *plan;  /* plan_pack's */
    void *block;
    struct blob_ref document; /* of the newest revision; id 0: the one in the plan's row */
    struct step_notes notes;
    uint32_t session;   /* number in engine.sessions, or SESSION_SLOT_NONE */
    struct job *job;    /* NULL: this plan is none */
    uint64_t asked;     /* the run of the job that it waits for; 0 = none */
    struct str failure; /* the whole error that it will have failed with; own memory */
};

/* A new revision of an open plan on its way into the core: with CORE_REVISE, or with the
 * CORE_RESULT of a replan. */
struct new_revision {
    struct plan *plan; /* plan_pack's */
    void *block;
    struct blob_ref document;
};

enum lane_state {
    LANE_CONNECTING, /* no pipe */
    LANE_GREETING,   /* lane.hello sent */
    LANE_READY,
    LANE_BUSY /* a step, or on the control lane a query or cancel, is outstanding */
};

enum control_kind { CONTROL_QUERY, CONTROL_CANCEL, CONTROL_PING };

struct control_item {
    enum control_kind kind;
    uint64_t run;
    uint32_t step;
    enum step_phase phase;
    uint32_t attempt;
    char key[LIMIT_KEY_BYTES + 1];
};

struct lane {
    struct link_lane *link; /* NULL = not used */
    struct lane_instance *instance;
    uint32_t ix; /* 0 .. capacity-1, or REGISTRY_CONTROL_LANE */
    enum lane_state state;
    bool mute;                /* answered garbage: not greeted again before its next pipe */
    bool cancelled;           /* its attempt was cancelled: heartbeats repeat the order */
    struct control_item item; /* what is outstanding, on work lanes the attempt */
};

/* One incarnation of one instance. Its lanes are retired together. */
struct lane_instance {
    uint32_t slot;
    uint64_t epoch;
    uint32_t agent;
    uint32_t capacity;
    uint32_t pid;
    enum wire_form form; /* what it registered in is what it is spoken to in */
    char id[LIMIT_ID_BYTES + 1];
    char endpoint[257];
    char session_key[129];
    struct lane lanes[LIMIT_CAPACITY + 1]; /* [capacity] is the control lane */
    struct control_item queue[ENGINE_CONTROL_QUEUE];
    uint32_t queue_at, queue_n;
    bool pinged;  /* a ping is queued or out: another one would say the same */
    msec opened;  /* when it registered */
    bool reached; /* a work lane of it was greeted once */
};

struct agent_card {
    struct arena arena;
    struct msg_card card;
    uint64_t hash; /* of its bytes: the same card is not copied again */
    struct verify_outputs outputs;
    uint64_t requests, errors;
    struct agent_stats agent_stats; /* since the daemon started */
};

struct parked_read {
    uint64_t request; /* 0 = free */
    enum wire_form form;
    char id[65];
    msec deadline;
    uint64_t from_seq;
    uint32_t limit;
    uint64_t plan_ix;
    char types[512]; /* space separated, "" = all */
};

/* What to do once the cycle's rows are durable. */
enum effect_type { EFFECT_ANSWER, EFFECT_PUBLISH, EFFECT_COMMAND };
struct effect {
    enum effect_type type;
    uint64_t request;
    size_t at, len;             /* bytes in engine.out */
    size_t topic_at, topic_len; /* PUBLISH */
    struct core_cmd cmd;        /* COMMAND; text points into the cycle's arena */
};

struct engine_stats {
    uint64_t cycles, commits, records, published, requests, refused_busy, plans_done,
        steps_dispatched, steps_retried, results_rejected, fallbacks, replans;
};

struct job;
struct job_end;
struct job_news;

struct engine {
    struct engine_options opt;
    uint32_t runs_max; /* open plans, a job of each, and a few that no plan waits for */
    struct process_hooks processes; /* set after engine_init */
    struct core *core;
    struct registry *registry;
    struct journal *journal;
    struct link *link;
    struct link_server *server;
    struct link_pub *pub;
    struct blob_cache cache;
    msec now, wall; /* of this cycle */
    msec started_mono, started_wall;

    struct open_plan *plans; /* by run slot */
    struct open_plan *ended; /* ended in this cycle, their slot given to another already */
    uint32_t ended_n, ended_cap;
    struct map plan_by_id;            /* upper-case id -> slot */
    struct session_slots sessions;    /* of the open plans */
    struct lane_instance **instances; /* by registry slot */
    struct agent_card *cards;         /* by agent index */

    struct job_news *news; /* of jobs, of this cycle: see job.c */
    uint32_t news_n, news_cap;
    uint32_t jobs, asking; /* open ones; plans that wait for one of them */
    /* A session's job has ended; NULL = nobody listens. */
    void (*conversation_job_over)(struct engine *engine, const struct job *e,
                                  const struct job_end *end);

    struct commands commands;
    struct effect *effects;
    uint32_t effects_n, effects_cap;
    struct buf out;        /* bytes of this cycle's answers and events */
    struct buf row, topic; /* of the record being encoded */
    struct arena cycle;
    struct arena assignment;  /* of the step being dispatched */
    struct core_event *later; /* found after the commit; fed at the start of the next cycle */
    uint32_t later_n, later_cap;
    struct arena later_arena; /* their texts */
    bool failed;              /* the journal is dead; `fatal` says why */
    struct bt_error fatal;

    struct open_plan *pending; /* handed to the next CORE_SUBMIT or CORE_RECOVER: bound to the run's
                                 slot by engine_feed */
    struct new_revision *revision; /* handed to the next CORE_REVISE or CORE_RESULT: taken over by
                                      engine_feed when the core accepts it */
    struct parked_read parked[ENGINE_PARKED_MAX];
    uint32_t parked_n;
    msec heartbeat_at;
    struct uuid registered[64]; /* instances that registered in this cycle: the spawner's children
                                   are ready */
    uint32_t registered_n;
    bool draining; /* no new plans */
    bool stop_asked;
    struct engine_stats stats;
};

/* Opens the sockets. The journal and the link stay the caller's. */
BT_MUST_CHECK enum bt_code engine_init(struct engine *engine, const struct engine_options *opt,
                                       struct journal *journal, struct link *link,
                                       struct bt_error *err);

void engine_begin(struct engine *engine, msec now, msec wall);
/* Takes one event of the link; frees its message. */
void engine_on_link(struct engine *engine, struct link_event *ev);
/* One event through the core. Fills in now and wall. BT_IO: the journal is dead, stop. *ret_run
 * (may be NULL): the run of the first record. REJECT_NONE when it was not refused. */
BT_MUST_CHECK enum bt_code engine_feed(struct engine *engine, struct core_event *ev,
                                       enum core_reject *ret_reject, uint64_t *ret_run,
                                       struct bt_error *err);
/* Ticks what is due, commits, performs. BT_IO as above. */
BT_MUST_CHECK enum bt_code engine_end(struct engine *engine, struct bt_error *err);
/* When the next cycle is due without any event. */
msec engine_deadline(const struct engine *engine);
/* Enough answers wait in memory: end the cycle before more requests are taken. */
bool engine_is_full(const struct engine *engine);
/* The first failure of this cycle's journal writes; the cycle ends with it. */
void engine_fail(struct engine *engine, const struct bt_error *why);

/* ---- within the room ---- */

/* recover.c: every open plan of the journal goes on. *ret_n = how many. */
BT_MUST_CHECK enum bt_code engine_recover(struct engine *engine, uint64_t *ret_n,
                                          struct bt_error *err);

/* plans.c */
struct open_plan *open_plan_of_run(struct engine *engine, uint64_t run);
struct open_plan *open_plan_by_id(struct engine *engine, struct str id);
/* Zeroed memory for the plan's run; NULL when out of memory. */
void *open_plan_block(const struct plan *plan);
/* Moves engine->pending into the slot of its run. */
void open_plan_bind(struct engine *engine, uint64_t run);
void open_plan_done(struct open_plan *p);
/* Keeps what a record says that neither the run nor its notes hold; live and at a recovery. */
void open_plan_keep(struct open_plan *p, const struct record *rec, const struct plan *revised);
/* The sentence about its end that begins with the text, or the text when it is no longer. */
struct str open_plan_failure(const struct open_plan *p, struct str text);
/* What the agent asks of a person; empty when it says nothing. */
struct str open_plan_prompt(const struct open_plan *p, uint32_t step);
/* What a person decides about the plan as a whole. */
enum review_kind open_plan_review(const struct open_plan *p);
/* Puts the revision in the place of the plan's plan and block, and what was there before into
 * *revision. */
void open_plan_revise(struct open_plan *p, struct new_revision *revision);
void new_revision_done(struct new_revision *r);
/* The session's number for the core, and its end. */
void open_plan_session(struct engine *engine, struct open_plan *p);
void open_plan_session_drop(struct engine *engine, struct open_plan *p);
void open_plan_remove(struct engine *engine, uint64_t run);
/* Text of a stored result ({text, data}) into out, at most max bytes of it (0 = all). */
BT_MUST_CHECK enum bt_code engine_result_text(struct engine *engine, struct blob_ref ref,
                                              size_t max, struct buf *out, bool *ret_cut,
                                              struct bt_error *err);
/* Bytes of a stored result; valid until the cache changes. */
BT_MUST_CHECK enum bt_code engine_result_doc(struct engine *engine, struct blob_ref ref,
                                             struct doc *ret, struct bt_error *err);

/* aggregate_text.c: the plan's answer as one text (M080), cut with a marker when it is too large */
BT_MUST_CHECK enum bt_code aggregate_text(struct engine *engine, const struct plan *plan,
                                          const struct run *run, enum plan_status end,
                                          struct buf *out, struct bt_error *err);

/* records.c: journal row and publication of one record */
BT_MUST_CHECK enum bt_code engine_record(struct engine *engine, const struct record *rec,
                                         struct bt_error *err);
BT_MUST_CHECK enum bt_code engine_system_record(struct engine *engine, enum record_type type,
                                                struct str reason, uint64_t recovered,
                                                struct bt_error *err);

/* effects.c */
struct effect *engine_effect(struct engine *engine, enum effect_type type);
/* A copy of text that lives until the cycle has been performed. */
struct str engine_cycle_text(struct engine *engine, struct str text);
void engine_perform(struct engine *engine);
/* Feeds ev in the next cycle (which comes at once); its text is copied. */
void engine_later(struct engine *engine, const struct core_event *ev);

/* A request being answered. */
struct request {
    uint64_t handle;
    struct msg_reader reader;
    struct msg_envelope env;
    size_t bytes;         /* as it came */
    enum msg_type answer; /* its type, from messages.def */
    bool answered;
};
void request_answer(struct engine *engine, struct request *rq, enum msg_type type,
                    const void *body);
/* The same, but says when the answer is too large instead of refusing: the request is then still to
 * be answered. */
BT_MUST_CHECK enum bt_code request_try_answer(struct engine *engine, struct request *rq,
                                              enum msg_type type, const void *body,
                                              struct bt_error *err);
/* retry_after_ms 0: none, but for BUSY and UNAVAILABLE, which always say when to come again. */
void request_refuse(struct engine *engine, struct request *rq, const struct bt_error *why,
                    enum err_class cls, uint64_t retry_after_ms, struct doc details);
void request_refuse_text(struct engine *engine, struct request *rq, enum bt_code code,
                         const char *fmt, ...) BT_PRINTF(4, 5);

/* control.c routes; one function per type in control_agent.c, control_plan.c, request_read.c,
 * control_ops.c */
void api_on_request(struct engine *engine, uint64_t handle, struct str bytes);
/* The live instance that a request speaks for; NULL after refusing. */
struct lane_instance *api_speaker(struct engine *engine, struct request *rq, struct str instance_id,
                                  uint64_t epoch);
/* request_read.c: answers parked reads that have something now, or whose time is over */
void api_answer_parked_reads(struct engine *engine, bool all);

/* lanes.c: the pipes of an instance */
BT_MUST_CHECK enum bt_code lanes_open(struct engine *engine, const struct lane_instance *proto,
                                      struct bt_error *err);
void lanes_close(struct engine *engine, uint32_t slot, uint64_t epoch);
void lanes_on_link(struct engine *engine, struct link_event *ev);
struct lane_instance *lanes_instance(struct engine *engine, uint32_t slot, uint64_t epoch);
void lanes_control(struct engine *engine, const struct core_cmd *cmd, enum control_kind kind);
/* agent.ping on the control lane; CORE_PROBED says whether it was answered. */
void lanes_probe(struct engine *engine, const struct core_cmd *cmd);

/* keys.c */
enum { TRACEPARENT_LEN = 55 };
void step_key(const struct plan *plan, uint32_t step, enum step_phase phase,
              char ret[LIMIT_KEY_BYTES + 1]);
/* Finds what a key that the instance names stands for; false when no open plan has it. */
bool key_find(struct engine *engine, const struct lane_instance *by, struct str key,
              uint64_t *ret_run, uint32_t *ret_step, enum step_phase *ret_phase);
/* W3C trace context: the plan is the trace, what is asked of an agent a span. */
void step_traceparent(const struct plan *plan, uint32_t step, enum step_phase phase,
                      uint32_t attempt, char ret[TRACEPARENT_LEN + 1]);

/* dispatch.c: steps out */
void dispatch_step(struct engine *engine, const struct core_cmd *cmd);
/* results.c: results in. ev->phase, slot, epoch, instance and lane (LANE_NONE: it came as a
 * request) are the caller's. */
enum core_reject results_take(struct engine *engine, const struct msg_step_result *m, uint64_t run,
                              uint32_t step, struct core_event *ev);
#endif
