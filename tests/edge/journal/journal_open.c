/* What a journal rejects at opening, who may open it, and that older versions open (G21, G28). */
#include "tests/unit/journal/journal_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/edge/journal/workload.h"

static char dir[64];
static char file[128];
static const struct journal_options OPT = {.durability = DURABILITY_PROCESS};

static int new_dir(void **state)
{
    (void)state;
    work_dir(dir);
    (void)snprintf(file, sizeof file, "%s/journal.db", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    fixture_remove_tree(dir);
    return 0;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void expect_refusal(enum bt_code code, const char *word)
{
    struct journal *j = NULL;
    struct bt_error err = {.msg = ""};

    assert_int_equal(journal_open_sqlite(dir, &OPT, &j, &err), code);
    assert_null(j);
    if (strstr(err.msg, word) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, word);
    }
}

static void make_sqlite_file(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void files_that_are_not_ours_are_refused_with_a_reason(void **state)
{
    static char text[5000];

    (void)state;
    write_file(file, "", 0);
    expect_refusal(BT_INVALID, "is empty");
    memset(text, 'x', sizeof text);
    write_file(file, text, sizeof text);
    expect_refusal(BT_INVALID, "not a journal of Baton");
    write_file(file, text, 50);
    expect_refusal(BT_INVALID, "not a journal of Baton");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    expect_refusal(BT_INVALID, "not a regular file");
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    expect_refusal(BT_INVALID, "not a regular file");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(symlink("/dev/null", file), 0);
    expect_refusal(BT_INVALID, "not a regular file");
    assert_int_equal(unlink(file), 0);
    make_sqlite_file("CREATE TABLE of_somebody(x); INSERT INTO of_somebody VALUES(1);");
    expect_refusal(BT_INVALID, "another program");
}

static void a_journal_of_a_newer_version_is_refused_and_left_as_it_is(void **state)
{
    struct journal *j;
    struct bt_error err;
    struct buf report;

    (void)state;
    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    add_event(j, 0, 0, "x");
    commit(j);
    journal_close(j);
    make_sqlite_file("PRAGMA user_version = 999;");
    expect_refusal(BT_INVALID, "newer Baton");
    buf_init(&report, 10000);
    assert_int_equal(journal_inspect(dir, NULL, NULL, &report, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "999"));
    buf_done(&report);
    make_sqlite_file("PRAGMA user_version = 8;");
    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    assert_int_equal(journal_next_seq(j), 2);
    journal_close(j);
}

static void directories_that_cannot_be_used_are_named(void **state)
{
    struct journal *j = NULL;
    struct bt_error err;
    char path[5000];

    (void)state;
    write_file(file, "", 0);
    assert_int_equal(journal_open_sqlite(file, &OPT, &j, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "not a directory"));
    assert_int_not_equal(journal_open_sqlite("/proc/none/of/it", &OPT, &j, &err), BT_OK);
    assert_non_null(strstr(err.msg, "/proc/none"));
    assert_int_equal(journal_open_sqlite("", &OPT, &j, &err), BT_INVALID);
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    assert_int_equal(journal_open_sqlite(path, &OPT, &j, &err), BT_INVALID);
    assert_null(j);
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refusal(BT_INVALID, "not a regular file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    expect_refusal(BT_IO, "lock");
}

static void a_log_without_its_journal_is_not_mixed_into_a_new_one(void **state)
{
    char wal[160];

    (void)state;
    (void)snprintf(wal, sizeof wal, "%s-wal", file);
    write_file(wal, "old frames", 10);
    expect_refusal(BT_INVALID, "journal.db-wal");
}

static void expect_private(const char *folder, const char *name, off_t at_least)
{
    struct stat st;

    (void)snprintf(file, sizeof file, "%s/%s", folder, name);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(st.st_size >= at_least);
}

static void files_are_private_and_the_directory_is_made(void **state)
{
    struct journal *j;
    struct bt_error err;
    struct stat st;
    char deep[128];

    (void)state;
    (void)snprintf(deep, sizeof deep, "%s/a/b", dir);
    assert_ok(
        journal_open_sqlite(deep, &(struct journal_options){.ballast_bytes = 200000}, &j, &err),
        err);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    expect_private(deep, "journal.db", 1);
    expect_private(deep, "journal.db-wal", 200000);
    expect_private(deep, "lock", 1);
    assert_false(journal_storage_low(j));
    journal_close(j);
    expect_private(deep, "journal.db", 1);
    expect_private(deep, "ballast", 200000); /* the log's room; the log is all in journal.db */
    (void)snprintf(file, sizeof file, "%s/journal.db-wal", deep);
    assert_int_equal(stat(file, &st), -1);
}

/* In a child: 0 = rejected as expected. */
static int try_second(const char *want_pid)
{
    struct journal *j = NULL;
    struct bt_error err;
    struct buf report;
    enum bt_code code = journal_open_sqlite(dir, &OPT, &j, &err);

    if (code != BT_CONFLICT || j != NULL || strstr(err.msg, want_pid) == NULL) {
        return 1;
    }
    buf_init(&report, 1000);
    return journal_inspect(dir, NULL, NULL, &report, &err) == BT_CONFLICT ? 0 : 2;
}

static void a_second_daemon_is_refused_and_the_first_is_unharmed(void **state)
{
    struct journal *j;
    struct bt_error err;
    char pid[32];

    (void)state;
    (void)snprintf(pid, sizeof pid, "pid %ld", (long)getpid());
    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    for (uint64_t i = 1; i <= 20; i++) {
        int status = 0;
        pid_t child;
        add_event(j, 1, i, "before");
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(try_second(pid));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        commit(j);
    }
    assert_int_equal(journal_committed_seq(j), 20);
    journal_close(j);
    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err); /* free again */
    assert_int_equal(journal_next_seq(j), 21);
    journal_close(j);
}

static void inspection_tells_a_sound_journal_and_changes_nothing(void **state)
{
    struct told told;
    struct bt_error err;
    struct buf report;
    struct stat before;
    struct stat after;

    (void)state;
    buf_init(&report, 10000);
    assert_int_equal(journal_inspect(dir, NULL, NULL, &report, &err), BT_NOT_FOUND);
    told = work(dir, &OPT, 10, NULL, NULL);
    assert_int_equal(stat(file, &before), 0);
    assert_ok(journal_inspect(dir, NULL, NULL, &report, &err), err);
    assert_non_null(strstr(buf_cstr(&report), "schema version 8, "));
    assert_int_equal(stat(file, &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(before.st_size, after.st_size);
    (void)work_check(dir, &told, NULL);
    buf_done(&report);
}

/* A plan's checksum covers its kind of job: a kind that was lost or changed must not make a plan of
 * it. */
static void the_kind_of_a_job_is_under_its_checksum(void **state)
{
    static const char *const HARM[] = {"UPDATE errands SET kind = 'plannimg'",
                                       "DELETE FROM errands",
                                       "INSERT INTO errands VALUES(1, 'planning')"};
    struct journal_plan p = {.plan_id = uuid_new(),
                             .goal = STR_LIT("ask"),
                             .status = STR_LIT("running"),
                             .job = STR_LIT("planning")};
    struct seen s = {{0}};
    struct journal_plan got;
    struct journal *j;
    struct bt_error err;
    struct buf report;
    uint64_t ix;

    (void)state;
    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    (void)add_plan(j, "", "plan");
    assert_ok(journal_plan_add(j, &p, &ix, &err), err);
    commit(j);
    journal_close(j);
    buf_init(&report, 10000);
    assert_ok(journal_inspect(dir, NULL, NULL, &report, &err), err);
    for (size_t i = 0; i < sizeof HARM / sizeof HARM[0]; i++) {
        make_sqlite_file(HARM[i]);
        assert_int_equal(journal_inspect(dir, NULL, NULL, &report, &err), BT_IO);
        assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
        assert_int_equal(journal_plan_by_id(j, p.plan_id, &got, &err), BT_IO);
        journal_close(j);
    }
    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    assert_ok(journal_plans_open(j, see_plan, &s, &err), err);
    assert_int_equal(s.n, 0); /* both were quarantined */
    journal_close(j);
    buf_done(&report);
}

/* A schedule whose rule, document or state was changed or lost is named; the others are sound. */
static void what_a_schedule_is_and_where_it_is_are_under_checksums(void **state)
{
    static const char *const HARM[] = {
        "UPDATE schedules SET rule = 'x' WHERE name = 'a'",
        "UPDATE schedules SET owner = 'x' WHERE name = 'a'",
        "UPDATE schedules SET doc = 'x' WHERE name = 'a'",
        "UPDATE schedule_state SET state = 'x' WHERE ix = 1",
        "DELETE FROM schedule_state WHERE ix = 1",
    };
    struct journal_schedule p = {
        .name = STR_LIT("a"), .rule = STR_LIT("r"), .doc = STR_LIT("d"), .state = STR_LIT("s")};
    struct journal_schedule got;
    struct journal *j;
    struct bt_error err;
    struct buf report;
    uint64_t ix;

    (void)state;
    buf_init(&report, 10000);
    for (size_t i = 0; i < sizeof HARM / sizeof HARM[0]; i++) {
        assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
        p.name = STR_LIT("a");
        assert_ok(journal_schedule_put(j, &p, &ix, &err), err);
        p.name = STR_LIT("b");
        assert_ok(journal_schedule_put(j, &p, &ix, &err), err);
        commit(j);
        journal_close(j);
        assert_ok(journal_inspect(dir, NULL, NULL, &report, &err), err);
        make_sqlite_file(HARM[i]);
        assert_int_equal(journal_inspect(dir, NULL, NULL, &report, &err), BT_IO);
        assert_non_null(strstr(err.msg, "schedule"));
        assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
        assert_int_equal(journal_schedule_by_name(j, STR_LIT("a"), &got, &err), BT_IO);
        assert_ok(journal_schedule_by_name(j, STR_LIT("b"), &got, &err), err);
        journal_close(j);
    }
    buf_done(&report);
}

static void set_age(const char *path, int days)
{
    const struct timespec then = {.tv_sec = (time_t)(clock_wall_ms() / 1000) - days * 24 * 3600};
    const struct timespec times[2] = {then, then};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void open_and_close(void)
{
    struct journal *j;
    struct bt_error err;

    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    journal_close(j);
}

/* The copy beside it is the journal as it was; it is there for 30 days. */
static void expect_copy(const char *version, const char *bytes, size_t n)
{
    struct told told = {.acked = 36};
    struct buf report;
    struct bt_error err;
    struct stat st;
    char copy[512];

    (void)snprintf(copy, sizeof copy, "%s.v%s", file, strrchr(version, ' ') + 1);
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    set_age(copy, 29);
    open_and_close();
    assert_int_equal(stat(copy, &st), 0);
    set_age(copy, 31);
    open_and_close();
    assert_int_equal(stat(copy, &st), -1);
    write_file(file, bytes, n);
    open_and_close();
    assert_int_equal(rename(copy, file), 0);
    buf_init(&report, 10000);
    assert_ok(journal_inspect(dir, NULL, NULL, &report, &err), err);
    assert_non_null(strstr(buf_cstr(&report), version));
    buf_done(&report);
    assert_int_equal(work_check(dir, &told, NULL), 36);
}

static uint32_t no_blobs(const void *body, size_t len, uint64_t *ret, uint32_t max)
{
    (void)body;
    (void)len;
    (void)ret;
    (void)max;
    return 0;
}

static void verify_copy(const char *plans)
{
    char copy[600];
    struct bt_error err;
    struct buf report;

    (void)snprintf(copy, sizeof copy, "%s/copy.db", dir);
    buf_init(&report, 10000);
    assert_ok(journal_backup_stopped(dir, copy, &err), err);
    assert_ok(journal_verify(copy, no_blobs, NULL, NULL, &report, &err), err);
    assert_non_null(strstr(buf_cstr(&report), plans));
    (void)unlink(copy);
    buf_done(&report);
}

static void what_was_written_over_some_starts_is_as_it_was_to_verify(void **state)
{
    (void)state;
    (void)work(dir, &OPT, 5, NULL, NULL);
    (void)work(dir, &OPT, 12, NULL, NULL);
    verify_copy("9 plans");
}

/* A journal that an older version wrote: a file of the tree, opened from a copy. */
static void open_old(const char *name, const char *version)
{
    struct told told = {.acked = 36};
    static char bytes[200000];
    char path[512];
    struct bt_error err;
    struct buf report;
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
    f = fopen(path, "rb");
    assert_non_null(f);
    n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    write_file(file, bytes, n);
    buf_init(&report, 10000);
    assert_ok(journal_inspect(dir, NULL, NULL, &report, &err), err); /* unchanged */
    assert_non_null(strstr(buf_cstr(&report), version));
    assert_int_equal(work_check(dir, &told, NULL), 36);
    buf_clear(&report);
    assert_ok(journal_inspect(dir, NULL, NULL, &report, &err), err); /* as this version left it */
    assert_non_null(strstr(buf_cstr(&report), "schema version 8"));
    buf_done(&report);
    verify_copy("3 plans"); /* those of an older version have chains since the migration */
    expect_copy(version, bytes, n);
}

static void a_journal_of_version_1_opens_with_all_it_holds(void **state)
{
    (void)state;
    open_old("journal-v1.db", "schema version 1");
}

static void a_journal_of_version_2_opens_with_all_it_holds(void **state)
{
    (void)state;
    open_old("journal-v2.db", "schema version 2");
}

/* Somebody opened it with another program, which left it without a log. */
static void a_journal_without_a_log_gets_one_again(void **state)
{
    struct journal_options opt = {.ballast_bytes = 200000};
    struct told told = {.acked = 0};
    struct journal *j;
    struct bt_error err;
    sqlite3 *db = NULL;

    (void)state;
    told = work(dir, &OPT, 10, NULL, NULL);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_false(journal_storage_low(j));
    journal_close(j);
    expect_private(dir, "ballast", 200000);
    (void)snprintf(file, sizeof file, "%s/journal.db", dir);
    (void)work_check(dir, &told, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_dir, remove_dir)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(files_that_are_not_ours_are_refused_with_a_reason),
        TEST(a_journal_of_a_newer_version_is_refused_and_left_as_it_is),
        TEST(directories_that_cannot_be_used_are_named),
        TEST(a_log_without_its_journal_is_not_mixed_into_a_new_one),
        TEST(files_are_private_and_the_directory_is_made),
        TEST(a_second_daemon_is_refused_and_the_first_is_unharmed),
        TEST(inspection_tells_a_sound_journal_and_changes_nothing),
        TEST(the_kind_of_a_job_is_under_its_checksum),
        TEST(what_a_schedule_is_and_where_it_is_are_under_checksums),
        TEST(a_journal_of_version_1_opens_with_all_it_holds),
        TEST(a_journal_of_version_2_opens_with_all_it_holds),
        TEST(a_journal_without_a_log_gets_one_again),
        TEST(what_was_written_over_some_starts_is_as_it_was_to_verify),
    };
    if (argc == 3 && strcmp(argv[1], "--make-golden") == 0) { /* for the next schema version */
        struct told told = work(argv[2], &OPT, 12, NULL, NULL);
        (void)printf("%llu\n", (unsigned long long)told.acked);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
