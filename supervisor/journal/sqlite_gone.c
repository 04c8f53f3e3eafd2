/* What deletion leaves on SQLite: the ranges of numbers that are gone, and tombstones. */
#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

/* ---- ranges of numbers that were deleted ---- */

static uint32_t gap_crc(enum gap kind, uint64_t first, uint64_t last)
{
    return crc32c_u64(crc32c_u64(crc32c_u64(0, kind), first), last);
}

/* The last range that begins at `at` or before; *ret_last = 0: there is none. BT_INVALID: it is
 * damaged. */
static enum bt_code gap_at(struct sqlite_journal *s, enum gap kind, uint64_t at,
                           uint64_t *ret_first, uint64_t *ret_last, struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_GAP_AT];
    enum bt_code code = BT_OK;
    int rc;

    *ret_first = *ret_last = 0;
    (void)sqlite3_bind_int64(st, 1, kind);
    (void)sqlite3_bind_int64(st, 2, at > INT64_MAX ? INT64_MAX : (int64_t)at);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        uint64_t first = sqlite_col_u64(st, 0);
        uint64_t last = sqlite_col_u64(st, 1);
        if (sqlite_col_u64(st, 2) != gap_crc(kind, first, last)) {
            code = err_set(err, BT_INVALID, "the journal is damaged: a range of deleted numbers");
        } else {
            *ret_first = first;
            *ret_last = last;
        }
    } else if (rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read what was deleted", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

/* A damaged range counts for nothing: its numbers could be anything. */
enum bt_code sqlite_gaps_top(struct sqlite_journal *s, enum gap kind, uint64_t *ret,
                             struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_GAPS];
    int rc;

    *ret = 0;
    (void)sqlite3_bind_int64(st, 1, kind);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (!sqlite_gap_read(st)) {
            s->gaps_damaged = true;
            log_warn("journal.gap_damaged", "kind=%d first=%lld", (int)kind,
                     (long long)sqlite3_column_int64(st, 1));
        } else if (sqlite_col_u64(st, 2) > *ret) {
            *ret = sqlite_col_u64(st, 2);
        }
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? BT_OK : sqlite_error(s->db, "cannot read what was deleted", err);
}

bool sqlite_gap_read(sqlite3_stmt *st)
{
    const enum gap kind = sqlite_col_u64(st, 0) == GAP_SEQ ? GAP_SEQ : GAP_PLAN;

    return sqlite_col_u64(st, 3) == gap_crc(kind, sqlite_col_u64(st, 1), sqlite_col_u64(st, 2));
}

enum bt_code sqlite_gap_next(struct sqlite_journal *s, enum gap kind, uint64_t at, uint64_t *ret,
                             struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_GAP_NEXT];
    enum bt_code code = BT_OK;
    int rc;

    (void)sqlite3_bind_int64(st, 1, kind);
    (void)sqlite3_bind_int64(st, 2, at > INT64_MAX ? INT64_MAX : (int64_t)at);
    rc = sqlite3_step(st);
    *ret = rc == SQLITE_ROW ? sqlite_col_u64(st, 0) : UINT64_MAX;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read what was deleted", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_gap_end(struct sqlite_journal *s, enum gap kind, uint64_t at, uint64_t *ret,
                            struct bt_error *err)
{
    uint64_t first;
    enum bt_code code = gap_at(s, kind, at, &first, ret, err);

    if (code == BT_INVALID) {
        code = BT_IO;
    }
    *ret = code == BT_OK && *ret >= at ? *ret : 0;
    return code;
}

static enum bt_code gap_drop(struct sqlite_journal *s, enum gap kind, uint64_t first,
                             struct bt_error *err)
{
    (void)sqlite3_bind_int64(s->stmt[SQL_GAP_DROP], 1, kind);
    (void)sqlite3_bind_int64(s->stmt[SQL_GAP_DROP], 2, (int64_t)first);
    return sqlite_run(s, SQL_GAP_DROP, "cannot note what was deleted", err);
}

/* The same; a damaged range is none, and is written over when it has the same beginning. */
static enum bt_code gap_beside(struct sqlite_journal *s, enum gap kind, uint64_t at,
                               uint64_t *ret_first, uint64_t *ret_last, struct bt_error *err)
{
    const enum bt_code code = gap_at(s, kind, at, ret_first, ret_last, err);

    return code == BT_INVALID ? BT_OK : code;
}

enum bt_code sqlite_gap_add(struct sqlite_journal *s, enum gap kind, uint64_t first, uint64_t last,
                            struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_GAP_PUT];
    uint64_t was_first;
    uint64_t was_last;
    enum bt_code code = gap_beside(s, kind, last + 1, &was_first, &was_last, err);

    if (code == BT_OK && was_last != 0 && was_first == last + 1) {
        last = was_last;
        code = gap_drop(s, kind, was_first, err);
    }
    if (code == BT_OK) {
        code = gap_beside(s, kind, first, &was_first, &was_last, err);
    }
    if (code == BT_OK && was_last != 0 && was_last + 1 >= first) {
        first = was_first;
        last = was_last > last ? was_last : last;
    }
    if (code != BT_OK) {
        return code;
    }
    (void)sqlite3_bind_int64(st, 1, kind);
    (void)sqlite3_bind_int64(st, 2, (int64_t)first);
    (void)sqlite3_bind_int64(st, 3, (int64_t)last);
    (void)sqlite3_bind_int64(st, 4, gap_crc(kind, first, last));
    return sqlite_run(s, SQL_GAP_PUT, "cannot note what was deleted", err);
}

/* ---- tombstones ---- */

static uint32_t gone_crc(const struct journal_gone *g)
{
    uint32_t crc = crc32c_u64(0, g->ix);
    crc = crc32c(crc, g->plan_id.b, sizeof g->plan_id.b);
    crc = crc32c_bytes(crc, g->client_key.ptr, g->client_key.len);
    crc = crc32c_bytes(crc, g->status.ptr, g->status.len);
    crc = crc32c_u64(crc, g->created_wall);
    crc = crc32c_u64(crc, g->ended_wall);
    crc = crc32c_u64(crc, g->deleted_wall);
    crc = crc32c_bytes(crc, g->why.ptr, g->why.len);
    crc = crc32c_u64(crc, g->rows);
    crc = crc32c_bytes(crc, g->head.ptr, g->head.len);
    return g->owner.len > 0 ? crc32c_bytes(crc, g->owner.ptr, g->owner.len) : crc;
}

bool sqlite_gone_read(sqlite3_stmt *st, struct journal_gone *ret)
{
    *ret = (struct journal_gone){
        .ix = sqlite_col_u64(st, 0),
        .plan_id = sqlite_col_uuid(st, 1),
        .client_key = sqlite_col_str(st, 2),
        .status = sqlite_col_str(st, 3),
        .created_wall = sqlite_col_u64(st, 4),
        .ended_wall = sqlite_col_u64(st, 5),
        .deleted_wall = sqlite_col_u64(st, 6),
        .why = sqlite_col_str(st, 7),
        .rows = sqlite_col_u64(st, 8),
        .head = sqlite_col_str(st, 9),
        .owner = sqlite_col_str(st, 11),
    };
    return sqlite_col_u64(st, 10) == gone_crc(ret);
}

static enum bt_code gone_find(struct sqlite_journal *s, enum sql which, struct journal_gone *ret,
                              struct bt_error *err)
{
    struct str *const texts[] = {&ret->client_key, &ret->status, &ret->why, &ret->head,
                                 &ret->owner};
    const size_t n = sizeof texts / sizeof texts[0];
    sqlite3_stmt *st = s->stmt[which];
    size_t at = 0;
    enum bt_code code = BT_OK;
    int rc = sqlite3_step(st);

    if (rc == SQLITE_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no such deleted plan");
    } else if (rc != SQLITE_ROW) {
        code = sqlite_error(s->db, "cannot look up a deleted plan", err);
    } else if (!sqlite_gone_read(st, ret)) {
        code = err_set(err, BT_IO, "the record of a deleted plan is damaged");
    } else {
        buf_clear(&s->plan_text);
        for (size_t i = 0; i < n; i++) {
            buf_add_str(&s->plan_text, *texts[i]);
        }
        for (size_t i = 0; i < n && s->plan_text.bad == BT_OK; i++) {
            texts[i]->ptr = buf_cstr(&s->plan_text) + at;
            at += texts[i]->len;
        }
        code = buf_check(&s->plan_text, err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_gone_by_id(struct journal *j, struct uuid id, struct journal_gone *ret,
                               struct bt_error *err)
{
    sqlite_bind_uuid(sqlite_of(j)->stmt[SQL_GONE_BY_ID], 1, &id);
    return gone_find(sqlite_of(j), SQL_GONE_BY_ID, ret, err);
}

enum bt_code sqlite_gone_by_key(struct sqlite_journal *s, struct str key, struct journal_gone *ret,
                                struct bt_error *err)
{
    sqlite_bind_str(s->stmt[SQL_GONE_BY_KEY], 1, key);
    return gone_find(s, SQL_GONE_BY_KEY, ret, err);
}

enum bt_code sqlite_gone_put(struct sqlite_journal *s, const struct journal_gone *g,
                             struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_GONE_PUT];

    (void)sqlite3_bind_int64(st, 1, (int64_t)g->ix);
    sqlite_bind_uuid(st, 2, &g->plan_id);
    if (g->client_key.len > 0) {
        sqlite_bind_str(st, 3, g->client_key);
    } else {
        (void)sqlite3_bind_null(st, 3);
    }
    sqlite_bind_str(st, 4, g->status);
    (void)sqlite3_bind_int64(st, 5, (int64_t)g->created_wall);
    (void)sqlite3_bind_int64(st, 6, (int64_t)g->ended_wall);
    (void)sqlite3_bind_int64(st, 7, (int64_t)g->deleted_wall);
    sqlite_bind_str(st, 8, g->why);
    (void)sqlite3_bind_int64(st, 9, (int64_t)g->rows);
    sqlite_bind_str(st, 10, g->head);
    (void)sqlite3_bind_int64(st, 11, gone_crc(g));
    sqlite_bind_str(st, 12, g->owner);
    return sqlite_run(s, SQL_GONE_PUT, "cannot delete a plan", err);
}
