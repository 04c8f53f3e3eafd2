/* Where a call may go, what an answer's headers say, and events that come in pieces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agents/web/settings.h"
#include "agents/web/sse.h"
#include "protocol/base/clock.h"
#include "tests/support/cmocka.h"
#include "tests/support/heap.h"

static const char *const HOSTS[] = {"api.example:443", "plain.example", "own.example:8443",
                                    "[::1]:80", NULL};

static void goes(const struct web_policy *policy, const char *url, const char *refusal)
{
    struct bt_error err = {.code = BT_OK, .msg = ""};
    const enum bt_code code = web_check_url(policy, url, &err);

    if ((code == BT_OK) != (refusal == NULL) ||
        (refusal != NULL && (code != BT_INVALID || strstr(err.msg, refusal) == NULL))) {
        fail_msg("%s: %s \"%s\", not \"%s\"", url, bt_code_name(code), err.msg,
                 refusal != NULL ? refusal : "ok");
    }
}

static void only_the_hosts_that_are_named_are_called(void **state)
{
    static const char OTHER[] = "is not in baseUrl or allowHosts";
    const struct web_policy policy = {.hosts = HOSTS};
    const struct web_policy none = {.hosts = NULL};

    (void)state;
    goes(&policy, "https://api.example/x?y", NULL);
    goes(&policy, "https://API.example:443", NULL);
    goes(&policy, "https://api.example:8443/", OTHER); /* its port is part of the name */
    goes(&policy, "https://plain.example:1/", NULL);   /* any port */
    goes(&policy, "https://own.example:8443", NULL);
    goes(&policy, "https://own.example", OTHER);
    goes(&policy, "https://api.example.evil.example/", OTHER);
    goes(&policy, "https://xapi.example/", OTHER);
    goes(&policy, "https://evil.example/?api.example", OTHER);
    goes(&none, "https://api.example/", OTHER);
}

static void what_is_no_plain_address_is_refused(void **state)
{
    static char longest[WEB_URL_MAX + 1];
    const struct web_policy policy = {.hosts = HOSTS};

    (void)state;
    goes(&policy, "https://ann@api.example/", "no user and no password");
    goes(&policy, "https://ann:secret@api.example/", "no user and no password");
    goes(&policy, "ftp://api.example/", "expected https://host/path");
    goes(&policy, "file:///etc/passwd", "expected https://host/path");
    goes(&policy, "/x", "expected https://host/path");
    goes(&policy, "", "expected https://host/path");
    memset(longest, 'x', sizeof longest - 1);
    memcpy(longest, "https://api.example/", 20);
    longest[WEB_URL_MAX] = 0;
    goes(&policy, longest, "more than 8191 bytes");
    longest[WEB_URL_MAX - 1] = 0;
    goes(&policy, longest, NULL);
}

static void plain_http_goes_to_this_machine_alone(void **state)
{
    char long_host[1024];
    struct web_policy policy = {.hosts = HOSTS};
    static const char *const local[] = {"127.0.0.1:80", "localhost:80", "plain.example", NULL};

    (void)state;
    goes(&policy, "http://plain.example/", "http only to this machine");
    goes(&policy, "http://[::1]/", NULL);
    policy.hosts = local;
    goes(&policy, "http://127.0.0.1/", NULL);
    goes(&policy, "http://localhost/", NULL);
    goes(&policy, "http://plain.example/", "http only to this machine");
    (void)snprintf(long_host, sizeof long_host, "http://127.%0900d/",
                   1); /* no host of this machine */
    goes(&policy, long_host, "");
    policy.allow_http = true;
    goes(&policy, "http://plain.example/", NULL);
}

static void resolves(const char *base, const char *reference, const char *want)
{
    static char got[WEB_URL_MAX];
    struct bt_error err;

    if (want == NULL) {
        assert_int_equal(web_resolve(base, reference, got, &err), BT_INVALID);
    } else {
        assert_int_equal(web_resolve(base, reference, got, &err), BT_OK);
        assert_string_equal(got, want);
    }
}

static void references_are_resolved_against_a_base(void **state)
{
    static char longest[WEB_URL_MAX + 64];

    (void)state;
    resolves("https://a.example/x/y?z", "w", "https://a.example/x/w");
    resolves("https://a.example/x/y", "../w", "https://a.example/w");
    resolves("https://a.example/x", "https://b.example/", "https://b.example/");
    resolves("https://a.example/x", "//b.example/", "https://b.example/");
    resolves("no address", "w", NULL);
    resolves("https://a.example/", "https://exa mple/", NULL);
    memset(longest, 'x', WEB_URL_MAX - 18);
    resolves("https://a.example/", longest, NULL); /* one more than there is room for */
    longest[WEB_URL_MAX - 19] = 0;
    assert_int_equal(web_resolve("https://a.example/", longest, (char[WEB_URL_MAX]){""}, NULL),
                     BT_OK);
}

static void an_origin_is_scheme_host_and_port(void **state)
{
    (void)state;
    assert_true(web_same_origin("https://a.example/x", "https://A.example:443/y"));
    assert_false(web_same_origin("https://a.example/", "https://a.example:444/"));
    assert_false(web_same_origin("https://a.example/", "http://a.example:443/"));
    assert_false(web_same_origin("https://a.example/", "https://b.example/"));
    assert_false(web_same_origin("https://a.example/", "no address"));
    assert_false(web_same_origin("no address", "no address"));
}

/* ---- settings ---- */

struct given {
    struct arena arena;
    struct buf doc;
};

static struct doc given(struct given *g, const char *json)
{
    char text[1024];
    struct bt_error err;

    (void)snprintf(text, sizeof text, "%s", json);
    for (char *at = text; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    *g = (struct given){.arena = {.max = 1024 * 1024}};
    buf_init(&g->doc, 65536);
    assert_int_equal(json_to_doc(str_from(text), NULL, &g->doc, &err), BT_OK);
    return doc_from_buf(&g->doc);
}

static void done(struct given *g)
{
    buf_done(&g->doc);
    arena_done(&g->arena);
}

static void a_host_without_a_port_means_that_of_its_scheme(void **state)
{
    static const char *const own[] = {"https://Api.Example/v1", "http://127.0.0.1/x",
                                      "https://b.example:8443", "https://[::1]/", NULL};
    static const char *const want[] = {"c.example:443", "d.example:81",   "api.example:443",
                                       "127.0.0.1:80",  "b.example:8443", "[::1]:443"};
    struct web_policy policy = {.hosts = NULL};
    struct bt_error err;
    struct given g;
    size_t n = 0;

    (void)state;
    assert_int_equal(web_read_policy(&g.arena,
                                     given(&g, "{'allowHosts':['c.example','d.example:81'],"
                                               "'allowPrivate':['10.0.0.0/8','::1']}"),
                                     own, &policy, &err),
                     BT_OK);
    for (; policy.hosts[n] != NULL; n++) {
        assert_true(n < sizeof want / sizeof want[0]);
        assert_string_equal(policy.hosts[n], want[n]);
    }
    assert_int_equal(n, sizeof want / sizeof want[0]);
    assert_string_equal(policy.addresses[1], "::1");
    assert_null(policy.addresses[2]);
    done(&g);
}

static void wrong_settings_are_named(void **state)
{
    static const char *const own[] = {"https://a.example", NULL};
    static const char *const cases[][2] = {
        {"{'allowHosts':['a','']}", "allowHosts[1]: expected a host"},
        {"{'allowHosts':['a/b']}", "allowHosts[0]: expected a host"},
        {"{'allowHosts':7}", "allowHosts"},
        {"{'allowPrivate':['127.0.0.1','x']}", "allowPrivate[1]"},
        {"{'allowPrivate':7}", "allowPrivate"},
        {"{'caFile':'/no/such'}", "caFile: '/no/such' cannot be read"},
        {"{'caFile':7}", "caFile"},
    };
    struct web_policy policy;
    struct bt_error err;
    struct given g;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        policy = (struct web_policy){.hosts = NULL};
        assert_int_equal(web_read_policy(&g.arena, given(&g, cases[i][0]), own, &policy, &err),
                         BT_INVALID);
        if (strstr(err.msg, cases[i][1]) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", err.msg, cases[i][1]);
        }
        done(&g);
    }
}

static void a_secret_does_not_stand_in_settings(void **state)
{
    static const struct {
        const char *json;
        enum bt_code code;
        const char *says;
    } cases[] = {
        {"{}", BT_INVALID, "key: is missing"},
        {"{'key':'sk-secret'}", BT_INVALID, "key: a secret does not stand in settings"},
        {"{'key':{}}", BT_INVALID, "key: expected one of env, file, credential"},
        {"{'key':{'env':'A','file':'/b'}}", BT_INVALID, "key: expected one of"},
        {"{'key':{'value':'x'}}", BT_INVALID, "key: "},
        {"{'key':{'env':'BATON_NO_SUCH_KEY'}}", BT_NOT_FOUND, "BATON_NO_SUCH_KEY"},
        {"{'key':{'env':'BATON_A_KEY'}}", BT_OK, ""},
    };
    struct secrets secrets = {.n = 0};

    (void)state;
    assert_int_equal(setenv("BATON_A_KEY", "sk-0123456789", 1), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *key = NULL;
        struct bt_error err = {.msg = ""};
        struct given g;
        const enum bt_code code =
            web_read_secret(&secrets, &g.arena, given(&g, cases[i].json), "key", &key, &err);
        if (code != cases[i].code || strstr(err.msg, cases[i].says) == NULL) {
            fail_msg("%s: %s \"%s\"", cases[i].json, bt_code_name(code), err.msg);
        }
        assert_null(strstr(err.msg, "sk-"));
        assert_true((key != NULL) == (code == BT_OK));
        done(&g);
    }
    secrets_done(&secrets);
}

static void a_secret_comes_from_a_file_or_a_credential_too(void **state)
{
    char dir[] = "/tmp/baton-web-XXXXXX";
    char path[64];
    char json[128];
    struct secrets secrets = {.n = 0};
    struct bt_error err;
    struct given g;
    const char *key = NULL;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/key", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs("sk-in-a-file", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
    (void)snprintf(json, sizeof json, "{'key':{'file':'%s'}}", path);
    assert_int_equal(web_read_secret(&secrets, &g.arena, given(&g, json), "key", &key, &err),
                     BT_OK);
    assert_string_equal(key, "sk-in-a-file");
    done(&g);
    key = NULL;
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", dir, 1), 0);
    assert_int_equal(web_read_secret(&secrets, &g.arena, given(&g, "{'key':{'credential':'key'}}"),
                                     "key", &key, &err),
                     BT_OK);
    assert_string_equal(key, "sk-in-a-file");
    done(&g);
    assert_int_equal(
        web_read_secret(&secrets, &g.arena, given(&g, "{'key':{'env':7}}"), "key", &key, &err),
        BT_INVALID);
    assert_non_null(strstr(err.msg, "key: env"));
    done(&g);
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    secrets_done(&secrets);
}

static void lists_and_hosts_have_their_most(void **state)
{
    static const char *const own[] = {"https://a.example", NULL};
    static char url[600];
    static char json[8192];
    const char *const long_own[] = {url, NULL};
    struct web_policy policy;
    struct bt_error err;
    struct buf doc;
    struct given g;

    (void)state;
    for (int n = 64; n <= 65; n++) {
        for (int which = 0; which < 2; which++) {
            (void)snprintf(json, sizeof json, "{\"%s\":[",
                           which == 0 ? "allowHosts" : "allowPrivate");
            for (int i = 0; i < n; i++) {
                (void)snprintf(json + strlen(json), 32, "%s\"10.0.0.%d\"", i > 0 ? "," : "", i);
            }
            (void)snprintf(json + strlen(json), 8, "]}");
            buf_init(&doc, sizeof json * 2);
            assert_int_equal(json_to_doc(str_from(json), NULL, &doc, &err), BT_OK);
            g.arena = (struct arena){.max = 1024 * 1024};
            policy = (struct web_policy){.hosts = NULL};
            assert_int_equal(web_read_policy(&g.arena, doc_from_buf(&doc), own, &policy, &err),
                             n == 64 ? BT_OK : BT_INVALID);
            if (n == 64 && which == 0) {
                assert_string_equal(policy.hosts[63], "10.0.0.63:443");
                assert_string_equal(policy.hosts[64], "a.example:443");
                assert_null(policy.hosts[65]);
            }
            arena_done(&g.arena);
            buf_done(&doc);
        }
    }
    (void)snprintf(url, sizeof url, "https://%0511d/x", 0); /* a host of 511 bytes */
    policy = (struct web_policy){.hosts = NULL};
    assert_int_equal(web_read_policy(&g.arena, given(&g, "{}"), long_own, &policy, &err), BT_OK);
    done(&g);
    (void)snprintf(url, sizeof url, "https://%0512d/x", 0);
    assert_int_equal(web_read_policy(&g.arena, given(&g, "{}"), long_own, &policy, &err),
                     BT_INVALID);
    assert_non_null(strstr(err.msg, "its host is too long"));
    done(&g);
}

static void a_file_of_authorities_is_taken_when_it_can_be_read(void **state)
{
    static const char *const own[] = {"https://a.example", NULL};
    struct web_policy policy = {.hosts = NULL};
    struct bt_error err;
    struct given g;

    (void)state;
    assert_int_equal(
        web_read_policy(&g.arena, given(&g, "{'caFile':'/dev/null'}"), own, &policy, &err), BT_OK);
    assert_string_equal(policy.ca_file, "/dev/null");
    assert_null(policy.addresses);
    done(&g);
}

/* ---- answers ---- */

static void a_header_is_found_by_its_whole_name(void **state)
{
    struct web_response r = {.status = 200};
    char got[8];

    (void)state;
    buf_init(&r.headers, 1024);
    buf_add_cstr(&r.headers, "x-a: 1\na: 22\nlong: 123456789\na: 3\nretry-after: 7\n");
    web_response_header(&r, "a", got, sizeof got);
    assert_string_equal(got, "22");
    web_response_header(&r, "x", got, sizeof got);
    assert_string_equal(got, "");
    web_response_header(&r, "long", got, sizeof got);
    assert_string_equal(got, "1234567");
    assert_int_equal(web_response_retry_after_ms(&r), 7000);
    web_response_done(&r);
}

static void a_date_to_try_again_counts_from_now(void **state)
{
    static const struct {
        int64_t from_now, least, most;
    } cases[] = {{100, 30000, 100000}, {-100, 0, 0}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct web_response r = {.status = 503};
        const time_t at = (time_t)(clock_wall_ms() / 1000) + cases[i].from_now;
        struct tm tm;
        char text[64];
        uint64_t ms;
        assert_non_null(gmtime_r(&at, &tm));
        assert_true(strftime(text, sizeof text, "retry-after: %a, %d %b %Y %H:%M:%S GMT\n", &tm) >
                    0);
        buf_init(&r.headers, 1024);
        buf_add_cstr(&r.headers, text);
        ms = web_response_retry_after_ms(&r);
        assert_true(ms >= (uint64_t)cases[i].least && ms <= (uint64_t)cases[i].most);
        web_response_done(&r);
    }
}

static void seconds_to_try_again_are_bounded(void **state)
{
    static const struct {
        const char *value;
        uint64_t ms;
    } cases[] = {{"0", 0},
                 {"1", 1000},
                 {"999999", 999999000},
                 {"12x", 12000},
                 {"1000000", 1000000000},
                 {"10000009", 1000000000},
                 {"9999999", 9999999000},
                 {"99999999999999999999999", 9999999000},
                 {"", 0},
                 {"soon", 0},
                 {"-5", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct web_response r = {.status = 503};
        buf_init(&r.headers, 1024);
        buf_printf(&r.headers, "retry-after: %s\n", cases[i].value);
        if (web_response_retry_after_ms(&r) != cases[i].ms) {
            fail_msg("%s", cases[i].value);
        }
        web_response_done(&r);
    }
}

static void a_header_may_end_with_the_text_or_be_empty(void **state)
{
    struct web_response r = {.status = 200};
    char got[8];

    (void)state;
    buf_init(&r.headers, 1024);
    buf_add_cstr(&r.headers, "e: \nx:1\nlast: z");
    web_response_header(&r, "e", got, sizeof got);
    assert_string_equal(got, "");
    web_response_header(&r, "x", got, sizeof got);
    assert_string_equal(got, "1");
    web_response_header(&r, "last", got, sizeof got);
    assert_string_equal(got, "z");
    web_response_done(&r);
}

static void look_at_addresses(void *self)
{
    static const struct web_policy policy = {.hosts = HOSTS};
    char whole[WEB_URL_MAX];
    struct bt_error err;

    (void)self;
    assert_int_equal(web_check_url(&policy, "https://api.example/", &err), BT_OK);
    assert_int_equal(web_check_url(&policy, "https://ann@api.example/", &err), BT_INVALID);
    assert_true(web_same_origin("https://a.example/x", "https://a.example/y"));
    assert_int_equal(web_resolve("https://a.example/", "x", whole, &err), BT_OK);
}

static void addresses_are_given_back(void **state)
{
    (void)state;
    heap_is_given_back(look_at_addresses, NULL);
}

/* ---- events ---- */

static char seen[256];
static bool goes_on = true;

static bool see(void *self, struct str data)
{
    (void)self;
    (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "[%.*s]", STR_ARG(data));
    return goes_on;
}

static void events_come_in_pieces_of_any_size(void **state)
{
    static const char stream[] = ": a comment\n\ndata: one\n\ndata:two\r\ndata: lines\r\n\r\n"
                                 "event: x\rdata:  three\rid: 7\r\rdata:\n\nretry: 9\n\n"
                                 "data:\ndata: 4\n\ndata: not ended\n";

    (void)state;
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        struct sse s;
        sse_init(&s, 64);
        seen[0] = 0;
        for (size_t at = 0; at < sizeof stream - 1; at += piece) {
            const size_t left = sizeof stream - 1 - at;
            assert_true(
                sse_take(&s, (struct str){stream + at, left < piece ? left : piece}, see, NULL));
        }
        assert_string_equal(seen, "[one][two\nlines][ three][\n4]");
        sse_done(&s);
    }
}

static void an_event_over_the_limit_and_one_that_ends_the_reading_stop_it(void **state)
{
    struct sse s;

    (void)state;
    seen[0] = 0;
    sse_init(&s, 16);
    assert_true(sse_take(&s, STR_LIT("data: 1234567890\n\n"), see, NULL)); /* a line of 16 */
    assert_false(sse_take(&s, STR_LIT("data: 12345678901"), see, NULL));
    sse_done(&s);
    sse_init(&s, 16);
    assert_true(sse_take(&s, STR_LIT("data:12345678\ndata:1234567\n"), see, NULL));
    assert_true(sse_take(&s, STR_LIT("\ndata:12345678\ndata:1234567\n"), see, NULL));
    assert_false(sse_take(&s, STR_LIT("data:\n"), see, NULL)); /* a byte too many */
    sse_done(&s);
    sse_init(&s, 16);
    goes_on = false;
    assert_false(sse_take(&s, STR_LIT("data:1\n\ndata:2\n\n"), see, NULL));
    goes_on = true;
    sse_done(&s);
    assert_string_equal(seen, "[1234567890][12345678\n1234567][1]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_hosts_that_are_named_are_called),
        cmocka_unit_test(what_is_no_plain_address_is_refused),
        cmocka_unit_test(plain_http_goes_to_this_machine_alone),
        cmocka_unit_test(references_are_resolved_against_a_base),
        cmocka_unit_test(an_origin_is_scheme_host_and_port),
        cmocka_unit_test(a_host_without_a_port_means_that_of_its_scheme),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(a_secret_does_not_stand_in_settings),
        cmocka_unit_test(a_secret_comes_from_a_file_or_a_credential_too),
        cmocka_unit_test(lists_and_hosts_have_their_most),
        cmocka_unit_test(a_file_of_authorities_is_taken_when_it_can_be_read),
        cmocka_unit_test(seconds_to_try_again_are_bounded),
        cmocka_unit_test(a_header_may_end_with_the_text_or_be_empty),
        cmocka_unit_test(addresses_are_given_back),
        cmocka_unit_test(a_header_is_found_by_its_whole_name),
        cmocka_unit_test(a_date_to_try_again_counts_from_now),
        cmocka_unit_test(events_come_in_pieces_of_any_size),
        cmocka_unit_test(an_event_over_the_limit_and_one_that_ends_the_reading_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
