/* kill -9 of the owner's backend, and of the whole server, at any commit: what was acknowledged is
 * stored, what was not is stored as a whole or not at all, and nobody is told wrong (G3). */
#include "tests/edge/journal/workload.h"
#include "tests/unit/journal/journal_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/pg_server/pg_server.h"

enum { BATCHES = 40, ROUNDS = 6 };
static const struct journal_options OPT = {.lease_ms = 1000, .node = "one"};

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

static void killed_after(uint32_t commits, void (*what)(void), unsigned *io_unknown)
{
    struct told told = {0};
    uint64_t v = 0;
    int from;
    const pid_t pid = writer(&from);

    for (uint32_t n = 0; n < commits && read(from, &v, sizeof v) == sizeof v && v != UINT64_MAX;) {
        n++;
    }
    what();
    while (v != UINT64_MAX && read(from, &v, sizeof v) == sizeof v) {
        told.acked = v;
    }
    assert_int_equal(v, UINT64_MAX);
    assert_int_equal(read(from, &told.acked, sizeof v), sizeof v);
    assert_int_equal(read(from, &told.unknown, sizeof v), sizeof v);
    *io_unknown += told.unknown > 0;
    (void)close(from);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    pg_server_start();
    (void)work_check(pg_server_url(), &told, NULL);
}

static void nothing_acked_is_lost_when_the_backend_is_killed(void **state)
{
    unsigned unknown = 0;

    (void)state;
    pg_server_clear();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        killed_after(1 + i * 5, backend_dies, &unknown);
    }
    (void)printf("%u of %d outcomes were not known\n", unknown, ROUNDS);
}

static void nothing_acked_is_lost_when_the_server_is_killed(void **state)
{
    unsigned unknown = 0;

    (void)state;
    pg_server_clear();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        killed_after(1 + i * 5, pg_server_kill, &unknown);
    }
    (void)printf("%u of %d outcomes were not known\n", unknown, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acked_is_lost_when_the_backend_is_killed),
        cmocka_unit_test(nothing_acked_is_lost_when_the_server_is_killed),
    };

    if (!pg_server_installed()) {
        return pg_server_skip("kills of a server");
    }
    pg_server_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
