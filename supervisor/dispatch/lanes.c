/*
 *   CONNECTING --LINK_UP, hello sent--> GREETING --answer ok--> READY <--send / answer or loss-->
 * BUSY
 *        ^-------------------------------- LINK_DOWN -----------'
 */
#include "supervisor/dispatch/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/dispatch/dispatch_internal.h"
#include "supervisor/dispatch/keys.h"
#include "supervisor/dispatch/result_form.h"
#include "supervisor/dispatch/results.h"
#include "supervisor/engine/open_plan.h"

static struct str key_of(const struct lane_instance *in)
{
    return str_from(in->session_key);
}

struct lane_instance *lanes_instance(struct engine *engine, uint32_t slot, uint64_t epoch)
{
    const struct dispatch *d = dispatch_of(engine);
    struct lane_instance *in = slot < d->instances_max ? d->instances[slot] : NULL;

    return in != NULL && in->epoch == epoch ? in : NULL;
}

static void feed_lane(struct engine *engine, const struct lane *lane, enum core_event_type type)
{
    struct core_event ev = {.type = type,
                            .slot = lane->instance->slot,
                            .epoch = lane->instance->epoch,
                            .lane = lane->ix};
    struct bt_error err;

    if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

/* Those from the index on that are not open yet. */
static enum bt_code open_from(struct engine *engine, struct lane_instance *in, uint32_t from,
                              struct bt_error *err)
{
    const struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES};
    struct link *l = dispatch_of(engine)->link;
    enum bt_code code = BT_OK;

    for (uint32_t i = from; i <= in->capacity && code == BT_OK; i++) {
        struct lane *lane = &in->lanes[i];
        if (lane->link != NULL) {
            continue;
        }
        lane->instance = in;
        lane->ix = i == in->capacity ? REGISTRY_CONTROL_LANE : i;
        code = in->endpoint[0] != 0
                   ? link_lane_dial(l, in->endpoint, &limits, lane, &lane->link, err)
                   : link_lane_listen(l, "tcp://127.0.0.1:0", &limits, lane, &lane->link, err);
    }
    return code;
}

enum bt_code lanes_open(struct engine *engine, const struct lane_instance *proto,
                        struct bt_error *err)
{
    struct dispatch *d = dispatch_of(engine);
    struct lane_instance *in = calloc(1, sizeof *in);

    if (d->instances[proto->slot] != NULL) {
        lanes_close(engine, proto->slot, d->instances[proto->slot]->epoch);
    }
    if (in == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an instance");
    }
    *in = *proto;
    d->instances[in->slot] = in;
    /* An agent that is gone costs one dialer: work lanes follow when the control lane answers. */
    return open_from(engine, in, in->endpoint[0] != 0 ? in->capacity : 0, err);
}

void lanes_close(struct engine *engine, uint32_t slot, uint64_t epoch)
{
    struct lane_instance *in = lanes_instance(engine, slot, epoch);

    if (in == NULL) {
        return;
    }
    for (uint32_t i = 0; i <= in->capacity; i++) {
        if (in->lanes[i].link != NULL) {
            engine_forget_lane(engine, in->lanes[i].link);
            link_lane_retire(in->lanes[i].link);
        }
    }
    dispatch_of(engine)->instances[slot] = NULL;
    free(in);
}

static void greet(struct engine *engine, struct lane *lane)
{
    struct msg_lane_hello m = {
        .lane = lane->ix, .epoch = lane->instance->epoch, .session_key = key_of(lane->instance)};
    struct buf *out = &dispatch_of(engine)->message;
    struct bt_error err;

    msg_set(&m, lane_hello, lane);
    buf_clear(out);
    if (msg_request(out, lane->instance->form, STR_LIT("hello"), (struct str){NULL, 0},
                    MSG_lane_hello, &m, &err) != BT_OK ||
        link_lane_send(lane->link, out->at, out->len, &err) != BT_OK) {
        log_warn("lane.hello", "agent=%s %s", lane->instance->id, err.msg);
        return;
    }
    lane->state = LANE_GREETING;
}

static void greeted(struct engine *engine, struct lane *lane, struct msg_reader *r)
{
    struct msg_empty m;
    struct bt_error err;
    enum bt_code code = msg_read_answer(r, MSG_empty, &m, NULL, &err);

    if (code != BT_OK) {
        /* A stranger on the port, or an older incarnation: nothing is ever sent to it. The lease
         * ends it. */
        log_warn("lane.refused", "instance=%s lane=%u %s", lane->instance->id, lane->ix, err.msg);
        lane->state = LANE_CONNECTING;
        return;
    }
    lane->state = LANE_READY;
    if (lane->ix == REGISTRY_CONTROL_LANE && open_from(engine, lane->instance, 0, &err) != BT_OK) {
        log_err("agent.lanes", "instance=%s %s", lane->instance->id, err.msg);
    }
    feed_lane(engine, lane, CORE_LANE_UP);
}

static struct core_event probed(struct lane_instance *in, bool ok)
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
        probed(lane->instance, code == BT_OK || code == BT_INVALID || code == BT_NOT_FOUND);

    lane->state = LANE_READY;
    if (!CORE_EV(&ev, probed)->ok) {
        log_info("agent.ping", "instance=%s %s", lane->instance->id, err.msg);
    }
    if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

/* The answer to what the control lane was asked. */
static void control_answered(struct engine *engine, struct lane *lane, struct msg_reader *r)
{
    const struct control_item *item = &lane->item;
    struct core_event ev = {.type = CORE_STATE,
                            .run = item->run,
                            .step = item->step,
                            .phase = item->phase,
                            .attempt = item->attempt,
                            .slot = lane->instance->slot,
                            .epoch = lane->instance->epoch,
                            .instance = {{0}},
                            .lane = LANE_NONE};
    struct msg_step_state m;
    struct bt_error err;

    if (item->kind == CONTROL_PING) {
        ping_answered(engine, lane, r);
        return;
    }
    lane->state = LANE_READY;
    if (msg_read_answer(r, MSG_step_state, &m, NULL, &err) != BT_OK) {
        log_warn("agent.control", "instance=%s key=%s %s", lane->instance->id, item->key, err.msg);
        return;
    }
    if (item->kind != CONTROL_QUERY) {
        return;
    }
    (void)uuid_parse(str_from(lane->instance->id), &ev.instance);
    if (!str_is(m.state, "unknown") &&
        (!str_is(m.key, item->key) ||
         (msg_has(&m, step_state, result) && !str_is(m.result.key, item->key)))) {
        log_warn("agent.control", "instance=%s answered for another key than %s",
                 lane->instance->id, item->key);
        return;
    }
    if (str_is(m.state, "done") && msg_has(&m, step_state, result)) {
        (void)results_take(engine, &m.result, item->run, item->step, &ev);
        return;
    }
    CORE_EV(&ev, state)->running = str_is(m.state, "running");
    if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

static void work_answered(struct engine *engine, struct lane *lane, struct msg_reader *r)
{
    struct core_event ev = {
        .slot = lane->instance->slot, .epoch = lane->instance->epoch, .lane = lane->ix};
    const struct control_item *item = &lane->item;
    enum err_class cls = CLASS_NONE;
    struct msg_step_result m;
    struct bt_error err;
    enum bt_code code = msg_read_answer(r, MSG_step_result, &m, &cls, &err);

    lane->state = LANE_READY;
    lane->cancelled = false;
    ev.phase = item->phase;
    (void)uuid_parse(str_from(lane->instance->id), &ev.instance);
    if (code != BT_OK) {
        /* The agent refused the request itself: the attempt failed with its words. */
        m = (struct msg_step_result){
            .key = str_from(item->key), .attempt = item->attempt, .outcome = STR_LIT("failed")};
        msg_set(&m, step_result, failure);
        m.failure.code = str_from(bt_code_name(err.code));
        m.failure.class_ = str_from(err_class_name(cls != CLASS_NONE ? cls : CLASS_PROTOCOL_ERROR));
        m.failure.message = str_from(err.msg);
        m.failure.retryable =
            err.code == BT_BUSY || err.code == BT_UNAVAILABLE || err.code == BT_CONFLICT;
        msg_set(&m.failure, error, retryable);
    } else if (!str_is(m.key, item->key) || m.attempt != item->attempt) {
        log_warn("step.result.foreign", "instance=%s key=%.*s expected=%s", lane->instance->id,
                 STR_ARG(m.key), item->key);
        m = (struct msg_step_result){
            .key = str_from(item->key), .attempt = item->attempt, .outcome = STR_LIT("failed")};
        msg_set(&m, step_result, failure);
        m.failure.class_ = STR_LIT("PROTOCOL_ERROR");
        m.failure.message = STR_LIT("the agent answered for another step or attempt");
    }
    (void)results_take(engine, &m, item->run, item->step, &ev);
}

/* The request on this lane has no answer. The lane goes down first, so that the core does not
 * choose it again. */
static void lost(struct engine *engine, struct lane *lane, bool sent)
{
    const struct control_item *item = &lane->item;
    bool step_is_out = lane->state == LANE_BUSY && lane->ix != REGISTRY_CONTROL_LANE;
    bool ping_is_out =
        lane->state == LANE_BUSY && lane->ix == REGISTRY_CONTROL_LANE && item->kind == CONTROL_PING;
    struct core_event ev = {CORE_EV_INIT(LOST, lost, .sent = sent),
                            .run = item->run,
                            .step = item->step,
                            .phase = item->phase,
                            .attempt = item->attempt,
                            .slot = lane->instance->slot,
                            .epoch = lane->instance->epoch,
                            .lane = lane->ix};
    struct bt_error err;

    if (lane->state != LANE_CONNECTING && lane->state != LANE_GREETING) {
        feed_lane(engine, lane, CORE_LANE_DOWN);
    }
    lane->state = LANE_CONNECTING;
    lane->cancelled = false;
    if (ping_is_out) {
        ev = probed(lane->instance, false);
    }
    if ((step_is_out || ping_is_out) && engine_feed(engine, &ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
    if (!lane->mute && link_lane_is_up(lane->link)) {
        greet(engine, lane);
    }
}

static void send_next_control(struct engine *engine, struct lane_instance *in)
{
    struct lane *lane = &in->lanes[in->capacity];
    struct buf *out = &dispatch_of(engine)->message;

    while (lane->state == LANE_READY && in->queue_n > 0) {
        struct control_item *item = &in->queue[in->queue_at];
        struct msg_step_query query = {
            .session_key = key_of(in), .key = str_from(item->key), .attempt = item->attempt};
        struct msg_step_cancel cancel = {.session_key = key_of(in),
                                         .key = str_from(item->key),
                                         .reason = STR_LIT("cancelled"),
                                         .grace_ms = 5000};
        struct msg_agent_ping ping = {.session_key = key_of(in)};
        const struct {
            enum msg_type type;
            const void *body;
        } all[] = {[CONTROL_QUERY] = {MSG_step_query, &query},
                   [CONTROL_CANCEL] = {MSG_step_cancel, &cancel},
                   [CONTROL_PING] = {MSG_agent_ping, &ping}};
        struct bt_error err;

        lane->item = *item;
        in->queue_at = (in->queue_at + 1) % LANES_CONTROL_QUEUE;
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

    if (in == NULL || in->pinged || in->queue_n == LANES_CONTROL_QUEUE) {
        return;
    }
    in->pinged = true;
    in->queue[(in->queue_at + in->queue_n++) % LANES_CONTROL_QUEUE] =
        (struct control_item){.kind = CONTROL_PING};
    send_next_control(engine, in);
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
    step_key(p->plan, cmd->step, cmd->phase, item.key);
    for (uint32_t i = 0; kind == CONTROL_CANCEL && i < in->capacity; i++) {
        struct lane *lane = &in->lanes[i];
        lane->cancelled =
            lane->cancelled || (lane->state == LANE_BUSY && strcmp(lane->item.key, item.key) == 0);
    }
    if (in->queue_n == LANES_CONTROL_QUEUE) {
        log_warn("agent.control",
                 "instance=%s control queue is full; the heartbeat repeats cancels", in->id);
        return;
    }
    in->queue[(in->queue_at + in->queue_n++) % LANES_CONTROL_QUEUE] = item;
    send_next_control(engine, in);
}

/*
 * What cannot be read is no answer. Its peer is not greeted again on this pipe: the
 * two of us would go on for ever at the speed of the line.
 */
static void garbage(struct engine *engine, struct lane *lane)
{
    lane->mute = true;
    lost(engine, lane, true);
}

static void answered(struct engine *engine, struct lane *lane, struct link_event *ev)
{
    struct str bytes = link_msg_bytes(ev->msg);
    struct msg_reader r = {0};
    struct bt_error err;

    if (msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, &err) != BT_OK ||
        result_form_normalise(&r, &err) != BT_OK) {
        log_warn("lane.garbage", "instance=%s lane=%u %s", lane->instance->id, lane->ix, err.msg);
        garbage(engine, lane);
    } else if (lane->state == LANE_GREETING) {
        greeted(engine, lane, &r);
    } else if (lane->ix == REGISTRY_CONTROL_LANE) {
        control_answered(engine, lane, &r);
    } else {
        work_answered(engine, lane, &r);
    }
    msg_reader_done(&r);
}

void lanes_on_link(struct engine *engine, struct link_event *ev)
{
    struct lane *lane = ev->owner;
    struct lane_instance *in = lane->instance;
    const uint64_t before = engine_applies(engine, lane->state == LANE_BUSY ? lane->item.run : 0);

    if (ev->type == LINK_UP) {
        lane->mute = false;
        if (lane->state == LANE_CONNECTING) {
            greet(engine, lane);
        }
    } else if (ev->type == LINK_DOWN) {
        if (lane->state == LANE_READY) {
            feed_lane(engine, lane, CORE_LANE_DOWN);
            lane->state = LANE_CONNECTING;
        }
    } else if (ev->type == LINK_ANSWER) {
        answered(engine, lane, ev);
    } else if (ev->type == LINK_LOST) {
        lost(engine, lane, ev->sent);
    }
    (void)engine_applies(engine, before);
    send_next_control(engine, in);
}
