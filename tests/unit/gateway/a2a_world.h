/* A2A without a server and a daemon: one request, what it asks for, the plan that it follows and
 * the configurations of push notifications are in the hands of a test. */
#ifndef TESTS_GATEWAY_A2A_WORLD_H
#define TESTS_GATEWAY_A2A_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/a2a/a2a_internal.h"
#include "supervisor/gateway/webhook/webhook.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"
#include "tests/unit/gateway/stream_world.h"

enum { PUSHES = 8 };

/* ---- push notifications ---- */

static struct {
    struct hook_spec at[PUSHES];
    uint32_t n, reserved;
    bool full;
    char plan[80], config[80]; /* of the last reservation */
} pushes;

enum bt_code webhooks_push_reserve(struct webhooks *w, const char *plan, const char *config,
                                   struct bt_error *err)
{
    (void)w;
    (void)snprintf(pushes.plan, sizeof pushes.plan, "%s", plan);
    (void)snprintf(pushes.config, sizeof pushes.config, "%s", config);
    pushes.reserved += !pushes.full;
    return pushes.full ? err_set(err, BT_LIMIT, "no place") : BT_OK;
}

void webhooks_push_unreserve(struct webhooks *w)
{
    (void)w;
    pushes.reserved--;
}

enum bt_code webhooks_push_put(struct webhooks *w, const struct hook_spec *spec,
                               struct bt_error *err)
{
    (void)w;
    if (pushes.full) {
        return err_set(err, BT_LIMIT, "no place");
    }
    pushes.at[pushes.n++] = *spec;
    return BT_OK;
}

const struct hook_spec *webhooks_push_next(const struct webhooks *w, const char *plan, uint32_t *at)
{
    (void)w;
    while (*at < pushes.n) {
        const struct hook_spec *s = &pushes.at[(*at)++];
        if (strcmp(s->plan, plan) == 0) {
            return s;
        }
    }
    return NULL;
}

bool webhooks_push_remove(struct webhooks *w, const char *plan, const char *config)
{
    (void)w;
    for (uint32_t i = 0; i < pushes.n; i++) {
        if (strcmp(pushes.at[i].plan, plan) == 0 && strcmp(pushes.at[i].config, config) == 0) {
            pushes.at[i].plan[0] = 0;
            return true;
        }
    }
    return false;
}

/* ---- requests ---- */

static inline void over(void)
{
    if (rig.h.own != NULL) {
        rig.h.own_free(rig.h.own);
        rig.h.own = NULL;
    }
    stream_over(false);
    rig_end();
}

/* The handler is run: the request is answered, or waits. */
static inline void rpc_raw(const char *body)
{
    over();
    rig_begin(quoted(body));
    a2a_serve(&rig.h);
}

static inline void rpc(const char *method, const char *params)
{
    char body[TEXT_BYTES];

    (void)snprintf(body, sizeof body, "{'jsonrpc':'2.0','id':7,'method':'%s','params':%s}", method,
                   params);
    rpc_raw(body);
}

static inline void rest(const char *method, const char *target, const char *body)
{
    struct bt_error err;

    over();
    rig_begin(quoted(body));
    assert_true(http_method_parse(method, &rig.h.method));
    assert_int_equal(uri_parse(str_from(target), &rig.h.uri, &err), BT_OK);
    a2a_serve_rest(&rig.h);
}

static inline void expect_asked(enum msg_type type, const char *fields)
{
    assert_int_equal(rig.h.state, HTTP_WAITS);
    assert_string_equal(msg_wire_type(rig.spec.type), msg_wire_type(type));
    assert_string_equal(rig.fields, quoted(fields));
}

/* The text without times of now. */
static inline const char *timeless(struct buf *out)
{
    static char text[TEXT_BYTES];
    char *at = text;

    (void)snprintf(text, sizeof text, "%s", buf_cstr(out));
    while ((at = strstr(at, "\"timestamp\":\"20")) != NULL) {
        at += strlen("\"timestamp\":\"");
        memmove(at, at + 24, strlen(at + 24) + 1);
    }
    return text;
}

static inline void expect_out(unsigned status, const char *body)
{
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_int_equal(rig.h.status, status);
    assert_string_equal(timeless(&rig.h.out), quoted(body));
}

/* The request was refused with this code of JSON-RPC, in words that begin so. */
static inline void expect_refused(int code, const char *words)
{
    char begin[256];

    assert_int_equal(rig.h.state, HTTP_READY);
    (void)snprintf(begin, sizeof begin,
                   "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":%d,\"message\":\"%s", code,
                   words);
    if (strncmp(rig_out(), begin, strlen(begin)) != 0) {
        fail_msg("%s\nis not the beginning of %s", begin, rig_out());
    }
}

static inline int begin(void **state)
{
    (void)state;
    memset(&pushes, 0, sizeof pushes);
    buf_init(&follows.out, 1 << 20);
    rig_begin("");
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    over();
    assert_int_equal(pushes.reserved, 0);
    return 0;
}
#endif
