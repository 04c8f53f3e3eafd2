/*
 * The engine: the shell around the core. Requests and lane answers become core events; the core's
 * commands become journal rows, answers, dispatches and publications.
 *
 *     engine_begin -> engine_on_link, engine_feed ... -> engine_end          (one cycle)
 *
 * engine_end commits every row of the cycle at once. Only then are requests answered, steps
 * dispatched and events published: nothing leaves before its cause is committed. All calls come
 * from the loop thread. The rooms above are called through struct engine_hooks alone.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/link/link.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/engine/result_text.h"
#include "supervisor/journal/journal.h"
#include "supervisor/plan/read.h"

enum {
    /* Events of the link that one cycle takes: answers do not wait for more than these. */
    ENGINE_CYCLE_EVENTS = 256,
    /* Requests in hand at the same time; a further one waits in its connection. */
    ENGINE_CONTEXTS = 256,
    ENGINE_REMOTE_CONTEXTS = 96 /* of these: reads that wait hold up to API_PARKED_MAX */
};

struct engine;
struct open_plan;
struct new_revision;

/* The price of an agent's tokens when it reports no cost ("*": of every agent without a price of
 * its own): millionths of the currency per token. */
struct token_price {
    const char *agent_id;
    double input, output, cached;
};

struct sessions;
struct auth_store;

struct audit;
/* A rule of the configuration: of a key, or of an agent. Borrowed. */
struct engine_rule {
    const char *name;
    bool of_key;
    uint32_t max; /* places of a key; 0 = no limit */
    uint32_t n;   /* starts in per_ms; 0 = no rate */
    msec per_ms;
};

struct engine_options {
    struct str token;
    bool auth_required;             /* the token opens nothing */
    struct sessions *sessions;      /* NULL: no request is sealed */
    struct auth_store *credentials; /* NULL: none */
    const char *state_dir;
    struct audit *audit;         /* NULL = nothing is recorded */
    const char *artifact_root;   /* of the files of results; NULL = there are none */
    uint64_t artifact_max_bytes; /* of one that comes over the wire; 0 = no limit */
    const char *control_url; /* where to listen; port 0 = any, `auto` = of the state directory */
    const char *events_url;
    /* For other hosts, with TLS; NULL or "" = none. */
    const char *remote_url;
    const char *remote_cert, *remote_ca;
    uint16_t lane_first, lane_last; /* ports of lanes for them; 0 = any */
    enum durability durability;
    struct plan_defaults defaults;
    const char *planner;
    const struct token_price *prices;
    uint32_t n_prices;
    const char *const *agent_endpoints; /* of agents, beside tcp on a loopback address; "*" ends a
                                           prefix */
    uint32_t n_agent_endpoints;
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
    const struct engine_rule *rules; /* of concurrency keys and rates */
    uint32_t n_rules;
    uint32_t shard, shards; /* of a fleet; shards 0: none, and ids are only random */
    struct uuid instance;   /* of this start of the daemon */
    const char *fleet_map; /* file: who leads each shard, JSON of a fleet.map.ok; NULL = only one */
    uint32_t breaker_failures; /* as in struct registry_limits; 0 = no breakers */
    msec breaker_cooldown_ms, breaker_cooldown_max_ms;
};

/* Counted since the daemon started. */
struct engine_stats {
    uint64_t cycles, commits, commit_us, records, published, requests, refused_busy, plans_done,
        steps_retried, results_rejected, fallbacks, replans;
    /* Cycles by the processor time that they took; each counts in every row that it exceeds. */
    uint64_t cycles_over_5ms, cycles_over_20ms, cycles_over_100ms, longest_cycle_us;
};

struct dispatch;
struct api;
struct retention;
struct sweep;
struct schedules;
struct projections;

/*
 * What the engine calls upward. The daemon fills it in; every pointer must be set. The states
 * belong to the rooms of their names: dispatch_of and api_of find them again, and the daemon's own
 * hooks.
 */
struct engine_hooks {
    struct dispatch *dispatch;
    struct api *api;
    struct sweep *sweep;             /* of supervisor/artifacts */
    struct retention *retention;     /* of supervisor/retention */
    struct schedules *schedules;     /* of supervisor/schedule */
    struct projections *projections; /* of query; NULL = none are kept between reads */
    /* Takes one request of a client or an agent. It is answered exactly once, now or later. The
     * bytes are valid in this call, unless engine_put_off keeps them. */
    void (*on_request)(struct engine *engine, uint64_t handle, struct str bytes);
    /* The same while the journal waits for its server (engine_meanwhile): it is answered in this
     * call, without the journal and the core. */
    void (*on_request_meanwhile)(struct engine *engine, uint64_t handle, struct str bytes);
    /* Takes an event of a lane. Its message stays the caller's. */
    void (*on_lane_event)(struct engine *engine, struct link_event *ev);
    /* Carries out a command about an agent, after the commit of the cycle that decided it. */
    void (*perform)(struct engine *engine, const struct core_cmd *cmd);
    /* All commands of the cycle were carried out. */
    void (*performed)(struct engine *engine);
    /* Notes that a plan asks for a job or calls it off (CMD_JOB, CMD_JOB_STOP); `settle` acts. */
    void (*on_job_command)(struct engine *engine, const struct core_cmd *cmd);
    /* Sees a record of a job after its row was written, before the commit. */
    void (*on_job_record)(struct engine *engine, const struct open_plan *job,
                          const struct record *rec);
    /* An agent registered or its last word was heard: it is remembered in the open batch. Fails
     * only when the journal does. NULL = none is. */
    enum bt_code (*agent_remember)(struct engine *engine, uint32_t agent, struct bt_error *err);
    /* Adds the agents that are remembered to the registry, as not seen. NULL = none is. */
    enum bt_code (*agents_recall)(struct engine *engine, struct bt_error *err);
    /* Counts, for the record's agent, the end of a step or of an attempt, in the same place. */
    void (*on_attempt_over)(struct engine *engine, const struct record *rec);
    /* Does what the job commands and records of the cycle lead to, before the commit; not called in
     * a cycle without any. False: they led to nothing. */
    bool (*settle)(struct engine *engine);
    /* After a recovery: ties the jobs that go on to the plans that wait for them. */
    void (*jobs_recovered)(struct engine *engine);
    /* Appends the task of a step as its agent gets it, with the values of its templates. False: it
     * cannot be made now. */
    bool (*step_task)(struct engine *engine, const struct open_plan *p, uint32_t step,
                      struct buf *out);
    /* Writes what the end of a plan means for its turn, after the plan's last row and in the same
     * commit. summary: the plan's answer; not_done: bytes at its end that name what was not done.
     * Fails only when the journal does. */
    enum bt_code (*plan_ended)(struct engine *engine, const struct open_plan *p,
                               const struct record *rec, struct str summary, size_t not_done,
                               struct bt_error *err);
    /* Stores what an open review shows, for the row of its decision; *ret stays as it is when it
     * is too large. Fails only when the journal does. */
    enum bt_code (*review_shown)(struct engine *engine, const struct open_plan *p, uint32_t step,
                                 struct blob_ref *ret, struct bt_error *err);
    /* After jobs_recovered: ends the turns whose plan or job did not come back. */
    enum bt_code (*turns_recovered)(struct engine *engine, struct bt_error *err);
    /* Answers the requests that wait for rows, after the commit; not called when engine_set_waiting
     * named none. committed: the cycle wrote rows. */
    void (*after_commit)(struct engine *engine, bool committed);
    /* Reads the configuration again; file empty = the one of the start. Writes at most `max`
     * changes whose texts are valid until the cycle has been performed. BT_INVALID: err has all
     * problems. */
    enum bt_code (*reload)(struct engine *engine, struct str file, bool check,
                           struct msg_setting_change *ret, uint32_t max, uint32_t *ret_n,
                           struct bt_error *err);
    struct reload *reload_of; /* of supervisor/reload */
};

/* Opens the sockets. The journal and the link stay the caller's, and outlive the engine. */
BT_MUST_CHECK enum bt_code engine_new(const struct engine_options *opt, struct journal *journal,
                                      struct link *link, struct engine **ret, struct bt_error *err);
/* Before the first cycle. */
void engine_set_hooks(struct engine *engine, const struct engine_hooks *hooks);
/* Frees the engine and its plans, for tests: a daemon just ends. The sockets are the link's. */
void engine_free(struct engine *engine);

/* ---- the cycle ---- */
void engine_begin(struct engine *engine, msec now, msec wall);
/* Takes one event of the link; frees its message. */
void engine_on_link(struct engine *engine, struct link_event *ev);
/*
 * From within a call of the journal that waits for its server: takes what the link has. Requests
 * are answered now, and most of them refused; what lanes bring waits for the next cycle.
 */
void engine_meanwhile(struct engine *engine);
/* Whether it is within that call. */
bool engine_is_away(const struct engine *engine);
/* How long it has waited, ms; 0 = it does not. */
msec engine_away_ms(const struct engine *engine);
/* The request in hand is answered when the journal is back, not now. False: too many wait so. */
bool engine_answer_later(struct engine *engine);
/* Whether this daemon still owns its journal, as far as it may ask (journal_keep). False: the next
 * engine_end reports why. */
bool engine_keep(struct engine *engine);
/* Ticks what is due, commits, performs. BT_IO: the journal is dead, stop. */
BT_MUST_CHECK enum bt_code engine_end(struct engine *engine, struct bt_error *err);
/* When the next cycle is due without any event. */
msec engine_deadline(const struct engine *engine);
/* Enough answers wait in memory: end the cycle before more requests are taken. */
bool engine_is_full(const struct engine *engine);
/* The first failure of this cycle's journal writes; the cycle ends with it. */
/* How many lanes all instances together may have, by the limit of open files: a quarter, as each is
 * a descriptor. */
uint32_t engine_lanes_max(void);
void engine_fail(struct engine *engine, const struct bt_error *why);
bool engine_has_failed(const struct engine *engine);
/* In the first cycle: every open plan of the journal goes on. *ret_n = how many. */
BT_MUST_CHECK enum bt_code engine_recover(struct engine *engine, uint64_t *ret_n,
                                          struct bt_error *err);

/* ---- feeding the core ----
 * Each of these gives the core one event, whose now and wall it fills in, and writes the records.
 * A failure is the journal's (BT_IO): the caller passes it to engine_fail. *ret_reject, which may
 * be NULL, is REJECT_NONE when the core accepted the event. */
BT_MUST_CHECK enum bt_code engine_feed(struct engine *engine, struct core_event *ev,
                                       enum core_reject *ret_reject, struct bt_error *err);
/* The same, of an event that the core may refuse: what keeps it from being recorded is the
 * journal's failure (engine_fail). */
void engine_tell(struct engine *engine, struct core_event *ev);
/*
 * CORE_SUBMIT, CORE_RECOVER. Accepted: the engine takes the plan over and leaves *plan empty.
 * Otherwise *plan is as it was. The caller calls open_plan_done(plan) in every case. document: of
 * the plan, when the caller has it in hand; it is not read back then.
 */
BT_MUST_CHECK enum bt_code engine_submit(struct engine *engine, struct core_event *ev,
                                         struct open_plan *plan, struct doc document,
                                         enum core_reject *ret_reject, struct bt_error *err);
/*
 * The events that may bring a new revision. Accepted: the revision takes the place of the plan's,
 * which *revision then holds. Otherwise *revision is as it was. The caller calls
 * new_revision_done(revision) in every case.
 */
BT_MUST_CHECK enum bt_code engine_revise(struct engine *engine, struct core_event *ev,
                                         struct new_revision *revision,
                                         enum core_reject *ret_reject, struct bt_error *err);
/* CORE_REGISTER. Where the instance is now; *ret_slot is REGISTRY_NONE when it was rejected. */
BT_MUST_CHECK enum bt_code engine_register(struct engine *engine, struct core_event *ev,
                                           uint32_t *ret_slot, uint64_t *ret_epoch,
                                           enum core_reject *ret_reject, struct bt_error *err);
/* The address of the client whose request is in hand, "127.0.0.1:4711"; empty when it has none.
 * Valid until the next request. */
struct str engine_request_peer(struct engine *engine);
/* Its connection (link_msg_pipe); 0 = none. */
uint32_t engine_request_pipe(const struct engine *engine);
/* The table of sessions asks the control sockets about connections from now on, and ends them. */
void engine_watch_sessions(struct engine *engine);
/* From now on the request of this sender is in hand: what it may see, and on whose order records
 * are written. NULL: none is. Valid until the next call. */
struct identity;
void engine_act_for(struct engine *engine, const struct identity *who);
/* Records are written on the order of this credential, whose request is over. "" = of nobody. */
void engine_act_by(struct engine *engine, struct str id);
/* NULL: no request is in hand. */
const struct identity *engine_who(const struct engine *engine);
/* The request in hand waits for its turn: the caller has its message now, and passes it to
 * engine_take_up once, in whose call it is in hand again. */
struct link_msg *engine_put_off(struct engine *engine);
void engine_take_up(struct engine *engine, struct link_msg *msg, uint64_t handle,
                    void (*fn)(struct engine *engine, uint64_t handle, struct str bytes));
/* How many requests wait for rows, and when the wait of the first one is over. */
void engine_set_waiting(struct engine *engine, uint32_t n, msec deadline);
/* Feeds ev in the next cycle (which comes at once); its text is copied. */
void engine_later(struct engine *engine, const struct core_event *ev);

/* The daemon applies input of this run's plan from now on, 0 = of none: it is the suspect when the
 * daemon crashes (G23). Returns what was before, which the caller gives back at the end. */
uint64_t engine_applies(struct engine *engine, uint64_t run);

/* ---- stored results ---- */
/* Stores a result in this cycle and keeps it in memory. */
BT_MUST_CHECK enum bt_code engine_result_store(struct engine *engine, const struct buf *bytes,
                                               struct blob_ref *ret, struct bt_error *err);
/* Text of a stored result ({text, data}) into out, at most max bytes of it (0 = all). */
BT_MUST_CHECK enum bt_code engine_result_text(struct engine *engine, struct blob_ref ref,
                                              size_t max, struct buf *out, bool *ret_cut,
                                              struct bt_error *err);
/* The same, cut at the boundary of a value. */
BT_MUST_CHECK enum bt_code engine_result_cut(struct engine *engine, struct blob_ref ref, size_t max,
                                             struct buf *out, struct result_cut *ret,
                                             struct bt_error *err);
/* Bytes of the whole text. */
BT_MUST_CHECK enum bt_code engine_result_length(struct engine *engine, struct blob_ref ref,
                                                uint64_t *ret, struct bt_error *err);
/* Bytes of a stored result; valid until another result is stored or read. */
BT_MUST_CHECK enum bt_code engine_result_doc(struct engine *engine, struct blob_ref ref,
                                             struct doc *ret, struct bt_error *err);
/* The result is not read again soon: drops it from memory. */
void engine_result_forget(struct engine *engine, struct blob_ref ref);

/* ---- rows that no record of the core asks for ---- */
struct record_extra;
/* The row and the publication of a record about no plan; fills in seq and event_id. */
BT_MUST_CHECK enum bt_code engine_write_record(struct engine *engine, const struct record *rec,
                                               struct record_extra *x, struct bt_error *err);
/* What an answer has used that came after its plan's end: a row of the plan. Fills in the record's
 * type, step and time. */
BT_MUST_CHECK enum bt_code engine_record_late(struct engine *engine, struct uuid plan_id,
                                              struct record *rec, struct bt_error *err);
/* The events of this cycle in order, which no reader of the journal sees yet; fn false: stop. */
void engine_cycle_events(const struct engine *engine, bool (*fn)(struct doc body, void *self),
                         void *self);
/* The daemon starts or stops. */
BT_MUST_CHECK enum bt_code engine_system_record(struct engine *engine, enum record_type type,
                                                struct str reason, uint64_t recovered,
                                                struct bt_error *err);

/* ---- what it has ---- */
msec engine_now(const struct engine *engine); /* of this cycle; monotonic */
msec engine_wall(const struct engine *engine);
msec engine_started(const struct engine *engine); /* monotonic */
msec engine_started_wall(const struct engine *engine);
struct core *engine_core(const struct engine *engine);
struct registry *engine_registry(const struct engine *engine);
struct journal *engine_journal(const struct engine *engine);
const struct engine_options *engine_options(const struct engine *engine);
const struct engine_hooks *engine_hooks(const struct engine *engine);
const struct engine_stats *engine_stats(const struct engine *engine);
/* The cycle took so much processor time. */
void engine_cycle_took(struct engine *engine, uint64_t us);
/* Memory that is freed when the cycle has been performed. */
struct arena *engine_cycle_arena(struct engine *engine);
struct str engine_cycle_text(struct engine *engine, struct str text);
/* For a plan or a turn: in a fleet it has the shard. */
struct uuid engine_new_id(const struct engine *engine);
/* The addresses in use, with their ports. */
const char *engine_control_url(const struct engine *engine);
/* "" with auth_required: followers read events, which are filtered and sealed. */
const char *engine_events_url(const struct engine *engine);
/* "" = no other host is served. */
const char *engine_remote_url(const struct engine *engine);
/* Whether the request came from another host, by TLS. */
bool engine_is_remote(uint64_t handle);
/* Open plans, without jobs. */
uint32_t engine_plans_open(const struct engine *engine);
/* For plans that are made from now on. planner is borrowed for ever. */
void engine_set_defaults(struct engine *engine, const struct plan_defaults *defaults,
                         const char *planner);
/* What else a reload may change; pointers are borrowed for ever. The lease is for instances that
 * register from now on (registry_lease_set). */
struct engine_tuning {
    msec heartbeat_ms, lease_ms, agent_wait_ms, cancel_grace_ms;
    const struct token_price *prices;
    uint32_t n_prices;
    const char *const *agent_endpoints;
    uint32_t n_agent_endpoints;
    const struct engine_rule *rules;
    uint32_t n_rules;
};
/* BT_NOMEM: not all of it holds. */
BT_MUST_CHECK enum bt_code engine_retune(struct engine *engine, const struct engine_tuning *to,
                                         struct bt_error *err);
/* ---- a full disk ---- */
/* Nothing may be decided now, because its rows would have no room: only reading is possible. It
 * ends by itself. */
bool engine_is_stalled(struct engine *engine);
/* True: stalls until it is called again, whatever the disk has. For a daemon that could not recover
 * its plans yet. */
void engine_hold(struct engine *engine, bool hold);
/* The refusal: UNAVAILABLE, what is full and what would help. for_all: not only new work. */
enum bt_code engine_room_error(const struct engine *engine, bool for_all, struct bt_error *err);
/* After how long the same request may be sent again. */
uint64_t engine_room_wait_ms(void);
/* The lane is retired: what it brought and was not taken yet is dropped. */
void engine_forget_lane(struct engine *engine, const struct link_lane *lane);

/* No new plans from now on. */
void engine_drain(struct engine *engine);
bool engine_is_draining(const struct engine *engine);
#endif
