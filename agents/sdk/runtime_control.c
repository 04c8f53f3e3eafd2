/* The control lane: finding the supervisor, requests to it, and its answers. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "agents/sdk/runtime.h"
#include "agents/sdk/shards/shards.h"
#include "protocol/base/log.h"
#include "protocol/client/seeds.h"

static const struct link_limits control_limits = {.recv_max =
                                                      SEAL_HEADER_BYTES + LIMIT_CONTROL_BYTES};

enum { CONTROL_ID_BYTES = 32 };

/* Users whose processes may be the supervisor. */
static void trust(struct runtime *rt, const struct state_endpoints *at)
{
    uint32_t trusted[STATE_TRUSTED_MAX];
    uint32_t owner = at->owner; /* the key of a credential is never sent */
    struct bt_error err;

    if (rt->credential.id[0] == 0 &&
        state_token_read_of(buf_cstr(&rt->state_dir), rt->token, &owner, &err) != BT_OK) {
        log_warn("agent.token", "%s", err.msg);
    }
    link_trust(rt->link, trusted, state_trusted(owner, trusted));
}

void runtime_drop_control(struct runtime *rt)
{
    link_lane_retire(rt->control);
    rt->control = NULL;
    rt->outstanding = false;
}

/* A process of another user may not read the state directory: it was handed the address. */
static bool find_daemon(struct runtime *rt, struct state_endpoints *ret)
{
    char name[32] = "control";
    const char *given;
    struct bt_error err;

    *ret = (struct state_endpoints){.pid = 0};
    if (state_endpoints_read(buf_cstr(&rt->state_dir), ret, &err) == BT_OK) {
        return true;
    }
    if (rt->opt->fleet != NULL) {
        (void)snprintf(name, sizeof name, "control:%" PRIu32, rt->opt->shard);
    }
    given = handover_get(&rt->opt->handover, name);
    (void)snprintf(ret->control, sizeof ret->control, "%s", given != NULL ? given : "");
    return given != NULL;
}

/* ---- a supervisor on another host: TLS, and lanes that are dialed. Nothing of its state directory
 * is here ---- */

static struct link_limits remote_limits(const struct runtime *rt, size_t recv_max)
{
    return (struct link_limits){
        .recv_max = recv_max, .ca_file = rt->opt->ca, .cert_file = rt->opt->cert};
}

/* One of several that leads no more, or has not answered in its time. */
static bool take_next(struct runtime *rt)
{
    if (rt->opt->seeds < 2 || rt->control == NULL ||
        (link_lane_is_up(rt->control) && !rt->outstanding)) {
        return false;
    }
    rt->seed = (rt->seed + 1) % rt->opt->seeds;
    rt->in_vain++;
    return true;
}

static void dial_remote(struct runtime *rt)
{
    const struct link_limits limits = remote_limits(rt, SEAL_HEADER_BYTES + LIMIT_CONTROL_BYTES);
    struct bt_error err;

    if (!take_next(rt) && rt->control != NULL && !rt->outstanding) {
        rt->feed_up = link_lane_is_up(rt->control);
        return; /* the lane reconnects by itself */
    }
    if (rt->control != NULL) { /* silent for a lease: half open */
        link_lane_retire(rt->control);
        rt->control = NULL;
        rt->outstanding = false;
    }
    seeds_get(rt->opt->connect, rt->seed, rt->control_url);
    if (rt->opt->seeds > 1) {
        rt->look_at = msec_add(clock_mono_ms(), seeds_patience(rt->in_vain, rt->opt->seeds));
    }
    if (link_lane_dial(rt->link, rt->control_url, &limits, NULL, &rt->control, &err) != BT_OK) {
        log_warn("agent.dial", "%s", err.msg);
    }
}

/* The supervisor knows its own name of its host, and this side the one that works from here: of a
 * lane only the port is taken. */
static void remote_lane(const struct runtime *rt, struct str announced, char *ret, size_t cap)
{
    const char *own = rt->opt->connect != NULL ? rt->control_url : NULL;
    const char *colon = own != NULL ? strrchr(own, ':') : NULL;
    size_t port = announced.len;

    while (port > 0 && announced.ptr[port - 1] != ':') {
        port--;
    }
    if (colon == NULL) {
        (void)snprintf(ret, cap, "%.*s", STR_ARG(announced));
    } else {
        (void)snprintf(ret, cap, "%.*s:%.*s", (int)(colon - own), own, (int)(announced.len - port),
                       announced.ptr + port);
    }
}

/* The daemon may have been restarted on another port, with another token. One that has ended is not
 * dialed: anybody may listen there. */
static void look_again(struct runtime *rt)
{
    const msec now = clock_mono_ms();

    rt->away_since = rt->away_since == 0 ? now : rt->away_since;
    rt->look_at = msec_add(now, agent_state_look_wait(now - rt->away_since));
}

/* The daemon that leads here, else one of another node of this host. */
static bool find_leader(struct runtime *rt, struct state_endpoints *ret)
{
    bool elsewhere = false;
    bool found = find_daemon(rt, ret) && !state_daemon_ended(ret);
    struct bt_error err;

    if (!found) {
        *ret = (struct state_endpoints){.pid = 0};
        elsewhere = shards_elsewhere(rt->opt, ret->control);
        found = elsewhere;
    }
    if (found && elsewhere != rt->elsewhere) {
        rt->elsewhere = elsewhere;
        if (runtime_credential(rt, &err) != BT_OK) {
            log_warn("agent.credential", "%s", err.msg);
        }
    }
    return found;
}

void runtime_dial(struct runtime *rt)
{
    struct state_endpoints at;
    struct bt_error err;

    rt->look_at = MSEC_NEVER;
    if (rt->opt->connect != NULL) {
        dial_remote(rt);
        return;
    }
    if (!find_leader(rt, &at)) {
        runtime_drop_control(rt);
        look_again(rt);
        return;
    }
    if (rt->control != NULL && !rt->outstanding && strcmp(at.control, rt->control_url) == 0 &&
        uuid_eq(at.instance, rt->daemon)) {
        rt->feed_up = link_lane_is_up(rt->control);
        if (!rt->feed_up) {
            look_again(rt); /* it is being connected */
        }
        return;
    }
    runtime_drop_control(rt);
    trust(rt, &at);
    if (link_url_check(str_from(at.control), false, false, &err) != BT_OK ||
        link_lane_dial(rt->link, at.control, &control_limits, NULL, &rt->control, &err) != BT_OK) {
        log_warn("agent.dial", "control=%s %s", at.control, err.msg);
        return;
    }
    rt->daemon = at.instance;
    (void)snprintf(rt->control_url, sizeof rt->control_url, "%s", at.control);
    log_debug("agent.dial", "control=%s", at.control);
    look_again(rt); /* one that was killed may still be ending: its address is stale then */
}

static void send_control(struct runtime *rt, enum msg_type type, const void *body)
{
    char id[CONTROL_ID_BYTES];
    struct bt_error err;
    enum bt_code code;

    (void)snprintf(id, sizeof id, "c%" PRIu64, ++rt->control_n);
    buf_clear(&rt->request);
    code = msg_request(&rt->request, WIRE_MSGPACK, str_from(id), str_from(rt->token), type, body,
                       &err);
    if (code == BT_OK && rt->control == NULL) {
        code = err_set(&err, BT_UNAVAILABLE, "no control lane");
    }
    if (code == BT_OK) {
        code = runtime_send(rt, &err);
    }
    if (code == BT_OK) {
        rt->outstanding = true;
        return;
    }
    log_debug("agent.control", "%s: %s", msg_wire_type(type), err.msg);
    if (type == MSG_step_result && (code == BT_LIMIT || code == BT_INVALID)) {
        log_warn("agent.result",
                 "a late result is too large for the control socket; it is kept for step.query");
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_RESULT_OK});
        return;
    }
    runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_LOST});
}

static void send_register(struct runtime *rt)
{
    struct msg_agent_register m = {.instance_id = str_from(rt->instance_id),
                                   .capacity = rt->agent_state.capacity,
                                   .pid = (uint64_t)getpid(),
                                   .session_key = str_from(rt->session_key),
                                   .process_id = str_from(rt->process_id),
                                   .bundle = BUNDLE_ITEMS_MAX,
                                   .proof = true,
                                   .dial_in = rt->opt->dial_in};
    struct arena arena = {0};
    struct bt_error err;
    struct buf versions;

    buf_init(&versions, 64);
    doc_put_array(&versions, 1);
    doc_put_u64(&versions, 1);
    m.protocol = doc_from_buf(&versions);
    if (!rt->opt->dial_in) {
        m.endpoint = str_from(link_server_url(rt->server));
    }
    if (rt->credential.id[0] == 0 &&
        state_token_read(buf_cstr(&rt->state_dir), rt->token, &err) != BT_OK) {
        log_warn("agent.token", "%s", err.msg);
    }
    if (card_view(rt->card, &arena, &m.card, &err) == BT_OK) {
        send_control(rt, MSG_agent_register, &m);
    } else {
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_LOST});
    }
    arena_done(&arena);
    buf_done(&versions);
}

static void send_heartbeat(struct runtime *rt)
{
    struct msg_inflight inflight[LIMIT_CAPACITY];
    const struct agent_state *s = &rt->agent_state;
    struct msg_agent_heartbeat m = {.instance_id = str_from(rt->instance_id),
                                    .epoch = s->epoch,
                                    .load = (double)s->running / (double)s->capacity};

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS && m.inflight_n < LIMIT_CAPACITY; i++) {
        const struct agent_state_slot *slot = &s->slots[i];
        double percent = rt->slots[i].progress.percent;
        if (slot->state == SLOT_RUNNING) {
            inflight[m.inflight_n++] =
                (struct msg_inflight){.key = {slot->key, slot->key_len},
                                      .attempt = slot->attempt,
                                      .progress = percent > 0.0 ? percent / 100.0 : 0.0};
        }
    }
    m.inflight = inflight;
    send_control(rt, MSG_agent_heartbeat, &m);
}

static void send_progress(struct runtime *rt, uint32_t slot)
{
    const struct agent_state_slot *r = &rt->agent_state.slots[slot];
    const struct step_progress *p = &rt->slots[slot].progress;
    struct msg_step_progress m = {.instance_id = str_from(rt->instance_id),
                                  .key = {r->key, r->key_len},
                                  .attempt = r->attempt,
                                  .epoch = rt->agent_state.epoch,
                                  .n = p->n,
                                  .text = str_from(p->text)};
    struct step_progress piece;
    struct buf data;

    buf_init(&data, 64);
    if (rt->slots[slot].step != NULL && step_stream_piece(rt->slots[slot].step, &piece) > 0) {
        m.n = piece.n;
        m.text = str_from(piece.text);
        if (piece.reset) {
            doc_put_map(&data, 1);
            doc_put_cstr(&data, "anew");
            doc_put_bool(&data, true);
            m.data = data.bad == BT_OK ? doc_from_buf(&data) : m.data;
        }
    }
    if (p->percent >= 0.0) {
        m.percent = p->percent;
        msg_set(&m, step_progress, percent);
    }
    send_control(rt, MSG_step_progress, &m);
    buf_done(&data);
}

void runtime_call(struct runtime *rt, const struct agent_state_action *a)
{
    struct msg_agent_drain drain = {.instance_id = str_from(rt->instance_id),
                                    .epoch = rt->agent_state.epoch};
    struct msg_agent_deregister leave = {.instance_id = str_from(rt->instance_id),
                                         .epoch = rt->agent_state.epoch};
    struct msg_step_result result;

    if (a->type == DO_REGISTER) {
        send_register(rt);
    } else if (a->type == DO_HEARTBEAT) {
        send_heartbeat(rt);
    } else if (a->type == DO_PROGRESS) {
        send_progress(rt, a->slot);
    } else if (a->type == DO_DRAIN) {
        send_control(rt, MSG_agent_drain, &drain);
    } else if (a->type == DO_DEREGISTER) {
        send_control(rt, MSG_agent_deregister, &leave);
    } else if (a->type == DO_RESULT) {
        runtime_view_result(rt, a->slot, &result);
        result.epoch =
            rt->agent_state.epoch; /* the result belongs to an older epoch, but this one sends it */
        send_control(rt, MSG_step_result, &result);
    }
}

/* ---- answers ---- */

/* dial-in: the lanes to serve, one server each. Lanes of the epoch before have no supervisor any
 * more. A request of theirs stays open until its step answers it: its place is not another's. */
static void serve_lanes(struct runtime *rt, const struct msg_agent_registered_ok *m)
{
    struct bt_error err;

    for (uint32_t i = 0; i < rt->dialed_n; i++) {
        for (uint32_t k = 0; k < RUNTIME_REQUESTS; k++) {
            if (rt->requests[k].server == rt->dialed[i]) {
                rt->requests[k].server = NULL;
            }
        }
        runtime_trunk_drop(rt, rt->dialed[i]);
        link_server_retire(rt->dialed[i]);
    }
    rt->dialed_n = 0;
    for (uint32_t i = 0; i < m->lanes_n && i <= LIMIT_CAPACITY; i++) {
        char url[STATE_URL_MAX + 1];
        const struct link_limits limits = remote_limits(rt, BUNDLE_BYTES_MAX);
        remote_lane(rt, m->lanes[i], url, sizeof url);
        if (link_url_check(str_from(url), false, false, &err) != BT_OK ||
            link_server_dial(rt->link, url, 1, &limits, NULL, &rt->dialed[rt->dialed_n], &err) !=
                BT_OK) {
            log_err("agent.lane", "lane=%u url=%s %s", i, url, err.msg);
            continue;
        }
        rt->dialed_n++;
    }
}

static enum bt_code on_registered(struct runtime *rt, struct msg_reader *r,
                                  struct agent_state_event *ev, struct bt_error *err)
{
    struct msg_agent_registered_ok m;
    enum bt_code code = msg_read_answer(r, MSG_agent_registered_ok, &m, NULL, err);

    if (code == BT_OK) {
        *ev = (struct agent_state_event){.type = AGENT_STATE_REGISTERED,
                                         .epoch = m.epoch,
                                         .lease_ms = m.lease_ms,
                                         .heartbeat_ms = m.heartbeat_ms};
        runtime_trunk_registered(rt, m.pipes, m.epoch);
        if (rt->opt->dial_in) {
            serve_lanes(rt, &m);
        }
        log_info("agent.registered", "agent=%.*s instance=%s epoch=%" PRIu64 " control=%s",
                 STR_ARG(rt->card->msg.agent_id), rt->instance_id, m.epoch, rt->control_url);
    } else {
        log_err("agent.refused", "the supervisor refused the registration: %s", err->msg);
    }
    return code;
}

static enum bt_code on_heartbeat(struct msg_reader *r, struct agent_state_event *ev,
                                 struct agent_state_order *orders, struct bt_error *err)
{
    struct msg_agent_heartbeat_ok m;
    enum bt_code code = msg_read_answer(r, MSG_agent_heartbeat_ok, &m, NULL, err);

    if (code == BT_OK) {
        for (uint32_t i = 0; i < m.cancel_n; i++) {
            orders[i] = (struct agent_state_order){.key = m.cancel[i].key,
                                                   .attempt = (uint32_t)m.cancel[i].attempt,
                                                   .grace_ms = m.cancel[i].grace_ms};
        }
        *ev = (struct agent_state_event){.type = AGENT_STATE_HEARTBEAT_OK,
                                         .lease_ms = m.lease_ms,
                                         .drain = m.drain,
                                         .orders = orders,
                                         .n = m.cancel_n};
    }
    return code;
}

static enum bt_code read_answer(struct runtime *rt, struct msg_reader *r,
                                struct agent_state_event *ev, struct agent_state_order *orders,
                                struct bt_error *err)
{
    struct msg_step_result_ok taken;
    struct msg_empty empty;
    enum bt_code code;

    switch (rt->agent_state.call) {
    case CALL_REGISTER:
        return on_registered(rt, r, ev, err);
    case CALL_HEARTBEAT:
        return on_heartbeat(r, ev, orders, err);
    case CALL_RESULT:
        code = msg_read_answer(r, MSG_step_result_ok, &taken, NULL, err);
        if (code == BT_OK) {
            log_info("agent.result", "late result accepted=%d %.*s", taken.accepted,
                     STR_ARG(taken.reason));
            *ev = (struct agent_state_event){.type = AGENT_STATE_RESULT_OK,
                                             .accepted = taken.accepted};
        }
        return code;
    case CALL_NONE:
    case CALL_PROGRESS:
    case CALL_DRAIN:
    case CALL_DEREGISTER:
        break;
    }
    *ev = (struct agent_state_event){.type = AGENT_STATE_CALL_OK};
    return msg_read_answer(r, MSG_empty, &empty, NULL, err);
}

/* Sends the next piece of each stream, or the piece whose answer was lost. */
static void continue_streams(struct runtime *rt)
{
    for (uint32_t i = 0; i < AGENT_STATE_SLOTS && !rt->ended; i++) {
        if (rt->slots[i].step != NULL && step_stream_waits(rt->slots[i].step)) {
            runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_PROGRESS, .slot = i});
        }
    }
}

/* What answers no request that could be read has no id. */
static bool is_of_last_request(const struct runtime *rt, const struct msg_reader *r)
{
    const struct str id = doc_string(doc_get((struct doc){r->body, r->len}, STR_LIT("id")));
    char last[CONTROL_ID_BYTES];

    (void)snprintf(last, sizeof last, "c%" PRIu64, rt->control_n);
    return id.len == 0 || str_is(id, last);
}

static void on_answer(struct runtime *rt, struct link_msg *msg)
{
    struct agent_state_order orders[AGENT_STATE_ORDERS];
    struct agent_state_event ev = {.type = AGENT_STATE_CALL_OK};
    struct msg_reader r = {0};
    struct str bytes;
    struct bt_error err;
    bool more;
    enum bt_code code = runtime_opened(rt, link_msg_bytes(msg), &bytes, &more, &err);

    if (more) {
        return;
    }
    rt->outstanding = false;
    if (code != BT_OK) { /* this peer cannot prove itself; another one may, or another key */
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_LOST});
        return;
    }
    code = msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_CONTROL_BYTES, &err);
    if (code == BT_OK && !is_of_last_request(rt, &r)) {
        log_warn("agent.control", "an answer to another request; connecting again");
        msg_reader_done(&r);
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_LOST});
        return;
    }
    if (code == BT_OK) {
        code = read_answer(rt, &r, &ev, orders, &err);
    }
    if (rt->agent_state.call == CALL_PROGRESS &&
        rt->slots[rt->agent_state.call_slot].step != NULL) {
        step_stream_answered(rt->slots[rt->agent_state.call_slot].step, code == BT_OK);
    }
    if (code != BT_OK) {
        log_debug("agent.control", "refused: %s", err.msg);
        ev = (struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = code};
    }
    runtime_feed(rt, ev);
    continue_streams(rt);
    msg_reader_done(&r);
}

void runtime_on_control(struct runtime *rt, struct link_event *ev)
{
    if (ev->lane == rt->control && ev->type == LINK_ANSWER) {
        on_answer(rt, ev->msg);
    } else if (ev->lane == rt->control && ev->type == LINK_LOST) {
        rt->outstanding = false;
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_LOST});
    } else if (ev->lane == rt->control && ev->type == LINK_UP) {
        rt->look_at = MSEC_NEVER;
        rt->away_since = 0;
        rt->in_vain = 0;
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_UP});
    } else if (ev->lane == rt->control && ev->type == LINK_DOWN) {
        runtime_drop_control(rt); /* it must not connect again by itself and send the token */
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_DOWN});
    }
    link_msg_free(ev->msg);
}
