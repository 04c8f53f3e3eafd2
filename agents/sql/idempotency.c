#include "agents/sql/idempotency.h"

/* The plan id of a step of --once: its key identifies nothing. */
#define NO_PLAN "00000000-0000-7000-8000-000000000000"

static bool has_key(const struct db *db)
{
    return bt_step_key(db->step)[0] != 0 && strcmp(bt_step_plan_id(db->step), NO_PLAN) != 0;
}

static void take(sqlite3_stmt *stmt, int column, struct buf *out)
{
    const void *bytes = sqlite3_column_text(stmt, column);

    if (bytes != NULL) {
        buf_add(out, bytes, (size_t)sqlite3_column_bytes(stmt, column));
    }
}

enum bt_code idempotency_find(struct db *db, struct buf *ret_json, struct buf *ret_text,
                              bool *ret_found, struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum bt_code code;
    int rc;

    *ret_found = false;
    if (!has_key(db)) {
        return BT_OK;
    }
    code = db_run_own(db,
                      "CREATE TABLE IF NOT EXISTS _baton_done(n INTEGER PRIMARY KEY, "
                      "key TEXT NOT NULL UNIQUE, data TEXT NOT NULL, text TEXT NOT NULL)",
                      err);
    if (code == BT_OK) {
        code = db_prepare_own(db, "SELECT data, text FROM _baton_done WHERE key = ?", &stmt, err);
    }
    if (code != BT_OK) {
        return code;
    }
    (void)sqlite3_bind_text(stmt, 1, bt_step_key(db->step), -1, SQLITE_TRANSIENT);
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        take(stmt, 0, ret_json);
        take(stmt, 1, ret_text);
        *ret_found = true;
    } else if (rc != SQLITE_DONE) {
        code = db_error(db, err);
    }
    (void)sqlite3_finalize(stmt);
    return code;
}

static enum bt_code insert(struct db *db, struct str json, struct str text, struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum bt_code code =
        db_prepare_own(db, "INSERT INTO _baton_done(key, data, text) VALUES (?, ?, ?)", &stmt, err);

    if (code != BT_OK) {
        return code;
    }
    (void)sqlite3_bind_text(stmt, 1, bt_step_key(db->step), -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_text(stmt, 2, json.ptr, (int)json.len, SQLITE_TRANSIENT);
    (void)sqlite3_bind_text(stmt, 3, text.ptr, (int)text.len, SQLITE_TRANSIENT);
    if (sqlite3_step(stmt) != SQLITE_DONE) {
        code = db_error(db, err);
    }
    (void)sqlite3_finalize(stmt);
    return code;
}

enum bt_code idempotency_record(struct db *db, struct str json, struct str text,
                                struct bt_error *err)
{
    enum bt_code code;

    if (!has_key(db)) {
        return BT_OK;
    }
    code = insert(db, json, text, err);
    _Static_assert(IDEMPOTENCY_KEPT == 10000, "the number below");
    return code == BT_OK ? db_run_own(db,
                                      "DELETE FROM _baton_done WHERE n <= "
                                      "(SELECT max(n) FROM _baton_done) - 10000",
                                      err)
                         : code;
}
