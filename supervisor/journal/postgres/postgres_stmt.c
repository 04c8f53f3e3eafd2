/* Statements on PostgreSQL behind the interface of statement.h. A result is read as a whole, or,
 * where it may be long, page by page. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { NAME_LEN = 16, PAGE_GROWTH = 4 };

static void name_of(enum sql which, char ret[NAME_LEN])
{
    (void)snprintf(ret, NAME_LEN, "s%d", (int)which);
}

static struct pg_value *bound_of(struct stmt *st, int at)
{
    struct pg_stmt *s = st->at;

    ASSERT(at > 0 && at <= PG_PARAMS_MAX - 2);
    s->n = at > s->n ? at : s->n;
    return &s->bound[at - 1];
}

static void pg_bind_i64(struct stmt *st, int at, int64_t v)
{
    pg_put_number(bound_of(st, at), v);
}

static void pg_bind_bytes(struct stmt *st, int at, const void *bytes, size_t len,
                          enum stmt_bytes kind)
{
    (void)kind;
    pg_put_value(bound_of(st, at), bytes, len);
}

static void pg_bind_null(struct stmt *st, int at)
{
    pg_put_value(bound_of(st, at), NULL, 0);
}

/* Reads the next page. Within a batch the statements that wait go first, so that it sees them. */
static bool read_page(struct pg_stmt *s)
{
    struct pg_journal *p = s->of;
    struct pg_value v[PG_PARAMS_MAX];
    char name[NAME_LEN];
    int64_t max;
    int n = s->n;

    if (p->sql.base.dead) {
        return false;
    }
    memcpy(v, s->bound, sizeof v[0] * (size_t)n);
    for (int i = 0; i < n; i++) { /* numbers lie in the value itself */
        if (v[i].bytes == &s->bound[i].number) {
            v[i].bytes = &v[i].number;
        }
    }
    s->before += s->rows != NULL ? PQntuples(s->rows) : 0;
    if (pg_is_paged(s->which, &max)) {
        s->page = s->page == 0 ? PG_FIRST_PAGE : s->page * PAGE_GROWTH;
        s->page = s->page > max ? max : s->page;
        pg_put_number(&v[n], s->page);
        pg_put_number(&v[n + 1], s->before);
        n += 2;
    }
    PQclear(s->rows);
    s->rows = NULL;
    s->at = -1;
    if (s->before == 0) {
        s->rows = pg_ahead_take(s);
        if (s->rows != NULL) {
            return true;
        }
    }
    name_of(s->which, name);
    for (bool ok = false; !ok;) {
        const bool sent = pg_keep_reading(p) && pg_send_batch(p) && pg_send(p, name, v, n);
        ok = sent && pg_sync(p);
        if (!ok && !pg_ride_on(p, sent, "cannot read the journal")) {
            return false;
        }
    }
    if (PQresultStatus(p->result) != PGRES_TUPLES_OK) {
        return false;
    }
    s->rows = p->result;
    p->result = NULL;
    return true;
}

static int pg_step(struct stmt *st)
{
    struct pg_stmt *s = st->at;

    if (s->rows == NULL && !read_page(s)) {
        return STMT_ERROR;
    }
    s->at++;
    if (s->at >= PQntuples(s->rows) && s->page > 0 && PQntuples(s->rows) == s->page) {
        if (!read_page(s)) {
            return STMT_ERROR;
        }
        s->at = 0;
    }
    return s->at < PQntuples(s->rows) ? STMT_ROW : STMT_DONE;
}

static void pg_reset(struct stmt *st)
{
    struct pg_stmt *s = st->at;

    PQclear(s->rows);
    s->rows = NULL;
    s->at = -1;
    s->before = s->page = 0;
}

static int64_t pg_col_i64(struct stmt *st, int at)
{
    const struct pg_stmt *s = st->at;
    const int len = PQgetlength(s->rows, s->at, at);
    const char *bytes = PQgetvalue(s->rows, s->at, at);
    uint64_t be8;
    uint32_t be4;

    switch (len) {
    case 8:
        memcpy(&be8, bytes, sizeof be8);
        return (int64_t)be64toh(be8);
    case 4:
        memcpy(&be4, bytes, sizeof be4);
        return (int32_t)be32toh(be4);
    case 1:
        return bytes[0];
    default:
        return 0;
    }
}

static struct str pg_col_bytes(struct stmt *st, int at, enum stmt_bytes kind)
{
    const struct pg_stmt *s = st->at;

    (void)kind;
    return (struct str){PQgetvalue(s->rows, s->at, at), (size_t)PQgetlength(s->rows, s->at, at)};
}

static bool pg_nomem(const struct stmt *st)
{
    (void)st;
    return false; /* a result is there as a whole, or not at all */
}

void pg_statements_init(struct pg_journal *p)
{
    static const struct stmt_ops OPS = {
        .step = pg_step,
        .reset = pg_reset,
        .bind_i64 = pg_bind_i64,
        .bind_bytes = pg_bind_bytes,
        .bind_null = pg_bind_null,
        .col_i64 = pg_col_i64,
        .col_bytes = pg_col_bytes,
        .nomem = pg_nomem,
    };

    for (int i = 0; i < SQL_COUNT; i++) {
        p->stmts[i] = (struct pg_stmt){.of = p, .which = (enum sql)i, .at = -1};
        p->sql.stmt[i] = (struct stmt){&OPS, &p->stmts[i]};
    }
}

void pg_statements_done(struct pg_journal *p)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        PQclear(p->stmts[i].rows);
    }
}

enum bt_code pg_statements_prepare(struct pg_journal *p, struct bt_error *err)
{
    bool sent = PQsendPrepare(p->conn, "unnest", PG_UNNEST, 0, NULL) == 1 &&
                PQsendPrepare(p->conn, "turn", PG_TURN, 0, NULL) == 1;

    for (int i = 0; i < SQL_COUNT && sent; i++) {
        char name[NAME_LEN];
        char *text = pg_text((enum sql)i);
        name_of((enum sql)i, name);
        sent = text == NULL || PQsendPrepare(p->conn, name, text, 0, NULL) == 1;
        free(text);
    }
    return sent && pg_sync(p) ? BT_OK : pg_failed(p, "cannot prepare the statements", err);
}
