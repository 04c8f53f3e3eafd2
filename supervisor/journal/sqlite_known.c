/* Starts that count for rates, and agents that are remembered. */
#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

enum { ENTRY_OVERHEAD = 128, NAME_SHOWN = 64 };

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

static uint32_t agent_crc(struct str id, struct str card)
{
    return crc32c_bytes(crc32c_bytes(0, id.ptr, id.len), card.ptr, card.len);
}

enum bt_code sqlite_agent_put(struct journal *j, struct str id, struct str card,
                              struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    const bool forget = card.len == 0;
    sqlite3_stmt *st = s->stmt[forget ? SQL_AGENT_DROP : SQL_AGENT_PUT];
    enum bt_code code = sqlite_batch(s, ENTRY_OVERHEAD + id.len + card.len, err);

    if (code != BT_OK) {
        return code;
    }
    sqlite_bind_str(st, 1, id);
    if (!forget) {
        (void)sqlite3_bind_int64(st, 2, agent_crc(id, card));
        (void)sqlite3_bind_blob64(st, 3, card.ptr, card.len, SQLITE_STATIC);
    }
    return sqlite_run(s, forget ? SQL_AGENT_DROP : SQL_AGENT_PUT, "cannot store an agent", err);
}

enum bt_code sqlite_agents(struct journal *j, journal_agent_fn fn, void *self, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_AGENTS];
    enum bt_code code = BT_OK;
    int rc;

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        const struct str id = sqlite_col_str(st, 0);
        const struct str card = {sqlite3_column_blob(st, 2), (size_t)sqlite3_column_bytes(st, 2)};
        if (sqlite_col_u64(st, 1) == agent_crc(id, card)) {
            fn(id, card, self);
        } else {
            log_warn("journal.agent_unreadable", "agent=%.*s",
                     id.len > NAME_SHOWN ? NAME_SHOWN : (int)id.len, id.ptr);
        }
    }
    if (rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot list agents", err);
    }
    (void)sqlite3_reset(st);
    return code;
}
