/* The database: connection, pragmas, schema and its versions. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/journal/log/sqlite_gather.h"
#include "supervisor/journal/sqlite_internal.h"

enum { ADOPT_BATCH = 100 };

/*
 * MIGRATIONS[v] brings a journal from version v to v + 1. Never change a released entry: add one,
 * raise SCHEMA_VERSION, and keep a golden journal of the old version in tests/edge/journal.
 */
static const char *const MIGRATIONS[SCHEMA_VERSION] = {
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('boot', 0);"
    /* pos = seq << 20 | k; the body is the event as it is published. */
    "CREATE TABLE rows(pos INTEGER PRIMARY KEY, plan INTEGER NOT NULL, plan_seq INTEGER NOT NULL,"
    " type TEXT NOT NULL, topic TEXT NOT NULL, wall INTEGER NOT NULL, crc INTEGER NOT NULL,"
    " body BLOB NOT NULL);"
    "CREATE INDEX rows_plan ON rows(plan) WHERE plan > 0;"
    "CREATE TABLE blobs(id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes BLOB NOT NULL);"
    /* The immutable part of a plan, and its state: small, so that a start can read all states. */
    "CREATE TABLE plans(ix INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, session TEXT NOT NULL,"
    " client_key TEXT UNIQUE, body_hash INTEGER NOT NULL, goal TEXT NOT NULL,"
    " created INTEGER NOT NULL, crc INTEGER NOT NULL, doc_crc INTEGER NOT NULL,"
    " doc BLOB NOT NULL);"
    "CREATE INDEX plans_session ON plans(session) WHERE session <> '';"
    "CREATE TABLE plan_state(ix INTEGER PRIMARY KEY, status TEXT NOT NULL, ended INTEGER NOT NULL,"
    " recoveries INTEGER NOT NULL, note TEXT NOT NULL, crc INTEGER NOT NULL);"
    "CREATE INDEX plan_state_status ON plan_state(status);",
    /* 2: the same tables. Documents and rows may have gates, approvals and revisions. An older
     * program would run such plans without them: it must reject the journal. */
    "",
    /* 3: jobs (a plan's row with an entry in a table of their own; its checksum covers the kind),
     * sessions. An older program would list jobs as plans and never answer an open turn. */
    "CREATE TABLE errands(ix INTEGER PRIMARY KEY, kind TEXT NOT NULL);"
    "CREATE TABLE sessions(id TEXT PRIMARY KEY, created INTEGER NOT NULL,"
    " updated INTEGER NOT NULL, messages INTEGER NOT NULL, summarized INTEGER NOT NULL,"
    " summary INTEGER NOT NULL, agent_calls INTEGER NOT NULL, tool_calls INTEGER NOT NULL,"
    " crc INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX sessions_updated ON sessions(updated);"
    "CREATE TABLE messages(session TEXT NOT NULL, n INTEGER NOT NULL, role TEXT NOT NULL,"
    " cut INTEGER NOT NULL, turn BLOB NOT NULL, plan BLOB NOT NULL, wall INTEGER NOT NULL,"
    " crc INTEGER NOT NULL, text TEXT NOT NULL);"
    "CREATE UNIQUE INDEX messages_n ON messages(session, n);"
    "CREATE TABLE turns(id BLOB PRIMARY KEY, session TEXT NOT NULL, client_key TEXT NOT NULL,"
    " body_hash INTEGER NOT NULL, asked INTEGER NOT NULL, answered INTEGER NOT NULL,"
    " started INTEGER NOT NULL, ended INTEGER NOT NULL, plan BLOB NOT NULL, action TEXT NOT NULL,"
    " wish INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX turns_key ON turns(session, client_key) WHERE client_key <> '';"
    "CREATE INDEX turns_open ON turns(plan) WHERE ended = 0;",
    /* 4: deletion (tombstones, the ranges of numbers that are gone, which plan names which blob),
     * and the chain of hashes of each plan. `adopt`: plans of older versions, whose rows say so
     * only when they are read (sqlite_adopt). An older program would take what was deleted for
     * damage. */
    "CREATE TABLE blob_refs(plan INTEGER NOT NULL, blob INTEGER NOT NULL,"
    " PRIMARY KEY(plan, blob)) WITHOUT ROWID;"
    "CREATE INDEX blob_refs_blob ON blob_refs(blob);"
    "CREATE TABLE chains(ix INTEGER PRIMARY KEY, rows INTEGER NOT NULL, head TEXT NOT NULL,"
    " crc INTEGER NOT NULL);"
    "CREATE TABLE gone(ix INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, client_key TEXT UNIQUE,"
    " status TEXT NOT NULL, created INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " deleted INTEGER NOT NULL, why TEXT NOT NULL, rows INTEGER NOT NULL, head TEXT NOT NULL,"
    " crc INTEGER NOT NULL, swept INTEGER NOT NULL);"
    "CREATE INDEX gone_left ON gone(ix) WHERE swept = 0;"
    "CREATE TABLE gone_sessions(number INTEGER PRIMARY KEY, id TEXT NOT NULL,"
    " last INTEGER NOT NULL);"
    "CREATE TABLE gaps(kind INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,"
    " crc INTEGER NOT NULL, PRIMARY KEY(kind, first)) WITHOUT ROWID;"
    "CREATE INDEX plan_state_ended ON plan_state(ended) WHERE ended > 0;"
    "CREATE INDEX rows_no_plan ON rows(wall) WHERE plan = 0;"
    "CREATE INDEX turns_session ON turns(session);"
    "CREATE INDEX turns_wish ON turns(wish) WHERE wish > 0;"
    "CREATE INDEX sessions_summary ON sessions(summary) WHERE summary > 0;"
    "INSERT INTO meta SELECT 'adopt', coalesce(max(ix), 0) FROM plans;"
    "INSERT INTO meta VALUES('adopted', 0);"
    "INSERT INTO meta VALUES('blobs', 0);",
    /* 5: whose a plan and a session is. No entry, or an empty one: of the token. An older program
     * would show them to everybody. */
    "CREATE TABLE owners(ix INTEGER PRIMARY KEY, owner TEXT NOT NULL);"
    "ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE gone ADD COLUMN owner TEXT NOT NULL DEFAULT '';",
    /* 6: schedules: what was put, and where each one is. An older program would let them rest. */
    "CREATE TABLE schedules(ix INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " owner TEXT NOT NULL, body_hash INTEGER NOT NULL, created INTEGER NOT NULL,"
    " rule BLOB NOT NULL, crc INTEGER NOT NULL, doc_crc INTEGER NOT NULL, doc BLOB NOT NULL);"
    "CREATE TABLE schedule_state(ix INTEGER PRIMARY KEY, crc INTEGER NOT NULL,"
    " state BLOB NOT NULL);",
    /* 7: what outlives a restart beside plans: the last starts of each rate, a ring of places per
     * name. An older program would start too much, and would let two plans have one concurrency
     * key. */
    "CREATE TABLE starts(name TEXT NOT NULL, place INTEGER NOT NULL, wall INTEGER NOT NULL,"
    " PRIMARY KEY(name, place)) WITHOUT ROWID;",
    /* 8: the agents that registered, with their cards. An older program would keep cards of agents
     * that an operator had forgotten, and plans may have waits for agents of their own. */
    "CREATE TABLE agents(id TEXT PRIMARY KEY, seen INTEGER NOT NULL, crc INTEGER NOT NULL,"
    " card BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX agents_seen ON agents(seen);",
};

enum bt_code sqlite_exec(sqlite3 *db, const char *sql, struct bt_error *err)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return sqlite_error(db, "cannot set the journal up", err);
    }
    return BT_OK;
}

enum bt_code sqlite_number(sqlite3 *db, const char *sql, int64_t *ret, struct bt_error *err)
{
    sqlite3_stmt *st = NULL;
    enum bt_code code = BT_OK;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    *ret = 0;
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc == SQLITE_ROW) {
        *ret = sqlite3_column_int64(st, 0);
    } else if (rc == SQLITE_DONE) {
        code = err_set(err, BT_IO, "the journal is damaged: no answer to \"%s\"", sql);
    } else {
        code = sqlite_error(db, "cannot read the journal", err);
    }
    sqlite3_finalize(st);
    return code;
}

enum bt_code sqlite_connect(const char *path, sqlite3 **ret, struct bt_error *err)
{
    enum bt_code code;
    int rc = sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                             sqlite_gather_vfs());

    if (rc != SQLITE_OK) {
        if (*ret == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for opening %s", path);
        }
        return sqlite_error(*ret, "cannot open the journal", err);
    }
    (void)sqlite3_extended_result_codes(*ret, 1);
    (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    /* EXCLUSIVE before the first read: the index of the log is then in the heap, not in shared
     * memory (Q1). */
    code = sqlite_exec(*ret,
                       "PRAGMA locking_mode = EXCLUSIVE; PRAGMA mmap_size = 0;"
                       "PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;"
                       "PRAGMA wal_autocheckpoint = 0;",
                       err);
    return code;
}

enum bt_code sqlite_pragmas(sqlite3 *db, const struct journal_options *opt, struct bt_error *err)
{
    char sql[256];
    uint32_t cache = opt->cache_kib != 0 ? opt->cache_kib : CACHE_KIB;

    (void)snprintf(sql, sizeof sql,
                   "PRAGMA journal_mode = WAL; " /* a person may have changed it (Q5) */
                   "PRAGMA synchronous = %s; PRAGMA cache_size = -%" PRIu32
                   "; PRAGMA journal_size_limit = %d;",
                   opt->durability == DURABILITY_PROCESS ? "NORMAL" : "FULL", cache,
                   opt->ballast_bytes > WAL_LIMIT_BYTES && opt->ballast_bytes < INT_MAX
                       ? (int)opt->ballast_bytes
                       : WAL_LIMIT_BYTES);
    return sqlite_exec(db, sql, err);
}

enum bt_code sqlite_version_check(sqlite3 *db, int *ret_version, struct bt_error *err)
{
    int64_t version = 0;
    int64_t id = 0;
    enum bt_code code = sqlite_number(db, "PRAGMA user_version", &version, err);

    if (code == BT_OK) {
        code = sqlite_number(db, "PRAGMA application_id", &id, err);
    }
    if (code != BT_OK) {
        return code;
    }
    if (version > SCHEMA_VERSION) {
        return err_set(err, BT_INVALID,
                       "the journal has schema version %" PRId64
                       ", written by a newer Baton; this one knows versions up to %d: use the "
                       "newer program",
                       version, SCHEMA_VERSION);
    }
    if (version < 0 || (version > 0 && id != APPLICATION_ID)) {
        return err_set(err, BT_INVALID, "the journal's version %" PRId64 " is not one of Baton",
                       version);
    }
    *ret_version = (int)version;
    return BT_OK;
}

enum bt_code sqlite_migrate(sqlite3 *db, struct bt_error *err)
{
    char sql[128];
    int version = 0;
    enum bt_code code = sqlite_version_check(db, &version, err);

    if (code != BT_OK || version == SCHEMA_VERSION) {
        return code;
    }
    /* A new file: WAL is written into its header and stays (Q5). */
    code = sqlite_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;",
                       err);
    for (; code == BT_OK && version < SCHEMA_VERSION; version++) {
        code = sqlite_exec(db, MIGRATIONS[version], err);
    }
    if (code == BT_OK) {
        (void)snprintf(sql, sizeof sql,
                       "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
                       APPLICATION_ID, SCHEMA_VERSION);
        code = sqlite_exec(db, sql, err);
    }
    return code;
}

/* ---- journals of versions before 4 ---- */

struct adoption {
    struct sqlite_journal *s;
    uint32_t (*blobs_of)(const void *body, size_t len, uint64_t *ret, uint32_t max);
    enum bt_code code;
    struct bt_error *err;
};

static bool adopt_row(const struct journal_row *row, void *self)
{
    struct adoption *a = self;
    struct journal_row named = *row;
    uint64_t blobs[JOURNAL_ROW_BLOBS];

    named.blobs = blobs;
    named.blobs_n =
        a->blobs_of != NULL ? a->blobs_of(row->body, row->body_len, blobs, JOURNAL_ROW_BLOBS) : 0;
    a->code = sql_chain_row(&a->s->sql, &named, a->err);
    return a->code == BT_OK;
}

static enum bt_code adopt_plan(struct adoption *a, uint64_t ix, struct bt_error *err)
{
    struct journal_plan p;
    struct bt_error why;
    enum bt_code code = sql_plan_load(&a->s->sql, ix, true, &a->s->sql.plan_text, &p, &why);

    a->code = BT_OK;
    if (code == BT_OK) {
        code = sql_chain_begin(&a->s->sql, ix, &p, &why);
    }
    if (code == BT_OK) {
        struct journal_place place = {0};
        code = sql_replay(&a->s->sql.base, ix, &place, adopt_row, a, &why);
    }
    if (code == BT_IO || code == BT_NOT_FOUND) {
        log_warn("journal.not_chained", "number=%" PRIu64 " why=\"%s\"", ix, why.msg);
        code = BT_OK; /* a damaged plan is found elsewhere */
    }
    if (code != BT_OK) {
        return err_set(err, code, "%s", why.msg);
    }
    return a->code;
}

/* A full disk: the next start goes on. */
static enum bt_code adopt_later(struct sqlite_journal *s)
{
    s->sql.adopt_due = true;
    s->sql.base.storage_low = s->sql.base.storage_full = true;
    log_warn("journal.not_chained", "why=\"no room; the next start goes on\"");
    return BT_OK;
}

enum bt_code sqlite_adopt(struct sqlite_journal *s, const struct journal_options *opt,
                          struct bt_error *err)
{
    struct adoption a = {.s = s, .blobs_of = opt->blobs_of, .err = err};
    int64_t to = 0;
    int64_t at = 0;
    char sql[96];
    enum bt_code code =
        sqlite_number(s->db, "SELECT value FROM meta WHERE key = 'adopt'", &to, err);

    if (code == BT_OK) {
        code = sqlite_number(s->db, "SELECT value FROM meta WHERE key = 'adopted'", &at, err);
    }
    if (code == BT_OK && at < to) {
        log_info("journal.upgraded", "plans=%" PRId64 " are being hashed", to - at);
    }
    if (code == BT_OK && at < to && s->sql.base.storage_full) {
        return adopt_later(s);
    }
    while (code == BT_OK && at < to) {
        code = sqlite_batch(s, 0, err);
        s->sql.base.dirty = code == BT_OK;
        for (int i = 0; i < ADOPT_BATCH && at < to && code == BT_OK; i++) {
            code = adopt_plan(&a, (uint64_t)++at, err);
        }
        (void)snprintf(sql, sizeof sql, "UPDATE meta SET value = %" PRId64 " WHERE key = 'adopted'",
                       at);
        if (code == BT_OK) {
            code = sqlite_exec(s->db, sql, err);
            code = code == BT_OK ? code : sqlite_write_error(s, "cannot note what is hashed", err);
        }
        if (code == BT_OK) {
            code = journal_commit(&s->sql.base, err);
        }
    }
    return code == BT_UNAVAILABLE ? adopt_later(s) : code;
}
