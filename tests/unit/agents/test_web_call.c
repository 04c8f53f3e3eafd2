/* One HTTP exchange with a service in this process: what is sent, what is kept of an answer, where
 * redirects may lead, and the bounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/web/web.h"
#include "protocol/base/clock.h"
#include "tests/unit/agents/service.h"

#define PATIENCE 20000u

static const char *const LOCAL[] = {"127.0.0.0/8", "::1", NULL};
static const char *const HERE[] = {"127.0.0.1", "localhost", NULL};
static const struct web_policy HERE_ONLY = {.hosts = HERE, .addresses = LOCAL};

static struct web_response r;
static struct bt_error err;

/* "http://127.0.0.1:PORT" and a path. */
static const char *at(const char *path)
{
    static char url[2][WEB_URL_MAX * 2];
    static unsigned n;

    n ^= 1;
    (void)snprintf(url[n], sizeof url[n], "%s%s", service_url(), path);
    return url[n];
}

static struct web_request get(const char *path)
{
    return (struct web_request){
        .method = "GET", .url = at(path), .timeout_ms = PATIENCE, .max_bytes = 65536};
}

static enum bt_code call_as(const struct web_policy *policy, const struct web_request *request)
{
    web_response_done(&r);
    err = (struct bt_error){.msg = ""};
    return web_call(policy, request, &r, &err);
}

static enum bt_code call(const struct web_request *request)
{
    return call_as(&HERE_ONLY, request);
}

static void says(const char *part)
{
    if (strstr(err.msg, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    }
}

static void has_header(const char *name, const char *want)
{
    char got[256];

    web_response_header(&r, name, got, sizeof got);
    assert_string_equal(got, want);
}

static int begin(void **state)
{
    (void)state;
    service_forget();
    return 0;
}

/* ---- what is sent ---- */

static void a_request_is_sent_as_it_was_given(void **state)
{
    static const char *const headers[] = {"X-A: 1", "Content-Type: a/b", "Content-X: 2",
                                          "Contents: 3", NULL};
    static const char *const secret[] = {"Authorization: s", "X-Other: t", NULL};
    struct web_request q = get("/a%20b?c=d");

    (void)state;
    q.method = "PATCH";
    q.headers = headers;
    q.secret_headers = secret;
    q.body = STR_LIT("{\"k\": 1}");
    service_next(200, "", "");
    assert_int_equal(call(&q), BT_OK);
    service_expect(0, "PATCH /a%20b?c=d HTTP/1.1\r\n");
    service_expect(0, "\r\nX-A: 1\r\n");
    service_expect(0, "\r\nContent-Type: a/b\r\n");
    service_expect(0, "\r\nAuthorization: s\r\n");
    service_expect(0, "\r\nX-Other: t\r\n");
    service_expect(0, "\r\nContent-Length: 8\r\n");
    service_expect(0, "\r\n\r\n{\"k\": 1}");
    service_expect(0, "\r\nUser-Agent: baton/" BATON_VERSION "\r\n");
    service_expect(0, "\r\nAccept-Encoding: gzip, deflate\r\n");
    service_expect_not(0, "Expect");
    assert_true(r.sent);
    assert_string_equal(r.url, at("/a%20b?c=d"));
}

static void a_request_without_a_body_has_no_headers_about_one(void **state)
{
    static const char *const headers[] = {"content-TYPE: a/b", "Content-X: 2", "Contents: 3",
                                          "X-A: 1", NULL};
    struct web_request q = get("/");

    (void)state;
    q.headers = headers;
    service_next(200, "", "x");
    assert_int_equal(call(&q), BT_OK);
    service_expect(0, "GET / HTTP/1.1\r\n");
    service_expect_not(0, "ontent-");
    service_expect_not(0, "content-");
    service_expect(0, "\r\nContents: 3\r\n");
    service_expect(0, "\r\nX-A: 1\r\n");
    assert_string_equal(buf_cstr(&r.body), "x");
}

static void a_body_may_be_empty_or_have_any_byte_and_size(void **state)
{
    static char large[300000];
    struct web_request q = get("/");

    (void)state;
    q.method = "POST";
    q.body = STR_LIT("");
    service_next(200, "", "");
    assert_int_equal(call(&q), BT_OK);
    service_expect(0, "POST / HTTP/1.1\r\n");
    service_expect(0, "\r\nContent-Length: 0\r\n");
    memset(large, 'x', sizeof large);
    large[7] = 0;
    q.body = (struct str){large, sizeof large};
    service_next(200, "", "");
    assert_int_equal(call(&q), BT_OK);
    service_expect(1, "\r\nContent-Length: 300000\r\n");
    assert_memory_equal(strstr(service_asked(1), "\r\n\r\n") + 4, large, sizeof large);
}

static void head_reads_no_body(void **state)
{
    struct web_request q = get("/");

    (void)state;
    q.method = "HEAD";
    service_raw(STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-A: b\r\n\r\n"), SERVICE_CLOSES);
    assert_int_equal(call(&q), BT_OK);
    service_expect(0, "HEAD / HTTP/1.1\r\n");
    assert_int_equal(r.body.len, 0);
    has_header("content-length", "9");
}

/* A proxy would get what is for the service alone. */
static void proxies_of_the_environment_are_not_used(void **state)
{
    static const char *const names[] = {"http_proxy", "ALL_PROXY", "all_proxy"};
    const struct web_request q = get("/");

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(setenv(names[i], "http://127.0.0.1:1", 1), 0);
    }
    service_next(200, "", "");
    assert_int_equal(call(&q), BT_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(unsetenv(names[i]), 0);
    }
}

/* ---- what is kept of an answer ---- */

static void an_answer_has_status_headers_and_body(void **state)
{
    static const struct {
        const char *line;
        long status;
    } lines[] = {{"HTTP/1.1 200 OK", 200},
                 {"HTTP/1.1 404", 404},
                 {"HTTP/1.0 999 x", 999},
                 {"HTTP/1.1 503 200 times", 503},
                 {"HTTP/1.1 304 Not Modified", 304},
                 {"HTTP/1.1 201 Created", 201}};
    const struct web_request q = get("/");

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[512];
        service_forget();
        (void)snprintf(text, sizeof text,
                       "%s\r\nX-Zed-AZ@[: \t a  b \r\nX-Bad: \xff!\r\nX-Empty:\r\n"
                       "Retry-After: 7\r\n\r\n",
                       lines[i].line);
        service_raw(str_from(text), SERVICE_CLOSES);
        assert_int_equal(call(&q), BT_OK);
        assert_int_equal(r.status, lines[i].status);
        has_header("x-zed-az@[", "a  b");
        has_header("x-bad", "\xef\xbf\xbd!");
        assert_non_null(strstr(buf_cstr(&r.headers), "x-empty: \n"));
        has_header("retry-after", "7");
        assert_int_equal(web_response_retry_after_ms(&r), 7000);
    }
}

static void an_answer_before_the_answer_leaves_nothing(void **state)
{
    const struct web_request q = get("/");

    (void)state;
    service_raw(STR_LIT("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\nLink: x\r\n\r\n"
                        "HTTP/1.1 202 OK\r\nContent-Length: 1\r\nX-Late: 2\r\n\r\ny"),
                SERVICE_CLOSES);
    assert_int_equal(call(&q), BT_OK);
    assert_int_equal(r.status, 202);
    has_header("x-early", "");
    has_header("x-late", "2");
    assert_string_equal(buf_cstr(&r.body), "y");
}

static void a_packed_answer_is_unpacked(void **state)
{
    /* gzip of 1000 times "x" */
    static const unsigned char packed[] = {
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0xab, 0xa8, 0x18, 0x05, 0xa3,
        0x60, 0x14, 0x0c, 0x77, 0x00, 0x00, 0xe6, 0xc9, 0x41, 0x3b, 0xe8, 0x03, 0x00, 0x00};
    struct web_request q = get("/");
    char head[128];
    struct buf whole;

    (void)state;
    (void)snprintf(head, sizeof head,
                   "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                   sizeof packed);
    for (unsigned less = 0; less < 2; less++) {
        buf_init(&whole, 4096);
        buf_add_cstr(&whole, head);
        buf_add(&whole, packed, sizeof packed);
        service_raw(buf_str(&whole), SERVICE_CLOSES);
        buf_done(&whole);
        q.max_bytes = 1000 - less;
        assert_int_equal(call(&q), less == 0 ? BT_OK : BT_LIMIT); /* the bound is of the text */
        assert_int_equal(r.body.len, less == 0 ? 1000 : 0);
    }
    says("more than 999 bytes");
}

static void an_answer_has_at_most_its_bytes(void **state)
{
    struct web_request q = get("/");

    (void)state;
    q.max_bytes = 5;
    service_next(200, "", "12345");
    service_next(200, "", "123456");
    assert_int_equal(call(&q), BT_OK);
    assert_string_equal(buf_cstr(&r.body), "12345");
    assert_int_equal(call(&q), BT_LIMIT);
    says("the answer has more than 5 bytes");
    assert_true(r.sent);
}

static void headers_have_at_most_64_kib(void **state)
{
    const struct web_request q = get("/");
    static char text[WEB_HEADERS_BYTES_MAX + 256];

    (void)state;
    for (int more = 0; more < 2; more++) {
        /* "x-a: " and "\n" stand around the value */
        const int value = WEB_HEADERS_BYTES_MAX - 6 - (int)strlen("connection: close\n") + more;
        (void)snprintf(text, sizeof text,
                       "HTTP/1.1 200 x\r\nConnection: close\r\nX-A: %0*d\r\n\r\n", value, 0);
        service_raw(str_from(text), SERVICE_CLOSES);
        assert_int_equal(call(&q), more == 0 ? BT_OK : BT_LIMIT);
    }
    says("the headers of the answer have more than 65536 bytes");
}

/* ---- a body in pieces ---- */

struct taker {
    char got[64];
    bool stops;
};

static bool take(void *self, struct str bytes)
{
    struct taker *t = self;

    (void)snprintf(t->got + strlen(t->got), sizeof t->got - strlen(t->got), "%.*s", STR_ARG(bytes));
    return !t->stops;
}

static void the_body_of_a_good_answer_goes_to_who_takes_it(void **state)
{
    static const struct {
        int status;
        const char *taken, *kept;
    } cases[] = {{200, "text", ""}, {299, "text", ""}, {300, "", "text"}, {500, "", "text"}};
    struct web_request q = get("/");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct taker t = {.stops = false};
        q.take = take;
        q.self = &t;
        q.max_bytes = 4;
        service_next(cases[i].status, "", "text");
        assert_int_equal(call(&q), BT_OK);
        assert_string_equal(t.got, cases[i].taken);
        assert_int_equal(r.body.len, strlen(cases[i].kept));
    }
}

static void who_takes_the_body_can_end_the_exchange(void **state)
{
    struct taker t = {.stops = true};
    struct web_request q = get("/");

    (void)state;
    q.take = take;
    q.self = &t;
    service_next(200, "", "text");
    assert_int_equal(call(&q), BT_CANCELLED);
    says("stopped on request");
    t.stops = false;
    q.max_bytes = 3;
    service_next(200, "", "more");
    assert_int_equal(call(&q), BT_LIMIT); /* the bound holds for pieces, too */
    assert_string_equal(t.got, "text");
}

/* ---- time ---- */

static bool is_cancelled(void *self)
{
    return *(const bool *)self;
}

static void a_call_ends_when_it_is_cancelled_when_it_is_silent_and_in_time(void **state)
{
    static const char begun[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx";
    bool cancelled = true;
    struct web_request q = get("/");
    msec began = clock_mono_ms();

    (void)state;
    q.cancelled = is_cancelled;
    q.self = &cancelled;
    service_raw(STR_LIT(begun), SERVICE_WAITS);
    assert_int_equal(call(&q), BT_CANCELLED);
    says("stopped on request");
    cancelled = false;
    q.idle_ms = 300;
    service_raw(STR_LIT(begun), SERVICE_WAITS);
    assert_int_equal(call(&q), BT_TIMEOUT);
    says("silence for 300 ms");
    assert_true(clock_mono_ms() - began >= 300);
    began = clock_mono_ms();
    q.idle_ms = 0;
    q.timeout_ms = 1500; /* a silence of more than a second, which no bound forbids */
    service_raw(STR_LIT(begun), SERVICE_WAITS);
    assert_int_equal(call(&q), BT_TIMEOUT);
    says("no complete answer within 1500 ms: ");
    assert_in_range(clock_mono_ms() - began, 1500, PATIENCE / 2);
    assert_true(r.sent);
}

static void the_time_of_a_call_is_that_of_its_redirects_together(void **state)
{
    struct web_request q = get("/");
    const msec began = clock_mono_ms();

    (void)state;
    q.timeout_ms = 2000;
    service_next(302, "Location: /b\r\n", "");
    service_raw(STR_LIT(""), SERVICE_WAITS);
    assert_int_equal(call(&q), BT_TIMEOUT);
    assert_true(clock_mono_ms() - began < PATIENCE / 2);
    assert_int_equal(service_count(), 2);
}

/* ---- failures ---- */

static void a_failure_says_whether_a_server_may_have_seen_the_request(void **state)
{
    const struct web_policy strangers = {.hosts = HERE};
    struct web_request q = get("/");

    (void)state;
    service_raw(STR_LIT(""), SERVICE_CLOSES);
    assert_int_equal(call(&q), BT_UNAVAILABLE);
    assert_true(r.sent);
    assert_int_equal(r.status, 0);
    service_raw(STR_LIT("no HTTP at all\n"), SERVICE_CLOSES);
    assert_int_equal(call(&q), BT_INVALID);
    assert_true(r.sent);
    service_raw(STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), SERVICE_CLOSES);
    assert_int_equal(call(&q), BT_UNAVAILABLE);
    assert_true(r.sent);
    assert_int_equal(call_as(&strangers, &q), BT_INVALID);
    says("the name leads to a private address; list it in allowPrivate");
    assert_false(r.sent);
    q.url = "http://127.0.0.1:1/";
    assert_int_equal(call(&q), BT_UNAVAILABLE);
    assert_true(err.msg[0] != 0);
    assert_false(r.sent);
    assert_int_equal(service_count(), 3);
    q.url = "https://elsewhere.example/";
    assert_int_equal(call(&q), BT_INVALID);
    says("is not in baseUrl or allowHosts");
    assert_string_equal(r.url, "");
    assert_false(r.sent);
}

/* ---- redirects ---- */

static void which_answers_lead_on_is_by_status_and_method(void **state)
{
    static const struct {
        const char *method;
        int status;
        const char *then; /* the second request; NULL: there is none */
    } cases[] = {
        {"GET", 301, "GET /b "},   {"GET", 302, "GET /b "}, {"GET", 303, "GET /b "},
        {"GET", 307, "GET /b "},   {"GET", 308, "GET /b "}, {"GET", 300, NULL},
        {"GET", 304, NULL},        {"GET", 305, NULL},      {"GET", 306, NULL},
        {"GET", 309, NULL},        {"GET", 201, NULL},      {"HEAD", 302, "HEAD /b "},
        {"POST", 301, NULL},       {"POST", 302, NULL},     {"POST", 303, "GET /b "},
        {"POST", 307, "POST /b "}, {"PUT", 308, "PUT /b "}, {"DELETE", 302, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bool reads = cases[i].method[0] == 'G' || cases[i].method[0] == 'H';
        static const char *const headers[] = {"Content-Type: a/b", NULL};
        struct web_request q = get("/a");
        service_forget();
        q.method = cases[i].method;
        q.headers = headers;
        q.body = reads ? (struct str){NULL, 0} : STR_LIT("body");
        service_next(cases[i].status, "Location: /b\r\n", "");
        service_next(200, "X-Second: 1\r\n", "");
        assert_int_equal(call(&q), BT_OK);
        if (cases[i].then == NULL) {
            assert_int_equal(service_count(), 1);
            assert_int_equal(r.status, cases[i].status);
            continue;
        }
        if (service_count() != 2) {
            fail_msg("%s %d is not followed", cases[i].method, cases[i].status);
        }
        service_expect(1, cases[i].then);
        assert_int_equal(r.status, 200);
        assert_string_equal(r.url, at("/b"));
        has_header("location", ""); /* of the last answer alone */
        has_header("x-second", "1");
        if (cases[i].then[0] == 'P') {
            service_expect(1, "\r\n\r\nbody");
            service_expect(1, "Content-Type: a/b");
        } else {
            service_expect_not(1, "body");
            service_expect_not(1, "Content-");
        }
    }
    service_forget();
    service_next(302, "", "no place");
    {
        const struct web_request q = get("/a");
        assert_int_equal(call(&q), BT_OK);
        assert_int_equal(r.status, 302);
        assert_string_equal(buf_cstr(&r.body), "no place");
    }
}

static void redirects_end_after_five(void **state)
{
    const struct web_request q = get("/");

    (void)state;
    for (int i = 0; i < WEB_REDIRECTS_MAX; i++) {
        service_next(302, "Location: /x\r\n", "old");
    }
    service_next(200, "", "new");
    assert_int_equal(call(&q), BT_OK);
    assert_string_equal(buf_cstr(&r.body), "new");
    assert_int_equal(service_count(), WEB_REDIRECTS_MAX + 1);
    service_forget();
    service_at("/", 302, "Location: /\r\n", "");
    assert_int_equal(call(&q), BT_LIMIT);
    says("more than 5 redirects");
    assert_int_equal(service_count(), WEB_REDIRECTS_MAX + 1);
}

static void a_redirect_leads_only_where_calls_may_go(void **state)
{
    const struct web_request q = get("/");
    char text[128];

    (void)state;
    service_next(302, "Location: http://127.0.0.2:1/\r\n", "");
    assert_int_equal(call(&q), BT_INVALID);
    says("redirect to http://127.0.0.2:1/: host 127.0.0.2 (port 1) is not in");
    service_next(302, "Location: file:///etc/passwd\r\n", "");
    assert_int_equal(call(&q), BT_INVALID);
    says("redirect to file:///etc/passwd: ");
    (void)snprintf(text, sizeof text, "Location: http://ann@127.0.0.1:%d/\r\n", service_port());
    service_next(302, text, "");
    assert_int_equal(call(&q), BT_INVALID);
    says("no user and no password");
    assert_int_equal(service_count(), 3);
}

/* 127.0.0.1 and localhost are two origins, of one service. */
static void secret_headers_stay_with_their_origin(void **state)
{
    static const char *const headers[] = {"X-Open: 1", NULL};
    static const char *const secret[] = {"Authorization: s", NULL};
    struct web_request q = get("/");
    char away[128];
    char back[128];

    (void)state;
    (void)snprintf(away, sizeof away, "Location: http://localhost:%d/\r\n", service_port());
    (void)snprintf(back, sizeof back, "Location: %s/\r\n", service_url());
    q.headers = headers;
    q.secret_headers = secret;
    service_next(307, "Location: /same\r\n", "");
    service_next(307, away, "");
    service_next(307, back, "");
    service_next(200, "", "");
    assert_int_equal(call(&q), BT_OK);
    service_expect(0, "Authorization: s");
    service_expect(1, "Authorization: s");
    service_expect_not(2, "Authorization");
    service_expect_not(3, "Authorization"); /* who was elsewhere may have chosen the way back */
    service_expect(3, "X-Open: 1");
    assert_int_equal(r.status, 200);
}

static void an_error_has_no_key_in_it(void **state)
{
    struct secrets secrets = {0};
    const struct web_policy policy = {.hosts = HERE, .addresses = LOCAL, .secrets = &secrets};
    const struct web_request q = get("/");
    const char *key = NULL;

    (void)state;
    assert_int_equal(setenv("TEST_WEB_KEY", "sk-canary-0123456789", 1), 0);
    assert_int_equal(secrets_load(&secrets, SECRET_ENV, "TEST_WEB_KEY", &key, &err), BT_OK);
    service_next(302, "Location: http://other.example/sk-canary-0123456789\r\n", "");
    assert_int_equal(call_as(&policy, &q), BT_INVALID);
    says("redirect to http://other.example/[redacted]");
    assert_null(strstr(err.msg, "canary"));
    secrets_done(&secrets);
}

static int done(void **state)
{
    web_response_done(&r);
    return service_stop(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_sent_as_it_was_given),
        TEST(a_request_without_a_body_has_no_headers_about_one),
        TEST(a_body_may_be_empty_or_have_any_byte_and_size),
        TEST(head_reads_no_body),
        TEST(proxies_of_the_environment_are_not_used),
        TEST(an_answer_has_status_headers_and_body),
        TEST(an_answer_before_the_answer_leaves_nothing),
        TEST(a_packed_answer_is_unpacked),
        TEST(an_answer_has_at_most_its_bytes),
        TEST(headers_have_at_most_64_kib),
        TEST(the_body_of_a_good_answer_goes_to_who_takes_it),
        TEST(who_takes_the_body_can_end_the_exchange),
        TEST(a_call_ends_when_it_is_cancelled_when_it_is_silent_and_in_time),
        TEST(the_time_of_a_call_is_that_of_its_redirects_together),
        TEST(a_failure_says_whether_a_server_may_have_seen_the_request),
        TEST(which_answers_lead_on_is_by_status_and_method),
        TEST(redirects_end_after_five),
        TEST(a_redirect_leads_only_where_calls_may_go),
        TEST(secret_headers_stay_with_their_origin),
        TEST(an_error_has_no_key_in_it),
    };

    return web_start(&err) == BT_OK ? cmocka_run_group_tests(tests, service_start, done) : 1;
}
