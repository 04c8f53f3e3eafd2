/*
 * The open plans of a start. Each is read by four statements; one by one, that is four round trips
 * for each plan. Here those of several plans are one pipeline, and their results wait until the
 * statements are stepped. What is taken is what would be read now, or it is read again.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/journal/postgres/postgres_internal.h"

enum { NAME_LEN = 16 };
static const enum sql READ[] = {SQL_PLAN_DOC, SQL_PLAN_GET, SQL_STATE_GET, SQL_ROWS_PLAN};
enum { READ_N = sizeof READ / sizeof READ[0] };

static void forget_all(struct pg_journal *p)
{
    for (uint32_t i = 0; i < p->ahead_n; i++) {
        PQclear(p->ahead[i].rows);
    }
    p->ahead_n = p->ahead_at = 0;
}

static bool send_one(struct pg_journal *p, const struct pg_ahead *a)
{
    struct pg_value v[5];
    char name[NAME_LEN];
    int n = 1;

    pg_put_number(&v[0], (int64_t)a->ix);
    if (a->which == SQL_ROWS_PLAN) {
        pg_put_number(&v[0], 1);
        pg_put_number(&v[1], (int64_t)a->last);
        pg_put_number(&v[2], (int64_t)a->ix);
        pg_put_number(&v[3], PG_FIRST_PAGE);
        pg_put_number(&v[4], 0);
        n = 5;
    }
    (void)snprintf(name, sizeof name, "s%d", (int)a->which);
    return pg_send(p, name, v, n);
}

void pg_ahead(struct sql_journal *s, const uint64_t *ix, size_t n)
{
    struct pg_journal *p = pg_of(&s->base);
    bool ok = true;

    forget_all(p);
    if (n == 0 || s->base.dead || !pg_keep_reading(p) ||
        (p->writes_n > 0 && (!pg_send_batch(p) || !pg_sync(p)))) {
        return;
    }
    for (size_t i = 0; i < n && p->ahead_n + READ_N <= PG_AHEAD_MAX && ok; i++) {
        for (size_t k = 0; k < READ_N && ok; k++) {
            struct pg_ahead *a = &p->ahead[p->ahead_n++];
            *a = (struct pg_ahead){.which = READ[k], .ix = ix[i], .last = s->base.committed_pos};
            ok = send_one(p, a);
        }
    }
    ok = pg_sync(p) && ok;
    for (uint32_t i = 0; i < p->ahead_n; i++) {
        ok = ok && PQresultStatus(p->ahead[i].rows) == PGRES_TUPLES_OK;
    }
    if (!ok) { /* who reads them one by one sees why */
        forget_all(p);
    }
    p->ahead_at = p->ahead_n;
}

static uint64_t bound_number(const struct pg_stmt *s, int at)
{
    uint64_t be = 0;

    if (at < s->n && s->bound[at].len == (int)sizeof be) {
        memcpy(&be, s->bound[at].bytes, sizeof be);
    }
    return be64toh(be);
}

PGresult *pg_ahead_take(struct pg_stmt *s)
{
    const bool rows = s->which == SQL_ROWS_PLAN;
    const uint64_t ix = bound_number(s, rows ? 2 : 0);

    for (uint32_t i = 0; i < s->of->ahead_n; i++) {
        struct pg_ahead *a = &s->of->ahead[i];
        PGresult *found = a->rows;
        if (a->which != s->which || a->ix != ix ||
            (rows && (bound_number(s, 0) != 1 || bound_number(s, 1) != a->last))) {
            continue;
        }
        a->rows = NULL;
        return found;
    }
    return NULL;
}

void pg_ahead_forget(struct pg_journal *p, const struct pg_stmt *write)
{
    static const enum sql CHANGES[] = {SQL_STATE_PUT, SQL_STATE_SET, SQL_STATE_DROP, SQL_PLAN_DROP};
    bool changes = false;

    for (size_t i = 0; i < sizeof CHANGES / sizeof CHANGES[0] && p->ahead_n > 0; i++) {
        changes = changes || write->which == CHANGES[i];
    }
    for (uint32_t i = 0; i < p->ahead_n && changes; i++) {
        if (p->ahead[i].ix == bound_number(write, 0)) {
            PQclear(p->ahead[i].rows);
            p->ahead[i].rows = NULL;
        }
    }
}
