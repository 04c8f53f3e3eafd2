/* The daemon's requests to an agent over HTTP: greetings, steps, cancels, questions. */
#include <stdio.h>

#include "protocol/base/log.h"
#include "supervisor/gateway/polled/polled_internal.h"

enum { OPEN_REQUESTS = 4 }; /* of a lane: one, and those of connections that broke */

/* One request of the daemon, while it is read. */
struct asked {
    struct polled_lane *lane;
    uint64_t request;
    uint32_t pipe;
    enum wire_form form;
    struct str id;
};

bool lanes_dial(struct instance *in, const struct msg_agent_registered_ok *ok)
{
    const struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES};
    struct polled *p = in->of;
    struct bt_error err;
    char url[257];

    lanes_close(in);
    for (uint32_t i = 0; i < ok->lanes_n && i <= LIMIT_CAPACITY; i++) {
        struct polled_lane *lane = &in->lanes[i];
        *lane = (struct polled_lane){.in = in};
        (void)snprintf(url, sizeof url, "%.*s", STR_ARG(ok->lanes[i]));
        if (p->lanes_n >= POLLED_LANES_MAX ||
            link_server_dial(upstream_link(p->up), url, OPEN_REQUESTS, &limits, lane, &lane->server,
                             &err) != BT_OK) {
            lanes_close(in);
            return false;
        }
        in->lanes_n++;
        p->lanes_n++;
    }
    return true;
}

void lanes_close(struct instance *in)
{
    for (struct work *w = in->works; w != NULL; w = w->next) {
        w->lane = NULL; /* its request is gone with the lane */
    }
    for (uint32_t i = 0; i < in->lanes_n; i++) {
        link_server_retire(in->lanes[i].server);
    }
    in->of->lanes_n -= in->lanes_n;
    in->lanes_n = 0;
}

/* ---- answers ---- */

static void answer(const struct asked *a, enum msg_type type, const void *body)
{
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_STEP_BYTES);
    if (msg_answer(&out, a->form, a->id, type, body, &err) != BT_OK) {
        buf_clear(&out);
        if (msg_answer_error(&out, a->form, a->id, &err, CLASS_PROTOCOL_ERROR, 0,
                             (struct doc){NULL, 0}) != BT_OK) {
            log_err("gateway.polled", "out of memory for an answer");
        }
    }
    (void)link_answer(a->lane->server, a->request, out.at, out.len);
    buf_done(&out);
}

static void refuse(const struct asked *a, const struct bt_error *why, enum err_class cls)
{
    struct buf out;

    buf_init(&out, LIMIT_EVENT_BYTES);
    if (msg_answer_error(&out, a->form, a->id, why, cls, 0, (struct doc){NULL, 0}) != BT_OK) {
        log_err("gateway.polled", "out of memory for a refusal");
    }
    (void)link_answer(a->lane->server, a->request, out.at, out.len);
    buf_done(&out);
}

static void refuse_text(const struct asked *a, enum bt_code code, enum err_class cls,
                        const char *text)
{
    struct bt_error err;

    (void)err_set(&err, code, "%s", text);
    refuse(a, &err, cls);
}

/* The request that a work still has to answer. */
static struct asked of_work(struct work *w)
{
    const struct asked a = {
        .lane = w->lane, .request = w->request, .form = w->form, .id = str_from(w->id)};

    w->lane = NULL;
    return a;
}

void lane_answer_result(struct work *w)
{
    struct arena arena = {.max = 0};
    struct msg_step_result m;

    if (w->lane != NULL && work_result(w, &arena, &m)) {
        const struct asked a = of_work(w);
        answer(&a, MSG_step_result, &m);
    }
    arena_done(&arena);
}

void lane_refuse(struct work *w, enum bt_code code, const char *message)
{
    if (w->lane != NULL) {
        const struct asked a = of_work(w);
        refuse_text(&a, code, CLASS_NONE, message);
    }
}

/* ---- requests ---- */

static void greet(const struct asked *a, const struct msg_lane_hello *m)
{
    struct polled_lane *lane = a->lane;
    const struct instance *in = lane->in;
    struct msg_lane_hello_ok ok = {.process_id = str_from(in->process)};
    char nonce[2 * AUTH_NONCE_BYTES + 1];
    char text[2 * AUTH_KEY_BYTES + 1];
    uint8_t proof[AUTH_KEY_BYTES];

    if (m->proof.len > 0) {
        lane->proved = a->pipe == lane->pipe && m->lane == lane->proof.lane &&
                       m->epoch == lane->proof.epoch &&
                       lane_proof_check(str_from(in->session_key), LANE_SIDE_SUPERVISOR,
                                        &lane->proof, m->proof);
        if (lane->proved) {
            answer(a, MSG_lane_hello_ok, &ok);
        } else {
            refuse_text(a, BT_UNAUTHORIZED, CLASS_PERMISSION_DENIED,
                        "proof: wrong; begin with a lane.hello without one");
        }
        return;
    }
    *lane = (struct polled_lane){.in = lane->in, .server = lane->server, .pipe = a->pipe};
    lane->proof.lane = m->lane;
    lane->proof.epoch = m->epoch;
    if (!auth_unhex(m->nonce_s, lane->proof.nonce_s, sizeof lane->proof.nonce_s) ||
        !auth_random(lane->proof.nonce_a, sizeof lane->proof.nonce_a) ||
        !lane_proof_make(str_from(in->session_key), LANE_SIDE_AGENT, &lane->proof, proof)) {
        refuse_text(a, BT_INVALID, CLASS_PROTOCOL_ERROR,
                    "nonceS: expected 64 hexadecimal digits: this instance proves itself");
        return;
    }
    auth_hex(lane->proof.nonce_a, sizeof lane->proof.nonce_a, nonce);
    auth_hex(proof, sizeof proof, text);
    ok.nonce_a = str_from(nonce);
    ok.proof = str_from(text);
    answer(a, MSG_lane_hello_ok, &ok);
}

/* The request waits for the result of this work; an earlier one does not any more. */
static void keep_request(struct work *w, const struct asked *a)
{
    lane_refuse(w, BT_CONFLICT, "the same attempt was asked for again");
    w->lane = a->lane;
    w->request = a->request;
    w->form = a->form;
    (void)snprintf(w->id, sizeof w->id, "%.*s", STR_ARG(a->id));
}

static void take_step(const struct asked *a, const struct msg_step_execute *m, struct doc body)
{
    struct instance *in = a->lane->in;
    struct work *w = work_find(in, m->key, m->attempt);

    if (w == NULL && in->draining) {
        refuse_text(a, BT_UNAVAILABLE, CLASS_SERVICE_UNAVAILABLE, "this instance drains");
        return;
    }
    if (w == NULL) {
        w = work_add(in, m->key, (uint32_t)m->attempt, m->epoch);
        if (w != NULL && !work_keep(w, &w->step, body.ptr, body.len)) {
            work_remove(w);
            w = NULL;
        }
    }
    if (w == NULL) {
        refuse_text(a, BT_BUSY, CLASS_SERVICE_UNAVAILABLE,
                    "the gateway holds as many steps and results as it may");
        return;
    }
    keep_request(w, a);
    if (w->state == WORK_ENDED) {
        work_deliver(w);
    } else if (w->state == WORK_LOST) {
        w->state = WORK_QUEUED;
        if (!work_keep(w, &w->step, body.ptr, body.len)) {
            work_fail(w, CLASS_SERVICE_UNAVAILABLE, "the gateway holds as many steps as it may");
            work_remove(w);
            return;
        }
    }
    polls_give(in);
}

/* What became of an attempt. One that another gateway gave out may run: the agent is asked by what
 * it says of itself at its next poll. */
static void answer_state(const struct asked *a, struct str key, uint64_t attempt, struct work *w)
{
    struct instance *in = a->lane->in;
    struct msg_step_state m = {.key = key, .state = STR_LIT("unknown")};
    struct arena arena = {.max = 0};

    if (w == NULL && in->returned && attempt > 0) {
        w = work_add(in, key, (uint32_t)attempt, in->epoch);
        if (w != NULL) {
            w->state = WORK_OUT;
        }
    }
    if (w != NULL && w->state == WORK_LOST) {
        m.state = STR_LIT("forgotten");
    } else if (w != NULL && w->state == WORK_ENDED && work_result(w, &arena, &m.result)) {
        m.state = STR_LIT("done");
        msg_set(&m, step_state, result);
    } else if (w != NULL) {
        m.state = STR_LIT("running");
    }
    answer(a, MSG_step_state, &m);
    arena_done(&arena);
    if (w != NULL && w->state == WORK_LOST) {
        work_remove(w);
    }
}

static void cancel_step(const struct asked *a, const struct msg_step_cancel *m)
{
    struct work *w = work_find(a->lane->in, m->key, m->attempt);
    const bool nobody = w != NULL && w->state == WORK_QUEUED;

    if (nobody) {
        work_fail(w, CLASS_CANCELLED, "the attempt was cancelled before the agent asked for it");
    } else if (w != NULL) {
        work_cancel(w, m->reason, m->grace_ms);
    }
    answer_state(a, m->key, m->attempt, w);
    if (nobody) {
        work_remove(w);
    }
}

static enum bt_code serve(const struct asked *a, enum msg_type type, struct msg_reader *r,
                          struct bt_error *err)
{
    union {
        struct msg_lane_hello hello;
        struct msg_step_execute execute;
        struct msg_step_cancel cancel;
        struct msg_step_query query;
    } m;
    const bool known = type == MSG_lane_hello || type == MSG_step_execute ||
                       type == MSG_step_cancel || type == MSG_step_query || type == MSG_agent_ping;
    enum bt_code code;

    if (!known) {
        return err_set(err, BT_INVALID, "type: an agent over HTTP has no such request");
    }
    if (type != MSG_lane_hello && (!a->lane->proved || a->lane->pipe != a->pipe)) {
        return err_set(err, BT_UNAUTHORIZED, "this connection has not proved itself");
    }
    if (type == MSG_agent_ping) {
        answer(a, MSG_empty, NULL);
        return BT_OK;
    }
    code = msg_read(r, type, &m, err);
    if (code != BT_OK) {
        return code;
    }
    if (type == MSG_lane_hello) {
        greet(a, &m.hello);
    } else if (type == MSG_step_execute) {
        take_step(a, &m.execute, (struct doc){r->body, r->len});
    } else if (type == MSG_step_cancel) {
        cancel_step(a, &m.cancel);
    } else {
        answer_state(a, m.query.key, m.query.attempt,
                     work_find(a->lane->in, m.query.key, m.query.attempt));
    }
    return BT_OK;
}

void polled_on_request(void *self, struct link_event *ev)
{
    const struct str bytes = link_msg_bytes(ev->msg);
    struct asked a = {.lane = ev->owner, .request = ev->request, .pipe = link_msg_pipe(ev->msg)};
    struct msg_envelope e = {0};
    struct msg_reader r = {0};
    struct bt_error err;
    enum bt_code code;

    (void)self;
    code = msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, &err);
    a.form = r.form;
    code = code == BT_OK ? msg_read(&r, MSG_envelope, &e, &err) : code;
    if (code == BT_OK) {
        a.id = e.id;
        code = serve(&a, msg_type_from_wire(e.type), &r, &err);
    }
    if (code != BT_OK) {
        refuse(&a, &err, CLASS_PROTOCOL_ERROR);
    }
    msg_reader_done(&r);
}
