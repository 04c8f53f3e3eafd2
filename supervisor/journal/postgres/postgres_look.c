/* Who owns the journal, read by those who do not; and its tables, made before there is an owner. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/journal/owner.h"
#include "supervisor/journal/port.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { SQL_LEN = 1024, DECIMAL = 10 };

enum bt_code journal_look_open(const char *url, uint32_t lease_ms, uint32_t shard,
                               struct journal_look **ret, struct bt_error *err)
{
    struct journal_look *l = NULL;
    enum bt_code code;

    *ret = NULL;
    if (!journal_is_shared(url)) {
        return err_set(err, BT_INVALID,
                       "a journal that daemons share is at postgresql://HOST/DATABASE");
    }
    l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a look at the journal");
    }
    l->shard = shard;
    l->lease_ms = lease_ms == 0 ? PG_LEASE_MS : lease_ms;
    code = pg_connect(url, PG_LOOK_NAME, lease_ms == 0 ? PG_LEASE_MS : lease_ms, &l->conn, err);
    if (code != BT_OK) {
        journal_look_close(l);
        return code;
    }
    *ret = l;
    return BT_OK;
}

void journal_look_close(struct journal_look *l)
{
    if (l != NULL) {
        PQfinish(l->conn);
        free(l);
    }
}

/* NULL: *err. */
PGresult *pg_look_query(struct journal_look *l, const char *sql, struct bt_error *err)
{
    PGresult *r = PQexec(l->conn, sql);

    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        (void)err_set(err, PQstatus(l->conn) == CONNECTION_BAD ? BT_UNAVAILABLE : BT_IO,
                      "cannot read who owns the journal: PostgreSQL: %s", PQerrorMessage(l->conn));
        PQclear(r);
        return NULL;
    }
    return r;
}

static int64_t number_of(const PGresult *r, int column)
{
    return strtoll(PQgetvalue(r, 0, column), NULL, DECIMAL);
}

static enum bt_code look_at_server(struct journal_look *l, struct journal_owner *ret,
                                   bool *ret_there, struct bt_error *err)
{
    PGresult *r = pg_look_query(l,
                                "SELECT current_setting('server_version'), "
                                "current_setting('synchronous_standby_names'), "
                                "to_regclass('baton.fleet') IS NOT NULL AND "
                                "to_regclass('baton.shards') IS NOT NULL, "
                                "to_regclass('baton.rewinds') IS NOT NULL",
                                err);

    if (r == NULL) {
        return err->code;
    }
    (void)snprintf(ret->server, sizeof ret->server, "%s", PQgetvalue(r, 0, 0));
    (void)snprintf(ret->standbys, sizeof ret->standbys, "%s", PQgetvalue(r, 0, 1));
    *ret_there = PQgetvalue(r, 0, 2)[0] == 't';
    ret->tables = PQgetvalue(r, 0, 3)[0] == 't' ? PG_FORMAT : 0;
    PQclear(r);
    return BT_OK;
}

enum bt_code journal_look(struct journal_look *l, struct journal_owner *ret, struct bt_error *err)
{
    char sql[SQL_LEN];
    bool there = false;
    enum bt_code code;
    PGresult *r;

    *ret = (struct journal_owner){.format_known = PG_FORMAT};
    code = look_at_server(l, ret, &there, err);
    if (code != BT_OK || !there) {
        return code;
    }
    /* convert_from would refuse a name that is no UTF-8. An owner from before all time: nobody. */
    (void)snprintf(sql, sizeof sql,
                   "SELECT f.format, encode(s.owner, 'escape'), s.epoch, s.pos, CASE WHEN "
                   "s.lease_until = '-infinity' OR s.lease_until > clock_timestamp() + interval "
                   "'60 seconds' THEN 0 ELSE (extract(epoch FROM s.lease_until - "
                   "clock_timestamp()) * 1000)::bigint END, EXISTS (SELECT 1 FROM "
                   "pg_stat_activity a WHERE a.pid = s.backend AND a.application_name LIKE "
                   "'baton/%%'), (SELECT count(*) FROM baton.shards) FROM baton.fleet f, "
                   "baton.shards s WHERE s.shard = %" PRIu32,
                   l->shard);
    r = pg_look_query(l, sql, err);
    if (r == NULL) {
        return err->code;
    }
    if (PQntuples(r) == 1) {
        ret->format = (int)number_of(r, 0);
        (void)snprintf(ret->node, sizeof ret->node, "%s", PQgetvalue(r, 0, 1));
        ret->epoch = (uint64_t)number_of(r, 2);
        ret->seq = pos_seq((uint64_t)number_of(r, 3));
        ret->lease_left_ms = number_of(r, 4);
        ret->connected = PQgetvalue(r, 0, 5)[0] == 't';
        ret->shards = (uint32_t)number_of(r, 6);
        ret->tables = ret->tables > ret->format ? ret->tables : ret->format;
    }
    PQclear(r);
    return BT_OK;
}

enum bt_code journal_look_init(struct journal_look *l, uint32_t shards, struct bt_error *err)
{
    return pg_migrate_to(l->conn, shards, err);
}

enum bt_code journal_look_expand(struct journal_look *l, struct bt_error *err)
{
    struct journal_owner now;
    enum bt_code code = journal_look(l, &now, err);

    return code == BT_OK && now.format > 0 && now.tables < PG_FORMAT ? pg_migrate(l->conn, err)
                                                                     : code;
}
