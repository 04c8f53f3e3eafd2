/* Which addresses an agent may call. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/support/cmocka.h"

#include "agents/web/address.h"

static bool allowed(const char *text, const char *const *blocks)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_storage all;

    memset(&all, 0, sizeof all);
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        memcpy(&all, &four, sizeof four);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
        memcpy(&all, &six, sizeof six);
    }
    return address_allowed((const struct sockaddr *)&all, blocks);
}

static void public_addresses_are_called_and_private_ones_not(void **state)
{
    static const char *const open[] = {"8.8.8.8",         "172.15.255.255", "172.32.0.0",
                                       "100.63.255.255",  "100.128.0.0",    "223.255.255.255",
                                       "2606:4700::1111", "::ffff:8.8.8.8"};
    static const char *const closed[] = {"127.0.0.1",
                                         "127.255.255.255",
                                         "10.0.0.0",
                                         "10.255.255.255",
                                         "172.16.0.0",
                                         "172.31.255.255",
                                         "192.168.0.1",
                                         "100.64.0.0",
                                         "100.127.255.255",
                                         "169.254.169.254",
                                         "0.0.0.0",
                                         "0.1.2.3",
                                         "224.0.0.1",
                                         "255.255.255.255",
                                         "240.0.0.1",
                                         "::1",
                                         "::",
                                         "fe80::1",
                                         "fd00::1",
                                         "fc00::",
                                         "ff02::1",
                                         "::ffff:127.0.0.1",
                                         "::ffff:10.0.0.1",
                                         "64:ff9b::7f00:1",
                                         "2002:7f00:1::",
                                         "::127.0.0.1",
                                         "fec0::1",
                                         "2001:db8::1"};

    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        assert_true(allowed(open[i], NULL));
    }
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        if (allowed(closed[i], NULL)) {
            fail_msg("%s is not private", closed[i]);
        }
    }
}

static void a_listed_block_is_called_up_to_its_edge(void **state)
{
    static const char *const blocks[] = {"10.1.0.0/15", "127.0.0.1", "fd00::/8", "0.0.0.0/0", NULL};

    (void)state;
    assert_true(allowed("127.0.0.1", blocks));
    assert_true(allowed("::ffff:127.0.0.1", blocks));
    assert_true(allowed("fdff::1", blocks));
    assert_false(allowed("fe80::1", blocks));
    assert_false(allowed("0.0.0.0", blocks)); /* never, whatever is listed */
    assert_false(allowed("224.0.0.1", blocks));
    {
        static const char *const narrow[] = {"10.1.0.0/15", NULL};
        assert_true(allowed("10.0.0.0", narrow));
        assert_true(allowed("10.1.255.255", narrow));
        assert_false(allowed("10.2.0.0", narrow));
        assert_false(allowed("127.0.0.1", narrow));
    }
}

static void what_is_no_block_is_refused(void **state)
{
    static const char *const good[] = {"127.0.0.1", "10.0.0.0/8", "10.0.0.0/32",
                                       "::1",       "fd00::/128", "0.0.0.0/0"};
    static const char *const bad[] = {"",
                                      "localhost",
                                      "10.0.0.0/33",
                                      "10.0.0.0/",
                                      "10.0.0.0/-1",
                                      "10.0.0/8",
                                      "fd00::/129",
                                      "10.0.0.0/8x",
                                      "10.0.0.0/ 8",
                                      "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18."
                                      "19.20.21.22.23.24.25"};
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(address_block_check(good[i], &err), BT_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (address_block_check(bad[i], &err) != BT_INVALID) {
            fail_msg("'%s' is no block", bad[i]);
        }
    }
}

static void other_families_are_refused(void **state)
{
    const struct sockaddr unix_address = {.sa_family = AF_UNIX};

    (void)state;
    assert_false(address_allowed(&unix_address, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_addresses_are_called_and_private_ones_not),
        cmocka_unit_test(a_listed_block_is_called_up_to_its_edge),
        cmocka_unit_test(what_is_no_block_is_refused),
        cmocka_unit_test(other_families_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
