/* Turns of sessions on SQLite. */
#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

enum { TURN_OVERHEAD = 512 };

static uint32_t turn_crc(const struct journal_turn *t)
{
    uint32_t crc = crc32c(0, t->turn_id.b, sizeof t->turn_id.b);

    crc = crc32c_bytes(crc, t->session_id.ptr, t->session_id.len);
    crc = crc32c_bytes(crc, t->client_key.ptr, t->client_key.len);
    crc = crc32c_u64(crc, t->body_hash);
    crc = crc32c_u64(crc, t->asked);
    crc = crc32c_u64(crc, t->answered);
    crc = crc32c_u64(crc, t->started_wall);
    crc = crc32c_u64(crc, t->ended_wall);
    crc = crc32c(crc, t->plan.b, sizeof t->plan.b);
    crc = crc32c_u64(crc, t->context_blob);
    return crc32c_bytes(crc, t->action.ptr, t->action.len);
}

enum bt_code sql_turn_read(struct stmt *st, struct journal_turn *ret, struct bt_error *err)
{
    char id[UUID_TEXT_LEN + 1];

    *ret = (struct journal_turn){
        .turn_id = sql_col_uuid(st, 0),
        .session_id = sql_col_str(st, 1),
        .client_key = sql_col_str(st, 2),
        .body_hash = sql_col_u64(st, 3),
        .asked = sql_col_u64(st, 4),
        .answered = sql_col_u64(st, 5),
        .started_wall = sql_col_u64(st, 6),
        .ended_wall = sql_col_u64(st, 7),
        .plan = sql_col_uuid(st, 8),
        .action = sql_col_str(st, 9),
        .context_blob = sql_col_u64(st, 10),
    };
    if (sql_col_u64(st, 11) != turn_crc(ret)) {
        uuid_format(ret->turn_id, id);
        return err_set(err, BT_IO, "the turn %s in the journal is damaged", id);
    }
    return BT_OK;
}

enum bt_code sql_turn_put(struct journal *j, const struct journal_turn *t, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_TURN_PUT];
    enum bt_code code = sql_batch(s, TURN_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    sql_bind_uuid(st, 1, &t->turn_id);
    sql_bind_str(st, 2, t->session_id);
    sql_bind_str(st, 3, t->client_key);
    stmt_bind_i64(st, 4, (int64_t)t->body_hash);
    stmt_bind_i64(st, 5, (int64_t)t->asked);
    stmt_bind_i64(st, 6, (int64_t)t->answered);
    stmt_bind_i64(st, 7, (int64_t)t->started_wall);
    stmt_bind_i64(st, 8, (int64_t)t->ended_wall);
    sql_bind_uuid(st, 9, &t->plan);
    sql_bind_str(st, 10, t->action);
    stmt_bind_i64(st, 11, (int64_t)t->context_blob);
    stmt_bind_i64(st, 12, turn_crc(t));
    return sql_run(s, SQL_TURN_PUT, "cannot store a turn", err);
}

static void load_strings(struct buf *text, struct journal_turn *ret)
{
    struct str *const all[] = {&ret->session_id, &ret->client_key, &ret->action};
    size_t at = 0;

    buf_clear(text);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        buf_add_str(text, *all[i]);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0] && text->bad == BT_OK; i++) {
        all[i]->ptr = buf_cstr(text) + at;
        at += all[i]->len;
    }
}

/* The turn that the bound statement finds. */
static enum bt_code find_turn(struct sql_journal *s, enum sql which, struct journal_turn *ret,
                              struct bt_error *err)
{
    struct stmt *st = &s->stmt[which];
    enum bt_code code;
    int rc = stmt_step(st);

    if (rc == STMT_ROW) {
        code = sql_turn_read(st, ret, err);
        if (code == BT_OK) {
            load_strings(&s->turn_text, ret);
            code = buf_check(&s->turn_text, err);
        }
    } else if (rc == STMT_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no such turn");
    } else {
        code = sql_error(s, "cannot look up a turn", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_turn_key(struct journal *j, struct str session, struct str key, struct uuid *ret,
                          struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_TURN_KEY];
    enum bt_code code = BT_OK;
    int rc;

    *ret = (struct uuid){{0}};
    sql_bind_str(st, 1, session);
    sql_bind_str(st, 2, key);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        *ret = sql_col_uuid(st, 0);
    } else if (rc != STMT_DONE) {
        code = sql_error(s, "cannot look up a turn", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_turn(struct journal *j, struct uuid id, struct journal_turn *ret,
                      struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);

    sql_bind_uuid(&s->stmt[SQL_TURN_GET], 1, &id);
    return find_turn(s, SQL_TURN_GET, ret, err);
}

enum bt_code sql_turn_by_key(struct journal *j, struct str session, struct str key,
                             struct journal_turn *ret, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);

    sql_bind_str(&s->stmt[SQL_TURN_BY_KEY], 1, session);
    sql_bind_str(&s->stmt[SQL_TURN_BY_KEY], 2, key);
    return find_turn(s, SQL_TURN_BY_KEY, ret, err);
}

enum bt_code sql_turn_of_plan(struct journal *j, struct uuid plan, struct journal_turn *ret,
                              struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);

    sql_bind_uuid(&s->stmt[SQL_TURN_OF_PLAN], 1, &plan);
    return find_turn(s, SQL_TURN_OF_PLAN, ret, err);
}

enum bt_code sql_turns_open(struct journal *j, journal_turn_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_TURNS_OPEN];
    enum bt_code code = BT_OK;
    int rc;

    while ((rc = stmt_step(st)) == STMT_ROW) {
        struct journal_turn t;
        struct bt_error why;
        if (sql_turn_read(st, &t, &why) != BT_OK) {
            log_warn("journal.turn_unreadable", "%s", why.msg);
        } else if (!fn(&t, self)) {
            break;
        }
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot list turns", err);
    }
    stmt_reset(st);
    return code;
}
