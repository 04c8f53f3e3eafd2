/* What export and import need of SQLite beside the rows: names of blobs, states, old tombstones. */
#include "supervisor/journal/sqlite_internal.h"

/* The numbers that the bound statement returns. */
static enum bt_code take(struct sqlite_journal *s, enum sql which, uint64_t *ret, uint32_t max,
                         uint32_t *ret_n, struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[which];
    enum bt_code code = BT_OK;
    int rc = SQLITE_DONE;

    *ret_n = 0;
    while (*ret_n < max && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        ret[(*ret_n)++] = sqlite_col_u64(st, 0);
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read the journal", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_plan_blobs(struct journal *j, uint64_t ix, uint64_t after, uint64_t *ret,
                               uint32_t max, uint32_t *ret_n, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);

    (void)sqlite3_bind_int64(s->stmt[SQL_REFS_AFTER], 1, (int64_t)ix);
    (void)sqlite3_bind_int64(s->stmt[SQL_REFS_AFTER], 2, (int64_t)after);
    return take(s, SQL_REFS_AFTER, ret, max, ret_n, err);
}

enum bt_code sqlite_imports(struct journal *j, uint64_t *ret, uint32_t max, uint32_t *ret_n,
                            struct bt_error *err)
{
    return take(sqlite_of(j), SQL_IMPORTS, ret, max, ret_n, err);
}

enum bt_code sqlite_plan_state(struct journal *j, uint64_t ix, struct str status, msec ended,
                               struct str note, struct bt_error *err)
{
    const struct plan_state state = {.status = status, .ended = ended, .note = note};

    return sqlite_state_put(sqlite_of(j), ix, &state, err);
}

enum bt_code sqlite_gone_forget(struct journal *j, struct uuid id, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_GONE_FIND];
    uint64_t ix = 0;
    enum bt_code code = BT_OK;
    int rc;

    sqlite_bind_uuid(st, 1, &id);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        ix = sqlite_col_u64(st, 0);
        if (sqlite3_column_int(st, 1) == 0) {
            code = err_set(err, BT_BUSY, "what was deleted of the plan is still being removed");
        }
    } else {
        code = rc == SQLITE_DONE ? err_set(err, BT_NOT_FOUND, "no such deleted plan")
                                 : sqlite_error(s->db, "cannot look up a deleted plan", err);
    }
    (void)sqlite3_reset(st);
    if (code == BT_OK) {
        code = sqlite_batch(s, 0, err);
    }
    if (code == BT_OK) {
        (void)sqlite3_bind_int64(s->stmt[SQL_GONE_DROP], 1, (int64_t)ix);
        code = sqlite_run(s, SQL_GONE_DROP, "cannot forget a deleted plan", err);
    }
    s->now.gone -= code == BT_OK ? 1 : 0;
    return code;
}
