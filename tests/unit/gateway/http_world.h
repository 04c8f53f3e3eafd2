/* http.c and places.c without a server and without a daemon: what stands for those who serve, and
 * for what a request asks. Of one test program. */
#ifndef TESTS_GATEWAY_HTTP_WORLD_H
#define TESTS_GATEWAY_HTTP_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/incoming/incoming.h"
#include "supervisor/gateway/mcp/mcp.h"
#include "supervisor/gateway/polled/polled.h"
#include "supervisor/gateway/server_internal.h"
#include "supervisor/gateway/telemetry/telemetry.h"
#include "tests/support/cmocka.h"

enum { HEADERS_MAX = 24, BODY_MAX = 1048576, TEXT = 4096 };

struct caller {
    int unused;
};
struct call {
    int unused;
};

static struct {
    struct server s;
    struct options opt;
    struct conn conn;
    struct http *h;
    struct {
        const char *name, *value;
    } headers[HEADERS_MAX];
    uint32_t headers_n;
    struct caller caller;
    struct call call;
    enum bt_code caller_code, call_code;
    uint64_t retry_ms;
    const char *page; /* what a page logged in with; NULL: it is not */
    /* what came of it */
    char bearer[64], fields[TEXT], served[64];
    struct call_spec spec;
    bool token_ok;
    uint32_t callers; /* taken and not released */
    uint32_t suspended, resumed, abandoned, streams, freed;
} world;

static const char LARGE[] = "a body has at most 1048576 bytes";

/* ---- libmicrohttpd ---- */

void MHD_suspend_connection(struct MHD_Connection *c)
{
    (void)c;
    world.suspended++;
}

void MHD_resume_connection(struct MHD_Connection *c)
{
    (void)c;
    world.resumed++;
}

int MHD_get_connection_values(struct MHD_Connection *c, enum MHD_ValueKind kind,
                              MHD_KeyValueIterator fn, void *self)
{
    (void)c;
    assert_int_equal(kind, MHD_HEADER_KIND);
    for (uint32_t i = 0; i < world.headers_n; i++) {
        assert_int_equal(fn(self, kind, world.headers[i].name, world.headers[i].value), MHD_YES);
    }
    return (int)world.headers_n;
}

/* ---- who serves ---- */

static void served(struct http *h, const char *name)
{
    assert_ptr_equal(h, world.h);
    (void)snprintf(world.served, sizeof world.served, "%s", name);
}

#define SERVES(name)                                                                               \
    void name(struct http *h)                                                                      \
    {                                                                                              \
        served(h, #name);                                                                          \
    }
SERVES(page_serve_file)
SERVES(page_serve_session)
SERVES(telemetry_serve_metrics)
SERVES(a2a_serve_card)
SERVES(a2a_serve)
SERVES(a2a_serve_rest)
SERVES(incoming_serve)
SERVES(polled_serve_poll)
SERVES(polled_serve)
SERVES(mcp_serve)
SERVES(stream_begin)
SERVES(task_begin)

bool polled_takes(enum msg_type request)
{
    return request == MSG_agent_register;
}

void answer_take(void *http, const struct reply *reply)
{
    (void)http;
    (void)reply;
}

void stream_free(struct stream *st)
{
    world.streams += st != NULL ? 1 : 0;
}

bool page_bearer(struct http *h)
{
    if (world.page != NULL) {
        buf_add_cstr(&h->bearer, world.page);
    }
    return world.page != NULL;
}

/* ---- the daemon ---- */

enum bt_code upstream_caller(struct upstream *u, struct str bearer, bool token_ok, msec now,
                             struct caller **ret, uint64_t *ret_retry_ms, struct bt_error *err)
{
    assert_ptr_equal(u, &world);
    assert_int_equal(now, 77);
    (void)snprintf(world.bearer, sizeof world.bearer, "%.*s", STR_ARG(bearer));
    world.token_ok = token_ok;
    *ret_retry_ms = world.retry_ms;
    if (world.caller_code != BT_OK) {
        return err_set(err, world.caller_code, "no caller");
    }
    *ret = &world.caller;
    world.callers++;
    return BT_OK;
}

void caller_release(struct caller *c)
{
    assert_ptr_equal(c, &world.caller);
    world.callers--;
}

enum bt_code caller_call(struct caller *c, const struct call_spec *spec, msec now,
                         struct call **ret, struct bt_error *err)
{
    struct buf json;

    assert_ptr_equal(c, &world.caller);
    assert_int_equal(now, 77);
    world.spec = *spec;
    buf_init(&json, 1 << 20);
    assert_int_equal(doc_to_json(spec->fields, false, &json, NULL), BT_OK);
    (void)snprintf(world.fields, sizeof world.fields, "%s", buf_cstr(&json));
    buf_done(&json);
    *ret = world.call_code == BT_OK ? &world.call : NULL;
    return world.call_code == BT_OK ? BT_OK : err_set(err, world.call_code, "no call");
}

void call_abandon(struct call *call)
{
    assert_ptr_equal(call, &world.call);
    world.abandoned++;
}

/* ---- requests ---- */

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    (void)snprintf(world.opt.host, sizeof world.opt.host, "127.0.0.1");
    world.opt.loopback = true;
    world.s.opt = &world.opt;
    world.s.up = (struct upstream *)&world;
    world.s.port = 8080;
    world.s.now = 77;
    world.conn.s = &world.s;
    return 0;
}

static void forget(void)
{
    http_free(world.h);
    world.h = NULL;
    world.headers_n = 0;
    world.served[0] = world.bearer[0] = 0;
    world.s.held = 0;
    assert_int_equal(world.callers, 0);
}

static int end(void **state)
{
    (void)state;
    forget();
    return 0;
}

static void header(const char *name, const char *value)
{
    assert_true(world.headers_n < HEADERS_MAX);
    world.headers[world.headers_n].name = name;
    world.headers[world.headers_n++].value = value;
}

/* The head that has been set, without those of everybody. */
static void head_as_is(const char *method, const char *target)
{
    http_free(world.h);
    world.h = http_new(&world.conn, NULL, target);
    assert_non_null(world.h);
    assert_int_equal(world.h->state, HTTP_HEAD);
    http_head(world.h, method);
    world.headers_n = 0;
}

static void head(const char *method, const char *target)
{
    header("host", "127.0.0.1:8080");
    header("AUTHORIZATION", "bearer secret");
    head_as_is(method, target);
}

static void accepted(void)
{
    if (world.h->state != HTTP_BODY) {
        fail_msg("refused: %s", buf_cstr(&world.h->out));
    }
}

static void refused(unsigned status, const char *code, const char *field, const char *says)
{
    const char *out = buf_cstr(&world.h->out);
    char text[512];

    assert_int_equal(world.h->state, HTTP_READY);
    if (world.h->status != status || strstr(out, says) == NULL) {
        fail_msg("status %u, %s", world.h->status, out);
    }
    (void)snprintf(text, sizeof text, "\"code\":\"%s\"", code);
    assert_non_null(strstr(out, text));
    (void)snprintf(text, sizeof text, "\"field\":\"%s\"", field);
    if ((strstr(out, text) != NULL) != (field[0] != 0)) {
        fail_msg("%s", out);
    }
    assert_string_equal(world.h->type, "application/problem+json");
}

static void whole(void)
{
    accepted();
    world.served[0] = 0;
    http_whole(world.h);
}

static void body(const char *method, const char *target, const char *type, const char *length)
{
    if (type != NULL) {
        header("Content-Type", type);
    }
    header("Content-Length", length);
    head(method, target);
}

#endif
