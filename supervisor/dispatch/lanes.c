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
#include "supervisor/dispatch/lane_proof.h"
#include "supervisor/dispatch/lanes_remote.h"
#include "supervisor/dispatch/result_form.h"
#include "supervisor/dispatch/results.h"
#include "supervisor/engine/open_plan.h"

struct str lanes_key(const struct lane_instance *in)
{
    return in->proves ? (struct str){NULL, 0} : str_from(in->session_key);
}

struct lane_instance *lanes_instance(struct engine *engine, uint32_t slot, uint64_t epoch)
{
    const struct dispatch *d = dispatch_of(engine);
    struct lane_instance *in = slot < d->instances_max ? d->instances[slot] : NULL;

    return in != NULL && in->epoch == epoch ? in : NULL;
}

static void feed(struct engine *engine, struct core_event *ev)
{
    struct bt_error err;

    if (engine_feed(engine, ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

static void feed_lane(struct engine *engine, const struct lane *lane, enum core_event_type type)
{
    struct core_event ev = {.type = type,
                            .slot = lane->instance->slot,
                            .epoch = lane->instance->epoch,
                            .lane = lane->ix};

    feed(engine, &ev);
}

static enum bt_code open_lane(struct engine *engine, struct lane *lane, struct bt_error *err)
{
    static const struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES};
    struct link *link = dispatch_of(engine)->link;
    const struct lane_instance *in = lane->instance;

    lane->link = NULL;
    if (in->remote) {
        return lanes_listen_remote(engine, lane, err);
    }
    return in->endpoint[0] != 0
               ? link_lane_dial(link, in->endpoint, &limits, lane, &lane->link, err)
               : link_lane_listen(link, "tcp://127.0.0.1:0", &limits, lane, &lane->link, err);
}

/* Those from the index on that are not open yet. */
static enum bt_code open_from(struct engine *engine, struct lane_instance *in, uint32_t from,
                              struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (uint32_t i = from; i <= in->capacity && code == BT_OK; i++) {
        struct lane *lane = &in->lanes[i];
        if (lane->link == NULL) {
            lane->instance = in;
            lane->ix = i == in->capacity ? REGISTRY_CONTROL_LANE : i;
            code = open_lane(engine, lane, err);
        }
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

static void send_hello(struct engine *engine, struct lane *lane)
{
    struct msg_lane_hello m = {
        .lane = lane->ix, .epoch = lane->instance->epoch, .session_key = lanes_key(lane->instance)};
    struct buf *out = &dispatch_of(engine)->message;
    char process[UUID_TEXT_LEN + 1];
    struct lane_proof_texts texts;
    struct bt_error err;

    if (lane->instance->proves && !lane_proof_put(lane, &texts, &m)) {
        log_warn("lane.hello", "agent=%s no proof can be made now", lane->instance->id);
        return;
    }
    if (!uuid_is_nil(lane->instance->process)) {
        uuid_format(lane->instance->process, process);
        m.process_id = (struct str){process, UUID_TEXT_LEN};
    }
    msg_set(&m, lane_hello, lane);
    buf_clear(out);
    if (msg_request(out, lane->instance->form, STR_LIT("hello"), (struct str){NULL, 0},
                    MSG_lane_hello, &m, &err) != BT_OK ||
        link_lane_send(lane->link, out->at, out->len, &err) != BT_OK) {
        log_warn("lane.hello", "agent=%s %s", lane->instance->id, err.msg);
        return;
    }
    lane->state = LANE_GREETING;
    lane->greeted_at = engine_now(engine);
}

/* A new connection: nothing is proved on it. */
static void greet(struct engine *engine, struct lane *lane)
{
    lane->proving = false;
    send_hello(engine, lane);
}

/* Another process may have the port, and even the session key, of the one that registered. */
static enum bt_code check_process(struct lane *lane, struct str answered, struct bt_error *err)
{
    const struct lane_instance *in = lane->instance;
    struct uuid process;

    lane->proved = false;
    if (uuid_is_nil(in->process) || answered.len == 0) {
        return BT_OK;
    }
    lane->proved = uuid_parse(answered, &process) && uuid_eq(process, in->process);
    return lane->proved ? BT_OK
                        : err_set(err, BT_PROTOCOL, "processId: another process answers: %.*s",
                                  STR_ARG(answered));
}

/* Where the agent dials, the stranger has the place of the agent's connection, and loses it; on a
 * port where the agent listens the lease ends it. */
static void refuse_peer(struct lane *lane, const char *why)
{
    struct lane_instance *in = lane->instance;

    log_warn("lane.refused", "instance=%s lane=%u %s", in->id, lane->ix, why);
    lane->state = LANE_CONNECTING;
    if (in->endpoint[0] == 0) {
        link_lane_hang_up(lane->link, in->from);
    }
}

void lanes_hang_up_on_mute(struct engine *engine, struct lane_instance *in)
{
    for (uint32_t i = 0; in->endpoint[0] == 0 && i <= in->capacity; i++) {
        struct lane *lane = &in->lanes[i];
        if (lane->state == LANE_GREETING &&
            engine_now(engine) - lane->greeted_at >= LANES_GREETING_MS) {
            log_warn("lane.refused", "instance=%s lane=%u its peer does not answer lane.hello",
                     in->id, lane->ix);
            link_lane_hang_up(lane->link, in->from); /* LINK_LOST follows */
        }
    }
}

static void greeted(struct engine *engine, struct lane *lane, struct msg_reader *r)
{
    struct msg_lane_hello_ok m;
    struct bt_error err;
    enum bt_code code = msg_read_answer(r, MSG_lane_hello_ok, &m, NULL, &err);

    code = code == BT_OK ? check_process(lane, m.process_id, &err) : code;
    code = code == BT_OK ? lane_proof_take(lane, &m, &err) : code;
    if (code != BT_OK) {
        /* A stranger on the port, or an older incarnation: nothing is ever sent to it. */
        refuse_peer(lane, err.msg);
        return;
    }
    if (lane->proving) {
        lane->state = LANE_CONNECTING; /* unless it can be sent */
        send_hello(engine, lane);
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
        feed(engine, &ev);
    }
}

/* The answer to what the control lane was asked. */
static void control_answered(struct engine *engine, struct lane *lane, struct msg_reader *r)
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

/* The result in the place of an answer that is none. */
static struct msg_step_result failed_answer(const struct control_item *item, enum err_class cls,
                                            const char *message)
{
    struct msg_step_result m = {
        .key = str_from(item->key), .attempt = item->attempt, .outcome = STR_LIT("failed")};

    msg_set(&m, step_result, failure);
    m.failure.class_ = str_from(err_class_name(cls));
    m.failure.message = str_from(message);
    return m;
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
        m = failed_answer(item, cls != CLASS_NONE ? cls : CLASS_PROTOCOL_ERROR, err.msg);
        m.failure.code = str_from(bt_code_name(err.code));
        m.failure.retryable =
            err.code == BT_BUSY || err.code == BT_UNAVAILABLE || err.code == BT_CONFLICT;
        msg_set(&m.failure, error, retryable);
    } else if (!str_is(m.key, item->key) || m.attempt != item->attempt) {
        log_warn("step.result.foreign", "instance=%s key=%.*s/%llu expected=%s/%u",
                 lane->instance->id, STR_ARG(m.key), (unsigned long long)m.attempt, item->key,
                 item->attempt);
        m = failed_answer(item, CLASS_PROTOCOL_ERROR,
                          "the agent answered for another step or attempt");
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

    if (lane->state != LANE_CONNECTING && lane->state != LANE_GREETING) {
        feed_lane(engine, lane, CORE_LANE_DOWN);
    }
    lane->state = LANE_CONNECTING;
    lane->cancelled = false;
    if (ping_is_out) {
        ev = probed(lane->instance, false);
    }
    if (step_is_out || ping_is_out) {
        feed(engine, &ev);
    }
    if (link_lane_is_up(lane->link)) {
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
        found = is_same(&in->queue[(in->queue_at + i) % LANES_CONTROL_QUEUE], item);
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
    step_key(p->plan, cmd->step, cmd->phase, item.key);
    for (uint32_t i = 0; kind == CONTROL_CANCEL && i < in->capacity; i++) {
        struct lane *lane = &in->lanes[i];
        lane->cancelled =
            lane->cancelled || (lane->state == LANE_BUSY && strcmp(lane->item.key, item.key) == 0);
    }
    if (is_queued(in, &item)) {
        return;
    }
    if (in->queue_n == LANES_CONTROL_QUEUE) {
        log_warn("agent.control",
                 "instance=%s control queue is full; the heartbeat repeats cancels", in->id);
        return;
    }
    in->queue[(in->queue_at + in->queue_n++) % LANES_CONTROL_QUEUE] = item;
    send_next_control(engine, in);
}

/* The attempt on the lane was answered, and its result is lost for good. */
static void fail_unreadable(struct engine *engine, struct lane *lane, const struct bt_error *why)
{
    struct core_event ev = {.slot = lane->instance->slot,
                            .epoch = lane->instance->epoch,
                            .lane = lane->ix,
                            .phase = lane->item.phase};
    struct bt_error text;
    struct msg_step_result m;

    (void)err_set(&text, BT_PROTOCOL, "the agent's answer cannot be read: %s", why->msg);
    m = failed_answer(&lane->item, CLASS_PROTOCOL_ERROR, text.msg);
    (void)uuid_parse(str_from(lane->instance->id), &ev.instance);
    feed_lane(engine, lane, CORE_LANE_DOWN); /* it is not chosen again before its next pipe */
    lane->state = LANE_CONNECTING;
    lane->cancelled = false;
    (void)results_take(engine, &m, lane->item.run, lane->item.step, &ev);
}

static void give_up_instance(struct engine *engine, struct lane_instance *in,
                             const struct bt_error *why)
{
    struct core_event gone = {.type = CORE_GONE, .slot = in->slot, .epoch = in->epoch};
    struct bt_error text;

    (void)err_set(&text, BT_PROTOCOL, "its answers cannot be read: %s", why->msg);
    gone.text = str_from(text.msg);
    log_err("lane.unreadable", "instance=%s %d answers in a row: %s", in->id, LANES_UNREADABLE_MAX,
            why->msg);
    feed(engine, &gone);
}

/*
 * An answer that cannot be read costs the pipe that it came by, and the attempt that it answers.
 * Another pipe follows, or, where the agent dials in, another greeting. Several in a row cost the
 * instance: the two would go on for ever at the speed of the line.
 */
static void unreadable(struct engine *engine, struct lane *lane, const struct bt_error *why)
{
    struct lane_instance *in = lane->instance;
    struct bt_error err = *why;

    log_warn("lane.garbage", "instance=%s lane=%u %s", in->id, lane->ix, why->msg);
    if (lane->state == LANE_GREETING && in->endpoint[0] == 0) {
        refuse_peer(lane,
                    "its peer answers lane.hello with garbage"); /* it need not be the agent */
        return;
    }
    in->unreadable++;
    if (lane->state == LANE_BUSY && lane->ix != REGISTRY_CONTROL_LANE) {
        fail_unreadable(engine, lane, why);
    }
    if (in->unreadable >= LANES_UNREADABLE_MAX) {
        give_up_instance(engine, in, why);
    } else if (in->endpoint[0] == 0) {
        lost(engine, lane, true);
    } else {
        link_lane_retire(lane->link);
        if (open_lane(engine, lane, &err) == BT_OK) {
            lost(engine, lane, true);
        } else {
            give_up_instance(engine, in, &err);
        }
    }
}

static void answered(struct engine *engine, struct lane *lane, struct link_event *ev)
{
    struct str bytes = link_msg_bytes(ev->msg);
    struct msg_reader r = {0};
    struct bt_error err;

    if (msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, &err) != BT_OK ||
        result_form_normalise(&r, &err) != BT_OK) {
        unreadable(engine, lane, &err);
    } else if (lane->state == LANE_GREETING) {
        greeted(engine, lane, &r);
    } else {
        lane->instance->unreadable = 0;
        if (lane->ix == REGISTRY_CONTROL_LANE) {
            control_answered(engine, lane, &r);
        } else {
            work_answered(engine, lane, &r);
        }
    }
    msg_reader_done(&r);
}

void lanes_on_link(struct engine *engine, struct link_event *ev)
{
    struct lane *lane = ev->owner;
    struct lane_instance *in = lane->instance;
    const uint64_t before = engine_applies(engine, lane->state == LANE_BUSY ? lane->item.run : 0);

    if (ev->type == LINK_UP) {
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
