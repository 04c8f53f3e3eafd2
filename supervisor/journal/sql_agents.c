/* Agents that are remembered, on SQLite: one row per agent, replaced when it comes or leaves. */
#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

enum { AGENT_OVERHEAD = 160, NAME_SHOWN = 64 };

static uint32_t agent_crc(const struct journal_agent *a)
{
    uint32_t crc = crc32c_bytes(0, a->id.ptr, a->id.len);

    crc = crc32c_u64(crc, a->seen_wall);
    return crc32c_bytes(crc, a->card.ptr, a->card.len);
}

enum bt_code sql_agent_read(struct stmt *st, struct journal_agent *ret, struct bt_error *err)
{
    *ret = (struct journal_agent){
        .id = sql_col_str(st, 0),
        .seen_wall = sql_col_u64(st, 1),
        .card = stmt_col_blob(st, 3),
    };
    if (sql_col_u64(st, 2) != agent_crc(ret)) {
        return err_set(err, BT_IO, "the card of the agent '%.*s' in the journal is damaged",
                       ret->id.len > NAME_SHOWN ? NAME_SHOWN : (int)ret->id.len, ret->id.ptr);
    }
    return BT_OK;
}

enum bt_code sql_agent_put(struct journal *j, const struct journal_agent *a, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_AGENT_PUT];
    enum bt_code code = sql_batch(s, AGENT_OVERHEAD + a->id.len + a->card.len, err);

    if (code != BT_OK) {
        return code;
    }
    sql_bind_str(st, 1, a->id);
    stmt_bind_i64(st, 2, (int64_t)a->seen_wall);
    stmt_bind_i64(st, 3, agent_crc(a));
    stmt_bind_blob(st, 4, a->card.ptr, a->card.len);
    code = sql_run(s, SQL_AGENT_PUT, "cannot store an agent", err);
    if (code != BT_OK) {
        return code;
    }
    stmt_bind_i64(&s->stmt[SQL_AGENTS_KEEP], 1, JOURNAL_AGENTS_MAX);
    return sql_run(s, SQL_AGENTS_KEEP, "cannot forget an agent", err);
}

enum bt_code sql_agent_drop(struct journal *j, struct str id, bool *ret_found, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    uint64_t dropped = 0;
    enum bt_code code = sql_batch(s, AGENT_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    sql_bind_str(&s->stmt[SQL_AGENT_DROP], 1, id);
    code = sql_run_counted(s, SQL_AGENT_DROP, "cannot forget an agent", &dropped, err);
    *ret_found = code == BT_OK && dropped > 0;
    return code;
}

enum bt_code sql_agents_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    enum bt_code code = sql_batch(s, AGENT_OVERHEAD, err);

    stmt_bind_i64(&s->stmt[SQL_AGENTS_DROP], 1, (int64_t)before);
    return code == BT_OK ? sql_run(s, SQL_AGENTS_DROP, "cannot forget agents", err) : code;
}

enum bt_code sql_agents(struct journal *j, journal_agent_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_AGENTS];
    enum bt_code code = BT_OK;
    int rc;

    while ((rc = stmt_step(st)) == STMT_ROW) {
        struct journal_agent a;
        struct bt_error why;
        if (sql_agent_read(st, &a, &why) == BT_OK) {
            fn(&a, self);
        } else {
            log_warn("journal.agent_unreadable", "%s", why.msg);
        }
    }
    if (rc != STMT_DONE) {
        code = sql_error(s, "cannot list agents", err);
    }
    stmt_reset(st);
    return code;
}
