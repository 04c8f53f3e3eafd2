/* Addresses, ways to requests, refusals and JSON of the gateway. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/fields.h"
#include "supervisor/gateway/json.h"
#include "supervisor/gateway/problem.h"
#include "supervisor/gateway/routes.h"
#include "tests/support/cmocka.h"

static struct uri uri;

static enum bt_code parse(const char *raw, struct bt_error *err)
{
    return uri_parse(str_from(raw), &uri, err);
}

/* "authority|segment/segment?name=value&" */
static void expect(const char *raw, const char *expected)
{
    struct bt_error err = {.msg = ""};
    struct buf out;

    if (parse(raw, &err) != BT_OK) {
        fail_msg("%s: %s", raw, err.msg);
    }
    buf_init(&out, 65536);
    buf_printf(&out, "%.*s|", STR_ARG(uri.authority));
    for (uint32_t i = 0; i < uri.segments_n; i++) {
        buf_printf(&out, "%s%.*s", i > 0 ? "/" : "", STR_ARG(uri.segments[i]));
    }
    buf_add_cstr(&out, "?");
    for (uint32_t i = 0; i < uri.params_n; i++) {
        buf_printf(&out, "%.*s=%.*s&", STR_ARG(uri.params[i].name), STR_ARG(uri.params[i].value));
    }
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void an_address_is_parts_and_parameters_decoded_once(void **state)
{
    (void)state;
    expect("/", "|?");
    expect("/a", "|a?");
    expect("/a/b.c/~d", "|a/b.c/~d?");
    expect("/a%2Fb/%c3%A9/%41", "|a/b/\xC3\xA9/A?");
    assert_int_equal(uri.segments_n, 3); /* a slash that was written as %2F stays in its part */
    expect("/a%252F", "|a%2F?");
    expect("/a+b", "|a+b?");
    expect("/?a=1&b&=c&&d=e=f", "|?a=1&b=&=c&d=e=f&");
    expect("/a?b=c+d%2B&x=%26", "|a?b=c d+&x=&&");
    expect("/a?", "|a?");
    expect("http://h:1/a?b", "h:1|a?b=&");
    expect("https://h/", "h|?");
    expect("/1/2/3/4/5/6/7/8", "|1/2/3/4/5/6/7/8?");
}

static void what_is_no_address_says_what_would_be_right(void **state)
{
    static const struct {
        const char *raw, *words;
        enum bt_code code;
    } all[] = {{"", "must begin with a slash", BT_INVALID},
               {"a", "must begin with a slash", BT_INVALID},
               {"*", "must begin with a slash", BT_INVALID},
               {"http://h", "must begin with a slash", BT_INVALID},
               {"http://h?a", "must begin with a slash", BT_INVALID},
               {"//a", "path: an empty part", BT_INVALID},
               {"/a//b", "path: an empty part", BT_INVALID},
               {"/a/", "path: there is nothing after the last slash", BT_INVALID},
               {"/.", "path: an empty part", BT_INVALID},
               {"/a/../b", "path: an empty part", BT_INVALID},
               {"/%2e%2e", "path: an empty part", BT_INVALID},
               {"/a b", "a byte that must be written with a percent sign", BT_INVALID},
               {"/a\x7f", "a byte that must be written", BT_INVALID},
               {"/\xc3\xa9", "a byte that must be written", BT_INVALID},
               {"/a#b", "a byte that must be written", BT_INVALID},
               {"/%", "path: a percent sign needs two hexadecimal digits", BT_INVALID},
               {"/%4", "path: a percent sign", BT_INVALID},
               {"/%4g", "path: a percent sign", BT_INVALID},
               {"/%g4", "path: a percent sign", BT_INVALID},
               {"/%00", "path: a zero byte", BT_INVALID},
               {"/%ff", "path: its decoded bytes are not UTF-8", BT_INVALID},
               {"/?a=%ff", "query: its decoded bytes are not UTF-8", BT_INVALID},
               {"/?%00=a", "query: a zero byte", BT_INVALID},
               {"/1/2/3/4/5/6/7/8/9", "no path has more than 8 parts", BT_NOT_FOUND}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct bt_error err = {.msg = ""};
        assert_int_equal(parse(all[i].raw, &err), all[i].code);
        if (strstr(err.msg, all[i].words) == NULL) {
            fail_msg("%s: %s", all[i].raw, err.msg);
        }
    }
}

static void an_address_has_8192_bytes_and_100_parameters(void **state)
{
    static char raw[URI_BYTES_MAX + 2];
    struct bt_error err;
    size_t n = 2;

    (void)state;
    memset(raw, 'x', sizeof raw);
    raw[0] = '/';
    raw[URI_BYTES_MAX] = 0;
    assert_int_equal(parse(raw, &err), BT_OK);
    raw[URI_BYTES_MAX] = 'x';
    raw[URI_BYTES_MAX + 1] = 0;
    assert_int_equal(parse(raw, &err), BT_LIMIT);
    memcpy(raw, "/?", 2);
    for (int i = 0; i < URI_PARAMS_MAX; i++) {
        n += (size_t)snprintf(raw + n, sizeof raw - n, "a&");
    }
    assert_int_equal(parse(raw, &err), BT_OK);
    assert_int_equal(uri.params_n, URI_PARAMS_MAX);
    (void)snprintf(raw + n, sizeof raw - n, "b");
    assert_int_equal(parse(raw, &err), BT_LIMIT);
}

/* ---- routes ---- */

static void a_way_has_a_path_and_a_method(void **state)
{
    struct route_params params;
    uint32_t allowed;
    const struct route *r;

    (void)state;
    expect("/v1/plans/P", "|v1/plans/P?");
    r = route_find(&uri, HTTP_GET, &params, &allowed);
    assert_string_equal(r->name, "plan_get");
    assert_int_equal(r->request, MSG_plan_get);
    assert_int_equal(r->answer, MSG_plan_view);
    assert_int_equal(params.n, 1);
    assert_true(str_is(params.at[0].name, "planId"));
    assert_true(str_is(params.at[0].value, "P"));
    assert_true((allowed & 1u << HTTP_GET) != 0);
    assert_string_equal(route_role(r), "OBSERVER");
    assert_true(strlen(route_sentence(r)) > 10);
    assert_false(route_has_body(r));
    assert_null(route_find(&uri, HTTP_PUT, &params, &allowed));
    assert_true(allowed != 0); /* another method is there */
    expect("/v1/nothing", "|v1/nothing?");
    assert_null(route_find(&uri, HTTP_GET, &params, &allowed));
    assert_int_equal(allowed, 0);
    expect("/v1/plans", "|v1/plans?");
    r = route_find(&uri, HTTP_POST, &params, &allowed);
    assert_int_equal(r->request, MSG_plan_submit);
    assert_true(route_has_body(r));
    assert_int_equal(allowed, 1u << HTTP_GET | 1u << HTTP_POST);
    assert_non_null(route_field(r, STR_LIT("goal")));
    assert_null(route_field(r, STR_LIT("nothing")));
    assert_false(route_is_events(r));
    assert_false(route_is_task(r));
    assert_false(route_fills(r, STR_LIT("epoch")));
    expect("/v1/events", "|v1/events?");
    assert_true(route_is_events(route_find(&uri, HTTP_GET, &params, &allowed)));
    expect("/v1/tasks", "|v1/tasks?");
    assert_true(route_is_task(route_find(&uri, HTTP_POST, &params, &allowed)));
    expect("/v1/instances", "|v1/instances?");
    r = route_find(&uri, HTTP_POST, &params, &allowed);
    for (int i = 0; i < 5; i++) {
        static const char *const filled[] = {"epoch", "instanceId", "sessionKey", "capacity",
                                             "outcome"};
        assert_true(route_fills(r, str_from(filled[i])));
    }
    assert_false(route_fills(r, STR_LIT("card")));
}

static void a_template_fits_as_many_parts_as_it_has(void **state)
{
    struct route_params params;

    (void)state;
    expect("/a/x/b/y", "|a/x/b/y?");
    assert_true(route_fits("/a/{p}/b/{q}", &uri, &params));
    assert_int_equal(params.n, 2);
    assert_true(str_is(params.at[1].name, "q"));
    assert_true(str_is(params.at[1].value, "y"));
    assert_false(route_fits("/a/{p}/b", &uri, &params));
    assert_false(route_fits("/a/{p}/b/{q}/c", &uri, &params));
    assert_false(route_fits("/a/{p}/c/{q}", &uri, &params));
    assert_false(route_fits("/a/{}/b/y", &uri, &params)); /* that is no name */
}

static void a_method_has_a_name(void **state)
{
    static const char *const names[] = {"GET", "POST", "PUT", "DELETE"};
    enum http_method m;

    (void)state;
    for (int i = 0; i < HTTP_METHOD_COUNT; i++) {
        assert_true(http_method_parse(names[i], &m));
        assert_int_equal(m, i);
        assert_string_equal(http_method_name(m), names[i]);
    }
    assert_false(http_method_parse("get", &m));
    assert_false(http_method_parse("PATCH", &m));
}

/* ---- refusals ---- */

static void a_code_has_a_status_and_each_status_a_title(void **state)
{
    static const struct {
        enum bt_code code;
        unsigned status;
        const char *title;
    } all[] = {{BT_INVALID, 400, "Bad Request"},
               {BT_UNAUTHORIZED, 401, "Unauthorized"},
               {BT_NOT_FOUND, 404, "Not Found"},
               {BT_CONFLICT, 409, "Conflict"},
               {BT_LIMIT, 413, "Content Too Large"},
               {BT_BUSY, 503, "Service Unavailable"},
               {BT_TIMEOUT, 504, "Gateway Timeout"},
               {BT_UNAVAILABLE, 503, "Service Unavailable"},
               {BT_GONE, 410, "Gone"},
               {BT_CANCELLED, 409, "Conflict"},
               {BT_PROTOCOL, 502, "Bad Gateway"},
               {BT_NOMEM, 503, "Service Unavailable"},
               {BT_IO, 500, "Internal Server Error"},
               {BT_INTERNAL, 500, "Internal Server Error"},
               {BT_MOVED, 503, "Service Unavailable"},
               {BT_HISTORY_CHANGED, 409, "Conflict"},
               {(enum bt_code)BT_CODE_COUNT, 500, "Internal Server Error"}};
    static const struct {
        unsigned status;
        const char *title;
    } others[] = {{403, "Forbidden"},
                  {405, "Method Not Allowed"},
                  {406, "Not Acceptable"},
                  {411, "Length Required"},
                  {412, "Precondition Failed"},
                  {414, "URI Too Long"},
                  {415, "Unsupported Media Type"},
                  {421, "Misdirected Request"},
                  {429, "Too Many Requests"},
                  {431, "Request Header Fields Too Large"},
                  {501, "Not Implemented"},
                  {505, "HTTP Version Not Supported"},
                  {499, "Error"}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct problem p = {.code = all[i].code};
        assert_int_equal(problem_status(&p), all[i].status);
        assert_string_equal(problem_title(all[i].status), all[i].title);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_string_equal(problem_title(others[i].status), others[i].title);
    }
}

static void details_of_the_daemon_change_the_status(void **state)
{
    static const uint8_t quota[] = "\x81\xa5quota\x01";
    static const uint8_t role[] = "\x81\xa4role\x01";
    struct problem p = {.code = BT_LIMIT, .details = {quota, sizeof quota - 1}};

    (void)state;
    assert_int_equal(problem_status(&p), 429); /* over a quota */
    p.code = BT_BUSY;
    assert_int_equal(problem_status(&p), 429);
    p.code = BT_INVALID;
    assert_int_equal(problem_status(&p), 400);
    p.code = BT_UNAUTHORIZED;
    assert_int_equal(problem_status(&p), 401);
    p.details = (struct doc){role, sizeof role - 1};
    assert_int_equal(problem_status(&p), 403); /* the sender is known */
    p.code = BT_LIMIT;
    assert_int_equal(problem_status(&p), 413);
    p.status = 418; /* who refuses knows best */
    assert_int_equal(problem_status(&p), 418);
}

static void a_wait_is_told_in_whole_seconds_rounded_up(void **state)
{
    static const uint64_t all[][2] = {{0, 0}, {1, 1}, {999, 1}, {1000, 1}, {1001, 2}, {60000, 60}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct problem p = {.retry_after_ms = all[i][0]};
        assert_int_equal(problem_retry_after_s(&p), all[i][1]);
    }
}

static void a_problem_has_the_members_that_are_there(void **state)
{
    static const uint8_t details[] = "\x81\xa1x\x07";
    struct problem p = {.code = BT_BUSY, .message = STR_LIT("later")};
    struct buf out;

    (void)state;
    buf_init(&out, 65536);
    problem_write(&p, &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"type\":\"urn:baton:error:BUSY\",\"title\":\"Service Unavailable\","
        "\"status\":503,\"detail\":\"later\",\"code\":\"BUSY\",\"retryable\":true}");
    buf_clear(&out);
    p = (struct problem){.code = BT_INVALID,
                         .class_ = STR_LIT("C"),
                         .message = STR_LIT("no"),
                         .retry_after_ms = 5,
                         .field = STR_LIT("f"),
                         .details = {details, sizeof details - 1}};
    problem_write(&p, &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"type\":\"urn:baton:error:INVALID\",\"title\":\"Bad Request\",\"status\":400,"
        "\"detail\":\"no\",\"code\":\"INVALID\",\"retryable\":false,\"class\":\"C\","
        "\"retryAfterMs\":5,\"field\":\"f\",\"details\":{\"x\":7}}");
    buf_clear(&out);
    p.details = (struct doc){(const uint8_t *)"\xc1", 1}; /* that is no value */
    problem_write(&p, &out);
    assert_string_equal(buf_cstr(&out), "{\"type\":\"urn:baton:error:INVALID\",\"title\":\"Bad "
                                        "Request\",\"status\":400}");
    buf_done(&out);
}

/* ---- JSON ---- */

static void commas_come_by_themselves_and_texts_are_escaped(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    json_open(&out, '{');
    json_key(&out, "a");
    json_u64(&out, UINT64_MAX);
    json_member(&out, "none", (struct str){NULL, 0});
    json_member(&out, "b", STR_LIT("x\"\\\n\t\x01/\xC3\xA9"));
    json_key(&out, "c");
    json_open(&out, '[');
    json_bool(&out, true);
    json_bool(&out, false);
    json_doc(&out, (struct doc){NULL, 0});
    json_doc(&out, (struct doc){(const uint8_t *)"\x91\x05", 2});
    json_raw(&out, "{\"r\":1}");
    json_cstr(&out, "");
    json_open(&out, '{');
    json_close(&out, '}');
    json_close(&out, ']');
    json_close(&out, '}');
    assert_string_equal(buf_cstr(&out),
                        "{\"a\":18446744073709551615,\"b\":\"x\\\"\\\\\\n\\u0009\\u0001/\xC3\xA9\","
                        "\"c\":[true,false,null,[5],{\"r\":1},\"\",{}]}");
    buf_done(&out);
}

static void a_number_is_digits_up_to_the_greatest(void **state)
{
    static const struct {
        const char *text;
        uint64_t max, number;
        bool right;
    } all[] = {{"0", 0, 0, true},
               {"007", 7, 7, true},
               {"18446744073709551615", UINT64_MAX, UINT64_MAX, true},
               {"00000000000000000001", 1, 1, true},
               {"000000000000000000001", 1, 0, false},
               {"18446744073709551616", UINT64_MAX, 0, false},
               {"8", 7, 0, false},
               {"", 7, 0, false},
               {"/", 70, 0, false},
               {":", 70, 0, false},
               {"1 ", 70, 0, false},
               {"-1", UINT64_MAX, 0, false}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        uint64_t v = 5;

        assert_int_equal(fields_number(str_from(all[i].text), all[i].max, &v), all[i].right);
        if (all[i].right) {
            assert_true(v == all[i].number);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_parts_and_parameters_decoded_once),
        cmocka_unit_test(what_is_no_address_says_what_would_be_right),
        cmocka_unit_test(an_address_has_8192_bytes_and_100_parameters),
        cmocka_unit_test(a_way_has_a_path_and_a_method),
        cmocka_unit_test(a_template_fits_as_many_parts_as_it_has),
        cmocka_unit_test(a_method_has_a_name),
        cmocka_unit_test(a_code_has_a_status_and_each_status_a_title),
        cmocka_unit_test(details_of_the_daemon_change_the_status),
        cmocka_unit_test(a_wait_is_told_in_whole_seconds_rounded_up),
        cmocka_unit_test(a_problem_has_the_members_that_are_there),
        cmocka_unit_test(a_number_is_digits_up_to_the_greatest),
        cmocka_unit_test(commas_come_by_themselves_and_texts_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
