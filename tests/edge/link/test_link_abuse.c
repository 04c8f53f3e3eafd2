/* No bytes from a stranger harm a listener (G15). Raw sockets against every kind of listener. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

struct attack {
    const char *name;
    const char *bytes;
    size_t len;
};

#define ATTACK(name, lit)                                                                          \
    {                                                                                              \
        name, lit, sizeof(lit) - 1                                                                 \
    }
#define SP_REQ "\0SP\0\0\x30\0\0"
#define SP_REP "\0SP\0\0\x31\0\0"
#define SP_SUB "\0SP\0\0\x21\0\0"
#define SP_PUB "\0SP\0\0\x20\0\0"

static const struct attack attacks[] = {
    ATTACK("nothing", ""),
    ATTACK("half a header", "\0SP"),
    ATTACK("garbage", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6"),
    ATTACK("HTTP", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ATTACK("TLS hello", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"),
    ATTACK("zeros", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    ATTACK("REQ, length 2^64-1", SP_REQ "\xff\xff\xff\xff\xff\xff\xff\xff"),
    ATTACK("REQ, length 2^63", SP_REQ "\x80\0\0\0\0\0\0\0"),
    ATTACK("REQ, 8 GiB", SP_REQ "\0\0\0\2\0\0\0\0xxxx"),
    ATTACK("REQ, length 0", SP_REQ "\0\0\0\0\0\0\0\0"),
    ATTACK("REQ, 3 bytes", SP_REQ "\0\0\0\0\0\0\0\3abc"),
    ATTACK("REQ, id without top bit", SP_REQ "\0\0\0\0\0\0\0\4\0\0\0\1"),
    ATTACK("REQ, half a frame", SP_REQ "\0\0\0\0\0\0\1\0\x80\0\0\1partial"),
    ATTACK("REP, nobody asked", SP_REP "\0\0\0\0\0\0\0\6\x80\0\0\1hi"),
    ATTACK("REP, short", SP_REP "\0\0\0\0\0\0\0\1x"),
    ATTACK("REP, 8 GiB", SP_REP "\0\0\0\2\0\0\0\0xxxx"),
    ATTACK("SUB talks", SP_SUB "\0\0\0\0\0\0\0\2hi"),
    ATTACK("SUB, length 2^64-1", SP_SUB "\xff\xff\xff\xff\xff\xff\xff\xff"),
    ATTACK("PUB to the wrong side", SP_PUB "\0\0\0\0\0\0\0\2hi"),
};
enum { ATTACKS = sizeof attacks / sizeof attacks[0], ROUNDS = 3, MUTE = 50 };

static int raw_connect(const char *url)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void attack_once(const char *url, const struct attack *a, bool reset)
{
    const int fd = raw_connect(url);
    if (a->len > 0 && send(fd, a->bytes, a->len, MSG_NOSIGNAL) < 0) {
        fail_msg("%s: cannot be sent", a->name);
    }
    if (reset) {
        const struct linger now = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    (void)close(fd);
}

static void attack_all(const char *url)
{
    for (int i = 0; i < ROUNDS * ATTACKS; i++) {
        attack_once(url, &attacks[i % ATTACKS], i % 2 == 1);
    }
}

/* Discards what the attackers sent as well-formed requests. */
static void drain(struct link *l)
{
    struct link_event ev;
    while (fixture_next(l, 50, &ev)) {
        link_msg_free(ev.msg);
    }
}

/* Frees the link when all strangers have gone: this process has as many descriptors as before they
 * came. nng loses a connection whose socket ends during its handshake (N17). */
static void free_when_alone(struct link *l, int before)
{
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS;
    struct link_event ev;

    while (fixture_descriptors() > before) {
        assert_true(clock_mono_ms() < until);
        if (fixture_next(l, 5, &ev)) {
            link_msg_free(ev.msg);
        }
    }
    link_free(l);
}

static void server_survives_every_attack(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 4);
    const int before = fixture_descriptors();
    attack_all(link_server_url(s));
    fixture_assert_echo(l, link_server_url(s));
    free_when_alone(l, before);
}

static void publisher_survives_every_attack(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link *reader = fixture_link();
    struct link_pub *p = NULL;
    struct link_sub *sub = NULL;
    struct link_event ev;
    bool arrived = false;
    assert_int_equal(link_pub_open(l, "tcp://127.0.0.1:0", &fixture_limits, &p, NULL), BT_OK);
    const int before = fixture_descriptors();
    attack_all(link_pub_url(p));
    link_publish(p, STR_LIT("t"), "x", 1);
    assert_int_equal(
        link_sub_dial(reader, link_pub_url(p), NULL, 0, &fixture_limits, NULL, &sub, NULL), BT_OK);
    (void)fixture_expect(reader, LINK_SUB_UP);
    for (int i = 0; i < 500 && !arrived; i++) {
        link_publish(p, STR_LIT("t"), "x", 1);
        arrived = fixture_next(reader, 10, &ev);
    }
    assert_true(arrived);
    link_msg_free(ev.msg);
    drain(reader);
    link_free(reader);
    free_when_alone(l, before);
}

/* A listening lane accepts any peer with a REP handshake, so attackers may come UP and go DOWN.
 * Then the agent gets it. */
static void listening_lane_survives_every_attack(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link *agent = fixture_link();
    struct link_lane *lane = NULL;
    struct link_server *s = NULL;
    assert_int_equal(link_lane_listen(l, "tcp://127.0.0.1:0", &fixture_limits, NULL, &lane, NULL),
                     BT_OK);
    const int before = fixture_descriptors();
    attack_all(link_lane_url(lane));
    assert_int_equal(
        link_server_dial(agent, link_lane_url(lane), 1, &fixture_limits, NULL, &s, NULL), BT_OK);
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS;
    struct link_event ev;
    struct link_event request;
    bool asked = false;
    while (!asked) { /* the last attacker's pipe may still be up: send again until the agent gets a
                        request */
        assert_true(clock_mono_ms() < until);
        const enum bt_code sent = link_lane_send(lane, "work", 4, NULL);
        assert_true(sent == BT_OK || sent == BT_BUSY || sent == BT_UNAVAILABLE);
        asked = fixture_next(agent, 20, &request);
        while (link_next(l, &ev)) {
            assert_true(ev.type == LINK_UP || ev.type == LINK_DOWN || ev.type == LINK_LOST ||
                        ev.type == LINK_ANSWER);
            link_msg_free(ev.msg);
        }
    }
    assert_true(link_answer(s, request.request, "done", 4));
    link_msg_free(request.msg);
    fixture_assert_bytes(fixture_expect(l, LINK_ANSWER), "done");
    link_server_retire(s);
    link_free(agent);
    free_when_alone(l, before);
}

static void mute_connections_do_not_keep_others_out(void **state)
{
    (void)state;
    int fds[MUTE];
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 4);
    const int before = fixture_descriptors();
    for (int i = 0; i < MUTE; i++) {
        fds[i] = raw_connect(link_server_url(s));
    }
    fixture_assert_echo(l, link_server_url(s));
    for (int i = 0; i < MUTE; i++) {
        (void)close(fds[i]);
    }
    free_when_alone(l, before);
}

/* A body that trickles in byte by byte holds only its own connection. */
static void request_in_single_bytes_is_served_and_delays_nobody(void **state)
{
    (void)state;
    static const char frame[] = SP_REQ "\0\0\0\0\0\0\0\x09\x80\0\0\1trick";
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    const int before = fixture_descriptors();
    const int fd = raw_connect(link_server_url(s));
    for (size_t i = 0; i < sizeof frame - 2; i++) {
        assert_int_equal(send(fd, frame + i, 1, MSG_NOSIGNAL), 1);
    }
    fixture_assert_echo(l, link_server_url(s));
    assert_int_equal(send(fd, frame + sizeof frame - 2, 1, MSG_NOSIGNAL), 1);
    const struct link_event ev = fixture_expect(l, LINK_REQUEST);
    assert_true(str_is(link_msg_bytes(ev.msg), "trick"));
    assert_true(link_answer(s, ev.request, "ok", 2));
    link_msg_free(ev.msg);
    char answer[64];
    size_t got = 0;
    while (got < 8 + 8 + 4 + 2) {
        const ssize_t n = recv(fd, answer + got, sizeof answer - got, 0);
        assert_true(n > 0);
        got += (size_t)n;
    }
    assert_memory_equal(answer, SP_REP "\0\0\0\0\0\0\0\6\x80\0\0\1ok", 22);
    (void)close(fd);
    free_when_alone(l, before);
}

int main(void)
{
    fixture_watchdog(120);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_survives_every_attack),
        cmocka_unit_test(publisher_survives_every_attack),
        cmocka_unit_test(listening_lane_survives_every_attack),
        cmocka_unit_test(mute_connections_do_not_keep_others_out),
        cmocka_unit_test(request_in_single_bytes_is_served_and_delays_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
