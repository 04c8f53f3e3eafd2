/* The server itself: connections of real sockets, and requests that the test serves. What each step
 * of a request calls, which headers an answer has, and how long a connection may take. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/gateway/server_internal.h"
#include "supervisor/gateway/stream.h"
#include "tests/support/cmocka.h"

enum { TEXT = 16384, ROUNDS = 400, SWEEP = 250 };

static struct {
    struct options opt;
    struct server *s;
    msec now;
    char steps[TEXT];
    void (*head)(struct http *h); /* what http_head does; NULL: the request goes on */
    void (*whole)(struct http *h);
    bool drains;
    struct http *last;
    int left; /* requests that are not freed */
    bool broke;
    size_t held;
    msec streams;
} world;

static void note(const char *what)
{
    const size_t n = strlen(world.steps);

    (void)snprintf(world.steps + n, sizeof world.steps - n, "%s ", what);
}

/* ---- http.c and the streams ---- */

struct http *http_new(struct conn *c, struct MHD_Connection *mhd, const char *target)
{
    struct http *h = calloc(1, sizeof *h);

    assert_non_null(h);
    h->s = c->s;
    h->conn = c;
    h->mhd = mhd;
    h->target = strdup(target);
    buf_init(&h->out, 1 << 20);
    buf_init(&h->link, TEXT);
    buf_init(&h->location, TEXT);
    buf_init(&h->cookie, TEXT);
    note("new");
    note(target);
    world.left++;
    world.last = h;
    return h;
}

void http_free(struct http *h)
{
    note("free");
    world.broke = h->broke;
    world.held = h->held;
    h->s->held -= h->held;
    buf_done(&h->out);
    buf_done(&h->link);
    buf_done(&h->location);
    buf_done(&h->cookie);
    free(h->target);
    free(h);
    world.left--;
    world.last = NULL;
}

void http_head(struct http *h, const char *method)
{
    assert_int_equal(h->s->now, world.now);
    note("head");
    note(method);
    h->state = HTTP_BODY;
    if (world.head != NULL) {
        world.head(h);
    }
}

void http_body(struct http *h, const char *bytes, size_t n)
{
    char text[64];

    (void)h;
    (void)snprintf(text, sizeof text, "body %.*s", (int)n, bytes);
    note(text);
}

bool http_drains(const struct http *h)
{
    (void)h;
    return world.drains;
}

void http_unreadable(struct http *h, unsigned status)
{
    char text[32];

    (void)snprintf(text, sizeof text, "unreadable %u", status);
    note(text);
    assert_false(h->conn->idle);
    h->unclear = true;
    h->status = status;
    h->type = "text/plain";
    h->state = HTTP_READY;
    buf_add_cstr(&h->out, "why");
}

void http_whole(struct http *h)
{
    note("whole");
    h->status = 200;
    h->type = "text/plain";
    h->state = HTTP_READY;
    buf_add_cstr(&h->out, "hello");
    if (world.whole != NULL) {
        world.whole(h);
    }
}

struct MHD_Response *stream_response(struct stream *st)
{
    (void)st;
    note("stream");
    return MHD_create_response_from_buffer(6, (void *)(uintptr_t) "events", MHD_RESPMEM_PERSISTENT);
}

bool stream_is_quiet(const struct stream *st)
{
    return *(const char *)st == 'q';
}

void streams_run(struct server *s, msec now)
{
    assert_ptr_equal(s, world.s);
    assert_int_equal(now, world.now);
}

msec streams_deadline(const struct server *s, msec now)
{
    (void)s;
    (void)now;
    return world.streams;
}

/* ---- clients ---- */

static int begin(void **state)
{
    const struct parts parts = {.watch = NULL};
    struct bt_error err;

    (void)state;
    memset(&world, 0, sizeof world);
    (void)snprintf(world.opt.host, sizeof world.opt.host, "127.0.0.1");
    world.now = 1000000;
    world.streams = MSEC_NEVER;
    if (server_new(&world.opt, 0, NULL, &parts, &world.s, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    assert_true(server_port(world.s) > 0);
    assert_true(server_fd(world.s) >= 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    MHD_stop_daemon(world.s->mhd);
    assert_int_equal(world.left, 0);
    assert_int_equal(world.s->conns_n, 0);
    assert_null(world.s->conns);
    free(world.s);
    return 0;
}

static void turn(void)
{
    server_begin(world.s, world.now);
    server_run(world.s, world.now);
}

static int client(void)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons(server_port(world.s)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const uint32_t before = world.s->conns_n;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    for (int i = 0; i < ROUNDS && world.s->conns_n == before; i++) {
        turn();
    }
    return fd;
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    for (int i = 0; i < 20; i++) {
        turn();
    }
}

/* What has come; *ret_end: the connection is over. */
static const char *received(int fd, bool *ret_end)
{
    static char text[TEXT];
    size_t len = 0;

    *ret_end = false;
    for (int i = 0; i < ROUNDS && !*ret_end; i++) {
        const ssize_t n = recv(fd, text + len, sizeof text - 1 - len, MSG_DONTWAIT);
        len += n > 0 ? (size_t)n : 0;
        *ret_end = n == 0 || (n < 0 && errno != EAGAIN);
        turn();
        if (n < 0 && len > 0 && i > 20) {
            break;
        }
    }
    text[len] = 0;
    return text;
}

static const char *ask(const char *request)
{
    const int fd = client();
    const char *text;
    bool over;

    send_text(fd, request);
    text = received(fd, &over);
    (void)close(fd);
    turn();
    turn();
    return text;
}

static void has(const char *text, const char *line)
{
    char whole[512];

    (void)snprintf(whole, sizeof whole, "\r\n%s\r\n", line);
    if (strstr(text, whole) == NULL) {
        fail_msg("no \"%s\" in:\n%s", line, text);
    }
}

static void lacks(const char *text, const char *name)
{
    if (strstr(text, name) != NULL) {
        fail_msg("\"%s\" in:\n%s", name, text);
    }
}

#define GET "GET /a%2Fb?c=%20 HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"

/* ---- the steps of a request ---- */

static void a_request_is_served_step_by_step(void **state)
{
    const char *text;

    (void)state;
    text = ask(GET);
    assert_string_equal(world.steps, "new /a%2Fb?c=%20 head GET whole free ");
    assert_ptr_equal(strstr(text, "HTTP/1.1 200 "), text);
    assert_non_null(strstr(text, "\r\n\r\nhello"));
    has(text, "Content-Length: 5");
    assert_int_equal(world.held, 5);
    assert_false(world.broke);
    world.steps[0] = 0;
    text = ask(POST);
    assert_string_equal(world.steps, "new /p head POST body abc whole free ");
    assert_int_equal(world.s->counts.requests[2], 2);
    assert_int_equal(world.s->held, 0);
}

static void refuse(struct http *h)
{
    h->status = 403;
    h->state = HTTP_READY;
}

static void a_request_that_is_refused_at_its_head_is_answered_then_or_at_its_end(void **state)
{
    const char *text;

    (void)state;
    world.head = refuse;
    text = ask(POST);
    assert_non_null(strstr(text, " 403 "));
    assert_string_equal(world.steps, "new /p head POST free ");
    assert_int_equal(world.s->counts.requests[4], 1);
    world.steps[0] = 0;
    world.drains = true;
    text = ask(POST);
    assert_non_null(strstr(text, " 403 "));
    assert_string_equal(world.steps, "new /p head POST free ");
    assert_int_equal(world.s->counts.requests[4], 2);
    text = ask(GET);
    assert_non_null(strstr(text, " 403 "));
}

static void wait_for_it(struct http *h)
{
    h->state = HTTP_WAITS;
    MHD_suspend_connection(h->mhd);
}

static void a_request_that_waits_is_answered_when_it_is_ready(void **state)
{
    const int fd = client();
    bool over;

    (void)state;
    world.whole = wait_for_it;
    send_text(fd, GET);
    assert_string_equal(received(fd, &over), "");
    world.now += 10 * SERVER_SEND_MS; /* the daemon's time has its own end */
    turn();
    assert_string_equal(received(fd, &over), "");
    assert_false(over);
    world.last->state = HTTP_READY;
    MHD_resume_connection(world.last->mhd);
    assert_non_null(strstr(received(fd, &over), "\r\n\r\nhello"));
    world.steps[0] = 0;
    send_text(fd, GET); /* the same connection */
    assert_non_null(strstr(world.steps, "new "));
    (void)close(fd);
    world.last->state = HTTP_READY;
    MHD_resume_connection(world.last->mhd);
    for (int i = 0; i < 20; i++) {
        turn();
    }
    assert_true(world.broke || world.left == 0);
}

static void be_stream(struct http *h)
{
    h->stream = (struct stream *)(uintptr_t) "s";
}

static void be_quiet(struct http *h)
{
    h->stream = (struct stream *)(uintptr_t) "q";
}

static void be_head(struct http *h)
{
    be_stream(h);
    h->is_head = true;
}

static void be_refused_stream(struct http *h)
{
    be_stream(h);
    h->status = 404;
}

static void a_stream_is_its_own_answer(void **state)
{
    static void (*const OTHERS[])(struct http * h) = {be_quiet, be_head, be_refused_stream};

    (void)state;
    world.whole = be_stream;
    assert_non_null(strstr(ask(GET), "\r\n\r\nevents"));
    assert_int_equal(world.held, 0);
    for (size_t i = 0; i < 3; i++) {
        world.whole = OTHERS[i];
        assert_non_null(strstr(ask(GET), "\r\n\r\nhello"));
    }
}

/* ---- what the library cannot read (unreadable.c) ---- */

static void what_cannot_be_read_is_answered_as_all_others_are(void **state)
{
    static char large[40000];
    static const struct {
        const char *request, *steps, *line;
    } CASES[] = {{"GET /p\r\nHost: x\r\n\r\n", "new  unreadable 400 free ", "HTTP/1.1 400 "},
                 {large, "new /p unreadable 431 free ", "HTTP/1.1 431 "},
                 {"POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                  "new /p head POST unreadable 400 free ", "HTTP/1.1 400 "}};

    (void)state;
    (void)snprintf(large, sizeof large, "GET /p HTTP/1.1\r\nX: %030000d\r\n\r\n", 0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *text;
        world.steps[0] = 0;
        text = ask(CASES[i].request);
        if (strcmp(world.steps, CASES[i].steps) != 0) {
            fail_msg("%zu: %s", i, world.steps);
        }
        assert_ptr_equal(strstr(text, CASES[i].line), text);
        assert_non_null(strstr(text, "\r\n\r\nwhy"));
        has(text, "X-Content-Type-Options: nosniff");
        has(text, "Connection: close");
        lacks(text, "<html>");
    }
}

/* http_head sees all headers, and refuses it. */
static void what_http_head_refuses_is_not_refused_before(void **state)
{
    static const char *const REQUESTS[] = {
        "GET /p HTTP/1.1\r\n\r\n", "GET /p HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        "GET /p HTTP/1.1\r\nHost: x\r\nCookie: a=b; c=\"\r\n\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof REQUESTS / sizeof REQUESTS[0]; i++) {
        world.steps[0] = 0;
        (void)ask(REQUESTS[i]);
        assert_string_equal(world.steps, "new /p head GET whole free ");
    }
}

/* ---- headers ---- */

static void be_plain(struct http *h)
{
    h->status = 204;
    h->type = NULL;
    buf_clear(&h->out);
}

static void be_full(struct http *h)
{
    h->status = 401;
    h->closes = true;
    h->keep = true;
    h->policy = "default-src 'self'";
    h->allowed = 1u << HTTP_GET | 1u << HTTP_DELETE;
    h->retry_after_s = 7;
    (void)snprintf(h->etag, sizeof h->etag, "\"e\"");
    (void)snprintf(h->mcp_session, sizeof h->mcp_session, "m");
    buf_add_cstr(&h->cookie, "c=1");
    buf_add_cstr(&h->link, "<l>");
    buf_add_cstr(&h->location, "/loc");
}

static void be_unclear(struct http *h)
{
    h->unclear = true;
    h->allowed = 1u << HTTP_POST;
}

static void an_answer_has_the_headers_of_its_request(void **state)
{
    static const char *const ALWAYS[] = {
        "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
        "Cross-Origin-Opener-Policy: same-origin", "Cross-Origin-Resource-Policy: same-origin",
        "Vary: Origin"};
    static const char *const SOME[] = {"Connection: close", "WWW-Authenticate",
                                       "Set-Cookie",        "ETag",
                                       "Mcp-Session-Id",    "Link",
                                       "Location",          "Allow:",
                                       "Retry-After",       "Access-Control"};
    const char *text;

    (void)state;
    text = ask(GET);
    for (size_t i = 0; i < sizeof ALWAYS / sizeof ALWAYS[0]; i++) {
        has(text, ALWAYS[i]);
    }
    for (size_t i = 0; i < sizeof SOME / sizeof SOME[0]; i++) {
        lacks(text, SOME[i]);
    }
    has(text, "Content-Type: text/plain");
    has(text, "Cache-Control: no-store");
    has(text, "Content-Security-Policy: default-src 'none'");
    world.whole = be_plain;
    lacks(ask(GET), "\r\nContent-Type");
    world.whole = be_full;
    text = ask(GET);
    for (size_t i = 0; i < sizeof ALWAYS / sizeof ALWAYS[0]; i++) {
        has(text, ALWAYS[i]);
    }
    has(text, "Connection: close");
    has(text, "Cache-Control: public, max-age=31536000, immutable");
    has(text, "Content-Security-Policy: default-src 'self'");
    has(text, "WWW-Authenticate: Bearer realm=\"baton\"");
    has(text, "Set-Cookie: c=1");
    has(text, "ETag: \"e\"");
    has(text, "Mcp-Session-Id: m");
    has(text, "Link: <l>");
    has(text, "Location: /loc");
    has(text, "Allow: OPTIONS, GET, HEAD, DELETE");
    has(text, "Retry-After: 7");
    world.whole = be_unclear;
    text = ask(GET);
    has(text, "Connection: close");
    has(text, "Allow: OPTIONS, POST");
}

static void be_of_origin(struct http *h)
{
    h->heads.origin = "https://b";
}

static void pages_of_named_origins_may_read_the_answer(void **state)
{
    const char *text;

    (void)state;
    world.opt.origins[0] = "https://a";
    world.opt.origins[1] = "https://b";
    world.opt.origins_n = 1;
    world.whole = be_of_origin;
    lacks(ask(GET), "Access-Control");
    world.opt.origins_n = 2;
    text = ask(GET);
    has(text, "Access-Control-Allow-Origin: https://b");
    has(text, "Access-Control-Expose-Headers: ETag, Link, Location, Retry-After");
    has(text, "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, DELETE");
    has(text, "Access-Control-Allow-Headers: Authorization, Content-Type, Idempotency-Key, "
              "If-Match, Last-Event-ID");
    world.whole = NULL;
    lacks(ask(GET), "Access-Control");
}

/* ---- times ---- */

/* The connection is there one millisecond before, and gone then. */
static void lasts(int fd, msec ms)
{
    const msec began = world.now;
    bool over;

    world.now = began + ms - 1;
    turn();
    (void)received(fd, &over);
    assert_false(over);
    world.now = began + ms - 1 + SWEEP; /* the next look */
    turn();
    (void)received(fd, &over);
    assert_true(over);
    (void)close(fd);
}

static void a_connection_has_its_time_for_each_part(void **state)
{
    int fd = client();
    bool over;

    (void)state;
    lasts(fd, SERVER_HEAD_MS);
    fd = client();
    world.now += SERVER_HEAD_MS - 1;
    send_text(fd, "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na");
    lasts(fd, SERVER_BODY_MS);
    fd = client();
    send_text(fd, GET);
    assert_non_null(strstr(received(fd, &over), "hello"));
    world.now += SERVER_HEAD_MS / 2;
    send_text(fd, GET);
    assert_non_null(strstr(received(fd, &over), "hello"));
    lasts(fd, SERVER_HEAD_MS); /* from the last answer */
}

static void it_looks_four_times_a_second_while_somebody_is_there(void **state)
{
    int fd;

    (void)state;
    assert_true(server_deadline(world.s, world.now) == MSEC_NEVER ||
                server_deadline(world.s, world.now) > world.now);
    world.streams = world.now + 7;
    assert_int_equal(server_deadline(world.s, world.now), world.now + 7);
    world.streams = MSEC_NEVER;
    fd = client();
    assert_in_range(server_deadline(world.s, world.now), world.now, world.now + SWEEP);
    world.streams = world.now + SWEEP + 1;
    assert_in_range(server_deadline(world.s, world.now), world.now, world.now + SWEEP);
    (void)close(fd);
    turn();
}

/* ---- beginning ---- */

static enum bt_code opens(const char *host, uint16_t port, const char *tls, struct bt_error *err)
{
    const struct parts parts = {.watch = NULL};
    struct server *s = NULL;
    enum bt_code code;

    (void)snprintf(world.opt.host, sizeof world.opt.host, "%s", host);
    world.opt.tls = tls;
    code = server_new(&world.opt, port, NULL, &parts, &s, err);
    if (s != NULL) {
        assert_true(port == 0 || server_port(s) == port);
        MHD_stop_daemon(s->mhd);
        free(s);
    }
    return code;
}

static void what_hinders_it_is_said(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(opens("127.0.0.1", server_port(world.s), NULL, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "the port is taken"));
    assert_null(strstr(err.msg, "PEM"));
    assert_int_equal(opens("no such host", 0, NULL, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "--listen no such host: "));
    assert_int_equal(opens("127.0.0.1", 0, "/nothing", &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "--tls /nothing: it cannot be opened"));
    assert_int_equal(opens("127.0.0.1", 0, "/proc/self/comm", &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "the PEM file has no certificate and key"));
    assert_int_equal(opens("::1", 0, NULL, &err), BT_OK);
}

/* ---- many ---- */

static void expect_connections(rlim_t descriptors, uint32_t want)
{
    const struct rlimit lim = {.rlim_cur = 200, .rlim_max = descriptors};
    struct rlimit now;

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
    (void)end(NULL);
    (void)begin(NULL);
    assert_int_equal(world.s->conns_max, want);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, descriptors);
}

/* The limit falls from step to step, so this is the last test. */
static void
as_many_as_descriptors_allow_and_the_idlest_ends_when_three_quarters_are_there(void **state)
{
    enum { OTHERS = 128 + 2 * CALLERS_MAX, MANY = 192 /* of 256 */ };
    static int fds[MANY];
    struct rlimit lim;
    bool over;
    int last;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
    if (lim.rlim_max > SERVER_CONNECTIONS_MAX + OTHERS) {
        expect_connections(SERVER_CONNECTIONS_MAX + OTHERS, SERVER_CONNECTIONS_MAX);
        expect_connections(SERVER_CONNECTIONS_MAX + OTHERS - 1,
                           SERVER_CONNECTIONS_MAX + OTHERS - 1 - 256);
    }
    expect_connections(513, 257);
    expect_connections(512, 256);
    for (int i = 0; i < MANY; i++) {
        world.now += 1;
        fds[i] = client();
    }
    (void)received(fds[0], &over);
    assert_false(over);
    send_text(fds[0], "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na"); /* not idle */
    last = client();
    for (int i = 0; i < MANY; i++) {
        (void)recv(fds[i], &over, 0, MSG_DONTWAIT);
    }
    (void)received(fds[1], &over);
    assert_true(over); /* the one that has been idle for longest */
    (void)received(fds[0], &over);
    assert_false(over);
    (void)received(fds[2], &over);
    assert_false(over);
    (void)close(last);
    for (int i = 0; i < MANY; i++) {
        (void)close(fds[i]);
    }
    for (int i = 0; i < ROUNDS && world.s->conns_n > 0; i++) {
        turn();
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_request_is_served_step_by_step),
        T(a_request_that_is_refused_at_its_head_is_answered_then_or_at_its_end),
        T(a_request_that_waits_is_answered_when_it_is_ready),
        T(a_stream_is_its_own_answer),
        T(what_cannot_be_read_is_answered_as_all_others_are),
        T(what_http_head_refuses_is_not_refused_before),
        T(an_answer_has_the_headers_of_its_request),
        T(pages_of_named_origins_may_read_the_answer),
        T(a_connection_has_its_time_for_each_part),
        T(it_looks_four_times_a_second_while_somebody_is_there),
        T(what_hinders_it_is_said),
        T(as_many_as_descriptors_allow_and_the_idlest_ends_when_three_quarters_are_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
