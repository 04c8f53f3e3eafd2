/* The body of a request, and who serves the whole of it. */
#include "tests/unit/gateway/http_world.h"

/* ---- bodies ---- */

static void a_body_has_a_type_that_is_known(void **state)
{
    static const struct {
        const char *target, *type;
        bool taken, yaml;
    } CASES[] = {{"/v1/plans", "application/json", true, false},
                 {"/v1/plans", "Application/JSON; charset=utf-8", true, false},
                 {"/v1/plans", "application/json ;charset=utf-8", true, false},
                 {"/v1/plans", "application/jsonx", false, false},
                 {"/v1/plans", "application/yaml", true, true},
                 {"/v1/plans", "text/plain", false, false},
                 {"/v1/plans", "application/a2a+json", false, false},
                 {"/v1/plans", NULL, false, false},
                 {"/mcp", "application/json", true, false},
                 {"/mcp", "application/yaml", false, false},
                 {"/mcp", "application/a2a+json", false, false},
                 {"/a2a", "application/a2a+json", true, false},
                 {"/a2a/v1/message:send", "application/a2a+json; x", true, false}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        body("POST", CASES[i].target, CASES[i].type, "1");
        if (CASES[i].taken) {
            accepted();
            assert_true(world.h->is_yaml == CASES[i].yaml);
        } else {
            refused(415, "INVALID", "Content-Type",
                    strcmp(CASES[i].target, "/v1/plans") == 0
                        ? "expected application/json, or application/yaml"
                        : "expected application/json\"");
        }
    }
    body("POST", "/v1/plans", NULL, "0"); /* there is none */
    accepted();
    header("Transfer-Encoding", "chunked"); /* there may be one */
    head("POST", "/v1/plans");
    refused(415, "INVALID", "Content-Type", "expected");
}

static void methods_without_a_body_have_none(void **state)
{
    (void)state;
    body("GET", "/v1/plans", "application/json", "1");
    refused(400, "INVALID", "", "this method has no body: give fields in the query");
    body("GET", "/v1/plans", "application/json", "0");
    accepted();
    header("Transfer-Encoding", "chunked");
    header("Content-Type", "application/json");
    head("GET", "/metrics");
    refused(400, "INVALID", "", "this method has no body");
}

static void a_body_has_a_mebibyte(void **state)
{
    static char bytes[BODY_MAX + 1];

    (void)state;
    body("POST", "/mcp", "application/json", "1048576");
    accepted();
    http_body(world.h, bytes, BODY_MAX - 1);
    http_body(world.h, bytes, 1);
    assert_int_equal(world.s.held, BODY_MAX);
    whole();
    assert_string_equal(world.served, "mcp_serve");
    assert_int_equal(world.h->body.len, BODY_MAX);
    forget();
    body("POST", "/mcp", "application/json", "1048577");
    refused(413, "LIMIT", "", LARGE);
    header("Transfer-Encoding", "chunked");
    header("Content-Type", "application/json");
    head("POST", "/mcp");
    http_body(world.h, bytes, BODY_MAX);
    http_body(world.h, bytes, 1);
    assert_int_equal(world.h->body.len, BODY_MAX);
    assert_int_equal(world.s.held, BODY_MAX);
    http_body(world.h, bytes, 0); /* it stays too big */
    whole();
    refused(413, "LIMIT", "", LARGE);
}

static void all_bodies_together_have_a_limit(void **state)
{
    (void)state;
    body("POST", "/mcp", "application/json", "9");
    world.s.held = SERVER_HELD_BYTES - 2;
    http_body(world.h, "ab", 2);
    whole();
    assert_string_equal(world.served, "mcp_serve");
    world.s.held += 1; /* by answers of others */
    whole();
    refused(503, "BUSY", "", "the gateway holds as many bytes as it may");
    world.h->state = HTTP_BODY;
    http_body(world.h, "c", 1);
    whole();
    refused(413, "LIMIT", "", LARGE);
    world.s.held = world.h->body.len;
}

static void what_was_held_is_given_back(void **state)
{
    (void)state;
    body("POST", "/mcp", "application/json", "3");
    world.s.held = 100;
    http_body(world.h, "abc", 3);
    world.h->held = 20;
    world.s.held += 20;
    world.h->call = &world.call;
    world.h->stream = (struct stream *)&world;
    http_free(world.h);
    world.h = NULL;
    assert_int_equal(world.s.held, 100);
    assert_int_equal(world.abandoned, 1);
    assert_int_equal(world.streams, 1);
    assert_int_equal(world.callers, 0);
    http_free(NULL);
}

static void own_free(void *self)
{
    assert_ptr_equal(self, &world);
    world.freed++;
}

static void what_a_place_keeps_is_freed(void **state)
{
    (void)state;
    head("POST", "/mcp");
    world.h->own = &world;
    world.h->own_free = own_free;
    http_free(world.h);
    world.h = NULL;
    assert_int_equal(world.freed, 1);
}

/* ---- asking ---- */

static void a_request_asks_the_daemon_with_its_fields(void **state)
{
    (void)state;
    header("traceparent", "00-t");
    header("Idempotency-Key", "key");
    body("POST", "/v1/plans", "application/json", "12");
    http_body(world.h, "{\"goal\":\"g\"}", 12);
    whole();
    assert_int_equal(world.h->state, HTTP_WAITS);
    assert_int_equal(world.suspended, 1);
    assert_int_equal(world.spec.type, MSG_plan_submit);
    assert_int_equal(world.spec.answer, MSG_plan_submit_ok);
    assert_false(world.spec.reads);
    assert_true(str_is(world.spec.traceparent, "00-t"));
    assert_ptr_equal(world.spec.self, world.h);
    assert_true(world.spec.done == answer_take);
    assert_string_equal(world.fields, "{\"clientKey\":\"key\",\"goal\":\"g\"}");
    http_ready(world.h);
    http_ready(world.h); /* once */
    assert_int_equal(world.resumed, 1);
    head("GET", "/v1/plans/P?steps=false");
    whole();
    assert_int_equal(world.spec.type, MSG_plan_get);
    assert_true(world.spec.reads);
    assert_true(world.spec.traceparent.len == 0);
    assert_string_equal(world.fields, "{\"planId\":\"P\",\"steps\":false}");
}

static void fields_that_are_wrong_are_named(void **state)
{
    (void)state;
    head("GET", "/v1/plans?limit=x");
    whole();
    refused(400, "INVALID", "limit", "");
    assert_int_equal(world.suspended, 0);
    head("GET", "/v1/plans?nothing=x");
    whole();
    refused(400, "INVALID", "nothing", "");
    world.call_code = BT_BUSY;
    head("GET", "/v1/plans");
    whole();
    refused(503, "BUSY", "", "no call");
    assert_int_equal(world.suspended, 0);
}

static void yaml_is_the_same_as_json(void **state)
{
    (void)state;
    body("POST", "/v1/plans", "application/yaml", "9");
    http_body(world.h, "goal: 'g'", 9);
    whole();
    assert_string_equal(world.fields, "{\"goal\":\"g\"}");
    assert_int_equal(world.s.held, strlen("{\"goal\":\"g\"}"));
    forget();
    body("POST", "/v1/plans", "application/yaml", "9");
    http_body(world.h, "goal: [", 7);
    whole();
    refused(400, "INVALID", "", "body");
    body("POST", "/v1/plans", "application/yaml", "9"); /* nothing has come */
    whole();
    assert_string_equal(world.fields, "{}");
}

/* Each byte of such a text is six of JSON. */
static void yaml_that_is_too_long_as_json_is_refused(void **state)
{
    enum { N = 180000 };
    static char text[N + 16];
    size_t n = 0;

    (void)state;
    n += (size_t)snprintf(text, sizeof text, "goal: \"");
    for (size_t i = 0; i < N / 2; i++) {
        text[n++] = '\\';
        text[n++] = 'e';
    }
    text[n++] = '"';
    for (size_t part = 1; part <= 2; part++) {
        struct buf all;
        buf_init(&all, BODY_MAX);
        for (size_t i = 0; i < part; i++) {
            if (i > 0) {
                buf_add_cstr(&all, "\ndescription: ");
            }
            buf_add(&all, text + (i > 0 ? 6 : 0), n - (i > 0 ? 6 : 0));
        }
        body("POST", "/v1/plans", "application/yaml", "9");
        http_body(world.h, buf_cstr(&all), all.len);
        buf_done(&all);
        whole();
        if (part == 2) {
            refused(413, "LIMIT", "", "the body has too many bytes as JSON: at most 1048576");
        } else {
            assert_null(strstr(buf_cstr(&world.h->out), "as JSON")); /* the field is too long */
            assert_in_range(world.h->body.len, 6 * N / 2, BODY_MAX);
        }
        forget();
    }
}

static void events_tasks_and_agents_have_ways_of_their_own(void **state)
{
    (void)state;
    head("GET", "/v1/events");
    whole();
    assert_string_equal(world.served, "stream_begin");
    for (uint32_t i = 0; i < routes_n; i++) {
        if (route_is_task(&routes[i])) {
            head(http_method_name(routes[i].method), routes[i].path);
            whole();
            assert_string_equal(world.served, "task_begin");
        } else if (routes[i].request == MSG_agent_register) {
            head(http_method_name(routes[i].method), routes[i].path);
            whole();
            assert_string_equal(world.served, "polled_serve");
        }
    }
    head("GET", "/v1/openapi.json");
    whole();
    assert_int_equal(world.h->status, 200);
    assert_string_equal(world.h->type, "application/json");
    assert_int_equal(world.h->state, HTTP_READY);
    assert_non_null(strstr(buf_cstr(&world.h->out), "\"openapi\":"));
}

static void each_header_goes_to_its_place(void **state)
{
    const struct heads *t;

    (void)state;
    header("accept", "a");
    header("IF-MATCH", "b");
    header("last-event-id", "c");
    header("MCP-PROTOCOL-VERSION", "d");
    header("MCP-SESSION-ID", "e");
    header("a2a-version", "f");
    header("cookie", "g");
    header("expect", "h");
    header("x-other", "i");
    header("x-baton-page", NULL);
    head("GET", "/v1/plans");
    t = &world.h->heads;
    assert_string_equal(t->accept, "a");
    assert_string_equal(t->if_match, "b");
    assert_string_equal(t->last_event_id, "c");
    assert_string_equal(t->mcp_version, "d");
    assert_string_equal(t->mcp_session, "e");
    assert_string_equal(t->a2a_version, "f");
    assert_string_equal(t->cookie, "g");
    assert_string_equal(t->expect, "h");
    assert_string_equal(t->page, "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_body_has_a_type_that_is_known),
        T(methods_without_a_body_have_none),
        T(a_body_has_a_mebibyte),
        T(all_bodies_together_have_a_limit),
        T(what_was_held_is_given_back),
        T(what_a_place_keeps_is_freed),
        T(a_request_asks_the_daemon_with_its_fields),
        T(fields_that_are_wrong_are_named),
        T(yaml_is_the_same_as_json),
        T(yaml_that_is_too_long_as_json_is_refused),
        T(events_tasks_and_agents_have_ways_of_their_own),
        T(each_header_goes_to_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
