/* Shared by the sources of this room. */
#ifndef SCHEDULE_SCHEDULE_INTERNAL_H
#define SCHEDULE_SCHEDULE_INTERNAL_H

#include "protocol/base/map.h"
#include "protocol/zone/zones.h"
#include "supervisor/schedule/rules/decide.h"
#include "supervisor/schedule/schedules.h"

enum schedule_life { SCHEDULE_ACTIVE, SCHEDULE_PAUSED, SCHEDULE_ENDED };

enum {
    SCHEDULE_KEY_MAX = 192,
    SCHEDULE_REASON_MAX = 256,
    SCHEDULE_CATCH_UP_MS = 3600000, /* the default */
    SCHEDULE_KEYS_KEPT = 8          /* clientKeys of puts */
};

struct schedule {
    uint64_t ix;
    uint64_t body_hash;
    uint64_t seed;
    struct schedule_rule rule;
    msec jitter_ms, catch_up_ms;
    msec cursor, queued_from, back_cursor, back_to;
    msec due;        /* when it is looked at again; MSEC_NEVER = not by the clock */
    msec held_since; /* it could not fire for want of room or agents; 0 = it was not */
    msec last_time;
    msec created;
    uint64_t fired, skipped;
    struct uuid last_plan; /* nil = none yet */
    uint32_t failures, max_failures;
    uint32_t open; /* plans */
    uint32_t heap_at;
    uint32_t slot;
    uint16_t zone;
    uint8_t overlap; /* enum schedule_overlap */
    uint8_t life;    /* enum schedule_life */
    char *reason;    /* why it is paused; NULL = no reason */
    const char *owner;
    char name[]; /* the owner follows */
};

/* A plan of a schedule that is open. */
struct schedule_open {
    uint32_t slot;
    uint64_t ix; /* of the schedule: a slot may have another one by now */
    char id[UUID_TEXT_LEN + 1];
};

struct schedules {
    struct engine *engine;
    struct zones *zones;
    struct schedule **at; /* by slot; NULL = free */
    uint32_t n, cap;      /* slots */
    uint32_t *heap;       /* slots, the one that is due first at 0 */
    struct map by_name;
    struct schedule_open **open;
    uint32_t open_n, open_cap;
    struct map by_plan;
    struct buf bytes, document;
    msec wall_seen;
    msec zones_at; /* when they are looked at again; wall time */
    bool loaded;
    struct declared *declared;
    uint32_t declared_n;
    msec declared_at; /* when they are put; wall time; MSEC_NEVER = they are */
    bool declaring;   /* the order in hand is of the configuration */
};

/* The owner of what the configuration declares; acts as the local identity. */
#define SCHEDULE_DECLARED "(configuration)"

/* ---- declared.c ---- */
bool schedule_is_declared(const struct schedule *p);
void declared_cycle(struct schedules *s);
void declared_done(struct schedules *s);
/* The owner of its plans. */
static inline const char *schedule_plan_owner(const struct schedule *p)
{
    return schedule_is_declared(p) ? "" : p->owner;
}

/* ---- table.c ---- */
BT_MUST_CHECK enum bt_code schedule_new(struct str name, struct str owner, struct schedule **ret,
                                        struct bt_error *err);
void schedule_free(struct schedule *p);
/* Takes p over. */
BT_MUST_CHECK enum bt_code table_add(struct schedules *s, struct schedule *p, struct bt_error *err);
/* In the place of `before`, which is freed; takes p over. */
void table_replace(struct schedules *s, struct schedule *before, struct schedule *p);
void table_remove(struct schedules *s, struct schedule *p);
struct schedule *table_find(const struct schedules *s, struct str name);
void table_due(struct schedules *s, struct schedule *p, msec due);
BT_MUST_CHECK enum bt_code table_open(struct schedules *s, struct schedule *p, const char *plan_id,
                                      struct bt_error *err);
/* The schedule whose plan it is, which is then open no more. NULL: of none. */
struct schedule *table_close(struct schedules *s, struct str plan_id);

/* ---- store.c ---- */
/* Writes the state into the batch; a failure is the journal's. */
BT_MUST_CHECK enum bt_code store_state(struct schedules *s, const struct schedule *p,
                                       struct bt_error *err);
void store_state_bytes(const struct schedule *p, struct buf *out);
/* From the rule and the state of the journal. */
BT_MUST_CHECK enum bt_code store_read_rule(struct schedules *s, struct doc rule,
                                           struct schedule *io, struct bt_error *err);
BT_MUST_CHECK enum bt_code store_read_state(struct doc state, struct schedule *io,
                                            struct bt_error *err);
const char *store_overlap_name(uint8_t overlap);
bool store_overlap_parse(struct str text, uint8_t *ret);
void store_set_reason(struct schedule *p, struct str reason);

/* ---- fire.c ---- */
struct record_extra;
BT_MUST_CHECK enum bt_code fire_emit(struct schedules *s, enum record_type type, struct str text,
                                     struct record_extra *x, struct bt_error *err);
/* When it is looked at next, from now. */
void fire_look_again(struct schedules *s, struct schedule *p);
struct schedule_case fire_case(const struct schedules *s, const struct schedule *p);
/* ---- make.c ---- */
/* Makes the plan of a time, or of a trigger (at 0). */
enum fired { FIRED, FIRED_BEFORE, FIRED_NOT_YET, FIRED_NEVER };
enum fired fire_plan(struct schedules *s, struct schedule *p, msec at, struct str key,
                     struct str kind, struct submission *d, char ret_id[UUID_TEXT_LEN + 1],
                     struct bt_error *err);
/* Whether the key was used for a plan of the owner: *ret_id. */
bool fire_known(struct schedules *s, const struct schedule *p, struct str key,
                char ret_id[UUID_TEXT_LEN + 1], struct bt_error *err);
BT_MUST_CHECK enum bt_code fire_paused(struct schedules *s, struct schedule *p, const char *kind,
                                       struct str reason, struct bt_error *err);
/* The plan of the document: a recipe is filled in; at = the time that it is for. d must be
 * initialised. */
BT_MUST_CHECK enum bt_code fire_make(struct schedules *s, const struct schedule *p,
                                     const struct msg_rec_schedule_document *doc, msec at,
                                     struct submission *d, struct bt_error *err);
#endif
