/* Events of the link on their way in; requests that wait for their turn; what is answered while the
 * journal waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
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

/* ---- while the journal waits for its server ---- */

enum {
    AWAY_OUT_MAX = 1024 * 1024,
    AWAY_GAP_MS = 1000, /* between two calls of one wait: more is another wait */
    AWAY_EVENTS = 64,   /* in one call */
    PUT_BY_MAX = 64     /* requests: the others keep their contexts */
};

bool engine_is_away(const struct engine *engine)
{
    return engine->away;
}

msec engine_away_ms(const struct engine *engine)
{
    return engine->away ? engine->away_last - engine->away_since : 0;
}

bool engine_answer_later(struct engine *engine)
{
    engine->put_by = engine->put_by_n < PUT_BY_MAX;
    return engine->put_by;
}

/* What the cycle has in hand stays as it is: it goes on when the call of the journal returns. */
static void answer_now(struct engine *engine, struct link_event *ev)
{
    const struct engine cycle = *engine;

    buf_init(&engine->out, AWAY_OUT_MAX);
    engine->effects = NULL;
    engine->effects_n = engine->effects_cap = 0;
    engine->in_hand = ev->msg;
    engine->who = NULL;
    engine->put_by = false;
    engine->hooks.on_request_meanwhile(engine, engine_handle_of(engine, ev),
                                       link_msg_bytes(ev->msg));
    for (uint32_t i = 0; i < engine->effects_n; i++) {
        const struct effect *e = &engine->effects[i];
        ASSERT(e->type == EFFECT_ANSWER); /* a request that is answered meanwhile decides nothing */
        engine_send_answer(engine, e->request, engine->out.at + e->at, e->len);
    }
    free(engine->effects);
    buf_done(&engine->out);
    engine->out = cycle.out;
    engine->effects = cycle.effects;
    engine->effects_n = cycle.effects_n;
    engine->effects_cap = cycle.effects_cap;
    engine->in_hand = cycle.in_hand;
    engine->who = cycle.who;
    memcpy(engine->by, cycle.by, sizeof engine->by);
    memcpy(engine->peer, cycle.peer, sizeof engine->peer);
}

void engine_meanwhile(struct engine *engine)
{
    const msec now = clock_mono_ms();
    struct link_event ev;

    ASSERT(!engine->away);
    if (engine->away_since == 0 || now - engine->away_last > AWAY_GAP_MS) {
        engine->away_since = now;
    }
    engine->away_last = now;
    engine->away = true;
    for (int n = 0;
         n < AWAY_EVENTS && !engine_storage_is_full(engine) && link_next(engine->link, &ev); n++) {
        if (ev.type == LINK_REQUEST) {
            engine->stats.requests++;
            answer_now(engine, &ev);
            if (engine->put_by) {
                engine->put_by_n++;
                engine_storage_push(engine, &ev);
                continue;
            }
        } else if (ev.lane != NULL) {
            engine_storage_push(engine, &ev);
            continue;
        }
        if (ev.msg != NULL) {
            link_msg_free(ev.msg);
        }
    }
    engine->away = false;
}
