/* Whose process is at the other end of a connection, and that other users get nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/link/link_internal.h"
#include "tests/edge/link/fixture.h"

enum { NOBODY = 65534, MANY = 2000, HELLO = 8, PUB = 0x20, SUB = 0x21, REQ = 0x30, REP = 0x31 };

/* ---- sockets without nng ---- */

static struct peer_address address(const struct sockaddr_storage *at)
{
    struct peer_address a = {.v6 = at->ss_family == AF_INET6};
    if (a.v6) {
        const struct sockaddr_in6 *in = (const void *)at;
        memcpy(a.ip, &in->sin6_addr, 16);
        a.port = in->sin6_port;
    } else {
        const struct sockaddr_in *in = (const void *)at;
        memcpy(a.ip, &in->sin_addr, 4);
        a.port = in->sin_port;
    }
    return a;
}

static struct peer_address end_of(int fd, bool peer)
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof at;
    assert_int_equal(peer ? getpeername(fd, (struct sockaddr *)&at, &len)
                          : getsockname(fd, (struct sockaddr *)&at, &len),
                     0);
    return address(&at);
}

static int listen_on(int family, const char *ip)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const int off = 0;
    if (family == AF_INET) {
        assert_int_equal(inet_pton(AF_INET, ip, &v4.sin_addr), 1);
        assert_int_equal(bind(fd, (struct sockaddr *)&v4, sizeof v4), 0);
    } else {
        assert_int_equal(inet_pton(AF_INET6, ip, &v6.sin6_addr), 1);
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(fd, (struct sockaddr *)&v6, sizeof v6) != 0) {
            (void)close(fd);
            return -1; /* no IPv6 here */
        }
    }
    assert_int_equal(listen(fd, 4096), 0);
    return fd;
}

static int dial(int family, const char *ip, uint16_t port)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
    const struct timeval patience = {.tv_sec = 20};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (family == AF_INET) {
        (void)inet_pton(AF_INET, ip, &v4.sin_addr);
    } else {
        (void)inet_pton(AF_INET6, ip, &v6.sin6_addr);
    }
    if (connect(fd, family == AF_INET ? (void *)&v4 : (void *)&v6,
                family == AF_INET ? sizeof v4 : sizeof v6) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Both ways of looking agree, at both ends. */
static void assert_ours(int near, int far)
{
    const int fds[] = {near, far};
    for (int i = 0; i < 2; i++) {
        uint32_t uid = 1;
        uint32_t by_tables = 1;
        assert_true(peer_uid_find(end_of(fds[i], true), end_of(fds[i], false), &uid));
        assert_true(peer_uid_by_tables(end_of(fds[i], true), end_of(fds[i], false), &by_tables));
        assert_int_equal(uid, geteuid());
        assert_int_equal(by_tables, geteuid());
    }
}

static void connected_peer_has_its_user_in_each_family(void **state)
{
    static const struct {
        int family;
        const char *bind, *dial;
        int dial_family;
    } kinds[] = {{AF_INET, "127.0.0.1", "127.0.0.1", AF_INET},
                 {AF_INET, "127.9.8.7", "127.9.8.7", AF_INET},
                 {AF_INET6, "::1", "::1", AF_INET6},
                 {AF_INET6, "::ffff:127.0.0.1", "127.0.0.1", AF_INET},
                 {AF_INET, "127.0.0.1", "::ffff:127.0.0.1", AF_INET6},
                 {AF_INET6, "::ffff:127.0.0.1", "::ffff:127.0.0.1", AF_INET6}};
    (void)state;
    peer_uid_open();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const int listener = listen_on(kinds[i].family, kinds[i].bind);
        if (listener < 0) {
            print_message("SKIP: %s: no IPv6 on this machine\n", kinds[i].bind);
            continue;
        }
        const int near = dial(kinds[i].dial_family, kinds[i].dial, end_of(listener, false).port);
        const int far = accept(listener, NULL, NULL);
        assert_true(near >= 0 && far >= 0);
        assert_ours(near, far);
        (void)close(near);
        (void)close(far);
        (void)close(listener);
    }
}

static bool found_anyhow(struct peer_address peer, struct peer_address own)
{
    uint32_t uid = 0;
    return peer_uid_find(peer, own, &uid) || peer_uid_by_tables(peer, own, &uid);
}

/* The kernel calls each of these user 0. */
static void socket_without_a_process_is_not_found(void **state)
{
    const int listener = listen_on(AF_INET, "127.0.0.1");
    const struct peer_address at = end_of(listener, false);
    const int near = dial(AF_INET, "127.0.0.1", at.port);
    const struct peer_address own = end_of(near, false);
    struct peer_address other = own;
    int far;
    (void)state;
    peer_uid_open();
    assert_false(found_anyhow(at, own)); /* waits to be accepted */
    far = accept(listener, NULL, NULL);
    assert_true(found_anyhow(at, own));
    other.port = at.port; /* only the listener has this port */
    assert_false(found_anyhow(at, other));
    (void)close(near);
    assert_false(found_anyhow(own, at)); /* closing, FIN_WAIT2 */
    (void)close(far);
    assert_false(found_anyhow(own, at)); /* TIME_WAIT */
    (void)close(listener);
    assert_false(found_anyhow(own, at));
}

static void lookup_is_quick_and_right_among_many_sockets(void **state)
{
    const int listener = listen_on(AF_INET, "127.0.0.1");
    const struct peer_address at = end_of(listener, false);
    int *fds = calloc(MANY, sizeof *fds);
    uint32_t uid = 1;
    uint32_t n = 0;
    (void)state;
    peer_uid_open();
    assert_non_null(fds);
    for (uint32_t i = 0; i < MANY; i++) {
        fds[n] = dial(AF_INET, "127.0.0.1", at.port);
        fds[n + 1] = fds[n] < 0 ? -1 : accept(listener, NULL, NULL);
        if (fds[n + 1] < 0) {
            break; /* no more descriptors */
        }
        if (i % 4 == 0 && n < 800) {
            n += 2;
        } else { /* leaves a TIME_WAIT */
            (void)close(fds[n]);
            (void)close(fds[n + 1]);
        }
    }
    assert_true(n >= 200);
    const uint64_t from = clock_mono_ns();
    for (uint32_t i = 0; i < n; i++) {
        assert_true(peer_uid_find(end_of(fds[i], true), end_of(fds[i], false), &uid));
        assert_int_equal(uid, geteuid());
    }
    const uint64_t asked = clock_mono_ns();
    for (uint32_t i = 0; i < n; i += n / 20) {
        assert_true(peer_uid_by_tables(end_of(fds[i], true), end_of(fds[i], false), &uid));
    }
    print_message("a lookup among %u sockets: %.1f us; in /proc: %.1f us\n", n,
                  (double)(asked - from) / n / 1000.0,
                  (double)(clock_mono_ns() - asked) / 21 / 1000.0);
    for (uint32_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
    free(fds);
    (void)close(listener);
}

static bool in_text(const char *text, bool v6, uint32_t *ret_uid)
{
    const struct peer_address peer = {.ip = {127, 0, 0, 1}, .port = htons(0xB54F)};
    const struct peer_address own = {.ip = {127, 0, 0, 1}, .port = htons(0xB6C4)};
    const int fd = memfd_create("table", MFD_CLOEXEC);
    bool found;
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    found = peer_uid_in_table(fd, v6, &peer, &own, ret_uid);
    (void)close(fd);
    return found;
}

#define TCP_LINE(state, uid, inode)                                                                \
    "   1: 0100007F:B54F 0100007F:B6C4 " state " 00000000:00000000 00:00000000 00000000 " uid      \
    "        0 " inode " 1 0000000091f12bd9 100 0 0 10 0\n"

static void line_of_a_table_counts_when_it_is_whole_and_connected(void **state)
{
    uint32_t uid = 7;
    static const char other[] = "   1: 0100007F:B54F 0100007F:B6C5 01\n";
    char *big = calloc(1, 400000);
    size_t n;
    (void)state;
    assert_non_null(big);
    assert_true(in_text(TCP_LINE("01", " 1000", "99"), false, &uid));
    assert_int_equal(uid, 1000);
    assert_true(in_text("  sl  local_address\n" TCP_LINE("01", "65534", "1"), false, &uid));
    assert_int_equal(uid, 65534);
    assert_false(in_text(TCP_LINE("06", "    0", "0"), false, &uid));  /* TIME_WAIT */
    assert_false(in_text(TCP_LINE("06", "    0", "99"), false, &uid)); /* not connected */
    assert_false(in_text(TCP_LINE("01", "    0", "0"), false, &uid));  /* of no process */
    assert_false(in_text(TCP_LINE("01", " 1000", "99"), true, &uid));  /* the other table */
    assert_false(in_text("   1: 0100007F:B54F 0100007F:B6C4 01 0000", false, &uid));
    assert_false(in_text("   1: 0100007F:B54F 0100007F:B6C4 01 \n:\n: \n\n", false, &uid));
    assert_false(in_text("", false, &uid));
    assert_true(in_text("1: 0000000000000000FFFF00000100007F:B54F "
                        "0000000000000000FFFF00000100007F:B6C4 01 0:0 0:0 0 5 0 9 1\n",
                        true, &uid));
    assert_int_equal(uid, 5);
    for (n = 0; n < 390000; n += sizeof other - 1) {
        memcpy(big + n, other, sizeof other - 1);
    }
    memcpy(big + n, TCP_LINE("01", "   42", "99"), sizeof TCP_LINE("01", "   42", "99"));
    assert_true(in_text(big, false, &uid)); /* over the borders of what is read at a time */
    assert_int_equal(uid, 42);
    free(big);
}

/* ---- another user, who is a process that was forked before nng started ---- */

struct order {
    uint16_t port; /* network byte order; 0: listen, and tell the port */
    uint8_t protocol;
    bool v6;
    bool request; /* send one */
};

struct stranger {
    pid_t pid;
    int orders, reports;
};

/* Shakes hands, sends, and reports how many bytes came until the other side hung up; -1: it did
 * not. */
static int32_t talk(int fd, const struct order *o)
{
    const uint8_t hello[HELLO] = {0, 'S', 'P', 0, 0, o->protocol};
    const uint8_t request[16] = {[7] = 8, [8] = 0x80, [12] = 'h', 'e', 'y', '!'};
    int32_t total = 0;
    char bytes[4096];
    ssize_t n;
    (void)send(fd, hello, sizeof hello, MSG_NOSIGNAL);
    if (o->request) {
        (void)send(fd, request, sizeof request, MSG_NOSIGNAL);
    }
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        total += (int32_t)n;
    }
    (void)close(fd);
    return n == 0 || errno == ECONNRESET ? total : -1;
}

static void obey(int orders, int reports)
{
    struct order o;
    while (read(orders, &o, sizeof o) == (ssize_t)sizeof o) {
        int fd = -1;
        int32_t got = -2;
        if (o.port == 0) {
            const struct timeval patience = {.tv_sec = 20};
            const int listener = listen_on(AF_INET, "127.0.0.1");
            int32_t port = end_of(listener, false).port;
            (void)!write(reports, &port, sizeof port);
            fd = accept(listener, NULL, NULL);
            (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
            (void)close(listener);
        } else {
            fd = dial(o.v6 ? AF_INET6 : AF_INET, o.v6 ? "::ffff:127.0.0.1" : "127.0.0.1", o.port);
        }
        got = fd < 0 ? -2 : talk(fd, &o);
        (void)!write(reports, &got, sizeof got);
    }
}

static bool stranger_start(struct stranger *s)
{
    int orders[2];
    int reports[2];
    if (geteuid() != 0) {
        print_message("SKIP: only root can make processes of another user\n");
        return false;
    }
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(reports, O_CLOEXEC), 0);
    s->pid = fork();
    if (s->pid == 0) {
        (void)close(orders[1]);
        (void)close(reports[0]);
        if (setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
            setresuid(NOBODY, NOBODY, NOBODY) == 0) {
            obey(orders[0], reports[1]);
        }
        _exit(0);
    }
    (void)close(orders[0]);
    (void)close(reports[1]);
    s->orders = orders[1];
    s->reports = reports[0];
    return true;
}

static void stranger_end(struct stranger *s)
{
    (void)close(s->orders);
    (void)close(s->reports);
    (void)waitpid(s->pid, NULL, 0);
}

static void order(struct stranger *s, struct order o)
{
    assert_int_equal(write(s->orders, &o, sizeof o), sizeof o);
}

static int32_t report(struct stranger *s)
{
    int32_t got = -3;
    assert_int_equal(read(s->reports, &got, sizeof got), sizeof got);
    return got;
}

static uint16_t port_of(const char *url)
{
    return htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
}

/* What nng sends to anybody is its half of the handshake. */
static void another_user_gets_nothing_from_any_listener(void **state)
{
    struct stranger s;
    struct link_lane *lane = NULL;
    struct link_event ev;
    (void)state;
    if (!stranger_start(&s)) {
        return;
    }
    struct link *l = fixture_link();
    struct link_server *server = fixture_server(l, "tcp://127.0.0.1:0", 2);
    struct link_pub *pub = fixture_publisher(l, "tcp://127.0.0.1:0");
    assert_int_equal(link_lane_listen(l, "tcp://127.0.0.1:0", &fixture_limits, NULL, &lane, NULL),
                     BT_OK);
    for (int v6 = 0; v6 < 2; v6++) {
        order(&s, (struct order){port_of(link_server_url(server)), REQ, v6 != 0, true});
        assert_int_equal(report(&s), HELLO);
        order(&s, (struct order){port_of(link_lane_url(lane)), REP, v6 != 0, false});
        assert_int_equal(report(&s), HELLO);
        order(&s, (struct order){port_of(link_pub_url(pub)), SUB, v6 != 0, false});
        assert_int_equal(report(&s), HELLO);
        link_publish(pub, STR_LIT("topic"), "secret", 6);
    }
    assert_false(fixture_next(l, 50, &ev)); /* no request, and the lane never came up */
    fixture_assert_echo(l, link_server_url(server));
    struct link *reader = fixture_link();
    (void)fixture_subscriber(reader, link_pub_url(pub), NULL, 0);
    fixture_wait_live(reader, pub);
    link_free(reader);
    link_free(l);
    stranger_end(&s);
}

static void user_who_is_trusted_is_served(void **state)
{
    static const uint32_t both[] = {4242, NOBODY};
    struct stranger s;
    (void)state;
    if (!stranger_start(&s)) {
        return;
    }
    struct link *l = fixture_link();
    struct link_server *server = fixture_server(l, "tcp://127.0.0.1:0", 2);
    link_trust(l, both, 1);
    order(&s, (struct order){port_of(link_server_url(server)), REQ, false, true});
    assert_int_equal(report(&s), HELLO);
    link_trust(l, both, 2);
    order(&s, (struct order){port_of(link_server_url(server)), REQ, false, true});
    struct link_event ev = fixture_expect(l, LINK_REQUEST);
    fixture_assert_bytes(ev, "hey!");
    link_free(l); /* ends it */
    (void)report(&s);
    stranger_end(&s);
}

static void no_dialer_talks_to_a_listener_of_another_user(void **state)
{
    struct stranger s;
    (void)state;
    if (!stranger_start(&s)) {
        return;
    }
    struct link *l = fixture_link();
    for (int kind = 0; kind < 3; kind++) {
        char url[64];
        struct link_lane *lane = NULL;
        struct link_server *server = NULL;
        struct link_sub *sub = NULL;
        struct link_event ev;
        uint32_t uid = 0;
        order(&s, (struct order){0, (uint8_t[]){REP, REQ, PUB}[kind], false, kind == 1});
        (void)snprintf(url, sizeof url, "tcp://127.0.0.1:%u", ntohs((uint16_t)report(&s)));
        assert_int_equal(kind == 0 ? link_lane_dial(l, url, &fixture_limits, NULL, &lane, NULL)
                         : kind == 1
                             ? link_server_dial(l, url, 1, &fixture_limits, NULL, &server, NULL)
                             : link_sub_dial(l, url, NULL, 0, &fixture_limits, NULL, &sub, NULL),
                         BT_OK);
        assert_int_equal(report(&s), HELLO);
        assert_false(fixture_next(l, 50, &ev));
        if (lane != NULL) {
            assert_true(link_lane_stranger(lane, &uid));
            assert_int_equal(uid, NOBODY);
            assert_int_equal(link_lane_send(lane, "key", 3, NULL), BT_UNAVAILABLE);
        }
    }
    link_free(l);
    stranger_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_user_gets_nothing_from_any_listener),
        cmocka_unit_test(user_who_is_trusted_is_served),
        cmocka_unit_test(no_dialer_talks_to_a_listener_of_another_user),
        cmocka_unit_test(connected_peer_has_its_user_in_each_family),
        cmocka_unit_test(socket_without_a_process_is_not_found),
        cmocka_unit_test(lookup_is_quick_and_right_among_many_sockets),
        cmocka_unit_test(line_of_a_table_counts_when_it_is_whole_and_connected),
    };
    fixture_watchdog(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
