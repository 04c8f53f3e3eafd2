/* Requests of agents over HTTP: registration, polls, results, and what they say of themselves. */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/json.h"
#include "supervisor/gateway/polled/polled_internal.h"

bool polled_takes(enum msg_type request)
{
    return request == MSG_agent_register || request == MSG_agent_heartbeat ||
           request == MSG_agent_drain || request == MSG_agent_deregister ||
           request == MSG_step_progress || request == MSG_step_result ||
           request == MSG_artifact_fetch || request == MSG_artifact_store;
}

/* The fields of the request as a message; those of `filled` that it does not have are added. The
 * texts live in fields and arena. False after refusing. */
static bool gather(struct http *h, struct doc filled, struct buf *fields, struct arena *arena,
                   void *ret)
{
    const struct fields_from from = {.route = h->route,
                                     .params = &h->params,
                                     .uri = &h->uri,
                                     .body = buf_str(&h->body),
                                     .filled = filled};
    char field[FIELD_NAME_MAX + 1] = "";
    struct bt_error err;
    enum bt_code code = fields_gather(&from, fields, field, &err);

    if (code == BT_OK) {
        code = msg_read_doc(arena, doc_from_buf(fields), h->route->request, ret, &err);
    }
    if (code != BT_OK) {
        http_refuse(h, err.code, err.code == BT_LIMIT ? 400 : 0, field, err.msg);
    }
    return code == BT_OK;
}

/* {epoch}: agents over HTTP have none; the gateway knows it. */
static void put_epoch(struct buf *out, const struct instance *in)
{
    doc_put_map(out, 1);
    doc_put_cstr(out, "epoch");
    doc_put_u64(out, in->epoch);
}

/* ---- registration ---- */

static void forget_instance(void *own)
{
    struct instance *in = own;

    in->http = NULL;
}

void answer_registered(struct instance *in, struct http *h)
{
    const msec lease = in->of->lease_ms;

    h->status = 201;
    h->type = "application/json";
    h->state = HTTP_READY;
    json_open(&h->out, '{');
    json_member(&h->out, "instanceId", str_from(in->id));
    json_key(&h->out, "epoch");
    json_u64(&h->out, in->epoch);
    json_key(&h->out, "leaseMs");
    json_u64(&h->out, lease);
    json_key(&h->out, "heartbeatMs");
    json_u64(&h->out, lease / 3);
    json_close(&h->out, '}');
    buf_printf(&h->location, "/v1/instances/%s", in->id);
}

/* Ids as the daemon writes them; the process is that of the instance when none is named. */
static bool take_ids(struct http *h, const struct msg_agent_register *m, char ret_id[],
                     char ret_process[])
{
    struct uuid id = uuid_new();
    struct uuid process;

    if (m->instance_id.len > 0 && (!uuid_parse(m->instance_id, &id) || uuid_is_nil(id))) {
        http_refuse(h, BT_INVALID, 400, "instanceId",
                    "instanceId: expected a UUID that the process made up at its start, or none");
        return false;
    }
    process = id;
    if (m->process_id.len > 0 && !uuid_parse(m->process_id, &process)) {
        http_refuse(h, BT_INVALID, 400, "processId",
                    "processId: expected a UUID that the process made up at its start, or none");
        return false;
    }
    uuid_format(id, ret_id);
    uuid_format(process, ret_process);
    return true;
}

static void take_registration(struct http *h, const struct msg_agent_register *m, struct doc fields)
{
    struct polled *p = h->s->parts.polled;
    char id[UUID_TEXT_LEN + 1];
    char process[UUID_TEXT_LEN + 1];
    struct instance *in;

    if (!take_ids(h, m, id, process)) {
        return;
    }
    in = instance_find(p, str_from(id));
    if (in != NULL && (in->caller != h->caller || in->http != NULL)) {
        http_refuse(h, BT_CONFLICT, 409, "instanceId",
                    "instanceId: it is registered by another sender, or is about to be");
        return;
    }
    if (in == NULL) {
        in = instance_new(p, id, h->caller);
        if (in != NULL) {
            in->returned = m->instance_id.len > 0;
        }
    }
    if (in == NULL) {
        http_refuse(h, BT_BUSY, 503, "", "the gateway has as many agents as it may: at most 256");
        return;
    }
    memcpy(in->process, process, sizeof in->process);
    in->capacity = (uint32_t)m->capacity;
    in->contact = h->s->now;
    in->draining = false;
    buf_clear(&in->registration);
    buf_add(&in->registration, fields.ptr, fields.len);
    in->http = h;
    h->own = in;
    h->own_free = forget_instance;
    http_wait(h);
    instance_register(in);
}

static void serve_register(struct http *h)
{
    struct arena arena = {.max = 0};
    struct msg_agent_register m;
    struct buf filled;
    struct buf fields;

    buf_init(&filled, 128);
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&filled, 3);
    doc_put_cstr(&filled, "instanceId");
    doc_put_cstr(&filled, "");
    doc_put_cstr(&filled, "sessionKey");
    doc_put_cstr(&filled, "");
    doc_put_cstr(&filled, "capacity");
    doc_put_u64(&filled, 1);
    if (!gather(h, doc_from_buf(&filled), &fields, &arena, &m)) {
        ;
    } else if (m.endpoint.len > 0 || m.dial_in || m.bundle > 0 || m.session_key.len > 0) {
        http_refuse(h, BT_INVALID, 400, "",
                    "endpoint, dialIn, bundle and sessionKey are the gateway's: an agent over HTTP "
                    "has no lanes");
    } else if (m.capacity < 1 || m.capacity > LIMIT_CAPACITY) {
        http_refuse(h, BT_INVALID, 400, "capacity", "capacity: expected 1 to 64");
    } else {
        take_registration(h, &m, doc_from_buf(&fields));
    }
    buf_done(&filled);
    buf_done(&fields);
    arena_done(&arena);
}

/* ---- what agents say ---- */

static void serve_heartbeat(struct http *h, struct instance *in)
{
    bool said;

    if (!read_inflight(h, in, &said)) {
        return;
    }
    h->status = 200;
    h->type = "application/json";
    h->state = HTTP_READY;
    put_orders(in, &h->out);
    polls_give(in);
}

static void forget_work(void *own)
{
    struct work *w = own;

    w->http = NULL;
}

void answer_result(struct http *h, bool accepted, struct str reason)
{
    h->status = 200;
    h->type = "application/json";
    h->state = HTTP_READY;
    json_open(&h->out, '{');
    json_key(&h->out, "accepted");
    json_bool(&h->out, accepted);
    if (!accepted) {
        json_member(&h->out, "reason", reason);
    }
    json_close(&h->out, '}');
}

/* The one that came before, for the same attempt, waits no more. */
static void supersede(struct work *w)
{
    struct http *h = w->http;

    if (h != NULL) {
        w->http = NULL;
        h->own = NULL;
        http_refuse(h, BT_CONFLICT, 409, "", "the result of this attempt was sent again");
        http_ready(h);
    }
}

static void take_result(struct http *h, struct instance *in, struct msg_step_result *m)
{
    const struct msg_part part = {MSG_step_result, m};
    struct work *w = work_find(in, m->key, m->attempt);
    struct bt_error err;
    struct buf fields;

    if (w == NULL) {
        w = work_add(in, m->key, (uint32_t)m->attempt, m->epoch);
    }
    if (w == NULL) {
        http_refuse(h, BT_BUSY, 503, "", "too many results of this instance wait for the daemon");
        return;
    }
    m->epoch = w->epoch;
    buf_init(&fields, LIMIT_STEP_BYTES);
    if (msg_write(&fields, WIRE_MSGPACK, &part, 1, &err) != BT_OK) {
        http_refuse(h, err.code, 0, "", err.msg);
    } else if (!work_keep(w, &w->result, fields.at, fields.len)) {
        http_refuse(h, BT_BUSY, 503, "", "the gateway holds as many steps and results as it may");
    } else {
        supersede(w);
        work_drop(w, &w->step);
        w->state = WORK_ENDED;
        w->since = h->s->now;
        w->http = h;
        w->http_until = h->s->now + DELIVER_MS;
        h->own = w;
        h->own_free = forget_work;
        http_wait(h);
        work_deliver(w);
    }
    buf_done(&fields);
}

static void serve_result(struct http *h, struct instance *in)
{
    struct arena arena = {.max = 0};
    struct msg_step_result m;
    struct buf filled;
    struct buf fields;

    buf_init(&filled, 128);
    buf_init(&fields, LIMIT_STEP_BYTES);
    doc_put_map(&filled, 2);
    doc_put_cstr(&filled, "epoch");
    doc_put_u64(&filled, in->epoch);
    doc_put_cstr(&filled, "outcome");
    doc_put_cstr(&filled, "completed");
    if (gather(h, doc_from_buf(&filled), &fields, &arena, &m)) {
        m.instance_id = str_from(in->id);
        take_result(h, in, &m);
    }
    buf_done(&filled);
    buf_done(&fields);
    arena_done(&arena);
}

/* ---- what goes to the daemon as it is ---- */

static void on_forwarded(void *self, const struct reply *reply)
{
    struct http *h = self;
    struct instance *in = instance_of(h);

    h->call = NULL;
    if (!reply->ok) {
        http_problem(h, &reply->problem);
    } else {
        h->status = 200;
        h->type = "application/json";
        h->state = HTTP_READY;
        if (in == NULL || h->route->request == MSG_agent_deregister) {
            buf_add_cstr(&h->out, "{}");
        } else {
            put_orders(in, &h->out);
        }
    }
    http_ready(h);
    if (in != NULL && reply->ok && h->route->request == MSG_agent_deregister) {
        const struct problem gone = {.code = BT_NOT_FOUND, .message = str_from(POLLED_NOT_HERE)};
        instance_free(in, &gone);
    } else if (in != NULL && reply->ok && h->route->request == MSG_agent_drain) {
        in->draining = true;
        polls_give(in);
    }
}

static void forward(struct http *h, struct instance *in)
{
    union {
        struct msg_agent_drain drain;
        struct msg_agent_deregister deregister;
        struct msg_step_progress progress;
    } m;
    struct call_spec spec = {
        .type = h->route->request, .answer = h->route->answer, .done = on_forwarded, .self = h};
    struct arena arena = {.max = 0};
    struct bt_error err;
    struct buf filled;
    struct buf fields;

    buf_init(&filled, 64);
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    put_epoch(&filled, in);
    if (gather(h, doc_from_buf(&filled), &fields, &arena, &m)) {
        spec.fields = doc_from_buf(&fields);
        if (caller_call(h->caller, &spec, h->s->now, &h->call, &err) == BT_OK) {
            http_wait(h);
        } else {
            http_refuse(h, err.code, 0, "", err.msg);
        }
    }
    buf_done(&filled);
    buf_done(&fields);
    arena_done(&arena);
}

void polled_serve(struct http *h)
{
    const enum msg_type type = h->route->request;
    struct instance *in;

    if (type == MSG_agent_register) {
        serve_register(h);
        return;
    }
    in = instance_of(h);
    if (in == NULL) {
        http_refuse(h, BT_NOT_FOUND, 404, "instanceId", POLLED_NOT_HERE);
        return;
    }
    in->contact = h->s->now;
    if (type == MSG_agent_heartbeat) {
        serve_heartbeat(h, in);
    } else if (type == MSG_step_result) {
        serve_result(h, in);
    } else if (type == MSG_artifact_fetch || type == MSG_artifact_store) {
        http_ask(h);
    } else {
        forward(h, in);
    }
}
