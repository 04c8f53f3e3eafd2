/* The spawner's loop in a child, with a clock that goes on when it waits: how long it waits, and
 * when it ends. */
#include "tests/support/cmocka.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/spawn/packet.h"
#include "supervisor/spawn/spawner.h"
#include "tests/support/tree.h"

enum { NOW = 1000000, WAITS_MAX = 4096, REAL_MS = 60000 };

/* What the child did; shared with it. */
static struct shared {
    int waits[WAITS_MAX]; /* those in which nothing came */
    int n;
} * shared;
static msec now = NOW;
static char dir[64];
static int listener;

msec __wrap_clock_mono_ms(void);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);

msec __wrap_clock_mono_ms(void)
{
    return now;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    const int got = __real_poll(fds, n, timeout < 0 ? REAL_MS : 0);

    if (got == 0) {
        if (shared->n < WAITS_MAX) {
            shared->waits[shared->n++] = timeout;
        }
        now += timeout > 0 ? (msec)timeout : 0;
    }
    return got;
}

static int set_up(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    (void)snprintf(dir, sizeof dir, "/tmp/baton-loop-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/spawner.sock", dir);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 4), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)close(listener);
    (void)munmap(shared, sizeof *shared);
    return tree_drop(dir);
}

static pid_t starts(const char *grace)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        char fd[16];
        char ms[16];
        char program[] = "x";
        char flag[] = SPAWNER_ARGUMENT;
        char no_cgroup[] = "1";
        char *argv[] = {program, flag, dir, fd, ms, no_cgroup, NULL};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)snprintf(fd, sizeof fd, "%d", listener);
        (void)snprintf(ms, sizeof ms, "%s", grace);
        log_setup(LOG_ERR, NULL, NULL);
        _exit(spawner_main(6, argv));
    }
    return pid;
}

static int status_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void without_a_daemon_it_ends_after_its_grace(void **state)
{
    char path[128];

    (void)state;
    assert_int_equal(status_of(starts("4000")), 0);
    assert_int_equal(shared->n, 1);
    assert_int_equal(shared->waits[0], 4000);
    (void)snprintf(path, sizeof path, "%s/spawner.sock", dir);
    assert_int_equal(access(path, F_OK), -1); /* the next daemon starts one of its own */
}

static void it_waits_a_minute_at_most(void **state)
{
    (void)state;
    assert_int_equal(status_of(starts("60001")), 0);
    assert_int_equal(shared->n, 2);
    assert_int_equal(shared->waits[0], 60000);
    assert_int_equal(shared->waits[1], 1);
}

static int reach(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/spawner.sock", dir);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void receives(int fd, enum packet_type type)
{
    static uint8_t bytes[PACKET_BYTES + 1];
    static struct packet p;
    const ssize_t n = recv(fd, bytes, sizeof bytes, 0);

    assert_true(n > 0);
    assert_int_equal(packet_decode(bytes, (size_t)n, &p, NULL), BT_OK);
    assert_int_equal(p.type, type);
}

/* While a daemon is there it waits for it; its grace begins when it is gone. */
static void with_a_daemon_it_stays_and_then_its_grace_begins(void **state)
{
    const int fd = reach(); /* before it starts */
    pid_t pid;

    (void)state;
    pid = starts("4000");
    receives(fd, PACKET_HELLO);
    assert_int_equal(close(fd), 0);
    assert_int_equal(status_of(pid), 0);
    assert_int_equal(shared->waits[shared->n - 1], 4000);
}

static void an_order_to_end_is_carried_out_at_once(void **state)
{
    const int fd = reach();
    const pid_t pid = starts("4000");
    uint8_t byte;

    (void)state;
    receives(fd, PACKET_HELLO);
    assert_int_equal(send(fd, "\x01", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(fd, &byte, 1, 0), 0); /* it has ended */
    assert_int_equal(status_of(pid), 0);
    assert_int_equal(shared->n, 0);
    (void)close(fd);
}

/* Its log may grow without a report: the spawner wakes for it, and only while a process lives. */
static void while_a_process_lives_its_log_is_looked_at_each_second(void **state)
{
    static char program[] = "/bin/sh";
    static char flag[] = "-c";
    static char command[] = "kill -STOP $$";
    static char own[] = "BATON_INSTANCE_ID=0190F3C2-7A1B-7C3D-9E4F-000000000001";
    static char path[] = "PATH=/bin:/usr/bin";
    static struct packet p;
    const int fd = reach();
    const pid_t pid = starts("4000");
    struct buf out;
    char log[128];

    (void)state;
    (void)snprintf(log, sizeof log, "%s/log", dir);
    assert_int_equal(mkdir(log, 0700), 0);
    receives(fd, PACKET_HELLO);
    p = (struct packet){.type = PACKET_START,
                        .instance = "0190F3C2-7A1B-7C3D-9E4F-000000000001",
                        .name = "a#1",
                        .text = "/",
                        .log_bytes = 1000,
                        .argv = {program, flag, command},
                        .env = {own, path}};
    buf_init(&out, PACKET_BYTES);
    packet_encode(&p, &out);
    assert_int_equal(send(fd, out.at, out.len, MSG_NOSIGNAL), out.len);
    buf_done(&out);
    receives(fd, PACKET_STARTED);
    while (shared->n < 5) { /* waits that nothing ends */
        (void)sched_yield();
    }
    assert_int_equal(send(fd, "\x01", 1, MSG_NOSIGNAL), 1);
    (void)status_of(pid);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(shared->waits[i], 1000);
    }
    (void)close(fd);
}

static void it_is_of_no_use_without_its_arguments(void **state)
{
    char program[] = "x";
    char flag[] = SPAWNER_ARGUMENT;
    char other[] = "--other";
    char relative[] = "here";
    char root[] = "/";
    char number[] = "3";
    char *few[] = {program, flag, root, number, number, NULL};
    char *wrong[] = {program, other, root, number, number, number, NULL};
    char *here[] = {program, flag, relative, number, number, number, NULL};

    (void)state;
    assert_int_equal(spawner_main(5, few), 2);
    assert_int_equal(spawner_main(6, wrong), 2);
    assert_int_equal(spawner_main(6, here), 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(without_a_daemon_it_ends_after_its_grace),
        T(it_waits_a_minute_at_most),
        T(with_a_daemon_it_stays_and_then_its_grace_begins),
        T(an_order_to_end_is_carried_out_at_once),
        T(while_a_process_lives_its_log_is_looked_at_each_second),
        cmocka_unit_test(it_is_of_no_use_without_its_arguments),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
