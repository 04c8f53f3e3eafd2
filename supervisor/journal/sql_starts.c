/* Starts that count for rates. */
#include "supervisor/journal/sql.h"

enum { ENTRY_OVERHEAD = 128 };

enum bt_code sql_start_put(struct journal *j, struct str name, uint32_t place, uint64_t wall,
                           struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_START_PUT];
    enum bt_code code = sql_batch(s, ENTRY_OVERHEAD + name.len, err);

    if (code != BT_OK) {
        return code;
    }
    sql_bind_str(st, 1, name);
    stmt_bind_i64(st, 2, place);
    stmt_bind_i64(st, 3, (int64_t)wall);
    return sql_run(s, SQL_START_PUT, "cannot store a start", err);
}

enum bt_code sql_starts(struct journal *j, uint64_t since, journal_start_fn fn, void *self,
                        struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_STARTS];
    enum bt_code code = BT_OK;
    int rc;

    stmt_bind_i64(st, 1, (int64_t)since);
    while ((rc = stmt_step(st)) == STMT_ROW) {
        fn(sql_col_str(st, 0), (uint32_t)sql_col_u64(st, 1), sql_col_u64(st, 2), self);
    }
    if (rc != STMT_DONE) {
        code = sql_error(s, "cannot list starts", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_starts_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    enum bt_code code = sql_batch(s, ENTRY_OVERHEAD, err);

    stmt_bind_i64(&s->stmt[SQL_STARTS_DROP], 1, (int64_t)before);
    return code == BT_OK ? sql_run(s, SQL_STARTS_DROP, "cannot delete old starts", err) : code;
}
