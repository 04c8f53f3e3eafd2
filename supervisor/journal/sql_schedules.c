/* Schedules on SQLite. The rule and the document change when somebody puts the schedule again, the
 * state with each fire: it is small, and has a table of its own. */
#include <inttypes.h>

#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

enum { SCHEDULE_OVERHEAD = 512, NAME_SHOWN = 64 };

static uint32_t schedule_crc(const struct journal_schedule *p)
{
    uint32_t crc = crc32c_u64(0, p->ix);

    crc = crc32c_bytes(crc, p->name.ptr, p->name.len);
    crc = crc32c_bytes(crc, p->owner.ptr, p->owner.len);
    crc = crc32c_u64(crc, p->body_hash);
    crc = crc32c_u64(crc, p->created_wall);
    return crc32c_bytes(crc, p->rule.ptr, p->rule.len);
}

static uint32_t bytes_crc(uint64_t ix, struct str bytes)
{
    return crc32c_bytes(crc32c_u64(0, ix), bytes.ptr, bytes.len);
}

static void bind_blob(struct stmt *st, int at, struct str bytes)
{
    stmt_bind_blob(st, at, bytes.len > 0 ? bytes.ptr : "", bytes.len);
}

enum bt_code sql_schedule_read(struct stmt *st, struct journal_schedule *ret, struct bt_error *err)
{
    *ret = (struct journal_schedule){
        .ix = sql_col_u64(st, 0),
        .name = sql_col_str(st, 1),
        .owner = sql_col_str(st, 2),
        .body_hash = sql_col_u64(st, 3),
        .created_wall = sql_col_u64(st, 4),
        .rule = stmt_col_blob(st, 5),
        .state = stmt_col_blob(st, 7),
    };
    if (sql_col_u64(st, 6) != schedule_crc(ret) ||
        sql_col_u64(st, 8) != bytes_crc(ret->ix, ret->state)) {
        ret->damaged = true;
        return err_set(err, BT_IO, "the schedule '%.*s' in the journal is damaged",
                       ret->name.len > NAME_SHOWN ? NAME_SHOWN : (int)ret->name.len, ret->name.ptr);
    }
    return BT_OK;
}

enum bt_code sql_schedule_doc_read(struct stmt *st, struct journal_schedule *ret,
                                   struct bt_error *err)
{
    const uint64_t ix = sql_col_u64(st, 0);

    ret->doc = stmt_col_blob(st, 2);
    return sql_col_u64(st, 1) == bytes_crc(ix, ret->doc)
               ? BT_OK
               : err_set(err, BT_IO, "the document of the schedule number %" PRIu64 " is damaged",
                         ix);
}

/* The number of this name, or 0. */
static enum bt_code find(struct sql_journal *s, struct str name, uint64_t *ret,
                         struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_SCHEDULE_IX];
    enum bt_code code = BT_OK;
    int rc;

    *ret = 0;
    sql_bind_str(st, 1, name);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        *ret = sql_col_u64(st, 0);
    } else if (rc != STMT_DONE) {
        code = sql_error(s, "cannot look up a schedule", err);
    }
    stmt_reset(st);
    return code;
}

static enum bt_code next_ix(struct sql_journal *s, uint64_t *ret, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_SCHEDULE_TOP];
    enum bt_code code = BT_OK;

    if (stmt_step(st) == STMT_ROW) {
        *ret = sql_col_u64(st, 0) + 1;
    } else {
        code = sql_error(s, "cannot number a schedule", err);
    }
    stmt_reset(st);
    return code;
}

static enum bt_code put_state(struct sql_journal *s, uint64_t ix, struct str state,
                              struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_SCHEDULE_STATE];

    stmt_bind_i64(st, 1, (int64_t)ix);
    stmt_bind_i64(st, 2, bytes_crc(ix, state));
    bind_blob(st, 3, state);
    return sql_run(s, SQL_SCHEDULE_STATE, "cannot store where a schedule is", err);
}

enum bt_code sql_schedule_put(struct journal *j, const struct journal_schedule *p, uint64_t *ret_ix,
                              struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_SCHEDULE_ADD];
    struct journal_schedule put = *p;
    enum bt_code code = find(s, p->name, &put.ix, err);

    if (code == BT_OK && put.ix == 0) {
        code = next_ix(s, &put.ix, err);
    }
    if (code == BT_OK) {
        code = sql_batch(s, SCHEDULE_OVERHEAD + p->rule.len + p->doc.len + p->state.len, err);
    }
    if (code != BT_OK) {
        return code;
    }
    stmt_bind_i64(st, 1, (int64_t)put.ix);
    sql_bind_str(st, 2, put.name);
    sql_bind_str(st, 3, put.owner);
    stmt_bind_i64(st, 4, (int64_t)put.body_hash);
    stmt_bind_i64(st, 5, (int64_t)put.created_wall);
    bind_blob(st, 6, put.rule);
    stmt_bind_i64(st, 7, schedule_crc(&put));
    stmt_bind_i64(st, 8, bytes_crc(put.ix, put.doc));
    bind_blob(st, 9, put.doc);
    code = sql_run(s, SQL_SCHEDULE_ADD, "cannot store a schedule", err);
    *ret_ix = put.ix;
    return code == BT_OK ? put_state(s, put.ix, put.state, err) : code;
}

enum bt_code sql_schedule_state(struct journal *j, uint64_t ix, struct str state,
                                struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    enum bt_code code = sql_batch(s, SCHEDULE_OVERHEAD + state.len, err);

    return code == BT_OK ? put_state(s, ix, state, err) : code;
}

enum bt_code sql_schedule_delete(struct journal *j, uint64_t ix, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    enum bt_code code = sql_batch(s, SCHEDULE_OVERHEAD, err);

    if (code == BT_OK) {
        stmt_bind_i64(&s->stmt[SQL_SCHEDULE_DROP], 1, (int64_t)ix);
        stmt_bind_i64(&s->stmt[SQL_SCHEDULE_STATE_DROP], 1, (int64_t)ix);
        code = sql_run(s, SQL_SCHEDULE_DROP, "cannot delete a schedule", err);
    }
    return code == BT_OK ? sql_run(s, SQL_SCHEDULE_STATE_DROP, "cannot delete a schedule", err)
                         : code;
}

/* Copies the strings behind one another; they may move until all are there. */
static enum bt_code keep(struct buf *text, struct journal_schedule *ret, struct bt_error *err)
{
    struct str *const all[] = {&ret->name, &ret->owner, &ret->rule, &ret->state, &ret->doc};
    size_t at = text->len;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        buf_add_str(text, *all[i]);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0] && text->bad == BT_OK; i++) {
        all[i]->ptr = buf_cstr(text) + at;
        at += all[i]->len;
    }
    return buf_check(text, err);
}

enum bt_code sql_schedule_by_name(struct journal *j, struct str name, struct journal_schedule *ret,
                                  struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *head = &s->stmt[SQL_SCHEDULE_GET];
    struct stmt *doc = &s->stmt[SQL_SCHEDULE_DOC];
    uint64_t ix = 0;
    enum bt_code code = find(s, name, &ix, err);

    if (code == BT_OK && ix == 0) {
        code = err_set(err, BT_NOT_FOUND, "no schedule '%.*s'", STR_ARG(name));
    }
    if (code != BT_OK) {
        return code;
    }
    stmt_bind_i64(head, 1, (int64_t)ix);
    stmt_bind_i64(doc, 1, (int64_t)ix);
    if (stmt_step(head) != STMT_ROW || stmt_step(doc) != STMT_ROW) {
        code = sql_error(s, "cannot read a schedule", err);
    } else {
        code = sql_schedule_read(head, ret, err);
        code = code == BT_OK ? sql_schedule_doc_read(doc, ret, err) : code;
        buf_clear(&s->schedule_text);
        code = code == BT_OK ? keep(&s->schedule_text, ret, err) : code;
    }
    stmt_reset(head);
    stmt_reset(doc);
    return code;
}

enum bt_code sql_schedules(struct journal *j, uint64_t after, journal_schedule_fn fn, void *self,
                           struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_SCHEDULES];
    enum bt_code code = BT_OK;
    int rc;

    stmt_bind_i64(st, 1, (int64_t)after);
    while ((rc = stmt_step(st)) == STMT_ROW) {
        struct journal_schedule p;
        struct bt_error why;
        if (sql_schedule_read(st, &p, &why) != BT_OK) {
            log_warn("journal.schedule_unreadable", "%s", why.msg);
        }
        if (!fn(&p, self)) {
            break;
        }
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot list schedules", err);
    }
    stmt_reset(st);
    return code;
}
