/* A database of an agent's own: opening, versions, locks, cancels, and the setting of its path. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/sdk/step.h"
#include "agents/sdk/store/store.h"
#include "protocol/base/clock.h"
#include "tests/support/cmocka.h"
#include "tests/support/heap.h"
#include "tests/support/tree.h"

static char dir[] = "/tmp/baton-store-XXXXXX";
static char path[64];
static struct bt_error err;

static const char SCHEMA[] = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
                             "CREATE TABLE u(a INTEGER REFERENCES t(a))";

static struct store_form form(bool may_make)
{
    return (struct store_form){.path = path,
                               .version = 3,
                               .schema = SCHEMA,
                               .max_bytes = 1024 * 1024,
                               .may_make = may_make};
}

static int begin(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/own.db", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(tree_drop(dir), 0);
    memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
    return 0;
}

static void says(const char *part)
{
    if (strstr(err.msg, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    }
}

static void opens(struct store *s, const struct bt_step *step)
{
    const struct store_form f = form(true);

    if (store_open(s, &f, step, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static struct bt_step *step_of(const char *json)
{
    struct bt_step *step = NULL;

    assert_int_equal(step_new_from_json(str_from(json), "x", &step, &err), BT_OK);
    return step;
}

static int64_t number(struct store *s, const char *sql)
{
    int64_t n = -1;

    if (store_number(s, sql, &n, &err) != BT_OK) {
        fail_msg("%s: %s", sql, err.msg);
    }
    return n;
}

/* ---- opening ---- */

static void a_file_is_made_once_with_its_schema_and_version(void **state)
{
    const struct store_form reads = form(false);
    struct store s;

    (void)state;
    assert_int_equal(store_open(&s, &reads, NULL, &err), BT_NOT_FOUND);
    says("': there is none yet");
    store_close(&s);
    assert_int_equal(access(path, F_OK), -1);
    opens(&s, NULL);
    assert_false(s.in_work);
    assert_int_equal(number(&s, "PRAGMA user_version"), 3);
    assert_int_equal(store_run(&s, "INSERT INTO t VALUES(1,'x')", &err), BT_OK);
    store_close(&s);
    store_close(&s);
    opens(&s, NULL);
    assert_int_equal(number(&s, "SELECT count(*) FROM t"), 1);
    store_close(&s);
    assert_int_equal(store_open(&s, &reads, NULL, &err), BT_OK);
    assert_int_equal(number(&s, "SELECT count(*) FROM t"), 1);
    store_close(&s);
}

static void a_file_of_something_else_is_refused(void **state)
{
    struct store_form f = form(true);
    struct store s;
    FILE *file;

    (void)state;
    opens(&s, NULL);
    store_close(&s);
    f.version = 4;
    assert_int_equal(store_open(&s, &f, NULL, &err), BT_INVALID);
    says("is a database of something else, or of another version (3, not 4)");
    says(path);
    store_close(&s);
    assert_int_equal(unlink(path), 0);
    opens(&s, NULL); /* tables without a version are not ours either */
    assert_int_equal(store_run(&s, "PRAGMA user_version=0", &err), BT_OK);
    store_close(&s);
    f.version = 3;
    assert_int_equal(store_open(&s, &f, NULL, &err), BT_INVALID);
    says("another version (0, not 3)");
    store_close(&s);
    assert_int_equal(unlink(path), 0);
    file = fopen(path, "we");
    assert_non_null(file);
    for (int i = 0; i < 200; i++) {
        assert_true(fputs("this is no database at all\n", file) >= 0);
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(store_open(&s, &f, NULL, &err), BT_INVALID);
    says("the file is no database, or is damaged: ");
    store_close(&s);
    assert_int_equal(unlink(path), 0);
    file = fopen(path, "we"); /* a file that is there and empty */
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    f.may_make = false;
    assert_int_equal(store_open(&s, &f, NULL, &err), BT_NOT_FOUND);
    says("the database is empty");
    store_close(&s);
}

static void a_link_and_a_directory_are_no_database(void **state)
{
    struct store_form f = form(true);
    char link_path[80];
    struct store s;

    (void)state;
    (void)snprintf(link_path, sizeof link_path, "%s/link.db", dir);
    assert_int_equal(symlink(path, link_path), 0);
    opens(&s, NULL);
    store_close(&s);
    f.path = link_path;
    assert_int_equal(store_open(&s, &f, NULL, &err), BT_UNAUTHORIZED);
    says("cannot be opened: ");
    store_close(&s);
    f.path = dir;
    assert_int_not_equal(store_open(&s, &f, NULL, &err), BT_OK);
    store_close(&s);
}

static void a_schema_that_fails_leaves_nothing(void **state)
{
    struct store_form f = form(true);
    struct store s;

    (void)state;
    f.schema = "CREATE TABLE t(a); CREATE TABLE t(a)";
    assert_int_equal(store_open(&s, &f, NULL, &err), BT_IO);
    says("SQLite: table t already exists");
    store_close(&s);
    opens(&s, NULL); /* nothing of it is there: the right one can be made */
    store_close(&s);
}

/* The statements are the agent's own; what a file of somebody brings along is not obeyed. */
static void what_is_stored_is_closed_to_tricks(void **state)
{
    struct store s;

    (void)state;
    opens(&s, NULL);
    assert_int_equal(number(&s, "PRAGMA foreign_keys"), 1);
    assert_int_equal(number(&s, "PRAGMA max_page_count"), 1024 * 1024 / 4096);
    assert_int_equal(number(&s, "PRAGMA trusted_schema"), 0);
    assert_int_not_equal(store_run(&s, "ATTACH ':memory:' AS x", &err), BT_OK);
    assert_int_not_equal(store_run(&s, "INSERT INTO t(b) VALUES(\"text\")", &err), BT_OK);
    assert_int_not_equal(store_run(&s, "INSERT INTO u VALUES(77)", &err), BT_OK);
    assert_int_not_equal(
        store_run(&s, "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql='x'", &err),
        BT_OK); /* defensive */
    assert_int_equal(sqlite3_limit(s.sql, SQLITE_LIMIT_LENGTH, -1), 16 * 1024 * 1024);
    assert_int_equal(sqlite3_limit(s.sql, SQLITE_LIMIT_ATTACHED, -1), 0);
    store_close(&s);
}

static void a_full_database_says_how_much_it_may_have(void **state)
{
    struct store s;

    (void)state;
    opens(&s, NULL);
    assert_int_equal(store_run(&s, "INSERT INTO t VALUES(1,randomblob(2000000))", &err), BT_LIMIT);
    says("the database is full: it may have 1048576 bytes");
    store_close(&s);
}

/* ---- statements ---- */

static void rows_and_texts_come_back_as_they_were(void **state)
{
    struct store s;
    sqlite3_stmt *st;
    bool row;

    (void)state;
    opens(&s, NULL);
    assert_int_equal(store_prepare(&s, "INSERT INTO t(b) VALUES(?)", &st, &err), BT_OK);
    store_bind(st, 1, (struct str){"one and more", 3});
    assert_int_equal(store_do(&s, st, &err), BT_OK);
    store_bind(st, 1, (struct str){0}); /* no text is an empty one */
    assert_int_equal(store_do(&s, st, &err), BT_OK);
    (void)sqlite3_finalize(st);
    assert_int_equal(store_prepare(&s, "SELECT b, NULL FROM t ORDER BY a", &st, &err), BT_OK);
    assert_int_equal(store_next(&s, st, &row, &err), BT_OK);
    assert_true(row);
    assert_true(str_is(store_text(st, 0), "one"));
    assert_int_equal(store_text(st, 1).len, 0);
    assert_string_equal(store_text(st, 1).ptr, "");
    assert_int_equal(store_next(&s, st, &row, &err), BT_OK);
    assert_true(row);
    assert_int_equal(sqlite3_column_type(st, 0), SQLITE_TEXT);
    assert_int_equal(store_next(&s, st, &row, &err), BT_OK);
    assert_false(row);
    (void)sqlite3_finalize(st);
    assert_int_equal(number(&s, "SELECT a FROM t WHERE a > 9"), 0); /* no row */
    st = (sqlite3_stmt *)&s;
    assert_int_equal(store_prepare(&s, "SELEC", &st, &err), BT_IO);
    says("SQLite: near \"SELEC\": syntax error");
    assert_null(st);
    store_close(&s);
}

static void work_is_whole_or_not_at_all(void **state)
{
    struct store s;

    (void)state;
    opens(&s, NULL);
    assert_int_equal(store_begin(&s, &err), BT_OK);
    assert_true(s.in_work);
    assert_int_equal(store_run(&s, "INSERT INTO t VALUES(1,'a')", &err), BT_OK);
    store_rollback(&s);
    assert_false(s.in_work);
    store_rollback(&s);
    assert_int_equal(number(&s, "SELECT count(*) FROM t"), 0);
    assert_int_equal(store_begin(&s, &err), BT_OK);
    assert_int_equal(store_run(&s, "INSERT INTO t VALUES(1,'a')", &err), BT_OK);
    assert_int_equal(store_commit(&s, &err), BT_OK);
    assert_false(s.in_work);
    assert_int_equal(number(&s, "SELECT count(*) FROM t"), 1);
    assert_int_equal(store_begin(&s, &err), BT_OK);
    assert_int_equal(store_run(&s, "INSERT INTO t VALUES(2,'b')", &err), BT_OK);
    store_close(&s); /* what is not committed is not there */
    opens(&s, NULL);
    assert_int_equal(number(&s, "SELECT count(*) FROM t"), 1);
    assert_int_equal(store_commit(&s, &err), BT_IO);
    assert_int_equal(store_begin(&s, &err), BT_OK);
    assert_int_equal(store_begin(&s, &err), BT_IO);
    store_close(&s);
}

/* ---- cancel, time and locks ---- */

#define ENDLESS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"

static void a_cancel_and_a_deadline_interrupt_a_statement(void **state)
{
    struct bt_step *cancelled = step_of("{}");
    struct bt_step *late = step_of("{\"deadlineMs\":1500}");
    struct store s;
    int64_t n;

    (void)state;
    opens(&s, cancelled);
    atomic_store(&cancelled->cancelled, true);
    assert_int_equal(store_number(&s, ENDLESS, &n, &err), BT_CANCELLED);
    says("cancelled");
    assert_int_equal(n, 0);
    store_close(&s);
    opens(&s, late);
    assert_int_equal(store_number(&s, ENDLESS, &n, &err), BT_TIMEOUT);
    says("the database was not done in time");
    store_close(&s);
    step_free(cancelled);
    step_free(late);
}

/* The lock of another agent is waited for, but not after a cancel. */
static void a_cancelled_step_does_not_wait_for_a_lock(void **state)
{
    struct bt_step *step = step_of("{}");
    struct store other;
    struct store s;
    msec began;

    (void)state;
    opens(&other, NULL);
    opens(&s, step);
    assert_int_equal(store_begin(&other, &err), BT_OK);
    atomic_store(&step->cancelled, true);
    began = clock_mono_ms();
    assert_int_equal(store_begin(&s, &err), BT_CANCELLED);
    assert_false(s.in_work);
    assert_true(clock_mono_ms() - began < 5000);
    store_close(&s);
    store_close(&other);
    step_free(step);
}

static void a_rollback_is_not_interrupted(void **state)
{
    struct bt_step *step = step_of("{}");
    struct store s;
    int64_t n;

    (void)state;
    opens(&s, step);
    assert_int_equal(store_begin(&s, &err), BT_OK);
    assert_int_equal(store_run(&s,
                               "INSERT INTO t(b) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                               "SELECT i+1 FROM n LIMIT 5000) SELECT i FROM n",
                               &err),
                     BT_OK);
    atomic_store(&step->cancelled, true);
    store_rollback(&s);
    assert_true(sqlite3_get_autocommit(s.sql) != 0);
    assert_int_equal(store_number(&s, ENDLESS, &n, &err), BT_CANCELLED); /* watched again */
    store_close(&s);
    step_free(step);
}

/* ---- the setting ---- */

static void the_path_of_a_database_is_a_file_in_a_directory_that_is_made(void **state)
{
    static char longest[PATH_MAX + 8];
    char ret[PATH_MAX];
    char in[128];
    char want[256];

    (void)state;
    assert_int_equal(store_check_path("", ret, &err), BT_INVALID);
    says("database: expected the path of a file");
    assert_int_equal(store_check_path("/tmp/", ret, &err), BT_INVALID);
    memset(longest, 'x', PATH_MAX / 2);
    assert_int_equal(store_check_path(longest, ret, &err), BT_INVALID);
    longest[PATH_MAX / 2 - 1] = 0;
    assert_int_equal(store_check_path(longest, ret, &err), BT_OK); /* its name is cut */
    assert_int_equal(strlen(strrchr(ret, '/')), 256);
    (void)snprintf(in, sizeof in, "%s/new/own.db", dir);
    assert_int_equal(store_check_path(in, ret, &err), BT_OK);
    assert_string_equal(ret, in);
    assert_int_equal(store_check_path(in, ret, &err), BT_OK);
    (void)snprintf(in, sizeof in, "%s/new/../new/./own.db", dir);
    (void)snprintf(want, sizeof want, "%s/new/own.db", dir);
    assert_int_equal(store_check_path(in, ret, &err), BT_OK);
    assert_string_equal(ret, want);
    (void)snprintf(in, sizeof in, "%s/no/such/own.db", dir);
    assert_int_equal(store_check_path(in, ret, &err), BT_NOT_FOUND);
    says("database: making the directory '");
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(store_check_path("own.db", ret, &err), BT_OK);
    assert_string_equal(ret, path);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(store_check_path("/x.db", ret, &err), BT_OK);
    assert_string_equal(ret, "//x.db");
    (void)snprintf(in, sizeof in, "%s/new/own.db/deep", dir);
    {
        FILE *f = fopen(want, "we");
        assert_non_null(f);
        assert_int_equal(fclose(f), 0);
    }
    assert_int_not_equal(store_check_path(in, ret, &err), BT_OK); /* a file is no directory */
}

static void the_supervisors_directory_is_no_place_for_it(void **state)
{
    char ret[PATH_MAX];
    char in[128];

    (void)state;
    (void)snprintf(in, sizeof in, "%s/state", dir);
    assert_int_equal(mkdir(in, 0700), 0);
    assert_int_equal(setenv("BATON_STATE", in, 1), 0);
    (void)snprintf(in, sizeof in, "%s/state/own.db", dir);
    assert_int_equal(store_check_path(in, ret, &err), BT_INVALID);
    says("is the state directory of the supervisor; give a file elsewhere");
    assert_int_equal(store_check_path(path, ret, &err), BT_OK);
    assert_int_equal(unsetenv("BATON_STATE"), 0);
}

static void open_and_close(void *self)
{
    struct store_form f = form(true);
    struct store s;

    (void)self;
    opens(&s, NULL);
    assert_int_equal(number(&s, "SELECT count(*) FROM t"), 0);
    store_close(&s);
    f.version = 9;
    assert_int_equal(store_open(&s, &f, NULL, &err), BT_INVALID);
    store_close(&s);
}

static void a_store_is_given_back(void **state)
{
    (void)state;
    heap_is_given_back(open_and_close, NULL);
    for (int i = 0; i < 100; i++) {
        open_and_close(NULL);
    }
    {
        const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_in_range(fd, 0, 50); /* no descriptor is left */
        assert_int_equal(close(fd), 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_made_once_with_its_schema_and_version),
        TEST(a_file_of_something_else_is_refused),
        TEST(a_link_and_a_directory_are_no_database),
        TEST(a_schema_that_fails_leaves_nothing),
        TEST(what_is_stored_is_closed_to_tricks),
        TEST(a_full_database_says_how_much_it_may_have),
        TEST(rows_and_texts_come_back_as_they_were),
        TEST(work_is_whole_or_not_at_all),
        TEST(a_cancel_and_a_deadline_interrupt_a_statement),
        TEST(a_cancelled_step_does_not_wait_for_a_lock),
        TEST(a_rollback_is_not_interrupted),
        TEST(the_path_of_a_database_is_a_file_in_a_directory_that_is_made),
        TEST(the_supervisors_directory_is_no_place_for_it),
        TEST(a_store_is_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
