/* The i-th allocation fails, of ours and of SQLite's, for every i (after the first ones every
 * 17th): no crash, no leak (ASan), and what was acknowledged is there. Opening, writing and
 * committing are covered; reading is what work_check does afterwards, with memory again. */
#include "tests/support/memory.h"

#include <sqlite3.h>
#include <stdio.h>

#include "tests/edge/journal/workload.h"
#include "tests/unit/journal/journal_fixture.h"

enum { BATCHES = 3, EACH = 120, STRIDE = 17 };

static sqlite3_mem_methods theirs;
static long made; /* by the last run */

static void *sqlite_malloc(int n)
{
    return memory_is_out() ? NULL : theirs.xMalloc(n);
}

static void *sqlite_realloc(void *at, int n)
{
    return memory_is_out() ? NULL : theirs.xRealloc(at, n);
}

static const struct journal_options OPT = {.durability = DURABILITY_PROCESS,
                                           .checkpoint_pages = 12};

static void one(long i, bool persistent, uint32_t *unknown, uint32_t *refused)
{
    struct told told;
    char dir[64];

    work_dir(dir);
    memory_for_good = persistent;
    memory_begin(i);
    told = work(dir, &OPT, BATCHES, NULL, NULL);
    memory_watched = false;
    memory_left = -1;
    made = memory_made;
    *unknown += told.unknown != 0;
    *refused += told.open_failed != 0;
    (void)work_check(dir, &told, NULL);
    fixture_remove_tree(dir);
}

static void nothing_acked_is_lost_when_the_ith_allocation_fails(void **state)
{
    uint32_t unknown = 0;
    uint32_t refused = 0;
    long i;

    (void)state;
    for (int persistent = 0; persistent < 2; persistent++) {
        i = 0;
        do {
            i += i < EACH ? 1 : STRIDE;
            one(i, persistent != 0, &unknown, &refused);
        } while (made >= i);
        (void)fprintf(stderr, "%ld allocations\n", made);
        assert_true(i > EACH + 10 * STRIDE); /* the workload does allocate */
    }
    (void)fprintf(stderr, "unknown outcomes %u, refused at open %u\n", unknown, refused);
    assert_true(refused > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acked_is_lost_when_the_ith_allocation_fails),
    };
    sqlite3_mem_methods mine;

    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &theirs) != SQLITE_OK) {
        return 1;
    }
    mine = theirs;
    mine.xMalloc = sqlite_malloc;
    mine.xRealloc = sqlite_realloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &mine) != SQLITE_OK) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
