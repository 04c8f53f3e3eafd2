/* The journal on PostgreSQL: connection, take-over, what is stored, end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/journal/postgres/postgres.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { SQL_LEN = 1024, KEEPALIVES = 3 };

static void on_notice(void *self, const char *text)
{
    (void)self;
    log_debug("journal.postgres", "%s", text);
}

/* libpq's text has several lines; an error is one. */
static enum bt_code refused(PGconn *conn, struct bt_error *err)
{
    const char *text = conn != NULL ? PQerrorMessage(conn) : "out of memory";
    char line[BT_ERROR_MSG_MAX / 2];
    size_t n = 0;

    for (; *text != 0 && n < sizeof line - 1; text++) {
        if (*text > ' ' || (n > 0 && line[n - 1] != ' ')) {
            line[n++] = *text > ' ' ? *text : ' ';
        }
    }
    while (n > 0 && line[n - 1] == ' ') {
        n--;
    }
    line[n] = 0;
    return err_set(err, BT_UNAVAILABLE, "cannot connect to PostgreSQL: %s", line);
}

/* The address wins over what comes before it: it may name several servers, and how to choose. */
enum bt_code pg_connect(const char *url, const char *name, uint32_t lease_ms, PGconn **ret,
                        struct bt_error *err)
{
    char half[24];
    char seconds[24];
    const char *const keys[] = {"target_session_attrs", "dbname",          "application_name",
                                "tcp_user_timeout",     "keepalives_idle", "keepalives_interval",
                                "keepalives_count",     "connect_timeout", NULL};
    const char *const values[] = {"read-write", url, name, half, seconds, seconds, "2", "5", NULL};

    (void)snprintf(half, sizeof half, "%" PRIu32, lease_ms / 2);
    (void)snprintf(seconds, sizeof seconds, "%" PRIu32, lease_ms / 1000 / KEEPALIVES + 1);
    *ret = PQconnectdbParams(keys, values, 1);
    if (*ret == NULL || PQstatus(*ret) != CONNECTION_OK) {
        return refused(*ret, err);
    }
    (void)PQsetNoticeProcessor(*ret, on_notice, NULL);
    return BT_OK;
}

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
static enum bt_code settings(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];
    PGresult *r;
    enum bt_code code = BT_OK;

    (void)snprintf(
        sql, sizeof sql,
        "SET search_path = baton_s%" PRIu32 "; SET synchronous_commit = on; SET jit = off; "
        "SET enable_seqscan = off; SET statement_timeout = %" PRIu32 "; SET lock_timeout = %" PRIu32
        "; SET idle_in_transaction_session_timeout = %" PRIu32
        "; SET client_connection_check_interval = 1000",
        p->shard, p->lease_ms / 2, p->lease_ms / 3, p->lease_ms);
    r = PQexec(p->conn, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK) {
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

    if (p->conn != NULL && !j->dead) {
        if (p->in_transaction && (!pg_send_text(p, "ROLLBACK") || !pg_sync(p))) {
            j->dead = true;
        }
        if (!j->dead) {
            pg_release(p);
        }
    }
    pg_statements_done(p);
    PQclear(p->result);
    PQfinish(p->conn);
    buf_done(&p->queue);
    free(p->writes);
    sql_texts_done(&p->sql);
    free(p);
}

/* The next write shows whether there is room again. */
static void pg_space(struct journal *j)
{
    j->storage_low = false;
}

static const struct journal_ops PG_OPS = {
    SQL_OPS,         .close = pg_close, .commit = pg_commit, .space = pg_space,
    .size = pg_size, .keep = pg_keep,   .hold = pg_hold,
};

static enum bt_code open_server(struct pg_journal *p, const char *url, struct bt_error *err)
{
    char name[PG_NODE_MAX + 16];
    enum bt_code code;

    (void)snprintf(name, sizeof name, "baton/%s/%" PRIu32, p->node, p->shard);
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
    return code == BT_OK ? load(p, err) : code;
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
    if (p == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the journal");
    }
    p->sql.base.ops = &PG_OPS;
    p->sql.engine = &PG_ENGINE;
    p->shard = opt->shard;
    p->replicated = opt->durability == DURABILITY_REPLICATED;
    p->lease_ms = opt->lease_ms == 0                ? PG_LEASE_MS
                  : opt->lease_ms < PG_LEASE_MIN_MS ? PG_LEASE_MIN_MS
                                                    : opt->lease_ms;
    if (opt->node != NULL && opt->node[0] != 0) {
        (void)snprintf(p->node, sizeof p->node, "%s", opt->node);
    } else if (gethostname(p->node, sizeof p->node - 1) != 0) {
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
