/* Events of the link on their way in; requests that wait for their turn. */
#include <stdio.h>

#include "protocol/base/assert.h"
#include "protocol/base/failpoint.h"
#include "supervisor/engine/engine_internal.h"

void engine_on_link(struct engine *engine, struct link_event *ev)
{
    (void)FAILPOINT("arrive");
    if (ev->type == LINK_REQUEST) {
        engine->stats.requests++;
        engine->in_hand = ev->msg;
        engine->hooks.on_request(engine, engine_handle_of(engine, ev), link_msg_bytes(ev->msg));
        ev->msg = engine->in_hand; /* NULL: put off */
        engine->in_hand = NULL;
    } else if (ev->lane != NULL && engine_storage_keep(engine, ev)) {
        return;
    } else if (ev->lane != NULL) {
        engine->hooks.on_lane_event(engine, ev);
    }
    if (ev->msg != NULL) {
        link_msg_free(ev->msg);
    }
}

void engine_act_by(struct engine *engine, struct str id)
{
    (void)snprintf(engine->by, sizeof engine->by, "%.*s", STR_ARG(id));
}

void engine_act_for(struct engine *engine, const struct identity *who)
{
    engine->who = who;
    engine_act_by(engine, who != NULL ? str_from(who->id) : (struct str){"", 0});
}

const struct identity *engine_who(const struct engine *engine)
{
    return engine->who;
}

struct link_msg *engine_put_off(struct engine *engine)
{
    struct link_msg *msg = engine->in_hand;

    ASSERT(msg != NULL);
    engine->in_hand = NULL;
    return msg;
}

void engine_take_up(struct engine *engine, struct link_msg *msg, uint64_t handle,
                    void (*fn)(struct engine *engine, uint64_t handle, struct str bytes))
{
    engine->in_hand = msg;
    fn(engine, handle, link_msg_bytes(msg));
    engine->in_hand = NULL;
    link_msg_free(msg);
}

uint32_t engine_request_pipe(const struct engine *engine)
{
    return engine->in_hand != NULL ? link_msg_pipe(engine->in_hand) : 0;
}

struct str engine_request_peer(struct engine *engine)
{
    engine->peer[0] = 0;
    if (engine->in_hand != NULL) {
        link_msg_peer(engine->in_hand, engine->peer);
    }
    return str_from(engine->peer);
}

void engine_cycle_took(struct engine *engine, uint64_t us)
{
    struct engine_stats *n = &engine->stats;

    n->cycles_over_5ms += us > 5000;
    n->cycles_over_20ms += us > 20000;
    n->cycles_over_100ms += us > 100000;
    n->longest_cycle_us = us > n->longest_cycle_us ? us : n->longest_cycle_us;
}
