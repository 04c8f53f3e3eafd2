/* MCP over one request of HTTP, without a daemon: what a message asks for, and what its client
 * gets. Of one test program. */
#ifndef TESTS_GATEWAY_MCP_WORLD_H
#define TESTS_GATEWAY_MCP_WORLD_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/gateway/mcp/mcp_internal.h"
#include "supervisor/gateway/options.h"
#include "tests/unit/gateway/stream_world.h"

struct str stream_plan(const struct stream *st)
{
    return str_from(st->plan);
}

struct http *stream_http(const struct stream *st)
{
    return st->h;
}

/* The only one is that which is followed. */
struct stream *stream_next(const struct server *s, const struct stream *before)
{
    (void)s;
    return before == NULL && follows.self != NULL ? &follows : NULL;
}

const struct stream_view *stream_view_of(const struct stream *st)
{
    return st->view;
}

enum bt_code answer_body(struct doc whole, struct buf *out)
{
    return doc_to_json(whole, false, out, NULL);
}

/* ---- requests ---- */

static struct options options;
static bool keeps; /* the plan that is followed is another request's */
static void message(const char *body)
{
    const char *version = rig.h.heads.mcp_version;
    const char *accept = rig.h.heads.accept;
    const char *session = rig.h.heads.mcp_session;

    if (rig.h.own != NULL && !keeps) {
        rig.h.own_free(rig.h.own);
    }
    if (!keeps) {
        stream_over(true);
    }
    rig_end();
    rig_begin(quoted(body));
    rig.h.heads.mcp_version = version;
    rig.h.heads.accept = accept;
    rig.h.heads.mcp_session = session;
    rig.s.opt = &options;
    mcp_serve(&rig.h);
}

static void call(const char *method, const char *params)
{
    char body[TEXT_BYTES];

    (void)snprintf(body, sizeof body, "{'jsonrpc':'2.0','id':7,'method':'%s','params':%s}", method,
                   params);
    message(body);
}

#define META(more) "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'" more "}"
#define ELICITS ",'io.modelcontextprotocol/clientCapabilities':{'elicitation':{}}"

static int begin(void **state)
{
    (void)state;
    buf_init(&follows.out, 1 << 20);
    memset(&options, 0, sizeof options);
    keeps = false;
    rig_begin("");
    return 0;
}

static int end(void **state)
{
    (void)state;
    stream_over(true);
    if (rig.h.own != NULL) {
        rig.h.own_free(rig.h.own);
    }
    rig_end();
    return 0;
}

static void expect_asked(enum msg_type type, const char *fields)
{
    assert_int_equal(rig.h.state, HTTP_WAITS);
    assert_string_equal(msg_wire_type(rig.spec.type), msg_wire_type(type));
    assert_string_equal(rig.fields, quoted(fields));
}

static void expect_result(const char *members)
{
    char text[TEXT_BYTES];

    (void)snprintf(text, sizeof text, "{'jsonrpc':'2.0','id':7,'result':{%s}}", members);
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_int_equal(rig.h.status, 200);
    assert_string_equal(rig.h.type, "application/json");
    assert_string_equal(rig_out(), quoted(text));
}

static void expect_refused(unsigned status, int code, const char *words)
{
    char text[512];

    (void)snprintf(text, sizeof text, "\"error\":{\"code\":%d,\"message\":\"%s", code, words);
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_int_equal(rig.h.status, status);
    if (strstr(rig_out(), text) == NULL) {
        fail_msg("%s\nis not in %s", text, rig_out());
    }
}

#endif
