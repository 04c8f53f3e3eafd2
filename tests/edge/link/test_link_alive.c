/* The times of keepalive: of connections to other hosts that have it, and of no others. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/link/link_internal.h"
#include "tests/edge/link/fixture.h"

enum { OWN_IDLE_S = 7200, OWN_INTERVAL_S = 77 };

int __real_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

/* Connections of this host, which are said to be with those. */
static struct peer {
    const char *address;
    bool keepalive, told; /* whether there is keepalive; whether its times were set before */
    bool changes;
    atomic_int fd; /* the thread that looks compares it */
} peers[] = {
    {"192.0.2.1", true, false, true, -1},   {"2001:db8::1", true, false, true, -1},
    {"128.0.0.1", true, false, true, -1},   {"126.255.255.255", true, false, true, -1},
    {"127.0.0.1", true, false, false, -1},  {"127.255.255.254", true, false, false, -1},
    {"::1", true, false, false, -1},        {"unix", true, false, false, -1},
    {"192.0.2.2", false, false, false, -1}, {"192.0.2.3", true, true, false, -1},
    {"none", true, false, false, -1},
};

enum { PEERS = sizeof peers / sizeof peers[0] };

int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
    for (size_t i = 0; i < PEERS; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        if (peers[i].fd != fd) {
            continue;
        }
        if (strcmp(peers[i].address, "none") == 0) {
            return -1; /* it is not connected any more */
        }
        if (strcmp(peers[i].address, "unix") == 0) {
            addr->sa_family = AF_UNIX;
        } else if (inet_pton(AF_INET, peers[i].address, &in.sin_addr) == 1) {
            memcpy(addr, &in, sizeof in);
        } else {
            assert_int_equal(inet_pton(AF_INET6, peers[i].address, &in6.sin6_addr), 1);
            memcpy(addr, &in6, sizeof in6);
        }
        return 0;
    }
    return __real_getpeername(fd, addr, len);
}

static int option(int fd, int name)
{
    int value = -1;
    socklen_t n = sizeof value;

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &n), 0);
    return value;
}

static void set(int fd, int level, int name, int value)
{
    assert_int_equal(setsockopt(fd, level, name, &value, sizeof value), 0);
}

static void connections_to_other_hosts_end_half_a_minute_after_their_peer(void **state)
{
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS + LINK_ALIVE_LOOK_MS;

    (void)state;
    for (size_t i = 0; i < PEERS; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        set(fd, SOL_SOCKET, SO_KEEPALIVE, peers[i].keepalive);
        set(fd, IPPROTO_TCP, TCP_KEEPIDLE, peers[i].told ? LINK_ALIVE_IDLE_S : OWN_IDLE_S);
        set(fd, IPPROTO_TCP, TCP_KEEPINTVL, OWN_INTERVAL_S);
        peers[i].fd = fd;
    }
    assert_int_equal(helper_start(NULL), BT_OK);
    alive_start();
    alive_start(); /* one look is enough for all */
    while (option(peers[0].fd, TCP_KEEPIDLE) == OWN_IDLE_S && clock_mono_ms() < until) {
        (void)poll(NULL, 0, 20);
    }
    (void)poll(NULL, 0, 200); /* the others of the same look */
    for (size_t i = 0; i < PEERS; i++) {
        const int fd = peers[i].fd;
        const bool is_10 = peers[i].changes || peers[i].told;
        assert_int_equal(option(fd, TCP_KEEPIDLE), is_10 ? 10 : OWN_IDLE_S);
        assert_int_equal(option(fd, TCP_KEEPINTVL), peers[i].changes ? 5 : OWN_INTERVAL_S);
        if (peers[i].changes) {
            assert_int_equal(option(fd, TCP_KEEPCNT), 3);
        }
        assert_int_equal(option(fd, TCP_USER_TIMEOUT), peers[i].changes ? 25000 : 0);
        peers[i].fd = -1;
        assert_int_equal(close(fd), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_to_other_hosts_end_half_a_minute_after_their_peer),
    };

    fixture_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
