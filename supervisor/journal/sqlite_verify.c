/* Reads a whole journal, checksums and chains, for `baton verify`. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

enum { PROBLEMS_SHOWN = 50, BLOBS_MAX = 32 * 1024 * 1024, URI_MAX = 3 * PATH_TEXT_MAX + 64 };

struct verification {
    sqlite3 *db;
    uint32_t (*blobs_of)(const void *body, size_t len, uint64_t *ret, uint32_t max);
    void (*see)(const void *bytes, size_t len, void *self);
    void *self;
    struct buf *report;
    struct bt_error first;
    uint64_t problems;
    struct stmt rows, blob, chain, doc;
    struct artifact_digest *root;
    uint64_t plans, n_rows, gone;
};

static void problem(struct verification *v, const char *fmt, ...) BT_PRINTF(2, 3);
static void problem(struct verification *v, const char *fmt, ...)
{
    char text[400];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (v->problems++ == 0) {
        (void)err_set(&v->first, BT_IO, "%s", text);
    }
    if (v->problems <= PROBLEMS_SHOWN) {
        buf_printf(v->report, "altered: %s\n", text);
    }
}

/* ---- opening ---- */

enum bt_code sqlite_open_copy(const char *path, sqlite3 **ret, struct bt_error *err)
{
    static const char hex[] = "0123456789ABCDEF";
    char uri[URI_MAX];
    size_t n = 0;
    int version;
    enum bt_code code = sqlite_check_header(path, err);

    *ret = NULL;
    if (code == BT_OK) {
        (void)snprintf(uri, sizeof uri, "%s-wal", path);
        if (access(uri, F_OK) == 0) {
            code = err_set(err, BT_INVALID,
                           "%s is a journal in use, with a log beside it; baton backup makes a "
                           "copy of it",
                           path);
        }
    }
    if (code != BT_OK) {
        return code;
    }
    n = (size_t)snprintf(uri, sizeof uri, "file:");
    for (const char *p = path; *p != 0 && n + 32 < sizeof uri; p++) {
        const unsigned char c = (unsigned char)*p;
        if (strchr("%?#", c) != NULL || c < 0x20) {
            uri[n++] = '%';
            uri[n++] = hex[c >> 4];
            uri[n++] = hex[c & 15];
        } else {
            uri[n++] = (char)c;
        }
    }
    (void)snprintf(uri + n, sizeof uri - n, "?immutable=1");
    if (sqlite3_open_v2(uri, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        return err_set(err, BT_IO, "cannot open %s: %s", path,
                       *ret != NULL ? sqlite3_errmsg(*ret) : "out of memory");
    }
    (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    code = sqlite_version_check(*ret, &version, err);
    if (code == BT_OK && version < SCHEMA_VERSION) {
        code = err_set(err, BT_INVALID,
                       "%s has schema version %d, which has no hashes; start a daemon on it once",
                       path, version);
    }
    return code;
}

static struct stmt prepare(struct verification *v, const char *sql)
{
    sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v2(v->db, sql, -1, &st, NULL) != SQLITE_OK) {
        problem(v, "%s", sqlite3_errmsg(v->db));
    }
    return sqlite_stmt(st);
}

/* ---- one plan ---- */

/* The hash of a blob as the chain has it. */
static void hash_blob(struct verification *v, uint64_t id, char ret[CHAIN_HEAD_LEN + 1])
{
    ret[0] = 0;
    stmt_bind_i64(&v->blob, 1, (int64_t)id);
    if (stmt_step(&v->blob) == STMT_ROW) {
        const struct str bytes = stmt_col_blob(&v->blob, 1);
        if (sql_col_u64(&v->blob, 0) != crc32c_bytes(crc32c_u64(0, id), bytes.ptr, bytes.len)) {
            problem(v, "blob %" PRIu64 ": its checksum is wrong", id);
        } else if (v->see != NULL && bytes.len > 0) {
            v->see(bytes.ptr, bytes.len, v->self);
        }
        (void)!chain_blob(bytes.ptr, bytes.len, ret, NULL);
    } else {
        problem(v, "blob %" PRIu64 " is missing", id);
    }
    stmt_reset(&v->blob);
}

/* Computes the chain of a plan from what is stored. */
static void compute(struct verification *v, struct journal_plan *p, struct sql_chain *ret)
{
    uint64_t blobs[JOURNAL_ROW_BLOBS];
    char hashes[JOURNAL_ROW_BLOBS][CHAIN_HEAD_LEN + 1];
    struct bt_error err;
    uint64_t plan_seq = 0;

    *ret = (struct sql_chain){.ix = p->ix};
    if (chain_begin(p, ret->head, &err) != BT_OK) {
        problem(v, "%s", err.msg);
    }
    stmt_bind_i64(&v->rows, 1, (int64_t)p->ix);
    while (stmt_step(&v->rows) == STMT_ROW) {
        struct journal_row row;
        if (sql_row_read(&v->rows, &row, &err) != BT_OK) {
            problem(v, "%s", err.msg);
        }
        if (row.is_public && row.plan_seq != ++plan_seq) {
            problem(v, "plan number %" PRIu64 ": event %" PRIu64 " of it is missing", p->ix,
                    plan_seq);
            plan_seq = row.plan_seq;
        }
        row.blobs = blobs;
        row.blobs_n = v->blobs_of(row.body, row.body_len, blobs, JOURNAL_ROW_BLOBS);
        for (uint32_t i = 0; i < row.blobs_n; i++) {
            hash_blob(v, blobs[i], hashes[i]);
        }
        if (chain_link(ret->head, &row, hashes, &err) != BT_OK) {
            problem(v, "%s", err.msg);
        }
        ret->rows++;
        v->n_rows++;
    }
    stmt_reset(&v->rows);
}

static void add_root(struct verification *v, uint64_t ix, const char *head)
{
    char line[CHAIN_HEAD_LEN + 32];
    int n = snprintf(line, sizeof line, "%" PRIu64 " %s\n", ix, head);

    artifact_digest_add(v->root, line, (size_t)n);
}

static void verify_plan(struct verification *v, struct stmt *st)
{
    char id[UUID_TEXT_LEN + 1];
    struct journal_plan p = {.ix = 0};
    struct sql_chain stored;
    struct sql_chain now;
    struct bt_error err;

    if (sql_plan_read(st, &p, &err) != BT_OK) {
        problem(v, "%s", err.msg);
    }
    stmt_bind_i64(&v->doc, 1, (int64_t)p.ix);
    if (stmt_step(&v->doc) != STMT_ROW) {
        problem(v, "the document of plan number %" PRIu64 " is missing", p.ix);
    } else if (sql_doc_read(&v->doc, &p, &err) != BT_OK) {
        problem(v, "%s", err.msg);
    }
    compute(v, &p, &now);
    stmt_reset(&v->doc);
    uuid_format(p.plan_id, id);
    stmt_bind_i64(&v->chain, 1, (int64_t)p.ix);
    if (stmt_step(&v->chain) != STMT_ROW || !sql_chain_read(&v->chain, &stored)) {
        problem(v, "plan %s: its hash is missing or damaged", id);
    } else if (stored.rows != now.rows) {
        problem(v, "plan %s: %" PRIu64 " rows were written, %" PRIu64 " are there", id, stored.rows,
                now.rows);
    } else if (strcmp(stored.head, now.head) != 0) {
        problem(v, "plan %s: its rows are not those that were written", id);
    }
    stmt_reset(&v->chain);
    add_root(v, p.ix, now.head);
    v->plans++;
}

/* ---- all ---- */

static void each(struct verification *v, const char *sql,
                 void (*one)(struct verification *v, struct stmt *st))
{
    struct stmt st = prepare(v, sql);
    int rc = STMT_DONE;

    while (st.at != NULL && (rc = stmt_step(&st)) == STMT_ROW) {
        one(v, &st);
    }
    if (rc != STMT_DONE) {
        problem(v, "%s", sqlite3_errmsg(v->db));
    }
    (void)sqlite3_finalize(st.at);
}

static void verify_quick(struct verification *v, struct stmt *st)
{
    struct str text = sql_col_str(st, 0);
    if (!str_is(text, "ok")) {
        problem(v, "%.*s", STR_ARG(text));
    }
}

static void verify_gone(struct verification *v, struct stmt *st)
{
    struct journal_gone g;
    char head[CHAIN_HEAD_LEN + 1];

    if (!sql_gone_read(st, &g)) {
        problem(v, "the record of the deleted plan number %" PRIu64 " is damaged", g.ix);
    }
    (void)snprintf(head, sizeof head, "%.*s", STR_ARG(g.head));
    add_root(v, g.ix, head);
    v->gone++;
}

static void verify_missing(struct verification *v, struct stmt *st)
{
    problem(v, "events %lld to %lld are missing and were not deleted",
            (long long)sql_col_u64(st, 0), (long long)sql_col_u64(st, 1));
}

static void verify_lost_plan(struct verification *v, struct stmt *st)
{
    problem(v, "plan number %lld has rows but no record, and was not deleted",
            (long long)sql_col_u64(st, 0));
}

static void verify_free_row(struct verification *v, struct stmt *st)
{
    struct journal_row row;
    struct bt_error err;

    if (sql_row_read(st, &row, &err) != BT_OK) {
        problem(v, "%s", err.msg);
    }
    v->n_rows++;
}

/* Numbers of public rows that are there or in a range that was deleted, without a hole. */
#define SQL_HOLES                                                                                  \
    "WITH known(first, last) AS (SELECT first, last FROM gaps WHERE kind = 0 UNION ALL "           \
    "SELECT pos >> 20, pos >> 20 FROM rows WHERE pos & 1048575 = 0), "                             \
    "sorted(first, before) AS (SELECT first, coalesce(lag(last) OVER (ORDER BY first), 0) "        \
    "FROM known) SELECT before + 1, first - 1 FROM sorted WHERE first > before + 1 LIMIT 50"
#define SQL_LOST_PLANS                                                                             \
    "SELECT ix FROM chains WHERE ix NOT IN (SELECT ix FROM plans) AND ix NOT IN "                  \
    "(SELECT ix FROM gone) AND NOT EXISTS (SELECT 1 FROM gaps g WHERE g.kind = 1 AND "             \
    "chains.ix BETWEEN g.first AND g.last) LIMIT 50"

static enum bt_code verify_db(struct verification *v, struct bt_error *err)
{
    char root[ARTIFACT_SHA256_LEN + 1];

    v->root = artifact_digest_new();
    if (v->root == NULL) {
        return err_set(err, BT_NOMEM, "out of memory");
    }
    v->rows = prepare(v, "SELECT pos, plan, plan_seq, type, topic, wall, crc, body FROM rows "
                         "INDEXED BY rows_plan WHERE plan = ?1 AND plan > 0 ORDER BY pos");
    v->blob = prepare(v, "SELECT crc, bytes FROM blobs WHERE id = ?1");
    v->chain = prepare(v, SQL_CHAIN " WHERE ix = ?1");
    v->doc = prepare(v, "SELECT ix, doc_crc, doc FROM plans WHERE ix = ?1");
    if (v->problems == 0) {
        each(v, "PRAGMA quick_check(20)", verify_quick);
        each(v, SQL_PLAN_HEAD " ORDER BY p.ix", verify_plan);
        each(v, SQL_GONE " ORDER BY ix", verify_gone);
        each(v,
             "SELECT pos, plan, plan_seq, type, topic, wall, crc, body FROM rows "
             "INDEXED BY rows_no_plan WHERE plan = 0",
             verify_free_row);
        each(v, SQL_HOLES, verify_missing);
        each(v, SQL_LOST_PLANS, verify_lost_plan);
    }
    (void)sqlite3_finalize(v->rows.at);
    (void)sqlite3_finalize(v->blob.at);
    (void)sqlite3_finalize(v->chain.at);
    (void)sqlite3_finalize(v->doc.at);
    artifact_digest_end(v->root, root);
    artifact_digest_free(v->root);
    buf_printf(v->report,
               "%" PRIu64 " plan%s, %" PRIu64 " row%s and %" PRIu64
               " deleted plan%s verified\nroot %s\n",
               v->plans, v->plans == 1 ? "" : "s", v->n_rows, v->n_rows == 1 ? "" : "s", v->gone,
               v->gone == 1 ? "" : "s", root);
    if (v->problems > 0) {
        return err_set(err, BT_IO, "%" PRIu64 " things are not as they were written, first: %.300s",
                       v->problems, v->first.msg);
    }
    return buf_check(v->report, err);
}

enum bt_code journal_verify(const char *path,
                            uint32_t (*blobs_of)(const void *body, size_t len, uint64_t *ret,
                                                 uint32_t max),
                            void (*see)(const void *bytes, size_t len, void *self), void *self,
                            struct buf *report, struct bt_error *err)
{
    struct verification v = {.blobs_of = blobs_of, .see = see, .self = self, .report = report};
    enum bt_code code = sqlite_open_copy(path, &v.db, err);

    if (code == BT_OK) {
        code = verify_db(&v, err);
    }
    (void)sqlite3_close(v.db);
    return code;
}
