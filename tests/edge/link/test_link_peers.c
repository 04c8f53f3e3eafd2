/* What all peers of a listener may hold, before anybody knows who they are. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

enum { PEERS = 8, UNFINISHED_BYTES = 200000, UNFINISHED_MS = 400, MANY = 40, FRAME = 100000 };

static const struct link_limits limits = {.recv_max = FIXTURE_RECV_MAX,
                                          .peers = {.peers = PEERS,
                                                    .unfinished_bytes = UNFINISHED_BYTES,
                                                    .unfinished_ms = UNFINISHED_MS}};

static struct link_server *bounded(struct link *l, uint32_t peers, size_t bytes, msec ms)
{
    struct link_limits lim = limits;
    struct link_server *s = NULL;
    lim.peers =
        (struct link_peer_limits){.peers = peers, .unfinished_bytes = bytes, .unfinished_ms = ms};
    assert_int_equal(link_server_open(l, "tcp://127.0.0.1:0", 4, &lim, NULL, &s, NULL), BT_OK);
    return s;
}

/* After the handshake; from 127.0.0.HOST. */
static int stranger_of(const char *url, uint32_t host)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct sockaddr_in from = {.sin_family = AF_INET};
    from.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | host);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, "\0SP\0\0\x30\0\0", 8, MSG_NOSIGNAL), 8);
    return fd;
}

static int stranger(const char *url)
{
    return stranger_of(url, 1);
}

/* The beginning of a frame of `len` bytes. */
static void begin_frame(int fd, uint32_t len, uint32_t given)
{
    uint8_t *bytes = calloc(1, 12 + given);
    const uint32_t n = htonl(len);
    assert_non_null(bytes);
    memcpy(bytes + 4, &n, sizeof n);
    bytes[8] = 0x80; /* the id of a request */
    assert_int_equal(send(fd, bytes, 12 + given, MSG_NOSIGNAL), 12 + given);
    free(bytes);
}

static bool hung_up(int fd)
{
    char bytes[64];
    ssize_t n = 0;
    do {
        n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    } while (n > 0);
    return n == 0 || errno != EAGAIN;
}

static uint32_t gone(const int *fds, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        found += hung_up(fds[i]);
    }
    return found;
}

/* Serves until `want` of them have gone. */
static void await_gone(struct link *l, const int *fds, uint32_t n, uint32_t want)
{
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS * 4;
    struct link_event ev;
    while (gone(fds, n) < want) {
        if (fixture_next(l, 20, &ev) && ev.type == LINK_REQUEST) {
            (void)link_answer(ev.server, ev.request, "", 0);
            link_msg_free(ev.msg);
        }
        if (clock_mono_ms() > until) {
            fail_msg("%u of %u have gone, expected %u", gone(fds, n), n, want);
        }
    }
}

static void close_all(const int *fds, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
}

static void too_many_connections_cost_those_that_never_asked(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link *client = fixture_link();
    struct link_server *s = bounded(l, PEERS, 1u << 30, 1000000);
    struct link_lane *lane = fixture_lane(client, link_server_url(s));
    int fds[MANY];
    struct link_event ev;

    fixture_send(lane, "hello"); /* the oldest of all, but it has asked something */
    ev = fixture_expect(l, LINK_REQUEST);
    assert_true(link_answer(s, ev.request, "hi", 2));
    link_msg_free(ev.msg);
    fixture_assert_bytes(fixture_expect(client, LINK_ANSWER), "hi");
    for (uint32_t i = 0; i < MANY; i++) {
        fds[i] = stranger(link_server_url(s));
    }
    await_gone(l, fds, MANY, MANY + 1 - PEERS);
    assert_true(gone(fds, MANY) <= MANY + 1 - PEERS);
    assert_false(hung_up(fds[MANY - 1])); /* the longest silent go first */
    fixture_send(lane, "still");
    ev = fixture_expect(l, LINK_REQUEST);
    assert_true(link_answer(s, ev.request, "here", 4));
    link_msg_free(ev.msg);
    fixture_assert_bytes(fixture_expect(client, LINK_ANSWER), "here");
    close_all(fds, MANY);
    link_free(client);
    link_free(l);
}

/* So many of them have gone, and no more go in the time of some rounds. */
static void assert_gone(struct link *l, const int *fds, uint32_t n, uint32_t want)
{
    const msec until = clock_mono_ms() + 2500;

    while (clock_mono_ms() < until) {
        (void)link_wait(l, 100);
        assert_int_equal(gone(fds, n), want);
    }
}

static void as_many_connections_as_are_allowed_stay_and_one_more_costs_one(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = bounded(l, PEERS, 1u << 30, 1000000);
    int fds[PEERS + 1];

    for (uint32_t i = 0; i < PEERS; i++) {
        fds[i] = stranger(link_server_url(s));
    }
    assert_gone(l, fds, PEERS, 0);
    fds[PEERS] = stranger(link_server_url(s));
    await_gone(l, fds, PEERS + 1, 1);
    assert_gone(l, fds, PEERS + 1, 1);
    assert_false(hung_up(fds[PEERS])); /* who has been silent for longer goes */
    close_all(fds, PEERS + 1);
    link_free(l);
}

static void one_host_has_its_share_of_the_connections_and_one_more_costs_one_of_it(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_limits lim = limits;
    struct link_server *s = NULL;
    int fds[PEERS + 1];

    lim.peers = (struct link_peer_limits){
        .peers = 100, .of_host = PEERS / 2, .unfinished_bytes = 1u << 30, .unfinished_ms = 1000000};
    assert_int_equal(link_server_open(l, "tcp://127.0.0.1:0", 4, &lim, NULL, &s, NULL), BT_OK);
    for (uint32_t i = 0; i < PEERS; i++) {
        fds[i] = stranger_of(link_server_url(s), i < PEERS / 2 ? 1 : 2);
    }
    assert_gone(l, fds, PEERS, 0);
    fds[PEERS] = stranger_of(link_server_url(s), 2);
    await_gone(l, fds, PEERS + 1, 1);
    assert_gone(l, fds, PEERS + 1, 1);
    assert_int_equal(gone(fds, PEERS / 2), 0); /* the other host's */
    close_all(fds, PEERS + 1);
    link_free(l);
}

static void frames_that_hold_too_much_memory_end_the_largest(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = bounded(l, 1000, 3 * FRAME, 1000000);
    int fds[6];

    for (uint32_t i = 0; i < 6; i++) {
        fds[i] = stranger(link_server_url(s));
        begin_frame(fds[i], FIXTURE_RECV_MAX, i < 2 ? 2 * FRAME : FRAME / 2);
    }
    await_gone(l, fds, 2, 2); /* 6 halves before them, 2 whole ones left: under the bound */
    assert_int_equal(gone(fds + 2, 4), 0);
    fixture_assert_echo(l, link_server_url(s));
    close_all(fds, 6);
    link_free(l);
}

static void frame_that_does_not_end_in_time_ends_its_connection(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = bounded(l, 1000, 1u << 30, UNFINISHED_MS);
    const int silent = stranger(link_server_url(s));
    const int whole = stranger(link_server_url(s));
    int half[1] = {stranger(link_server_url(s))};

    begin_frame(whole, 4 + FRAME, FRAME);
    begin_frame(half[0], 4 + FRAME, FRAME - 1);
    await_gone(l, half, 1, 1);
    assert_false(hung_up(silent));
    assert_false(hung_up(whole));
    fixture_assert_echo(l, link_server_url(s));
    (void)close(silent);
    (void)close(whole);
    (void)close(half[0]);
    link_free(l);
}

/* Whether a stranger may send a whole request of so many bytes. */
static bool is_let_in(struct link *l, struct link_server *s, uint32_t len)
{
    const int fd = stranger(link_server_url(s));
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS;
    struct link_event ev;
    bool came = false;

    begin_frame(fd, 4 + len, len);
    while (!came && !hung_up(fd)) {
        if (fixture_next(l, 20, &ev) && ev.type == LINK_REQUEST) {
            came = link_msg_bytes(ev.msg).len == len;
            assert_true(link_answer(s, ev.request, "", 0));
            link_msg_free(ev.msg);
        }
        assert_true(clock_mono_ms() < until);
    }
    (void)close(fd);
    return came;
}

static void await_let_in(struct link *l, struct link_server *s, bool want)
{
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS * 4;

    while (is_let_in(l, s, FRAME) != want) {
        assert_true(clock_mono_ms() < until);
    }
}

static void flood_of_large_frames_lets_only_short_ones_in(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = bounded(l, 1000, 4 * FRAME, 1000000);
    int fds[3];

    assert_true(is_let_in(l, s, FRAME));
    for (uint32_t i = 0; i < 3; i++) {
        fds[i] = stranger(link_server_url(s));
        begin_frame(fds[i], FIXTURE_RECV_MAX, FRAME); /* more than half of what all may hold */
    }
    await_let_in(l, s, false);
    assert_true(is_let_in(l, s, 1000));
    close_all(fds, 3);
    await_let_in(l, s, true); /* some seconds after the flood */
    link_free(l);
}

/* A whole request that waits because every context is taken is no unfinished frame. */
static void request_that_waits_for_a_context_is_not_judged(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = bounded(l, 1000, 1u << 30, UNFINISHED_MS);
    struct link_event held[4];
    int fds[5];

    for (uint32_t i = 0; i < 5; i++) {
        fds[i] = stranger(link_server_url(s));
        begin_frame(fds[i], 4 + 100, 100);
    }
    for (uint32_t i = 0; i < 4; i++) {
        held[i] = fixture_expect(l, LINK_REQUEST);
    }
    const msec until = clock_mono_ms() + 3000; /* two rounds and the time */
    while (clock_mono_ms() < until) {
        (void)link_wait(l, 100);
        assert_int_equal(gone(fds, 5), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(link_answer(s, held[i].request, "", 0));
        link_msg_free(held[i].msg);
    }
    held[0] = fixture_expect(l, LINK_REQUEST);
    assert_true(link_answer(s, held[0].request, "", 0));
    link_msg_free(held[0].msg);
    close_all(fds, 5);
    link_free(l);
}

/* Between looks at all descriptors a round looks at the known ones alone. */
static void beside_many_quiet_connections_old_and_new_ones_are_judged(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = bounded(l, 1000, 1u << 30, UNFINISHED_MS);
    int fds[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        struct link_event ev;
        fds[i] = stranger(link_server_url(s));
        begin_frame(fds[i], 4 + 100, 100);
        ev = fixture_expect(l, LINK_REQUEST);
        assert_true(link_answer(s, ev.request, "", 0));
        link_msg_free(ev.msg);
    }
    assert_gone(l, fds, MANY, 0); /* all of them are known, and quiet */
    (void)close(fds[0]);
    fds[0] = stranger(link_server_url(s)); /* with the number of one that has gone */
    begin_frame(fds[0], FRAME, 1000);
    begin_frame(fds[1], FRAME, 1000); /* known */
    await_gone(l, fds, MANY, 2);
    assert_gone(l, fds, MANY, 2);
    assert_true(hung_up(fds[0]) && hung_up(fds[1]));
    begin_frame(fds[2], 4 + 100, 100);
    {
        struct link_event ev = fixture_expect(l, LINK_REQUEST);
        assert_true(link_answer(s, ev.request, "", 0));
        link_msg_free(ev.msg);
    }
    close_all(fds, MANY);
    link_free(l);
}

static void connections_of_another_address_with_the_same_port_are_not_counted(void **state)
{
    (void)state;
    char url[64];
    struct link_event ev;
    struct link *l = fixture_link();
    struct link_server *s = bounded(l, 1, UNFINISHED_BYTES, UNFINISHED_MS);
    (void)snprintf(url, sizeof url, "tcp://127.0.0.2%s", strrchr(link_server_url(s), ':'));
    (void)fixture_server(l, url, 2);
    struct link *client = fixture_link();
    (void)fixture_lane(client, url);
    (void)fixture_lane(client, url);
    (void)fixture_lane(client, link_server_url(s));
    assert_false(fixture_next(client, 2500, &ev)); /* two rounds */
    link_free(client);
    link_free(l);
}

int main(void)
{
    fixture_watchdog(150);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_connections_cost_those_that_never_asked),
        cmocka_unit_test(as_many_connections_as_are_allowed_stay_and_one_more_costs_one),
        cmocka_unit_test(one_host_has_its_share_of_the_connections_and_one_more_costs_one_of_it),
        cmocka_unit_test(frames_that_hold_too_much_memory_end_the_largest),
        cmocka_unit_test(frame_that_does_not_end_in_time_ends_its_connection),
        cmocka_unit_test(flood_of_large_frames_lets_only_short_ones_in),
        cmocka_unit_test(request_that_waits_for_a_context_is_not_judged),
        cmocka_unit_test(beside_many_quiet_connections_old_and_new_ones_are_judged),
        cmocka_unit_test(connections_of_another_address_with_the_same_port_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
