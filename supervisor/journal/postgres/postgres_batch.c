/*
 * The open batch on PostgreSQL. Writes wait in memory; a commit sends the fence, all of them and a
 * Sync in one round trip: one implicit transaction. A read in between has to see them: then a
 * transaction is begun, with the fence, what waits is sent into it, and the commit ends it.
 */
#include <endian.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/failpoint.h"
#include "protocol/base/log.h"
#include "supervisor/core/mutant.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum {
    OID_INT8 = 20,
    OID_BYTEA = 17,
    ROW_COLUMNS = 8,
    SINGLE_ROWS = 4, /* up to so many, one INSERT for each is less work than arrays */
    NULL_LEN = -1,
    AGAIN_MAX = 5 /* a turn that the server has undone */
};

static void add_u32(struct buf *to, uint32_t v)
{
    const uint32_t be = htobe32(v);

    buf_add(to, &be, sizeof be);
}

static uint32_t get_u32(const uint8_t *at)
{
    uint32_t be;

    memcpy(&be, at, sizeof be);
    return be32toh(be);
}

void pg_batch_clear(struct pg_journal *p)
{
    buf_clear(&p->queue);
    p->writes_n = p->sent = 0;
    p->in_transaction = false;
}

/* ---- the queue ---- */

static enum bt_code enqueue(struct pg_journal *p, const struct pg_stmt *s, struct bt_error *err)
{
    if (p->writes_n == p->writes_cap) {
        const size_t cap = p->writes_cap == 0 ? 64 : 2 * p->writes_cap;
        struct pg_write *grown = realloc(p->writes, cap * sizeof *grown);
        if (grown == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for a batch of the journal");
        }
        p->writes = grown;
        p->writes_cap = cap;
    }
    pg_ahead_forget(p, s);
    p->writes[p->writes_n++] = (struct pg_write){s->which, s->n, p->queue.len};
    for (int i = 0; i < s->n; i++) {
        const struct pg_value *v = &s->bound[i];
        add_u32(&p->queue, v->bytes == NULL ? (uint32_t)NULL_LEN : (uint32_t)v->len);
        buf_add(&p->queue, v->bytes, v->bytes == NULL ? 0 : (size_t)v->len);
    }
    return buf_check(&p->queue, err);
}

/* The values of a statement that waits; the bytes are those of the queue. */
static void values_of(const struct pg_journal *p, const struct pg_write *w, struct pg_value *ret)
{
    const uint8_t *at = p->queue.at + w->from;

    for (int i = 0; i < w->n; i++) {
        const int32_t len = (int32_t)get_u32(at);
        at += 4;
        pg_put_value(&ret[i], len == NULL_LEN ? NULL : at, len == NULL_LEN ? 0 : (size_t)len);
        at += len == NULL_LEN ? 0 : len;
    }
}

/* All rows of the queue as one statement, a binary array for each column. */
static bool send_rows(struct pg_journal *p, uint32_t rows)
{
    static const uint32_t oids[ROW_COLUMNS] = {OID_INT8,  OID_INT8, OID_INT8, OID_BYTEA,
                                               OID_BYTEA, OID_INT8, OID_INT8, OID_BYTEA};
    struct pg_value arrays[ROW_COLUMNS];
    struct buf columns[ROW_COLUMNS];
    bool ok = true;

    for (int c = 0; c < ROW_COLUMNS; c++) {
        const uint32_t head[] = {1 /* dimension */, 0 /* no NULL */, oids[c], rows, 1};
        buf_init(&columns[c], PG_QUEUE_MAX);
        for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) {
            add_u32(&columns[c], head[i]);
        }
    }
    for (size_t i = p->sent; i < p->writes_n; i++) {
        struct pg_value v[PG_PARAMS_MAX];
        if (p->writes[i].which != SQL_ROW_ADD) {
            continue;
        }
        values_of(p, &p->writes[i], v);
        for (int c = 0; c < ROW_COLUMNS; c++) {
            add_u32(&columns[c], (uint32_t)v[c].len);
            buf_add(&columns[c], v[c].bytes, (size_t)v[c].len);
        }
    }
    for (int c = 0; c < ROW_COLUMNS; c++) {
        ok = ok && columns[c].bad == BT_OK;
        pg_put_value(&arrays[c], columns[c].at, columns[c].len);
    }
    ok = ok && pg_send(p, "unnest", arrays, ROW_COLUMNS);
    for (int c = 0; c < ROW_COLUMNS; c++) {
        buf_done(&columns[c]);
    }
    return ok;
}

/* Sends what waits. Nothing in a batch changes rows of the same batch, so their place does not
 * matter. */
static bool send_writes(struct pg_journal *p)
{
    uint32_t rows = 0;
    bool arrays = false;
    bool ok = true;

    for (size_t i = p->sent; i < p->writes_n; i++) {
        rows += p->writes[i].which == SQL_ROW_ADD ? 1 : 0;
    }
    for (size_t i = p->sent; i < p->writes_n && ok; i++) {
        const struct pg_write *w = &p->writes[i];
        struct pg_value v[PG_PARAMS_MAX];
        char name[16];
        if (w->which == SQL_ROW_ADD && rows > SINGLE_ROWS) {
            ok = arrays || send_rows(p, rows);
            arrays = true;
            continue;
        }
        values_of(p, w, v);
        (void)snprintf(name, sizeof name, "s%d", (int)w->which);
        ok = pg_send(p, name, v, w->n);
    }
    p->sent = p->writes_n;
    return ok;
}

bool pg_send_batch(struct pg_journal *p)
{
    const uint64_t pos = p->sql.base.committed_pos;

    if (p->writes_n == p->sent) {
        return true;
    }
    if (!p->in_transaction) {
        p->in_transaction = true;
        if (!pg_send_text(p, "BEGIN") || !pg_send_fence(p, pos, pos)) {
            return false;
        }
    }
    return send_writes(p);
}

/* ---- what a failure means ---- */

/* Whether it is a refusal that passes: the server has done nothing. */
static bool is_short(const char *state)
{
    static const char *const STATES[] = {"53100", "53200", "57014", "55P03"};

    for (size_t i = 0; i < sizeof STATES / sizeof STATES[0]; i++) {
        if (strcmp(state, STATES[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum bt_code die(struct pg_journal *p, struct bt_error *err)
{
    sql_batch_forget(&p->sql);
    pg_batch_clear(p);
    journal_die(&p->sql.base, err);
    return BT_IO;
}

enum bt_code pg_failed(struct pg_journal *p, const char *what, struct bt_error *err)
{
    struct bt_error why;
    struct bt_error *to = err != NULL ? err : &why;
    if (p->sql.base.dead) {
        return err_set(to, BT_IO, "%s: %.400s", what, p->sql.base.why.msg);
    }
    if (p->riding) { /* the one who rides tries again */
        return err_set(to, BT_UNAVAILABLE, "%s: PostgreSQL: %s (%s)", what, p->message, p->state);
    }
    const bool was_open = p->in_transaction || p->sql.base.dirty || p->writes_n > 0;

    if (p->message[0] == 0) {
        (void)snprintf(p->message, sizeof p->message, "%s", PQerrorMessage(p->conn));
    }
    if (p->lost) {
        (void)err_set(to, BT_IO, "%s: PostgreSQL: %s; what became of it is not known", what,
                      p->message);
        return die(p, to);
    }
    if (strcmp(p->state, "22012") == 0) {
        (void)err_set(to, BT_IO,
                      "%s: another daemon has taken this journal over, and nothing was stored",
                      what);
        return die(p, to);
    }
    if (!is_short(p->state)) {
        (void)err_set(to, BT_IO, "%s: PostgreSQL: %s (%s)", what, p->message, p->state);
        return was_open ? die(p, to) : BT_IO;
    }
    (void)err_set(to, BT_UNAVAILABLE, "%s: PostgreSQL: %s (%s)", what, p->message, p->state);
    if (p->in_transaction && (!pg_send_text(p, "ROLLBACK") || !pg_sync(p))) {
        (void)err_set(to, BT_IO, "%s: PostgreSQL: the batch cannot be rolled back", what);
        return die(p, to);
    }
    sql_batch_forget(&p->sql);
    pg_batch_clear(p);
    return BT_UNAVAILABLE;
}

/* ---- the engine ---- */

static enum bt_code engine_batch(struct sql_journal *s, size_t bytes, struct bt_error *err)
{
    (void)err;
    s->batch_bytes += bytes;
    return BT_OK;
}

/* Who asks how many rows it changed waits for the answer. */
static enum bt_code engine_run(struct sql_journal *s, enum sql which, const char *what,
                               uint64_t *ret_changes, struct bt_error *err)
{
    struct pg_journal *p = pg_of(&s->base);
    enum bt_code code = enqueue(p, &p->stmts[which], err);

    if (code != BT_OK) {
        return die(p, err);
    }
    if (ret_changes == NULL) {
        return BT_OK;
    }
    bool sent = pg_send_batch(p);
    while (!(sent && pg_sync(p))) {
        if (!pg_ride_on(p, sent, what)) {
            return pg_failed(p, what, err);
        }
        sent = pg_send_batch(p);
    }
    *ret_changes = strtoull(PQcmdTuples(p->result), NULL, 10);
    return BT_OK;
}

static enum bt_code engine_undo(struct sql_journal *s, struct bt_error *err)
{
    struct pg_journal *p = pg_of(&s->base);
    const bool ok = !p->in_transaction || (pg_send_text(p, "ROLLBACK") && pg_sync(p));

    pg_batch_clear(p);
    return ok ? BT_OK : pg_failed(p, "cannot end an empty batch", err);
}

static enum bt_code engine_error(struct sql_journal *s, const char *what, struct bt_error *err)
{
    struct pg_journal *p = pg_of(&s->base);
    const enum bt_code code = pg_failed(p, what, err);
    const bool is_damage = strncmp(p->state, "XX", 2) == 0;

    /* Who reads knows nothing of a batch that is gone, and takes what is not there for damage: that
     * is an end. */
    if (err != NULL && !s->base.dead && (code == BT_UNAVAILABLE || !is_damage)) {
        journal_die(&s->base, err);
    }
    return code == BT_UNAVAILABLE ? BT_IO : code;
}

static enum bt_code engine_write_error(struct sql_journal *s, const char *what,
                                       struct bt_error *err)
{
    return pg_failed(pg_of(&s->base), what, err);
}

const struct sql_engine PG_ENGINE = {
    .batch = engine_batch,
    .run = engine_run,
    .undo = engine_undo,
    .error = engine_error,
    .write_error = engine_write_error,
    .ahead = pg_ahead,
};

/* ---- commit ---- */

/* The whole turn, or what is left of it when a read has begun it. */
static bool send_turn(struct pg_journal *p, const struct pg_value *mark)
{
    const struct journal *j = &p->sql.base;
    bool ok;

    if (p->in_transaction) {
        ok = send_writes(p) && pg_send_fence(p, j->committed_pos, j->pos);
    } else {
        /* The fence first: who is no owner any more does no work, and locks are taken in one
         * order. */
        p->sent = 0;
        ok = pg_send_fence(p, j->committed_pos, j->pos) && send_writes(p);
    }
    ok = ok && (mark == NULL || pg_send(p, "turn", mark, 1));
    ok = ok && (!p->in_transaction || pg_send_text(p, "COMMIT"));
    if (FAILPOINT("turn_half") == FAILPOINT_ERROR && PQsendFlushRequest(p->conn) == 1 &&
        PQflush(p->conn) == 0) {
        (void)raise(SIGSTOP); /* sent, and not ended */
    }
    return ok;
}

/* After a ride, whose epoch has fenced the turn that was lost. */
static enum bt_code was_stored(struct pg_journal *p, uint64_t pos, const struct pg_value *mark,
                               bool *ret, struct bt_error *err)
{
    int64_t found = 0;
    uint64_t wanted = 0;
    enum bt_code code;

    *ret = pos == p->sql.base.pos;
    if (mark == NULL || !*ret) {
        return BT_OK;
    }
    code = pg_number(p, "SELECT coalesce(max(value), 0)::int8 FROM meta WHERE key = 'turn'", &found,
                     err);
    memcpy(&wanted, mark->bytes, sizeof wanted);
    *ret = (uint64_t)found == be64toh(wanted);
    return code;
}

/* The server has undone the turn, and wants it again: a deadlock, a conflict between nodes. */
static bool is_wanted_again(struct pg_journal *p)
{
    if (p->lost || (strcmp(p->state, "40001") != 0 && strcmp(p->state, "40P01") != 0)) {
        return false;
    }
    if (p->in_transaction && (!pg_send_text(p, "ROLLBACK") || !pg_sync(p))) {
        return false;
    }
    p->in_transaction = false;
    p->sent = 0;
    return true;
}

/* Until the turn is stored, or is not for certain. */
static enum bt_code run_turn(struct pg_journal *p, const struct pg_value *mark,
                             uint64_t *ret_sent_at, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    bool stored = false;

    for (int tries = 0; !stored && code == BT_OK; tries++) {
        const bool sent = send_turn(p, mark);
        uint64_t pos = 0;
        if (sent && (MUTANT(EFFECTS_UNANSWERED) || pg_sync(p))) {
            return BT_OK;
        }
        if (sent && tries < AGAIN_MAX && is_wanted_again(p)) {
            continue;
        }
        if (!pg_is_lost(p, sent) || tries == PG_TRIES_MAX) {
            return pg_failed(p, "cannot commit", err);
        }
        code = pg_ride(p, "cannot commit", &pos, err);
        code = code == BT_OK ? was_stored(p, pos, mark, &stored, err) : code;
        if (code == BT_OK) {
            log_info("journal.resolved", "the turn that was under way %s",
                     stored ? "was stored" : "was not stored, and is sent again");
        }
        *ret_sent_at = stored ? p->renewed : clock_boot_ms();
    }
    return code;
}

enum bt_code pg_commit(struct journal *j, struct bt_error *err)
{
    struct pg_journal *p = pg_of(j);
    uint64_t sent_at = clock_boot_ms();
    struct pg_value mark;
    enum bt_code code = sql_chain_flush(&p->sql, err);

    if (code != BT_OK) {
        return code;
    }
    /* Its position tells whether a turn was stored; one without rows leaves a mark. */
    pg_put_number(&mark, (int64_t)(p->epoch << 32 | (++p->turns & UINT32_MAX)));
    code = run_turn(p, j->pos == j->committed_pos ? &mark : NULL, &sent_at, err);
    if (code != BT_OK) {
        return code;
    }
    pg_batch_clear(p);
    p->sql.committed = p->sql.now;
    p->sql.batch_bytes = 0;
    p->renewed = sent_at;
    return pg_still_owner(p, err);
}
