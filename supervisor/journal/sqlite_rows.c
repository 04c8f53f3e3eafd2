/* Rows and blobs on SQLite: the hot path of writes, and the two ways of reading. */
#include <inttypes.h>

#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

enum { ROW_OVERHEAD = 64 }; /* of a row and its index entry, for the estimate of space */

static uint32_t row_crc(uint64_t pos, const struct journal_row *row)
{
    uint32_t crc = crc32c_u64(0, pos);
    crc = crc32c_u64(crc, row->plan_ix);
    crc = crc32c_u64(crc, row->plan_seq);
    crc = crc32c_u64(crc, row->wall);
    crc = crc32c_bytes(crc, row->type.ptr, row->type.len);
    crc = crc32c_bytes(crc, row->topic.ptr, row->topic.len);
    return crc32c_bytes(crc, row->body, row->body_len);
}

static void bind_blob(sqlite3_stmt *st, int at, const void *bytes, size_t len)
{
    /* A null pointer would bind NULL (Q8). */
    (void)sqlite3_bind_blob64(st, at, bytes == NULL ? "" : bytes, len, SQLITE_STATIC);
}

enum bt_code sqlite_append(struct journal *j, uint64_t pos, const struct journal_row *row,
                           struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_ROW_ADD];
    size_t bytes = row->body_len + row->topic.len + row->type.len + ROW_OVERHEAD;
    enum bt_code code = sqlite_batch(s, bytes, err);

    if (code != BT_OK) {
        return code;
    }
    (void)sqlite3_bind_int64(st, 1, (int64_t)pos);
    (void)sqlite3_bind_int64(st, 2, (int64_t)row->plan_ix);
    (void)sqlite3_bind_int64(st, 3, (int64_t)row->plan_seq);
    sqlite_bind_str(st, 4, row->type);
    sqlite_bind_str(st, 5, row->topic);
    (void)sqlite3_bind_int64(st, 6, (int64_t)row->wall);
    (void)sqlite3_bind_int64(st, 7, (int64_t)row_crc(pos, row));
    bind_blob(st, 8, row->body, row->body_len);
    code = sqlite_run(s, SQL_ROW_ADD, "cannot append to the journal", err);
    if (code == BT_OK) {
        struct journal_row placed = *row;
        placed.seq = pos_seq(pos);
        code = sqlite_chain_row(s, &placed, err);
    }
    return code;
}

enum bt_code sqlite_blob_add(struct journal *j, const void *bytes, size_t len, uint64_t *ret_id,
                             struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_BLOB_ADD];
    uint64_t id = s->now.blobs + 1;
    enum bt_code code = sqlite_batch(s, len + ROW_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    (void)sqlite3_bind_int64(st, 1, (int64_t)id);
    (void)sqlite3_bind_int64(st, 2, (int64_t)crc32c_bytes(crc32c_u64(0, id), bytes, len));
    bind_blob(st, 3, bytes, len);
    code = sqlite_run(s, SQL_BLOB_ADD, "cannot store a result", err);
    if (code == BT_OK) {
        s->now.blobs = id;
        *ret_id = id;
        code = sqlite_blob_hashed(s, id, bytes, len, err);
    }
    return code;
}

enum bt_code sqlite_blob_get(struct journal *j, uint64_t id, struct buf *out, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_BLOB_GET];
    enum bt_code code;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)id);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(st, 1);
        size_t len = (size_t)sqlite3_column_bytes(st, 1);
        if (bytes == NULL && len == 0 && sqlite3_errcode(s->db) == SQLITE_NOMEM) {
            code = sqlite_error(s->db, "cannot read a result", err);
        } else if (sqlite_col_u64(st, 0) != crc32c_bytes(crc32c_u64(0, id), bytes, len)) {
            code = err_set(err, BT_IO, "blob %" PRIu64 " of the journal is damaged", id);
        } else {
            buf_add(out, bytes, len);
            code = buf_check(out, err);
        }
    } else if (rc == SQLITE_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no blob %" PRIu64 " in the journal", id);
    } else {
        code = sqlite_error(s->db, "cannot read a result", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_row_read(sqlite3_stmt *st, struct journal_row *ret, struct bt_error *err)
{
    uint64_t pos = sqlite_col_u64(st, 0);

    *ret = (struct journal_row){
        .pos = pos,
        .seq = pos_seq(pos),
        .is_public = (pos & POS_K_MAX) == 0,
        .plan_ix = sqlite_col_u64(st, 1),
        .plan_seq = sqlite_col_u64(st, 2),
        .type = sqlite_col_str(st, 3),
        .topic = sqlite_col_str(st, 4),
        .wall = sqlite_col_u64(st, 5),
    };
    ret->body = sqlite3_column_blob(st, 7);
    ret->body_len = (size_t)sqlite3_column_bytes(st, 7);
    if (sqlite3_errcode(sqlite3_db_handle(st)) == SQLITE_NOMEM) {
        return sqlite_error(sqlite3_db_handle(st), "cannot read a row of the journal", err);
    }
    if (sqlite_col_u64(st, 6) != row_crc(pos, ret)) {
        return err_set(err, BT_IO,
                       "the row of seq %" PRIu64 " (number %" PRIu64 ") of the journal is damaged",
                       pos_seq(pos), pos & POS_K_MAX);
    }
    return BT_OK;
}

/* Seqs have no gaps but those of deletions. */
static enum bt_code check_deleted(struct sqlite_journal *s, uint64_t from, uint64_t to,
                                  struct bt_error *err)
{
    uint64_t last = 0;
    enum bt_code code = sqlite_gap_end(s, GAP_SEQ, from, &last, err);

    if (code == BT_OK && last < to) {
        code = err_set(err, BT_IO,
                       "the journal is damaged: rows are missing from seq %" PRIu64 " to %" PRIu64,
                       from > last ? from : last + 1, to);
    }
    return code;
}

enum bt_code sqlite_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit,
                           journal_row_fn fn, void *self, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[plan_ix == 0 ? SQL_ROWS : SQL_ROWS_PLAN];
    uint64_t expect = from_seq == 0 ? 1 : from_seq;
    enum bt_code code = BT_OK;
    uint32_t given = 0;
    int rc = SQLITE_DONE;

    (void)sqlite3_bind_int64(st, 1, (int64_t)(from_seq << POS_K_BITS));
    (void)sqlite3_bind_int64(st, 2, (int64_t)j->committed_pos);
    if (plan_ix != 0) {
        (void)sqlite3_bind_int64(st, 3, (int64_t)plan_ix);
    }
    while (given < limit && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct journal_row row;
        if ((sqlite_col_u64(st, 0) & POS_K_MAX) != 0) {
            continue;
        }
        code = sqlite_row_read(st, &row, err);
        if (code == BT_OK && plan_ix == 0 && row.seq != expect) {
            code = check_deleted(s, expect, row.seq - 1, err);
        }
        if (code != BT_OK || !fn(&row, self)) {
            break;
        }
        given++;
        expect = row.seq + 1;
    }
    if (code == BT_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read the journal", err);
    } else if (code == BT_OK && rc == SQLITE_DONE && plan_ix == 0 &&
               expect <= pos_seq(j->committed_pos)) {
        code = check_deleted(s, expect, pos_seq(j->committed_pos), err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_last_row(struct journal *j, uint64_t plan_ix, bool only_public,
                             journal_row_fn fn, void *self, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_ROW_LAST];
    struct journal_row row;
    enum bt_code code = BT_OK;
    bool found = false;
    int rc = SQLITE_ROW;

    (void)sqlite3_bind_int64(st, 1, (int64_t)plan_ix);
    (void)sqlite3_bind_int64(st, 2, (int64_t)j->committed_pos);
    while (code == BT_OK && !found && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        code = sqlite_row_read(st, &row, err);
        found = code == BT_OK && (row.is_public || !only_public);
    }
    if (code == BT_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read the journal", err);
    } else if (found) {
        (void)fn(&row, self);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_replay(struct journal *j, uint64_t plan_ix, struct journal_place *place,
                           journal_row_fn fn, void *self, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_ROWS_PLAN];
    uint64_t plan_seq = place->plan_seq;
    enum bt_code code = BT_OK;
    bool go_on = true;
    int rc = SQLITE_DONE;

    (void)sqlite3_bind_int64(st, 1, (int64_t)(place->pos + 1));
    (void)sqlite3_bind_int64(st, 2, (int64_t)j->committed_pos);
    (void)sqlite3_bind_int64(st, 3, (int64_t)plan_ix);
    while (go_on && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct journal_row row;
        code = sqlite_row_read(st, &row, err);
        if (code == BT_OK && row.is_public && row.plan_seq != ++plan_seq) {
            code = err_set(err, BT_IO,
                           "the journal is damaged: planSeq %" PRIu64 " of plan number %" PRIu64
                           " is missing, %" PRIu64 " follows",
                           plan_seq, plan_ix, row.plan_seq);
        }
        if (code != BT_OK) {
            break;
        }
        go_on = fn(&row, self);
        *place = (struct journal_place){.pos = row.pos, .plan_seq = plan_seq};
    }
    if (code == BT_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot read the journal", err);
    }
    (void)sqlite3_reset(st);
    return code;
}
