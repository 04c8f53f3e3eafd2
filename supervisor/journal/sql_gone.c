/* What deletion leaves on SQLite: the ranges of numbers that are gone, and tombstones. */
#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

/* ---- ranges of numbers that were deleted ---- */

static uint32_t gap_crc(enum gap kind, uint64_t first, uint64_t last)
{
    return crc32c_u64(crc32c_u64(crc32c_u64(0, kind), first), last);
}

/* The last range that begins at `at` or before; *ret_last = 0: there is none. BT_INVALID: it is
 * damaged. */
static enum bt_code gap_at(struct sql_journal *s, enum gap kind, uint64_t at, uint64_t *ret_first,
                           uint64_t *ret_last, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_GAP_AT];
    enum bt_code code = BT_OK;
    int rc;

    *ret_first = *ret_last = 0;
    stmt_bind_i64(st, 1, kind);
    stmt_bind_i64(st, 2, at > INT64_MAX ? INT64_MAX : (int64_t)at);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        uint64_t first = sql_col_u64(st, 0);
        uint64_t last = sql_col_u64(st, 1);
        if (sql_col_u64(st, 2) != gap_crc(kind, first, last)) {
            code = err_set(err, BT_INVALID, "the journal is damaged: a range of deleted numbers");
        } else {
            *ret_first = first;
            *ret_last = last;
        }
    } else if (rc != STMT_DONE) {
        code = sql_error(s, "cannot read what was deleted", err);
    }
    stmt_reset(st);
    return code;
}

/* A damaged range counts for nothing: its numbers could be anything. */
enum bt_code sql_gaps_top(struct sql_journal *s, enum gap kind, uint64_t *ret, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_GAPS];
    int rc;

    *ret = 0;
    stmt_bind_i64(st, 1, kind);
    while ((rc = stmt_step(st)) == STMT_ROW) {
        if (!sql_gap_read(st)) {
            s->gaps_damaged = true;
            log_warn("journal.gap_damaged", "kind=%d first=%lld", (int)kind,
                     (long long)sql_col_u64(st, 1));
        } else if (sql_col_u64(st, 2) > *ret) {
            *ret = sql_col_u64(st, 2);
        }
    }
    stmt_reset(st);
    return rc == STMT_DONE ? BT_OK : sql_error(s, "cannot read what was deleted", err);
}

bool sql_gap_read(struct stmt *st)
{
    const enum gap kind = sql_col_u64(st, 0) == GAP_SEQ ? GAP_SEQ : GAP_PLAN;

    return sql_col_u64(st, 3) == gap_crc(kind, sql_col_u64(st, 1), sql_col_u64(st, 2));
}

enum bt_code sql_gap_next(struct sql_journal *s, enum gap kind, uint64_t at, uint64_t *ret,
                          struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_GAP_NEXT];
    enum bt_code code = BT_OK;
    int rc;

    stmt_bind_i64(st, 1, kind);
    stmt_bind_i64(st, 2, at > INT64_MAX ? INT64_MAX : (int64_t)at);
    rc = stmt_step(st);
    *ret = rc == STMT_ROW ? sql_col_u64(st, 0) : UINT64_MAX;
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot read what was deleted", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_gap_end(struct sql_journal *s, enum gap kind, uint64_t at, uint64_t *ret,
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

static enum bt_code gap_drop(struct sql_journal *s, enum gap kind, uint64_t first,
                             struct bt_error *err)
{
    stmt_bind_i64(&s->stmt[SQL_GAP_DROP], 1, kind);
    stmt_bind_i64(&s->stmt[SQL_GAP_DROP], 2, (int64_t)first);
    return sql_run(s, SQL_GAP_DROP, "cannot note what was deleted", err);
}

/* The same; a damaged range is none, and is written over when it has the same beginning. */
static enum bt_code gap_beside(struct sql_journal *s, enum gap kind, uint64_t at,
                               uint64_t *ret_first, uint64_t *ret_last, struct bt_error *err)
{
    const enum bt_code code = gap_at(s, kind, at, ret_first, ret_last, err);

    return code == BT_INVALID ? BT_OK : code;
}

enum bt_code sql_gap_add(struct sql_journal *s, enum gap kind, uint64_t first, uint64_t last,
                         struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_GAP_PUT];
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
    stmt_bind_i64(st, 1, kind);
    stmt_bind_i64(st, 2, (int64_t)first);
    stmt_bind_i64(st, 3, (int64_t)last);
    stmt_bind_i64(st, 4, gap_crc(kind, first, last));
    return sql_run(s, SQL_GAP_PUT, "cannot note what was deleted", err);
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

bool sql_gone_read(struct stmt *st, struct journal_gone *ret)
{
    *ret = (struct journal_gone){
        .ix = sql_col_u64(st, 0),
        .plan_id = sql_col_uuid(st, 1),
        .client_key = sql_col_str(st, 2),
        .status = sql_col_str(st, 3),
        .created_wall = sql_col_u64(st, 4),
        .ended_wall = sql_col_u64(st, 5),
        .deleted_wall = sql_col_u64(st, 6),
        .why = sql_col_str(st, 7),
        .rows = sql_col_u64(st, 8),
        .head = sql_col_str(st, 9),
        .owner = sql_col_str(st, 11),
    };
    return sql_col_u64(st, 10) == gone_crc(ret);
}

static enum bt_code gone_find(struct sql_journal *s, enum sql which, struct journal_gone *ret,
                              struct bt_error *err)
{
    struct str *const texts[] = {&ret->client_key, &ret->status, &ret->why, &ret->head,
                                 &ret->owner};
    const size_t n = sizeof texts / sizeof texts[0];
    struct stmt *st = &s->stmt[which];
    size_t at = 0;
    enum bt_code code = BT_OK;
    int rc = stmt_step(st);

    if (rc == STMT_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no such deleted plan");
    } else if (rc != STMT_ROW) {
        code = sql_error(s, "cannot look up a deleted plan", err);
    } else if (!sql_gone_read(st, ret)) {
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
    stmt_reset(st);
    return code;
}

enum bt_code sql_gone_by_id(struct journal *j, struct uuid id, struct journal_gone *ret,
                            struct bt_error *err)
{
    sql_bind_uuid(&sql_of(j)->stmt[SQL_GONE_BY_ID], 1, &id);
    return gone_find(sql_of(j), SQL_GONE_BY_ID, ret, err);
}

enum bt_code sql_gone_by_key(struct sql_journal *s, struct str key, struct journal_gone *ret,
                             struct bt_error *err)
{
    sql_bind_str(&s->stmt[SQL_GONE_BY_KEY], 1, key);
    return gone_find(s, SQL_GONE_BY_KEY, ret, err);
}

enum bt_code sql_gone_put(struct sql_journal *s, const struct journal_gone *g, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_GONE_PUT];

    stmt_bind_i64(st, 1, (int64_t)g->ix);
    sql_bind_uuid(st, 2, &g->plan_id);
    if (g->client_key.len > 0) {
        sql_bind_str(st, 3, g->client_key);
    } else {
        stmt_bind_null(st, 3);
    }
    sql_bind_str(st, 4, g->status);
    stmt_bind_i64(st, 5, (int64_t)g->created_wall);
    stmt_bind_i64(st, 6, (int64_t)g->ended_wall);
    stmt_bind_i64(st, 7, (int64_t)g->deleted_wall);
    sql_bind_str(st, 8, g->why);
    stmt_bind_i64(st, 9, (int64_t)g->rows);
    sql_bind_str(st, 10, g->head);
    stmt_bind_i64(st, 11, gone_crc(g));
    sql_bind_str(st, 12, g->owner);
    return sql_run(s, SQL_GONE_PUT, "cannot delete a plan", err);
}
