/*
 * The engine on a full disk (G20). Room is looked at before the core is fed: a decision whose rows
 * have no room must not be made. Without room nothing is fed but heartbeats, requests that only
 * read are answered, and what agents answer waits here, in order, until there is room.
 */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/engine/engine_internal.h"

enum {
    /* Answers of lanes that wait; more stay in the transport, which takes no more requests then. */
    HELD_MAX = 16384,
    RETRY_MS = 5000
};

static void look(struct engine *engine)
{
    const enum journal_room room = journal_room(engine->journal);

    engine->storage_low = room != JOURNAL_ROOM;
    engine->stalled = room == JOURNAL_FULL || engine->on_hold;
}

bool engine_is_stalled(struct engine *engine)
{
    if (engine->storage_low && !engine->stalled) {
        look(engine);
    }
    return engine->stalled;
}

void engine_hold(struct engine *engine, bool hold)
{
    engine->on_hold = hold;
    look(engine);
}

enum bt_code engine_room_error(const struct engine *engine, bool for_all, struct bt_error *err)
{
    return err_set(err, BT_UNAVAILABLE,
                   "storage_unavailable: the disk of %.300s is full; %s. Free some room there, or "
                   "give it more; then it goes on by itself",
                   engine->opt.state_dir,
                   for_all ? "everything waits, results too" : "running plans go on");
}

uint64_t engine_room_wait_ms(void)
{
    return RETRY_MS;
}

bool engine_storage_keep(struct engine *engine, struct link_event *ev)
{
    /* Once one waits, those after it do, too: the events of a lane have an order. */
    if (engine->held_n == engine->held_at && !engine_is_stalled(engine)) {
        return false;
    }
    engine_storage_push(engine, ev);
    return true;
}

void engine_storage_push(struct engine *engine, const struct link_event *ev)
{
    if (engine->held_n == engine->held_cap) {
        uint32_t cap = engine->held_cap == 0 ? 64 : engine->held_cap * 2;
        struct link_event *at = realloc(engine->held, cap * sizeof *at);
        ASSERT(at != NULL); /* forgetting an answer would lose a step */
        engine->held = at;
        engine->held_cap = cap;
    }
    engine->held[engine->held_n++] = *ev;
}

void engine_storage_begin(struct engine *engine)
{
    look(engine);
    while (engine->held_at < engine->held_n && !engine_is_stalled(engine)) {
        struct link_event ev = engine->held[engine->held_at++]; /* more may come meanwhile */
        if (ev.type == LINK_REQUEST) {
            engine->put_by_n--;
            engine_on_link(engine, &ev);
            continue;
        }
        if (ev.lane != NULL) {
            engine->hooks.on_lane_event(engine, &ev);
        }
        if (ev.msg != NULL) {
            link_msg_free(ev.msg);
        }
    }
    if (engine->held_at == engine->held_n) {
        engine->held_at = engine->held_n = 0;
    }
}

bool engine_storage_is_full(const struct engine *engine)
{
    return engine->held_n - engine->held_at >= HELD_MAX;
}

void engine_forget_lane(struct engine *engine, const struct link_lane *lane)
{
    for (uint32_t i = engine->held_at; i < engine->held_n; i++) {
        if (engine->held[i].lane == lane) {
            engine->held[i].lane = NULL;
        }
    }
}

void engine_storage_done(struct engine *engine)
{
    for (uint32_t i = engine->held_at; i < engine->held_n; i++) {
        if (engine->held[i].msg != NULL) {
            link_msg_free(engine->held[i].msg);
        }
    }
    free(engine->held);
}
