/* Who owns the journal: a lease by the server's clock, and an epoch that every commit compares. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/core/mutant.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { SQL_LEN = 1024, RENEWALS = 3 /* in the time of a lease */ };

/* A turn of another epoch, or from another position, divides by zero: 22012. */
enum bt_code pg_fence_prepare(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];

    (void)snprintf(
        sql, sizeof sql,
        "WITH f AS (UPDATE baton.shards SET pos = $3, lease_until = clock_timestamp() + "
        "interval '%" PRIu32 " milliseconds' WHERE shard = %d AND %s AND %s RETURNING 1) "
        "SELECT 1 / count(*) FROM f",
        p->lease_ms, PG_SHARD, MUTANT(FENCE_WITHOUT_EPOCH) ? "$1::int8 > 0" : "epoch = $1",
        MUTANT(FENCE_WITHOUT_POS) ? "$2::int8 >= 0" : "pos = $2");
    return PQsendPrepare(p->conn, "fence", sql, 0, NULL) == 1 && pg_sync(p)
               ? BT_OK
               : pg_failed(p, "cannot prepare the fence", err);
}

bool pg_send_fence(struct pg_journal *p, uint64_t from, uint64_t to)
{
    struct pg_value v[3];

    pg_put_number(&v[0], (int64_t)p->epoch);
    pg_put_number(&v[1], (int64_t)from);
    pg_put_number(&v[2], (int64_t)to);
    return pg_send(p, "fence", v, 3);
}

static uint64_t number_at(const PGresult *r, int column)
{
    uint64_t be;

    memcpy(&be, PQgetvalue(r, 0, column), sizeof be);
    return be64toh(be);
}

static enum bt_code held(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];

    (void)snprintf(sql, sizeof sql,
                   "SELECT owner, to_char(lease_until AT TIME ZONE 'UTC', 'HH24:MI:SS.MS'), "
                   "clock_timestamp() > lease_until FROM baton.shards WHERE shard = %d",
                   PG_SHARD);
    if (!pg_send_text(p, sql) || !pg_sync(p) || PQntuples(p->result) != 1) {
        return pg_failed(p, "cannot read who owns the journal", err);
    }
    return err_set(err, BT_CONFLICT, "the node \"%.*s\" owns this journal until %.*s UTC",
                   PQgetlength(p->result, 0, 0), PQgetvalue(p->result, 0, 0),
                   PQgetlength(p->result, 0, 1), PQgetvalue(p->result, 0, 1));
}

/* Ends the connection of an owner whose lease is over: a turn that is half sent holds its locks for
 * as long as that process is stopped. One look decides; were the lease to end between two, the
 * UPDATE would meet those locks. *ret: it is over. */
static bool end_old_owner(struct pg_journal *p, bool *ret)
{
    char sql[SQL_LEN];
    bool ok;

    (void)snprintf(sql, sizeof sql,
                   "SELECT (SELECT count(%s) FROM pg_stat_activity a WHERE a.pid = s.backend AND "
                   "a.pid <> pg_backend_pid() AND a.application_name LIKE 'baton/%%') "
                   "FROM baton.shards s WHERE shard = %d AND lease_until < clock_timestamp()",
                   MUTANT(OWNER_NOT_ENDED) ? "1" : "pg_terminate_backend(a.pid)", PG_SHARD);
    ok = pg_send_text(p, sql) && pg_sync(p);
    *ret = ok && PQntuples(p->result) == 1;
    return ok;
}

enum bt_code pg_take(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];
    struct pg_value node;
    const uint64_t sent = clock_boot_ms();
    bool is_over = false;
    bool ok = end_old_owner(p, &is_over);

    if (!ok) {
        return pg_failed(p, "cannot take the journal over", err);
    }
    if (!is_over) {
        return held(p, err);
    }
    (void)snprintf(sql, sizeof sql,
                   "UPDATE baton.shards SET epoch = epoch + 1, owner = $1, backend = "
                   "pg_backend_pid(), lease_until = clock_timestamp() + interval '%" PRIu32
                   " milliseconds' WHERE shard = %d AND lease_until < clock_timestamp() "
                   "RETURNING epoch, pos",
                   p->lease_ms, PG_SHARD);
    pg_put_value(&node, p->node, strlen(p->node));
    ok = PQsendPrepare(p->conn, "take", sql, 0, NULL) == 1 && pg_send(p, "take", &node, 1) &&
         pg_sync(p);
    if (!ok) {
        return pg_failed(p, "cannot take the journal over", err);
    }
    if (PQntuples(p->result) != 1) {
        return held(p, err);
    }
    p->epoch = number_at(p->result, 0);
    p->sql.base.boot = p->epoch;
    p->sql.base.pos = p->sql.base.committed_pos = number_at(p->result, 1);
    p->renewed = sent;
    return BT_OK;
}

/* A renewal is a turn without rows: only the owner can. */
static enum bt_code renew(struct pg_journal *p, struct bt_error *err)
{
    const uint64_t pos = p->sql.base.committed_pos;
    const uint64_t sent = clock_boot_ms();

    const bool sent_it = MUTANT(RENEWED_BY_ANOTHER)
                             ? pg_send_text(p, "UPDATE baton.shards SET lease_until = "
                                               "clock_timestamp() + interval '1 second'")
                             : pg_send_fence(p, pos, pos);

    if (!sent_it || !pg_sync(p)) {
        return pg_failed(p, "cannot renew the lease", err);
    }
    p->renewed = sent;
    return BT_OK;
}

enum bt_code pg_keep(struct journal *j, struct bt_error *err)
{
    struct pg_journal *p = pg_of(j);

    if (j->dirty || p->in_transaction || clock_boot_ms() - p->renewed < p->lease_ms / RENEWALS) {
        return BT_OK;
    }
    return renew(p, err);
}

enum bt_code pg_still_owner(struct pg_journal *p, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = BT_OK;

    if (clock_boot_ms() - p->renewed <= p->lease_ms * 2 / RENEWALS) {
        return BT_OK;
    }
    p->sql.base.committed_pos = p->sql.base.pos; /* it is stored */
    p->sql.base.dirty = false;
    code = renew(p, &why);
    if (code == BT_OK && clock_boot_ms() - p->renewed > p->lease_ms * 2 / RENEWALS) {
        code = err_set(&why, BT_IO, "PostgreSQL answers too late for a lease of %" PRIu32 " ms",
                       p->lease_ms);
    }
    if (code != BT_OK) {
        /* Another may own it: nothing of what was decided may be done. */
        journal_die(&p->sql.base, &why);
        return err_set(err, BT_IO, "%s", why.msg);
    }
    return BT_OK;
}

void pg_release(struct pg_journal *p)
{
    char sql[SQL_LEN];

    (void)snprintf(sql, sizeof sql,
                   "UPDATE baton.shards SET lease_until = clock_timestamp(), backend = 0 WHERE "
                   "shard = %d AND epoch = %" PRIu64,
                   PG_SHARD, p->epoch);
    if (p->epoch == 0 || !pg_send_text(p, sql) || !pg_sync(p)) {
        log_debug("journal.not_released", "the lease ends by itself");
    }
}
