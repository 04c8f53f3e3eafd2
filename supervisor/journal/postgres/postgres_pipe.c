/* The pipeline to PostgreSQL: statements are sent without waiting, one Sync ends them, and all
 * answers are read with a deadline. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/core/mutant.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { BINARY = 1 };

void pg_put_value(struct pg_value *to, const void *bytes, size_t len)
{
    to->bytes = bytes;
    to->len = (int)len;
}

void pg_put_number(struct pg_value *to, int64_t v)
{
    to->number = htobe64((uint64_t)v);
    pg_put_value(to, &to->number, sizeof to->number);
}

bool pg_send(struct pg_journal *p, const char *name, const struct pg_value *v, int n)
{
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    int formats[PG_PARAMS_MAX];

    for (int i = 0; i < n; i++) {
        values[i] = v[i].bytes;
        lengths[i] = v[i].len;
        formats[i] = BINARY;
    }
    return PQsendQueryPrepared(p->conn, name, n, values, lengths, formats, BINARY) == 1;
}

bool pg_send_text(struct pg_journal *p, const char *sql)
{
    return PQsendQueryParams(p->conn, sql, 0, NULL, NULL, NULL, NULL, BINARY) == 1;
}

/* base.waits is called each slice: in a ride at once, else when an answer takes long. */
bool pg_wait_slice(struct pg_journal *p, int fd, short events, uint64_t until)
{
    const uint64_t now = clock_boot_ms();
    struct pollfd at = {.fd = fd, .events = events};
    const uint64_t left = until > now ? until - now : 0;
    const bool called = p->sql.base.waits != NULL;
    const int rc = poll(&at, 1, (int)(called && left > PG_SLICE_MS ? PG_SLICE_MS : left));

    if (rc < 0 && errno != EINTR) {
        return false;
    }
    if (!called || clock_boot_ms() - p->called < PG_SLICE_MS ||
        (!p->riding && clock_boot_ms() - p->asked < PG_SLOW_MS)) {
        return true;
    }
    p->called = clock_boot_ms();
    return p->sql.base.waits(p->sql.base.waits_self);
}

/* Waits until the next answer can be taken. False: the time is over, or the connection is. */
static bool wait_answer(struct pg_journal *p, uint64_t deadline)
{
    while (PQisBusy(p->conn) == 1) {
        const int unsent = PQflush(p->conn);
        const uint64_t now = clock_boot_ms();
        const short events = (short)(POLLIN | (unsent > 0 ? POLLOUT : 0));
        if (unsent < 0 || now >= deadline || PQsocket(p->conn) < 0 ||
            !pg_wait_slice(p, PQsocket(p->conn), events, deadline) ||
            PQconsumeInput(p->conn) != 1) {
            return false;
        }
    }
    return true;
}

static void note_error(struct pg_journal *p, const PGresult *r)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

    if (p->message[0] == 0) {
        (void)snprintf(p->state, sizeof p->state, "%s", state != NULL ? state : "");
        (void)snprintf(p->message, sizeof p->message, "%s", text != NULL ? text : "no answer");
    }
}

/* Takes the answers up to the Sync. False: there will be no more. */
static bool take_answers(struct pg_journal *p, uint64_t deadline)
{
    for (int ends = 0; ends < 2;) { /* each statement's answers end; two ends: nothing is left */
        PGresult *r;
        ExecStatusType status;
        if (!wait_answer(p, deadline)) {
            return false;
        }
        r = PQgetResult(p->conn);
        if (PQstatus(p->conn) == CONNECTION_BAD) {
            note_error(p, r);
            PQclear(r);
            return false;
        }
        if (r == NULL) {
            ends++;
            continue;
        }
        ends = 0;
        status = PQresultStatus(r);
        if (status == PGRES_PIPELINE_SYNC) {
            PQclear(r);
            return true;
        }
        if (status == PGRES_FATAL_ERROR) {
            note_error(p, r);
        }
        if (p->ahead_at < p->ahead_n) {
            p->ahead[p->ahead_at++].rows = r;
            continue;
        }
        PQclear(p->result);
        p->result = r;
    }
    return false;
}

bool pg_sync(struct pg_journal *p)
{
    const uint64_t deadline = clock_boot_ms() + p->lease_ms / 2;

    p->called = p->asked = clock_boot_ms();
    p->state[0] = p->message[0] = 0;
    PQclear(p->result);
    p->result = NULL;
    p->behind = (p->behind && !MUTANT(LATE_ANSWERS_TAKEN)) || PQpipelineSync(p->conn) != 1 ||
                !take_answers(p, deadline);
    p->lost = p->behind;
    /* Its writes are stopped, and the turn is not stored: as if it was not there. */
    p->lost = p->lost || (strcmp(p->state, "25006") == 0 && !MUTANT(READ_ONLY_ENDS));
    if (p->lost && p->message[0] == 0) {
        (void)snprintf(p->message, sizeof p->message, "%s",
                       PQstatus(p->conn) == CONNECTION_BAD ? "the connection is lost"
                                                           : "no answer within half a lease");
    }
    return !p->lost && p->message[0] == 0;
}

enum bt_code pg_number(struct pg_journal *p, const char *sql, int64_t *ret, struct bt_error *err)
{
    uint64_t be;

    *ret = 0;
    bool ok = pg_send_text(p, sql);

    while (!(ok && pg_sync(p)) && pg_ride_on(p, ok, "cannot read the journal")) {
        ok = pg_send_text(p, sql);
    }
    if (!ok || p->lost || p->message[0] != 0) {
        return p->lost || p->in_transaction || p->state[0] == 0
                   ? pg_failed(p, "cannot read the journal", err)
                   : err_set(err, BT_UNAVAILABLE, "cannot read the journal: PostgreSQL: %s (%s)",
                             p->message, p->state);
    }
    if (PQntuples(p->result) != 1 || PQgetlength(p->result, 0, 0) != (int)sizeof be) {
        return err_set(err, BT_IO, "the journal is damaged: no answer to \"%s\"", sql);
    }
    memcpy(&be, PQgetvalue(p->result, 0, 0), sizeof be);
    *ret = (int64_t)be64toh(be);
    return BT_OK;
}
