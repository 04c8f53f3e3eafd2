/* The supervisor's requests: authenticated by the session key, decoded, passed to agent_state; and
 * their answers. */
#include <stdio.h>
#include <stdlib.h>

#include "agents/sdk/runtime.h"
#include "agents/sdk/shards/shards.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

/* ---- answers ---- */

static void send_out(struct runtime *rt, struct runtime_request *rq)
{
    rq->open = false;
    if (rq->server == NULL) {
        return;
    }
    if (rq->bundled) {
        runtime_trunk_answer(rt, rq, buf_str(&rt->out));
    } else {
        (void)link_answer(rq->server, rq->handle, rt->out.at, rt->out.len);
    }
}

void runtime_refuse(struct runtime *rt, uint64_t request, const struct bt_error *why,
                    enum err_class cls)
{
    struct runtime_request *rq = &rt->requests[request];

    log_debug("agent.refuse", "%s", why->msg);
    buf_clear(&rt->out);
    if (msg_answer_error(&rt->out, rq->form, str_from(rq->id), why, cls, 0,
                         (struct doc){NULL, 0}) != BT_OK) {
        log_err("agent.answer", "out of memory for a refusal");
    }
    send_out(rt, rq); /* even an empty answer: every request on a lane gets one */
}

void runtime_answer(struct runtime *rt, uint64_t request, enum msg_type type, const void *body)
{
    struct runtime_request *rq = &rt->requests[request];
    struct bt_error err;

    if (!rq->open) {
        return;
    }
    buf_clear(&rt->out);
    if (msg_answer(&rt->out, rq->form, str_from(rq->id), type, body, &err) != BT_OK) {
        (void)err_wrap(&err, "the answer cannot be written");
        runtime_refuse(rt, request, &err, CLASS_PROTOCOL_ERROR);
        return;
    }
    send_out(rt, rq);
}

void runtime_view_result(const struct runtime *rt, uint32_t slot, struct msg_step_result *ret)
{
    const struct agent_state_slot *r = &rt->agent_state.slots[slot];

    *ret = (struct msg_step_result){.instance_id = str_from(rt->instance_id),
                                    .key = {r->key, r->key_len},
                                    .attempt = r->attempt,
                                    .epoch = r->epoch};
    reply_view(&rt->slots[slot].reply, ret);
}

void runtime_answer_result(struct runtime *rt, uint64_t request, uint32_t slot)
{
    struct msg_step_result m;

    runtime_view_result(rt, slot, &m);
    runtime_answer(rt, request, MSG_step_result, &m);
}

void runtime_answer_state(struct runtime *rt, const struct agent_state_action *a)
{
    const uint32_t slot = a->slot;
    const struct agent_state_slot *r =
        slot == AGENT_STATE_NO_SLOT ? NULL : &rt->agent_state.slots[slot];
    struct msg_step_state m = {.key = rt->requests[a->request].key,
                               .state = a->forgotten ? STR_LIT("forgotten") : STR_LIT("unknown")};

    if (r != NULL) {
        m.key = (struct str){r->key, r->key_len};
        m.state = r->state == SLOT_RUNNING ? STR_LIT("running") : STR_LIT("done");
    }
    if (r != NULL && r->state == SLOT_DONE) {
        runtime_view_result(rt, slot, &m.result);
        msg_set(&m, step_state, result);
    }
    runtime_answer(rt, a->request, MSG_step_state, &m);
}

/* ---- requests ---- */

static uint64_t open_request(struct runtime *rt, const struct runtime_request *rq)
{
    for (uint64_t i = 0; i < RUNTIME_REQUESTS; i++) {
        if (!rt->requests[i].open) {
            rt->requests[i] = *rq;
            return i;
        }
    }
    return AGENT_STATE_NO_REQUEST;
}

/* In constant time: the duration must not show how much of the key matched. */
static bool key_is_ours(const struct runtime *rt, struct str key)
{
    size_t n = sizeof rt->session_key - 1;
    unsigned diff = key.len != n;

    for (size_t i = 0; i < n && i < key.len; i++) {
        diff |= (unsigned)((unsigned char)rt->session_key[i] ^ (unsigned char)key.ptr[i]);
    }
    return diff == 0;
}

static void refuse_text(struct runtime *rt, uint64_t rq, enum bt_code code, enum err_class cls,
                        const char *text)
{
    struct bt_error err;

    (void)err_set(&err, code, "%s", text);
    runtime_refuse(rt, rq, &err, cls);
}

/* The supervisor: it has proved itself on this connection, or sends the key. */
static bool admit(struct runtime *rt, uint64_t rq, struct str key)
{
    if (!runtime_pipe_is_proved(rt, rt->requests[rq].pipe) && !key_is_ours(rt, key)) {
        log_warn("agent.stranger", "a request without the session key was refused");
        refuse_text(rt, rq, BT_UNAUTHORIZED, CLASS_PERMISSION_DENIED,
                    "sessionKey: missing or wrong");
        return false;
    }
    return true;
}

static void on_execute(struct runtime *rt, uint64_t rq, struct msg_reader *r)
{
    struct bt_step *step = NULL;
    struct bt_error err;
    bool place;

    if (step_new(r, clock_mono_ms(), &step, &err) != BT_OK) {
        runtime_refuse(rt, rq, &err, CLASS_PROTOCOL_ERROR);
        return;
    }
    step->card_skill = card_find(rt->card, step->skill);
    step->self = rt->self;
    if (!admit(rt, rq, step->req.session_key)) {
        step_free(step);
        return;
    }
    if (step_check_purpose(step, &err) != BT_OK) {
        runtime_refuse(rt, rq, &err, CLASS_TOOL_NOT_FOUND);
        step_free(step);
        return;
    }
    if (step->card_skill == NULL) {
        (void)err_set(&err, BT_NOT_FOUND, "skill '%s': this agent has no such skill", step->skill);
        runtime_refuse(rt, rq, &err, CLASS_TOOL_NOT_FOUND);
        step_free(step);
        return;
    }
    rt->arriving = step;
    place = shards_place_take();
    runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_EXECUTE,
                                                .full = !place,
                                                .request = rq,
                                                .key = step->req.key,
                                                .attempt = (uint32_t)step->req.attempt,
                                                .epoch = step->req.epoch});
    if (place && rt->arriving != NULL) { /* it does not run; else its end gives the place back */
        shards_place_put();
    }
    step_free(rt->arriving); /* joined, answered from the kept result, or rejected */
    rt->arriving = NULL;
}

static void on_stats(struct runtime *rt, uint64_t rq)
{
    const struct runtime_stats *st = &rt->stats;
    struct msg_agent_stats_ok m = {.num_requests = st->requests,
                                   .num_errors = st->errors,
                                   .last_error = str_from(st->last_error),
                                   .processing_time = st->processing_ns,
                                   .average_processing_time =
                                       st->requests > 0 ? st->processing_ns / st->requests : 0,
                                   .started = str_from(st->started)};
    runtime_answer(rt, rq, MSG_agent_stats_ok, &m);
}

/* Short requests: one message with a session key each. */
static enum bt_code on_short_request(struct runtime *rt, uint64_t rq, enum msg_type type,
                                     struct msg_reader *r, struct bt_error *err)
{
    union {
        struct msg_lane_hello hello;
        struct msg_step_cancel cancel;
        struct msg_step_query query;
        struct msg_agent_ping ping;
        struct msg_agent_stats stats;
    } m;
    enum bt_code code = msg_read(r, type, &m, err);
    bool proved = false;

    if (code == BT_OK && type == MSG_lane_hello && m.hello.nonce_s.len > 0) {
        code = runtime_prove(rt, rq, &m.hello, &proved, err);
        if (!proved) {
            return code;
        }
    }
    if (code != BT_OK) {
        return code;
    }
    if (type == MSG_lane_hello && admit(rt, rq, m.hello.session_key)) {
        if (m.hello.process_id.len > 0 && !str_is(m.hello.process_id, rt->process_id)) {
            return err_set(err, BT_CONFLICT, "processId: another process was registered");
        }
        runtime_feed(rt, (struct agent_state_event){
                             .type = AGENT_STATE_HELLO, .request = rq, .epoch = m.hello.epoch});
    } else if (type == MSG_step_cancel && admit(rt, rq, m.cancel.session_key)) {
        rt->requests[rq].key = m.cancel.key;
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_CANCEL,
                                                    .request = rq,
                                                    .key = m.cancel.key,
                                                    .attempt = (uint32_t)m.cancel.attempt,
                                                    .grace_ms = m.cancel.grace_ms});
    } else if (type == MSG_step_query && admit(rt, rq, m.query.session_key)) {
        rt->requests[rq].key = m.query.key;
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_QUERY,
                                                    .request = rq,
                                                    .key = m.query.key,
                                                    .attempt = (uint32_t)m.query.attempt});
    } else if (type == MSG_agent_ping && admit(rt, rq, m.ping.session_key)) {
        runtime_answer(rt, rq, MSG_empty, NULL);
    } else if (type == MSG_agent_stats && admit(rt, rq, m.stats.session_key)) {
        on_stats(rt, rq);
    }
    return BT_OK;
}

static enum bt_code route(struct runtime *rt, uint64_t rq, struct msg_reader *r,
                          struct bt_error *err)
{
    static const enum msg_type small[] = {MSG_lane_hello, MSG_step_cancel, MSG_step_query,
                                          MSG_agent_ping, MSG_agent_stats};
    struct msg_envelope envelope;
    enum msg_type type;
    enum bt_code code = msg_read(r, MSG_envelope, &envelope, err);

    if (code != BT_OK) {
        return code;
    }
    (void)snprintf(rt->requests[rq].id, sizeof rt->requests[rq].id, "%.*s", STR_ARG(envelope.id));
    if (envelope.v != 1) {
        return err_set(err, BT_INVALID, "v: this agent speaks version 1 only");
    }
    type = msg_type_from_wire(envelope.type);
    if (type == MSG_step_execute) {
        on_execute(rt, rq, r);
        return BT_OK;
    }
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        if (type == small[i]) {
            return on_short_request(rt, rq, type, r, err);
        }
    }
    return err_set(err, BT_INVALID, "type '%.*s': an agent has no such request",
                   STR_ARG(envelope.type));
}

void runtime_bytes_free(struct runtime_bytes *bytes)
{
    link_msg_free(bytes->msg);
    free(bytes->copy);
    *bytes = (struct runtime_bytes){0};
}

void runtime_on_body(struct runtime *rt, const struct runtime_request *request,
                     struct runtime_bytes bytes)
{
    const struct str body = bytes.msg != NULL ? link_msg_bytes(bytes.msg)
                                              : (struct str){(const char *)bytes.copy, bytes.len};
    const uint64_t rq = open_request(rt, request);
    struct msg_reader r = {0};
    struct bt_error err;
    enum bt_code code;

    if (rq == AGENT_STATE_NO_REQUEST) {
        /* There are never more requests than places. If there were, an empty answer would still
         * free the lane. */
        struct runtime_request none = *request;
        buf_clear(&rt->out);
        send_out(rt, &none);
        runtime_bytes_free(&bytes);
        return;
    }
    rt->arriving_bytes = bytes;
    code = msg_reader_init(&r, body.ptr, body.len, LIMIT_STEP_BYTES, &err);
    rt->requests[rq].form = r.form;
    if (code == BT_OK) {
        code = route(rt, rq, &r, &err);
    }
    if (code != BT_OK) {
        runtime_refuse(rt, rq, &err, CLASS_PROTOCOL_ERROR);
    }
    msg_reader_done(&r);
    runtime_bytes_free(&rt->arriving_bytes);
}

void runtime_on_request(struct runtime *rt, struct link_event *ev)
{
    if (bundle_is(link_msg_bytes(ev->msg))) {
        runtime_on_bundle(rt, ev);
        return;
    }
    runtime_on_body(rt,
                    &(struct runtime_request){.open = true,
                                              .server = ev->server,
                                              .handle = ev->request,
                                              .pipe = link_msg_pipe(ev->msg)},
                    (struct runtime_bytes){.msg = ev->msg});
}
