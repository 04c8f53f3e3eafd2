/* Sessions and their messages on SQLite. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

enum { MESSAGE_OVERHEAD = 256 };

void sql_bind_uuid(struct stmt *st, int at, const struct uuid *v)
{
    stmt_bind_uuid(st, at, v->b);
}

/* A value that is not a uuid reads as nil: the checksum then shows the damage. */
struct uuid sql_col_uuid(struct stmt *st, int at)
{
    struct uuid v = {{0}};
    const struct str bytes = stmt_col_blob(st, at);

    if (bytes.len == sizeof v.b) {
        memcpy(v.b, bytes.ptr, sizeof v.b);
    }
    return v;
}

static uint32_t session_crc(const struct journal_session *p)
{
    const uint64_t numbers[] = {p->created_wall, p->updated_wall, p->messages,  p->summarized,
                                p->summary,      p->agent_calls,  p->tool_calls};
    uint32_t crc = crc32c_bytes(0, p->session_id.ptr, p->session_id.len);

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        crc = crc32c_u64(crc, numbers[i]);
    }
    return p->owner.len > 0 ? crc32c_bytes(crc, p->owner.ptr, p->owner.len) : crc;
}

static uint32_t message_crc(struct str session, const struct journal_message *m)
{
    uint32_t crc = crc32c_bytes(0, session.ptr, session.len);

    crc = crc32c_u64(crc, m->n);
    crc = crc32c_bytes(crc, m->role.ptr, m->role.len);
    crc = crc32c_u64(crc, m->cut);
    crc = crc32c(crc, m->turn.b, sizeof m->turn.b);
    crc = crc32c(crc, m->plan.b, sizeof m->plan.b);
    crc = crc32c_u64(crc, m->wall);
    return crc32c_bytes(crc, m->text.ptr, m->text.len);
}

enum bt_code sql_session_read(struct stmt *st, struct journal_session *ret, struct bt_error *err)
{
    *ret = (struct journal_session){
        .session_id = sql_col_str(st, 0),
        .created_wall = sql_col_u64(st, 1),
        .updated_wall = sql_col_u64(st, 2),
        .messages = sql_col_u64(st, 3),
        .summarized = sql_col_u64(st, 4),
        .summary = sql_col_u64(st, 5),
        .agent_calls = sql_col_u64(st, 6),
        .tool_calls = sql_col_u64(st, 7),
        .owner = sql_col_str(st, 9),
    };
    if (sql_col_u64(st, 8) != session_crc(ret)) {
        return err_set(err, BT_IO, "the session \"%.*s\" in the journal is damaged",
                       ret->session_id.len > 64 ? 64 : (int)ret->session_id.len,
                       ret->session_id.ptr);
    }
    return BT_OK;
}

enum bt_code sql_message_read(struct stmt *st, struct journal_message *ret, struct bt_error *err)
{
    struct str session = sql_col_str(st, 0);

    *ret = (struct journal_message){
        .n = sql_col_u64(st, 1),
        .role = sql_col_str(st, 2),
        .cut = sql_col_u64(st, 3) != 0,
        .turn = sql_col_uuid(st, 4),
        .plan = sql_col_uuid(st, 5),
        .wall = sql_col_u64(st, 6),
        .text = sql_col_str(st, 8),
    };
    if (sql_col_u64(st, 7) != message_crc(session, ret)) {
        return err_set(err, BT_IO, "message %llu of the session \"%.*s\" in the journal is damaged",
                       (unsigned long long)ret->n, session.len > 64 ? 64 : (int)session.len,
                       session.ptr);
    }
    return BT_OK;
}

enum bt_code sql_session(struct journal *j, struct str id, struct journal_session *ret,
                         struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_SESSION_GET];
    enum bt_code code;
    int rc;

    sql_bind_str(st, 1, id);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        code = sql_session_read(st, ret, err);
        ret->session_id = id;
        (void)snprintf(s->session_owner, sizeof s->session_owner, "%.*s", STR_ARG(ret->owner));
        ret->owner = str_from(s->session_owner);
    } else if (rc == STMT_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no session \"%.*s\"", STR_ARG(id));
    } else {
        code = sql_error(s, "cannot read a session", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_session_put(struct journal *j, const struct journal_session *p,
                             struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_SESSION_PUT];
    enum bt_code code = sql_batch(s, MESSAGE_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    sql_bind_str(st, 1, p->session_id);
    stmt_bind_i64(st, 2, (int64_t)p->created_wall);
    stmt_bind_i64(st, 3, (int64_t)p->updated_wall);
    stmt_bind_i64(st, 4, (int64_t)p->messages);
    stmt_bind_i64(st, 5, (int64_t)p->summarized);
    stmt_bind_i64(st, 6, (int64_t)p->summary);
    stmt_bind_i64(st, 7, (int64_t)p->agent_calls);
    stmt_bind_i64(st, 8, (int64_t)p->tool_calls);
    stmt_bind_i64(st, 9, session_crc(p));
    sql_bind_str(st, 10, p->owner);
    return sql_run(s, SQL_SESSION_PUT, "cannot store a session", err);
}

enum bt_code sql_sessions(struct journal *j, uint32_t limit, journal_session_fn fn, void *self,
                          struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_SESSIONS];
    enum bt_code code = BT_OK;
    int rc = STMT_DONE;

    for (uint32_t given = 0; given < limit && (rc = stmt_step(st)) == STMT_ROW;) {
        struct journal_session p;
        struct bt_error why;
        if (sql_session_read(st, &p, &why) != BT_OK) {
            log_warn("journal.session_unreadable", "%s", why.msg);
            continue;
        }
        given++;
        if (!fn(&p, self)) {
            break;
        }
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot list sessions", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_message_add(struct journal *j, struct str session, const struct journal_message *m,
                             struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_MESSAGE_ADD];
    enum bt_code code = sql_batch(s, m->text.len + MESSAGE_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    sql_bind_str(st, 1, session);
    stmt_bind_i64(st, 2, (int64_t)m->n);
    sql_bind_str(st, 3, m->role);
    stmt_bind_i64(st, 4, m->cut);
    sql_bind_uuid(st, 5, &m->turn);
    sql_bind_uuid(st, 6, &m->plan);
    stmt_bind_i64(st, 7, (int64_t)m->wall);
    stmt_bind_i64(st, 8, message_crc(session, m));
    sql_bind_str(st, 9, m->text);
    return sql_run(s, SQL_MESSAGE_ADD, "cannot store a message", err);
}

enum bt_code sql_messages(struct journal *j, struct str session, uint64_t last,
                          journal_message_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_MESSAGES];
    enum bt_code code = BT_OK;
    int rc;

    sql_bind_str(st, 1, session);
    stmt_bind_i64(st, 2, (int64_t)last);
    while ((rc = stmt_step(st)) == STMT_ROW) {
        struct journal_message m;
        struct bt_error why;
        if (sql_message_read(st, &m, &why) != BT_OK) {
            log_warn("journal.message_unreadable", "%s", why.msg);
            m = (struct journal_message){.n = m.n, .damaged = true};
        }
        if (!fn(&m, self)) {
            break;
        }
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot read messages", err);
    }
    stmt_reset(st);
    return code;
}
