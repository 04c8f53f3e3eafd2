/*
 * What the checks say of each damage: the file beside this one has every column of every table, and
 * below it what `baton doctor` (journal_inspect), a running check (journal_scrub) and the check of
 * a copy (journal_verify) tell. BATON_WRITE=1 writes it anew: read the difference.
 *
 *     ## plans.goal            1 is added to a number, "x" put before a text or bytes
 *     ## agents.id             it is under a checksum, and no part of a plan's chain
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/journal/journal_dump.h"

enum { TEXT_MAX = 1024 * 1024 };

/* Numbers that are not the same in two runs are shown as words. */
static void add_shown(struct buf *out, const char *text, size_t len, const char *dir)
{
    const size_t dir_len = strlen(dir);

    for (size_t i = 0; i < len;) {
        size_t hex = 0;
        while (i + hex < len && strchr("0123456789abcdef", text[i + hex]) != NULL) {
            hex++;
        }
        if (len - i >= dir_len && memcmp(text + i, dir, dir_len) == 0) {
            buf_add_cstr(out, "DIR");
            i += dir_len;
        } else if (hex >= 32) {
            buf_add_cstr(out, "HASH");
            i += hex;
        } else {
            buf_add_byte(out, (uint8_t)text[i++]);
        }
    }
}

static void add_problem(struct str text, void *self)
{
    struct buf *out = self;

    buf_printf(out, "scrub: %.*s\n", STR_ARG(text));
}

/* The row of journal_add_row names one. */
static uint32_t blobs_of(const void *body, size_t len, uint64_t *ret, uint32_t max)
{
    const bool names = len == 1 && memcmp(body, "b", 1) == 0 && max > 0;

    if (names) {
        ret[0] = 1;
    }
    return names ? 1 : 0;
}

static void exec(const char *path, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", sql, why);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* All that the checks say of the journal in the directory, which no daemon holds. */
static void add_checks(const char *dir, struct buf *out)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct journal_scrub at = {0};
    struct journal *j;
    struct bt_error err = {.msg = ""};
    struct buf text;
    char path[200];
    enum bt_code code;

    buf_init(&text, TEXT_MAX);
    (void)snprintf(path, sizeof path, "%s/journal.db", dir);
    code = journal_verify(path, blobs_of, NULL, NULL, &text, &err);
    buf_printf(&text, "verify: %d %s\n", (int)code, code == BT_OK ? "" : err.msg);
    code = journal_inspect(dir, NULL, NULL, &text, &err);
    buf_printf(&text, "inspect: %d %s\n", (int)code, code == BT_OK ? "" : err.msg);
    code = journal_open(dir, &opt, &j, &err);
    if (code == BT_OK) {
        for (int i = 0; !at.done && i < 99; i++) {
            assert_ok(journal_scrub(j, &at, 300, add_problem, &text, &err), err);
        }
        buf_printf(&text, "scrub: %llu checked\n", (unsigned long long)at.checked);
        journal_close(j);
    } else {
        buf_printf(&text, "open: %d %s\n", (int)code, err.msg);
    }
    add_shown(out, (const char *)text.at, text.len, dir);
    buf_done(&text);
}

static void put_file(const char *path, struct str bytes)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, f), bytes.len);
    assert_int_equal(fclose(f), 0);
}

/* A copy of the journal, with one column damaged. */
static void add_damage(const char *dir, struct str sound, const char *table, const char *column,
                       struct buf *out)
{
    char sql[300];
    char state[100];
    char path[160];

    (void)snprintf(state, sizeof state, "%s/%s.%s", dir, table, column);
    (void)snprintf(path, sizeof path, "%s/journal.db", state);
    assert_int_equal(mkdir(state, 0700), 0);
    put_file(path, sound);
    (void)snprintf(sql, sizeof sql,
                   "UPDATE OR IGNORE %s SET %s = CASE typeof(%s) WHEN 'integer' THEN %s + 1 WHEN "
                   "'null' THEN 7 WHEN 'text' THEN 'x' || %s ELSE CAST('x' || %s AS BLOB) END",
                   table, column, column, column, column, column);
    exec(path, sql);
    buf_printf(out, "\n## %s.%s\n", table, column);
    add_checks(state, out);
    fixture_remove_tree(state);
}

struct listed {
    char of[128][2][40];
    uint32_t n;
};

static int add_column(void *self, int n, char **values, char **names)
{
    struct listed *l = self;

    (void)n;
    (void)names;
    assert_true(l->n < 128);
    (void)snprintf(l->of[l->n][0], 40, "%s", values[0]);
    (void)snprintf(l->of[l->n][1], 40, "%s", values[1]);
    l->n++;
    return 0;
}

/* With a zero behind it; the caller frees it. Empty: it is not there. */
static struct str read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, TEXT_MAX + 1);
    size_t n = 0;

    assert_non_null(text);
    if (f != NULL) {
        n = fread(text, 1, TEXT_MAX, f);
        assert_true(n < TEXT_MAX);
        assert_int_equal(fclose(f), 0);
    }
    return (struct str){text, n};
}

static void expect_kept(const char *is)
{
    const struct str kept = read_file(TOLD);
    const char *was = kept.ptr;
    size_t at = 0;

    if (getenv("BATON_WRITE") != NULL) {
        FILE *f = fopen(TOLD, "w");
        assert_non_null(f);
        assert_true(fputs(is, f) >= 0);
        assert_int_equal(fclose(f), 0);
    } else if (strcmp(was, is) != 0) {
        for (size_t i = 0; was[i] != 0 && was[i] == is[i]; i++) {
            at = was[i] == '\n' ? i + 1 : at;
        }
        fail_msg("kept: %.*s\nnow:  %.*s", (int)strcspn(was + at, "\n"), was + at,
                 (int)strcspn(is + at, "\n"), is + at);
    }
    free((void *)(uintptr_t)kept.ptr);
}

static void each_damage_is_told_with_its_place(void **state)
{
    struct fixture *f = *state;
    struct listed *l = calloc(1, sizeof *l);
    struct buf out;
    char sound[160];
    struct str bytes;
    sqlite3 *db;

    assert_non_null(l);
    journal_fill(f->j);
    journal_close(f->j);
    f->j = NULL;
    (void)snprintf(sound, sizeof sound, "%s/journal.db", f->dir);
    assert_int_equal(sqlite3_open_v2(sound, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS "
                     "c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' ORDER BY 1, c.cid",
                     add_column, l, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    bytes = read_file(sound);
    buf_init(&out, TEXT_MAX);
    buf_add_cstr(&out,
                 "# What the checks say of a journal in which one column is not as it was.\n");
    for (uint32_t i = 0; i < l->n; i++) {
        add_damage(f->root, bytes, l->of[i][0], l->of[i][1], &out);
    }
    buf_add_byte(&out, 0);
    assert_int_equal(buf_check(&out, NULL), BT_OK);
    expect_kept((const char *)out.at);
    buf_done(&out);
    free((void *)(uintptr_t)bytes.ptr);
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_damage_is_told_with_its_place, fixture_sqlite,
                                        fixture_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
