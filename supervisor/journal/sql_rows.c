/* Rows and blobs on SQLite: the hot path of writes, and the two ways of reading. */
#include <inttypes.h>

#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

enum { MISSING_MAX = 4096 }; /* markers for one range */
enum { ROW_OVERHEAD = 64 };  /* of a row and its index entry, for the estimate of space */

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

static void bind_blob(struct stmt *st, int at, const void *bytes, size_t len)
{
    /* A null pointer would bind NULL (Q8). */
    stmt_bind_blob(st, at, bytes == NULL ? "" : bytes, len);
}

enum bt_code sql_append(struct journal *j, uint64_t pos, const struct journal_row *row,
                        struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_ROW_ADD];
    size_t bytes = row->body_len + row->topic.len + row->type.len + ROW_OVERHEAD;
    enum bt_code code = sql_batch(s, bytes, err);

    if (code != BT_OK) {
        return code;
    }
    stmt_bind_i64(st, 1, (int64_t)pos);
    stmt_bind_i64(st, 2, (int64_t)row->plan_ix);
    stmt_bind_i64(st, 3, (int64_t)row->plan_seq);
    sql_bind_str(st, 4, row->type);
    sql_bind_str(st, 5, row->topic);
    stmt_bind_i64(st, 6, (int64_t)row->wall);
    stmt_bind_i64(st, 7, (int64_t)row_crc(pos, row));
    bind_blob(st, 8, row->body, row->body_len);
    code = sql_run(s, SQL_ROW_ADD, "cannot append to the journal", err);
    if (code == BT_OK) {
        struct journal_row placed = *row;
        placed.seq = pos_seq(pos);
        code = sql_chain_row(s, &placed, err);
    }
    return code;
}

enum bt_code sql_blob_add(struct journal *j, const void *bytes, size_t len, uint64_t *ret_id,
                          struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_BLOB_ADD];
    uint64_t id = s->now.blobs + 1;
    enum bt_code code = sql_batch(s, len + ROW_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    stmt_bind_i64(st, 1, (int64_t)id);
    stmt_bind_i64(st, 2, (int64_t)crc32c_bytes(crc32c_u64(0, id), bytes, len));
    bind_blob(st, 3, bytes, len);
    code = sql_run(s, SQL_BLOB_ADD, "cannot store a result", err);
    if (code == BT_OK) {
        s->now.blobs = id;
        *ret_id = id;
        code = sql_blob_hashed(s, id, bytes, len, err);
    }
    return code;
}

enum bt_code sql_blob_get(struct journal *j, uint64_t id, struct buf *out, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_BLOB_GET];
    enum bt_code code;
    int rc;

    stmt_bind_i64(st, 1, (int64_t)id);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        const struct str bytes = stmt_col_blob(st, 1);
        if (bytes.len == 0 && stmt_nomem(st)) {
            code = err_set(err, BT_NOMEM, "cannot read a result: out of memory");
        } else if (sql_col_u64(st, 0) != crc32c_bytes(crc32c_u64(0, id), bytes.ptr, bytes.len)) {
            code = err_set(err, BT_IO, "blob %" PRIu64 " of the journal is damaged", id);
        } else {
            buf_add(out, bytes.ptr, bytes.len);
            code = buf_check(out, err);
        }
    } else if (rc == STMT_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no blob %" PRIu64 " in the journal", id);
    } else {
        code = sql_error(s, "cannot read a result", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_row_read(struct stmt *st, struct journal_row *ret, struct bt_error *err)
{
    const struct str body = stmt_col_blob(st, 7);
    uint64_t pos = sql_col_u64(st, 0);

    *ret = (struct journal_row){
        .pos = pos,
        .seq = pos_seq(pos),
        .is_public = (pos & POS_K_MAX) == 0,
        .plan_ix = sql_col_u64(st, 1),
        .plan_seq = sql_col_u64(st, 2),
        .type = sql_col_str(st, 3),
        .topic = sql_col_str(st, 4),
        .wall = sql_col_u64(st, 5),
    };
    ret->body = body.ptr;
    ret->body_len = body.len;
    if (stmt_nomem(st)) {
        return err_set(err, BT_NOMEM, "cannot read a row of the journal: out of memory");
    }
    if (sql_col_u64(st, 6) != row_crc(pos, ret)) {
        return err_set(err, BT_IO,
                       "the row of seq %" PRIu64 " (number %" PRIu64 ") of the journal is damaged",
                       pos_seq(pos), pos & POS_K_MAX);
    }
    return BT_OK;
}

/* One read of events. */
struct event_walk {
    struct sql_journal *s;
    struct stmt *st;
    uint64_t plan_ix; /* 0 = all */
    journal_row_fn fn;
    void *self;
    uint64_t next; /* the seq that follows; of one plan: at least it */
    msec wall;     /* of the row before */
    uint32_t left;
};

/* False: the reader has enough. */
static bool give(struct event_walk *w, const struct journal_row *row)
{
    const bool more = w->left > 0 && w->fn(row, w->self);

    w->left -= more ? 1 : 0;
    w->next = row->seq + 1;
    w->wall = row->wall;
    return more;
}

/* What is before and after a damaged row is given; a marker stands in its place, and in that of all
 * up to `last`. */
static bool give_damaged(struct event_walk *w, uint64_t seq, uint64_t last)
{
    const struct journal_row mark = {.seq = seq,
                                     .damaged_to = last,
                                     .is_public = true,
                                     .plan_ix = w->plan_ix,
                                     .type = STR_LIT(""),
                                     .topic = STR_LIT(""),
                                     .wall = w->wall,
                                     .damaged = true};
    const bool more = give(w, &mark);

    w->next = last + 1;
    return more;
}

/* Seqs have no gaps but those of deletions: what else is missing up to `to` was lost. One marker
 * stands for more than anything that can have been there: then a position is damaged, not so many
 * rows. */
static bool give_missing(struct event_walk *w, uint64_t to)
{
    bool more = true;

    while (more && w->next < to) {
        uint64_t deleted_to = 0;
        uint64_t lost_to = to;
        if (sql_gap_end(w->s, GAP_SEQ, w->next, &deleted_to, NULL) == BT_OK && deleted_to > 0) {
            w->next = deleted_to + 1;
            continue;
        }
        if (sql_gap_next(w->s, GAP_SEQ, w->next, &lost_to, NULL) != BT_OK || lost_to > to) {
            lost_to = to;
        }
        if (lost_to - w->next > MISSING_MAX) {
            more = give_damaged(w, w->next, lost_to - 1);
        }
        while (more && w->next < lost_to) {
            more = give_damaged(w, w->next, w->next);
        }
    }
    return more;
}

/* The row at the statement. A damaged one is seen by what follows it, because its position may be
 * the damage; of one plan the index has it. */
static bool walk_row(struct event_walk *w)
{
    const uint64_t pos = sql_col_u64(w->st, 0);
    struct journal_row row;

    if ((pos & POS_K_MAX) != 0) {
        return true;
    }
    if (sql_row_read(w->st, &row, NULL) != BT_OK) {
        return w->plan_ix == 0 || pos_seq(pos) < w->next ||
               give_damaged(w, pos_seq(pos), pos_seq(pos));
    }
    if (row.seq < w->next) {
        return true;
    }
    return (w->plan_ix != 0 || give_missing(w, row.seq)) && give(w, &row);
}

static bool can_step(struct stmt *st, uint64_t from)
{
    int rc;

    stmt_bind_i64(st, 1, (int64_t)from);
    rc = stmt_step(st);
    stmt_reset(st);
    return rc == STMT_ROW || rc == STMT_DONE;
}

uint64_t sql_next_readable(struct stmt *st, uint64_t after, uint64_t last)
{
    uint64_t bad = after;
    uint64_t step = 1;
    uint64_t good;

    while (step <= last - after && !can_step(st, after + step)) {
        bad = after + step;
        step *= 2;
    }
    good = step <= last - after ? after + step : last + 1;
    while (good - bad > 1) {
        const uint64_t middle = bad + (good - bad) / 2;
        if (can_step(st, middle)) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    return good;
}

/* Goes on after a page that cannot be read. False: there is nothing more. */
static bool skip_unreadable(struct event_walk *w, uint64_t last)
{
    const uint64_t from = w->next << POS_K_BITS;
    uint64_t at;

    stmt_reset(w->st);
    if (from >= last) {
        return false;
    }
    at = sql_next_readable(w->st, from, last);
    stmt_bind_i64(w->st, 1, (int64_t)at);
    return at <= last;
}

enum bt_code sql_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit,
                        journal_row_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    const uint64_t last = j->committed_pos;
    struct event_walk w = {.s = s,
                           .st = &s->stmt[plan_ix == 0 ? SQL_ROWS : SQL_ROWS_PLAN],
                           .plan_ix = plan_ix,
                           .fn = fn,
                           .self = self,
                           .next = from_seq == 0 ? 1 : from_seq,
                           .left = limit};
    enum bt_code code = BT_OK;
    bool more = true;
    int rc = STMT_ROW;

    stmt_bind_i64(w.st, 1, (int64_t)(from_seq << POS_K_BITS));
    stmt_bind_i64(w.st, 2, (int64_t)last);
    if (plan_ix != 0) {
        stmt_bind_i64(w.st, 3, (int64_t)plan_ix);
    }
    while (more && w.left > 0) {
        rc = stmt_step(w.st);
        if (rc == STMT_ROW) {
            more = walk_row(&w);
        } else if (rc != STMT_DAMAGED) {
            break;
        } else if (!skip_unreadable(&w, last)) {
            rc = STMT_DONE;
            break;
        }
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot read the journal", err);
    } else if (more && rc == STMT_DONE && plan_ix == 0) {
        (void)give_missing(&w, pos_seq(last) + 1);
    }
    stmt_reset(w.st);
    return code;
}

enum bt_code sql_last_row(struct journal *j, uint64_t plan_ix, bool only_public, journal_row_fn fn,
                          void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_ROW_LAST];
    struct journal_row row;
    enum bt_code code = BT_OK;
    bool found = false;
    int rc = STMT_ROW;

    stmt_bind_i64(st, 1, (int64_t)plan_ix);
    stmt_bind_i64(st, 2, (int64_t)j->committed_pos);
    while (code == BT_OK && !found && (rc = stmt_step(st)) == STMT_ROW) {
        code = sql_row_read(st, &row, err);
        found = code == BT_OK && (row.is_public || !only_public);
    }
    if (code == BT_OK && rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot read the journal", err);
    } else if (found) {
        (void)fn(&row, self);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_replay(struct journal *j, uint64_t plan_ix, struct journal_place *place,
                        journal_row_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_ROWS_PLAN];
    uint64_t plan_seq = place->plan_seq;
    enum bt_code code = BT_OK;
    bool go_on = true;
    int rc = STMT_DONE;

    stmt_bind_i64(st, 1, (int64_t)(place->pos + 1));
    stmt_bind_i64(st, 2, (int64_t)j->committed_pos);
    stmt_bind_i64(st, 3, (int64_t)plan_ix);
    while (go_on && (rc = stmt_step(st)) == STMT_ROW) {
        struct journal_row row;
        code = sql_row_read(st, &row, err);
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
    if (code == BT_OK && rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot read the journal", err);
    }
    stmt_reset(st);
    return code;
}
