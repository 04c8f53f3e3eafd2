/* Agents over HTTP without sockets: their requests, the lanes of the daemon and its answers are in
 * the hands of a test. Of one test program; each has its own. */
#ifndef TESTS_GATEWAY_POLLED_WORLD_H
#define TESTS_GATEWAY_POLLED_WORLD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/gateway/polled/polled_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

enum { NOW = 100000, TEXT_BYTES = 4096, SERVERS_MAX = 1100, REQUESTS_MAX = 700, BEAT_MS = 1000 };

#define ID "0190F3C2-7A1B-7C3D-9E4F-0123456789AB"
#define AT "/v1/instances/" ID
#define CARD "'card':{'agentId':'a','name':'A','version':'1','skills':[]}"
#define LEASE_MS POLLED_LEASE_MS

static struct polled *p;

/* ---- lanes ---- */

struct link_server {
    struct polled_lane *lane;
    char url[64];
    struct link_limits limits;
    bool retired;
};

struct link_msg {
    struct str bytes;
    uint32_t pipe;
};

static struct {
    struct link_server servers[SERVERS_MAX];
    uint32_t n;
    void (*take)(void *self, struct link_event *ev);
    void *self;
    uint64_t answered; /* the last request that was */
    uint32_t answers;
    char answer[TEXT_BYTES];
    enum bt_code fails;
} lanes;

enum bt_code link_server_dial(struct link *l, const char *url, uint32_t n,
                              const struct link_limits *lim, void *owner, struct link_server **ret,
                              struct bt_error *err)
{
    struct link_server *s = &lanes.servers[lanes.n];

    (void)l;
    assert_int_equal(n, 4);
    if (lanes.fails != BT_OK) {
        return err_set(err, lanes.fails, "no");
    }
    assert_true(lanes.n++ < SERVERS_MAX);
    *s = (struct link_server){.lane = owner, .limits = *lim};
    (void)snprintf(s->url, sizeof s->url, "%s", url);
    *ret = s;
    return BT_OK;
}

void link_server_retire(struct link_server *s)
{
    s->retired = true;
}

bool link_answer(struct link_server *s, uint64_t request, const void *bytes, size_t len)
{
    assert_false(s->retired);
    lanes.answered = request;
    lanes.answers++;
    (void)snprintf(lanes.answer, sizeof lanes.answer, "%.*s", (int)len, (const char *)bytes);
    return true;
}

struct str link_msg_bytes(const struct link_msg *m)
{
    return m->bytes;
}

uint32_t link_msg_pipe(const struct link_msg *m)
{
    return m->pipe;
}

struct link *upstream_link(const struct upstream *u)
{
    (void)u;
    return NULL;
}

void upstream_serve(struct upstream *u, void (*take)(void *self, struct link_event *ev), void *self)
{
    (void)u;
    lanes.take = take;
    lanes.self = self;
}

static void quote(char *text)
{
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
}

/* A request of the daemon on the nth lane that was dialed: members, with ' for ". */
static void asks(uint32_t nth, uint32_t pipe, uint64_t request, const char *type,
                 const char *members)
{
    char text[TEXT_BYTES];
    struct link_msg msg = {.pipe = pipe};
    struct link_event ev = {.type = LINK_REQUEST,
                            .server = &lanes.servers[nth],
                            .request = request,
                            .owner = lanes.servers[nth].lane,
                            .msg = &msg};

    (void)snprintf(text, sizeof text, "{'v':1,'type':'%s','id':'q%llu'%s%s}", type,
                   (unsigned long long)request, members[0] != 0 ? "," : "", members);
    quote(text);
    msg.bytes = str_from(text);
    lanes.take(lanes.self, &ev);
}

/* The answer to the last request has this text, with ' for ". */
static void expect_answer(uint64_t request, const char *part)
{
    char text[TEXT_BYTES];

    (void)snprintf(text, sizeof text, "%s", part);
    quote(text);
    assert_int_equal(lanes.answered, request);
    if (strstr(lanes.answer, text) == NULL) {
        fail_msg("%s\nis not in %s", text, lanes.answer);
    }
}

/* ---- requests of agents ---- */

struct request {
    struct http h;
    struct conn conn;
    int peer;
};

static struct request *requests[REQUESTS_MAX];
static uint32_t requests_n;
static uint32_t forwarded;

void http_ask(struct http *h)
{
    h->state = HTTP_WAITS;
    forwarded++;
}

void caller_release(struct caller *c)
{
    (void)c;
}

static struct caller *const owner = (struct caller *)&requests[0];
static struct caller *const stranger = (struct caller *)&requests[1];

/* target: with its query; body: with ' for ". */
static struct http *ask_as(struct caller *who, const char *method, const char *target,
                           const char *body)
{
    struct request *r = calloc(1, sizeof *r);
    char text[TEXT_BYTES];
    uint32_t allowed;
    int fds[2];
    struct bt_error err;

    assert_non_null(r);
    assert_true(requests_n < REQUESTS_MAX);
    requests[requests_n++] = r;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    r->conn.fd = fds[0];
    r->peer = fds[1];
    r->h.s = &rig.s;
    r->h.conn = &r->conn;
    r->h.caller = who;
    r->h.state = HTTP_BODY;
    buf_init(&r->h.out, 1 << 20);
    buf_init(&r->h.body, 1 << 20);
    buf_init(&r->h.location, 256);
    (void)snprintf(text, sizeof text, "%s", body);
    quote(text);
    buf_add_cstr(&r->h.body, text);
    assert_int_equal(uri_parse(str_from(target), &r->h.uri, &err), BT_OK);
    if (route_fits("/v1/instances/{instanceId}/poll", &r->h.uri, &r->h.params)) {
        polled_serve_poll(&r->h);
        return &r->h;
    }
    assert_true(http_method_parse(method, &r->h.method));
    r->h.route = route_find(&r->h.uri, r->h.method, &r->h.params, &allowed);
    assert_non_null(r->h.route);
    assert_true(polled_takes(r->h.route->request));
    polled_serve(&r->h);
    return &r->h;
}

static struct http *ask(const char *method, const char *target, const char *body)
{
    return ask_as(owner, method, target, body);
}

/* The answer was taken by its client, or broke off. */
static void taken(struct http *h, bool broke)
{
    h->broke = broke;
    h->state = HTTP_ANSWERED;
    if (h->own != NULL) {
        h->own_free(h->own);
        h->own = NULL;
    }
}

static void hang_up(struct http *h)
{
    struct request *r = (struct request *)h;

    (void)close(r->peer);
    r->peer = -1;
}

static const char *out_of(struct http *h)
{
    return buf_cstr(&h->out);
}

/* The whole body of an answer, with ' for ". */
static void expect_out(struct http *h, unsigned status, const char *body)
{
    char text[TEXT_BYTES];

    (void)snprintf(text, sizeof text, "%s", body);
    quote(text);
    assert_int_equal(h->state, HTTP_READY);
    assert_int_equal(h->status, status);
    assert_string_equal(out_of(h), text);
    assert_string_equal(h->type, "application/json");
}

/* ---- a world ---- */

static void run(msec ms)
{
    rig.s.now += ms;
    polled_run(p, rig.s.now);
}

static int begin(void **state)
{
    struct bt_error err;

    (void)state;
    rig_begin("");
    memset(&lanes, 0, sizeof lanes);
    rig.s.now = NOW;
    forwarded = 0;
    if (polled_new(NULL, 0, &p, &err) != BT_OK) {
        return -1;
    }
    rig.s.parts.polled = p;
    polled_run(p, NOW);
    return 0;
}

static int end(void **state)
{
    static const struct problem why = {.code = BT_GONE};

    (void)state;
    while (p->first != NULL) {
        instance_free(p->first, &why);
    }
    assert_int_equal(p->n, 0);
    assert_int_equal(p->lanes_n, 0);
    assert_int_equal(p->bytes, 0);
    for (uint32_t i = 0; i < requests_n; i++) {
        struct request *r = requests[i];
        taken(&r->h, false);
        buf_done(&r->h.out);
        buf_done(&r->h.body);
        buf_done(&r->h.location);
        (void)close(r->conn.fd);
        if (r->peer >= 0) {
            (void)close(r->peer);
        }
        free(r);
    }
    requests_n = 0;
    free(p);
    rig_end();
    return 0;
}

#define REGISTERED(n, urls) "{'epoch':" #n ",'leaseMs':5000,'heartbeatMs':1000,'lanes':[" urls "]}"

/* The instance ID with this capacity and two lanes; the daemon has proved itself on both. */
static struct instance *registered(unsigned capacity)
{
    char body[TEXT_BYTES];
    struct http *h;
    struct instance *in;

    (void)snprintf(body, sizeof body, "{" CARD ",'instanceId':'" ID "','capacity':%u}", capacity);
    h = ask("POST", "/v1/instances", body);
    assert_int_equal(h->state, HTTP_WAITS);
    rig_answer_to(MSG_agent_register, REGISTERED(3, "'tcp://l0','tcp://l1'"));
    assert_int_equal(h->status, 201);
    in = instance_find(p, STR_LIT(ID));
    assert_non_null(in);
    for (uint32_t i = 0; i < in->lanes_n; i++) {
        in->lanes[i].proved = true; /* what greetings are is a test of its own */
        in->lanes[i].pipe = 7;
    }
    works_compare(in, NULL, 0); /* it has told what it has: nothing */
    return in;
}

#define STEP(key, n, more)                                                                         \
    "'planId':'P','revision':1,'stepId':'s','stepIndex':0,'stepCount':1,'key':'" key               \
    "','attempt':" #n ",'epoch':3" more

/* The daemon gives a step on the first lane. */
static void step(uint64_t request, const char *key)
{
    char members[TEXT_BYTES];

    (void)snprintf(members, sizeof members, STEP("%s", 1, ",'deadlineMs':5000"), key);
    asks(0, 7, request, "step.execute", members);
}

static struct http *poll_now(const char *body)
{
    return ask("POST", AT "/poll?waitMs=0", body);
}
#endif
