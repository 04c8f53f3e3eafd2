/* Whose a plan is, and so its results, on SQLite. Plans of the token have no entry. */
#include "supervisor/journal/sql.h"

enum bt_code sql_plan_owner(struct journal *j, uint64_t ix, char *ret, size_t cap,
                            struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_OWNER_GET];
    enum bt_code code = BT_OK;
    int rc;

    stmt_bind_i64(st, 1, (int64_t)ix);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        const struct str owner = sql_col_str(st, 0);
        if (owner.len < cap) {
            memcpy(ret, owner.ptr, owner.len);
            ret[owner.len] = 0;
        } else {
            code = err_set(err, BT_IO, "the owner of a plan in the journal is damaged");
        }
    } else if (rc != STMT_DONE) {
        code = sql_error(s, "cannot read whose a plan is", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_blob_owned(struct journal *j, uint64_t blob, struct str owner, bool *ret,
                            struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_BLOB_OWNED];
    enum bt_code code = BT_OK;
    int rc;

    stmt_bind_i64(st, 1, (int64_t)blob);
    sql_bind_str(st, 2, owner);
    rc = stmt_step(st);
    *ret = rc == STMT_ROW;
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot read whose a blob is", err);
    }
    stmt_reset(st);
    return code;
}
