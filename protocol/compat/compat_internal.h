/*
 * Shared by the files of the translator (baton/vocabulary.h): the current event, the state of open
 * plans and turns, and the output.
 */
#ifndef COMPAT_COMPAT_INTERNAL_H
#define COMPAT_COMPAT_INTERNAL_H

#include "baton/vocabulary.h"
#include "protocol/base/buf.h"
#include "protocol/base/map.h"
#include "protocol/base/shard.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum {
    COMPAT_EVENT_BYTES = LIMIT_CONTROL_BYTES, /* JSON of one event */
    COMPAT_PLANS = 1024,                      /* open at a time; over that the oldest is dropped */
    COMPAT_TURNS = 256,                       /* open turns of sessions, likewise */
    COMPAT_STEPS = 2 * LIMIT_STEPS,           /* kept of one plan, over its revisions */
    COMPAT_REPLANNED = 64,                    /* steps of one plan whose replans are counted */
    COMPAT_PLAN_BYTES = 16 * 1024 * 1024,     /* texts of one plan: all results, as previews */
    COMPAT_BYTES = 64 * 1024 * 1024,          /* texts of all plans */
    COMPAT_OUT_BYTES = 128 * 1024 * 1024, /* one event can be all results, each byte as \u00xx */
    COMPAT_ID_BYTES = LIMIT_KEY_BYTES,
};

/* An id from outside, cut to the length of ids. */
struct compat_id {
    char text[COMPAT_ID_BYTES + 1];
};

struct compat_step {
    uint32_t index;
    bool open; /* started and not ended */
    bool completed;
    uint64_t started_ms; /* ptc-runner-telemetry; 0 = unknown */
    struct str id;       /* these point into the memory after the struct */
    struct str tool;   /* agent-turn: the skill; plan-executor: the agent's name, its id is `id` */
    struct str result; /* .ptr NULL = not kept */
    size_t bytes;
};

struct compat_replanned {
    struct compat_id id;
    uint32_t n;
};

struct compat_plan {
    struct compat_id id;
    struct compat_id turn; /* the session's turn that it answers; "" = its own turn */
    uint64_t age;
    uint64_t plan_seq;
    bool seen_from_start; /* every event since its first was seen */
    bool begin_emitted;   /* the vocabulary has emitted its start */
    bool by_planner;      /* a planner made it; false = the client submitted it */
    bool planning;        /* ptc-runner: planning_started is emitted, its end is not */
    bool started;
    bool running;   /* ptc-runner: between execution_started and execution_finished */
    bool has_total; /* total is known */
    bool has_start;
    uint64_t total;   /* steps of all revisions */
    uint64_t current; /* steps of the newest revision */
    uint64_t completed, n_texts;
    uint64_t first;   /* steps of the first revision; later ones have higher indexes */
    uint64_t replans; /* that made a revision */
    uint64_t started_ms;
    uint64_t turn_ms;       /* agent-turn: when its turn began; 0 = unknown */
    struct str mission;     /* .ptr NULL = unknown */
    struct str reason;      /* why it is replanned */
    uint64_t replanning;    /* the index of the step that caused it */
    uint64_t replan_ms;     /* when that started; 0 = unknown */
    bool failure_emitted;   /* the failure of that step is emitted */
    struct str agent, name; /* plan-executor: of the step that ended last; .ptr NULL = unknown */
    struct buf plan_map;    /* ptc-runner-telemetry: the plan as a map */
    struct buf document;    /* from bt_vocabulary_describe */
    struct map by_step;     /* stepId -> offset of its step in document, which holds the keys */
    uint32_t *step_offsets; /* index -> offset; a revision keeps the indexes */
    uint32_t n_step_offsets;
    struct compat_step **steps; /* sorted by index */
    uint32_t n_steps, steps_cap;
    struct compat_replanned *replanned;
    uint32_t n_replanned;
    size_t bytes;
};

/* A turn of a session whose turn_start was seen and whose turn_end was not. */
struct compat_turn {
    struct compat_id id, session, plan;
    uint64_t started_ms;
    bool end_emitted;   /* turn_end is emitted, because its plan has ended */
    bool turn_end_seen; /* Baton's turn_end came before its plan began */
};

struct compat_event {
    struct doc body;
    struct str type, plan_id, session_id, timestamp;
    uint64_t ts_ms; /* 0 = unknown */
};

struct compat_vocabulary; /* one target vocabulary */

/* One emitted object: its type, and the offset of its JSON in `out`. */
struct compat_span {
    const char *type;
    size_t json;
};

struct bt_vocabulary {
    const struct compat_vocabulary *vocabulary;
    uint64_t last_seq[SHARDS_MAX]; /* of a fleet each shard has its own numbers */
    uint64_t next_age;
    struct compat_plan *plans[COMPAT_PLANS];
    uint32_t n_plans;
    struct map by_id; /* index into plans */
    size_t bytes;
    struct compat_turn turns[COMPAT_TURNS]; /* oldest first */
    uint32_t n_turns;
    struct buf body, list, parts; /* the object to emit; a value in it; values in that */
    struct buf value;             /* a result, parsed as JSON */
    struct buf out;               /* the JSON texts, each with a terminating zero */
    struct compat_span *spans;
    uint32_t n_spans, spans_cap, next;
    struct compat_id event_plan; /* the plan of the current event */
    enum bt_code bad;            /* a failure of the current event */
};

struct compat_vocabulary {
    const char *name;
    const char *alias; /* the former name; accepted and never listed */
    /* p: the plan of the event, or NULL. */
    void (*take)(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev);
    bool wants_plan;     /* at every event that adds steps */
    bool wants_revision; /* only after a replan */
};

extern const struct compat_vocabulary vocabulary_ai_sdk, vocabulary_plan_executor,
    vocabulary_agent_turn, vocabulary_ptc_runner, vocabulary_ptc_runner_telemetry,
    vocabulary_orchestrator_log;

/* ---- the event ---- */

struct str compat_text(const struct compat_event *ev, const char *name); /* .ptr NULL = missing */
/* Returns fallback when it is missing: zeros are not on the wire. */
uint64_t compat_number(const struct compat_event *ev, const char *name, uint64_t fallback);
bool compat_bool(const struct compat_event *ev, const char *name);
struct doc compat_member(const struct compat_event *ev, const char *name);
/* Returns the next step of the event's list: {stepId, stepIndex, agentId, agentName, task}. */
bool compat_next_step(struct doc_cursor *at, uint32_t *left, struct compat_event *ret);
struct doc_cursor compat_steps(const struct compat_event *ev, uint32_t *ret_n);
struct str compat_or_default(struct str value, struct str fallback);

/* ---- maps to emit ---- */

enum { COMPAT_MEMBERS = 16 };

struct compat_map {
    uint32_t n;
    struct {
        const char *key;
        enum { MEMBER_STR, MEMBER_U64, MEMBER_DOC } kind;
        struct str str;
        struct doc doc;
        uint64_t u;
    } members[COMPAT_MEMBERS];
};

/* Omits a missing value (.ptr NULL). Values are borrowed until compat_put or compat_emit. */
void compat_add(struct compat_map *m, const char *key, struct str value);
void compat_add_u64(struct compat_map *m, const char *key, uint64_t value);
void compat_add_doc(struct compat_map *m, const char *key, struct doc value);
/* Copies a member of the event, under the same or another name. */
void compat_copy(struct compat_map *m, const char *key, const struct compat_event *ev,
                 const char *name);
/* Adds a result where the document defines no type: JSON becomes that value, so "42" is a number.
 * At most one per map, because it borrows v->value. */
void compat_add_result(struct bt_vocabulary *v, struct compat_map *m, const char *key,
                       struct str result);
/* Writes a result as a value of its own, in the same way. */
void compat_put_result(struct bt_vocabulary *v, struct buf *out, struct str result);
/* Empties one of v's buffers and keeps its failure in v->bad. */
void compat_reset_buf(struct bt_vocabulary *v, struct buf *b);
void compat_put(struct buf *out, const struct compat_map *m);
/* Emits the map. type must be valid for ever. */
void compat_emit(struct bt_vocabulary *v, const char *type, const struct compat_map *m);
/* Emits {type, turnId, planId, payload}; empty ids are omitted. */
void compat_emit_payload(struct bt_vocabulary *v, const char *type, const char *turn_id,
                         const struct compat_map *payload);

/* ---- state (state.c) ---- */

void compat_id_set(struct compat_id *id, struct str from);
struct str compat_id_str(const struct compat_id *id);
/* Finds or adds the plan; NULL when out of memory. */
struct compat_plan *compat_plan_get(struct bt_vocabulary *v, struct str plan_id);
/* Returns NULL when the plan is unknown. */
struct compat_plan *compat_plan_find(const struct bt_vocabulary *v, struct str plan_id);
void compat_plan_forget(struct bt_vocabulary *v, struct compat_plan *p);
/* Drops the oldest plans, but not p, until so many bytes of texts fit. */
void compat_make_room(struct bt_vocabulary *v, const struct compat_plan *p, size_t bytes);
/* Drops the plan's document and its index. */
void compat_document_forget(struct bt_vocabulary *v, struct compat_plan *p);
/* Returns the step in the plan's document; .body.ptr NULL when there is none. */
struct compat_event compat_step_document(const struct compat_plan *p, uint64_t index,
                                         struct str step_id);
/* Whether the plan's document still has the completed step; true when the document is unknown. */
bool compat_has_step(const struct compat_plan *p, const struct compat_step *s);
/* Sets a text of the plan to a copy, cut to the length of a task; .ptr NULL drops it. */
void compat_plan_text(struct bt_vocabulary *v, struct compat_plan *p, struct str *field,
                      struct str text);
/* Returns NULL when the step is unknown. */
struct compat_step *compat_step_find(const struct compat_plan *p, uint64_t index);
/* Replaces the step by one with these texts; NULL when it cannot be kept. */
struct compat_step *compat_step_keep(struct bt_vocabulary *v, struct compat_plan *p, uint64_t index,
                                     struct str id, struct str tool, struct str result);
/* Keeps the id and result of a completed step and drops an older one with the same id. */
void compat_step_complete(struct bt_vocabulary *v, struct compat_plan *p,
                          const struct compat_event *ev);
void compat_step_drop(struct bt_vocabulary *v, struct compat_plan *p, uint64_t index);
/* Returns how often a step was replanned, including now; 0 = not counted. */
uint32_t compat_replanned(struct bt_vocabulary *v, struct compat_plan *p, struct str step_id);
struct compat_turn *compat_turn_find(struct bt_vocabulary *v, struct str turn_id);
struct compat_turn *compat_turn_add(struct bt_vocabulary *v, struct str turn_id,
                                    struct str session_id);
void compat_turn_drop(struct bt_vocabulary *v, struct compat_turn *t);
/* Builds the plan {tasks: [{id, agent, input}]} of ptc-runner in v->list: the tasks of `before`
 * (.ptr NULL = none) without `removed`, then the event's steps (NULL = none). */
struct doc compat_plan_map(struct bt_vocabulary *v, struct doc before, struct str removed,
                           const struct compat_event *ev);
/* Returns why a step did not complete; for a replanned step, the reason of the replan. */
struct str compat_error(const struct compat_plan *p, const struct compat_event *ev);
/* Builds {stepId: result} of all completed steps with a result in v->list. */
struct doc compat_results(struct bt_vocabulary *v, const struct compat_plan *p);
void compat_forget_all(struct bt_vocabulary *v);

/*
 * Whether the step of a plan_step_completed had started. Its start was seen; or, when the plan was
 * not seen from its start, the event has attempts. False when its failure is already emitted.
 */
bool compat_step_began(const struct compat_plan *p, const struct compat_event *ev);
#endif
