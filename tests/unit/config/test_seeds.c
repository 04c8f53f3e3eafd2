/* Several addresses of a fleet in one text. */
#include "protocol/client/seeds.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"

static void expect_refused(const char *list, enum bt_code want, const char *says)
{
    struct bt_error err;
    uint32_t n;

    assert_int_equal(seeds_check(list, &n, &err), want);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    }
}

static void one_or_several_are_found_by_number(void **state)
{
    const char *list = "tls+tcp://a:1,tls+tcp://[::1]:2,tls+tcp://c.example:3";
    static const char *const want[] = {"tls+tcp://a:1", "tls+tcp://[::1]:2",
                                       "tls+tcp://c.example:3"};
    char url[STATE_URL_MAX + 1];
    struct bt_error err;
    uint32_t n;

    (void)state;
    assert_int_equal(seeds_check(list, &n, &err), BT_OK);
    assert_int_equal(n, 3);
    for (uint32_t i = 0; i < n; i++) {
        seeds_get(list, i, url);
        assert_string_equal(url, want[i]);
    }
    assert_int_equal(seeds_check("tls+tcp://a:1", &n, &err), BT_OK);
    assert_int_equal(n, 1);
    seeds_get("tls+tcp://a:1", 0, url);
    assert_string_equal(url, "tls+tcp://a:1");
}

static void what_is_no_address_is_named(void **state)
{
    (void)state;
    expect_refused("", BT_INVALID, "'': expected tls+tcp://HOST:PORT");
    expect_refused("tcp://a:1", BT_INVALID, "'tcp://a:1': expected");
    expect_refused("tls+tcp://a", BT_INVALID, "'tls+tcp://a': expected");
    expect_refused("tls+tcp://a,tls+tcp://b:1", BT_INVALID, "'tls+tcp://a': expected");
    expect_refused("tls+tcp://a:1,", BT_INVALID, "'': expected");
    expect_refused("tls+tcp://a:1,,tls+tcp://b:2", BT_INVALID, "'': expected");
    expect_refused("tls+tcp://a:1, tls+tcp://b:2", BT_INVALID, "' tls+tcp://b:2': expected");
}

static void there_are_at_most_eight_of_255_bytes(void **state)
{
    char list[SEEDS_TEXT_MAX + 32] = "";
    char url[STATE_URL_MAX + 2];
    struct bt_error err;
    uint32_t n;

    (void)state;
    for (uint32_t i = 0; i < SEEDS_MAX; i++) {
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%stls+tcp://a:1",
                       i > 0 ? "," : "");
        assert_int_equal(seeds_check(list, &n, &err), BT_OK);
        assert_int_equal(n, i + 1);
    }
    (void)snprintf(list + strlen(list), sizeof list - strlen(list), ",tls+tcp://a:1");
    expect_refused(list, BT_LIMIT, "at most 8 addresses");
    memset(url, 'a', sizeof url);
    memcpy(url, "tls+tcp://", 10);
    url[20] = ':';
    url[STATE_URL_MAX] = 0;
    assert_int_equal(seeds_check(url, &n, &err), BT_OK);
    url[STATE_URL_MAX] = 'a';
    url[STATE_URL_MAX + 1] = 0;
    expect_refused(url, BT_INVALID, "expected tls+tcp://HOST:PORT");
}

static void a_slow_line_is_waited_for_longer_each_time_round(void **state)
{
    static const uint32_t want[] = {700, 700, 700, 1400, 1400, 1400, 2800};

    (void)state;
    for (uint32_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(seeds_patience(i, 3), want[i]);
    }
    assert_int_equal(seeds_patience(3, 1), 5600);
    assert_int_equal(seeds_patience(4, 1), 11200);
    assert_int_equal(seeds_patience(5, 1), 11200);
    assert_int_equal(seeds_patience(UINT32_MAX, 8), 11200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_or_several_are_found_by_number),
        cmocka_unit_test(what_is_no_address_is_named),
        cmocka_unit_test(there_are_at_most_eight_of_255_bytes),
        cmocka_unit_test(a_slow_line_is_waited_for_longer_each_time_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
