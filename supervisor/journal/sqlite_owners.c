/* Whose a plan is, and so its results, on SQLite. Plans of the token have no entry. */
#include "supervisor/journal/sqlite_internal.h"

enum bt_code sqlite_plan_owner(struct journal *j, uint64_t ix, char *ret, size_t cap,
                               struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_OWNER_GET];
    enum bt_code code = BT_OK;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const struct str owner = sqlite_col_str(st, 0);
        if (owner.len < cap) {
            memcpy(ret, owner.ptr, owner.len);
            ret[owner.len] = 0;
        } else {
            code = err_set(err, BT_IO, "the owner of a plan in the journal is damaged");
        }
    } else if (rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read whose a plan is", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_blob_owned(struct journal *j, uint64_t blob, struct str owner, bool *ret,
                               struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_BLOB_OWNED];
    enum bt_code code = BT_OK;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)blob);
    sqlite_bind_str(st, 2, owner);
    rc = sqlite3_step(st);
    *ret = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read whose a blob is", err);
    }
    (void)sqlite3_reset(st);
    return code;
}
