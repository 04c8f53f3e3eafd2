/* Schedules on SQLite. The rule and the document change when somebody puts the schedule again, the
 * state with each fire: it is small, and has a table of its own. */
#include <inttypes.h>

#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

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

static struct str col_blob(sqlite3_stmt *st, int at)
{
    const void *bytes = sqlite3_column_blob(st, at);

    return bytes == NULL ? STR_LIT("") : (struct str){bytes, (size_t)sqlite3_column_bytes(st, at)};
}

static void bind_blob(sqlite3_stmt *st, int at, struct str bytes)
{
    (void)sqlite3_bind_blob64(st, at, bytes.len > 0 ? bytes.ptr : "", bytes.len, SQLITE_STATIC);
}

enum bt_code sqlite_schedule_read(sqlite3_stmt *st, struct journal_schedule *ret,
                                  struct bt_error *err)
{
    *ret = (struct journal_schedule){
        .ix = sqlite_col_u64(st, 0),
        .name = sqlite_col_str(st, 1),
        .owner = sqlite_col_str(st, 2),
        .body_hash = sqlite_col_u64(st, 3),
        .created_wall = sqlite_col_u64(st, 4),
        .rule = col_blob(st, 5),
        .state = col_blob(st, 7),
    };
    if (sqlite_col_u64(st, 6) != schedule_crc(ret) ||
        sqlite_col_u64(st, 8) != bytes_crc(ret->ix, ret->state)) {
        ret->damaged = true;
        return err_set(err, BT_IO, "the schedule '%.*s' in the journal is damaged",
                       ret->name.len > NAME_SHOWN ? NAME_SHOWN : (int)ret->name.len, ret->name.ptr);
    }
    return BT_OK;
}

enum bt_code sqlite_schedule_doc_read(sqlite3_stmt *st, struct journal_schedule *ret,
                                      struct bt_error *err)
{
    const uint64_t ix = sqlite_col_u64(st, 0);

    ret->doc = col_blob(st, 2);
    return sqlite_col_u64(st, 1) == bytes_crc(ix, ret->doc)
               ? BT_OK
               : err_set(err, BT_IO, "the document of the schedule number %" PRIu64 " is damaged",
                         ix);
}

/* The number of this name, or 0. */
static enum bt_code find(struct sqlite_journal *s, struct str name, uint64_t *ret,
                         struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_SCHEDULE_IX];
    enum bt_code code = BT_OK;
    int rc;

    *ret = 0;
    sqlite_bind_str(st, 1, name);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        *ret = sqlite_col_u64(st, 0);
    } else if (rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot look up a schedule", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

static enum bt_code next_ix(struct sqlite_journal *s, uint64_t *ret, struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_SCHEDULE_TOP];
    enum bt_code code = BT_OK;

    if (sqlite3_step(st) == SQLITE_ROW) {
        *ret = sqlite_col_u64(st, 0) + 1;
    } else {
        code = sqlite_error(s->db, "cannot number a schedule", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

static enum bt_code put_state(struct sqlite_journal *s, uint64_t ix, struct str state,
                              struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_SCHEDULE_STATE];

    (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
    (void)sqlite3_bind_int64(st, 2, bytes_crc(ix, state));
    bind_blob(st, 3, state);
    return sqlite_run(s, SQL_SCHEDULE_STATE, "cannot store where a schedule is", err);
}

enum bt_code sqlite_schedule_put(struct journal *j, const struct journal_schedule *p,
                                 uint64_t *ret_ix, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_SCHEDULE_ADD];
    struct journal_schedule put = *p;
    enum bt_code code = find(s, p->name, &put.ix, err);

    if (code == BT_OK && put.ix == 0) {
        code = next_ix(s, &put.ix, err);
    }
    if (code == BT_OK) {
        code = sqlite_batch(s, SCHEDULE_OVERHEAD + p->rule.len + p->doc.len + p->state.len, err);
    }
    if (code != BT_OK) {
        return code;
    }
    (void)sqlite3_bind_int64(st, 1, (int64_t)put.ix);
    sqlite_bind_str(st, 2, put.name);
    sqlite_bind_str(st, 3, put.owner);
    (void)sqlite3_bind_int64(st, 4, (int64_t)put.body_hash);
    (void)sqlite3_bind_int64(st, 5, (int64_t)put.created_wall);
    bind_blob(st, 6, put.rule);
    (void)sqlite3_bind_int64(st, 7, schedule_crc(&put));
    (void)sqlite3_bind_int64(st, 8, bytes_crc(put.ix, put.doc));
    bind_blob(st, 9, put.doc);
    code = sqlite_run(s, SQL_SCHEDULE_ADD, "cannot store a schedule", err);
    *ret_ix = put.ix;
    return code == BT_OK ? put_state(s, put.ix, put.state, err) : code;
}

enum bt_code sqlite_schedule_state(struct journal *j, uint64_t ix, struct str state,
                                   struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum bt_code code = sqlite_batch(s, SCHEDULE_OVERHEAD + state.len, err);

    return code == BT_OK ? put_state(s, ix, state, err) : code;
}

enum bt_code sqlite_schedule_delete(struct journal *j, uint64_t ix, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum bt_code code = sqlite_batch(s, SCHEDULE_OVERHEAD, err);

    if (code == BT_OK) {
        (void)sqlite3_bind_int64(s->stmt[SQL_SCHEDULE_DROP], 1, (int64_t)ix);
        (void)sqlite3_bind_int64(s->stmt[SQL_SCHEDULE_STATE_DROP], 1, (int64_t)ix);
        code = sqlite_run(s, SQL_SCHEDULE_DROP, "cannot delete a schedule", err);
    }
    return code == BT_OK ? sqlite_run(s, SQL_SCHEDULE_STATE_DROP, "cannot delete a schedule", err)
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

enum bt_code sqlite_schedule_by_name(struct journal *j, struct str name,
                                     struct journal_schedule *ret, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *head = s->stmt[SQL_SCHEDULE_GET];
    sqlite3_stmt *doc = s->stmt[SQL_SCHEDULE_DOC];
    uint64_t ix = 0;
    enum bt_code code = find(s, name, &ix, err);

    if (code == BT_OK && ix == 0) {
        code = err_set(err, BT_NOT_FOUND, "no schedule '%.*s'", STR_ARG(name));
    }
    if (code != BT_OK) {
        return code;
    }
    (void)sqlite3_bind_int64(head, 1, (int64_t)ix);
    (void)sqlite3_bind_int64(doc, 1, (int64_t)ix);
    if (sqlite3_step(head) != SQLITE_ROW || sqlite3_step(doc) != SQLITE_ROW) {
        code = sqlite_error(s->db, "cannot read a schedule", err);
    } else {
        code = sqlite_schedule_read(head, ret, err);
        code = code == BT_OK ? sqlite_schedule_doc_read(doc, ret, err) : code;
        buf_clear(&s->schedule_text);
        code = code == BT_OK ? keep(&s->schedule_text, ret, err) : code;
    }
    (void)sqlite3_reset(head);
    (void)sqlite3_reset(doc);
    return code;
}

enum bt_code sqlite_schedules(struct journal *j, uint64_t after, journal_schedule_fn fn, void *self,
                              struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_SCHEDULES];
    enum bt_code code = BT_OK;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)after);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct journal_schedule p;
        struct bt_error why;
        if (sqlite_schedule_read(st, &p, &why) != BT_OK) {
            log_warn("journal.schedule_unreadable", "%s", why.msg);
        }
        if (!fn(&p, self)) {
            break;
        }
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot list schedules", err);
    }
    (void)sqlite3_reset(st);
    return code;
}
