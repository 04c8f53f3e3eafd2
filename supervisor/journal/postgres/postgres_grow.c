/* More shards, and programs of several versions: what the tables have may grow while older programs
 * work, what a program must know is raised when all do. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/shard.h"
#include "supervisor/core/mutant.h"
#include "supervisor/journal/port.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { SQL_LEN = 2048, KEY_MAX = 512, NAMES_MAX = 300, LOCK_MS = 1000 };

/* ---- the format ---- */

/* Who lives and does not know this program's format. */
static const char WHO_DOES_NOT[] =
    "SELECT coalesce(string_agg(w, ', '), '') FROM (SELECT encode(n.node, 'escape') || ' (' || "
    "CASE WHEN said = lease_until THEN encode(version, 'escape') ELSE 'an older program' END || "
    "')' AS w FROM baton.nodes n WHERE (n.lease_until > clock_timestamp() OR EXISTS (SELECT 1 FROM "
    "baton.shards s WHERE s.owner = n.node AND s.lease_until > clock_timestamp())) AND CASE WHEN "
    "said = lease_until THEN knows ELSE 2 END < %d UNION SELECT encode(s.owner, 'escape') || ' (an "
    "older program)' FROM baton.shards s WHERE s.lease_until > clock_timestamp() AND s.owner <> '' "
    "AND NOT EXISTS (SELECT 1 FROM baton.nodes n WHERE n.node = s.owner) UNION SELECT 'a standby "
    "or a command of an older program (process ' || pid || ' of the server)' FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = 'baton-look') q";

static enum bt_code check_all_know(PGconn *conn, struct bt_error *err)
{
    char sql[SQL_LEN];
    PGresult *r;
    enum bt_code code = BT_OK;

    (void)snprintf(sql, sizeof sql, WHO_DOES_NOT, PG_FORMAT);
    r = PQexec(conn, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        code = err_set(err, BT_IO, "cannot read the nodes: PostgreSQL: %s", PQerrorMessage(conn));
    } else if (PQgetvalue(r, 0, 0)[0] != 0 && !MUTANT(FINALIZED_FOR_SOME)) {
        code = err_set(err, BT_CONFLICT,
                       "format %d is not known to all: %.*s; stop them, or start them with this "
                       "version, and ask again",
                       PG_FORMAT, NAMES_MAX, PQgetvalue(r, 0, 0));
    }
    PQclear(r);
    return code;
}

static enum bt_code end(PGconn *conn, enum bt_code code, struct bt_error *err)
{
    if (code == BT_OK) {
        return pg_run(conn, "COMMIT", NULL, err);
    }
    PQclear(PQexec(conn, "ROLLBACK"));
    return code;
}

/* A program that opens a shard meanwhile waits for the lock of fleet, and then reads the format. */
enum bt_code journal_look_finalize(struct journal_look *l, struct bt_error *err)
{
    char sql[SQL_LEN];
    enum bt_code code = pg_run(l->conn, "BEGIN", NULL, err);

    code = code == BT_OK ? pg_migrate_in(l->conn, err) : code;
    code = code == BT_OK ? check_all_know(l->conn, err) : code;
    (void)snprintf(sql, sizeof sql, "UPDATE baton.fleet SET format = %d", PG_FORMAT);
    code = code == BT_OK ? pg_run(l->conn, sql, NULL, err) : code;
    return end(l->conn, code, err);
}

enum bt_code pg_check_format(struct pg_journal *p, struct bt_error *err)
{
    int64_t format = 0;
    enum bt_code code = BT_OK;

    if (!pg_send_text(p, "SELECT format::int8 FROM baton.fleet") || !pg_sync(p)) {
        return err_set(err, BT_UNAVAILABLE, "PostgreSQL: %s", p->message);
    }
    if (PQntuples(p->result) == 1) {
        uint64_t be;
        memcpy(&be, PQgetvalue(p->result, 0, 0), sizeof be);
        format = (int64_t)be64toh(be);
    }
    if (format > PG_FORMAT) {
        code = err_set(err, BT_IO,
                       "the journal has format %" PRId64 " now, and this Baton knows formats up to "
                       "%d: use the newer program",
                       format, PG_FORMAT);
    }
    return code;
}

/* ---- who this is ---- */

static void put_hex(char *to, size_t cap, const char *bytes, size_t len)
{
    size_t n = (size_t)snprintf(to, cap, "'\\x");

    for (size_t i = 0; i < len && n + 3 < cap; i++) {
        n += (size_t)snprintf(to + n, cap - n, "%02x", (unsigned char)bytes[i]);
    }
    (void)snprintf(to + n, cap - n, "'::bytea");
}

/* Of a fleet of one shard; of several the node beats. It leads: the lease in its row is over. */
static enum bt_code introduce(struct pg_journal *p, struct bt_error *err)
{
    char node[3 * PG_NODE_MAX];
    char config[3 * JOURNAL_CONFIG_MAX];
    char version[3 * JOURNAL_VERSION_MAX];
    char sql[SQL_LEN];
    int64_t n;

    put_hex(node, sizeof node, p->node, strlen(p->node));
    put_hex(config, sizeof config, p->config, strlen(p->config));
    put_hex(version, sizeof version, BATON_VERSION, strlen(BATON_VERSION));
    (void)snprintf(
        sql, sizeof sql,
        "WITH t AS MATERIALIZED (SELECT clock_timestamp() AS at), i AS (INSERT INTO "
        "baton.nodes(node, lease_until, said, version, knows, config) SELECT %s, at, at, %s, %d, "
        "%s FROM t ON CONFLICT (node) DO UPDATE SET lease_until = excluded.lease_until, said = "
        "excluded.said, version = excluded.version, knows = excluded.knows, config = "
        "excluded.config RETURNING 1) SELECT count(*) FROM i",
        node, version, PG_FORMAT, config);
    return pg_number(p, sql, &n, err);
}

/* It is an event then, too: supervisor_started has it as its reason. */
enum bt_code pg_introduce(struct pg_journal *p, struct bt_error *err)
{
    char before[3 * PG_NODE_MAX];
    char config[3 * JOURNAL_CONFIG_MAX];
    char sql[SQL_LEN];
    int64_t differs = 0;
    enum bt_code code = p->there > 1 ? BT_OK : introduce(p, err);

    if (code != BT_OK || p->config[0] == 0 || p->before[0] == 0 ||
        strcmp(p->before, p->node) == 0) {
        return code;
    }
    put_hex(before, sizeof before, p->before, strlen(p->before));
    put_hex(config, sizeof config, p->config, strlen(p->config));
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM baton.nodes WHERE node = %s AND config <> '' AND config "
                   "<> %s",
                   before, config);
    code = pg_number(p, sql, &differs, err);
    if (code == BT_OK && differs > 0) {
        (void)snprintf(p->sql.base.note, sizeof p->sql.base.note,
                       "the configuration of this node (%s) is another one than that of %s, which "
                       "led before",
                       p->node, p->before);
    }
    return code;
}

/* ---- more shards ---- */

static enum bt_code check_growth(PGconn *conn, uint32_t want, int *ret_have, struct bt_error *err)
{
    int format = 0;
    int led = 0;
    int grown = 0;
    enum bt_code code = pg_run(conn, "SELECT format FROM baton.fleet", &format, err);

    code = code == BT_OK ? pg_run(conn, "SELECT count(*) FROM baton.shards", ret_have, err) : code;
    code = code == BT_OK
               ? pg_run(conn, "SELECT count(*) FROM baton.shards WHERE epoch > 0", &led, err)
               : code;
    code = code == BT_OK ? pg_run(conn, "SELECT count(*) FROM baton.maps", &grown, err) : code;
    if (code != BT_OK) {
        return code;
    }
    if (want <= (uint32_t)*ret_have) {
        return err_set(err, BT_INVALID,
                       "this fleet has %d shards: it grows to more, and never gets fewer",
                       *ret_have);
    }
    if (led == 0) {
        return err_set(err, BT_CONFLICT,
                       "nobody has led this fleet yet: baton fleet init --shards %" PRIu32, want);
    }
    if (format < PG_FORMAT) {
        return err_set(err, BT_CONFLICT,
                       "the fleet has format %d, whose programs do not know that a fleet grows: "
                       "baton fleet finalize first",
                       format);
    }
    if (grown >= JOURNAL_MAPS_MAX) {
        return err_set(err, BT_CONFLICT,
                       "this fleet has grown %d times, and keys are looked up by each number: that "
                       "is the most",
                       grown);
    }
    return BT_OK;
}

/* Nothing that was decided with the older number can be stored after this: each leader is fenced,
 * as by a move, and its own node may take the shard again. */
static enum bt_code fence_all(struct journal_look *l, struct bt_error *err)
{
    char sql[SQL_LEN];

    (void)snprintf(sql, sizeof sql,
                   "WITH old AS (SELECT shard FROM baton.shards WHERE lease_until > "
                   "clock_timestamp()), s AS (UPDATE baton.shards SET epoch = epoch + %d, took = "
                   "pos, took_epoch = epoch + 1, lease_until = clock_timestamp() WHERE epoch > 0 "
                   "RETURNING shard, owner) INSERT INTO baton.moves SELECT shard, owner, "
                   "clock_timestamp() + interval '%" PRIu32
                   " milliseconds' FROM s JOIN old USING (shard) ON CONFLICT (shard) DO UPDATE SET "
                   "node = excluded.node, until = excluded.until",
                   MUTANT(GROWN_UNFENCED) ? 0 : 1, 2 * l->lease_ms);
    return pg_run(l->conn, sql, NULL, err);
}

enum bt_code journal_look_grow(struct journal_look *l, uint32_t shards, struct bt_error *err)
{
    char sql[SQL_LEN];
    int have = 0;
    enum bt_code code = pg_run(l->conn, "BEGIN", NULL, err);

    (void)snprintf(sql, sizeof sql, "SET LOCAL lock_timeout = %d", LOCK_MS);
    code = code == BT_OK ? pg_run(l->conn, sql, NULL, err) : code;
    code = code == BT_OK ? pg_migrate_in(l->conn, err) : code;
    code = code == BT_OK ? check_growth(l->conn, shards, &have, err) : code;
    code = code == BT_OK ? fence_all(l, err) : code;
    for (uint32_t n = (uint32_t)have; code == BT_OK && n < shards; n++) {
        code = pg_make_shard(l->conn, n, err);
    }
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO baton.maps(shards, until) VALUES(%d, (extract(epoch FROM "
                   "clock_timestamp()) * 1000)::int8)",
                   have);
    code = code == BT_OK ? pg_run(l->conn, sql, NULL, err) : code;
    return end(l->conn, code, err);
}

/* Whether the shard has anything of before that moment. */
static const char IS_LEFT[] =
    " OR EXISTS (SELECT 1 FROM baton_s%u.plans p WHERE p.ix = (SELECT min(ix) FROM "
    "baton_s%u.plans) "
    "AND p.created < m.until) OR EXISTS (SELECT 1 FROM baton_s%u.gone g WHERE g.ix = (SELECT "
    "min(ix) FROM baton_s%u.gone) AND g.created < m.until) OR EXISTS (SELECT 1 FROM "
    "baton_s%u.sessions WHERE created < m.until) OR EXISTS (SELECT 1 FROM baton_s%u.schedules "
    "WHERE "
    "created < m.until)";

/* The older numbers that still count: those from whose time something is left. */
static enum bt_code find_maps(struct pg_journal *p, uint32_t shards, struct bt_error *err)
{
    struct buf sql;
    int64_t found = shards;
    enum bt_code code = BT_OK;

    buf_init(&sql, 256 * 1024);
    while (code == BT_OK && found > 0 && p->sql.base.maps_n < JOURNAL_MAPS_MAX) {
        buf_clear(&sql);
        buf_printf(&sql,
                   "SELECT coalesce(max(m.shards), 0)::int8 FROM baton.maps m WHERE m.shards < "
                   "%" PRId64 " AND (false",
                   found);
        for (uint32_t i = 0; i < shards; i++) {
            buf_printf(&sql, IS_LEFT, i, i, i, i, i, i);
        }
        buf_add_byte(&sql, ')');
        code = buf_check(&sql, err);
        code = code == BT_OK ? pg_number(p, buf_cstr(&sql), &found, err) : code;
        if (code == BT_OK && found > 0) {
            p->sql.base.maps[p->sql.base.maps_n++] = (uint32_t)found;
        }
    }
    buf_done(&sql);
    return code;
}

/* While the fleet had one shard it may have got plans whose ids name no shard, or another one: by
 * an import. Byte 8 and the high half of byte 9 are the 20th to 22nd character of an id. */
static enum bt_code find_strays(struct pg_journal *p, struct bt_error *err)
{
    static const char sql[] =
        "SELECT count(*) FROM (SELECT 1 FROM baton_s0.plans WHERE substr(id::text, 20, 3) !~ "
        "'^[048c]00$' UNION ALL SELECT 1 FROM baton_s0.gone WHERE substr(id::text, 20, 3) !~ "
        "'^[048c]00$' LIMIT 1) q";
    const uint32_t n = p->sql.base.maps_n;
    int64_t found = 0;
    enum bt_code code = BT_OK;

    if (n > 0 && p->sql.base.maps[n - 1] == 1) {
        code = pg_number(p, sql, &found, err);
    }
    p->sql.base.strays = found > 0;
    return code;
}

enum bt_code pg_find_maps(struct pg_journal *p, struct bt_error *err)
{
    int64_t shards = 0;
    int64_t maps = 0;
    enum bt_code code = pg_number(p, "SELECT count(*) FROM baton.shards", &shards, err);

    p->there = (uint32_t)shards;
    if (code == BT_OK && p->shards > 0 && (int64_t)p->shards != shards) {
        return err_set(err, BT_IO,
                       "the fleet has grown: it has %" PRId64 " shards, and this "
                       "process was started for %" PRIu32,
                       shards, p->shards);
    }
    code = code == BT_OK ? pg_number(p, "SELECT count(*) FROM baton.maps", &maps, err) : code;
    code = code == BT_OK && maps > 0 ? find_maps(p, (uint32_t)shards, err) : code;
    return code == BT_OK ? find_strays(p, err) : code;
}

static void key_text(uint32_t shard, enum journal_key kind, const char *key, char *ret, size_t cap)
{
    switch (kind) {
    case JOURNAL_KEY_SESSION:
        (void)snprintf(ret, cap,
                       "SELECT count(*) FROM (SELECT 1 FROM baton_s%" PRIu32
                       ".sessions WHERE id = %s UNION ALL SELECT 1 FROM baton_s%" PRIu32
                       ".plans WHERE session = %s AND session <> '' LIMIT 1) q",
                       shard, key, shard, key);
        break;
    case JOURNAL_KEY_CLIENT:
        (void)snprintf(ret, cap,
                       "SELECT count(*) FROM (SELECT 1 FROM baton_s%" PRIu32
                       ".plans WHERE client_key = %s UNION ALL SELECT 1 FROM baton_s%" PRIu32
                       ".gone WHERE client_key = %s) q",
                       shard, key, shard, key);
        break;
    case JOURNAL_KEY_RUNNING:
        (void)snprintf(ret, cap,
                       "SELECT count(*) FROM (SELECT 1 FROM baton_s%" PRIu32
                       ".plan_state t JOIN baton_s%" PRIu32
                       ".plans p USING (ix) WHERE t.status IN ('pending', 'running', 'waiting') "
                       "AND position(%s IN p.doc) > 0 LIMIT 1) q",
                       shard, shard, key);
        break;
    case JOURNAL_KEY_PLAN:
        (void)snprintf(ret, cap,
                       "SELECT count(*) FROM (SELECT 1 FROM baton_s%" PRIu32
                       ".plans WHERE id = encode(%s, 'hex')::uuid UNION ALL SELECT 1 FROM "
                       "baton_s%" PRIu32 ".gone WHERE id = encode(%s, 'hex')::uuid) q",
                       shard, key, shard, key);
        break;
    case JOURNAL_KEY_NAME:
    default:
        (void)snprintf(ret, cap,
                       "SELECT count(*) FROM baton_s%" PRIu32 ".schedules WHERE name = %s", shard,
                       key);
    }
}

enum bt_code pg_key_is_at(struct journal *j, uint32_t shard, enum journal_key kind, struct str key,
                          bool *ret, struct bt_error *err)
{
    char hex[2 * KEY_MAX + 16];
    char sql[3 * SQL_LEN];
    int64_t found = 0;
    enum bt_code code;

    *ret = false;
    if (key.len == 0 || key.len > KEY_MAX) {
        return BT_OK;
    }
    put_hex(hex, sizeof hex, key.ptr, key.len);
    key_text(shard, kind, hex, sql, sizeof sql);
    code = pg_number(pg_of(j), sql, &found, err);
    *ret = found > 0;
    return code;
}
