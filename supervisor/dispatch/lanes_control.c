/* The control lane of an instance: queries, orders to cancel, and pings, one at a time. */
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/dispatch/dispatch_internal.h"
#include "supervisor/dispatch/keys.h"
#include "supervisor/dispatch/lanes_internal.h"
#include "supervisor/dispatch/results.h"
#include "supervisor/engine/open_plan.h"

struct core_event lanes_probed(struct lane_instance *in, bool ok)
{
    in->pinged = false;
    return (struct core_event){CORE_EV_INIT(PROBED, probed, .ok = ok), .slot = in->slot,
                               .epoch = in->epoch, .lane = LANE_NONE};
}

static void ping_answered(struct engine *engine, struct lane *lane, struct msg_reader *r)
{
    struct msg_empty m;
    struct bt_error err;
    enum bt_code code = msg_read_answer(r, MSG_empty, &m, NULL, &err);
    /* An agent that does not know the ping answers, too; one that refuses for now cannot work. */
    struct core_event ev =
        lanes_probed(lane->instance, code == BT_OK || code == BT_INVALID || code == BT_NOT_FOUND);

    lane->state = LANE_READY;
    if (!CORE_EV(&ev, probed)->ok) {
        log_info("agent.ping", "instance=%s %s", lane->instance->id, err.msg);
    }
    lanes_feed(engine, &ev);
}

/* A result comes with any answer about an attempt. While a lane of it is open, it comes there. */
static bool is_on_lane(const struct lane_instance *in, const struct control_item *item)
{
    for (uint32_t i = 0; i < in->capacity; i++) {
        const struct lane *lane = &in->lanes[i];
        if (lane->state == LANE_BUSY && lane->item.attempt == item->attempt &&
            strcmp(lane->item.key, item->key) == 0) {
            return true;
        }
    }
    return false;
}

/* What the answer to a query or a cancel says about the attempt. */
static void state_answered(struct engine *engine, struct lane *lane, const struct msg_step_state *m)
{
    const struct control_item *item = &lane->item;
    const bool running = str_is(m->state, "running");
    const bool result = str_is(m->state, "done") && msg_has(m, step_state, result);
    struct core_event ev = {.type = CORE_STATE,
                            .run = item->run,
                            .step = item->step,
                            .phase = item->phase,
                            .attempt = item->attempt,
                            .slot = lane->instance->slot,
                            .epoch = lane->instance->epoch,
                            .instance = {{0}},
                            .lane = LANE_NONE};

    (void)uuid_parse(str_from(lane->instance->id), &ev.instance);
    if ((running || result) &&
        (!str_is(m->key, item->key) || (result && !str_is(m->result.key, item->key)))) {
        log_warn("agent.control", "instance=%s answered for another key than %s",
                 lane->instance->id, item->key);
    } else if (result && !is_on_lane(lane->instance, item)) {
        (void)results_take(engine, &m->result, item->run, item->step, &ev);
    } else if (item->kind == CONTROL_QUERY) {
        *CORE_EV(&ev, state) = (struct core_ev_state){
            .running = running, .never = str_is(m->state, "unknown") && lane->proved};
        lanes_feed(engine, &ev);
    }
}

/* The answer to what the control lane was asked. */
void lanes_control_answered(struct engine *engine, struct lane *lane, struct msg_reader *r)
{
    struct msg_step_state m;
    struct bt_error err;

    if (lane->item.kind == CONTROL_PING) {
        ping_answered(engine, lane, r);
        return;
    }
    lane->state = LANE_READY;
    if (msg_read_answer(r, MSG_step_state, &m, NULL, &err) != BT_OK) {
        log_warn("agent.control", "instance=%s key=%s %s", lane->instance->id, lane->item.key,
                 err.msg);
        return;
    }
    state_answered(engine, lane, &m);
}

void lanes_send_control(struct engine *engine, struct lane_instance *in)
{
    struct lane *lane = &in->lanes[in->capacity];
    struct buf *out = &dispatch_of(engine)->message;

    while (lane->state == LANE_READY && in->queue_n > 0) {
        struct control_item *item = &in->queue[in->queue_at];
        struct msg_step_query query = {
            .session_key = lanes_key(in), .key = str_from(item->key), .attempt = item->attempt};
        struct msg_step_cancel cancel = {.session_key = lanes_key(in),
                                         .key = str_from(item->key),
                                         .attempt = item->attempt,
                                         .reason = STR_LIT("cancelled"),
                                         .grace_ms = 5000};
        struct msg_agent_ping ping = {.session_key = lanes_key(in)};
        const struct {
            enum msg_type type;
            const void *body;
        } all[] = {[CONTROL_QUERY] = {MSG_step_query, &query},
                   [CONTROL_CANCEL] = {MSG_step_cancel, &cancel},
                   [CONTROL_PING] = {MSG_agent_ping, &ping}};
        struct bt_error err;

        lane->item = *item;
        in->queue_at = (in->queue_at + 1) % in->queue_max;
        in->queue_n--;
        buf_clear(out);
        if (msg_request(out, in->form, STR_LIT("control"), (struct str){NULL, 0},
                        all[item->kind].type, all[item->kind].body, &err) == BT_OK &&
            link_lane_send(lane->link, out->at, out->len, &err) == BT_OK) {
            lane->state = LANE_BUSY;
        } else {
            /* The pipe has gone: LANE_DOWN follows, and the core asks again when the lane is back.
             */
            log_debug("agent.control", "instance=%s key=%s %s", in->id, item->key, err.msg);
            in->pinged = in->pinged && item->kind != CONTROL_PING; /* its probe runs out */
        }
    }
}

void lanes_probe(struct engine *engine, const struct core_cmd *cmd)
{
    struct lane_instance *in = lanes_instance(engine, cmd->slot, cmd->epoch);

    if (in == NULL || in->pinged || in->queue_n == in->queue_max) {
        return;
    }
    in->pinged = true;
    in->queue[(in->queue_at + in->queue_n++) % in->queue_max] =
        (struct control_item){.kind = CONTROL_PING};
    lanes_send_control(engine, in);
}

static bool is_same(const struct control_item *a, const struct control_item *b)
{
    return a->kind == b->kind && a->attempt == b->attempt && strcmp(a->key, b->key) == 0;
}

/* The order waits already, or is out. */
static bool is_queued(const struct lane_instance *in, const struct control_item *item)
{
    const struct lane *lane = &in->lanes[in->capacity];
    bool found = lane->state == LANE_BUSY && is_same(&lane->item, item);

    for (uint32_t i = 0; i < in->queue_n && !found; i++) {
        found = is_same(&in->queue[(in->queue_at + i) % in->queue_max], item);
    }
    return found;
}

void lanes_control(struct engine *engine, const struct core_cmd *cmd, enum control_kind kind)
{
    struct lane_instance *in = lanes_instance(engine, cmd->slot, cmd->epoch);
    struct open_plan *p = open_plan_of_run(engine, cmd->run);
    struct control_item item = {.kind = kind,
                                .run = cmd->run,
                                .step = cmd->step,
                                .phase = cmd->phase,
                                .attempt = cmd->attempt};

    if (in == NULL || p == NULL) {
        return;
    }
    step_key(p->plan, p->plan_id, cmd->step, cmd->phase,
             ((const struct run *)core_block_run(p->block))->steps[cmd->step].turns, item.key);
    for (uint32_t i = 0; kind == CONTROL_CANCEL && i < in->capacity; i++) {
        struct lane *lane = &in->lanes[i];
        lane->cancelled =
            lane->cancelled || (lane->state == LANE_BUSY && strcmp(lane->item.key, item.key) == 0);
    }
    if (is_queued(in, &item)) {
        return;
    }
    if (in->queue_n == in->queue_max) {
        log_warn("agent.control",
                 "instance=%s control queue is full; the heartbeat repeats cancels", in->id);
        return;
    }
    in->queue[(in->queue_at + in->queue_n++) % in->queue_max] = item;
    lanes_send_control(engine, in);
}
