/* What the service manager is told, and which signals a daemon takes. */
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "supervisor/notify.h"
#include "supervisor/signals.h"
#include "tests/support/cmocka.h"

/* A socket with the name; '@' = of no file. */
static int listens(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(at.sun_path, name, strlen(name));
    at.sun_path[0] = name[0] == '@' ? 0 : name[0];
    assert_int_equal(bind(fd, (const struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    return fd;
}

static const char *told(int fd)
{
    static char text[128];
    const ssize_t n = recv(fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = 0;
    return text;
}

static void the_manager_is_told_at_a_path_or_at_a_name_without_one(void **state)
{

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, i == 0 ? "/tmp/baton-notify-%d" : "@baton-notify-%d",
                       (int)getpid());
        const int fd = listens(name);
        assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
        notify_service_manager("READY=1\nSTATUS=serving");
        assert_string_equal(told(fd), "READY=1\nSTATUS=serving");
        notify_service_manager("STOPPING=1");
        assert_string_equal(told(fd), "STOPPING=1");
        assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
        notify_service_manager("X=1");
        assert_string_equal(told(fd), "");
        (void)close(fd);
        (void)unlink(name);
    }
}

/* A path as long as one may be, and one byte longer; and what is no path. */
static void what_is_no_address_is_nobodys(void **state)
{
    const size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    char name[160];
    int fd;

    (void)state;
    memset(name, 'x', sizeof name);
    (void)snprintf(name, sizeof name, "@baton-%d-", (int)getpid());
    memset(name + strlen(name), 'x', sizeof name - strlen(name));
    name[most] = 0;
    fd = listens(name);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    notify_service_manager("A=1");
    assert_string_equal(told(fd), "A=1");
    name[most] = 'x';
    name[most + 1] = 0;
    static const char *const none[] = {"", "/", "@", "baton", NULL};
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    notify_service_manager("B=1");
    for (size_t i = 0; none[i] != NULL; i++) {
        assert_int_equal(setenv("NOTIFY_SOCKET", none[i], 1), 0);
        notify_service_manager("C=1");
    }
    assert_string_equal(told(fd), "");
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    (void)close(fd);
}

static void a_daemon_takes_three_signals_and_lets_strays_pass(void **state)
{
    static const int taken[] = {SIGTERM, SIGINT, SIGHUP};
    static const int strays[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGIO};
    struct signalfd_siginfo info;
    struct bt_error err;
    int fd = -1;

    (void)state;
    assert_int_equal(signals_open(&fd, &err), BT_OK);
    for (size_t i = 0; i < sizeof strays / sizeof strays[0]; i++) {
        assert_int_equal(raise(strays[i]), 0); /* it would end a process */
    }
    assert_int_equal(read(fd, &info, sizeof info), -1); /* and it does not wait */
    for (size_t i = 0; i < 3; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        assert_int_equal(kill(getpid(), taken[i]), 0);
        assert_int_equal(poll(&p, 1, 1000), 1);
        assert_int_equal(read(fd, &info, sizeof info), sizeof info);
        assert_int_equal(info.ssi_signo, taken[i]);
    }
    assert_int_equal(read(fd, &info, sizeof info), -1);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manager_is_told_at_a_path_or_at_a_name_without_one),
        cmocka_unit_test(what_is_no_address_is_nobodys),
        cmocka_unit_test(a_daemon_takes_three_signals_and_lets_strays_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
