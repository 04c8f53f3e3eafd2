/* The rules for base URLs, for what a name leads to, and for texts in a URL. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "agents/web/url.h"
#include "tests/support/cmocka.h"

static void checks(const char *url, bool any_http, const char *refusal)
{
    struct bt_error err = {.msg = ""};
    const enum bt_code code = url_check(str_from(url), any_http, &err);

    if (refusal == NULL ? code != BT_OK : code != BT_INVALID || strstr(err.msg, refusal) == NULL) {
        fail_msg("%s: %s, not %s", url, err.msg, refusal == NULL ? "ok" : refusal);
    }
}

static void a_base_url_is_https_or_of_this_machine(void **state)
{
    static const char SCHEME[] = "expected https:// or http://";
    static const char LOCAL[] = "http only to this machine";

    (void)state;
    checks("https://a.example", false, NULL);
    checks("HTTPS://a.example:8443/v1", false, NULL);
    checks("http://localhost/v1", false, NULL);
    checks("http://LOCALHOST:1", false, NULL);
    checks("http://127.0.0.1:8080/", false, NULL);
    checks("http://127.255.255.255", false, NULL);
    checks("http://[::1]:80/", false, NULL);
    checks("http://a.example", false, LOCAL);
    checks("http://128.0.0.1", false, LOCAL);
    checks("http://126.0.0.1", false, LOCAL);
    checks("http://[::2]/", false, LOCAL);
    checks("http://localhost.example", false, LOCAL);
    checks("http://127.0.0.1.example", false, LOCAL);
    checks("http://a.example", true, NULL);
    checks("http://1234567890123456789012345678901234567890123456789012345678901234", false, LOCAL);
    checks("ftp://a.example", true, SCHEME);
    checks("a.example", true, SCHEME);
    checks("", true, SCHEME);
    checks("http://", true, SCHEME);
    checks("https://", true, SCHEME);
}

static void a_base_url_has_a_host_and_nothing_beside_port_and_path(void **state)
{
    static const char *const bad[] = {"https://a b",      "https://a\x01", "https://a\x7f/",
                                      "https://\xc3\xa4", "https://u@a",   "https://a?q",
                                      "https://a#f",      "https://a\\b",  "https://a/ "};
    static const char *const no_host[] = {"https:///x", "https://:1/", "https://[]/", "http:///",
                                          "https://["};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        checks(bad[i], true, "without user, query, fragment");
    }
    for (size_t i = 0; i < sizeof no_host / sizeof no_host[0]; i++) {
        checks(no_host[i], true, "expected a host");
    }
    checks("https://a!$&'()*+,;=~", false, NULL);
}

static void the_authority_is_host_and_port(void **state)
{
    static const char *const cases[][2] = {{"https://a.example:1/x", "a.example:1"},
                                           {"http://a.example", "a.example"},
                                           {"HTTP://[::1]:5/", "[::1]:5"},
                                           {"https://b/c/d", "b"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(str_is(url_authority(str_from(cases[i][0])), cases[i][1]));
    }
    assert_true(url_is_https(STR_LIT("https://a")));
    assert_false(url_is_https(STR_LIT("http://https://")));
    assert_false(url_is_https(STR_LIT("https:/")));
}

static bool allowed(const char *text, bool loopback_only)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        return url_address_allowed((const struct sockaddr *)&four, loopback_only);
    }
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return url_address_allowed((const struct sockaddr *)&six, loopback_only);
}

static void a_name_does_not_lead_to_what_is_no_servers_address(void **state)
{
    static const char *const local[] = {"127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1"};
    static const char *const other[] = {
        "8.8.8.8",   "1.0.0.0",         "169.253.255.255", "169.255.0.0", "223.255.255.255",
        "240.0.0.0", "255.255.255.254", "10.0.0.1",        "fec0::1",     "fd00::1",
        "::2",       "::ffff:8.8.8.8",  "126.0.0.1",       "128.0.0.1"};
    static const char *const never[] = {"0.0.0.0",
                                        "0.255.255.255",
                                        "169.254.0.0",
                                        "169.254.169.254",
                                        "224.0.0.1",
                                        "239.255.255.255",
                                        "255.255.255.255",
                                        "fe80::1",
                                        "febf::1",
                                        "ff02::1",
                                        "::",
                                        "::ffff:169.254.169.254",
                                        "::ffff:0.0.0.0"};
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    const struct sockaddr a_socket = {.sa_family = AF_UNIX};

    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        assert_true(allowed(local[i], true) && allowed(local[i], false));
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        if (allowed(other[i], true) || !allowed(other[i], false)) {
            fail_msg("%s", other[i]);
        }
    }
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        if (allowed(never[i], true) || allowed(never[i], false)) {
            fail_msg("%s", never[i]);
        }
    }
    assert_false(url_address_allowed(&none, false));
    assert_true(url_address_allowed(&a_socket, true));
    assert_true(url_address_allowed(&a_socket, false));
}

static void all_but_unreserved_characters_are_escaped(void **state)
{
    struct buf out;
    char all[256];

    (void)state;
    buf_init(&out, 4096);
    for (int i = 0; i < 256; i++) {
        all[i] = (char)i;
    }
    url_escape(&out, (struct str){all, sizeof all});
    assert_string_equal(
        buf_cstr(&out),
        "%00%01%02%03%04%05%06%07%08%09%0A%0B%0C%0D%0E%0F%10%11%12%13%14%15%16%17%18%19%1A%1B%1C%1D"
        "%1E%1F%20%21%22%23%24%25%26%27%28%29%2A%2B%2C-.%2F0123456789%3A%3B%3C%3D%3E%3F%40"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ%5B%5C%5D%5E_%60abcdefghijklmnopqrstuvwxyz%7B%7C%7D~%7F"
        "%80%81%82%83%84%85%86%87%88%89%8A%8B%8C%8D%8E%8F%90%91%92%93%94%95%96%97%98%99%9A%9B%9C%9D"
        "%9E%9F%A0%A1%A2%A3%A4%A5%A6%A7%A8%A9%AA%AB%AC%AD%AE%AF%B0%B1%B2%B3%B4%B5%B6%B7%B8%B9%BA%BB"
        "%BC%BD%BE%BF%C0%C1%C2%C3%C4%C5%C6%C7%C8%C9%CA%CB%CC%CD%CE%CF%D0%D1%D2%D3%D4%D5%D6%D7%D8%D9"
        "%DA%DB%DC%DD%DE%DF%E0%E1%E2%E3%E4%E5%E6%E7%E8%E9%EA%EB%EC%ED%EE%EF%F0%F1%F2%F3%F4%F5%F6%F7"
        "%F8%F9%FA%FB%FC%FD%FE%FF");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_base_url_is_https_or_of_this_machine),
        cmocka_unit_test(a_base_url_has_a_host_and_nothing_beside_port_and_path),
        cmocka_unit_test(the_authority_is_host_and_port),
        cmocka_unit_test(a_name_does_not_lead_to_what_is_no_servers_address),
        cmocka_unit_test(all_but_unreserved_characters_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
