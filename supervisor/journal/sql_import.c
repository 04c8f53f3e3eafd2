/* What export and import need of SQLite beside the rows: names of blobs, states, old tombstones. */
#include "supervisor/journal/sql.h"

/* The numbers that the bound statement returns. */
static enum bt_code take(struct sql_journal *s, enum sql which, uint64_t *ret, uint32_t max,
                         uint32_t *ret_n, struct bt_error *err)
{
    struct stmt *st = &s->stmt[which];
    enum bt_code code = BT_OK;
    int rc = STMT_DONE;

    *ret_n = 0;
    while (*ret_n < max && (rc = stmt_step(st)) == STMT_ROW) {
        ret[(*ret_n)++] = sql_col_u64(st, 0);
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot read the journal", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_plan_blobs(struct journal *j, uint64_t ix, uint64_t after, uint64_t *ret,
                            uint32_t max, uint32_t *ret_n, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);

    stmt_bind_i64(&s->stmt[SQL_REFS_AFTER], 1, (int64_t)ix);
    stmt_bind_i64(&s->stmt[SQL_REFS_AFTER], 2, (int64_t)after);
    return take(s, SQL_REFS_AFTER, ret, max, ret_n, err);
}

enum bt_code sql_plan_heirs(struct journal *j, uint64_t ix, uint64_t *ret, uint32_t max,
                            uint32_t *ret_n, struct bt_error *err)
{
    stmt_bind_i64(&sql_of(j)->stmt[SQL_HEIRS], 1, (int64_t)ix);
    return take(sql_of(j), SQL_HEIRS, ret, max, ret_n, err);
}

enum bt_code sql_imports(struct journal *j, uint64_t *ret, uint32_t max, uint32_t *ret_n,
                         struct bt_error *err)
{
    return take(sql_of(j), SQL_IMPORTS, ret, max, ret_n, err);
}

enum bt_code sql_plan_state(struct journal *j, uint64_t ix, struct str status, msec ended,
                            struct str note, struct bt_error *err)
{
    const struct plan_state state = {.status = status, .ended = ended, .note = note};

    return sql_state_put(sql_of(j), ix, &state, err);
}

enum bt_code sql_gone_forget(struct journal *j, struct uuid id, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_GONE_FIND];
    uint64_t ix = 0;
    enum bt_code code = BT_OK;
    int rc;

    sql_bind_uuid(st, 1, &id);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        ix = sql_col_u64(st, 0);
        if (sql_col_u64(st, 1) == 0) {
            code = err_set(err, BT_BUSY, "what was deleted of the plan is still being removed");
        }
    } else {
        code = rc == STMT_DONE ? err_set(err, BT_NOT_FOUND, "no such deleted plan")
                               : sql_error(s, "cannot look up a deleted plan", err);
    }
    stmt_reset(st);
    if (code == BT_OK) {
        code = sql_batch(s, 0, err);
    }
    if (code == BT_OK) {
        stmt_bind_i64(&s->stmt[SQL_GONE_DROP], 1, (int64_t)ix);
        code = sql_run(s, SQL_GONE_DROP, "cannot forget a deleted plan", err);
    }
    s->now.gone -= code == BT_OK ? 1 : 0;
    return code;
}
