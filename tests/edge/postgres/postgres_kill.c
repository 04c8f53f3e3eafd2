/* kill -9 of the owner's backend, and of the whole server, at any commit: the owner goes on. What
 * was acknowledged is stored, each turn once, and no outcome stays unknown (G190). */
#include "tests/edge/journal/workload.h"
#include "tests/unit/journal/journal_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/pg_server/pg_server.h"

enum { BATCHES = 40, ROUNDS = 6 };
static const struct journal_options OPT = {.lease_ms = 2000, .node = "one"};

static void tell(uint64_t seq, void *self)
{
    (void)!write(*(int *)self, &seq, sizeof seq);
}

/* A process that writes; the last two numbers in its pipe are what it was told. */
static pid_t writer(int *ret_from)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct told told = work(pg_server_url(), &OPT, BATCHES, tell, &fds[1]);
        tell(UINT64_MAX, &fds[1]);
        tell(told.acked, &fds[1]);
        tell(told.unknown, &fds[1]);
        _exit(0);
    }
    (void)close(fds[1]);
    *ret_from = fds[0];
    return pid;
}

static void backend_dies(void)
{
    char text[32];
    pid_t pid;

    pg_server_run("SELECT backend FROM baton.shards", text, sizeof text);
    pid = (pid_t)strtol(text, NULL, 10);
    if (pid > 1) {
        (void)kill(pid, SIGKILL);
    }
}

static void killed_after(uint32_t commits, void (*what)(void))
{
    struct told told = {0};
    uint64_t v = 0;
    int from;
    const pid_t pid = writer(&from);

    for (uint32_t n = 0; n < commits && read(from, &v, sizeof v) == sizeof v && v != UINT64_MAX;) {
        n++;
    }
    what();
    pg_server_start();
    while (v != UINT64_MAX && read(from, &v, sizeof v) == sizeof v) {
        told.acked = v;
    }
    assert_int_equal(v, UINT64_MAX);
    assert_int_equal(read(from, &told.acked, sizeof v), sizeof v);
    assert_int_equal(read(from, &told.unknown, sizeof v), sizeof v);
    (void)close(from);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(told.unknown, 0);
    (void)work_check(pg_server_url(), &told, NULL);
}

static void backend_ends(void)
{
    pg_server_run("SELECT pg_terminate_backend(backend) FROM baton.shards WHERE backend > 0", NULL,
                  0);
}

static void rounds(void (*what)(void))
{
    pg_server_clear();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        killed_after(1 + i * 5, what);
    }
}

static void an_owner_rides_through_the_end_of_its_backend(void **state)
{
    (void)state;
    rounds(backend_ends);
}

static void an_owner_rides_through_a_kill_of_its_backend(void **state)
{
    (void)state;
    rounds(backend_dies);
}

static void an_owner_rides_through_a_kill_of_the_server(void **state)
{
    (void)state;
    rounds(pg_server_kill);
}

static void an_owner_rides_through_an_immediate_shutdown_of_the_server(void **state)
{
    (void)state;
    rounds(pg_server_stop_at_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_rides_through_the_end_of_its_backend),
        cmocka_unit_test(an_owner_rides_through_a_kill_of_its_backend),
        cmocka_unit_test(an_owner_rides_through_a_kill_of_the_server),
        cmocka_unit_test(an_owner_rides_through_an_immediate_shutdown_of_the_server),
    };

    if (!pg_server_installed()) {
        return pg_server_skip("kills of a server");
    }
    pg_server_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
