/* Deletion on SQLite, and the sweep after it. */
#include <inttypes.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/journal/sql.h"

enum {
    WHY_MAX = 200,
    TOMBSTONE_BYTES = 512,
    /* A tombstone takes about 200 bytes; a plan id that is older than these is unknown. */
    TOMBSTONES_MAX = 100000,
    SWEEP_ROWS = 256,
    BLOB_STEP = 64 * 1024 /* bytes of a blob that cost as much as a row */
};

static enum bt_code run_ix(struct sql_journal *s, enum sql which, uint64_t ix, struct bt_error *err)
{
    stmt_bind_i64(&s->stmt[which], 1, (int64_t)ix);
    return sql_run(s, which, "cannot delete a plan", err);
}

enum bt_code sql_plan_delete(struct journal *j, uint64_t ix, struct str why, msec wall,
                             struct bt_error *err)
{
    static const enum sql parts[] = {SQL_PLAN_DROP, SQL_STATE_DROP, SQL_JOB_DROP, SQL_OWNER_DROP};
    struct sql_journal *s = sql_of(j);
    struct sql_chain chain;
    struct journal_plan p;
    struct journal_gone g;
    enum bt_code code = sql_plan_load(s, ix, false, &s->plan_text, &p, err);

    if (code == BT_OK && p.ended_wall == 0) {
        code = err_set(err, BT_CONFLICT, "the plan has not ended");
    }
    if (code == BT_OK) {
        code = sql_batch(s, TOMBSTONE_BYTES, err);
    }
    if (code != BT_OK) {
        return code;
    }
    j->dirty = true;
    code = sql_chain_now(s, ix, &chain, err);
    if (code != BT_OK) {
        return code;
    }
    g = (struct journal_gone){.ix = ix,
                              .plan_id = p.plan_id,
                              .client_key = p.client_key,
                              .status = p.status,
                              .owner = p.owner,
                              .created_wall = p.created_wall,
                              .ended_wall = p.ended_wall,
                              .deleted_wall = wall,
                              .why = {why.ptr, why.len < WHY_MAX ? why.len : WHY_MAX},
                              .rows = chain.rows,
                              .head = str_from(chain.head)};
    code = sql_gone_put(s, &g, err);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && code == BT_OK; i++) {
        code = run_ix(s, parts[i], ix, err);
    }
    if (code == BT_OK) {
        code = sql_gap_add(s, GAP_PLAN, ix, ix, err);
        s->now.gone++;
    }
    return code;
}

enum bt_code sql_plans_ended(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                             journal_plan_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_IX_ENDED];
    enum bt_code code = BT_OK;
    int rc = STMT_DONE;

    stmt_bind_i64(st, 1, (int64_t)after);
    stmt_bind_i64(st, 2, (int64_t)after_ix);
    for (uint32_t n = 0; n < limit && (rc = stmt_step(st)) == STMT_ROW; n++) {
        struct journal_plan p;
        struct bt_error why;
        if (sql_plan_load(s, sql_col_u64(st, 0), false, &s->plan_text, &p, &why) != BT_OK) {
            log_warn("journal.plan_unreadable", "%s", why.msg);
        } else if (!fn(&p, self)) {
            break;
        }
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot list ended plans", err);
    }
    stmt_reset(st);
    return code;
}

/* ---- rows ---- */

/* The positions that the bound statement returns. */
static enum bt_code take_ids(struct sql_journal *s, enum sql which, uint64_t *ids, uint32_t max,
                             uint32_t *ret_n, struct bt_error *err)
{
    struct stmt *st = &s->stmt[which];
    enum bt_code code = BT_OK;
    int rc = STMT_DONE;

    *ret_n = 0;
    while (*ret_n < max && (rc = stmt_step(st)) == STMT_ROW) {
        ids[(*ret_n)++] = sql_col_u64(st, 0);
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_write_error(s, "cannot read what to delete", err);
    }
    stmt_reset(st);
    return code;
}

/* Deletes the rows at these positions, which rise, and notes the seqs of the public ones. */
static enum bt_code drop_rows(struct sql_journal *s, const uint64_t *pos, uint32_t n,
                              struct bt_error *err)
{
    uint64_t first = 0;
    uint64_t last = 0;
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        uint64_t seq = pos_seq(pos[i]);
        code = run_ix(s, SQL_ROW_DROP, pos[i], err);
        if (code != BT_OK || (pos[i] & POS_K_MAX) != 0) {
            continue;
        }
        if (first != 0 && seq == last + 1) {
            last = seq;
            continue;
        }
        if (first != 0) {
            code = sql_gap_add(s, GAP_SEQ, first, last, err);
        }
        first = last = seq;
    }
    return code == BT_OK && first != 0 ? sql_gap_add(s, GAP_SEQ, first, last, err) : code;
}

enum bt_code sql_rows_delete(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                             struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_ROWS_OLD];
    uint64_t pos[SWEEP_ROWS];
    enum bt_code code = sql_batch(s, 0, err);

    if (code != BT_OK) {
        return code;
    }
    j->dirty = true;
    stmt_bind_i64(st, 1, (int64_t)before);
    /* The newest row stays, because its position is the journal's. */
    stmt_bind_i64(st, 2, (int64_t)j->committed_pos);
    code = take_ids(s, SQL_ROWS_OLD, pos, limit < SWEEP_ROWS ? limit : SWEEP_ROWS, ret_n, err);
    return code == BT_OK ? drop_rows(s, pos, *ret_n, err) : code;
}

/* ---- blobs ---- */

/* *ret_cost = 0: it is still needed. */
static enum bt_code drop_blob(struct sql_journal *s, uint64_t id, uint32_t *ret_cost,
                              struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_BLOB_NEED];
    bool needed = true;
    enum bt_code code = BT_OK;
    int rc;

    *ret_cost = 0;
    stmt_bind_i64(st, 1, (int64_t)id);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        needed = s->adopt_due || sql_col_u64(st, 0) != 0;
        *ret_cost = needed ? 0 : 1 + (uint32_t)(sql_col_u64(st, 1) / BLOB_STEP);
    } else {
        code = sql_write_error(s, "cannot look for a result", err);
    }
    stmt_reset(st);
    return code == BT_OK && !needed ? run_ix(s, SQL_BLOB_DROP, id, err) : code;
}

enum bt_code sql_blobs_unused(struct journal *j, uint64_t *io_after, uint64_t last, uint32_t limit,
                              struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    uint64_t ids[SWEEP_ROWS];
    uint32_t n = 0;
    uint32_t max = limit < SWEEP_ROWS ? limit : SWEEP_ROWS;
    enum bt_code code = sql_batch(s, 0, err);

    if (code != BT_OK) {
        return code;
    }
    j->dirty = true;
    stmt_bind_i64(&s->stmt[SQL_BLOBS], 1, (int64_t)*io_after);
    stmt_bind_i64(&s->stmt[SQL_BLOBS], 2, (int64_t)last);
    code = take_ids(s, SQL_BLOBS, ids, max, &n, err);
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        uint32_t cost;
        code = drop_blob(s, ids[i], &cost, err);
        *io_after = ids[i];
    }
    if (code == BT_OK && n < max) {
        *io_after = last;
    }
    return code;
}

uint64_t sql_last_blob(const struct journal *j)
{
    return ((const struct sql_journal *)j)->now.blobs;
}

/* ---- the sweep ---- */

/* Spends at most *io_budget on one deleted plan; *ret_done: nothing of it is left. */
static enum bt_code sweep_plan(struct sql_journal *s, uint64_t ix, uint32_t *io_budget,
                               bool *ret_done, struct bt_error *err)
{
    uint64_t ids[SWEEP_ROWS];
    uint32_t n = 0;
    uint32_t max = *io_budget < SWEEP_ROWS ? *io_budget : SWEEP_ROWS;
    enum bt_code code;

    *ret_done = false;
    stmt_bind_i64(&s->stmt[SQL_ROWS_OF], 1, (int64_t)ix);
    code = take_ids(s, SQL_ROWS_OF, ids, max, &n, err);
    if (code == BT_OK && n > 0) {
        *io_budget -= n;
        return drop_rows(s, ids, n, err);
    }
    if (code == BT_OK) {
        stmt_bind_i64(&s->stmt[SQL_REFS_OF], 1, (int64_t)ix);
        code = take_ids(s, SQL_REFS_OF, ids, max, &n, err);
    }
    for (uint32_t i = 0; i < n && code == BT_OK && *io_budget > 0; i++) {
        uint32_t cost;
        stmt_bind_i64(&s->stmt[SQL_REF_DROP], 2, (int64_t)ids[i]);
        code = run_ix(s, SQL_REF_DROP, ix, err);
        if (code == BT_OK) {
            code = drop_blob(s, ids[i], &cost, err);
            *io_budget -= cost + 1 < *io_budget ? cost + 1 : *io_budget;
        }
    }
    if (code == BT_OK && n == 0) {
        *ret_done = true;
        sql_chain_drop(s, ix);
        code = run_ix(s, SQL_CHAIN_DROP, ix, err);
    }
    if (code == BT_OK && n == 0) {
        code = run_ix(s, SQL_GONE_SWEPT, ix, err);
    }
    return code;
}

/* Messages of a deleted session: rowids up to the last one that it had. */
static enum bt_code sweep_session(struct sql_journal *s, uint32_t *io_budget, bool *ret_more,
                                  struct bt_error *err)
{
    uint64_t ids[SWEEP_ROWS];
    uint64_t number = 0;
    uint32_t n = 0;
    uint32_t max = *io_budget < SWEEP_ROWS ? *io_budget : SWEEP_ROWS;
    enum bt_code code = take_ids(s, SQL_GONE_SESSION, &number, 1, &n, err);

    *ret_more = n > 0;
    if (code != BT_OK || n == 0) {
        return code;
    }
    stmt_bind_i64(&s->stmt[SQL_MESSAGES_OF], 1, (int64_t)number);
    code = take_ids(s, SQL_MESSAGES_OF, ids, max, &n, err);
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        code = run_ix(s, SQL_MESSAGE_DROP, ids[i], err);
    }
    *io_budget -= n;
    return code == BT_OK && n == 0 ? run_ix(s, SQL_GONE_SESSION_DROP, number, err) : code;
}

/* Forgets the tombstone of the lowest number, when it was deleted before `before`. */
static enum bt_code drop_tombstone(struct sql_journal *s, uint64_t before, bool *ret_done,
                                   struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_GONE_OLDEST];
    enum bt_code code = BT_OK;
    uint64_t ix = 0;
    int rc = stmt_step(st);

    *ret_done = rc == STMT_ROW && sql_col_u64(st, 1) < before;
    if (*ret_done) {
        ix = sql_col_u64(st, 0);
    } else if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_write_error(s, "cannot read what was deleted", err);
    }
    stmt_reset(st);
    if (code == BT_OK && *ret_done) {
        code = run_ix(s, SQL_GONE_DROP, ix, err);
        s->now.gone--;
    }
    return code;
}

/* Keeps the tombstones under their cap. */
static enum bt_code sweep_tombstones(struct sql_journal *s, uint32_t *io_budget, bool *ret_more,
                                     struct bt_error *err)
{
    enum bt_code code = BT_OK;
    bool dropped = true;

    while (code == BT_OK && s->now.gone > TOMBSTONES_MAX && *io_budget > 0 && dropped) {
        code = drop_tombstone(s, UINT64_MAX, &dropped, err);
        --*io_budget;
    }
    *ret_more = s->now.gone > TOMBSTONES_MAX && dropped;
    return code;
}

enum bt_code sql_gone_expire(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                             struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    enum bt_code code = sql_batch(s, 0, err);
    bool dropped = code == BT_OK;

    j->dirty = j->dirty || code == BT_OK;
    while (code == BT_OK && dropped && *ret_n < limit) {
        code = drop_tombstone(s, before, &dropped, err);
        *ret_n += dropped ? 1 : 0;
    }
    return code;
}

enum bt_code sql_sweep(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    bool more = false;
    enum bt_code code = sql_batch(s, 0, err);

    if (code != BT_OK) {
        return code;
    }
    j->dirty = true;
    while (code == BT_OK && budget > 0) {
        uint64_t ix = 0;
        uint32_t n = 0;
        bool done;
        code = take_ids(s, SQL_GONE_LEFT, &ix, 1, &n, err);
        if (code != BT_OK || n == 0) {
            break;
        }
        code = sweep_plan(s, ix, &budget, &done, err);
        budget -= done && budget > 0 ? 1 : 0;
    }
    for (more = true; code == BT_OK && budget > 0 && more;) {
        code = sweep_session(s, &budget, &more, err);
    }
    if (code == BT_OK && budget > 0) {
        code = sweep_tombstones(s, &budget, &more, err);
    }
    *ret_more = more || budget == 0;
    if (code == BT_OK) {
        /* A deleted blob's number must not be given again. */
        code = run_ix(s, SQL_BLOBS_TOP, s->now.blobs, err);
    }
    return code;
}

/* ---- sessions ---- */

static enum bt_code session_has_open_turn(struct sql_journal *s, struct str id, bool *ret,
                                          struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_TURN_OPEN_OF];
    enum bt_code code = BT_OK;
    int rc;

    sql_bind_str(st, 1, id);
    rc = stmt_step(st);
    *ret = rc == STMT_ROW;
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot look for turns", err);
    }
    stmt_reset(st);
    return code;
}

static enum bt_code drop_turns(struct sql_journal *s, struct str id, uint32_t limit,
                               uint32_t *ret_n, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_TURNS_OF];
    struct uuid turns[SWEEP_ROWS];
    uint64_t wishes[SWEEP_ROWS];
    enum bt_code code = BT_OK;
    int rc = STMT_DONE;

    *ret_n = 0;
    sql_bind_str(st, 1, id);
    while (*ret_n < limit && *ret_n < SWEEP_ROWS && (rc = stmt_step(st)) == STMT_ROW) {
        turns[*ret_n] = sql_col_uuid(st, 0);
        wishes[(*ret_n)++] = sql_col_u64(st, 1);
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_write_error(s, "cannot read turns", err);
    }
    stmt_reset(st);
    for (uint32_t i = 0; i < *ret_n && code == BT_OK; i++) {
        uint32_t cost;
        sql_bind_uuid(&s->stmt[SQL_TURN_DROP], 1, &turns[i]);
        code = sql_run(s, SQL_TURN_DROP, "cannot delete a turn", err);
        if (code == BT_OK && wishes[i] != 0) {
            code = drop_blob(s, wishes[i], &cost, err);
        }
    }
    return code;
}

enum bt_code sql_session_delete(struct journal *j, struct str id, uint32_t limit, bool *ret_more,
                                struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct journal_session session;
    bool is_open = false;
    uint32_t n = 0;
    uint32_t cost;
    enum bt_code code = sql_session(j, id, &session, err);

    if (code == BT_OK) {
        code = session_has_open_turn(s, id, &is_open, err);
    }
    if (code == BT_OK && is_open) {
        code = err_set(err, BT_CONFLICT, "a message of the session has no answer yet");
    }
    if (code == BT_OK) {
        code = sql_batch(s, TOMBSTONE_BYTES, err);
    }
    if (code != BT_OK) {
        return code;
    }
    j->dirty = true;
    code = drop_turns(s, id, limit, &n, err);
    *ret_more = n > 0;
    if (code != BT_OK || n > 0) {
        return code;
    }
    sql_bind_str(&s->stmt[SQL_GONE_SESSION_PUT], 1, id);
    code = sql_run(s, SQL_GONE_SESSION_PUT, "cannot delete a session", err);
    if (code == BT_OK) {
        sql_bind_str(&s->stmt[SQL_SESSION_DROP], 1, id);
        code = sql_run(s, SQL_SESSION_DROP, "cannot delete a session", err);
    }
    if (code == BT_OK && session.summary != 0) {
        code = drop_blob(s, session.summary, &cost, err);
    }
    return code;
}

enum bt_code sql_sessions_idle(struct journal *j, msec before, uint32_t limit,
                               journal_session_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_SESSIONS_IDLE];
    enum bt_code code = BT_OK;
    int rc = STMT_DONE;

    stmt_bind_i64(st, 1, (int64_t)before);
    for (uint32_t n = 0; n < limit && (rc = stmt_step(st)) == STMT_ROW; n++) {
        struct journal_session p;
        if (sql_session_read(st, &p, NULL) == BT_OK && !fn(&p, self)) {
            break;
        }
    }
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot list sessions", err);
    }
    stmt_reset(st);
    return code;
}
