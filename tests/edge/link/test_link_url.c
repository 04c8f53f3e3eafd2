/* Which addresses are refused, and the splitting of frames. */
#include <string.h>

#include "tests/edge/link/fixture.h"

struct url_case {
    const char *url;
    bool remote_ok;
    bool loopback_ok;
};

static const struct url_case cases[] = {
    {"tcp://127.0.0.1:7117", true, true},
    {"tcp://127.9.8.7:1", true, true},
    {"tcp://localhost:7117", true, true},
    {"tcp://[::1]:65535", true, true},
    {"tcp://[::ffff:127.0.0.1]:1", true, true},
    {"tls+tcp://127.0.0.1:1", true, true},
    {"ipc:///run/user/1000/baton/control.sock", true, true},
    {"tcp://192.168.1.7:7117", true, false},
    {"tcp://agents.example.org:443", true, false},
    {"tcp://a-1.b2:9", true, false},
    {"tcp://[2001:db8::7]:9", true, false},
    {"tcp://localhost.example.org:9", true, false},
    {"tcp://128.0.0.1:1", true, false},
    {"", false, false},
    {"tcp", false, false},
    {"tcp://", false, false},
    {"tcp://:1", false, false},
    {"tcp://127.0.0.1", false, false},
    {"tcp://127.0.0.1:", false, false},
    {"tcp://127.0.0.1:0", false, false},
    {"tcp://127.0.0.1:65536", false, false},
    {"tcp://127.0.0.1:-1", false, false},
    {"tcp://127.0.0.1:+1", false, false},
    {"tcp://127.0.0.1: 1", false, false},
    {"tcp://127.0.0.1:007", false, false},
    {"tcp://127.0.0.1:1/", false, false},
    {"tcp://127.0.0.1:1?x", false, false},
    {"tcp://127.0.0.1:99999999999999999999", false, false},
    {"tcp://user@127.0.0.1:1", false, false},
    {"tcp://127.0.0.1;eth0:1", false, false},
    {"tcp://lo;127.0.0.1:1", false, false},
    {"tcp://0.0.0.0:1", false, false},
    {"tcp://0.1.2.3:1", false, false},
    {"tcp://*:1", false, false},
    {"tcp://169.254.169.254:80", false, false},
    {"tcp://224.0.0.1:80", false, false},
    {"tcp://255.255.255.255:80", false, false},
    {"tcp://127.1:80", false, false},
    {"tcp://2130706433:80", false, false},
    {"tcp://0x7f000001:80", false, false},
    {"tcp://0177.0.0.1:80", false, false},
    {"tcp://127.0.0.1.:80", false, false},
    {"tcp://a..b:80", false, false},
    {"tcp://.a:80", false, false},
    {"tcp://-a:80", false, false},
    {"tcp://a b:80", false, false},
    {"tcp://a\nb:80", false, false},
    {"tcp://[::]:1", false, false},
    {"tcp://[::ffff:169.254.169.254]:1", false, false},
    {"tcp://[::ffff:0.0.0.0]:1", false, false},
    {"tcp://[::169.254.169.254]:1", false, false},
    {"tcp://[fe80::1]:1", false, false},
    {"tcp://[fe80::1%eth0]:1", false, false},
    {"tcp://[ff02::1]:1", false, false},
    {"tcp://[::1]", false, false},
    {"tcp://[::1]1", false, false},
    {"tcp://[::1:1", false, false},
    {"tcp://::1:1", false, false},
    {"tcp4://127.0.0.1:1", false, false},
    {"TCP://127.0.0.1:1", false, false},
    {" tcp://127.0.0.1:1", false, false},
    {"inproc://x", false, false},
    {"ws://127.0.0.1:80/", false, false},
    {"wss://127.0.0.1:80/", false, false},
    {"zt://1:2", false, false},
    {"file:///etc/passwd", false, false},
    {"http://127.0.0.1:80", false, false},
    {"abstract://x", false, false},
    {"unix:///x", false, false},
    {"ipc://x", false, false},
    {"ipc:///", false, false},
    {"ipc:///dir/", false, false},
    {"ipc:///a b", false, false},
    {"ipc:///a%2f", false, false},
};

static void only_allowed_addresses_pass(void **state)
{
    (void)state;
    struct bt_error first = {.msg = ""};
    assert_int_equal(link_url_check(STR_LIT("x"), false, false, &first), BT_INVALID);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct url_case *c = &cases[i];
        const struct str url = str_from(c->url);
        struct bt_error err = {.msg = ""};
        if ((link_url_check(url, false, false, &err) == BT_OK) != c->remote_ok) {
            fail_msg("\"%s\" should be %s", c->url, c->remote_ok ? "allowed" : "refused");
        }
        if ((link_url_check(url, true, false, &err) == BT_OK) != c->loopback_ok) {
            fail_msg("\"%s\" should be %s on loopback", c->url,
                     c->loopback_ok ? "allowed" : "refused");
        }
        if (!c->loopback_ok) {
            assert_string_equal(err.msg, first.msg); /* no port-scan oracle */
        }
    }
}

/* Of what passes on loopback: no names, no paths, no TLS. */
static void near_addresses_are_tcp_and_numeric(void **state)
{
    static const char *const near[] = {"tcp://127.0.0.1:1", "tcp://127.9.9.9:65535",
                                       "tcp://[::1]:1", "tcp://[::ffff:127.0.0.1]:1"};
    static const char *const far[] = {"tcp://localhost:1", "tls+tcp://127.0.0.1:1", "ipc:///tmp/x",
                                      "tcp://127.0.0.1:0", "tcp://10.0.0.1:1",      "tcp://",
                                      "tcp://localhost",   "tcp://0.0.0.0:1",       "",
                                      "tcp://[fe80::1]:1", "tcp://127.1:1"};
    (void)state;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        assert_true(link_url_is_near(str_from(near[i])));
    }
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        assert_false(link_url_is_near(str_from(far[i])));
    }
}

static void port_zero_passes_only_where_it_is_asked_for(void **state)
{
    (void)state;
    assert_int_equal(link_url_check(STR_LIT("tcp://127.0.0.1:0"), true, true, NULL), BT_OK);
    assert_int_equal(link_url_check(STR_LIT("tcp://127.0.0.1:00"), true, true, NULL), BT_INVALID);
    assert_int_equal(link_url_check(STR_LIT("tcp://127.0.0.1:1\0"), true, true, NULL), BT_INVALID);
}

static void long_hosts_and_paths_are_refused(void **state)
{
    (void)state;
    char url[512] = "tcp://";
    memset(url + 6, 'a', 254);
    memcpy(url + 260, ":1", 3);
    assert_int_equal(link_url_check(str_from(url), false, false, NULL), BT_INVALID);
    memcpy(url, "ipc:///", 7);
    url[6 + 107] = '\0';
    assert_int_equal(link_url_check(str_from(url), false, false, NULL), BT_OK);
    url[6 + 107] = 'a';
    url[6 + 108] = '\0';
    assert_int_equal(link_url_check(str_from(url), false, false, NULL), BT_INVALID);
}

static void opening_uses_the_same_check(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = NULL;
    struct link_lane *lane = NULL;
    struct link_sub *sub = NULL;
    struct link_pub *pub = NULL;
    const struct link_limits none = {.recv_max = 0};
    const char *bad[] = {"inproc://x", "ws://127.0.0.1:0/", "tcp://0.0.0.0:0",
                         "tcp://169.254.169.254:80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(link_server_open(l, bad[i], 1, &fixture_limits, NULL, &s, NULL),
                         BT_INVALID);
        assert_int_equal(link_lane_dial(l, bad[i], &fixture_limits, NULL, &lane, NULL), BT_INVALID);
        assert_int_equal(link_lane_listen(l, bad[i], &fixture_limits, NULL, &lane, NULL),
                         BT_INVALID);
        assert_int_equal(link_pub_open(l, bad[i], &fixture_limits, &pub, NULL), BT_INVALID);
        assert_int_equal(link_sub_dial(l, bad[i], NULL, 0, &fixture_limits, NULL, &sub, NULL),
                         BT_INVALID);
    }
    assert_int_equal(link_lane_dial(l, "tcp://127.0.0.1:0", &fixture_limits, NULL, &lane, NULL),
                     BT_INVALID);
    assert_int_equal(link_server_open(l, "tcp://127.0.0.1:0", 1, &none, NULL, &s, NULL),
                     BT_INVALID);
    assert_int_equal(link_server_open(l, "tcp://127.0.0.1:0", 0, &fixture_limits, NULL, &s, NULL),
                     BT_INVALID);
    assert_int_equal(
        link_server_open(l, "tls+tcp://127.0.0.1:0", 1, &fixture_limits, NULL, &s, NULL),
        BT_INVALID);
    link_free(l);
}

static void frame_splits_at_its_first_zero_byte(void **state)
{
    (void)state;
    struct str topic;
    struct str body;
    assert_true(link_frame_split(STR_LIT("plan/1\0bo\0dy"), &topic, &body));
    assert_true(str_is(topic, "plan/1"));
    assert_true(str_eq(body, STR_LIT("bo\0dy")));
    assert_true(link_frame_split(STR_LIT("\0"), &topic, &body));
    assert_int_equal(topic.len + body.len, 0);
    assert_false(link_frame_split(STR_LIT("no zero"), &topic, &body));
    assert_false(link_frame_split((struct str){NULL, 0}, &topic, &body));
}

int main(void)
{
    fixture_watchdog(30);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_allowed_addresses_pass),
        cmocka_unit_test(near_addresses_are_tcp_and_numeric),
        cmocka_unit_test(port_zero_passes_only_where_it_is_asked_for),
        cmocka_unit_test(long_hosts_and_paths_are_refused),
        cmocka_unit_test(opening_uses_the_same_check),
        cmocka_unit_test(frame_splits_at_its_first_zero_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
