/*
 * Riding through: the connection, its backend or the server is gone, or does not answer, and the
 * daemon goes on when there is one again. What a lost turn came to is never read by SELECT, because
 * its commit may still be running. The next epoch is taken first: that UPDATE waits for the commit,
 * and fences it. Then the position tells.
 */
#include <endian.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/core/mutant.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum {
    SQL_LEN = 1200,
    MINE_LEN = 400,
    PAUSE_MS = 50, /* before the second attempt; each next one waits twice as long */
    PAUSE_MAX_MS = 500,
    LEASES_MAX = 20 /* then it ends, so that clients and agents look for another node */
};

bool pg_is_lost(struct pg_journal *p, bool sent)
{
    if (!sent && p->sql.base.dead) {
        return false;
    }
    if (!sent && p->message[0] == 0) { /* libpq has refused to send it */
        (void)snprintf(p->message, sizeof p->message, "%s", PQerrorMessage(p->conn));
    }
    p->lost = p->lost || (!sent && p->state[0] == 0) || PQstatus(p->conn) == CONNECTION_BAD;
    return p->lost && p->rides && !p->riding;
}

/* The epoch is still this owner's: its own, or one that an attempt of it took without an answer. */
static void mine(const struct pg_journal *p, char ret[MINE_LEN])
{
    int n = snprintf(ret, MINE_LEN,
                     "shard = %" PRIu32 " AND (epoch = %" PRIu64 " OR (epoch > %" PRIu64
                     " AND owner = $1::bytea AND backend IN (-1",
                     p->shard, p->epoch, p->epoch);

    for (int i = 0; i < PG_TAKES_MAX && n < MINE_LEN; i++) {
        n += snprintf(ret + n, (size_t)(MINE_LEN - n), p->takes[i] != 0 ? ", %" PRId64 : "",
                      p->takes[i]);
    }
    if (n < MINE_LEN) {
        (void)snprintf(ret + n, (size_t)(MINE_LEN - n), ")))");
    }
}

static bool ask(struct pg_journal *p, const char *sql)
{
    const int format = 1;
    const char *const values[] = {p->node};
    const int lengths[] = {(int)strlen(p->node)};

    return PQsendQueryParams(p->conn, sql, 1, NULL, values, lengths, &format, 1) == 1 && pg_sync(p);
}

static uint64_t number_at(const PGresult *r, int column)
{
    uint64_t be = 0;

    if (PQntuples(r) == 1 && PQgetlength(r, 0, column) == (int)sizeof be) {
        memcpy(&be, PQgetvalue(r, 0, column), sizeof be);
    }
    return be64toh(be);
}

/* Who has it. BT_IO: another one, or history was lost: the server does not know this owner's epoch,
 * or the next one began before the end of what this one had acknowledged. */
static enum bt_code explain(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];

    (void)snprintf(sql, sizeof sql,
                   "SELECT epoch, CASE WHEN took_epoch = epoch THEN took ELSE %" PRIu64
                   " END FROM baton.shards WHERE shard = %" PRIu32 " AND $1::bytea IS NOT NULL",
                   p->sql.base.committed_pos, p->shard);
    if (!ask(p, sql)) {
        return err_set(err, BT_UNAVAILABLE, "PostgreSQL: %s", p->message);
    }
    if (PQntuples(p->result) != 1 || number_at(p->result, 0) < p->epoch ||
        number_at(p->result, 1) < p->sql.base.committed_pos) {
        pg_note_rewound(p, 0, pos_seq(p->sql.base.committed_pos));
        return err_set(err, BT_IO,
                       "the server is behind what was acknowledged: a failover has lost history");
    }
    return err_set(err, BT_IO, "another daemon has taken this journal over");
}

/* A lease that is over by the server's clock is renewed all the same, while the epoch stands: the
 * time without a server was nobody's. */
static enum bt_code take_next(struct pg_journal *p, uint64_t *ret_pos, struct bt_error *err)
{
    char sql[SQL_LEN];
    char is_mine[MINE_LEN];
    const uint64_t sent = clock_boot_ms();
    const int64_t backend = PQbackendPID(p->conn);

    mine(p, is_mine);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a WHERE a.pid "
                   "IN (SELECT backend FROM baton.shards WHERE %s) AND a.pid <> pg_backend_pid() "
                   "AND a.application_name LIKE 'baton/%%'",
                   is_mine);
    if (!ask(p, sql)) {
        return err_set(err, BT_UNAVAILABLE, "PostgreSQL: %s", p->message);
    }
    p->takes[p->takes_n++ % PG_TAKES_MAX] = backend;
    if (MUTANT(OUTCOME_BY_SELECT)) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT epoch, pos FROM baton.shards WHERE shard = %" PRIu32
                       " AND $1::bytea IS NOT "
                       "NULL",
                       p->shard);
    } else {
        (void)snprintf(sql, sizeof sql,
                       "UPDATE baton.shards SET epoch = epoch + 1, owner = $1::bytea, backend = "
                       "pg_backend_pid(), took = pos, took_epoch = epoch + 1, lease_until = "
                       "clock_timestamp() + interval '%" PRIu32
                       " milliseconds' WHERE %s RETURNING epoch, pos",
                       p->lease_ms, MUTANT(RIDE_TAKES_ANY) ? "$1::bytea IS NOT NULL" : is_mine);
    }
    if (!ask(p, sql)) {
        return err_set(err, BT_UNAVAILABLE, "PostgreSQL: %s", p->message);
    }
    if (PQntuples(p->result) != 1) {
        return explain(p, err);
    }
    p->epoch = number_at(p->result, 0);
    *ret_pos = number_at(p->result, 1);
    p->renewed = sent;
    memset(p->takes, 0, sizeof p->takes);
    return BT_OK;
}

static enum bt_code attempt(struct pg_journal *p, uint64_t *ret_pos, struct bt_error *err)
{
    char sql[SQL_LEN];
    enum bt_code code;

    PQfinish(p->conn);
    p->conn = NULL;
    code = pg_connect_again(p, err);
    if (code == BT_OK && (PQsetnonblocking(p->conn, 1) != 0 || PQenterPipelineMode(p->conn) != 1)) {
        code = err_set(err, BT_UNAVAILABLE, "PostgreSQL: no pipeline");
    }
    pg_settings_text(p, sql, sizeof sql);
    if (code == BT_OK && (!pg_send_text(p, sql) || !pg_sync(p))) {
        code = pg_failed(p, "cannot set PostgreSQL up", err);
    }
    code = code == BT_OK ? pg_check_format(p, err) : code;
    code = code == BT_OK ? take_next(p, ret_pos, err) : code;
    code = code == BT_OK ? pg_fence_prepare(p, err) : code;
    return code == BT_OK ? pg_statements_prepare(p, err) : code;
}

/* False: whoever waits wants no more of it. */
static bool pause_for(struct pg_journal *p, uint64_t ms)
{
    const uint64_t until = clock_boot_ms() + ms;
    bool ok = true;

    while (ok && clock_boot_ms() < until) {
        ok = pg_wait_slice(p, -1, 0, until);
    }
    return ok;
}

static enum bt_code go_on(struct pg_journal *p, uint64_t pos, uint64_t began, struct bt_error *err)
{
    const struct journal *j = &p->sql.base;

    if (pos < j->committed_pos) { /* of the last event there may be internal rows that are lost */
        pg_note_rewound(p, pos_seq(pos), pos_seq(j->committed_pos));
        return err_set(err, BT_IO,
                       "the server is behind what was acknowledged: a failover has lost history");
    }
    if (pos != j->committed_pos && pos != j->pos) {
        return err_set(err, BT_IO, "the journal ends at a position that nobody wrote");
    }
    p->in_transaction = false;
    p->sent = 0;
    p->lost = false;
    p->message[0] = p->state[0] = 0;
    p->checked = 0; /* another server may have other standbys */
    log_info("journal.back", "away_ms=%" PRIu64 " epoch=%" PRIu64, clock_boot_ms() - began,
             p->epoch);
    return BT_OK;
}

static enum bt_code give_up(struct pg_journal *p, const struct bt_error *why, struct bt_error *err)
{
    struct bt_error here;
    struct bt_error *to = err != NULL ? err : &here;

    (void)err_set(to, BT_IO, "%.400s", why->msg);
    sql_batch_forget(&p->sql);
    pg_batch_clear(p);
    journal_die(&p->sql.base, to);
    return BT_IO;
}

enum bt_code pg_ride(struct pg_journal *p, const char *what, uint64_t *ret_pos,
                     struct bt_error *err)
{
    const uint64_t began = clock_boot_ms();
    uint64_t pause = 0;
    struct bt_error why;
    struct bt_error last;
    enum bt_code code = BT_UNAVAILABLE;

    log_warn("journal.away", "%s: PostgreSQL: %s; connecting again", what, p->message);
    p->riding = true;
    pg_ahead(&p->sql, NULL, 0);
    while (code == BT_UNAVAILABLE) {
        if (!pause_for(p, pause)) {
            code = err_set(&why, BT_IO, "asked to stop while PostgreSQL was away");
        } else if (clock_boot_ms() - began > (uint64_t)p->lease_ms * LEASES_MAX) {
            last = why;
            code = err_set(&why, BT_IO, "PostgreSQL was away for %d leases; at last: %.300s",
                           LEASES_MAX, last.msg);
        } else {
            code = attempt(p, ret_pos, &why);
        }
        pause = pause == 0 ? PAUSE_MS : pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
    p->riding = false;
    code = code == BT_OK ? go_on(p, *ret_pos, began, &why) : code;
    return code == BT_OK ? BT_OK : give_up(p, &why, err);
}

bool pg_ride_on(struct pg_journal *p, bool sent, const char *what)
{
    struct bt_error why;
    uint64_t pos = 0;

    if (!pg_is_lost(p, sent) || pg_ride(p, what, &pos, &why) != BT_OK) {
        return false;
    }
    if (pos != p->sql.base.committed_pos) {
        (void)err_set(&why, BT_IO, "the journal has rows of a turn that was not sent");
        (void)give_up(p, &why, NULL);
        return false;
    }
    return true;
}
