/* Who owns the journal: a lease by the server's clock, and an epoch that every commit compares. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/failpoint.h"
#include "protocol/base/log.h"
#include "supervisor/core/mutant.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum {
    SQL_LEN = 1024,
    RENEWALS = 3 /* in the time of a lease */,
    CHECK_MS = 60000,
    LOOK_MS = 10000
};

/* A turn of another epoch, or from another position, divides by zero: 22012. */
enum bt_code pg_fence_prepare(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];

    (void)snprintf(
        sql, sizeof sql,
        "WITH f AS (UPDATE baton.shards SET pos = $3, lease_until = clock_timestamp() + "
        "interval '%" PRIu32 " milliseconds' WHERE shard = %" PRIu32 " AND %s AND %s RETURNING 1) "
        "SELECT 1 / count(*) FROM f",
        p->lease_ms, p->shard, MUTANT(FENCE_WITHOUT_EPOCH) ? "$1::int8 > 0" : "epoch = $1",
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
                   "clock_timestamp() > lease_until FROM baton.shards WHERE shard = %" PRIu32 "",
                   p->shard);
    if (!pg_send_text(p, sql) || !pg_sync(p) || PQntuples(p->result) != 1) {
        return pg_failed(p, "cannot read who owns the journal", err);
    }
    return err_set(err, BT_CONFLICT, "the node \"%.*s\" owns this journal until %.*s UTC",
                   PQgetlength(p->result, 0, 0), PQgetvalue(p->result, 0, 0),
                   PQgetlength(p->result, 0, 1), PQgetvalue(p->result, 0, 1));
}

static const char *goes_on(void)
{
    return MUTANT(LEASE_FOR_EVER) ? "lease_until > clock_timestamp()" : PG_GOES_ON;
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
                   "a.pid <> pg_backend_pid() AND a.application_name LIKE 'baton/%%'), owner "
                   "FROM baton.shards s WHERE shard = %" PRIu32 " AND NOT %s",
                   MUTANT(OWNER_NOT_ENDED) ? "1" : "pg_terminate_backend(a.pid)", p->shard,
                   goes_on());
    ok = pg_send_text(p, sql) && pg_sync(p);
    *ret = ok && PQntuples(p->result) == 1;
    if (*ret) {
        (void)snprintf(p->before, sizeof p->before, "%.*s", PQgetlength(p->result, 0, 1),
                       PQgetvalue(p->result, 0, 1));
    }
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
                   "pg_backend_pid(), took = pos, took_epoch = epoch + 1, lease_until = "
                   "clock_timestamp() + interval '%" PRIu32 " milliseconds' WHERE shard = %" PRIu32
                   " AND NOT %s RETURNING epoch, pos",
                   p->lease_ms, p->shard, goes_on());
    pg_put_value(&node, p->node, strlen(p->node));
    (void)FAILPOINT("take");
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
    (void)FAILPOINT("taken");
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

    if (sent_it && pg_sync(p)) {
        p->renewed = sent;
        return BT_OK;
    }
    /* A ride takes the next epoch, which renews the lease. */
    return pg_ride_on(p, sent_it, "cannot renew the lease")
               ? BT_OK
               : pg_failed(p, "cannot renew the lease", err);
}

static uint64_t since_renewal(const struct pg_journal *p)
{
    return clock_boot_ms() - p->renewed;
}

static bool is_due(const struct pg_journal *p)
{
    return since_renewal(p) >= p->lease_ms / RENEWALS;
}

static bool is_too_late(const struct pg_journal *p)
{
    return !MUTANT(NEVER_TOO_LATE) && since_renewal(p) > p->lease_ms * 2 / RENEWALS;
}

static enum bt_code end_here(struct pg_journal *p, const struct bt_error *why, struct bt_error *err)
{
    /* Another may own it: nothing of what was decided may be done. */
    journal_die(&p->sql.base, why);
    return err_set(err, BT_IO, "%s", why->msg);
}

static enum bt_code too_late(struct pg_journal *p, struct bt_error *err)
{
    struct bt_error why;

    (void)err_set(&why, BT_IO, "PostgreSQL answers too late for a lease of %" PRIu32 " ms",
                  p->lease_ms);
    return end_here(p, &why, err);
}

/* What is stored now is on one server only; that was not what was asked for. It goes on, because
 * an end would stop all plans. */
static enum bt_code check_standbys(struct pg_journal *p, struct bt_error *err)
{
    int64_t n = 0;
    enum bt_code code;

    if (!p->replicated || p->renewed - p->checked < CHECK_MS) {
        return BT_OK;
    }
    p->checked = p->renewed;
    code =
        pg_number(p, "SELECT length(current_setting('synchronous_standby_names'))::int8", &n, err);
    if (code == BT_OK && n == 0) {
        log_err("journal.not_replicated", "%s", PG_NOT_REPLICATED);
    }
    return code;
}

/* What others have written down. */
static enum bt_code look_for_rewinds(struct pg_journal *p, struct bt_error *err)
{
    if (p->sql.base.rewound.lost_seq > 0 || p->renewed - p->looked < LOOK_MS) {
        return BT_OK;
    }
    p->looked = p->renewed;
    return pg_find_rewound(p, err);
}

/*
 * A stopped owner comes back here: the renewal shows whether it still is one. A refusal that
 * passes (no room, a lock) leaves the rest of the lease.
 */
enum bt_code pg_keep(struct journal *j, struct bt_error *err)
{
    struct pg_journal *p = pg_of(j);
    struct bt_error why;
    enum bt_code code;

    if (!is_due(p)) {
        return BT_OK;
    }
    if (j->dirty || p->in_transaction) { /* the commit renews it */
        return is_too_late(p) ? too_late(p, err) : BT_OK;
    }
    code = renew(p, &why);
    code = code == BT_OK ? check_standbys(p, &why) : code;
    code = code == BT_OK ? look_for_rewinds(p, &why) : code;
    if (code != BT_OK && code != BT_UNAVAILABLE) {
        return end_here(p, &why, err);
    }
    return is_too_late(p) ? too_late(p, err) : BT_OK;
}

enum bt_code pg_hold(struct journal *j, struct bt_error *err)
{
    if (!is_due(pg_of(j))) {
        return BT_OK;
    }
    return j->dirty ? journal_commit(j, err) : pg_keep(j, err);
}

bool pg_keep_reading(struct pg_journal *p)
{
    const uint64_t pos = p->sql.base.committed_pos;
    const uint64_t sent = clock_boot_ms();

    if (p->epoch == 0 || p->in_transaction || !is_due(p)) {
        return true;
    }
    if (!pg_send_fence(p, pos, pos) || !pg_sync(p)) {
        return false;
    }
    p->renewed = sent;
    return true;
}

enum bt_code pg_still_owner(struct pg_journal *p, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = BT_OK;

    if (!is_too_late(p)) {
        return BT_OK;
    }
    p->sql.base.committed_pos = p->sql.base.pos; /* it is stored */
    p->sql.base.dirty = false;
    code = renew(p, &why);
    if (code != BT_OK) {
        return end_here(p, &why, err);
    }
    return is_too_late(p) ? too_late(p, err) : BT_OK;
}

void pg_release(struct pg_journal *p)
{
    char sql[SQL_LEN];

    (void)snprintf(sql, sizeof sql,
                   "UPDATE baton.shards SET lease_until = clock_timestamp(), backend = 0 WHERE "
                   "shard = %" PRIu32 " AND epoch = %" PRIu64,
                   p->shard, p->epoch);
    if (p->epoch == 0 || !pg_send_text(p, sql) || !pg_sync(p)) {
        log_debug("journal.not_released", "the lease ends by itself");
    }
}
