/* The head of a request: what is checked before anything is asked, in which order, and what is
 * refused how. */
#include "tests/unit/gateway/http_world.h"

static void where_a_request_ends_is_said_once(void **state)
{
    static const char ONE[] = "expected one Content-Length, or Transfer-Encoding: chunked";

    (void)state;
    header("content-length", "1");
    header("Content-Length", "1");
    head("POST", "/v1/plans");
    refused(400, "INVALID", "Content-Length", ONE);
    assert_true(world.h->unclear);
    assert_false(http_drains(world.h));
    header("Transfer-Encoding", "chunked");
    header("Transfer-Encoding", "chunked");
    head("POST", "/v1/plans");
    refused(400, "INVALID", "Content-Length", ONE);
    header("Transfer-Encoding", "chunked");
    header("Content-Length", "1");
    head("POST", "/v1/plans");
    refused(400, "INVALID", "Content-Length", ONE);
    header("Transfer-Encoding", "gzip");
    head("POST", "/v1/plans");
    refused(400, "INVALID", "Transfer-Encoding", "expected chunked, or none");
    header("Content-Length", "-1");
    head("POST", "/v1/plans");
    refused(400, "INVALID", "Content-Length", "a number in decimal digits");
    header("Content-Length", "");
    head("POST", "/v1/plans");
    refused(400, "INVALID", "Content-Length", "a number in decimal digits");
    header("Content-Length", "18446744073709551616");
    head("POST", "/v1/plans");
    refused(413, "LIMIT", "Content-Length", LARGE);
    assert_true(world.h->unclear);
    header("Transfer-Encoding", "CHUNKED");
    header("Content-Type", "application/json");
    head("POST", "/v1/plans");
    accepted();
    assert_false(world.h->unclear);
    header("Content-Length", "18446744073709551615");
    header("Content-Type", "application/json");
    head("POST", "/v1/plans");
    refused(413, "LIMIT", "", LARGE);
    assert_false(world.h->unclear);
}

static void an_address_is_checked_before_names(void **state)
{
    char target[8300];

    (void)state;
    header("Host", "x");
    head_as_is("GET", "//");
    refused(400, "INVALID", "", "");
    assert_false(world.h->closes);
    memset(target, 'a', sizeof target);
    target[0] = '/';
    target[sizeof target - 1] = 0;
    head("GET", target);
    refused(414, "LIMIT", "", "8192");
    assert_true(world.h->closes);
}

static void host(const char *name, bool ours)
{
    header("Host", name);
    header("Authorization", "Bearer secret");
    head_as_is("GET", "/v1/plans");
    if (ours) {
        accepted();
    } else {
        refused(421, "INVALID", "Host", "none of this server's names, with its port");
    }
}

static void a_host_is_a_name_of_this_server_with_its_port(void **state)
{
    (void)state;
    head_as_is("GET", "/v1/plans");
    refused(400, "INVALID", "Host", "expected one header Host");
    assert_true(world.h->closes);
    header("Host", "localhost:8080");
    header("Host", "localhost:8080");
    head_as_is("GET", "/v1/plans");
    refused(400, "INVALID", "Host", "expected one header Host");
    host("LocalHost:8080", true);
    host("127.0.0.1:8080", true);
    host("[::1]:8080", true);
    host("localhost:8081", false);
    host("localhost:", false);
    host("localhost", false);
    host("[::1]", false);
    host("", false);
    host("localhos:8080", false);
    host("localhostx:8080", false);
    host("example.org:8080", false);
    world.opt.hosts[0] = "other";
    world.opt.hosts[1] = "example.org";
    world.opt.hosts_n = 1;
    host("example.org:8080", false);
    world.opt.hosts_n = 2;
    host("Example.org:8080", true);
    host("other:8080", true);
    world.s.port = 80;
    host("localhost", true);
    host("[::1]", true);
    host("localhost:80", true);
    world.opt.tls = "pem";
    host("localhost", false);
    world.s.port = 443;
    host("localhost", true);
    world.opt.loopback = false;
    host("localhost", false);
    host("127.0.0.1", true); /* it listens there */
    (void)snprintf(world.opt.host, sizeof world.opt.host, "::2");
    host("[::2]", true);
    host("[::2]:443", true);
    host("::2", false);
    host("[]", false);
}

static void an_address_with_a_name_has_one_of_ours(void **state)
{
    (void)state;
    head("GET", "http://localhost:8080/v1/plans");
    accepted();
    head("GET", "http://example.org/v1/plans");
    refused(421, "INVALID", "Host", "none of this server's names");
    assert_false(world.h->closes);
}

static void origin(const char *name, bool may)
{
    header("Origin", name);
    head("GET", "/v1/plans");
    if (may) {
        accepted();
    } else {
        refused(403, "UNAUTHORIZED", "Origin", "--origin names those that may");
    }
}

static void pages_of_other_origins_are_named(void **state)
{
    (void)state;
    origin("http://127.0.0.1:8080", true);
    origin("http://localhost:8080", false); /* another origin than the Host */
    origin("https://127.0.0.1:8080", false);
    origin("https://example.org", false);
    world.opt.origins[0] = "https://other.org";
    world.opt.origins[1] = "https://example.org";
    world.opt.origins_n = 1;
    origin("https://example.org", false);
    origin("https://other.org", true);
    world.opt.origins_n = 2;
    origin("https://example.org", true);
    world.opt.tls = "pem";
    origin("https://127.0.0.1:8080", true);
    origin("http://127.0.0.1:8080", false);
}

static void what_is_not_there_or_has_other_methods_is_said(void **state)
{
    (void)state;
    head("GET", "/v1/nothing");
    refused(404, "NOT_FOUND", "", "/v1/openapi.json lists what there is");
    head("PATCH", "/v1/plans");
    refused(405, "INVALID", "", "see the header Allow");
    assert_int_equal(world.h->allowed, 1u << HTTP_GET | 1u << HTTP_POST);
    head("DELETE", "/v1/plans");
    refused(405, "INVALID", "", "see the header Allow");
    head("PUT", "/mcp");
    refused(405, "INVALID", "", "see the header Allow");
    assert_int_equal(world.h->allowed, 1u << HTTP_POST);
    head("OPTIONS", "/v1/plans");
    assert_int_equal(world.h->state, HTTP_READY);
    assert_int_equal(world.h->status, 204);
    assert_null(world.h->type);
    assert_int_equal(world.h->allowed, 1u << HTTP_GET | 1u << HTTP_POST);
    assert_string_equal(world.bearer, "");
    head("HEAD", "/v1/plans");
    accepted();
    assert_true(world.h->is_head);
    assert_int_equal(world.h->method, HTTP_GET);
    assert_int_equal(world.h->allowed, 0);
    head("HEAD", "/mcp");
    refused(405, "INVALID", "", "see the header Allow");
    head("POST", "/v1/plans");
    accepted();
    assert_false(world.h->is_head);
    assert_int_equal(world.h->method, HTTP_POST);
}

static void who_it_is_is_proved_by_one_header(void **state)
{
    static const char SAYS[] = "expected one header Authorization";

    (void)state;
    head("GET", "/v1/plans");
    accepted();
    assert_string_equal(world.bearer, "secret");
    assert_true(world.token_ok);
    world.opt.loopback = false;
    head("GET", "/v1/plans");
    assert_false(world.token_ok);
    header("Host", "127.0.0.1:8080");
    head_as_is("GET", "/v1/plans");
    refused(401, "UNAUTHORIZED", "Authorization", SAYS);
    header("Authorization", "Bearer other");
    head("GET", "/v1/plans");
    refused(401, "UNAUTHORIZED", "Authorization", SAYS);
    header("Host", "127.0.0.1:8080");
    header("Authorization", "Basic secret");
    head_as_is("GET", "/v1/plans");
    refused(401, "UNAUTHORIZED", "Authorization", SAYS);
    header("Host", "127.0.0.1:8080");
    header("Authorization", NULL);
    head_as_is("GET", "/v1/plans");
    refused(401, "UNAUTHORIZED", "Authorization", SAYS);
}

static void who_is_not_taken_is_told_why(void **state)
{
    static const struct {
        enum bt_code code;
        const char *name;
        unsigned status;
    } CASES[] = {{BT_UNAUTHORIZED, "UNAUTHORIZED", 401},
                 {BT_BUSY, "BUSY", 429},
                 {BT_UNAVAILABLE, "UNAVAILABLE", 503},
                 {BT_NOMEM, "NOMEM", 503}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        world.caller_code = CASES[i].code;
        world.retry_ms = 1500;
        head("GET", "/v1/plans");
        refused(CASES[i].status, CASES[i].name, "Authorization", "no caller");
        assert_int_equal(world.h->retry_after_s, 2);
        assert_null(world.h->caller);
    }
}

static void a_page_is_known_by_its_cookie(void **state)
{
    (void)state;
    header("Host", "127.0.0.1:8080");
    header("X-Baton-Page", "1");
    head_as_is("GET", "/v1/plans");
    refused(401, "UNAUTHORIZED", "Cookie", "this page is not logged in, or its time is over");
    world.page = "of-page";
    header("Host", "127.0.0.1:8080");
    header("X-Baton-Page", "1");
    head_as_is("GET", "/v1/plans");
    accepted();
    assert_string_equal(world.bearer, "of-page");
    header("X-Baton-Page", "1"); /* who proves itself is no page */
    head("GET", "/v1/plans");
    assert_string_equal(world.bearer, "secret");
    world.caller_code = BT_UNAUTHORIZED;
    header("Host", "127.0.0.1:8080");
    header("X-Baton-Page", "1");
    head_as_is("GET", "/v1/plans");
    refused(401, "UNAUTHORIZED", "Cookie", "no caller");
}

static void open_places_ask_for_no_proof(void **state)
{
    static const struct {
        const char *method, *target, *serves;
        bool open;
    } CASES[] = {{"GET", "/?a=b", "page_serve_file", true},
                 {"GET", "/ui/1/app.js", "page_serve_file", true},
                 {"POST", "/ui/session", "page_serve_session", true},
                 {"DELETE", "/ui/session", "page_serve_session", true},
                 {"GET", "/.well-known/agent-card.json?x=y", "a2a_serve_card", true},
                 {"POST", "/hooks/h?k=v", "incoming_serve", true},
                 {"GET", "/metrics", "telemetry_serve_metrics", false},
                 {"POST", "/a2a", "a2a_serve", false},
                 {"POST", "/a2a/message:send", "a2a_serve_rest", false},
                 {"POST", "/a2a/v1/message:stream?a=b", "a2a_serve_rest", false},
                 {"GET", "/a2a/tasks?a=b", "a2a_serve_rest", false},
                 {"GET", "/a2a/v1/tasks/T", "a2a_serve_rest", false},
                 {"POST", "/a2a/tasks/T:cancel", "a2a_serve_rest", false},
                 {"DELETE", "/a2a/tasks/T/pushNotificationConfigs/C", "a2a_serve_rest", false},
                 {"POST", "/v1/instances/I/poll?a=b", "polled_serve_poll", false},
                 {"POST", "/mcp", "mcp_serve", false}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        header("Host", "127.0.0.1:8080");
        head_as_is(CASES[i].method, CASES[i].target);
        if (!CASES[i].open) {
            refused(401, "UNAUTHORIZED", "Authorization", "expected one header Authorization");
            head(CASES[i].method, CASES[i].target);
        }
        whole();
        assert_string_equal(world.served, CASES[i].serves);
        assert_non_null(world.h->place);
        assert_null(world.h->route);
    }
}

static void places_have_parameters_only_where_others_add_some(void **state)
{
    static const char *const TARGETS[][2] = {
        {"POST", "/mcp?a=b"}, {"GET", "/ui/1/app.js?a=b"}, {"GET", "/metrics?a=b"},
        {"POST", "/a2a?a=b"}, {"POST", "/ui/session?a=b"}, {"GET", "/v1/openapi.json?a=b"}};

    (void)state;
    for (size_t i = 0; i < sizeof TARGETS / sizeof TARGETS[0]; i++) {
        head(TARGETS[i][0], TARGETS[i][1]);
        refused(400, "INVALID", "", "this address has no parameters in the query");
    }
}

/* ---- what is read to its end, and what cannot be read ---- */

static void a_refused_body_is_read_to_its_end_when_that_is_near(void **state)
{
    (void)state;
    body("POST", "/v1/nothing", "application/json", "16777216");
    assert_true(http_drains(world.h));
    body("POST", "/v1/nothing", "application/json", "16777217");
    assert_false(http_drains(world.h));
    head("POST", "/v1/nothing");
    assert_true(http_drains(world.h));
    header("Expect", "100-continue"); /* it waits for the answer */
    body("POST", "/v1/nothing", "application/json", "1");
    assert_false(http_drains(world.h));
}

static void what_cannot_be_read_is_told_by_how_far_it_got(void **state)
{
    static const struct {
        unsigned status;
        const char *code, *says;
    } CASES[] = {{413, "LIMIT", "a body has at most 1048576 bytes, and so has a chunk of it"},
                 {414, "LIMIT", "the address has more than 8192 bytes"},
                 {431, "LIMIT", "have at most 24576"},
                 {505, "INVALID", "expected HTTP/1.1, or HTTP/1.0"}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        head("OPTIONS", "/v1/plans");
        world.h->unclear = false;
        http_unreadable(world.h, CASES[i].status);
        refused(CASES[i].status, CASES[i].code, "", CASES[i].says);
        assert_true(world.h->unclear);
        assert_int_equal(world.h->allowed, 0);
    }
    http_free(world.h);
    world.h = http_new(&world.conn, NULL, "");
    http_unreadable(world.h, 400);
    refused(400, "INVALID", "", "the first line cannot be read");
    http_free(world.h);
    world.h = http_new(&world.conn, NULL, "/x");
    http_unreadable(world.h, 400);
    refused(400, "INVALID", "", "the head cannot be read");
    head("POST", "/mcp");
    http_unreadable(world.h, 400);
    refused(400, "INVALID", "", "the body cannot be read");
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(where_a_request_ends_is_said_once),
        T(an_address_is_checked_before_names),
        T(a_host_is_a_name_of_this_server_with_its_port),
        T(an_address_with_a_name_has_one_of_ours),
        T(pages_of_other_origins_are_named),
        T(what_is_not_there_or_has_other_methods_is_said),
        T(who_it_is_is_proved_by_one_header),
        T(who_is_not_taken_is_told_why),
        T(a_page_is_known_by_its_cookie),
        T(open_places_ask_for_no_proof),
        T(places_have_parameters_only_where_others_add_some),
        T(a_refused_body_is_read_to_its_end_when_that_is_near),
        T(what_cannot_be_read_is_told_by_how_far_it_got),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
