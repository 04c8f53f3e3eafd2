/* Shared by journal_sqlite.c and sqlite_*.c. */
#ifndef JOURNAL_SQLITE_INTERNAL_H
#define JOURNAL_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "protocol/base/buf.h"
#include "supervisor/journal/journal.h"
#include "supervisor/journal/journal_internal.h"

enum {
    SCHEMA_VERSION = 3,
    APPLICATION_ID = 0x4261746F, /* "Bato" */
    PATH_TEXT_MAX = 4096,
    CHECKPOINT_PAGES = 1000, /* of the log: 4 MB, a pause of some ms; see README */
    /* rows go to the ends of tables; the kernel caches what is read again */
    CACHE_KIB = 2 * 1024,
    WAL_LIMIT_BYTES = 16 * 1024 * 1024
};

/* Columns that statements and the inspection share. */
#define SQL_PLAN_HEAD                                                                              \
    "SELECT p.ix, p.id, p.session, p.client_key, p.body_hash, p.goal, p.created, p.crc, "          \
    "coalesce(e.kind, '') FROM plans p LEFT JOIN errands e ON e.ix = p.ix"
#define SQL_NO_JOB(of) "NOT EXISTS (SELECT 1 FROM errands e WHERE e.ix = " of ".ix)"
#define SQL_SESSION                                                                                \
    "SELECT id, created, updated, messages, summarized, summary, agent_calls, tool_calls, crc "    \
    "FROM sessions"
#define SQL_MESSAGE "SELECT session, n, role, cut, turn, plan, wall, crc, text FROM messages"
#define SQL_TURN                                                                                   \
    "SELECT id, session, client_key, body_hash, asked, answered, started, ended, plan, action, "   \
    "wish, crc FROM turns"

/* SQL(name, text): every prepared statement. */
#define SQLITE_STATEMENTS(SQL)                                                                     \
    SQL(BEGIN, "BEGIN IMMEDIATE")                                                                  \
    SQL(COMMIT, "COMMIT")                                                                          \
    SQL(ROLLBACK, "ROLLBACK")                                                                      \
    SQL(ROW_ADD, "INSERT INTO rows(pos, plan, plan_seq, type, topic, wall, crc, body) "            \
                 "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                         \
    SQL(ROWS, "SELECT pos, plan, plan_seq, type, topic, wall, crc, body FROM rows "                \
              "WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos")                                          \
    /* INDEXED BY: preparing fails when the index does not fit the query (Q9), instead of a full   \
     * scan. */                                                                                    \
    SQL(ROWS_PLAN, "SELECT pos, plan, plan_seq, type, topic, wall, crc, body FROM rows "           \
                   "INDEXED BY rows_plan WHERE plan = ?3 AND plan > 0 AND pos BETWEEN ?1 AND ?2 "  \
                   "ORDER BY pos")                                                                 \
    SQL(ROW_LAST, "SELECT pos, plan, plan_seq, type, topic, wall, crc, body FROM rows "            \
                  "INDEXED BY rows_plan WHERE plan = ?1 AND plan > 0 AND pos <= ?2 "               \
                  "ORDER BY pos DESC")                                                             \
    SQL(BLOB_ADD, "INSERT INTO blobs(id, crc, bytes) VALUES(?1, ?2, ?3)")                          \
    SQL(BLOB_GET, "SELECT crc, bytes FROM blobs WHERE id = ?1")                                    \
    SQL(PLAN_ADD, "INSERT INTO plans(ix, id, session, client_key, body_hash, goal, created, crc, " \
                  "doc_crc, doc) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                 \
    SQL(PLAN_IX_BY_ID, "SELECT ix FROM plans WHERE id = ?1")                                       \
    SQL(PLAN_IX_BY_KEY, "SELECT ix FROM plans WHERE client_key = ?1")                              \
    SQL(PLAN_GET, SQL_PLAN_HEAD " WHERE p.ix = ?1")                                                \
    SQL(JOB_ADD, "INSERT INTO errands(ix, kind) VALUES(?1, ?2)")                                   \
    SQL(PLAN_DOC, "SELECT ix, doc_crc, doc FROM plans WHERE ix = ?1")                              \
    SQL(STATE_PUT, "INSERT OR REPLACE INTO plan_state(ix, status, ended, recoveries, note, crc) "  \
                   "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                               \
    SQL(STATE_GET, "SELECT status, ended, recoveries, note, crc FROM plan_state WHERE ix = ?1")    \
    SQL(STATE_SCAN, "SELECT ix, status, ended, recoveries, note, crc FROM plan_state ORDER BY ix") \
    SQL(IX_ALL, "SELECT s.ix FROM plan_state s WHERE s.ix < ?1 AND " SQL_NO_JOB(                   \
                    "s") " ORDER BY s.ix DESC")                                                    \
    SQL(IX_STATUS, "SELECT s.ix FROM plan_state s INDEXED BY plan_state_status "                   \
                   "WHERE s.ix < ?1 AND s.status = ?2 AND " SQL_NO_JOB("s") " ORDER BY s.ix DESC") \
    SQL(IX_SESSION,                                                                                \
        "SELECT p.ix FROM plans p INDEXED BY plans_session WHERE p.ix < ?1 "                       \
        "AND p.session = ?2 AND p.session <> '' AND " SQL_NO_JOB("p") " ORDER BY p.ix DESC")       \
    SQL(IX_BETWEEN,                                                                                \
        "SELECT p.ix FROM plans p WHERE +p.ix < ?1 AND p.id BETWEEN ?2 AND ?3 AND " SQL_NO_JOB(    \
            "p") " ORDER BY p.id DESC")                                                            \
    SQL(IX_JOBS,                                                                                   \
        "SELECT p.ix FROM plans p INDEXED BY plans_session WHERE p.ix < ?1 "                       \
        "AND p.session = ?2 AND p.session <> '' AND NOT " SQL_NO_JOB("p") " ORDER BY p.ix DESC")   \
    SQL(IX_JOBS_ALL, "SELECT ix FROM errands WHERE ix < ?1 ORDER BY ix DESC")                      \
    SQL(SESSION_PUT, "INSERT OR REPLACE INTO sessions(id, created, updated, messages, "            \
                     "summarized, summary, agent_calls, tool_calls, crc) "                         \
                     "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                 \
    SQL(SESSION_GET, SQL_SESSION " WHERE id = ?1")                                                 \
    SQL(SESSIONS, SQL_SESSION " INDEXED BY sessions_updated ORDER BY updated DESC")                \
    SQL(MESSAGE_ADD,                                                                               \
        "INSERT OR REPLACE INTO messages(session, n, role, cut, turn, plan, wall, crc, text) "     \
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                              \
    SQL(MESSAGES, SQL_MESSAGE " INDEXED BY messages_n WHERE session = ?1 AND n <= ?2 "             \
                              "ORDER BY n DESC")                                                   \
    SQL(TURN_PUT, "INSERT OR REPLACE INTO turns(id, session, client_key, body_hash, asked, "       \
                  "answered, started, ended, plan, action, wish, crc) "                            \
                  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")                     \
    SQL(TURN_GET, SQL_TURN " WHERE id = ?1")                                                       \
    SQL(TURN_KEY, "SELECT id FROM turns INDEXED BY turns_key "                                     \
                  "WHERE session = ?1 AND client_key = ?2 AND client_key <> ''")                   \
    SQL(TURN_BY_KEY, SQL_TURN " INDEXED BY turns_key "                                             \
                              "WHERE session = ?1 AND client_key = ?2 AND client_key <> ''")       \
    SQL(TURN_OF_PLAN, SQL_TURN " INDEXED BY turns_open WHERE plan = ?1 AND ended = 0")             \
    SQL(TURNS_OPEN, SQL_TURN " INDEXED BY turns_open WHERE ended = 0")

enum sql {
#define SQL(name, text) SQL_##name,
    SQLITE_STATEMENTS(SQL)
#undef SQL
        SQL_COUNT
};

/* Counters that a rollback of the batch restores. */
struct sqlite_counters {
    uint64_t plans; /* highest plan number */
    uint64_t blobs; /* highest blob id */
};

struct sqlite_journal {
    struct journal base;
    sqlite3 *db;
    sqlite3_stmt *stmt[SQL_COUNT];
    int lock_fd;
    struct sqlite_counters now;
    struct sqlite_counters committed;
    uint64_t batch_bytes;   /* estimate of what the open batch will write */
    int wal_frames;         /* after the last commit */
    int checkpoint_every;   /* frames */
    int checkpoint_at;      /* the same, or more after a checkpoint that failed */
    uint64_t ballast_bytes; /* of the log, to be allocated in advance; 0 = none */
    uint64_t reserved;      /* of them allocated */
    bool behind;            /* the log could not be copied, because the disk is full */
    bool boot_due;          /* the number of this daemon is not stored yet */
    struct buf plan_text;   /* strings of the last look-up of a plan */
    struct buf turn_text;   /* the same for turns */
    char dir[PATH_TEXT_MAX];
};

static inline struct sqlite_journal *sqlite_of(struct journal *j)
{
    return (struct sqlite_journal *)j;
}

/* ---- sqlite_open.c: files ---- */
/* Makes DIR (0700, parents too) and locks DIR/lock. *ret_fd is -1 on failure. */
enum bt_code sqlite_lock_dir(const char *dir, bool create, int *ret_fd, struct bt_error *err);
/* Checks that DIR/journal.db is a journal of Baton. Without one, makes it when `create`;
 * BT_NOT_FOUND otherwise. */
enum bt_code sqlite_check_file(const char *dir, bool create, struct bt_error *err);
/* Makes the name of a new file or directory survive a power cut. */
enum bt_code sqlite_sync_dir(const char *dir, struct bt_error *err);
/* DIR/name into ret (PATH_TEXT_MAX). */
enum bt_code sqlite_path(const char *dir, const char *name, char *ret, struct bt_error *err);

/* ---- sqlite_schema.c: the open database ---- */
enum bt_code sqlite_connect(const char *path, sqlite3 **ret, struct bt_error *err);
enum bt_code sqlite_pragmas(sqlite3 *db, const struct journal_options *opt, struct bt_error *err);
/* Rejects newer versions, migrates older ones. */
enum bt_code sqlite_migrate(sqlite3 *db, struct bt_error *err);
enum bt_code sqlite_version_check(sqlite3 *db, int *ret_version, struct bt_error *err);
/* Runs an SQL text that returns one number. */
enum bt_code sqlite_number(sqlite3 *db, const char *sql, int64_t *ret, struct bt_error *err);
enum bt_code sqlite_exec(sqlite3 *db, const char *sql, struct bt_error *err);

/* ---- sqlite_space.c: room on the disk (Q13, Q18, G20) ---- */
/* Before the database is opened: the room that the last daemon kept becomes the log's. */
void sqlite_space_take(struct sqlite_journal *s);
/* Allocates the log; then the first check. */
void sqlite_space_open(struct sqlite_journal *s);
/* After the database was closed with an empty log: keeps the log's room for the next start. */
void sqlite_space_park(const struct sqlite_journal *s);
/* Sets storage_low and storage_full; called before a commit, and by the port while storage is low.
 * Between batches it copies a log that had no room. */
void sqlite_space_check(struct journal *j);
/* Free bytes on the disk; UINT64_MAX when that is not known. */
uint64_t sqlite_space_room(const struct sqlite_journal *s);

/* ---- journal_sqlite.c ---- */
/* Fills *err from the connection: SQLITE_FULL is BT_UNAVAILABLE, SQLITE_NOMEM BT_NOMEM, the rest
 * BT_IO. */
enum bt_code sqlite_error(sqlite3 *db, const char *what, struct bt_error *err);
/* The same for a failed write: rolls the batch back. BT_UNAVAILABLE only when that has succeeded
 * (Q2). */
enum bt_code sqlite_write_error(struct sqlite_journal *s, const char *what, struct bt_error *err);
/* Copies the log into the file, not while a batch is open. False: not all of it (Q3). */
bool sqlite_checkpoint(struct sqlite_journal *s);
/* Begins a batch when none is open; adds bytes to its estimate. */
enum bt_code sqlite_batch(struct sqlite_journal *s, size_t bytes, struct bt_error *err);
/* Steps a writing statement to its end and resets it. */
enum bt_code sqlite_run(struct sqlite_journal *s, enum sql which, const char *what,
                        struct bt_error *err);
void sqlite_bind_str(sqlite3_stmt *st, int at, struct str v);
struct str sqlite_col_str(sqlite3_stmt *st, int at);
static inline uint64_t sqlite_col_u64(sqlite3_stmt *st, int at)
{
    return (uint64_t)sqlite3_column_int64(st, at);
}

/* ---- sqlite_rows.c ---- */
enum bt_code sqlite_append(struct journal *j, uint64_t pos, const struct journal_row *row,
                           struct bt_error *err);
enum bt_code sqlite_blob_add(struct journal *j, const void *bytes, size_t len, uint64_t *ret_id,
                             struct bt_error *err);
enum bt_code sqlite_blob_get(struct journal *j, uint64_t id, struct buf *out, struct bt_error *err);
enum bt_code sqlite_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit,
                           journal_row_fn fn, void *self, struct bt_error *err);
enum bt_code sqlite_last_row(struct journal *j, uint64_t plan_ix, bool only_public,
                             journal_row_fn fn, void *self, struct bt_error *err);
enum bt_code sqlite_replay(struct journal *j, uint64_t plan_ix, struct journal_place *place,
                           journal_row_fn fn, void *self, struct bt_error *err);
/* Reads the current row of a ROWS statement and verifies its checksum; BT_IO names the row. */
enum bt_code sqlite_row_read(sqlite3_stmt *st, struct journal_row *ret, struct bt_error *err);

/* ---- sqlite_copy.c ---- */
/* Before a migration: DIR/journal.db.v<version> has the journal as it is. BT_UNAVAILABLE: no room.
 */
enum bt_code sqlite_keep_copy(struct sqlite_journal *s, int version, struct bt_error *err);
/* Removes copies that are older than 30 days. */
void sqlite_drop_copies(const struct sqlite_journal *s);

/* ---- sqlite_scrub.c ---- */
enum bt_code sqlite_scrub(struct journal *j, struct journal_scrub *io, uint64_t max_bytes,
                          journal_problem_fn fn, void *self, struct bt_error *err);
/* The same for a database of that version. */
void sqlite_scrub_db(sqlite3 *db, int version, struct journal_scrub *io, uint64_t max_bytes,
                     journal_problem_fn fn, void *self);
/* The first key over `after` and at most `last` from which the statement, whose first parameter is
 * the key to begin with, can be stepped; last + 1 when there is none. For tables with pages that
 * cannot be read. */
uint64_t sqlite_next_readable(sqlite3_stmt *st, uint64_t after, uint64_t last);

/* ---- sqlite_plans.c ---- */
enum bt_code sqlite_plan_add(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                             struct bt_error *err);
enum bt_code sqlite_plan_status(struct journal *j, uint64_t ix, struct str status, msec ended,
                                struct bt_error *err);
enum bt_code sqlite_plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err);
enum bt_code sqlite_plan_by_key(struct journal *j, struct str key, struct journal_plan *ret,
                                struct bt_error *err);
enum bt_code sqlite_plans(struct journal *j, struct str status, struct str session,
                          uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                          struct bt_error *err);
enum bt_code sqlite_plans_between(struct journal *j, struct uuid first, struct uuid last,
                                  uint32_t limit, journal_plan_fn fn, void *self,
                                  struct bt_error *err);
enum bt_code sqlite_jobs(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                         journal_plan_fn fn, void *self, struct bt_error *err);
/* Copies strings and doc into text (cleared first). BT_NOT_FOUND; BT_IO when a checksum is
 * wrong. */
enum bt_code sqlite_plan_load(struct sqlite_journal *s, uint64_t ix, bool with_doc,
                              struct buf *text, struct journal_plan *ret, struct bt_error *err);

/* Reads the plan, or its document, from the statement's current row and verifies the checksum.
 * Leaves the state out. */
enum bt_code sqlite_plan_read(sqlite3_stmt *st, struct journal_plan *ret, struct bt_error *err);
enum bt_code sqlite_doc_read(sqlite3_stmt *st, struct journal_plan *ret, struct bt_error *err);

/* ---- sqlite_recovery.c ---- */
enum bt_code sqlite_plans_open(struct journal *j, journal_plan_fn fn, void *self,
                               struct bt_error *err);
enum bt_code sqlite_quarantine(struct journal *j, uint64_t ix, struct str why,
                               struct bt_error *err);

/* ---- sqlite_sessions.c, sqlite_turns.c ---- */
enum bt_code sqlite_session(struct journal *j, struct str id, struct journal_session *ret,
                            struct bt_error *err);
enum bt_code sqlite_session_put(struct journal *j, const struct journal_session *p,
                                struct bt_error *err);
enum bt_code sqlite_sessions(struct journal *j, uint32_t limit, journal_session_fn fn, void *self,
                             struct bt_error *err);
enum bt_code sqlite_message_add(struct journal *j, struct str session,
                                const struct journal_message *m, struct bt_error *err);
enum bt_code sqlite_messages(struct journal *j, struct str session, uint64_t last,
                             journal_message_fn fn, void *self, struct bt_error *err);
enum bt_code sqlite_turn_put(struct journal *j, const struct journal_turn *t, struct bt_error *err);
enum bt_code sqlite_turn(struct journal *j, struct uuid id, struct journal_turn *ret,
                         struct bt_error *err);
enum bt_code sqlite_turn_key(struct journal *j, struct str session, struct str key,
                             struct uuid *ret, struct bt_error *err);
enum bt_code sqlite_turn_by_key(struct journal *j, struct str session, struct str key,
                                struct journal_turn *ret, struct bt_error *err);
enum bt_code sqlite_turn_of_plan(struct journal *j, struct uuid plan, struct journal_turn *ret,
                                 struct bt_error *err);
enum bt_code sqlite_turns_open(struct journal *j, journal_turn_fn fn, void *self,
                               struct bt_error *err);
/* Reads the statement's current row; strings point into it. BT_IO when the checksum is wrong. */
enum bt_code sqlite_session_read(sqlite3_stmt *st, struct journal_session *ret,
                                 struct bt_error *err);
enum bt_code sqlite_message_read(sqlite3_stmt *st, struct journal_message *ret,
                                 struct bt_error *err);
enum bt_code sqlite_turn_read(sqlite3_stmt *st, struct journal_turn *ret, struct bt_error *err);
void sqlite_bind_uuid(sqlite3_stmt *st, int at, const struct uuid *v);
struct uuid sqlite_col_uuid(sqlite3_stmt *st, int at);

/* The mutable part of a plan. */
struct plan_state {
    struct str status;
    msec ended;
    uint32_t recoveries; /* written by earlier versions; not read any more */
    struct str note;     /* why it is in quarantine */
};
enum bt_code sqlite_state_put(struct sqlite_journal *s, uint64_t ix, const struct plan_state *st,
                              struct bt_error *err);
/* BT_NOT_FOUND; BT_IO when the checksum is wrong. Strings are valid until sqlite_state_done resets
 * the statement. */
enum bt_code sqlite_state_get(struct sqlite_journal *s, uint64_t ix, struct plan_state *ret,
                              struct bt_error *err);
void sqlite_state_done(struct sqlite_journal *s);
/* Reads the columns from `at` on; BT_IO when the checksum is wrong. */
enum bt_code sqlite_state_read(sqlite3_stmt *st, int at, uint64_t ix, struct plan_state *ret,
                               struct bt_error *err);
#endif
