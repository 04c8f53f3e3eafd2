/* The journal on PostgreSQL: connection, take-over, what is stored, end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/journal/postgres/postgres.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { SQL_LEN = 1024 };

/* With `replicated` a commit returns when another server has it, too. */
static enum bt_code check_replicated(struct pg_journal *p, struct bt_error *err)
{
    PGresult *r;
    bool none;

    if (!p->replicated) {
        return BT_OK;
    }
    r = PQexec(p->conn, "SHOW synchronous_standby_names");
    none = PQresultStatus(r) != PGRES_TUPLES_OK || PQgetvalue(r, 0, 0)[0] == 0;
    PQclear(r);
    return none ? err_set(err, BT_INVALID, "%s", PG_NOT_REPLICATED) : BT_OK;
}

/* enable_seqscan: a plan that was made when a table was empty must not read all of it later. */
void pg_settings_text(const struct pg_journal *p, char *ret, size_t cap)
{
    (void)snprintf(ret, cap,
                   "SELECT set_config(n, v, false) FROM (VALUES ('search_path', 'baton_s%" PRIu32
                   "'), "
                   "('synchronous_commit', 'on'), ('jit', 'off'), ('enable_seqscan', 'off'), "
                   "('statement_timeout', '%" PRIu32 "'), ('lock_timeout', '%" PRIu32
                   "'), ('idle_in_transaction_session_timeout', '%" PRIu32
                   "'), ('client_connection_check_interval', '1000')) AS s(n, v)",
                   p->shard, p->lease_ms / 2, p->lease_ms / 3, p->lease_ms);
}

static enum bt_code settings(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];
    PGresult *r;
    enum bt_code code = BT_OK;

    pg_settings_text(p, sql, sizeof sql);
    r = PQexec(p->conn, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        code =
            err_set(err, BT_UNAVAILABLE, "cannot set PostgreSQL up: %s", PQerrorMessage(p->conn));
    }
    PQclear(r);
    return code;
}

/* What is stored, read after the take-over: nobody else can change it now. */
static enum bt_code load(struct pg_journal *p, struct bt_error *err)
{
    static const char *const MAXIMA[] = {
        ("SELECT greatest((SELECT coalesce(max(ix), 0) FROM plans),"
         " (SELECT coalesce(max(ix), 0) FROM plan_state),"
         " (SELECT coalesce(max(ix), 0) FROM gone))"),
        ("SELECT greatest((SELECT coalesce(max(id), 0) FROM blobs),"
         " (SELECT value FROM meta WHERE key = 'blobs'))"),
        "SELECT count(*) FROM gone",
        "SELECT coalesce(max(pos), 0) FROM rows",
    };
    int64_t v[4] = {0};
    uint64_t plans = 0;
    enum bt_code code = BT_OK;

    for (int i = 0; i < 4 && code == BT_OK; i++) {
        code = pg_number(p, MAXIMA[i], &v[i], err);
    }
    if (code == BT_OK && (uint64_t)v[3] > p->sql.base.pos) {
        code = err_set(err, BT_IO, "the journal is damaged: it has rows after its last position");
    }
    if (code == BT_OK) {
        code = sql_gaps_top(&p->sql, GAP_PLAN, &plans, err);
    }
    p->sql.now.plans = plans > (uint64_t)v[0] ? plans : (uint64_t)v[0];
    p->sql.now.blobs = (uint64_t)v[1];
    p->sql.now.gone = (uint64_t)v[2];
    p->sql.committed = p->sql.now;
    return code;
}

static void pg_close(struct journal *j)
{
    struct pg_journal *p = pg_of(j);

    p->rides = false;
    if (p->conn != NULL && !j->dead) {
        if (p->in_transaction && (!pg_send_text(p, "ROLLBACK") || !pg_sync(p))) {
            j->dead = true;
        }
        if (!j->dead) {
            pg_release(p);
        }
    }
    pg_statements_done(p);
    pg_ahead(&p->sql, NULL, 0);
    PQclear(p->result);
    PQfinish(p->conn);
    buf_done(&p->queue);
    free(p->writes);
    free(p->url);
    sql_texts_done(&p->sql);
    free(p);
}

/* The next write shows whether there is room again. */
static void pg_space(struct journal *j)
{
    j->storage_low = false;
}

static const struct journal_ops PG_OPS = {
    SQL_OPS,
    .close = pg_close,
    .commit = pg_commit,
    .space = pg_space,
    .size = pg_size,
    .keep = pg_keep,
    .hold = pg_hold,
    .rewound_told = pg_rewound_told,
    .parted = pg_parted,
    .key_is_at = pg_key_is_at,
};

static enum bt_code open_server(struct pg_journal *p, const char *url, struct bt_error *err)
{
    char name[PG_NODE_MAX + 16];
    enum bt_code code;

    pg_name(p, name, sizeof name);
    code = pg_connect(url, name, p->lease_ms, &p->conn, err);
    if (code == BT_OK) {
        code = check_replicated(p, err);
    }
    if (code == BT_OK) {
        code = pg_migrate(p->conn, err);
    }
    if (code == BT_OK) {
        code = settings(p, err);
    }
    if (code == BT_OK && (PQsetnonblocking(p->conn, 1) != 0 || PQenterPipelineMode(p->conn) != 1)) {
        code = err_set(err, BT_IO, "PostgreSQL: no pipeline: %s", PQerrorMessage(p->conn));
    }
    if (code == BT_OK) {
        code = pg_fence_prepare(p, err);
    }
    if (code == BT_OK) {
        code = pg_take(p, err);
    }
    if (code == BT_OK) {
        code = pg_statements_prepare(p, err);
    }
    code = code == BT_OK ? load(p, err) : code;
    code = code == BT_OK ? pg_find_rewound(p, err) : code;
    code = code == BT_OK ? pg_find_maps(p, err) : code;
    code = code == BT_OK ? pg_introduce(p, err) : code;
    p->rides = code == BT_OK;
    return code;
}

enum bt_code journal_open_postgres(const char *url, const struct journal_options *opt,
                                   struct journal **ret, struct bt_error *err)
{
    struct pg_journal *p;
    enum bt_code code;

    *ret = NULL;
    if (opt->durability == DURABILITY_PROCESS) {
        return err_set(err, BT_INVALID,
                       "durability \"process\" is not possible with PostgreSQL: a crash of the "
                       "server would take back what was acknowledged; set \"replicated\" or "
                       "\"power\"");
    }
    p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->url = strdup(url);
    }
    if (p == NULL || p->url == NULL) {
        free(p);
        return err_set(err, BT_NOMEM, "out of memory for the journal");
    }
    p->sql.base.ops = &PG_OPS;
    p->sql.engine = &PG_ENGINE;
    p->shard = opt->shard;
    p->shards = opt->shards;
    (void)snprintf(p->config, sizeof p->config, "%s", opt->config != NULL ? opt->config : "");
    p->replicated = opt->durability == DURABILITY_REPLICATED;
    p->lease_ms = opt->lease_ms == 0                ? PG_LEASE_MS
                  : opt->lease_ms < PG_LEASE_MIN_MS ? PG_LEASE_MIN_MS
                                                    : opt->lease_ms;
    if (opt->node != NULL && opt->node[0] != 0) {
        (void)snprintf(p->node, sizeof p->node, "%s", opt->node);
    } else if (gethostname(p->node, sizeof p->node) != 0) {
        (void)snprintf(p->node, sizeof p->node, "unknown");
    }
    buf_init(&p->queue, PG_QUEUE_MAX);
    sql_texts_init(&p->sql);
    pg_statements_init(p);
    code = open_server(p, url, err);
    if (code == BT_IO && p->lost) { /* nothing was decided yet: it may be tried again */
        struct bt_error why = *err;
        code = err_set(err, BT_UNAVAILABLE, "%s", why.msg);
    }
    if (code != BT_OK) {
        if (code != BT_CONFLICT) {
            p->sql.base.dead = true;
        }
        pg_close(&p->sql.base);
        return code;
    }
    *ret = &p->sql.base;
    return BT_OK;
}
