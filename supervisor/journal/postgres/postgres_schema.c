/* The tables. A shard is a schema of its own (baton_s0): it can be moved, dumped and dropped by
 * itself, and no key has the shard in it. Integers are bigint, ids uuid, texts bytea, because
 * PostgreSQL's text refuses the byte 0 and sorts by language. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/shard.h"
#include "supervisor/core/mutant.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { LOCK = 0x4261746F /* "Bato" */, SQL_LEN = 512 };

/* From this format on a step only adds what programs of the format before do not miss: the first
 * new node makes it beside them, and `baton fleet finalize` raises the format. */
enum { ADDS_FROM = 3 };

enum scope { FLEET /* once */, SHARD /* in the schema of each shard */ };

/* The steps to each format, in their order. Never change those of a released one. */
static const struct {
    int format;
    enum scope scope;
    const char *sql;
} MIGRATIONS[] = {
    {1, FLEET,
     "CREATE TABLE baton.shards(shard int PRIMARY KEY, epoch bigint NOT NULL DEFAULT 0,"
     " pos bigint NOT NULL DEFAULT 0, owner bytea NOT NULL DEFAULT '', backend int NOT NULL "
     "DEFAULT 0, lease_until timestamptz NOT NULL DEFAULT '-infinity') WITH (fillfactor = 20);"
     "INSERT INTO baton.shards(shard) VALUES(0);"},
    {1, SHARD,
     "CREATE TABLE meta(key text PRIMARY KEY, value bigint NOT NULL);"
     "INSERT INTO meta VALUES('blobs', 0);"
     "CREATE TABLE rows(pos bigint PRIMARY KEY, plan bigint NOT NULL, plan_seq bigint NOT NULL,"
     " type bytea NOT NULL, topic bytea NOT NULL, wall bigint NOT NULL, crc bigint NOT NULL,"
     " body bytea NOT NULL);"
     "ALTER TABLE rows ALTER body SET STORAGE EXTERNAL;"
     "CREATE INDEX rows_plan ON rows(plan, pos) WHERE plan > 0;"
     "CREATE INDEX rows_no_plan ON rows(wall, pos) WHERE plan = 0;"
     "CREATE TABLE blobs(id bigint PRIMARY KEY, crc bigint NOT NULL, bytes bytea NOT NULL);"
     "ALTER TABLE blobs ALTER bytes SET STORAGE EXTERNAL;"
     "CREATE TABLE plans(ix bigint PRIMARY KEY, id uuid NOT NULL UNIQUE, session bytea NOT NULL,"
     " client_key bytea UNIQUE, body_hash bigint NOT NULL, goal bytea NOT NULL,"
     " created bigint NOT NULL, crc bigint NOT NULL, doc_crc bigint NOT NULL, doc bytea NOT NULL);"
     "CREATE INDEX plans_session ON plans(session, ix) WHERE session <> '';"
     "CREATE TABLE plan_state(ix bigint PRIMARY KEY, status bytea NOT NULL, ended bigint NOT NULL,"
     " recoveries bigint NOT NULL, note bytea NOT NULL, crc bigint NOT NULL) WITH (fillfactor = "
     "70);"
     "CREATE INDEX plan_state_status ON plan_state(status, ix);"
     "CREATE INDEX plan_state_ended ON plan_state(ended, ix) WHERE ended > 0;"
     "CREATE TABLE errands(ix bigint PRIMARY KEY, kind bytea NOT NULL);"
     "CREATE TABLE owners(ix bigint PRIMARY KEY, owner bytea NOT NULL);"
     "CREATE TABLE sessions(id bytea PRIMARY KEY, created bigint NOT NULL, updated bigint NOT NULL,"
     " messages bigint NOT NULL, summarized bigint NOT NULL, summary bigint NOT NULL,"
     " agent_calls bigint NOT NULL, tool_calls bigint NOT NULL, crc bigint NOT NULL,"
     " owner bytea NOT NULL);"
     "CREATE INDEX sessions_updated ON sessions(updated);"
     "CREATE INDEX sessions_summary ON sessions(summary) WHERE summary > 0;"
     "CREATE TABLE messages(session bytea NOT NULL, n bigint NOT NULL, role bytea NOT NULL,"
     " cut bigint NOT NULL, turn uuid NOT NULL, plan uuid NOT NULL, wall bigint NOT NULL,"
     " crc bigint NOT NULL, text bytea NOT NULL, rid bigserial UNIQUE, PRIMARY KEY(session, n));"},
    {1, SHARD,
     "CREATE TABLE turns(id uuid PRIMARY KEY, session bytea NOT NULL, client_key bytea NOT NULL,"
     " body_hash bigint NOT NULL, asked bigint NOT NULL, answered bigint NOT NULL,"
     " started bigint NOT NULL, ended bigint NOT NULL, plan uuid NOT NULL, action bytea NOT NULL,"
     " wish bigint NOT NULL, crc bigint NOT NULL);"
     "CREATE UNIQUE INDEX turns_key ON turns(session, client_key) WHERE client_key <> '';"
     "CREATE INDEX turns_open ON turns(plan) WHERE ended = 0;"
     "CREATE INDEX turns_session ON turns(session);"
     "CREATE INDEX turns_wish ON turns(wish) WHERE wish > 0;"
     "CREATE TABLE blob_refs(plan bigint NOT NULL, blob bigint NOT NULL, PRIMARY KEY(plan, blob));"
     "CREATE INDEX blob_refs_blob ON blob_refs(blob);"
     "CREATE TABLE chains(ix bigint PRIMARY KEY, rows bigint NOT NULL, head bytea NOT NULL,"
     " crc bigint NOT NULL) WITH (fillfactor = 70);"
     "CREATE TABLE gone(ix bigint PRIMARY KEY, id uuid NOT NULL UNIQUE, client_key bytea UNIQUE,"
     " status bytea NOT NULL, created bigint NOT NULL, ended bigint NOT NULL,"
     " deleted bigint NOT NULL, why bytea NOT NULL, rows bigint NOT NULL, head bytea NOT NULL,"
     " crc bigint NOT NULL, swept bigint NOT NULL, owner bytea NOT NULL);"
     "CREATE INDEX gone_left ON gone(ix) WHERE swept = 0;"
     "CREATE TABLE gone_sessions(number bigserial PRIMARY KEY, id bytea NOT NULL,"
     " last bigint NOT NULL);"
     "CREATE TABLE gaps(kind bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL,"
     " crc bigint NOT NULL, PRIMARY KEY(kind, first));"
     "CREATE TABLE schedules(ix bigint PRIMARY KEY, name bytea NOT NULL UNIQUE,"
     " owner bytea NOT NULL, body_hash bigint NOT NULL, created bigint NOT NULL,"
     " rule bytea NOT NULL, crc bigint NOT NULL, doc_crc bigint NOT NULL, doc bytea NOT NULL);"
     "CREATE TABLE schedule_state(ix bigint PRIMARY KEY, crc bigint NOT NULL,"
     " state bytea NOT NULL);"
     "CREATE TABLE starts(name bytea NOT NULL, place bigint NOT NULL, wall bigint NOT NULL,"
     " PRIMARY KEY(name, place));"
     "CREATE TABLE agents(id bytea PRIMARY KEY, seen bigint NOT NULL, crc bigint NOT NULL,"
     " card bytea NOT NULL);"
     "CREATE INDEX agents_seen ON agents(seen);"},
    /* places: where the shards that the node leads listen, as JSON. A move: which node takes the
     * shard next, while `until` has not passed. */
    {2, FLEET,
     "CREATE TABLE baton.nodes(node bytea PRIMARY KEY, lease_until timestamptz NOT NULL,"
     " draining bool NOT NULL DEFAULT false, places bytea NOT NULL DEFAULT '') WITH (fillfactor = "
     "20);"
     "CREATE TABLE baton.moves(shard int PRIMARY KEY, node bytea NOT NULL, until timestamptz NOT "
     "NULL);"},
    /* tables: to which format these steps were made; format: what a program must know to open a
     * shard. took: the position at the newest take-over, valid for took_epoch. said: the row's
     * version, knows and config are those of the beat with this lease_until. rewinds: what a
     * failover lost. maps: how many shards there were before, and until when. */
    {3, FLEET,
     "ALTER TABLE baton.fleet ADD tables int NOT NULL DEFAULT 2;"
     "ALTER TABLE baton.shards ADD took bigint NOT NULL DEFAULT 0,"
     " ADD took_epoch bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE baton.nodes ADD said timestamptz NOT NULL DEFAULT '-infinity',"
     " ADD version bytea NOT NULL DEFAULT '', ADD knows int NOT NULL DEFAULT 2,"
     " ADD config bytea NOT NULL DEFAULT '';"
     "CREATE TABLE baton.rewinds(shard int NOT NULL, kept bigint NOT NULL, lost bigint NOT NULL,"
     " told bool NOT NULL DEFAULT false, at timestamptz NOT NULL DEFAULT clock_timestamp(),"
     " PRIMARY KEY(shard, lost, kept));"
     "CREATE TABLE baton.maps(shards int PRIMARY KEY, until bigint NOT NULL);"},
};

enum bt_code pg_run(PGconn *conn, const char *sql, int *ret, struct bt_error *err)
{
    PGresult *r = PQexec(conn, sql);
    const ExecStatusType status = PQresultStatus(r);
    enum bt_code code = BT_OK;

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        code =
            err_set(err, BT_IO, "cannot set the journal up: PostgreSQL: %s", PQerrorMessage(conn));
    } else if (ret != NULL) {
        *ret = PQntuples(r) == 1 ? (int)strtol(PQgetvalue(r, 0, 0), NULL, 10) : -1;
    }
    PQclear(r);
    return code;
}

static enum bt_code enter_shard(PGconn *conn, uint32_t shard, bool make, struct bt_error *err)
{
    char sql[SQL_LEN];
    enum bt_code code = BT_OK;

    if (make) {
        (void)snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS baton_s%" PRIu32, shard);
        code = pg_run(conn, sql, NULL, err);
    }
    (void)snprintf(sql, sizeof sql, "SET LOCAL search_path = baton_s%" PRIu32, shard);
    return code == BT_OK ? pg_run(conn, sql, NULL, err) : code;
}

/* The steps of one shard that come after the format. */
static enum bt_code migrate_shard(PGconn *conn, uint32_t shard, int format, struct bt_error *err)
{
    enum bt_code code = enter_shard(conn, shard, format == 0, err);

    for (size_t i = 0; code == BT_OK && i < sizeof MIGRATIONS / sizeof MIGRATIONS[0]; i++) {
        if (MIGRATIONS[i].scope == SHARD && MIGRATIONS[i].format > format) {
            code = pg_run(conn, MIGRATIONS[i].sql, NULL, err);
        }
    }
    return code;
}

static enum bt_code migrate_fleet(PGconn *conn, int format, struct bt_error *err)
{
    int shards = 0;
    enum bt_code code = BT_OK;

    for (size_t i = 0; code == BT_OK && i < sizeof MIGRATIONS / sizeof MIGRATIONS[0]; i++) {
        if (MIGRATIONS[i].scope == FLEET && MIGRATIONS[i].format > format) {
            code = pg_run(conn, MIGRATIONS[i].sql, NULL, err);
        }
    }
    code = code == BT_OK ? pg_run(conn, "SELECT count(*) FROM baton.shards", &shards, err) : code;
    for (int n = 0; code == BT_OK && format < PG_FORMAT && n < shards; n++) {
        code = migrate_shard(conn, (uint32_t)n, format, err);
    }
    return code;
}

/* A blob's id has its shard above SHARD_BLOB_BITS. */
enum bt_code pg_make_shard(PGconn *conn, uint32_t shard, struct bt_error *err)
{
    char sql[SQL_LEN];
    enum bt_code code;

    (void)snprintf(sql, sizeof sql, "INSERT INTO baton.shards(shard) VALUES(%" PRIu32 ")", shard);
    code = pg_run(conn, sql, NULL, err);
    code = code == BT_OK ? migrate_shard(conn, shard, 0, err) : code;
    (void)snprintf(sql, sizeof sql, "UPDATE meta SET value = %" PRIu32 "::bigint << %d",
                   MUTANT(BLOBS_OF_NO_SHARD) ? 0 : shard, SHARD_BLOB_BITS);
    return code == BT_OK ? pg_run(conn, sql, NULL, err) : code;
}

/* An id names its shard, and a key is looked up where its hash says: once there are plans their
 * number changes only by journal_look_grow. */
static enum bt_code make_shards(PGconn *conn, uint32_t want, struct bt_error *err)
{
    int have = 0;
    int led = 0;
    enum bt_code code = pg_run(conn, "SELECT count(*) FROM baton.shards", &have, err);

    if (code == BT_OK) {
        code = pg_run(conn, "SELECT count(*) FROM baton.shards WHERE epoch > 0", &led, err);
    }
    if (code == BT_OK && want != (uint32_t)have && (led > 0 || want < (uint32_t)have)) {
        return err_set(err, BT_CONFLICT,
                       "this fleet has %d shards, not %" PRIu32
                       ": for more of them baton fleet grow --shards N; they never get fewer",
                       have, want);
    }
    for (uint32_t n = (uint32_t)have; code == BT_OK && n < want; n++) {
        code = pg_make_shard(conn, n, err);
    }
    return code;
}

/* To which format the steps were made. Before format 3 nobody wrote it down. */
static enum bt_code find_made(PGconn *conn, int *io, struct bt_error *err)
{
    int known = 0;
    int tables = 0;
    enum bt_code code =
        pg_run(conn,
               "SELECT count(*) FROM pg_attribute WHERE attrelid = "
               "'baton.fleet'::regclass AND attname = 'tables' AND NOT attisdropped",
               &known, err);

    if (code == BT_OK && known > 0) {
        code = pg_run(conn, "SELECT tables FROM baton.fleet", &tables, err);
    }
    *io = tables > *io ? tables : *io;
    return code;
}

enum bt_code pg_migrate_in(PGconn *conn, struct bt_error *err)
{
    char sql[SQL_LEN];
    int format = 0;
    int made = 0;
    enum bt_code code;

    /* Two nodes that begin at once: one makes the tables, the other waits. */
    (void)snprintf(sql, sizeof sql, "SELECT 1 FROM (SELECT pg_advisory_xact_lock(%d)) l", LOCK);
    code = pg_run(conn, sql, NULL, err);
    if (code == BT_OK) {
        code = pg_run(conn,
                      "CREATE SCHEMA IF NOT EXISTS baton;"
                      "CREATE TABLE IF NOT EXISTS baton.fleet(one int PRIMARY KEY DEFAULT 1 CHECK "
                      "(one = 1), format int NOT NULL);"
                      "INSERT INTO baton.fleet(format) VALUES(0) ON CONFLICT DO NOTHING",
                      NULL, err);
    }
    if (code == BT_OK) {
        code = pg_run(conn, "SELECT format FROM baton.fleet FOR UPDATE", &format, err);
    }
    if (code == BT_OK && (format < 0 || format > PG_FORMAT)) {
        code = err_set(err, BT_INVALID,
                       "the journal has format %d, written by a newer Baton; this one knows "
                       "formats up to %d: use the newer program",
                       format, PG_FORMAT);
    }
    made = format;
    code = code == BT_OK ? find_made(conn, &made, err) : code;
    code = code == BT_OK ? migrate_fleet(conn, made, err) : code;
    if (code == BT_OK && made < PG_FORMAT) { /* the format stays for older nodes: pg_finalize */
        (void)snprintf(sql, sizeof sql, "UPDATE baton.fleet SET tables = %d, format = %d",
                       PG_FORMAT, format < ADDS_FROM - 1 ? PG_FORMAT : format);
        code = pg_run(conn, sql, NULL, err);
    }
    return code;
}

enum bt_code pg_migrate(PGconn *conn, struct bt_error *err)
{
    return pg_migrate_to(conn, 0, err);
}

enum bt_code pg_migrate_to(PGconn *conn, uint32_t shards, struct bt_error *err)
{
    enum bt_code code = pg_run(conn, "BEGIN", NULL, err);

    if (code == BT_OK) {
        code = pg_migrate_in(conn, err);
    }
    if (code == BT_OK && shards > 0) {
        code = make_shards(conn, shards, err);
    }
    if (code == BT_OK) {
        return pg_run(conn, "COMMIT", NULL, err);
    }
    PQclear(PQexec(conn, "ROLLBACK"));
    return code;
}
