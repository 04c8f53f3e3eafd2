/* Starts that count for rates. */
#include "supervisor/journal/sqlite_internal.h"

enum { ENTRY_OVERHEAD = 128 };

enum bt_code sqlite_start_put(struct journal *j, struct str name, uint32_t place, uint64_t wall,
                              struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_START_PUT];
    enum bt_code code = sqlite_batch(s, ENTRY_OVERHEAD + name.len, err);

    if (code != BT_OK) {
        return code;
    }
    sqlite_bind_str(st, 1, name);
    (void)sqlite3_bind_int64(st, 2, place);
    (void)sqlite3_bind_int64(st, 3, (int64_t)wall);
    return sqlite_run(s, SQL_START_PUT, "cannot store a start", err);
}

enum bt_code sqlite_starts(struct journal *j, uint64_t since, journal_start_fn fn, void *self,
                           struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_STARTS];
    enum bt_code code = BT_OK;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)since);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        fn(sqlite_col_str(st, 0), (uint32_t)sqlite_col_u64(st, 1), sqlite_col_u64(st, 2), self);
    }
    if (rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot list starts", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_starts_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum bt_code code = sqlite_batch(s, ENTRY_OVERHEAD, err);

    (void)sqlite3_bind_int64(s->stmt[SQL_STARTS_DROP], 1, (int64_t)before);
    return code == BT_OK ? sqlite_run(s, SQL_STARTS_DROP, "cannot delete old starts", err) : code;
}
