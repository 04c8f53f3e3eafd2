/* A gateway's callers over a link without sockets, and the state directory of a daemon. Of one test
 * program. */
#ifndef TESTS_GATEWAY_UPSTREAM_WORLD_H
#define TESTS_GATEWAY_UPSTREAM_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/client/state.h"
#include "supervisor/gateway/upstream.h"
#include "tests/support/cmocka.h"
#include "tests/support/house/fake_link.h"

enum { NOW = 100000 };

static char dir[64];
static char token[STATE_TOKEN_LEN + 1];

/* The state directory of a daemon that runs: this process stands for it. */
static void make_state(void)
{
    struct state_endpoints at = {.control = "tcp://127.0.0.1:7117",
                                 .events = "tcp://127.0.0.1:7118"};
    struct bt_error err;
    char path[80];
    FILE *f;

    (void)snprintf(dir, sizeof dir, "/tmp/test_upstream-XXXXXX");
    assert_non_null(mkdtemp(dir));
    at.pid = (uint64_t)getpid();
    at.pid_namespace = state_pid_namespace();
    memset(at.instance.b, 1, sizeof at.instance.b);
    (void)snprintf(at.version, sizeof at.version, "1");
    if (state_endpoints_write(dir, &at, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    memset(token, 'a', STATE_TOKEN_LEN);
    (void)snprintf(path, sizeof path, "%s/token", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(token, f);
    (void)fclose(f);
}

static void remove_state(void)
{
    static const char *const files[] = {"endpoints.json", "endpoints", "endpoints.spare", "token",
                                        "fleet.json"};
    char path[96];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

/* ---- a caller ---- */

struct world {
    struct upstream *u;
    struct caller *c;
    uint32_t done, ok;
    enum bt_code code;
    char message[256];
};

static void on_done(void *self, const struct reply *reply)
{
    struct world *w = self;

    w->done++;
    w->ok += reply->ok;
    w->code = reply->problem.code;
    (void)snprintf(w->message, sizeof w->message, "%.*s", STR_ARG(reply->problem.message));
}

/* They live as long as the process. */
static struct upstream *kept[64];

static void open_world(struct world *w)
{
    static size_t n;
    uint64_t retry;
    struct bt_error err;

    *w = (struct world){.done = 0};
    make_state();
    assert_int_equal(upstream_new(dir, &w->u, &err), BT_OK);
    assert_true(n < sizeof kept / sizeof kept[0]);
    kept[n++] = w->u;
    if (upstream_caller(w->u, str_from(token), true, NOW, &w->c, &retry, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static void close_world(struct world *w)
{
    link_free(upstream_link(w->u));
    caller_release(w->c);
    remove_state();
}

static enum bt_code calls(struct world *w, bool reads, msec wait_ms, msec now)
{
    const uint8_t empty = 0x80; /* a map without members */
    const struct call_spec spec = {.type = MSG_supervisor_info,
                                   .answer = MSG_supervisor_info_ok,
                                   .fields = {&empty, 1},
                                   .reads = reads,
                                   .wait_ms = wait_ms,
                                   .done = on_done,
                                   .self = w};
    struct call *call;
    struct bt_error err;

    return caller_call(w->c, &spec, now, &call, &err);
}

/* The lane that has a request out; NULL: none. */
static struct link_lane *busy(const struct world *w)
{
    const struct link *l = upstream_link(w->u);

    for (uint32_t i = 0; i < fake_link_lanes(l); i++) {
        struct link_lane *lane = fake_link_lane(l, i);
        if (lane->outstanding && !lane->retired) {
            return lane;
        }
    }
    return NULL;
}

/* Connections come up; what waits is sent. */
static void run(struct world *w, msec now)
{
    for (int i = 0; i < 4; i++) {
        const struct link *l = upstream_link(w->u);
        upstream_run(w->u, now);
        for (uint32_t k = 0; k < fake_link_lanes(l); k++) {
            struct link_lane *lane = fake_link_lane(l, k);
            if (!lane->up && !lane->retired) {
                fake_lane_up(lane);
            }
        }
    }
}

static void answer(struct world *w, const char *text, msec now)
{
    char json[256];

    (void)snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at != 0; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    assert_non_null(busy(w));
    fake_lane_answer(busy(w), json, strlen(json));
    run(w, now);
}

#define OK "{'v':1,'id':'http','ok':true,'type':'supervisor.info.ok'}"

#endif
