/* The dashboard: its files, the log-in of its pages; and the address of the gateway. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/gateway/address.h"
#include "supervisor/gateway/assets.h"
#include "supervisor/gateway/options.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

static struct options options;
static const struct login login = {.key = {1, 2, 3}};
static bool refuses; /* the bearer proves nobody */

bool http_take_bearer(struct http *h, const char *field)
{
    assert_string_equal(field, "bearer");
    if (refuses) {
        http_refuse(h, BT_UNAUTHORIZED, 401, field, "nobody");
    }
    h->caller = (struct caller *)&rig;
    return !refuses;
}

static void done(void)
{
    buf_done(&rig.h.bearer);
    buf_done(&rig.h.cookie);
    rig_end();
}

static void request(const char *method, const char *target, const char *body)
{
    struct bt_error err;

    done();
    rig.s.parts.login = &login;
    rig_begin(body);
    rig.s.opt = &options;
    rig.s.port = 7180;
    buf_init(&rig.h.bearer, 1024);
    buf_init(&rig.h.cookie, 2048);
    assert_true(http_method_parse(method, &rig.h.method));
    assert_int_equal(uri_parse(str_from(target), &rig.h.uri, &err), BT_OK);
}

static int begin(void **state)
{
    (void)state;
    memset(&options, 0, sizeof options);
    refuses = false;
    rig_begin("");
    return 0;
}

static int end(void **state)
{
    (void)state;
    done();
    memset(&rig.h.bearer, 0, sizeof rig.h.bearer);
    memset(&rig.h.cookie, 0, sizeof rig.h.cookie);
    return 0;
}

/* ---- files ---- */

static void files_have_addresses_of_their_build_and_the_page_is_at_the_root(void **state)
{
    char target[256];

    (void)state;
    request("GET", "/", "");
    page_serve_file(&rig.h);
    assert_int_equal(rig.h.status, 200);
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_non_null(strstr(rig.h.type, "text/html"));
    assert_non_null(strstr(rig_out(), "<!doctype html"));
    assert_non_null(strstr(rig.h.policy, "default-src 'none'; script-src 'self'"));
    assert_non_null(strstr(rig.h.policy, "frame-ancestors 'none'"));
    assert_non_null(strstr(rig.h.policy, "trusted-types 'none'"));
    assert_false(rig.h.keep); /* another build has another page here */
    for (size_t i = 0; i < assets_n; i++) {
        (void)snprintf(target, sizeof target, "/ui/%s/%s", assets_version, assets[i].name);
        request("GET", target, "");
        page_serve_file(&rig.h);
        assert_int_equal(rig.h.status, 200);
        assert_string_equal(rig.h.type, assets[i].type);
        assert_int_equal(rig.h.out.len, assets[i].len);
        assert_memory_equal(rig.h.out.at, assets[i].bytes, assets[i].len);
        assert_true(rig.h.keep);
    }
    (void)snprintf(target, sizeof target, "/ui/%s/none.js", assets_version);
    request("GET", target, "");
    page_serve_file(&rig.h);
    assert_int_equal(rig.h.status, 404);
    request("GET", "/ui/another/app.js", "");
    page_serve_file(&rig.h);
    assert_int_equal(rig.h.status, 404);
}

/* ---- the log-in ---- */

static void log_in(const char *body)
{
    request("POST", "/ui/session", body);
    rig.h.heads.origin = "http://h";
    page_serve_session(&rig.h);
}

static void a_log_in_is_of_a_page_and_has_a_bearer(void **state)
{
    static const char *const wrong[] = {
        "", "{", "[]", "{}", "{\"bearer\":7}", "{\"bearer\":\"\"}", "{\"bearer\":\"  \"}"};
    char body[LOGIN_BEARER_MAX + 64];

    (void)state;
    request("POST", "/ui/session", "{\"bearer\":\"t\"}");
    page_serve_session(&rig.h);
    assert_int_equal(rig.h.status, 403);
    assert_string_equal(rig.field, "Origin");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        log_in(wrong[i]);
        assert_int_equal(rig.h.status, 400);
        assert_string_equal(rig.field, "bearer");
        assert_int_equal(rig.asked, 0);
    }
    for (int n = LOGIN_BEARER_MAX; n <= LOGIN_BEARER_MAX + 1; n++) {
        (void)snprintf(body, sizeof body, "{\"bearer\":\"%0*d\"}", n, 7);
        log_in(body);
        assert_int_equal(rig.h.state, n == LOGIN_BEARER_MAX ? HTTP_WAITS : HTTP_READY);
    }
    refuses = true;
    log_in("{\"bearer\":\"t\"}");
    assert_int_equal(rig.h.status, 401);
    assert_int_equal(rig.asked, 0);
}

static void who_has_logged_in_has_two_halves_that_open_what_was_given(void **state)
{
    char cookie[LOGIN_COOKIE_MAX + 64];
    char page[64];
    const char *at;

    (void)state;
    for (int tls = 0; tls < 2; tls++) {
        const char *name = tls ? "__Host-baton-7180=" : "baton-7180=";
        options.tls = tls ? "pem" : NULL;
        log_in("{\"bearer\":\" ann:00ff \"}");
        assert_int_equal(rig.spec.type, MSG_supervisor_info);
        assert_int_equal(rig.spec.answer, MSG_supervisor_info_ok);
        assert_true(rig.spec.reads);
        assert_string_equal(rig.fields, "{}");
        rig_answer("{'version':'v'}");
        assert_int_equal(rig.h.status, 200);
        assert_int_equal(rig.woken, 1);
        assert_null(rig.h.call);
        assert_string_equal(rig.h.type, "application/json");
        at = strstr(rig_out(), "{\"page\":\"");
        assert_ptr_equal(at, rig_out());
        (void)snprintf(page, sizeof page, "%.*s", 2 * LOGIN_HALF_BYTES, at + 9);
        assert_non_null(strstr(rig_out(), "\",\"until\":"));
        assert_non_null(strstr(rig_out(), ",\"info\":{\"version\":\"v\"}}"));
        (void)snprintf(cookie, sizeof cookie, "%s", buf_cstr(&rig.h.cookie));
        assert_int_equal(strncmp(cookie, name, strlen(name)), 0);
        assert_string_equal(strchr(cookie, ';'), tls ? "; Path=/; Max-Age=43200; HttpOnly; "
                                                       "SameSite=Strict; Secure"
                                                     : "; Path=/; Max-Age=43200; HttpOnly; "
                                                       "SameSite=Strict");
        *strchr(cookie, ';') = 0;
        request("GET", "/", "");
        rig.h.heads.cookie = cookie;
        assert_false(page_bearer(&rig.h)); /* a cookie alone opens nothing */
        rig.h.heads.page = "00000000000000000000000000000000";
        assert_false(page_bearer(&rig.h));
        rig.h.heads.page = page;
        assert_true(page_bearer(&rig.h));
        assert_string_equal(buf_cstr(&rig.h.bearer), "ann:00ff");
        rig.h.heads.cookie = NULL;
        assert_false(page_bearer(&rig.h));
    }
}

static void a_log_in_that_the_daemon_refuses_is_none(void **state)
{
    (void)state;
    log_in("{\"bearer\":\"t\"}");
    rig_refuse(BT_UNAUTHORIZED, "no");
    assert_int_equal(rig.h.status, 401);
    assert_int_equal(rig.h.cookie.len, 0);
    assert_int_equal(rig.woken, 1);
    request("POST", "/ui/session", "{\"bearer\":\"t\"}");
    rig.h.heads.origin = "http://h";
    rig.busy = BT_BUSY;
    page_serve_session(&rig.h);
    assert_int_equal(rig.h.status, 503);
}

static void who_logs_out_has_no_cookie(void **state)
{
    (void)state;
    request("DELETE", "/ui/session", "");
    page_serve_session(&rig.h);
    assert_int_equal(rig.h.status, 204);
    assert_null(rig.h.type);
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_string_equal(buf_cstr(&rig.h.cookie),
                        "baton-7180=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
}

/* ---- the address ---- */

static const char *url(const char *host, const char *tls, const char *own)
{
    static char text[300];

    memset(&options, 0, sizeof options);
    (void)snprintf(options.host, sizeof options.host, "%s", host);
    options.tls = tls;
    options.url = own;
    address_url(&options, 7180, text, sizeof text);
    return text;
}

static void an_address_is_what_people_type(void **state)
{
    (void)state;
    assert_string_equal(url("127.0.0.1", NULL, NULL), "http://127.0.0.1:7180");
    assert_string_equal(url("h", "pem", NULL), "https://h:7180");
    assert_string_equal(url("::1", NULL, NULL), "http://[::1]:7180");
    assert_string_equal(url("h", NULL, "https://ops.example.com/"), "https://ops.example.com");
    assert_string_equal(url("h", NULL, "https://ops.example.com"), "https://ops.example.com");
}

static void the_file_has_the_address_and_keeps_the_port(void **state)
{
    char dir[] = "/tmp/test_address-XXXXXX";
    char path[64];
    char text[512];
    char expected[512];
    struct bt_error err;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/gateway.json", dir);
    assert_int_equal(address_last_port(dir), 0); /* there is none */
    (void)url("::1", "pem", NULL);
    assert_int_equal(address_write(dir, &options, 65535, &err), BT_OK);
    assert_int_equal(address_last_port(dir), 65535);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    (void)snprintf(
        expected, sizeof expected,
        "{\"url\":\"https://[::1]:65535\",\"port\":65535,\"pid\":%ld,\"version\":\"" BATON_VERSION
        "\"}\n",
        (long)getpid());
    assert_string_equal(text, expected);
    address_remove(dir);
    assert_int_equal(address_last_port(dir), 65535);
    f = fopen(path, "r");
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    assert_string_equal(text, "{\"port\":65535}\n");
    f = fopen(path, "w"); /* another one runs here now */
    (void)fputs("{\"port\":65536,\"pid\":1}", f);
    (void)fclose(f);
    address_remove(dir);
    assert_int_equal(address_last_port(dir), 0); /* that is no port */
    f = fopen(path, "r");
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    assert_string_equal(text, "{\"port\":65536,\"pid\":1}");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(files_have_addresses_of_their_build_and_the_page_is_at_the_root),
        TEST(a_log_in_is_of_a_page_and_has_a_bearer),
        TEST(who_has_logged_in_has_two_halves_that_open_what_was_given),
        TEST(a_log_in_that_the_daemon_refuses_is_none),
        TEST(who_logs_out_has_no_cookie),
        TEST(an_address_is_what_people_type),
        TEST(the_file_has_the_address_and_keeps_the_port),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
