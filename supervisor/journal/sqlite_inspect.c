/* Reads a journal that no daemon holds, for `baton doctor`. */
#include <inttypes.h>
#include <unistd.h>

#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

struct inspection {
    sqlite3 *db;
    struct buf *report;
    struct bt_error first; /* the first problem */
    uint64_t problems;
};

enum { PROBLEMS_SHOWN = 50, QUARANTINED_SHOWN = 50 };
/* For schema versions without jobs. */
#define PLAN_HEAD_2                                                                                \
    "SELECT ix, id, session, client_key, body_hash, goal, created, crc, '' FROM plans"

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

/* Steps through sql and passes each row to one(); a read error is a problem too. */
static uint64_t each_row(struct inspection *in, const char *sql, uint64_t limit,
                         void (*one)(struct inspection *in, sqlite3_stmt *st))
{
    sqlite3_stmt *st = NULL;
    uint64_t n = 0;
    int rc = sqlite3_prepare_v2(in->db, sql, -1, &st, NULL);

    while (n < limit && rc == SQLITE_OK) {
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW) {
            one(in, st);
            n++;
            rc = SQLITE_OK;
        }
    }
    if (rc != SQLITE_OK && rc != SQLITE_DONE) {
        problem(in, sqlite3_errmsg(in->db));
    }
    (void)sqlite3_finalize(st);
    return n;
}

static void check_quick(struct inspection *in, sqlite3_stmt *st)
{
    struct str text = sqlite_col_str(st, 0);
    if (!str_is(text, "ok")) {
        problem(in, text.ptr);
    }
}

static void check_row(struct inspection *in, sqlite3_stmt *st)
{
    struct journal_row row;
    struct bt_error err;
    if (sqlite_row_read(st, &row, &err) != BT_OK) {
        problem(in, err.msg);
    }
}

static void check_blob(struct inspection *in, sqlite3_stmt *st)
{
    uint64_t id = sqlite_col_u64(st, 0);
    const void *bytes = sqlite3_column_blob(st, 2);
    size_t len = (size_t)sqlite3_column_bytes(st, 2);
    struct bt_error err;

    if (sqlite_col_u64(st, 1) != crc32c_bytes(crc32c_u64(0, id), bytes, len)) {
        (void)err_set(&err, BT_IO, "blob %" PRIu64, id);
        problem(in, err.msg);
    }
}

static void check_state(struct inspection *in, sqlite3_stmt *st)
{
    struct plan_state state;
    struct bt_error err;
    uint64_t ix = sqlite_col_u64(st, 0);

    if (sqlite_state_read(st, 1, ix, &state, &err) != BT_OK) {
        problem(in, err.msg);
    }
}

static void show_quarantined(struct inspection *in, sqlite3_stmt *st)
{
    const struct str note = sqlite_col_str(st, 1);
    struct uuid id = {{0}};
    char text[UUID_TEXT_LEN + 1];

    if (sqlite3_column_bytes(st, 0) == (int)sizeof id.b) {
        memcpy(id.b, sqlite3_column_blob(st, 0), sizeof id.b);
    }
    uuid_format(id, text);
    buf_printf(in->report, "quarantined: plan %s: %.*s\n", text, STR_ARG(note));
}

static void check_plan(struct inspection *in, sqlite3_stmt *st)
{
    struct journal_plan p;
    struct bt_error err;

    if (sqlite_plan_read(st, &p, &err) != BT_OK) {
        problem(in, err.msg);
    }
}

static void check_doc(struct inspection *in, sqlite3_stmt *st)
{
    struct journal_plan p;
    struct bt_error err;

    if (sqlite_doc_read(st, &p, &err) != BT_OK) {
        problem(in, err.msg);
    }
}

static void check_session(struct inspection *in, sqlite3_stmt *st)
{
    struct journal_session p;
    struct bt_error err;

    if (sqlite_session_read(st, &p, &err) != BT_OK) {
        problem(in, err.msg);
    }
}

static void check_message(struct inspection *in, sqlite3_stmt *st)
{
    struct journal_message m;
    struct bt_error err;

    if (sqlite_message_read(st, &m, &err) != BT_OK) {
        problem(in, err.msg);
    }
}

static void check_turn(struct inspection *in, sqlite3_stmt *st)
{
    struct journal_turn t;
    struct bt_error err;

    if (sqlite_turn_read(st, &t, &err) != BT_OK) {
        problem(in, err.msg);
    }
}

static void check_count(struct inspection *in, sqlite3_stmt *st)
{
    struct str id = sqlite_col_str(st, 0);
    struct bt_error err;

    (void)err_set(&err, BT_IO, "messages of the session \"%.*s\" are missing",
                  id.len > 64 ? 64 : (int)id.len, id.ptr);
    problem(in, err.msg);
}

/* The tables of version 3. */
static void inspect_sessions(struct inspection *in, uint64_t max_rows)
{
    uint64_t sessions = each_row(in, SQL_SESSION, UINT64_MAX, check_session);
    uint64_t messages = each_row(in, SQL_MESSAGE " ORDER BY rowid DESC", max_rows, check_message);
    uint64_t turns = each_row(in, SQL_TURN, max_rows, check_turn);

    /* Finds lost messages: numbers have no gaps. */
    if (max_rows >= messages) {
        (void)each_row(in,
                       "SELECT s.id FROM sessions s WHERE s.messages <> "
                       "(SELECT count(*) FROM messages m WHERE m.session = s.id)",
                       PROBLEMS_SHOWN, check_count);
    }
    buf_printf(in->report,
               "%" PRIu64 " sessions, %" PRIu64 " messages and %" PRIu64 " turns checked\n",
               sessions, messages, turns);
}

static enum bt_code inspect_db(struct inspection *in, uint64_t max_rows, struct bt_error *err)
{
    uint64_t rows;
    uint64_t blobs;
    uint64_t plans;
    int version = 0;
    enum bt_code code = sqlite_version_check(in->db, &version, err);

    if (code != BT_OK) {
        return code;
    }
    (void)each_row(in, "PRAGMA quick_check(20)", UINT64_MAX, check_quick);
    plans =
        each_row(in, "SELECT ix, status, ended, recoveries, note, crc FROM plan_state ORDER BY ix",
                 UINT64_MAX, check_state);
    (void)each_row(in,
                   "SELECT p.id, s.note FROM plan_state s LEFT JOIN plans p ON p.ix = s.ix "
                   "WHERE s.status = 'quarantined' ORDER BY s.ix",
                   QUARANTINED_SHOWN, show_quarantined);
    (void)each_row(in, version >= 3 ? SQL_PLAN_HEAD : PLAN_HEAD_2, UINT64_MAX, check_plan);
    (void)each_row(in, "SELECT ix, doc_crc, doc FROM plans", UINT64_MAX, check_doc);
    rows = each_row(
        in, "SELECT pos, plan, plan_seq, type, topic, wall, crc, body FROM rows ORDER BY pos DESC",
        max_rows, check_row);
    blobs = each_row(in, "SELECT id, crc, bytes FROM blobs ORDER BY id DESC", max_rows, check_blob);
    if (version >= 3) {
        inspect_sessions(in, max_rows);
    }
    buf_printf(in->report,
               "schema version %d, %" PRIu64 " plans, %" PRIu64 " rows and %" PRIu64
               " blobs checked, %" PRIu64 " problems\n",
               version, plans, rows, blobs, in->problems);
    if (in->problems > 0) {
        return err_set(err, BT_IO, "the journal is damaged in %" PRIu64 " places, first: %.300s",
                       in->problems, in->first.msg);
    }
    return buf_check(in->report, err);
}

enum bt_code journal_inspect(const char *dir, uint64_t max_rows, struct buf *report,
                             struct bt_error *err)
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
        code = inspect_db(&in, max_rows, err);
    }
    (void)sqlite3_close(in.db);
    if (lock >= 0) {
        close(lock);
    }
    return code;
}
