/* Several shards and several nodes: who lives, who may take what, and where it is then. The clock
 * of the server decides; nodes that meet here agree by locks of rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/core/mutant.h"
#include "supervisor/journal/owner.h"
#include "supervisor/journal/port.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { SQL_LEN = 1600, DECIMAL = 10 };

static int64_t number_at(const PGresult *r, int row, int column)
{
    return strtoll(PQgetvalue(r, row, column), NULL, DECIMAL);
}

/* Texts as bytea: a name may have any bytes. The number of rows that it returned or changed is in
 * *ret_rows. NULL: *err. */
static PGresult *ask(struct journal_look *l, const char *sql, const char *const *texts, int n,
                     struct bt_error *err)
{
    enum { TEXTS_MAX = 4 };
    static const Oid types[TEXTS_MAX] = {17, 17, 17, 17}; /* bytea */
    static const int binary[TEXTS_MAX] = {1, 1, 1, 1};
    int lengths[TEXTS_MAX] = {0};
    PGresult *r;
    ExecStatusType status;

    for (int i = 0; i < n && i < TEXTS_MAX; i++) {
        lengths[i] = (int)strlen(texts[i]);
    }
    r = PQexecParams(l->conn, sql, n, types, texts, lengths, binary, 0);
    status = PQresultStatus(r);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        (void)err_set(err, PQstatus(l->conn) == CONNECTION_BAD ? BT_UNAVAILABLE : BT_IO,
                      "cannot read the fleet: PostgreSQL: %s", PQerrorMessage(l->conn));
        PQclear(r);
        return NULL;
    }
    return r;
}

static enum bt_code tell(struct journal_look *l, const char *sql, const char *const *texts, int n,
                         struct bt_error *err)
{
    PGresult *r = ask(l, sql, texts, n, err);
    const enum bt_code code = r == NULL ? err->code : BT_OK;

    PQclear(r);
    return code;
}

enum bt_code journal_look_wait(struct journal_look *l, const char *node, int64_t *ret_ms,
                               struct bt_error *err)
{
    char sql[SQL_LEN];
    PGresult *r;

    *ret_ms = l->lease_ms;
    (void)snprintf(
        sql, sizeof sql,
        "WITH live AS (SELECT count(*) n FROM baton.nodes WHERE %s AND NOT draining), mine AS "
        "(SELECT count(*) n FROM baton.shards WHERE owner = $1 AND %s), move AS (SELECT m.node, "
        "extract(epoch FROM m.until - clock_timestamp()) * 1000 AS ms FROM baton.moves m WHERE "
        "m.shard = %" PRIu32 " AND m.until > clock_timestamp() AND m.until < clock_timestamp() + "
        "interval '2 minutes') SELECT (CASE WHEN EXISTS (SELECT 1 FROM move) THEN (SELECT CASE "
        "WHEN node = $1 OR %s THEN 0 ELSE ms END FROM move) WHEN mine.n < ceil((SELECT count(*) "
        "FROM baton.shards)::numeric / greatest(live.n, 1)) AND NOT EXISTS (SELECT 1 FROM "
        "baton.nodes WHERE node = $1 AND draining) THEN 0 ELSE greatest(0, %" PRIu32
        " - CASE WHEN s.lease_until = '-infinity' THEN 0 WHEN s.lease_until > clock_timestamp() "
        "AND NOT %s THEN 60000 ELSE extract(epoch FROM clock_timestamp() - s.lease_until) * 1000 "
        "END) END)::bigint FROM live, mine, baton.shards s WHERE s.shard = %" PRIu32,
        PG_GOES_ON, PG_GOES_ON, l->shard, MUTANT(MOVE_FOR_ANYBODY) ? "true" : "false", l->lease_ms,
        PG_GOES_ON, l->shard);
    r = ask(l, sql, &node, 1, err);
    if (r == NULL) {
        return err->code;
    }
    if (PQntuples(r) == 1) {
        *ret_ms = MUTANT(SHARE_IGNORED) ? 0 : number_at(r, 0, 0);
    }
    PQclear(r);
    return BT_OK;
}

/* Shorter than the lease of a shard, so that a node that was lost is known to be when its shards
 * are free. `said`: an older program that goes on under this name writes lease_until alone. */
enum bt_code journal_look_beat(struct journal_look *l, const char *node, const char *places,
                               const char *config, struct bt_error *err)
{
    const char *const texts[] = {node, places, BATON_VERSION, config};
    char sql[SQL_LEN];

    (void)snprintf(
        sql, sizeof sql,
        "WITH t AS MATERIALIZED (SELECT clock_timestamp() + interval '%" PRIu32
        " milliseconds' AS at) INSERT INTO baton.nodes(node, places, lease_until, said, version, "
        "knows, config) SELECT $1, $2, at, at, $3, %d, $4 FROM t ON CONFLICT (node) DO UPDATE SET "
        "places = excluded.places, lease_until = excluded.lease_until, said = excluded.said, "
        "version = excluded.version, knows = excluded.knows, config = excluded.config",
        l->lease_ms * 2 / 3, PG_FORMAT);
    return tell(l, sql, texts, 4, err);
}

enum bt_code journal_look_leave(struct journal_look *l, const char *node, struct bt_error *err)
{
    return tell(l,
                "UPDATE baton.nodes SET lease_until = clock_timestamp(), places = '' WHERE node = "
                "$1",
                &node, 1, err);
}

enum bt_code journal_look_shards(struct journal_look *l, struct journal_shard *ret, uint32_t max,
                                 uint32_t *ret_n, struct bt_error *err)
{
    PGresult *r = pg_look_query(
        l,
        "SELECT s.shard, s.epoch, s.pos, CASE WHEN NOT " PG_GOES_ON " THEN 0 ELSE "
        "(extract(epoch FROM s.lease_until - clock_timestamp()) * 1000)::bigint END, "
        "encode(s.owner, 'escape'), coalesce(encode(m.node, 'escape'), '') FROM baton.shards s "
        "LEFT JOIN baton.moves m ON m.shard = s.shard AND m.until > clock_timestamp() ORDER BY 1",
        err);

    *ret_n = 0;
    if (r == NULL) {
        return err->code;
    }
    for (int i = 0; i < PQntuples(r) && *ret_n < max; i++) {
        struct journal_shard *s = &ret[(*ret_n)++];
        *s = (struct journal_shard){.shard = (uint32_t)number_at(r, i, 0),
                                    .epoch = (uint64_t)number_at(r, i, 1),
                                    .seq = pos_seq((uint64_t)number_at(r, i, 2)),
                                    .lease_left_ms = number_at(r, i, 3)};
        s->led = s->lease_left_ms > 0;
        (void)snprintf(s->node, sizeof s->node, "%s", PQgetvalue(r, i, 4));
        (void)snprintf(s->moves_to, sizeof s->moves_to, "%s", PQgetvalue(r, i, 5));
    }
    PQclear(r);
    return BT_OK;
}

/* What a node has said counts while it is that of its newest beat. Who leads is alive, too: with
 * one shard the leader does not beat. */
enum bt_code journal_look_nodes(struct journal_look *l, struct journal_node *ret, uint32_t max,
                                uint32_t *ret_n, struct bt_error *err)
{
    PGresult *r = pg_look_query(
        l,
        "SELECT encode(n.node, 'escape'), " PG_GOES_ON " OR EXISTS (SELECT 1 "
        "FROM baton.shards s WHERE s.owner = n.node AND " PG_GOES_ON "), "
        "draining, convert_from(places, 'UTF8'), CASE WHEN said = lease_until THEN "
        "encode(version, 'escape') ELSE '' END, CASE WHEN said = lease_until THEN knows ELSE 2 "
        "END, CASE WHEN said = lease_until THEN encode(config, 'escape') ELSE '' END FROM "
        "baton.nodes n ORDER BY 1",
        err);

    *ret_n = 0;
    if (r == NULL) {
        return err->code;
    }
    for (int i = 0; i < PQntuples(r) && *ret_n < max; i++) {
        struct journal_node *n = &ret[(*ret_n)++];
        *n = (struct journal_node){.alive = PQgetvalue(r, i, 1)[0] == 't',
                                   .draining = PQgetvalue(r, i, 2)[0] == 't',
                                   .places = strdup(PQgetvalue(r, i, 3)),
                                   .knows = (int)number_at(r, i, 5)};
        (void)snprintf(n->node, sizeof n->node, "%s", PQgetvalue(r, i, 0));
        (void)snprintf(n->version, sizeof n->version, "%s", PQgetvalue(r, i, 4));
        (void)snprintf(n->config, sizeof n->config, "%s", PQgetvalue(r, i, 6));
    }
    PQclear(r);
    return BT_OK;
}

/* The epoch rises, so the leader can store nothing more: it ends, and what it began is found by the
 * next one. */
enum bt_code journal_look_move(struct journal_look *l, uint32_t shard, const char *node,
                               struct bt_error *err)
{
    char sql[SQL_LEN];
    bool done;
    PGresult *r;

    PQclear(PQexec(l->conn, "SET lock_timeout = 1000")); /* a stopped leader may hold the row */
    (void)snprintf(
        sql, sizeof sql,
        "WITH n AS (SELECT node FROM baton.nodes WHERE node = $1 AND " PG_GOES_ON
        "), s AS (UPDATE baton.shards SET epoch = epoch + %d, took = pos, "
        "took_epoch = epoch + 1, lease_until = clock_timestamp() WHERE shard = %" PRIu32
        " AND owner <> $1 AND EXISTS (SELECT 1 FROM n) "
        "RETURNING shard), m AS (INSERT INTO baton.moves SELECT s.shard, $1, clock_timestamp() + "
        "interval '%" PRIu32 " milliseconds' FROM s ON CONFLICT (shard) DO UPDATE SET node = "
        "excluded.node, until = excluded.until RETURNING 1) SELECT (SELECT count(*) FROM n) > 0 "
        "AND EXISTS (SELECT 1 FROM baton.shards WHERE shard = %" PRIu32 "), count(*) FROM m",
        MUTANT(MOVE_UNFENCED) ? 0 : 1, shard, 2 * l->lease_ms, shard);
    r = ask(l, sql, &node, 1, err);
    if (r == NULL) {
        return err->code;
    }
    done = PQgetvalue(r, 0, 0)[0] == 't';
    PQclear(r);
    return done ? BT_OK
                : err_set(err, BT_NOT_FOUND,
                          "there is no shard %" PRIu32 ", or no node \"%s\" that lives: see baton "
                          "fleet status",
                          shard, node);
}

enum bt_code journal_look_drain(struct journal_look *l, const char *node, bool drain,
                                struct bt_error *err)
{
    PGresult *r = ask(l,
                      drain ? "UPDATE baton.nodes SET draining = true WHERE node = $1"
                            : "UPDATE baton.nodes SET draining = false WHERE node = $1",
                      &node, 1, err);
    bool done;

    if (r == NULL) {
        return err->code;
    }
    done = strcmp(PQcmdTuples(r), "0") != 0;
    PQclear(r);
    return done ? BT_OK
                : err_set(err, BT_NOT_FOUND, "there is no node \"%s\": see baton fleet status",
                          node);
}
