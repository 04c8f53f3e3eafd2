/*
 * Sessions of open plans as small numbers, for the core's limits per session: counted, and given
 * again when the last plan of a session has gone. Not thread-safe: the loop thread's.
 */
#ifndef ENGINE_SESSION_SLOTS_H
#define ENGINE_SESSION_SLOTS_H

#include "protocol/base/map.h"
#include "protocol/limits.h"

struct session_slot {
    char id[LIMIT_ID_BYTES + 1];
    uint32_t len;
    uint32_t plans;
    uint32_t next_free;
};

struct session_slots {
    struct session_slot *at;
    uint32_t cap, used; /* used: slots that were ever given */
    uint32_t free;      /* a list through next_free; UINT32_MAX = empty */
    struct map by_id;
};

/* cap >= 1. */
BT_MUST_CHECK enum bt_code session_slots_init(struct session_slots *s, uint32_t cap,
                                              struct bt_error *err);
void session_slots_done(struct session_slots *s);
/* The session's number, with one plan more; plans without a session share one. SESSION_SLOT_NONE
 * when there are more sessions than numbers: the plan is then counted with number 0, a limit that
 * is too strict, never a plan refused. */
#define SESSION_SLOT_NONE UINT32_MAX
uint32_t session_slots_take(struct session_slots *s, struct str id);
/* One plan less of this number; SESSION_SLOT_NONE is fine. */
void session_slots_drop(struct session_slots *s, uint32_t ix);
#endif
