/* Instances of agents over HTTP: registration, heartbeats to the daemon, the lease of the agent. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/log.h"
#include "supervisor/gateway/polled/polled_internal.h"

enum { SWEEP_MS = 100, LOOK_MS = 1000, AGAIN_MS = 500, BEAT_WITHIN_MS = 5000 };

enum bt_code polled_new(struct upstream *up, msec lease_ms, struct polled **ret,
                        struct bt_error *err)
{
    struct polled *p = calloc(1, sizeof *p);

    *ret = p;
    if (p == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for agents over HTTP");
    }
    p->up = up;
    p->lease_ms = lease_ms > 0 ? lease_ms : POLLED_LEASE_MS;
    upstream_serve(up, polled_on_request, p);
    return BT_OK;
}

struct instance *instance_find(struct polled *p, struct str id)
{
    char text[UUID_TEXT_LEN + 1];
    struct uuid uuid;

    if (!uuid_parse(id, &uuid)) {
        return NULL;
    }
    uuid_format(uuid, text);
    for (struct instance *in = p->first; in != NULL; in = in->next) {
        if (strcmp(in->id, text) == 0) {
            return in;
        }
    }
    return NULL;
}

struct instance *instance_new(struct polled *p, const char *id, struct caller *caller)
{
    uint8_t key[AUTH_KEY_BYTES];
    struct instance *in =
        p->n < POLLED_INSTANCES_MAX && auth_random(key, sizeof key) ? calloc(1, sizeof *in) : NULL;

    if (in == NULL) {
        return NULL;
    }
    in->of = p;
    in->caller = caller_keep(caller);
    (void)snprintf(in->id, sizeof in->id, "%s", id);
    auth_hex(key, sizeof key, in->session_key);
    explicit_bzero(key, sizeof key);
    buf_init(&in->registration, LIMIT_CONTROL_BYTES);
    in->contact = p->now;
    in->next = p->first;
    p->first = in;
    p->n++;
    return in;
}

void instance_free(struct instance *in, const struct problem *why)
{
    struct polled *p = in->of;
    struct http *h = in->http;

    for (struct instance **at = &p->first; *at != NULL; at = &(*at)->next) {
        if (*at == in) {
            *at = in->next;
            break;
        }
    }
    if (in->call != NULL) {
        call_abandon(in->call);
    }
    lanes_close(in);
    while (in->works != NULL) {
        struct http *waits = in->works->http;
        work_remove(in->works);
        if (waits != NULL) {
            http_problem(waits, why);
            http_ready(waits);
        }
    }
    while (in->polls != NULL) {
        struct poll *poll = in->polls;
        in->polls = poll->next;
        poll->in = NULL;
        if (poll->waits) {
            poll->waits = false;
            http_problem(poll->h, why);
            http_ready(poll->h);
        }
    }
    if (h != NULL) {
        h->own = NULL;
        http_problem(h, why);
        http_ready(h);
    }
    caller_release(in->caller);
    buf_done(&in->registration);
    explicit_bzero(in->session_key, sizeof in->session_key);
    p->n--;
    free(in);
}

static void give_up(struct instance *in, enum bt_code code, const char *message)
{
    const struct problem why = {.code = code, .message = str_from(message)};

    instance_free(in, &why);
}

/* ---- registration ---- */

static bool is_final(enum bt_code code)
{
    return code == BT_UNAUTHORIZED || code == BT_INVALID || code == BT_LIMIT;
}

static void on_registered(void *self, const struct reply *reply)
{
    struct instance *in = self;
    struct http *h = in->http;
    struct arena arena = {.max = 0};
    struct msg_agent_registered_ok ok;

    in->call = NULL;
    in->due = in->of->now + AGAIN_MS;
    if (!reply->ok) {
        if (h != NULL || is_final(reply->problem.code)) {
            instance_free(in, &reply->problem);
        }
        return;
    }
    if (msg_read_doc(&arena, reply->body, MSG_agent_registered_ok, &ok, NULL) == BT_OK &&
        lanes_dial(in, &ok)) {
        in->registered = true;
        in->epoch = ok.epoch;
        in->heartbeat_ms = (msec)ok.heartbeat_ms;
        in->due = in->of->now + in->heartbeat_ms;
        if (h != NULL) {
            in->http = NULL;
            h->own = NULL;
            answer_registered(in, h);
            http_ready(h);
        }
        for (struct work *w = in->works; w != NULL; w = w->next) {
            if (w->state == WORK_ENDED) {
                work_deliver(w);
            }
        }
    } else if (h != NULL) {
        give_up(in, BT_BUSY, "the gateway has as many lanes of agents as it may");
    }
    arena_done(&arena);
}

void instance_register(struct instance *in)
{
    struct call_spec spec = {.type = MSG_agent_register,
                             .answer = MSG_agent_registered_ok,
                             .reads = true, /* the same again begins the next epoch */
                             .done = on_registered,
                             .self = in};
    struct arena arena = {.max = 0};
    struct msg_agent_register m;
    const struct msg_part part = {MSG_agent_register, &m};
    struct bt_error err;
    struct buf fields;
    enum bt_code code;

    if (in->call != NULL) {
        call_abandon(in->call);
        in->call = NULL;
    }
    in->registered = false;
    lanes_close(in);
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    code = msg_read_doc(&arena, doc_from_buf(&in->registration), MSG_agent_register, &m, &err);
    m.instance_id = str_from(in->id);
    m.process_id = str_from(in->process);
    m.session_key = str_from(in->session_key);
    m.dial_in = m.proof = true;
    msg_set(&m, agent_register, process_id);
    msg_set(&m, agent_register, dial_in);
    msg_set(&m, agent_register, proof);
    code = code == BT_OK ? msg_write(&fields, WIRE_MSGPACK, &part, 1, &err) : code;
    spec.fields = doc_from_buf(&fields);
    code = code == BT_OK ? caller_call(in->caller, &spec, in->of->now, &in->call, &err) : code;
    in->due = in->of->now + AGAIN_MS;
    buf_done(&fields);
    arena_done(&arena);
    if (code != BT_OK && (in->http != NULL || is_final(code))) {
        give_up(in, code, err.msg);
    }
}

/* ---- heartbeats ---- */

static void take_orders(struct instance *in, const struct msg_agent_heartbeat_ok *ok)
{
    in->draining = in->draining || ok->drain;
    for (uint32_t i = 0; i < ok->cancel_n; i++) {
        struct work *w = work_find(in, ok->cancel[i].key, ok->cancel[i].attempt);
        if (w != NULL) {
            work_cancel(w, ok->cancel[i].reason, ok->cancel[i].grace_ms);
        }
    }
    polls_give(in);
}

static void on_beat(void *self, const struct reply *reply)
{
    struct instance *in = self;
    struct arena arena = {.max = 0};
    struct msg_agent_heartbeat_ok ok;

    in->call = NULL;
    in->due = in->of->now + in->heartbeat_ms;
    if (reply->ok) {
        if (msg_read_doc(&arena, reply->body, MSG_agent_heartbeat_ok, &ok, NULL) == BT_OK) {
            take_orders(in, &ok);
        }
        arena_done(&arena);
    } else if (reply->problem.code == BT_UNAUTHORIZED) {
        instance_free(in, &reply->problem);
    } else {
        in->registered = false; /* one way back, whatever it was */
        in->due = in->of->now;
    }
}

static void beat(struct instance *in)
{
    struct call_spec spec = {.type = MSG_agent_heartbeat,
                             .answer = MSG_agent_heartbeat_ok,
                             .reads = true,
                             .within_ms = BEAT_WITHIN_MS,
                             .done = on_beat,
                             .self = in};
    struct msg_agent_heartbeat m = {.instance_id = str_from(in->id), .epoch = in->epoch};
    struct msg_inflight at[LIMIT_CAPACITY];
    const struct msg_part part = {MSG_agent_heartbeat, &m};
    struct bt_error err;
    struct buf fields;

    for (struct work *w = in->works; w != NULL && m.inflight_n < LIMIT_CAPACITY; w = w->next) {
        if (w->state == WORK_QUEUED || w->state == WORK_OUT) {
            at[m.inflight_n++] =
                (struct msg_inflight){.key = str_from(w->key), .attempt = w->attempt};
            msg_set(&at[m.inflight_n - 1], inflight, attempt);
        }
    }
    m.inflight = at;
    msg_set(&m, agent_heartbeat, inflight);
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    in->due = in->of->now + AGAIN_MS;
    if (msg_write(&fields, WIRE_MSGPACK, &part, 1, &err) == BT_OK) {
        spec.fields = doc_from_buf(&fields);
        (void)!caller_call(in->caller, &spec, in->of->now, &in->call, &err);
    }
    buf_done(&fields);
}

/* ---- leases ---- */

static void on_left(void *self, const struct reply *reply)
{
    (void)self;
    (void)reply;
}

/* The agent is gone: its attempts are lost at once, and others can have them. */
static void leave(struct instance *in)
{
    struct call_spec spec = {.type = MSG_agent_deregister,
                             .answer = MSG_empty,
                             .within_ms = BEAT_WITHIN_MS,
                             .done = on_left};
    const struct msg_agent_deregister m = {.instance_id = str_from(in->id), .epoch = in->epoch};
    const struct msg_part part = {MSG_agent_deregister, &m};
    struct call *call;
    struct bt_error err;
    struct buf fields;

    log_info("gateway.polled", "instance=%s has not asked for %llu ms: it leaves", in->id,
             (unsigned long long)in->of->lease_ms);
    buf_init(&fields, 512);
    if (in->registered && msg_write(&fields, WIRE_MSGPACK, &part, 1, &err) == BT_OK) {
        spec.fields = doc_from_buf(&fields);
        if (caller_call(in->caller, &spec, in->of->now, &call, &err) != BT_OK) {
            log_warn("gateway.polled", "instance=%s: %s", in->id, err.msg);
        }
    }
    buf_done(&fields);
    give_up(in, BT_NOT_FOUND, "this instance is not registered here: register again");
}

/* Polls are a sign of life while their connection is there. */
static void look_at_polls(struct instance *in)
{
    struct poll *next;

    for (struct poll *poll = in->polls; poll != NULL; poll = next) {
        next = poll->next;
        if (poll->waits && poll_hung_up(poll)) {
            poll_close(poll);
        } else if (poll->waits) {
            in->contact = in->of->now;
        }
    }
}

static void end_waits(struct instance *in)
{
    const struct problem late = {
        .code = BT_UNAVAILABLE,
        .message = STR_LIT("the daemon has not taken the result yet; it is kept here, and sent "
                           "when the daemon is back: send it again to learn what came of it"),
        .retry_after_ms = 1000};
    struct work *next_work;
    struct poll *next;

    for (struct poll *poll = in->polls; poll != NULL; poll = next) {
        next = poll->next;
        if (poll->waits && poll->until <= in->of->now) {
            poll_end(poll);
        }
    }
    for (struct work *w = in->works; w != NULL; w = next_work) {
        next_work = w->next;
        if (w->http != NULL && w->http_until <= in->of->now) {
            struct http *h = w->http;
            w->http = NULL;
            h->own = NULL;
            http_problem(h, &late);
            http_ready(h);
        }
        if ((w->state == WORK_ENDED || w->state == WORK_LOST) && w->http == NULL &&
            in->of->now - w->since > KEEP_MS) {
            work_remove(w);
        } else if (w->state == WORK_ENDED && w->call == NULL && in->registered) {
            work_deliver(w);
        }
    }
}

static bool has_results(const struct instance *in)
{
    for (const struct work *w = in->works; w != NULL; w = w->next) {
        if (w->state == WORK_ENDED) {
            return true;
        }
    }
    return false;
}

void polled_run(struct polled *p, msec now)
{
    const bool look = now - p->swept >= LOOK_MS;
    struct instance *next;

    p->now = now;
    p->swept = look ? now : p->swept;
    for (struct instance *in = p->first; in != NULL; in = next) {
        next = in->next;
        if (look) {
            look_at_polls(in);
        }
        end_waits(in);
        if (now - in->contact > p->lease_ms && !has_results(in) && in->http == NULL) {
            leave(in);
        } else if (in->call == NULL && in->due <= now && in->registered) {
            beat(in);
        } else if (in->call == NULL && in->due <= now) {
            instance_register(in);
        }
    }
}

msec polled_deadline(const struct polled *p)
{
    return p->first == NULL ? MSEC_NEVER : p->now + SWEEP_MS;
}
