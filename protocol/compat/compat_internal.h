/*
 * What the files of the translator share (baton/vocabulary.h): the event that is being taken, what
 * is remembered of open plans and turns, and the way out.
 */
#ifndef COMPAT_COMPAT_INTERNAL_H
#define COMPAT_COMPAT_INTERNAL_H

#include "baton/vocabulary.h"
#include "protocol/base/buf.h"
#include "protocol/base/map.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum {
    COMPAT_EVENT_BYTES = LIMIT_CONTROL_BYTES, /* JSON of an event, with room for a generous one */
    COMPAT_PLANS = 1024,                      /* open at a time; then the oldest is forgotten */
    COMPAT_TURNS = 256,                       /* the same for turns of sessions */
    COMPAT_STEPS = 2 * LIMIT_STEPS,           /* remembered of one plan, over its revisions */
    COMPAT_REPLANNED = 64,                    /* steps of one plan whose replans are counted */
    COMPAT_PLAN_BYTES = 16 * 1024 * 1024,     /* texts of one plan: all results, as previews */
    COMPAT_BYTES = 64 * 1024 * 1024,          /* texts of all plans */
    COMPAT_OUT_BYTES = 128 * 1024 * 1024, /* one event can be all results, each byte as \u00xx */
    COMPAT_ID_BYTES = LIMIT_KEY_BYTES,
};

/* An id from outside, cut to what ids are. */
struct compat_id {
    char text[COMPAT_ID_BYTES + 1];
};

struct compat_step {
    uint32_t index;
    bool open; /* has started, not ended */
    bool completed;
    uint64_t started_ms; /* s003-telemetry; 0 = unknown */
    struct str id;       /* these point behind the struct */
    struct str tool;     /* s002: agent and skill; s001: the agent's name, its id in `id` */
    struct str result;   /* .ptr NULL = not kept */
    size_t bytes;
};

struct compat_replanned {
    struct compat_id id;
    uint32_t n;
};

struct compat_plan {
    struct compat_id id;
    struct compat_id turn; /* the session's turn that it answers; "" = a turn of its own */
    uint64_t age;
    uint64_t plan_seq;
    bool seen_from_start; /* all events since its first were seen */
    bool begin_emitted;   /* the vocabulary has told its beginning */
    bool by_planner;      /* somebody was asked for it; not a plan that was given */
    bool planning;        /* s003: planning_started was told, and not its end */
    bool started;
    bool running;   /* s003: between execution_started and execution_finished */
    bool has_total; /* the number of its steps */
    bool has_start;
    uint64_t total;   /* steps of all revisions */
    uint64_t current; /* of the newest one */
    uint64_t completed, n_texts;
    uint64_t first;   /* steps of the first revision; later ones have higher indexes */
    uint64_t replans; /* that brought a revision */
    uint64_t started_ms;
    uint64_t turn_ms;       /* s002: when its turn began; 0 = unknown */
    struct str mission;     /* .ptr NULL = unknown */
    struct str reason;      /* why it is being replanned */
    uint64_t replanning;    /* and because of which step */
    uint64_t replan_ms;     /* and since when; 0 = unknown */
    bool failure_emitted;   /* the end of that step has been told already */
    struct str agent, name; /* s001: of the step that ended last; .ptr NULL = unknown */
    struct buf plan_map;    /* s003-telemetry: the plan as a map */
    struct buf document;    /* what bt_vocabulary_describe brought */
    struct map by_step;     /* stepId -> where its step begins in it; keys point into it */
    uint32_t *step_offsets; /* the same by index: a revision keeps the indexes */
    uint32_t n_step_offsets;
    struct compat_step **steps; /* by index */
    uint32_t n_steps, steps_cap;
    struct compat_replanned *replanned;
    uint32_t n_replanned;
    size_t bytes;
};

/* One turn of a session that the bus has told the start of, and not the end. */
struct compat_turn {
    struct compat_id id, session, plan;
    uint64_t started_ms;
    bool end_emitted; /* told to the subscriber: its plan has ended */
    bool bus_ended;   /* told by the bus, before its plan had begun */
};

struct compat_event {
    struct doc body;
    struct str type, plan_id, session_id, timestamp;
    uint64_t ts_ms; /* 0 = unknown */
};

struct compat_vocabulary; /* a vocabulary */

/* What one event became: offsets into the text of all of them. */
struct compat_span {
    const char *type;
    size_t json;
};

struct bt_vocabulary {
    const struct compat_vocabulary *vocabulary;
    uint64_t last_seq, next_age;
    struct compat_plan *plans[COMPAT_PLANS];
    uint32_t n_plans;
    struct map by_id; /* into plans */
    size_t bytes;
    struct compat_turn turns[COMPAT_TURNS]; /* the oldest first */
    uint32_t n_turns;
    struct buf body, list, parts; /* what is told; a value in it; values in that */
    struct buf value;             /* a result, read */
    struct buf out;               /* the JSON texts, each with its zero */
    struct compat_span *spans;
    uint32_t n_spans, spans_cap, next;
    struct compat_id event_plan; /* the plan that the event was about */
    enum bt_code bad;            /* what could not be kept of the event being taken */
};

struct compat_vocabulary {
    const char *name;
    const char *alias; /* the name that it had first; accepted, never listed */
    /* p: the plan of the event, NULL when it is about none. */
    void (*take)(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev);
    bool wants_plan;     /* at every event that makes steps */
    bool wants_revision; /* only when a replan has */
};

extern const struct compat_vocabulary vocabulary_ai_sdk, vocabulary_plan_executor,
    vocabulary_agent_turn, vocabulary_ptc_runner, vocabulary_ptc_runner_telemetry,
    vocabulary_orchestrator_log;

/* ---- the event ---- */

struct str compat_text(const struct compat_event *ev, const char *name); /* .ptr NULL = not there */
/* fallback when it is not there: numbers that are zero do not travel. */
uint64_t compat_number(const struct compat_event *ev, const char *name, uint64_t fallback);
bool compat_bool(const struct compat_event *ev, const char *name);
struct doc compat_member(const struct compat_event *ev, const char *name);
/* The next step of the event's list: {stepId, stepIndex, agentId, agentName, task}. */
bool compat_next_step(struct doc_cursor *at, uint32_t *left, struct compat_event *ret);
struct doc_cursor compat_steps(const struct compat_event *ev, uint32_t *ret_n);
struct str compat_or_default(struct str value, struct str fallback);

/* ---- maps to be told ---- */

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

/* What is not there (.ptr NULL) is left out. Values are borrowed until compat_put or a tell. */
void compat_add(struct compat_map *m, const char *key, struct str value);
void compat_add_u64(struct compat_map *m, const char *key, uint64_t value);
void compat_add_doc(struct compat_map *m, const char *key, struct doc value);
/* A member of the event as it is, under the same or another name. */
void compat_copy(struct compat_map *m, const char *key, const struct compat_event *ev,
                 const char *name);
/* A result where the document says no type for it: what is JSON is told as that, a number as a
 * number. One in a map. */
void compat_add_result(struct bt_vocabulary *v, struct compat_map *m, const char *key,
                       struct str result);
/* The same as a value by itself. */
void compat_put_result(struct bt_vocabulary *v, struct buf *out, struct str result);
/* Empties one of v's buffers; if it had failed, that is kept. */
void compat_reset_buf(struct bt_vocabulary *v, struct buf *b);
void compat_put(struct buf *out, const struct compat_map *m);
/* Tells the map as it is. type lives for ever. */
void compat_emit(struct bt_vocabulary *v, const char *type, const struct compat_map *m);
/* Tells {type, turnId, planId, payload}; the ids only when there are such. */
void compat_emit_payload(struct bt_vocabulary *v, const char *type, const char *turn_id,
                         const struct compat_map *payload);

/* ---- what is remembered (compat_state.c) ---- */

void compat_id_set(struct compat_id *id, struct str from);
struct str compat_id_str(const struct compat_id *id);
/* The plan, new when it is not known; NULL when out of memory. */
struct compat_plan *compat_plan_get(struct bt_vocabulary *v, struct str plan_id);
/* NULL when it is not known. */
struct compat_plan *compat_plan_find(const struct bt_vocabulary *v, struct str plan_id);
void compat_plan_forget(struct bt_vocabulary *v, struct compat_plan *p);
/* Forgets the oldest plans, not p, until so many bytes of texts fit. */
void compat_make_room(struct bt_vocabulary *v, const struct compat_plan *p, size_t bytes);
/* What bt_vocabulary_describe brought, with its index. */
void compat_document_forget(struct bt_vocabulary *v, struct compat_plan *p);
/* The step in the plan's document; .body.ptr NULL when there is none. */
struct compat_event compat_step_document(const struct compat_plan *p, uint64_t index,
                                         struct str step_id);
/* Whether the plan still has a step that is completed; true also when its document is not known. */
bool compat_has_step(const struct compat_plan *p, const struct compat_step *s);
/* Sets one of the plan's texts (a copy, cut to a task's length); .ptr NULL forgets it. */
void compat_plan_text(struct bt_vocabulary *v, struct compat_plan *p, struct str *field,
                      struct str text);
/* NULL: not known. */
struct compat_step *compat_step_find(const struct compat_plan *p, uint64_t index);
/* The step with these texts, in place of what was known of it; NULL when it cannot be kept. */
struct compat_step *compat_step_keep(struct bt_vocabulary *v, struct compat_plan *p, uint64_t index,
                                     struct str id, struct str tool, struct str result);
/* The step has completed: keeps its id and its result, in place of an older one of that id. */
void compat_step_complete(struct bt_vocabulary *v, struct compat_plan *p,
                          const struct compat_event *ev);
void compat_step_drop(struct bt_vocabulary *v, struct compat_plan *p, uint64_t index);
/* How often a step has been replanned, this time included; 0 = not counted. */
uint32_t compat_replanned(struct bt_vocabulary *v, struct compat_plan *p, struct str step_id);
struct compat_turn *compat_turn_find(struct bt_vocabulary *v, struct str turn_id);
struct compat_turn *compat_turn_add(struct bt_vocabulary *v, struct str turn_id,
                                    struct str session_id);
void compat_turn_drop(struct bt_vocabulary *v, struct compat_turn *t);
/* S003's plan {tasks: [{id, agent, input}]}, in v->list: the tasks of `before` (.ptr NULL = none)
 * but `gone`, then the event's steps (NULL = none). */
struct doc compat_plan_map(struct bt_vocabulary *v, struct doc before, struct str removed,
                           const struct compat_event *ev);
/* Why a step did not complete; of one that was to be replanned, why that was. */
struct str compat_error(const struct compat_plan *p, const struct compat_event *ev);
/* {stepId: result} of all that is completed and kept, into v->list. */
struct doc compat_results(struct bt_vocabulary *v, const struct compat_plan *p);
void compat_forget_all(struct bt_vocabulary *v);

/*
 * Whether the step of a plan_step_completed had begun: its start was seen, or, when the beginning
 * of the plan was not, it says that it was attempted. False when its end has been told (fallen).
 */
bool compat_step_began(const struct compat_plan *p, const struct compat_event *ev);
#endif
