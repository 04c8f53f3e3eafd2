/* Reads a journal that no daemon holds, for `baton doctor`. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/journal/sqlite_internal.h"

struct inspection {
    sqlite3 *db;
    struct buf *report;
    struct bt_error first; /* the first problem */
    uint64_t problems;
};

enum { PROBLEMS_SHOWN = 50, PART_BYTES = 8 * 1024 * 1024 };

static void problem(struct inspection *in, const char *text)
{
    if (in->problems == 0) {
        (void)err_set(&in->first, BT_IO, "%s", text);
    }
    if (in->problems < PROBLEMS_SHOWN) {
        buf_printf(in->report, "damaged: %s\n", text);
    }
    in->problems++;
}

static void on_problem(struct str text, void *self)
{
    problem(self, text.ptr);
}

/* The structure of the file, which no checksum covers. */
static void check_quick(struct inspection *in)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(in->db, "PRAGMA quick_check(20)", -1, &st, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 0);
        if (text != NULL && strcmp(text, "ok") != 0) {
            problem(in, text);
        }
        rc = SQLITE_OK;
    }
    if (rc != SQLITE_OK && rc != SQLITE_DONE) {
        problem(in, sqlite3_errmsg(in->db));
    }
    (void)sqlite3_finalize(st);
}

static void name_quarantined(struct inspection *in)
{
    sqlite3_stmt *st = NULL;
    int n = 0;

    if (sqlite3_prepare_v2(in->db,
                           "SELECT p.id, s.note FROM plan_state s LEFT JOIN plans p ON p.ix = s.ix "
                           "WHERE s.status = 'quarantined' ORDER BY s.ix",
                           -1, &st, NULL) == SQLITE_OK) {
        while (n++ < PROBLEMS_SHOWN && sqlite3_step(st) == SQLITE_ROW) {
            struct stmt of = sqlite_stmt(st);
            const struct str note = sql_col_str(&of, 1);
            const struct uuid id = sql_col_uuid(&of, 0);
            char text[UUID_TEXT_LEN + 1];
            uuid_format(id, text);
            buf_printf(in->report, "quarantined: plan %s: %.*s\n", text, STR_ARG(note));
        }
    }
    (void)sqlite3_finalize(st);
}

static enum bt_code inspect_db(struct inspection *in, journal_progress_fn fn, void *self,
                               struct bt_error *err)
{
    struct journal_scrub at = {.table = 0};
    int version = 0;
    enum bt_code code = sqlite_version_check(in->db, &version, err);

    if (code != BT_OK) {
        return code;
    }
    check_quick(in);
    name_quarantined(in);
    while (!at.done) {
        sqlite_scrub_db(in->db, version, &at, PART_BYTES, on_problem, in);
        if (fn != NULL) {
            fn(&at, self);
        }
    }
    buf_printf(in->report, "schema version %d, %" PRIu64 " entries checked, %" PRIu64 " problems\n",
               version, at.checked, in->problems);
    if (in->problems > 0) {
        return err_set(err, BT_IO, "the journal is damaged in %" PRIu64 " places, first: %.300s",
                       in->problems, in->first.msg);
    }
    return buf_check(in->report, err);
}

enum bt_code journal_inspect(const char *dir, journal_progress_fn fn, void *self,
                             struct buf *report, struct bt_error *err)
{
    struct inspection in = {.report = report};
    char path[PATH_TEXT_MAX];
    int lock = -1;
    enum bt_code code = sqlite_path(dir, "journal.db", path, err);

    if (code == BT_OK) {
        code = sqlite_lock_dir(dir, false, &lock, err);
        code = code == BT_NOT_FOUND ? BT_OK : code; /* a copy has no lock */
    }
    if (code == BT_OK) {
        code = sqlite_check_file(dir, false, err);
    }
    if (code == BT_OK) {
        code = sqlite_connect(path, &in.db, err);
    }
    if (code == BT_OK) {
        (void)sqlite3_db_config(in.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        code = sqlite_exec(in.db, "PRAGMA query_only = ON", err);
    }
    if (code == BT_OK) {
        code = inspect_db(&in, fn, self, err);
    }
    (void)sqlite3_close(in.db);
    if (lock >= 0) {
        close(lock);
    }
    return code;
}
