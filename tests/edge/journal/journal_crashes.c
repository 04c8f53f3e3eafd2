/* The file of faults: what it keeps, in what room, and what it does with what is none (G23). */
#include "tests/unit/journal/journal_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/journal/faults.h"
#include "tests/edge/journal/workload.h"

static char dir[64];
static char file[128];
static struct faults f;

static int new_dir(void **state)
{
    (void)state;
    work_dir(dir);
    (void)snprintf(file, sizeof file, "%s/faults", dir);
    f.fd = -1;
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    faults_close(&f);
    fixture_remove_tree(dir);
    return 0;
}

static struct uuid plan(uint8_t n)
{
    return (struct uuid){{0xAB, [15] = n}};
}

static void reopen(void)
{
    struct bt_error err;

    faults_close(&f);
    assert_ok(faults_open(dir, &f, &err), err);
}

static void faults_are_counted_by_plan_and_survive(void **state)
{
    struct bt_error err;
    struct str line;

    (void)state;
    assert_ok(faults_read(dir, &f, &err), err); /* nothing is made */
    assert_int_equal(f.n, 0);
    assert_int_equal(access(file, F_OK), -1);
    for (int i = 0; i < 3; i++) {
        reopen();
        assert_int_equal(faults_count(&f, plan(1)), i);
        faults_add(&f, plan(1), 11, 1795453200000 + (msec)i);
    }
    reopen();
    faults_add(&f, plan(2), 6, 7);
    reopen();
    assert_int_equal(faults_count(&f, plan(1)), 3);
    assert_int_equal(faults_count(&f, plan(2)), 1);
    assert_int_equal(faults_count(&f, plan(3)), 0);
    line = faults_line(&f, 2);
    assert_true(str_is(line, "AB000000-0000-0000-0000-000000000001 signal 11 at 1795453200002"));
    assert_true(str_is(faults_line(&f, 3), "AB000000-0000-0000-0000-000000000002 signal 6 at 7"));
}

static bool is_second(struct uuid id, void *self)
{
    (void)self;
    return uuid_eq(id, plan(2));
}

static void what_is_not_kept_is_gone_after_a_restart(void **state)
{
    (void)state;
    for (uint8_t i = 1; i <= 3; i++) {
        reopen();
        faults_add(&f, plan(i), 11, 1);
    }
    reopen();
    faults_keep(&f, is_second, NULL);
    assert_int_equal(f.n, 1);
    reopen();
    assert_int_equal(f.n, 1);
    assert_int_equal(faults_count(&f, plan(2)), 1);
}

/* A crash finds room at any count, and the file never grows: it needs no space on a full disk. */
static void the_oldest_fault_makes_room_at_the_cap(void **state)
{
    struct stat st;

    (void)state;
    for (uint32_t i = 0; i < FAULTS_MAX + 1; i++) {
        reopen();
        assert_int_equal(f.n, i < FAULTS_MAX - 1 ? i : FAULTS_MAX - 1);
        faults_add(&f, plan((uint8_t)i), 11, 1);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_size, FAULTS_MAX * FAULT_LINE_BYTES);
        assert_true(st.st_blocks > 0);
    }
    reopen();
    assert_int_equal(faults_count(&f, plan(1)), 0);
    assert_int_equal(faults_count(&f, plan(2)), 1);
    assert_int_equal(faults_count(&f, plan(FAULTS_MAX)), 1);
}

static void what_cannot_be_opened_is_an_error_and_counts_nothing(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(mkdir(file, 0700), 0);
    assert_int_not_equal(faults_open(dir, &f, &err), BT_OK);
    assert_int_equal(f.n, 0);
    faults_add(&f, plan(1), 11, 1); /* nowhere */
    faults_keep(&f, is_second, NULL);
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(symlink("/dev/null", file), 0);
    assert_int_not_equal(faults_open(dir, &f, &err), BT_OK);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_int_not_equal(faults_open(dir, &f, &err), BT_OK);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, new_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(faults_are_counted_by_plan_and_survive),
        IN_DIR(what_is_not_kept_is_gone_after_a_restart),
        IN_DIR(the_oldest_fault_makes_room_at_the_cap),
        IN_DIR(what_cannot_be_opened_is_an_error_and_counts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
