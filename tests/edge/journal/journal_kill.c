/* G1: kill -9 of the writer at any moment loses no acknowledged commit, in both durabilities. */
#include "tests/support/cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/edge/journal/workload.h"
#include "tests/support/random.h"
#include "tests/unit/journal/journal_fixture.h"

enum { KILLS = 60, BATCHES = 400 };

static void tell(uint64_t seq, void *self)
{
    if (write(*(int *)self, &seq, sizeof seq) != sizeof seq) {
        _exit(1);
    }
}

/* Runs a writer and kills it while it works after its n-th acknowledgement; returns what it
 * acknowledged. */
static struct told killed_writer(const char *dir, enum durability durability, uint32_t n)
{
    struct journal_options opt = {.durability = durability, .checkpoint_pages = 30};
    struct told told = {0};
    int fds[2];
    uint64_t seq;
    pid_t child;

    assert_int_equal(pipe(fds), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(fds[0]);
        (void)work(dir, &opt, BATCHES, tell, &fds[1]);
        _exit(0);
    }
    close(fds[1]);
    for (uint32_t i = 0; i < n && read(fds[0], &seq, sizeof seq) == (ssize_t)sizeof seq; i++) {
        told.acked = seq;
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (read(fds[0], &seq, sizeof seq) == (ssize_t)sizeof seq) {
        told.acked = seq; /* acknowledged before it died */
    }
    close(fds[0]);
    told.unknown = UINT64_MAX; /* it may have committed more than it could acknowledge */
    return told;
}

static void nothing_acked_is_lost_by_kill_9(void **state)
{
    struct rng r = rng_seeded(__func__);
    char dir[64];

    (void)state;
    for (int d = 0; d < 2; d++) {
        work_dir(dir);
        for (int i = 0; i < KILLS; i++) {
            /* The same journal again, so that recovery after a kill is killed too. */
            struct told told = killed_writer(dir, (enum durability)d, rng_below(&r, 25));
            (void)work_check(dir, &told, NULL);
            if (i % 10 == 9) { /* and a new one, for kills during the first start */
                fixture_remove_tree(dir);
                work_dir(dir);
            }
        }
        fixture_remove_tree(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acked_is_lost_by_kill_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
