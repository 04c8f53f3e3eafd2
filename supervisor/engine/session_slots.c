#include "supervisor/engine/session_slots.h"

#include <stdlib.h>

/* A key may not be NULL. */
static struct str key_of(struct str id)
{
    return (struct str){id.len == 0 ? "" : id.ptr,
                        id.len > LIMIT_ID_BYTES ? LIMIT_ID_BYTES : id.len};
}

enum bt_code session_slots_init(struct session_slots *s, uint32_t cap, struct bt_error *err)
{
    *s = (struct session_slots){.cap = cap, .free = SESSION_SLOT_NONE};
    s->at = calloc(cap, sizeof *s->at);
    return s->at != NULL ? BT_OK : err_set(err, BT_NOMEM, "out of memory for %u sessions", cap);
}

void session_slots_done(struct session_slots *s)
{
    free(s->at);
    map_done(&s->by_id);
    *s = (struct session_slots){0};
}

static uint32_t next_slot(struct session_slots *s)
{
    uint32_t ix = s->free;

    if (ix != SESSION_SLOT_NONE) {
        s->free = s->at[ix].next_free;
        return ix;
    }
    return s->used < s->cap ? s->used++ : SESSION_SLOT_NONE;
}

static void give_back(struct session_slots *s, uint32_t ix)
{
    s->at[ix].next_free = s->free;
    s->free = ix;
}

uint32_t session_slots_take(struct session_slots *s, struct str id)
{
    struct str key = key_of(id);
    uint32_t ix = map_get(&s->by_id, key);
    struct session_slot *slot;

    if (ix != MAP_NONE) {
        s->at[ix].plans++;
        return ix;
    }
    ix = next_slot(s);
    if (ix == SESSION_SLOT_NONE) {
        return SESSION_SLOT_NONE;
    }
    slot = &s->at[ix];
    *slot = (struct session_slot){.len = (uint32_t)key.len};
    memcpy(slot->id, key.ptr, key.len);
    if (map_put(&s->by_id, (struct str){slot->id, slot->len}, ix) != BT_OK) {
        give_back(s, ix);
        return SESSION_SLOT_NONE;
    }
    slot->plans = 1;
    return ix;
}

void session_slots_drop(struct session_slots *s, uint32_t ix)
{
    if (ix < s->used && s->at[ix].plans > 0 && --s->at[ix].plans == 0) {
        (void)map_remove(&s->by_id, (struct str){s->at[ix].id, s->at[ix].len});
        give_back(s, ix);
    }
}
