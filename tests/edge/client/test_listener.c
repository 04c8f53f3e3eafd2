/* Who listens on a port of this machine: whether he may be told what the daemon is told. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/client/listener.h"
#include "tests/support/cmocka.h"

enum { STRANGER = 65534 };

static char dir[64];
static pid_t child;

static int listen_at(int family, uint16_t *ret_port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    struct sockaddr *at = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    socklen_t len = family == AF_INET ? sizeof four : sizeof six;
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, at, len) != 0 || listen(fd, 8) != 0 || getsockname(fd, at, &len) != 0) {
        return -1;
    }
    *ret_port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
    return fd;
}

/* A program of the user that takes all connections, or none. Its port. */
static uint16_t listens(int family, uid_t uid, bool accepts)
{
    uint16_t port = 0;
    int says[2];

    assert_int_equal(pipe(says), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = setuid(uid) == 0 ? listen_at(family, &port) : -1;
        (void)!write(says[1], &port, sizeof port);
        while (fd >= 0 && accepts) {
            (void)accept(fd, NULL, NULL);
        }
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(says[0], &port, sizeof port), sizeof port);
    (void)close(says[0]);
    (void)close(says[1]);
    return port;
}

static void ends(void)
{
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static bool is_ours(const char *host, uint16_t port, const char *rest)
{
    char url[96];

    (void)snprintf(url, sizeof url, "http://%s:%u%s", host, port, rest);
    return listener_is_ours(dir, url);
}

static void who_is_not_on_this_machine_is_no_question(void **state)
{
    (void)state;
    assert_true(listener_is_ours(dir, "http://192.0.2.1:80/x"));
    assert_true(listener_is_ours(dir, "http://[2001:db8::1]:80"));
    assert_true(listener_is_ours(dir, "http://localhost:1"));
    assert_true(listener_is_ours(dir, "https://127.0.0.1:1"));
    assert_true(listener_is_ours(dir, "http://127.0.0.1"));
    assert_true(listener_is_ours(dir, "http://12.7.0.1:1"));
}

static void our_own_program_is_ours(void **state)
{
    uint16_t port;

    (void)state;
    port = listens(AF_INET, getuid(), true);
    assert_true(is_ours("127.0.0.1", port, ""));
    assert_true(is_ours("127.0.0.1", port, "/mcp?x=1"));
    ends();
    port = listens(AF_INET6, getuid(), true);
    if (port != 0) { /* there may be no IPv6 */
        assert_true(is_ours("[::1]", port, "/x"));
    }
    ends();
}

static void where_nobody_listens_is_nobody_of_ours(void **state)
{
    (void)state;
    assert_false(listener_is_ours(dir, "http://127.0.0.1:1"));
    assert_false(listener_is_ours(dir, "http://[::1]:1/"));
}

/* After two seconds. */
static void who_takes_no_connection_is_nobody_of_ours(void **state)
{
    const uint16_t port = listens(AF_INET, getuid(), false);
    const msec began = clock_mono_ms();

    (void)state;
    assert_false(is_ours("127.0.0.1", port, ""));
    assert_true(clock_mono_ms() - began >= 2000);
    ends();
}

/* Only root can try. */
static void a_stranger_is_ours_when_the_directory_or_the_variable_says_so(void **state)
{
    uint16_t port;

    (void)state;
    if (getuid() != 0) {
        skip();
    }
    port = listens(AF_INET, STRANGER, true);
    assert_false(is_ours("127.0.0.1", port, ""));
    assert_int_equal(setenv("BATON_ALLOW_UIDS", "1,65534", 1), 0);
    assert_true(is_ours("127.0.0.1", port, ""));
    assert_int_equal(setenv("BATON_ALLOW_UIDS", "1,2", 1), 0);
    assert_false(is_ours("127.0.0.1", port, ""));
    assert_int_equal(unsetenv("BATON_ALLOW_UIDS"), 0);
    assert_int_equal(chown(dir, STRANGER, STRANGER), 0);
    assert_true(is_ours("127.0.0.1", port, ""));
    assert_false(listener_peer_is_ours("/no/such", "127.0.0.1", port, "127.0.0.1", 1));
    ends();
    port = listens(AF_INET, 0, true); /* root may read it anyway */
    assert_true(is_ours("127.0.0.1", port, ""));
    ends();
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-listener-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(who_is_not_on_this_machine_is_no_question),
        TEST(our_own_program_is_ours),
        TEST(where_nobody_listens_is_nobody_of_ours),
        TEST(who_takes_no_connection_is_nobody_of_ours),
        TEST(a_stranger_is_ours_when_the_directory_or_the_variable_says_so),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
