/* Polls of agents over HTTP: what is given, and what the agent says that it has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "supervisor/gateway/json.h"
#include "supervisor/gateway/polled/polled_internal.h"

struct instance *instance_of(struct http *h)
{
    struct instance *in = instance_find(h->s->parts.polled, h->params.at[0].value);

    return in != NULL && in->caller == h->caller ? in : NULL;
}

static void put_members(struct buf *out, const struct instance *in)
{
    json_key(out, "cancel");
    json_open(out, '[');
    for (const struct work *w = in->works; w != NULL; w = w->next) {
        if (w->state == WORK_OUT && w->cancelled) {
            json_open(out, '{');
            json_member(out, "key", str_from(w->key));
            json_key(out, "attempt");
            json_u64(out, w->attempt);
            json_member(out, "reason", str_from(w->reason));
            json_key(out, "graceMs");
            json_u64(out, w->grace_ms);
            json_close(out, '}');
        }
    }
    json_close(out, ']');
    json_key(out, "drain");
    json_bool(out, in->draining);
}

static void note_told(struct instance *in)
{
    in->drain_told = in->draining;
    for (struct work *w = in->works; w != NULL; w = w->next) {
        w->told = w->told || (w->state == WORK_OUT && w->cancelled);
    }
}

void put_orders(struct instance *in, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "leaseMs");
    json_u64(out, in->of->lease_ms);
    put_members(out, in);
    json_close(out, '}');
    note_told(in);
}

/* A step without what is between gateway and daemon. Its time went on while it waited here. */
static void put_step(struct buf *out, const struct work *w)
{
    static const char *const inner[] = {"v", "type", "id", "token", "sessionKey"};
    const msec waited = w->of->of->now - w->since;
    struct doc_cursor at = doc_cursor(doc_from_buf(&w->step));
    struct doc_head head;
    char name[64];

    json_open(out, '{');
    (void)doc_next(&at, &head);
    for (uint32_t i = 0; i < head.n; i++) {
        struct doc_head key;
        struct doc value;
        bool left_out = false;
        (void)doc_next(&at, &key);
        value = doc_skip(&at);
        for (size_t k = 0; k < sizeof inner / sizeof inner[0]; k++) {
            left_out = left_out || str_is(key.str, inner[k]);
        }
        if (left_out || key.str.len >= sizeof name) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s", STR_ARG(key.str));
        json_key(out, name);
        if (str_is(key.str, "deadlineMs") && doc_head(value).u > 0) {
            const uint64_t left = doc_head(value).u;
            json_u64(out, left > waited ? left - waited : 1);
        } else {
            json_doc(out, value);
        }
    }
    json_close(out, '}');
}

static void unlink_poll(struct poll *poll)
{
    for (struct poll **at = poll->in == NULL ? NULL : &poll->in->polls; at != NULL && *at != NULL;
         at = &(*at)->next) {
        if (*at == poll) {
            *at = poll->next;
            return;
        }
    }
}

/* The answer is sent, or cannot be: steps of one that broke off are given to the next poll. */
static void poll_free(void *own)
{
    struct poll *poll = own;
    struct instance *in = poll->in;

    unlink_poll(poll);
    for (uint32_t i = 0; in != NULL && poll->h->broke && i < poll->given_n; i++) {
        struct work *w = work_find(in, str_from(poll->given[i].key), poll->given[i].attempt);
        if (w != NULL && w->state == WORK_OUT && w->step.len > 0) {
            w->state = WORK_QUEUED;
        }
    }
    free(poll);
    if (in != NULL) {
        polls_give(in);
    }
}

void poll_end(struct poll *poll)
{
    struct http *h = poll->h;
    struct instance *in = poll->in;

    poll->waits = false;
    h->status = 200;
    h->type = "application/json";
    h->state = HTTP_READY;
    json_open(&h->out, '{');
    json_key(&h->out, "steps");
    json_open(&h->out, '[');
    for (struct work *w = in->works; w != NULL && poll->given_n < poll->max; w = w->next) {
        if (w->state == WORK_QUEUED && w->step.len > 0) {
            put_step(&h->out, w);
            w->state = WORK_OUT;
            memcpy(poll->given[poll->given_n].key, w->key, sizeof w->key);
            poll->given[poll->given_n++].attempt = w->attempt;
        }
    }
    json_close(&h->out, ']');
    put_members(&h->out, in);
    json_close(&h->out, '}');
    note_told(in);
    http_ready(h);
}

bool poll_hung_up(const struct poll *poll)
{
    char byte;
    const ssize_t n = recv(poll->h->conn->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void poll_close(struct poll *poll)
{
    poll->max = 0;
    poll_end(poll);
}

static bool has_something(const struct instance *in)
{
    for (const struct work *w = in->works; w != NULL; w = w->next) {
        if (w->state == WORK_QUEUED || (w->state == WORK_OUT && w->cancelled && !w->told)) {
            return true;
        }
    }
    return in->draining && !in->drain_told;
}

void polls_give(struct instance *in)
{
    struct poll *next;

    for (struct poll *poll = in->polls; poll != NULL && has_something(in); poll = next) {
        next = poll->next;
        if (poll->waits && poll_hung_up(poll)) {
            poll_close(poll);
        } else if (poll->waits) {
            poll_end(poll);
        }
    }
}

bool read_inflight(struct http *h, struct instance *in, bool *ret_said)
{
    struct arena arena = {.max = 0};
    struct msg_agent_heartbeat m = {.inflight = NULL};
    struct buf body;
    struct bt_error err;
    enum bt_code code = BT_OK;

    *ret_said = false;
    buf_init(&body, json_doc_capacity(h->body.len) + 256);
    if (h->body.len > 0) {
        struct doc list;
        struct buf map;
        code = json_to_doc(buf_str(&h->body), NULL, &body, &err);
        list = code == BT_OK ? doc_get(doc_from_buf(&body), STR_LIT("inflight"))
                             : (struct doc){NULL, 0};
        buf_init(&map, body.len + 256);
        doc_put_map(&map, 3);
        doc_put_cstr(&map, "instanceId");
        doc_put_cstr(&map, in->id);
        doc_put_cstr(&map, "epoch");
        doc_put_u64(&map, in->epoch);
        doc_put_cstr(&map, "inflight");
        doc_put_doc(&map, list);
        code = code == BT_OK ? buf_check(&map, &err) : code;
        code = code == BT_OK
                   ? msg_read_doc(&arena, doc_from_buf(&map), MSG_agent_heartbeat, &m, &err)
                   : code;
        *ret_said = code == BT_OK && list.ptr != NULL;
        if (*ret_said) {
            works_compare(in, m.inflight, m.inflight_n);
        }
        buf_done(&map);
    }
    if (code != BT_OK) {
        http_refuse(h, err.code, 400, "inflight", err.msg);
    }
    buf_done(&body);
    arena_done(&arena);
    return code == BT_OK;
}

/* A number of the query. False after refusing. */
static bool read_param(struct http *h, const char *name, uint64_t max, uint64_t *ret)
{
    char text[96];

    for (uint32_t i = 0; i < h->uri.params_n; i++) {
        if (str_is(h->uri.params[i].name, name) &&
            !fields_number(h->uri.params[i].value, max, ret)) {
            (void)snprintf(text, sizeof text, "%s: expected a number up to %llu", name,
                           (unsigned long long)max);
            http_refuse(h, BT_INVALID, 400, name, text);
            return false;
        }
    }
    return true;
}

void polled_serve_poll(struct http *h)
{
    struct instance *in = instance_of(h);
    uint64_t wait_ms = WAIT_DEFAULT_MS;
    uint64_t max = 1;
    bool said = false;
    struct poll *poll;
    struct poll **at;

    if (in == NULL) {
        http_refuse(h, BT_NOT_FOUND, 404, "instanceId", POLLED_NOT_HERE);
        return;
    }
    in->contact = h->s->now;
    if (!read_param(h, "waitMs", WAIT_MAX_MS, &wait_ms) ||
        !read_param(h, "max", POLL_STEPS_MAX, &max) || !read_inflight(h, in, &said)) {
        return;
    }
    if (!said && in->capacity == 1) {
        works_compare(in, NULL, 0); /* who does one thing at a time does nothing while it asks */
    }
    poll = calloc(1, sizeof *poll);
    if (poll == NULL) {
        http_refuse(h, BT_NOMEM, 503, "", "out of memory for a poll");
        return;
    }
    *poll = (struct poll){.in = in,
                          .h = h,
                          .waits = true,
                          .max = (uint32_t)(max > 0 ? max : 1),
                          .until = h->s->now + wait_ms};
    h->own = poll;
    h->own_free = poll_free;
    uint32_t waiting = 0;
    for (at = &in->polls; *at != NULL; at = &(*at)->next) {
        waiting += (*at)->waits;
    }
    *at = poll;
    for (struct poll *oldest = in->polls; waiting >= in->capacity && oldest != poll;
         oldest = oldest->next) {
        if (oldest->waits) { /* its sender has begun again */
            poll_close(oldest);
            waiting--;
        }
    }
    polls_give(in);
    if (poll->waits && wait_ms == 0) {
        poll_end(poll);
    } else if (poll->waits) {
        http_wait(h);
    }
}
