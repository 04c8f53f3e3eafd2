/* G3: whichever call to the disk fails, no acknowledged commit is lost, and no commit is reported
 * as stored that is not. */
#include "tests/support/cmocka.h"

#include <stdio.h>

#include "tests/edge/journal/vfs_shim.h"
#include "tests/edge/journal/workload.h"
#include "tests/unit/journal/journal_fixture.h"

enum { BATCHES = 12 };

/* The run that failed, printed at the end. */
static struct {
    int fault;
    int persistent;
    uint32_t at;
    bool done;
} run;

static int say_which(void **state)
{
    (void)state;
    if (!run.done) {
        (void)fprintf(stderr, "fault %d, persistent %d, call %u\n", run.fault, run.persistent,
                      run.at);
    }
    return 0;
}

static const struct journal_options OPT = {.durability = DURABILITY_POWER, .checkpoint_pages = 12};

static struct told run_with_fault(const char *dir, enum shim_fault fault, uint32_t at,
                                  bool persistent)
{
    struct told told;

    shim_faults(fault, at, persistent);
    told = work(dir, &OPT, BATCHES, NULL, NULL);
    shim_faults_off();
    return told;
}

static void nothing_acked_is_lost_when_the_ith_call_to_the_disk_fails(void **state)
{
    uint32_t unknown = 0;
    uint32_t refused = 0;
    uint32_t full = 0;
    char dir[64];

    (void)state;
    for (int fault = 0; fault < SHIM_FAULT_COUNT; fault++) {
        for (int persistent = 0; persistent < 2; persistent++) {
            uint32_t calls = UINT32_MAX;
            for (uint32_t i = 1; i <= calls; i++) {
                struct told told;
                uint64_t stored;
                run.fault = fault;
                run.persistent = persistent;
                run.at = i;
                work_dir(dir);
                told = run_with_fault(dir, (enum shim_fault)fault, i, persistent != 0);
                stored = work_check(dir, &told, NULL);
                unknown += told.unknown != 0;
                refused += told.open_failed != 0;
                full +=
                    told.unknown == 0 && told.open_failed == 0 && stored > 0 && fault != SHIM_EIO;
                fixture_remove_tree(dir);
                if (shim_calls() < i) {
                    break; /* the fault was never reached: all calls are covered */
                }
            }
        }
    }
    run.done = true;
    (void)fprintf(stderr, "unknown outcomes %u, refused at open %u, survived a full disk %u\n",
                  unknown, refused, full);
    assert_true(unknown > 20 && refused > 5 && full > 20); /* the test does reach the full disk */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_acked_is_lost_when_the_ith_call_to_the_disk_fails,
                                  say_which),
    };
    shim_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
