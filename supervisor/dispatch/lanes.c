/*
 *   CONNECTING --LINK_UP, hello sent--> GREETING --answer ok--> READY <--send / answer or loss-->
 * BUSY
 *        ^-------------------------------- LINK_DOWN -----------'
 */
#include "supervisor/dispatch/lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/dispatch/dispatch_internal.h"
#include "supervisor/dispatch/lane_proof.h"
#include "supervisor/dispatch/lanes_internal.h"
#include "supervisor/dispatch/result_form.h"
#include "supervisor/dispatch/results.h"
#include "supervisor/dispatch/trunk.h"

struct str lanes_key(const struct lane_instance *in)
{
    return in->proves ? (struct str){NULL, 0} : str_from(in->session_key);
}

uint32_t lanes_pipes(const struct lane_instance *in)
{
    return in->bundle > 0 ? BUNDLE_PIPES : in->capacity;
}

struct lane *lanes_pipe(struct lane_instance *in, uint32_t i)
{
    return in->trunk != NULL && i < BUNDLE_PIPES ? &in->trunk->pipes[i]
           : in->trunk != NULL                   ? &in->lanes[in->capacity]
                                                 : &in->lanes[i];
}

struct lane_instance *lanes_instance(struct engine *engine, uint32_t slot, uint64_t epoch)
{
    const struct dispatch *d = dispatch_of(engine);
    struct lane_instance *in = slot < d->instances_max ? d->instances[slot] : NULL;

    return in != NULL && in->epoch == epoch ? in : NULL;
}

void lanes_feed(struct engine *engine, struct core_event *ev)
{
    struct bt_error err;

    if (engine_feed(engine, ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

void lanes_feed_lane(struct engine *engine, const struct lane *lane, enum core_event_type type)
{
    struct core_event ev = {.type = type,
                            .slot = lane->instance->slot,
                            .epoch = lane->instance->epoch,
                            .lane = lane->ix};

    lanes_feed(engine, &ev);
}

struct core_event lanes_lost(const struct lane *lane, bool sent)
{
    const struct control_item *item = &lane->item;

    return (struct core_event){CORE_EV_INIT(LOST, lost, .sent = sent),
                               .run = item->run,
                               .step = item->step,
                               .phase = item->phase,
                               .attempt = item->attempt,
                               .slot = lane->instance->slot,
                               .epoch = lane->instance->epoch,
                               .lane = lane->ix};
}

enum { URL_MAX = 272 };

static enum bt_code listen_at(struct engine *engine, struct lane *lane, uint16_t port,
                              struct bt_error *err)
{
    const struct engine_options *opt = engine_options(engine);
    const struct link_limits limits = {.recv_max = lane->pipe ? BUNDLE_BYTES_MAX : LIMIT_STEP_BYTES,
                                       .cert_file = opt->remote_cert,
                                       .ca_file = opt->remote_ca};
    const char *at = engine_remote_url(engine);
    const char *colon = strrchr(at, ':');
    char url[URL_MAX];

    if (colon == NULL) {
        return err_set(err, BT_INVALID, "no other host is served (listen.remote)");
    }
    (void)snprintf(url, sizeof url, "%.*s:%u", (int)(colon - at), at, port);
    return link_lane_listen(dispatch_of(engine)->link, url, &limits, lane, &lane->link, err);
}

/* For an agent on another host: it dials, with TLS, one of the ports of listen.lanes. */
static enum bt_code listen_remote(struct engine *engine, struct lane *lane, struct bt_error *err)
{
    const struct engine_options *opt = engine_options(engine);
    enum bt_code code = BT_CONFLICT;

    for (uint32_t port = opt->lane_first; port <= opt->lane_last && code == BT_CONFLICT; port++) {
        code = listen_at(engine, lane, (uint16_t)port, err);
    }
    return code != BT_CONFLICT || opt->lane_first == 0
               ? code
               : err_set(err, BT_LIMIT,
                         "each port of listen.lanes (%u-%u) is taken; an agent needs one for each "
                         "step at a time, and one more",
                         opt->lane_first, opt->lane_last);
}

static enum bt_code open_lane(struct engine *engine, struct lane *lane, struct bt_error *err)
{
    const struct link_limits limits = {.recv_max =
                                           lane->pipe ? BUNDLE_BYTES_MAX : LIMIT_STEP_BYTES};
    struct link *link = dispatch_of(engine)->link;
    const struct lane_instance *in = lane->instance;

    lane->link = NULL;
    if (in->remote) {
        return listen_remote(engine, lane, err);
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

    const uint32_t pipes = lanes_pipes(in);

    for (uint32_t i = from; i <= pipes && code == BT_OK; i++) {
        struct lane *lane = lanes_pipe(in, i);
        if (lane->link == NULL) {
            lane->instance = in;
            lane->ix = i == pipes ? REGISTRY_CONTROL_LANE : i;
            lane->pipe = in->trunk != NULL && i < pipes;
            code = open_lane(engine, lane, err);
        }
    }
    return code;
}

static struct lane_instance *copy_of(const struct lane_instance *proto)
{
    const size_t orders = 2 * (size_t)proto->capacity + 2;
    const size_t lanes = (proto->capacity + (size_t)1) * sizeof(struct lane);
    struct lane_instance *in = calloc(1, sizeof *in + lanes + orders * sizeof *in->queue);

    if (in != NULL) {
        *in = *proto;
        in->queue = (struct control_item *)(in->lanes + proto->capacity + 1);
        in->queue_max = (uint32_t)orders;
    }
    return in;
}

/* ---- session keys: of several instances with one, the first is found */

static bool is_kept(const struct dispatch *d, const struct lane_instance *in)
{
    return map_get(&d->session_keys, str_from(in->session_key)) == in->slot;
}

static enum bt_code key_put(struct dispatch *d, const struct lane_instance *in,
                            struct bt_error *err)
{
    const struct str key = str_from(in->session_key);

    if (map_get(&d->session_keys, key) != MAP_NONE) {
        d->key_twins++;
        return BT_OK;
    }
    return map_put(&d->session_keys, key, in->slot) == BT_OK
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for a session key");
}

/* Before its memory is freed: the map borrows the key. */
static void key_drop(struct dispatch *d, const struct lane_instance *in)
{
    const struct str key = str_from(in->session_key);

    if (!is_kept(d, in)) {
        d->key_twins -= map_get(&d->session_keys, key) != MAP_NONE ? 1 : 0;
        return;
    }
    (void)map_remove(&d->session_keys, key);
    for (uint32_t i = 0; d->key_twins > 0 && i < d->instances_max; i++) {
        const struct lane_instance *twin = d->instances[i];
        if (twin != NULL && twin != in && strcmp(twin->session_key, in->session_key) == 0) {
            d->key_twins -= map_put(&d->session_keys, str_from(twin->session_key), i) == BT_OK;
            return;
        }
    }
}

uint32_t lanes_taken(const struct engine *engine)
{
    return dispatch_of(engine)->lanes_n;
}

const struct lane_instance *lanes_by_key(struct engine *engine, struct str session_key)
{
    const struct dispatch *d = dispatch_of(engine);
    const uint32_t slot = map_get(&d->session_keys, session_key);

    return slot == MAP_NONE ? NULL : d->instances[slot];
}

enum bt_code lanes_open(struct engine *engine, const struct lane_instance *proto,
                        struct bt_error *err)
{
    struct dispatch *d = dispatch_of(engine);
    struct lane_instance *in;

    if (d->instances[proto->slot] != NULL) {
        lanes_close(engine, proto->slot, d->instances[proto->slot]->epoch);
    }
    in = copy_of(proto);
    if (in == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an instance");
    }
    if (in->bundle > 0 && trunk_new(in, err) != BT_OK) {
        free(in);
        return err->code;
    }
    d->instances[in->slot] = in;
    d->lanes_n += lanes_pipes(in) + 1;
    if (key_put(d, in, err) != BT_OK) {
        return err->code;
    }
    /* An agent that is gone costs one dialer: work lanes follow when the control lane answers. */
    return open_from(engine, in, in->endpoint[0] != 0 ? lanes_pipes(in) : 0, err);
}

void lanes_close(struct engine *engine, uint32_t slot, uint64_t epoch)
{
    struct lane_instance *in = lanes_instance(engine, slot, epoch);

    if (in == NULL) {
        return;
    }
    for (uint32_t i = 0; i <= lanes_pipes(in); i++) {
        struct lane *lane = lanes_pipe(in, i);
        if (lane->link != NULL) {
            engine_forget_lane(engine, lane->link);
            link_lane_retire(lane->link);
        }
    }
    if (in->trunk != NULL) {
        trunk_free(engine, in);
    }
    key_drop(dispatch_of(engine), in);
    dispatch_of(engine)->lanes_n -= lanes_pipes(in) + 1;
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
    for (uint32_t i = 0; in->endpoint[0] == 0 && i <= lanes_pipes(in); i++) {
        struct lane *lane = lanes_pipe(in, i);
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
    if (lane->pipe) {
        trunk_up(engine, lane);
    } else {
        lanes_feed_lane(engine, lane, CORE_LANE_UP);
    }
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

void lanes_work_answered(struct engine *engine, struct lane *lane, struct msg_reader *r)
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
    if (code == BT_BUSY) { /* it has no place now, and has not begun it */
        ev = lanes_lost(lane, false);
        ev.type = CORE_BUSY;
        lanes_feed(engine, &ev);
        return;
    }
    ev.phase = item->phase;
    (void)uuid_parse(str_from(lane->instance->id), &ev.instance);
    if (code != BT_OK) {
        /* The agent refused the request itself: the attempt failed with its words. */
        m = failed_answer(item, cls != CLASS_NONE ? cls : CLASS_PROTOCOL_ERROR, err.msg);
        m.failure.code = str_from(bt_code_name(err.code));
        m.failure.retryable = err.code == BT_UNAVAILABLE || err.code == BT_CONFLICT;
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
static void lose_lane(struct engine *engine, struct lane *lane, bool sent)
{
    bool step_is_out = lane->state == LANE_BUSY && lane->ix != REGISTRY_CONTROL_LANE;
    bool ping_is_out = lane->state == LANE_BUSY && lane->ix == REGISTRY_CONTROL_LANE &&
                       lane->item.kind == CONTROL_PING;
    struct core_event ev = lanes_lost(lane, sent);

    if (lane->state != LANE_CONNECTING && lane->state != LANE_GREETING) {
        lanes_feed_lane(engine, lane, CORE_LANE_DOWN);
    }
    lane->state = LANE_CONNECTING;
    lane->cancelled = false;
    if (ping_is_out) {
        ev = lanes_probed(lane->instance, false);
    }
    if (step_is_out || ping_is_out) {
        lanes_feed(engine, &ev);
    }
}

static void lost(struct engine *engine, struct lane *lane, bool sent)
{
    if (lane->pipe) {
        trunk_lost(engine, lane, sent);
    } else {
        lose_lane(engine, lane, sent);
    }
    if (link_lane_is_up(lane->link)) {
        greet(engine, lane);
    }
}

/* The attempt on the lane was answered, and its result is lost for good. */
void lanes_fail_unreadable(struct engine *engine, struct lane *lane, const struct bt_error *why)
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
    lanes_feed_lane(engine, lane, CORE_LANE_DOWN); /* it is not chosen again before its next pipe */
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
    lanes_feed(engine, &gone);
}

/*
 * An answer that cannot be read costs the pipe that it came by, and the attempt that it answers.
 * Another pipe follows, or, where the agent dials in, another greeting. Several in a row cost the
 * instance: the two would go on for ever at the speed of the line.
 */
void lanes_unreadable(struct engine *engine, struct lane *lane, const struct bt_error *why)
{
    const bool control = lane->ix == REGISTRY_CONTROL_LANE;
    struct lane_instance *in = lane->instance;
    struct bt_error err = *why;

    log_warn("lane.garbage", "instance=%s lane=%u %s", in->id, lane->ix, why->msg);
    if (lane->state == LANE_GREETING && in->endpoint[0] == 0) {
        refuse_peer(lane,
                    "its peer answers lane.hello with garbage"); /* it need not be the agent */
        return;
    }
    in->unreadable[control]++;
    if (lane->state == LANE_BUSY && !control && !lane->pipe) {
        lanes_fail_unreadable(engine, lane, why);
    }
    if (in->unreadable[control] >= LANES_UNREADABLE_MAX) {
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

    if (lane->pipe && lane->state == LANE_BUSY) {
        trunk_answered(engine, lane, bytes);
        return;
    }
    if (msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, &err) != BT_OK ||
        result_form_normalise(&r, &err) != BT_OK) {
        lanes_unreadable(engine, lane, &err);
    } else if (lane->state == LANE_GREETING) {
        greeted(engine, lane, &r);
    } else {
        lane->instance->unreadable[lane->ix == REGISTRY_CONTROL_LANE] = 0;
        if (lane->ix == REGISTRY_CONTROL_LANE) {
            lanes_control_answered(engine, lane, &r);
        } else {
            lanes_work_answered(engine, lane, &r);
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
        if (lane->state == LANE_READY && lane->pipe) {
            trunk_lost(engine, lane, false);
        } else if (lane->state == LANE_READY) {
            lanes_feed_lane(engine, lane, CORE_LANE_DOWN);
            lane->state = LANE_CONNECTING;
        }
    } else if (ev->type == LINK_ANSWER) {
        answered(engine, lane, ev);
    } else if (ev->type == LINK_LOST) {
        lost(engine, lane, ev->sent);
    }
    (void)engine_applies(engine, before);
    lanes_send_control(engine, in);
}
