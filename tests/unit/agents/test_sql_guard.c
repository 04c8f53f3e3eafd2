/* Query only reads; no statement leaves its database; every statement has a time limit. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/sql/db.h"
#include "agents/sql/temp_vfs.h"
#include "protocol/base/clock.h"
#include "tests/unit/agents/sql_world.h"

/* ---- query only reads ---- */

static void query_cannot_change_anything(void **state)
{
    static const char *const statements[] = {
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET v = 2",
        "DELETE FROM t",
        "REPLACE INTO t VALUES (2)",
        "DROP TABLE t",
        "ALTER TABLE t RENAME TO u",
        "CREATE TABLE u(a)",
        "CREATE TEMP TABLE u(a)",
        "CREATE VIEW u AS SELECT 1",
        "CREATE INDEX u ON t(v)",
        "CREATE VIRTUAL TABLE u USING fts5(a)",
        "WITH x AS (SELECT 5) INSERT INTO t SELECT * FROM x",
        "WITH x AS (SELECT 5) DELETE FROM t RETURNING *",
        "WITH x(a) AS (SELECT 5) UPDATE t SET v = (SELECT a FROM x)",
        "EXPLAIN DELETE FROM t",
        "ATTACH ':memory:' AS other",
        "ATTACH '/tmp/baton-test-attached.db' AS other",
        "DETACH main",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT s",
        "VACUUM",
        "VACUUM INTO '/tmp/baton-test-attached.db'",
        "REINDEX",
        "ANALYZE",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 7",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA temp_store_directory = '/tmp'",
        "PRAGMA database_list",
        "PRAGMA wal_checkpoint",
        "SELECT load_extension('x')",
    };

    (void)state;
    sql_do("CREATE TABLE t(v)");
    sql_do("INSERT INTO t VALUES (1)");
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        const char *reply = sql_run(sql_query, sql_writer, statements[i], "");
        steps_expect(reply, "\"class\":\"PERMISSION_DENIED\"");
        steps_expect(reply, "not allowed here: ");
    }
    steps_expect(sql_run(sql_query, sql_writer, "UPDATE sqlite_master SET sql = 'x'", ""),
                 "may not be modified");
    steps_expect(sql_ask("SELECT v FROM t"), "\"rows\":[[1]]");
    steps_expect(sql_ask("PRAGMA user_version"), "\"rows\":[[0]]");
    assert_int_equal(access("/tmp/baton-test-attached.db", F_OK), -1);
}

static void harmless_pragmas_are_allowed(void **state)
{
    (void)state;
    sql_do("CREATE TABLE t(v INTEGER)");
    steps_expect(sql_ask("PRAGMA table_info(t)"), "\"v\",\"INTEGER\"");
    steps_expect(sql_ask("SELECT name FROM pragma_table_info('t')"), "\"rows\":[[\"v\"]]");
    steps_expect(sql_ask("PRAGMA integrity_check"), "\"ok\"");
}

static void statement_is_exactly_one(void **state)
{
    (void)state;
    steps_expect(sql_ask("SELECT 1; SELECT 2"), "expected exactly one statement");
    steps_expect(sql_ask("SELECT 1; garbage"), "expected exactly one statement");
    steps_expect(sql_ask("SELECT 1; DROP TABLE t"), "expected exactly one statement");
    steps_expect(sql_ask(""), "expected a statement, got none");
    steps_expect(sql_ask(" -- nothing"), "expected a statement, got none");
    steps_expect(sql_ask("SELECT 1; -- done\n /* really */ ;"), "\"rows\":[[1]]");
    steps_expect(sql_run(sql_execute, sql_writer, "CREATE TABLE a(b); CREATE TABLE c(d)", ""),
                 "expected exactly one statement");
}

static void mistakes_are_named(void **state)
{
    (void)state;
    steps_expect(sql_ask("SELEC 1"), "syntax error (at byte 0)");
    steps_expect(sql_ask("SELECT * FROM nowhere"), "no such table: nowhere");
    sql_do("CREATE TABLE t(v)");
    steps_expect(sql_ask("SELECT \"typo\" FROM t"), "no such column: typo");
    steps_expect(sql_ask("SELECT \"typo\" FROM t"), "\"class\":\"VALIDATION_ERROR\"");
}

/* ---- time ---- */

static const char endless[] = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
                              "SELECT count(*) FROM c";

static void endless_statement_ends_at_the_deadline(void **state)
{
    char json[512];
    msec before = clock_mono_ms();

    (void)state;
    (void)snprintf(json, sizeof json, "{\"deadlineMs\":50,\"parameters\":{\"sql\":\"%s\"}}",
                   endless);
    steps_expect(steps_run(steps_make("x", json), sql_query, sql_reader), "\"class\":\"TIMEOUT\"");
    assert_true(clock_mono_ms() - before < 5000);
}

static void *cancel(void *arg)
{
    struct bt_step *step = arg;

    atomic_store(&step->cancelled, true);
    return NULL;
}

static void cancel_ends_the_statement(void **state)
{
    char json[512];
    struct bt_step *step;
    pthread_t thread;

    (void)state;
    (void)snprintf(json, sizeof json, "{\"parameters\":{\"sql\":\"%s\"}}", endless);
    step = steps_make("x", json);
    assert_int_equal(pthread_create(&thread, NULL, cancel, step), 0);
    steps_expect(steps_run(step, sql_query, sql_reader), "\"class\":\"CANCELLED\"");
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void locked_database_is_worth_another_attempt(void **state)
{
    char path[128];
    sqlite3 *other = NULL;
    const char *reply;

    (void)state;
    sql_do("CREATE TABLE t(v)");
    (void)snprintf(path, sizeof path, "%s/main.db", sql_dir());
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    reply = sql_run(sql_execute, sql_writer, "INSERT INTO t VALUES (1)", "");
    steps_expect(reply, "\"class\":\"SERVICE_UNAVAILABLE\"");
    steps_expect(reply, "\"retryable\":true");
    steps_expect(sql_ask("SELECT count(*) FROM t"), "\"rows\":[[0]]");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    sql_do("INSERT INTO t VALUES (1)");
}

/* ---- execute ---- */

static void execute_is_refused_when_read_only(void **state)
{
    (void)state;
    steps_expect(sql_run(sql_execute, sql_reader, "CREATE TABLE t(v)", ""),
                 "\"class\":\"PERMISSION_DENIED\"");
    for (size_t i = 0, n = 0; i < (sql_skills(&n), n); i++) {
        const struct bt_skill *skill = &sql_skills(&n)[i];
        assert_true(sql_skill_offered(skill, sql_writer));
        assert_int_equal(sql_skill_offered(skill, sql_reader), skill->run != sql_execute);
    }
}

static void execute_stays_in_its_database_and_its_transaction(void **state)
{
    static const char *const statements[] = {"ATTACH '/tmp/baton-test-attached.db' AS o",
                                             "VACUUM INTO '/tmp/baton-test-attached.db'",
                                             "BEGIN",
                                             "COMMIT",
                                             "ROLLBACK",
                                             "RELEASE s",
                                             "PRAGMA journal_mode = DELETE",
                                             "PRAGMA writable_schema = 1",
                                             "CREATE VIRTUAL TABLE u USING fts5(a)",
                                             "SELECT load_extension('x')",
                                             "CREATE TABLE _baton_done(a)",
                                             "INSERT INTO _baton_done VALUES (1, 2, 3, 4)",
                                             "DROP TABLE _baton_done"};

    (void)state;
    steps_run(steps_make("x", "{}"), sql_schema, sql_writer);
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        const char *reply = sql_run(sql_execute, sql_writer, statements[i], "");
        steps_expect(reply, "\"outcome\":\"failed\"");
    }
    assert_int_equal(access("/tmp/baton-test-attached.db", F_OK), -1);
}

static void execute_tells_what_it_changed(void **state)
{
    (void)state;
    sql_do("CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE)");
    steps_expect(
        sql_run(sql_execute, sql_writer, "INSERT INTO t(b) VALUES (1), (2) RETURNING a", ""),
        "\"changes\":2,\"columns\":[\"a\"],\"types\":{\"a\":\"integer\"},\"rows\":[[1],[2]]");
    steps_expect(sql_run(sql_execute, sql_writer, "UPDATE t SET b = b RETURNING a", ""),
                 "\"text\":\"2 rows changed\\n\\n| a |\\n| ---: |\\n| 1 |\\n| 2 |\\n\\n2 rows\"");
    steps_expect(sql_run(sql_execute, sql_writer, "UPDATE t SET b = b WHERE a = 1", ""),
                 "\"text\":\"1 row changed\"");
    steps_expect(sql_run(sql_execute, sql_reader, "UPDATE t SET b = b RETURNING a", ""),
                 "\"class\":\"PERMISSION_DENIED\"");
    steps_expect(sql_run(sql_execute, sql_writer, "UPDATE t SET b = b RETURNING a", ",\"limit\":1"),
                 "\"rows\":[[1]],\"rowCount\":1,\"truncated\":true");
    steps_expect(sql_run(sql_execute, sql_writer, "INSERT INTO t(b) VALUES (3), (1)", ""),
                 "UNIQUE constraint failed");
    steps_expect(sql_ask("SELECT count(*) FROM t"), "\"rows\":[[2]]");
}

static void tables_of_the_user_can_be_altered(void **state)
{
    (void)state;
    sql_do("CREATE TABLE t(v)");
    sql_do("ALTER TABLE t ADD COLUMN w DEFAULT 7");
    sql_do("ALTER TABLE t RENAME COLUMN w TO x");
    sql_do("ALTER TABLE t RENAME TO u");
    sql_do("INSERT INTO u(v) VALUES (1)");
    steps_expect(sql_ask("SELECT v, x FROM u"), "\"rows\":[[1,7]]");
    sql_do("CREATE INDEX i ON u(v)");
    sql_do("DROP INDEX i");
    sql_do("ALTER TABLE u DROP COLUMN x");
    sql_do("DROP TABLE u");
}

static void repeated_key_is_answered_from_the_first_time(void **state)
{
    struct bt_step *step;

    (void)state;
    sql_do("CREATE TABLE t(v)");
    for (int attempt = 1; attempt <= 3; attempt++) {
        step = steps_make("x", "{\"parameters\":{\"sql\":\"INSERT INTO t VALUES (1)\"}}");
        step->plan_id = "019ab000-0000-7000-8000-000000000001";
        step->key = "019ab000-0000-7000-8000-000000000001/1/a";
        steps_expect(steps_run(step, sql_execute, sql_writer), "\"changes\":1");
    }
    steps_expect(sql_ask("SELECT count(*) FROM t"), "\"rows\":[[1]]");
    steps_expect(sql_run(sql_execute, sql_writer, "DELETE FROM _baton_done", ""),
                 "changing the agent's own table");
}

static const char *insert_with_key(const char *key)
{
    struct bt_step *step =
        steps_make("x", "{\"parameters\":{\"sql\":\"INSERT INTO t VALUES (1)\"}}");

    step->plan_id = "019ab000-0000-7000-8000-000000000001";
    step->key = key;
    return steps_run(step, sql_execute, sql_writer);
}

/* Whether the work was done before is not known then: it is not done. */
static void a_key_that_cannot_be_looked_up_does_nothing(void **state)
{
    char path[4200];
    sqlite3 *raw = NULL;

    (void)state;
    sql_do("CREATE TABLE t(v)");
    (void)snprintf(path, sizeof path, "%s/main.db", sql_dir());
    assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
    assert_int_equal(sqlite3_exec(raw,
                                  "DROP TABLE IF EXISTS _baton_done; CREATE VIEW _baton_done AS "
                                  "SELECT 1 AS n, abs(-9223372036854775807 - v) AS key, "
                                  "'' AS data, '' AS text FROM (SELECT 1 AS v)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(raw), SQLITE_OK);
    steps_expect(insert_with_key("019ab000-0000-7000-8000-000000000001/1/a"), "integer overflow");
    steps_expect(sql_ask("SELECT count(*) FROM t"), "\"rows\":[[0]]");
}

/* Triggers on the agent's own table, and on what it writes to, would run as the agent. */
static void no_trigger_and_no_index_reaches_the_agents_own_table(void **state)
{
    static const char *const attacks[] = {
        "CREATE TRIGGER w BEFORE INSERT ON _baton_done BEGIN DELETE FROM _baton_done; END",
        "CREATE TRIGGER w AFTER INSERT ON _BATON_DONE BEGIN DELETE FROM t; END",
        "CREATE TEMP TRIGGER w BEFORE INSERT ON main._baton_done BEGIN DELETE FROM t; END",
        "CREATE UNIQUE INDEX w ON _baton_done(length(key))",
        "CREATE INDEX _baton_w ON t(v)",
        "CREATE TRIGGER _baton_w AFTER INSERT ON t BEGIN SELECT 1; END",
        "ALTER TABLE _baton_done ADD COLUMN w",
    };

    (void)state;
    sql_do("CREATE TABLE t(v)");
    steps_expect(insert_with_key("019ab000-0000-7000-8000-000000000001/1/a"), "\"changes\":1");
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        steps_expect(sql_run(sql_execute, sql_writer, attacks[i], ""),
                     "changing the agent's own table");
    }
    /* Allowed to be made, but not to run against it. */
    sql_do("CREATE TRIGGER w AFTER INSERT ON t BEGIN DELETE FROM _baton_done; END");
    steps_expect(sql_run(sql_execute, sql_writer, "INSERT INTO t VALUES (2)", ""),
                 "changing the agent's own table");
    sql_do("DROP TRIGGER w");
    sql_do("CREATE TRIGGER w AFTER INSERT ON t BEGIN UPDATE t SET v = 7; END");
    sql_do("INSERT INTO t VALUES (3)");
    steps_expect(sql_ask("SELECT group_concat(v) FROM t"), "7,7");
}

/* What got in through an earlier version, or another program, must not run either. */
static void a_trigger_that_is_there_already_does_not_run_as_the_agent(void **state)
{
    char path[4200];
    sqlite3 *raw = NULL;

    (void)state;
    sql_do("CREATE TABLE t(v)");
    steps_expect(insert_with_key("019ab000-0000-7000-8000-000000000001/1/a"), "\"changes\":1");
    (void)snprintf(path, sizeof path, "%s/main.db", sql_dir());
    assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
    assert_int_equal(sqlite3_exec(raw,
                                  "CREATE TRIGGER w BEFORE INSERT ON _baton_done BEGIN "
                                  "DELETE FROM t; DELETE FROM _baton_done; END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(raw), SQLITE_OK);
    steps_expect(insert_with_key("019ab000-0000-7000-8000-000000000001/1/b"), "\"changes\":1");
    steps_expect(insert_with_key("019ab000-0000-7000-8000-000000000001/1/a"), "\"changes\":1");
    steps_expect(sql_ask("SELECT count(*) FROM t"), "\"rows\":[[2]]");
    steps_expect(sql_ask("SELECT count(*) FROM _baton_done"), "\"rows\":[[2]]");
}

static void database_does_not_grow_past_its_cap(void **state)
{
    struct sql_settings *small =
        sql_settings_make(",\"readOnly\":false,\"maxDatabaseBytes\":65536");

    (void)state;
    steps_expect(sql_run(sql_execute, small, "CREATE TABLE t(v)", ""), "\"outcome\":\"completed\"");
    steps_expect(sql_run(sql_execute, small, "INSERT INTO t VALUES (zeroblob(100000))", ""),
                 "the database is full");
    steps_expect(sql_ask("SELECT count(*) FROM t"), "\"rows\":[[0]]");
    /* 16 pages of 4096 bytes, and not one more */
    while (strstr(sql_run(sql_execute, small, "INSERT INTO t VALUES (zeroblob(4000))", ""),
                  "\"outcome\":\"completed\"") != NULL) {
    }
    steps_expect(sql_ask("PRAGMA page_count"), "\"rows\":[[16]]");
    free(small);
}

/* ---- temporary files ---- */

static sqlite3_file *open_temp(sqlite3_vfs *vfs)
{
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);

    assert_non_null(file);
    assert_int_equal(vfs->xOpen(vfs, NULL, file,
                                SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                    SQLITE_OPEN_EXCLUSIVE | SQLITE_OPEN_DELETEONCLOSE,
                                NULL),
                     SQLITE_OK);
    return file;
}

static void temporary_files_hold_the_limit_together_and_not_a_byte_more(void **state)
{
    static const char block[65536];
    sqlite3_vfs *vfs = sqlite3_vfs_find(temp_vfs_use(65536));
    sqlite3_file *a = open_temp(vfs);
    sqlite3_file *b = open_temp(vfs);

    (void)state;
    assert_int_equal(a->pMethods->xWrite(a, block, 65535, 0), SQLITE_OK);
    assert_int_equal(b->pMethods->xWrite(b, block, 1, 0), SQLITE_OK); /* N */
    assert_false(temp_vfs_was_full());
    assert_int_equal(b->pMethods->xWrite(b, block, 1, 1), SQLITE_FULL); /* N + 1 */
    assert_true(temp_vfs_was_full());
    assert_int_equal(a->pMethods->xWrite(a, block, 65535, 0), SQLITE_OK); /* in place */
    assert_int_equal(a->pMethods->xTruncate(a, 10), SQLITE_OK);
    assert_int_equal(b->pMethods->xWrite(b, block, 65525, 1), SQLITE_OK);
    assert_int_equal(a->pMethods->xWrite(a, block, 1, 10), SQLITE_FULL);
    assert_int_equal(b->pMethods->xClose(b), SQLITE_OK);
    assert_int_equal(a->pMethods->xWrite(a, block, 65526, 10), SQLITE_OK);
    assert_int_equal(a->pMethods->xClose(a), SQLITE_OK);
    free(a);
    free(b);
}

static void a_statement_that_spills_too_much_names_the_setting(void **state)
{
    static const char sql[] =
        "SELECT count(*) FROM (SELECT DISTINCT printf('%0200d', i) FROM (WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) SELECT i FROM n))";
    struct sql_settings *small = sql_settings_make(",\"maxDatabaseBytes\":1048576");
    const char *reply = sql_run(sql_query, small, sql, "");

    (void)state;
    steps_expect(reply, "needs more than 1048576 bytes of temporary files");
    steps_expect(reply, "the setting maxDatabaseBytes");
    steps_expect(reply, "\"class\":\"VALIDATION_ERROR\"");
    steps_expect(sql_ask(sql), "\"rows\":[[40000]]"); /* the default is enough */
    steps_expect(sql_run(sql_query, small, "SELECT 1", ""), "\"rows\":[[1]]");
    free(small);
}

/* ---- databases ---- */

static void names_cannot_leave_the_directory(void **state)
{
    static const char *const names[] = {
        "../x", "a/b", "", ".", "a.b", "a b", "a\\u00fc", "/etc/passwd", ":memory:", "file:x"};
    char more[128];
    char link[128];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(more, sizeof more, ",\"database\":\"%s\"", names[i]);
        steps_expect(sql_run(sql_query, sql_reader, "SELECT 1", more), "expected 1 to 64 of");
    }
    (void)snprintf(link, sizeof link, "%s/link.db", sql_dir());
    assert_int_equal(symlink("/tmp/elsewhere.db", link), 0);
    steps_expect(sql_run(sql_query, sql_reader, "SELECT 1", ",\"database\":\"link\""),
                 "is a symbolic link");
    steps_expect(sql_run(sql_execute, sql_writer, "CREATE TABLE t(v)", ",\"database\":\"link\""),
                 "\"class\":\"PERMISSION_DENIED\"");
    assert_int_equal(access("/tmp/elsewhere.db", F_OK), -1);
}

static void missing_database_is_not_found_but_main_is_empty(void **state)
{
    struct stat st;

    (void)state;
    steps_expect(sql_ask("SELECT 1"), "\"rows\":[[1]]");
    steps_expect(sql_run(sql_query, sql_reader, "SELECT 1", ",\"database\":\"other\""),
                 "\"class\":\"RESOURCE_NOT_FOUND\"");
    assert_int_equal(stat(sql_dir(), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void file_that_is_no_database_is_said(void **state)
{
    char path[128];
    FILE *f;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/main.db", sql_dir());
    f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 1000; i++) {
        (void)fputs("this is not it\n", f);
    }
    assert_int_equal(fclose(f), 0);
    steps_expect(sql_ask("SELECT * FROM sqlite_schema"), "file is not a database");
}

static void schema_lists_tables_and_columns_but_not_the_agents_own(void **state)
{
    struct bt_step *step =
        steps_make("x", "{\"parameters\":{\"sql\":\"CREATE TABLE t(a INTEGER PRIMARY KEY, b)\"}}");
    const char *reply;

    (void)state;
    step->plan_id = "019ab000-0000-7000-8000-000000000001";
    steps_expect(steps_run(step, sql_execute, sql_writer), "\"outcome\":\"completed\"");
    sql_do("CREATE VIEW v AS SELECT b FROM t");
    reply = steps_run(steps_make("x", "{}"), sql_schema, sql_reader);
    steps_expect(reply, "\"tables\":[{\"name\":\"t\",\"type\":\"table\",\"columns\":[{\"name\":"
                        "\"a\",\"type\":\"INTEGER\",\"primaryKey\":true},{\"name\":\"b\",\"type\":"
                        "\"\",\"primaryKey\":false}]},{\"name\":\"v\",\"type\":\"view\"");
    steps_expect(reply, "\"databases\":[\"main\"]");
    assert_null(strstr(reply, "_baton_"));
}

static void wrong_settings_are_refused(void **state)
{
    static const char *const wrong[] = {"{}",
                                        "{\"databaseDir\":7}",
                                        "{\"databaseDir\":\"/dev/null\"}",
                                        "{\"databaseDir\":\"/does/not/exist/db\"}",
                                        "{\"databaseDir\":\"/tmp\",\"readonly\":true}",
                                        "{\"databaseDir\":\"/tmp\",\"readOnly\":\"no\"}",
                                        "{\"databaseDir\":\"/tmp\",\"maxRows\":0}",
                                        "{\"databaseDir\":\"/tmp\",\"busyTimeoutMs\":-1}"};
    struct sql_settings *s = NULL;
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_not_equal(sql_settings_read(wrong[i], &s, &err), BT_OK);
        assert_null(s);
    }
}

/* A link that leads nowhere is there, so no directory can be made in its place. */
static void a_directory_that_cannot_be_found_is_named(void **state)
{
    struct sql_settings *s = NULL;
    struct bt_error err;
    char link_path[200];
    char json[300];
    char expected[300];

    (void)state;
    (void)snprintf(link_path, sizeof link_path, "%s/../nowhere", sql_dir());
    assert_int_equal(symlink("/does/not/exist", link_path), 0);
    (void)snprintf(json, sizeof json, "{\"databaseDir\":\"%s\"}", link_path);
    (void)snprintf(expected, sizeof expected, "databaseDir: '%s': No such file or directory",
                   link_path);
    assert_int_equal(sql_settings_read(json, &s, &err), BT_NOT_FOUND);
    assert_string_equal(err.msg, expected);
    assert_int_equal(unlink(link_path), 0);
}

/* The journal of the supervisor is an SQLite database like any other. */
static void the_state_directory_has_no_databases(void **state)
{
    struct sql_settings *s = NULL;
    struct bt_error err;
    char journal[512];
    char linked[512];
    char json[640];

    (void)state;
    (void)snprintf(json, sizeof json, "%s/..", sql_dir());
    assert_int_equal(setenv("BATON_STATE", json, 1), 0);
    (void)snprintf(json, sizeof json, "{\"databaseDir\":\"%s/../db/..\"}", sql_dir());
    assert_int_equal(sql_settings_read(json, &s, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "is the state directory"));
    (void)snprintf(journal, sizeof journal, "%s/../journal.db", sql_dir());
    (void)snprintf(linked, sizeof linked, "%s/j.db", sql_dir());
    assert_int_equal(close(open(journal, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    assert_int_equal(link(journal, linked), 0);
    steps_expect(sql_run(sql_query, sql_reader, "SELECT 1", ",\"database\":\"j\""),
                 "state directory");
    assert_int_equal(unlink(linked), 0);
    sql_do("CREATE TABLE mine (x)"); /* a directory of its own below the state directory is fine */
    assert_int_equal(unlink(journal), 0);
    assert_int_equal(unsetenv("BATON_STATE"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(query_cannot_change_anything, sql_fresh),
        cmocka_unit_test_setup(harmless_pragmas_are_allowed, sql_fresh),
        cmocka_unit_test_setup(statement_is_exactly_one, sql_fresh),
        cmocka_unit_test_setup(mistakes_are_named, sql_fresh),
        cmocka_unit_test_setup(endless_statement_ends_at_the_deadline, sql_fresh),
        cmocka_unit_test_setup(cancel_ends_the_statement, sql_fresh),
        cmocka_unit_test_setup(locked_database_is_worth_another_attempt, sql_fresh),
        cmocka_unit_test_setup(execute_is_refused_when_read_only, sql_fresh),
        cmocka_unit_test_setup(execute_stays_in_its_database_and_its_transaction, sql_fresh),
        cmocka_unit_test_setup(execute_tells_what_it_changed, sql_fresh),
        cmocka_unit_test_setup(tables_of_the_user_can_be_altered, sql_fresh),
        cmocka_unit_test_setup(a_key_that_cannot_be_looked_up_does_nothing, sql_fresh),
        cmocka_unit_test_setup(repeated_key_is_answered_from_the_first_time, sql_fresh),
        cmocka_unit_test_setup(no_trigger_and_no_index_reaches_the_agents_own_table, sql_fresh),
        cmocka_unit_test_setup(a_trigger_that_is_there_already_does_not_run_as_the_agent,
                               sql_fresh),
        cmocka_unit_test_setup(database_does_not_grow_past_its_cap, sql_fresh),
        cmocka_unit_test(temporary_files_hold_the_limit_together_and_not_a_byte_more),
        cmocka_unit_test_setup(a_statement_that_spills_too_much_names_the_setting, sql_fresh),
        cmocka_unit_test_setup(names_cannot_leave_the_directory, sql_fresh),
        cmocka_unit_test_setup(missing_database_is_not_found_but_main_is_empty, sql_fresh),
        cmocka_unit_test_setup(file_that_is_no_database_is_said, sql_fresh),
        cmocka_unit_test_setup(schema_lists_tables_and_columns_but_not_the_agents_own, sql_fresh),
        cmocka_unit_test_setup(wrong_settings_are_refused, sql_fresh),
        cmocka_unit_test_setup(a_directory_that_cannot_be_found_is_named, sql_fresh),
        cmocka_unit_test_setup(the_state_directory_has_no_databases, sql_fresh),
    };

    return cmocka_run_group_tests(tests, sql_set_up, sql_tear_down);
}
