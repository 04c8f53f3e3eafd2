/* A copy of the journal, put in the place of one; and the file of faults beside it. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/journal/faults.h"
#include "tests/unit/journal/journal_fixture.h"

static const char *in(const char *dir, const char *name)
{
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];

    (void)snprintf(path, 256, "%s/%s", dir, name);
    return path;
}

static bool is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* Adds a plan, copies the journal, adds another one, and stops the daemon. */
static const char *copy_with_one_plan(struct fixture *f)
{
    const char *copy = in(f->root, "copy");
    struct journal_backup now = {.done = false};
    struct bt_error err;

    (void)add_plan(f->j, "k1", "kept");
    commit(f->j);
    assert_ok(journal_backup_begin(f->j, copy, &err), err);
    for (int i = 0; !now.done; i++) {
        assert_true(i < 1000);
        assert_ok(journal_backup_step(f->j, 4, &now, &err), err);
    }
    assert_int_equal(now.left, 0);
    (void)add_plan(f->j, "k2", "lost");
    commit(f->j);
    journal_close(f->j);
    f->j = NULL;
    return copy;
}

/* The goals of the plans in the journal. */
static const char *plans_of(struct fixture *f)
{
    static struct seen seen;
    struct bt_error err;

    memset(&seen, 0, sizeof seen);
    assert_ok(journal_open(f->dir, &f->opt, &f->j, &err), err);
    assert_ok(journal_plans(f->j, (struct str){"", 0}, (struct str){"", 0}, 0, 100, see_plan, &seen,
                            &err),
              err);
    journal_close(f->j);
    f->j = NULL;
    return seen.text;
}

static void a_copy_takes_the_place_of_a_journal_that_is_kept_aside(void **state)
{
    struct fixture *f = *state;
    const char *copy = copy_with_one_plan(f);
    struct bt_error err;

    assert_int_equal(journal_restore(f->dir, copy, false, &err), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "exists; to replace it"));
    assert_non_null(strstr(plans_of(f), "lost"));
    assert_ok(journal_restore(f->dir, copy, true, &err), err);
    assert_true(is_there(in(f->dir, "journal.db.old")));
    assert_false(is_there(in(f->dir, "journal.db.restored")));
    assert_true(is_there(copy));
    assert_non_null(strstr(plans_of(f), "kept"));
    assert_null(strstr(plans_of(f), "lost"));
}

static void a_copy_becomes_the_journal_of_a_directory_without_one(void **state)
{
    struct fixture *f = *state;
    const char *copy = copy_with_one_plan(f);
    struct bt_error err;

    assert_int_equal(unlink(in(f->dir, "journal.db")), 0);
    (void)unlink(in(f->dir, "journal.db-wal"));
    assert_ok(journal_restore(f->dir, copy, false, &err), err);
    assert_false(is_there(in(f->dir, "journal.db.old")));
    assert_non_null(strstr(plans_of(f), "kept"));
}

/* The name is taken by what a file cannot replace. */
static void what_cannot_be_put_aside_stays_the_journal(void **state)
{
    static const char *const names[] = {"journal.db.old", "journal.db.old-wal"};
    struct fixture *f = *state;
    const char *copy = copy_with_one_plan(f);
    struct bt_error err;

    for (size_t i = 0; i < 2; i++) {
        const char *in_the_way = in(f->dir, names[i]);
        FILE *wal = fopen(in(f->dir, "journal.db-wal"), "ae");
        assert_non_null(wal);
        assert_int_equal(fclose(wal), 0);
        assert_int_equal(mkdir(in_the_way, 0700), 0);
        assert_int_not_equal(journal_restore(f->dir, copy, true, &err), BT_OK);
        assert_non_null(strstr(err.msg, "cannot put "));
        assert_non_null(strstr(err.msg, " aside"));
        assert_int_equal(rmdir(in_the_way), 0);
        if (i == 0) {
            assert_non_null(strstr(plans_of(f), "lost"));
        }
    }
}

static void a_journal_that_a_daemon_holds_is_not_replaced(void **state)
{
    struct fixture *f = *state;
    const char *copy = copy_with_one_plan(f);
    struct bt_error err;

    assert_ok(journal_open(f->dir, &f->opt, &f->j, &err), err);
    assert_int_equal(journal_restore(f->dir, copy, true, &err), BT_CONFLICT);
    assert_int_equal(journal_backup_stopped(f->dir, in(f->root, "other"), &err), BT_CONFLICT);
    journal_close(f->j);
    f->j = NULL;
    assert_ok(journal_backup_stopped(f->dir, in(f->root, "other"), &err), err);
    assert_int_equal(journal_restore(f->dir, in(f->root, "nowhere"), true, &err), BT_NOT_FOUND);
    assert_non_null(strstr(plans_of(f), "lost"));
}

/* The lock alone: a daemon that has it may open the journal at any moment. */
static void a_directory_that_a_daemon_has_locked_is_left_alone(void **state)
{
    struct fixture *f = *state;
    const char *copy = copy_with_one_plan(f);
    struct bt_error err;
    const int lock = open(in(f->dir, "lock"), O_RDWR | O_CLOEXEC);

    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(journal_backup_stopped(f->dir, in(f->root, "other"), &err), BT_CONFLICT);
    assert_int_equal(journal_restore(f->dir, copy, true, &err), BT_CONFLICT);
    assert_false(is_there(in(f->root, "other")));
    assert_false(is_there(in(f->dir, "journal.db.old")));
    assert_int_equal(close(lock), 0);
    assert_ok(journal_backup_stopped(f->dir, in(f->root, "other"), &err), err);
}

static void a_copy_may_stand_in_the_working_directory(void **state)
{
    struct fixture *f = *state;
    char was[PATH_MAX];
    struct bt_error err;

    (void)copy_with_one_plan(f);
    assert_non_null(getcwd(was, sizeof was));
    assert_int_equal(chdir(f->root), 0);
    assert_ok(journal_backup_stopped(f->dir, "other", &err), err);
    assert_int_equal(chdir(was), 0);
    assert_true(is_there(in(f->root, "other")));
}

static void the_file_of_faults_is_the_owners_and_has_one_page(void **state)
{
    struct fixture *f = *state;
    const struct uuid plan = {{7}};
    struct faults faults;
    struct bt_error err;
    struct stat st;

    assert_int_equal(faults_open(f->root, &faults, &err), BT_OK);
    assert_int_equal(stat(in(f->root, "faults"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, FAULTS_MAX * FAULT_LINE_BYTES);
    for (int i = 0; i < FAULTS_MAX + 1; i++) {
        faults_add(&faults, plan, 11, 1700000000000);
    }
    faults_close(&faults);
    assert_int_equal(faults_read(f->root, &faults, &err), BT_OK);
    assert_int_equal(faults_count(&faults, plan), FAULTS_MAX - 1); /* the oldest makes room */
    assert_int_equal(stat(in(f->root, "faults"), &st), 0);
    assert_int_equal(st.st_size, FAULTS_MAX * FAULT_LINE_BYTES);
}

static void without_a_directory_there_are_no_faults_and_the_reason_is_said(void **state)
{
    struct fixture *f = *state;
    const struct uuid plan = {{7}};
    const char *nowhere = in(f->root, "nowhere");
    struct faults faults;
    struct bt_error err;
    char want[300];

    assert_int_equal(faults_read(nowhere, &faults, &err), BT_OK);
    assert_int_equal(faults_open(nowhere, &faults, &err), BT_NOT_FOUND);
    (void)snprintf(want, sizeof want, "%s/faults: No such file or directory", nowhere);
    assert_string_equal(err.msg, want);
    assert_int_equal(faults.fd, -1);
    faults_add(&faults, plan, 11, 1700000000000);
    assert_int_equal(faults_count(&faults, plan), 0);
    faults_close(&faults);
}

/* Whether SQLite has opened the very file is seen by the numbers of descriptors. */
static void a_copy_is_made_whatever_numbers_its_descriptors_have(void **state)
{
    struct fixture *f = *state;
    int taken[40];
    uint32_t n = 0;

    while (n < sizeof taken / sizeof taken[0]) {
        taken[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(taken[n++] >= 0);
    }
    (void)copy_with_one_plan(f);
    while (n > 0) {
        assert_int_equal(close(taken[--n]), 0);
    }
}

#define RULE(f) cmocka_unit_test_setup_teardown(f, fixture_sqlite, fixture_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_copy_takes_the_place_of_a_journal_that_is_kept_aside),
        RULE(a_copy_becomes_the_journal_of_a_directory_without_one),
        RULE(what_cannot_be_put_aside_stays_the_journal),
        RULE(a_journal_that_a_daemon_holds_is_not_replaced),
        RULE(a_directory_that_a_daemon_has_locked_is_left_alone),
        RULE(a_copy_may_stand_in_the_working_directory),
        RULE(a_copy_is_made_whatever_numbers_its_descriptors_have),
        RULE(the_file_of_faults_is_the_owners_and_has_one_page),
        RULE(without_a_directory_there_are_no_faults_and_the_reason_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
