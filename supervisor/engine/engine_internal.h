/* The engine, inside. For this room and its tests only. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "protocol/auth/identity.h"
#include "protocol/base/map.h"
#include "supervisor/engine/blob_cache.h"
#include "supervisor/engine/children.h"
#include "supervisor/engine/conditions.h"
#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"
#include "supervisor/engine/rates.h"
#include "supervisor/engine/session_slots.h"
#include "supervisor/engine/suspect.h"
#include "supervisor/plan/pack.h"

enum {
    /* Runs beyond a job for each plan: jobs of sessions, and those that are being stopped. */
    ENGINE_RUNS_SPARE = 64
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

struct engine {
    struct engine_options opt;
    struct engine_hooks hooks;
    struct engine_stats stats;
    void *core_memory;
    struct core *core;
    struct registry *registry;
    struct journal *journal;
    struct link *link;
    struct link_server *server;
    struct link_server *remote; /* NULL = no other host is served */
    struct link_pub *pub;
    struct blob_cache cache;
    msec now, wall; /* of this cycle */
    msec started_mono, started_wall;
    msec heartbeat_at;
    bool draining; /* no new plans */

    uint32_t runs_max;       /* open plans, a job of each, and a few that no plan waits for */
    uint32_t runs_used;      /* slots below were used; the others are not written yet */
    struct open_plan *plans; /* by run slot */
    struct open_plan *ended; /* ended in this cycle, their slot given to another already */
    uint32_t ended_n, ended_cap;
    uint32_t *by_id;               /* slots by planId, open addressing: slot + 1, 0 = free */
    uint32_t by_id_cap, by_id_n;   /* cap: a power of two */
    struct session_slots sessions; /* of the open plans */
    struct plan_shelf shelf;       /* what their plans share */
    struct rates rates;
    uint32_t children;     /* open child plans */
    uint32_t jobs, asking; /* open jobs; plans that wait for one of them */
    bool settle_due;       /* a job command or record came in this cycle */
    uint32_t waiting;      /* requests that wait for rows */
    msec waiting_until;    /* the first one's end */

    struct suspect_mark mark;
    struct faults faults;

    struct commands commands;
    struct effect *effects;
    uint32_t effects_n, effects_cap;
    char peer[LINK_PEER_MAX + 1]; /* of the request in hand */
    const struct identity *who;   /* the sender of it; NULL: none is in hand */
    char by[LIMIT_ID_BYTES + 1];  /* on whose order records are written; "" = the daemon's own */
    struct link_msg *in_hand;
    struct buf out;        /* bytes of this cycle's answers and events */
    struct buf row, topic; /* of the record being encoded */
    struct arena cycle;
    struct core_event *later; /* found after the commit; fed at the start of the next cycle */
    uint32_t later_n, later_cap;
    struct arena later_arena;           /* their texts */
    struct condition_asked *conditions; /* to be evaluated */
    uint32_t conditions_n, conditions_cap;
    struct child_task *child_tasks; /* about child plans, to be done in this cycle */
    uint32_t child_tasks_n, child_tasks_cap;
    struct child_wait child_waits[CHILD_DEPTH_MAX]; /* by depth - 1 */
    uint32_t undos_wait; /* plans whose undo_waits is set, or were when it was counted */
    bool failed;         /* the journal is dead, by `fatal` */
    struct bt_error fatal;
    bool storage_low;        /* no new work, and no rows about agents and the daemon */
    bool stalled;            /* nothing is decided until there is room, or the hold ends */
    bool on_hold;            /* engine_hold */
    struct link_event *held; /* what lanes brought meanwhile, from held_at on */
    uint32_t held_at, held_n, held_cap;
    bool away;         /* within engine_meanwhile */
    bool put_by;       /* the request in hand there waits, too */
    uint32_t put_by_n; /* of those that are held */
    msec away_since;   /* the first call of it in this wait; 0 = the journal does not wait */
    msec away_last;
};

/* ---- storage.c: a full disk ---- */
/* At the start of a cycle: is there room; then what waited for it is taken. */
void engine_storage_begin(struct engine *engine);
/* Keeps the event of a lane, with its message, for later; false: take it now. */
bool engine_storage_keep(struct engine *engine, struct link_event *ev);
/* The same without asking whether there is room. */
void engine_storage_push(struct engine *engine, const struct link_event *ev);
/* No more can be kept. */
bool engine_storage_is_full(const struct engine *engine);
void engine_storage_done(struct engine *engine);

/* ---- plans.c ---- */
/* Moves the plan into the slot of its run and leaves *plan empty. */
void open_plan_bind(struct engine *engine, struct open_plan *plan, uint64_t run);
void open_plan_remove(struct engine *engine, uint64_t run);
/* Keeps the text of a failure that the run has only the beginning of. */
void open_plan_keep_failure(struct open_plan *p, struct str text);
/* The whole error that the step of the record ends with; valid while rec and mem are. */
enum { OPEN_PLAN_ERROR_MAX = 2048 }; /* as much as an event has room for */
struct str open_plan_step_failure(struct open_plan *p, const struct record *rec,
                                  char mem[OPEN_PLAN_ERROR_MAX]);
/* Keeps what of a record neither the run nor its notes hold; live and at a recovery. */
void open_plan_keep(struct open_plan *p, const struct record *rec, const struct plan *revised);
/* Puts the revision in the place of the plan's plan and block, and what was there before into
 * *revision. */
void open_plan_revise(struct open_plan *p, struct new_revision *revision);
/* The session's number for the core, and its end. */
void open_plan_session(struct engine *engine, struct open_plan *p);
void open_plan_session_drop(struct engine *engine, struct open_plan *p);

/* ---- aggregate_text.c ---- */
/* The answer of a plan that ends with this record as one text, an agent's or the joined results
 * (M080), cut with a mark when it is too large. readers: the steps that read only a part. *ret_end:
 * bytes at its end that name what was not done or is not whole; 0 = nothing. */
BT_MUST_CHECK enum bt_code aggregate_text(struct engine *engine, const struct open_plan *p,
                                          const struct record *rec,
                                          const struct aggregate_readers *readers, struct buf *out,
                                          size_t *ret_end, struct bt_error *err);

/* Opens the control socket and the bus of the options. BT_CONFLICT: another program has the
 * address. */
BT_MUST_CHECK enum bt_code engine_listen(struct engine *engine, struct bt_error *err);
/* The handle of a request for the engine: of which server it is. */
uint64_t engine_handle_of(const struct engine *engine, const struct link_event *ev);
/* Answers over the server that brought the request. */
void engine_send_answer(struct engine *engine, uint64_t handle, const void *bytes, size_t len);

/* ---- records.c ---- */
/* What the event that led to a record brought, so that the record needs no read of the journal. */
struct record_source {
    const struct new_revision *revision; /* not yet taken over; NULL = none */
    struct doc document;                 /* of the plan or the revision; .ptr NULL = none */
    struct blob_ref details;             /* of the attempt of `step` that failed */
    uint32_t step;
};
/* The row and the publication of one record. How the result begins, or the answer of a plan that
 * ends, is appended to *text; *ret_end as in aggregate_text. */
BT_MUST_CHECK enum bt_code engine_record(struct engine *engine, const struct record *rec,
                                         const struct record_source *from, struct buf *text,
                                         size_t *ret_end, struct bt_error *err);

/* Each plan in quarantine that has no end among its events gets one (plan_completed, failureKind
 * quarantined): its followers wait for it. Also of earlier versions. After a recovery. */
BT_MUST_CHECK enum bt_code engine_record_quarantined(struct engine *engine, struct bt_error *err);

/* ---- effects.c ---- */
struct effect *engine_effect(struct engine *engine, enum effect_type type);
void engine_perform(struct engine *engine);
#endif
