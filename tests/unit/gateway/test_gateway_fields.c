/* Addresses, routes, and the fields of a request of the wire from HTTP. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/wire/msg_table.h"
#include "supervisor/gateway/fields.h"
#include "supervisor/gateway/openapi.h"
#include "supervisor/gateway/problem.h"
#include "tests/support/cmocka.h"

static struct uri uri;
static struct bt_error err;

static enum bt_code parse(const char *target)
{
    return uri_parse(str_from(target), &uri, &err);
}

static void a_path_is_decoded_once_and_keeps_a_slash_in_a_part(void **unused)
{
    (void)unused;
    assert_int_equal(parse("/v1/reviews/a%2Fb%252F/decide?x=1&y=a+b%26&z"), BT_OK);
    assert_int_equal(uri.segments_n, 4);
    assert_true(str_is(uri.segments[2], "a/b%2F"));
    assert_int_equal(uri.params_n, 3);
    assert_true(str_is(uri.params[1].value, "a b&"));
    assert_true(str_is(uri.params[2].name, "z") && uri.params[2].value.len == 0);
    assert_int_equal(parse("http://host:1/v1?a=b"), BT_OK);
    assert_true(str_is(uri.authority, "host:1"));
    assert_int_equal(parse("/"), BT_OK);
    assert_int_equal(uri.segments_n, 0);
}

static void an_address_that_could_be_read_in_two_ways_is_refused(void **unused)
{
    static const char *const bad[] = {
        "",        "*",          "v1",       "//v1",      "/v1//plans", "/v1/",        "/v1/.",
        "/v1/..",  "/v1/%2e%2E", "/v1/%",    "/v1/%4",    "/v1/%zz",    "/v1/%00",     "/v1/%ff",
        "/v1/a b", "/v1#x",      "/v1/\x7f", "/v1?a=%00", "/v1?a=%c3",  "/v1/\xc3\xa4"};

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse(bad[i]), BT_INVALID);
        assert_true(err.msg[0] != 0);
    }
}

static void an_address_has_at_most_so_many_bytes_parts_and_parameters(void **unused)
{
    char *text = calloc(1, URI_BYTES_MAX + 8);

    (void)unused;
    assert_non_null(text);
    memset(text, 'a', URI_BYTES_MAX);
    text[0] = '/';
    assert_int_equal(parse(text), BT_OK);
    text[URI_BYTES_MAX] = 'a';
    assert_int_equal(parse(text), BT_LIMIT);
    (void)snprintf(text, URI_BYTES_MAX, "/1/2/3/4/5/6/7/8");
    assert_int_equal(parse(text), BT_OK);
    (void)snprintf(text, URI_BYTES_MAX, "/1/2/3/4/5/6/7/8/9");
    assert_int_equal(parse(text), BT_NOT_FOUND);
    (void)snprintf(text, URI_BYTES_MAX, "/v1?");
    for (int i = 0; i < URI_PARAMS_MAX; i++) {
        (void)strncat(text, "a&", 3);
    }
    assert_int_equal(parse(text), BT_OK);
    (void)strncat(text, "a", 2);
    assert_int_equal(parse(text), BT_LIMIT);
    free(text);
}

static void each_route_is_found_by_its_own_address(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < routes_n; i++) {
        struct route_params params;
        uint32_t allowed;
        char target[128] = "";
        const char *at = routes[i].path;
        struct str part;
        bool param;
        while (route_part(&at, &part, &param)) {
            const size_t n = strlen(target);
            (void)snprintf(target + n, sizeof target - n, "/%.*s", (int)(param ? 1 : part.len),
                           param ? "x" : part.ptr);
            assert_true(!param || route_field(&routes[i], part) != NULL);
        }
        assert_int_equal(parse(target), BT_OK);
        assert_ptr_equal(route_find(&uri, routes[i].method, &params, &allowed), &routes[i]);
        assert_true((allowed >> routes[i].method & 1u) != 0);
    }
}

/* ---- fields ---- */

static char field[FIELD_NAME_MAX + 1];

static enum bt_code gather(enum http_method method, const char *target, const char *body,
                           const char *key, const char *etag, char **ret_json)
{
    struct route_params params;
    uint32_t allowed;
    struct buf out;
    struct buf json;
    size_t n;
    enum bt_code code;
    struct fields_from from = {.params = &params,
                               .uri = &uri,
                               .body = str_from(body),
                               .idempotency_key = str_from(key),
                               .if_match = str_from(etag)};

    assert_int_equal(parse(target), BT_OK);
    from.route = route_find(&uri, method, &params, &allowed);
    assert_non_null(from.route);
    buf_init(&out, LIMIT_STEP_BYTES);
    buf_init(&json, LIMIT_STEP_BYTES);
    code = fields_gather(&from, &out, field, &err);
    if (code == BT_OK) {
        assert_int_equal(doc_to_json(doc_from_buf(&out), false, &json, NULL), BT_OK);
        (void)buf_cstr(&json);
        *ret_json = (char *)buf_take(&json, &n);
    }
    buf_done(&out);
    buf_done(&json);
    return code;
}

static void gathers(enum http_method method, const char *target, const char *body, const char *key,
                    const char *etag, const char *expected)
{
    char *json = NULL;

    if (gather(method, target, body, key, etag, &json) != BT_OK) {
        fail_msg("%s: %s", target, err.msg);
    }
    assert_string_equal(json, expected);
    free(json);
}

static void refuses(enum http_method method, const char *target, const char *body, const char *name,
                    const char *text)
{
    char *json = NULL;

    if (gather(method, target, body, NULL, NULL, &json) == BT_OK) {
        fail_msg("%s: taken as %s", target, json);
    }
    assert_string_equal(field, name);
    if (strstr(err.msg, text) == NULL) {
        fail_msg("%s: %s", target, err.msg);
    }
}

static void refuses_headers(enum http_method method, const char *target, const char *body,
                            const char *key, const char *etag, const char *text)
{
    char *json = NULL;

    if (gather(method, target, body, key, etag, &json) == BT_OK) {
        fail_msg("%s: taken as %s", target, json);
    }
    assert_int_equal(err.code, BT_INVALID);
    if (strstr(err.msg, text) == NULL) {
        fail_msg("%s: %s", target, err.msg);
    }
}

static void headers_that_mean_nothing_here_are_refused(void **unused)
{
    static const char *const ETAGS[] = {"3", "\"3", "3\"", "\"\"", "\"", "W/\"3\""};

    (void)unused;
    refuses_headers(HTTP_GET, "/v1/plans", NULL, "k", NULL,
                    "the header Idempotency-Key has no meaning for plan.list: leave it out");
    refuses_headers(HTTP_GET, "/v1/plans", NULL, NULL, "\"3\"",
                    "the header If-Match has no meaning for plan.list: leave it out");
    for (size_t i = 0; i < sizeof ETAGS / sizeof ETAGS[0]; i++) {
        refuses_headers(HTTP_POST, "/v1/plans/P/modify",
                        "{\"kind\":\"skip_steps\",\"stepsToSkip\":[1]}", NULL, ETAGS[i],
                        "the header If-Match: expected one ETag of the plan");
    }
}

static void fields_come_from_path_query_body_and_headers(void **unused)
{
    (void)unused;
    gathers(HTTP_GET, "/v1/plans/P?steps=false&fromStep=10000", NULL, NULL, NULL,
            "{\"planId\":\"P\",\"steps\":false,\"fromStep\":10000}");
    gathers(HTTP_GET, "/v1/blobs/7?offset=0", NULL, NULL, NULL, "{\"blobId\":7,\"offset\":0}");
    gathers(HTTP_POST, "/v1/plans/P/modify", "{\"kind\":\"skip_steps\",\"stepsToSkip\":[1]}", NULL,
            "\"3\"",
            "{\"planId\":\"P\",\"expectRevision\":3,\"kind\":\"skip_steps\",\"stepsToSkip\":[1]}");
    gathers(HTTP_POST, "/v1/plans", "{\"goal\":\"g\"}", "k", NULL,
            "{\"clientKey\":\"k\",\"goal\":\"g\"}");
    gathers(HTTP_POST, "/v1/plans?goal=g&constraints=a&constraints=b&dryRun=true", NULL, NULL, NULL,
            "{\"goal\":\"g\",\"constraints\":[\"a\",\"b\"],\"dryRun\":true}");
}

static void what_is_wrong_with_a_field_is_named(void **unused)
{
    char *json = NULL;

    (void)unused;
    refuses(HTTP_GET, "/v1/plans?limt=1", NULL, "limt", "did you mean limit?");
    refuses(HTTP_GET, "/v1/plans?limit=101", NULL, "limit", "up to 100");
    refuses(HTTP_GET, "/v1/plans?limit=", NULL, "limit", "expected a number");
    refuses(HTTP_GET, "/v1/plans?limit=-1", NULL, "limit", "expected a number");
    refuses(HTTP_GET, "/v1/plans?limit=18446744073709551616", NULL, "limit", "expected a number");
    refuses(HTTP_GET, "/v1/plans?limit=1&limit=1", NULL, "limit", "give it once");
    refuses(HTTP_GET, "/v1/plans/P?steps=yes", NULL, "steps", "true or false");
    refuses(HTTP_GET, "/v1/plans/P?planId=Q", NULL, "planId", "in the path and in the query");
    refuses(HTTP_POST, "/v1/plans/P/cancel", "{\"planId\":\"Q\"}", "planId", "in the body");
    refuses(HTTP_POST, "/v1/plans/P/cancel", "{\"reason\":7}", "reason", "expected a string");
    refuses(HTTP_POST, "/v1/plans/P/cancel", "[]", "", "expected a JSON object");
    refuses(HTTP_POST, "/v1/plans/P/cancel", "{", "", "the body: ");
    refuses(HTTP_POST, "/v1/plans/P/signal", NULL, "name", "name");
    refuses(HTTP_POST, "/v1/plans?plan=x", NULL, "plan", "in the JSON body");
    assert_int_equal(gather(HTTP_POST, "/v1/plans/P/cancel", NULL, "k", NULL, &json), BT_INVALID);
    assert_int_equal(gather(HTTP_POST, "/v1/plans/P/cancel", NULL, NULL, "\"1\"", &json),
                     BT_INVALID);
    assert_int_equal(gather(HTTP_POST, "/v1/plans/P/modify", NULL, NULL, "W/\"1\"", &json),
                     BT_INVALID);
    assert_int_equal(gather(HTTP_POST, "/v1/plans", "{\"clientKey\":\"a\"}", "a", NULL, &json),
                     BT_INVALID);
}

/* ---- problems ---- */

static void each_code_has_its_status(void **unused)
{
    const struct {
        enum bt_code code;
        unsigned status;
    } table[] = {{BT_INVALID, 400},  {BT_UNAUTHORIZED, 401}, {BT_NOT_FOUND, 404},
                 {BT_CONFLICT, 409}, {BT_LIMIT, 413},        {BT_BUSY, 503},
                 {BT_TIMEOUT, 504},  {BT_UNAVAILABLE, 503},  {BT_GONE, 410},
                 {BT_PROTOCOL, 502}, {BT_INTERNAL, 500}};

    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct problem p = {.code = table[i].code};
        assert_int_equal(problem_status(&p), table[i].status);
        assert_string_not_equal(problem_title(table[i].status), "Error");
    }
    assert_int_equal(problem_retry_after_s(&(struct problem){.retry_after_ms = 1000}), 1);
    assert_int_equal(problem_retry_after_s(&(struct problem){.retry_after_ms = 1001}), 2);
}

static void the_document_has_each_route_and_is_json(void **unused)
{
    struct buf out;
    struct buf doc;
    const struct json_limits limits = {8 * 1024 * 1024, 32, 1000000};

    (void)unused;
    buf_init(&out, 8 * 1024 * 1024);
    buf_init(&doc, 64 * 1024 * 1024);
    assert_int_equal(openapi_write(&out, &err), BT_OK);
    assert_int_equal(json_to_doc(buf_str(&out), &limits, &doc, &err), BT_OK);
    for (uint32_t i = 0; i < routes_n; i++) {
        static const char *const names[] = {"get", "post", "put", "delete"};
        const struct doc path =
            doc_get(doc_get(doc_from_buf(&doc), STR_LIT("paths")), str_from(routes[i].path));
        assert_non_null(doc_get(path, str_from(names[routes[i].method])).ptr);
    }
    buf_done(&out);
    buf_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_decoded_once_and_keeps_a_slash_in_a_part),
        cmocka_unit_test(an_address_that_could_be_read_in_two_ways_is_refused),
        cmocka_unit_test(an_address_has_at_most_so_many_bytes_parts_and_parameters),
        cmocka_unit_test(each_route_is_found_by_its_own_address),
        cmocka_unit_test(headers_that_mean_nothing_here_are_refused),
        cmocka_unit_test(fields_come_from_path_query_body_and_headers),
        cmocka_unit_test(what_is_wrong_with_a_field_is_named),
        cmocka_unit_test(each_code_has_its_status),
        cmocka_unit_test(the_document_has_each_route_and_is_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
