/* Shared by the stores in SQL: the statements, and what sql_*.c make of their rows. */
#ifndef JOURNAL_SQL_H
#define JOURNAL_SQL_H

#include "protocol/base/buf.h"
#include "supervisor/journal/journal.h"
#include "supervisor/journal/port.h"
#include "supervisor/journal/statement.h"

enum { OWNER_MAX = 64 /* bytes of a credential's id */ };

/* Columns that statements and the inspection share. */
#define SQL_PLAN_HEAD                                                                              \
    "SELECT p.ix, p.id, p.session, p.client_key, p.body_hash, p.goal, p.created, p.crc, "          \
    "coalesce(e.kind, ''), coalesce(o.owner, '') FROM plans p "                                    \
    "LEFT JOIN errands e ON e.ix = p.ix LEFT JOIN owners o ON o.ix = p.ix"
#define SQL_NO_JOB(of) "NOT EXISTS (SELECT 1 FROM errands e WHERE e.ix = " of ".ix)"
#define SQL_SESSION                                                                                \
    "SELECT id, created, updated, messages, summarized, summary, agent_calls, tool_calls, crc, "   \
    "owner FROM sessions"
#define SQL_MESSAGE "SELECT session, n, role, cut, turn, plan, wall, crc, text FROM messages"
#define SQL_TURN                                                                                   \
    "SELECT id, session, client_key, body_hash, asked, answered, started, ended, plan, action, "   \
    "wish, crc FROM turns"

#define SQL_GONE                                                                                   \
    "SELECT ix, id, client_key, status, created, ended, deleted, why, rows, head, crc, owner "     \
    "FROM gone"
#define SQL_CHAIN "SELECT ix, rows, head, crc FROM chains"
#define SQL_SCHEDULE                                                                               \
    "SELECT s.ix, s.name, s.owner, s.body_hash, s.created, s.rule, s.crc, "                        \
    "coalesce(t.state, ''), coalesce(t.crc, -1) FROM schedules s "                                 \
    "LEFT JOIN schedule_state t ON t.ix = s.ix"

/* Statements of what rows leave beside them, and of deletion. */
#define SQL_STATEMENTS_4(SQL)                                                                      \
    SQL(REF_ADD, "INSERT OR IGNORE INTO blob_refs(plan, blob) VALUES(?1, ?2)")                     \
    SQL(REFS_OF, "SELECT blob FROM blob_refs WHERE plan = ?1")                                     \
    SQL(REF_DROP, "DELETE FROM blob_refs WHERE plan = ?1 AND blob = ?2")                           \
    SQL(CHAIN_PUT, "INSERT OR REPLACE INTO chains(ix, rows, head, crc) VALUES(?1, ?2, ?3, ?4)")    \
    SQL(CHAIN_GET, SQL_CHAIN " WHERE ix = ?1")                                                     \
    SQL(CHAIN_DROP, "DELETE FROM chains WHERE ix = ?1")                                            \
    SQL(GAP_AT, "SELECT first, last, crc FROM gaps WHERE kind = ?1 AND first <= ?2 "               \
                "ORDER BY first DESC LIMIT 1")                                                     \
    SQL(GAP_NEXT, "SELECT first FROM gaps WHERE kind = ?1 AND first > ?2 ORDER BY first LIMIT 1")  \
    SQL(GAP_PUT, "INSERT OR REPLACE INTO gaps(kind, first, last, crc) VALUES(?1, ?2, ?3, ?4)")     \
    SQL(GAPS, "SELECT kind, first, last, crc FROM gaps WHERE kind = ?1 ORDER BY first")            \
    SQL(PLAN_THERE, "SELECT ix FROM plans WHERE ix = ?1")                                          \
    SQL(GAP_DROP, "DELETE FROM gaps WHERE kind = ?1 AND first = ?2")                               \
    SQL(GONE_PUT, "INSERT INTO gone(ix, id, client_key, status, created, ended, deleted, why, "    \
                  "rows, head, crc, swept, owner) "                                                \
                  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0, ?12)")                  \
    SQL(GONE_BY_ID, SQL_GONE " WHERE id = ?1")                                                     \
    SQL(GONE_BY_KEY, SQL_GONE " WHERE client_key = ?1")                                            \
    SQL(GONE_LEFT, "SELECT ix FROM gone INDEXED BY gone_left WHERE swept = 0 ORDER BY ix LIMIT 1") \
    SQL(GONE_SWEPT, "UPDATE gone SET swept = 1 WHERE ix = ?1")                                     \
    SQL(GONE_OLDEST, "SELECT ix, deleted FROM gone WHERE swept = 1 ORDER BY ix LIMIT 1")           \
    SQL(GONE_DROP, "DELETE FROM gone WHERE ix = ?1")                                               \
    SQL(GONE_FIND, "SELECT ix, swept FROM gone WHERE id = ?1")                                     \
    SQL(REFS_AFTER, "SELECT blob FROM blob_refs WHERE plan = ?1 AND blob > ?2 ORDER BY blob")      \
    SQL(HEIRS, "SELECT DISTINCT h.plan FROM blob_refs r "                                          \
               "JOIN blob_refs h INDEXED BY blob_refs_blob ON h.blob = r.blob "                    \
               "WHERE r.plan = ?1 AND h.plan <> ?1")                                               \
    SQL(IMPORTS, "SELECT ix FROM plan_state INDEXED BY plan_state_status "                         \
                 "WHERE status = 'importing' ORDER BY ix")                                         \
    SQL(PLAN_DROP, "DELETE FROM plans WHERE ix = ?1")                                              \
    SQL(STATE_DROP, "DELETE FROM plan_state WHERE ix = ?1")                                        \
    SQL(JOB_DROP, "DELETE FROM errands WHERE ix = ?1")                                             \
    SQL(OWNER_DROP, "DELETE FROM owners WHERE ix = ?1")                                            \
    SQL(IX_ENDED, "SELECT ix FROM plan_state INDEXED BY plan_state_ended "                         \
                  "WHERE (ended, ix) > (?1, ?2) AND ended > 0 ORDER BY ended, ix")                 \
    SQL(ROWS_OF, "SELECT pos FROM rows INDEXED BY rows_plan WHERE plan = ?1 AND plan > 0 "         \
                 "ORDER BY pos")                                                                   \
    SQL(ROWS_OLD, "SELECT pos FROM rows INDEXED BY rows_no_plan "                                  \
                  "WHERE plan = 0 AND wall < ?1 AND pos < ?2 ORDER BY wall, pos")                  \
    SQL(ROW_DROP, "DELETE FROM rows WHERE pos = ?1")                                               \
    SQL(BLOB_NEED,                                                                                 \
        "SELECT EXISTS (SELECT 1 FROM blob_refs INDEXED BY blob_refs_blob WHERE blob = ?1) OR "    \
        "EXISTS (SELECT 1 FROM turns INDEXED BY turns_wish WHERE wish = ?1 AND wish > 0) OR "      \
        "EXISTS (SELECT 1 FROM sessions INDEXED BY sessions_summary "                              \
        "WHERE summary = ?1 AND summary > 0), "                                                    \
        "coalesce((SELECT length(bytes) FROM blobs WHERE id = ?1), 0)")                            \
    SQL(BLOB_DROP, "DELETE FROM blobs WHERE id = ?1")                                              \
    SQL(BLOBS, "SELECT id FROM blobs WHERE id > ?1 AND id <= ?2 ORDER BY id")                      \
    SQL(BLOBS_TOP, "UPDATE meta SET value = ?1 WHERE key = 'blobs'")                               \
    SQL(TURN_OPEN_OF, "SELECT 1 FROM turns INDEXED BY turns_session "                              \
                      "WHERE session = ?1 AND ended = 0 LIMIT 1")                                  \
    SQL(TURNS_OF, "SELECT id, wish FROM turns INDEXED BY turns_session WHERE session = ?1")        \
    SQL(TURN_DROP, "DELETE FROM turns WHERE id = ?1")                                              \
    SQL(SESSION_DROP, "DELETE FROM sessions WHERE id = ?1")                                        \
    SQL(SESSIONS_IDLE, SQL_SESSION " INDEXED BY sessions_updated WHERE updated < ?1 "              \
                                   "ORDER BY updated")                                             \
    SQL(GONE_SESSION_PUT, "INSERT INTO gone_sessions(id, last) "                                   \
                          "SELECT ?1, coalesce(max(rowid), 0) FROM messages")                      \
    SQL(GONE_SESSION, "SELECT number FROM gone_sessions ORDER BY number LIMIT 1")                  \
    SQL(GONE_SESSION_DROP, "DELETE FROM gone_sessions WHERE number = ?1")                          \
    SQL(MESSAGES_OF, "SELECT m.rowid FROM gone_sessions g JOIN messages m INDEXED BY messages_n "  \
                     "ON m.session = g.id WHERE g.number = ?1 AND m.rowid <= g.last ORDER BY m.n") \
    SQL(MESSAGE_DROP, "DELETE FROM messages WHERE rowid = ?1")

#define SQL_AGENT "SELECT id, seen, crc, card FROM agents"
#define SQL_STATEMENTS_6(SQL)                                                                      \
    SQL(SCHEDULE_ADD, "INSERT OR REPLACE INTO schedules(ix, name, owner, body_hash, created, "     \
                      "rule, crc, doc_crc, doc) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")       \
    SQL(SCHEDULE_IX, "SELECT ix FROM schedules WHERE name = ?1")                                   \
    SQL(SCHEDULE_TOP, "SELECT coalesce(max(ix), 0) FROM schedules")                                \
    SQL(SCHEDULE_GET, SQL_SCHEDULE " WHERE s.ix = ?1")                                             \
    SQL(SCHEDULES, SQL_SCHEDULE " WHERE s.ix > ?1 ORDER BY s.ix")                                  \
    SQL(SCHEDULE_DOC, "SELECT ix, doc_crc, doc FROM schedules WHERE ix = ?1")                      \
    SQL(SCHEDULE_DROP, "DELETE FROM schedules WHERE ix = ?1")                                      \
    SQL(SCHEDULE_STATE, "INSERT OR REPLACE INTO schedule_state(ix, crc, state) "                   \
                        "VALUES(?1, ?2, ?3)")                                                      \
    SQL(SCHEDULE_STATE_DROP, "DELETE FROM schedule_state WHERE ix = ?1")                           \
    SQL(START_PUT, "INSERT OR REPLACE INTO starts(name, place, wall) VALUES(?1, ?2, ?3)")          \
    SQL(STARTS, "SELECT name, place, wall FROM starts WHERE wall >= ?1 "                           \
                "ORDER BY name, wall, place")                                                      \
    SQL(STARTS_DROP, "DELETE FROM starts WHERE wall < ?1")                                         \
    SQL(AGENT_PUT, "INSERT OR REPLACE INTO agents(id, seen, crc, card) VALUES(?1, ?2, ?3, ?4)")    \
    SQL(AGENT_DROP, "DELETE FROM agents WHERE id = ?1")                                            \
    SQL(AGENTS_DROP, "DELETE FROM agents WHERE seen < ?1")                                         \
    SQL(AGENTS_KEEP, "DELETE FROM agents WHERE id IN (SELECT id FROM agents INDEXED BY "           \
                     "agents_seen ORDER BY seen DESC, id DESC LIMIT -1 OFFSET ?1)")                \
    SQL(AGENTS, SQL_AGENT " ORDER BY seen DESC, id DESC")

/* SQL(name, text): every prepared statement. */
#define SQL_STATEMENTS(SQL)                                                                        \
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
                  "doc_crc, doc) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 WHERE NOT EXISTS " \
                  "(SELECT 1 FROM gone WHERE id = ?2 OR client_key = ?4) ON CONFLICT DO NOTHING")  \
    SQL(PLAN_IX_BY_ID, "SELECT ix FROM plans WHERE id = ?1")                                       \
    SQL(PLAN_IX_BY_KEY, "SELECT ix, 0 FROM plans WHERE client_key = ?1 UNION ALL "                 \
                        "SELECT 0, 1 FROM gone WHERE client_key = ?1")                             \
    SQL(PLAN_GET, SQL_PLAN_HEAD " WHERE p.ix = ?1")                                                \
    SQL(JOB_ADD, "INSERT INTO errands(ix, kind) VALUES(?1, ?2)")                                   \
    SQL(OWNER_ADD, "INSERT INTO owners(ix, owner) VALUES(?1, ?2)")                                 \
    SQL(OWNER_GET, "SELECT owner FROM owners WHERE ix = ?1")                                       \
    SQL(BLOB_OWNED, "SELECT 1 FROM blob_refs r INDEXED BY blob_refs_blob "                         \
                    "JOIN owners o ON o.ix = r.plan WHERE r.blob = ?1 AND o.owner = ?2 LIMIT 1")   \
    SQL(PLAN_DOC, "SELECT ix, doc_crc, doc FROM plans WHERE ix = ?1")                              \
    SQL(STATE_PUT, "INSERT OR REPLACE INTO plan_state(ix, status, ended, recoveries, note, crc) "  \
                   "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                               \
    SQL(STATE_SET, "UPDATE plan_state SET status = ?2, ended = ?3, recoveries = ?4, note = ?5, "   \
                   "crc = ?6 WHERE ix = ?1")                                                       \
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
                     "summarized, summary, agent_calls, tool_calls, crc, owner) "                  \
                     "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                            \
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
    SQL(TURNS_OPEN, SQL_TURN " INDEXED BY turns_open WHERE ended = 0")                             \
    SQL_STATEMENTS_4(SQL)                                                                          \
    SQL_STATEMENTS_6(SQL)

enum sql {
#define SQL(name, text) SQL_##name,
    SQL_STATEMENTS(SQL)
#undef SQL
        SQL_COUNT
};

/* Counters that a rollback of the batch restores. */
struct sql_counters {
    uint64_t plans; /* highest plan number */
    uint64_t blobs; /* highest blob id */
    uint64_t gone;  /* tombstones */
};

enum { CHAIN_HEAD_LEN = 64, CHAINS_CACHED = 256, HASHES_CACHED = 16 };

/* The end of a plan's chain. */
struct sql_chain {
    uint64_t ix; /* 0 = none */
    uint64_t rows;
    char head[CHAIN_HEAD_LEN + 1]; /* hexadecimal; "" before the first link */
    bool dirty;                    /* the open batch changed it */
};

struct sql_blob_hash {
    uint64_t id; /* 0 = none */
    char hash[CHAIN_HEAD_LEN + 1];
};

/* What ranges of deleted numbers are of. */
enum gap { GAP_SEQ, GAP_PLAN };

struct sql_journal;
/* What differs between the stores. */
struct sql_engine {
    /* Begins a batch when none is open; adds bytes to its estimate. */
    enum bt_code (*batch)(struct sql_journal *s, size_t bytes, struct bt_error *err);
    /* Runs a bound statement that writes. ret_changes (NULL: nobody asks) = rows that it changed.
     */
    enum bt_code (*run)(struct sql_journal *s, enum sql which, const char *what,
                        uint64_t *ret_changes, struct bt_error *err);
    /* Ends a batch that has changed nothing. */
    enum bt_code (*undo)(struct sql_journal *s, struct bt_error *err);
    /* Fills *err with what the last statement came to. */
    enum bt_code (*error)(struct sql_journal *s, const char *what, struct bt_error *err);
    /* The same for a statement within a batch, which is lost. */
    enum bt_code (*write_error)(struct sql_journal *s, const char *what, struct bt_error *err);
    /* Plans that will be loaded and replayed now, one after the other: a store that is far away
     * reads all of them at once. NULL: reading ahead gains nothing. */
    void (*ahead)(struct sql_journal *s, const uint64_t *ix, size_t n);
};

/* The first member of each store's struct. */
struct sql_journal {
    struct journal base;
    const struct sql_engine *engine;
    struct stmt stmt[SQL_COUNT];
    struct sql_counters now;
    struct sql_counters committed;
    uint64_t batch_bytes;              /* estimate of what the open batch will write */
    struct buf plan_text;              /* strings of the last look-up of a plan */
    struct buf turn_text;              /* the same for turns */
    struct buf schedule_text;          /* the same for schedules */
    char session_owner[OWNER_MAX + 1]; /* of the last look-up of a session */
    bool adopt_due;    /* plans of an older version have no chains yet; no blob goes */
    bool gaps_damaged; /* a range of deleted numbers, at the start */
    struct sql_chain chains[CHAINS_CACHED]; /* by number */
    uint16_t chains_dirty[CHAINS_CACHED];
    uint32_t chains_dirty_n;
    struct sql_blob_hash hashes[HASHES_CACHED]; /* of blobs that were added last, by id */
};

static inline struct sql_journal *sql_of(struct journal *j)
{
    return (struct sql_journal *)j;
}

static inline enum bt_code sql_batch(struct sql_journal *s, size_t bytes, struct bt_error *err)
{
    return s->engine->batch(s, bytes, err);
}

static inline enum bt_code sql_run(struct sql_journal *s, enum sql which, const char *what,
                                   struct bt_error *err)
{
    return s->engine->run(s, which, what, NULL, err);
}

static inline enum bt_code sql_run_counted(struct sql_journal *s, enum sql which, const char *what,
                                           uint64_t *ret_changes, struct bt_error *err)
{
    return s->engine->run(s, which, what, ret_changes, err);
}

static inline enum bt_code sql_error(struct sql_journal *s, const char *what, struct bt_error *err)
{
    return s->engine->error(s, what, err);
}

static inline enum bt_code sql_write_error(struct sql_journal *s, const char *what,
                                           struct bt_error *err)
{
    return s->engine->write_error(s, what, err);
}

static inline void sql_bind_str(struct stmt *st, int at, struct str v)
{
    st->ops->bind_bytes(st, at, v.ptr == NULL ? "" : v.ptr, v.len, STMT_TEXT);
}

static inline struct str sql_col_str(struct stmt *st, int at)
{
    return st->ops->col_bytes(st, at, STMT_TEXT);
}

static inline uint64_t sql_col_u64(struct stmt *st, int at)
{
    return (uint64_t)st->ops->col_i64(st, at);
}

/* What both stores begin and end with. */
/* After a rollback. */
void sql_batch_forget(struct sql_journal *s);
void sql_texts_init(struct sql_journal *s);
void sql_texts_done(struct sql_journal *s);

/* ---- sql_rows.c ---- */
/* The first key over `after` and at most `last` from which the statement, whose first parameter is
 * the key to begin with, can be stepped; last + 1 when there is none. For tables with pages that
 * cannot be read. */
uint64_t sql_next_readable(struct stmt *st, uint64_t after, uint64_t last);
enum bt_code sql_append(struct journal *j, uint64_t pos, const struct journal_row *row,
                        struct bt_error *err);
enum bt_code sql_blob_add(struct journal *j, const void *bytes, size_t len, uint64_t *ret_id,
                          struct bt_error *err);
enum bt_code sql_blob_get(struct journal *j, uint64_t id, struct buf *out, struct bt_error *err);
enum bt_code sql_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit,
                        journal_row_fn fn, void *self, struct bt_error *err);
enum bt_code sql_last_row(struct journal *j, uint64_t plan_ix, bool only_public, journal_row_fn fn,
                          void *self, struct bt_error *err);
enum bt_code sql_replay(struct journal *j, uint64_t plan_ix, struct journal_place *place,
                        journal_row_fn fn, void *self, struct bt_error *err);
/* Reads the current row of a ROWS statement and verifies its checksum; BT_IO names the row. */
enum bt_code sql_row_read(struct stmt *st, struct journal_row *ret, struct bt_error *err);

/* ---- sql_plans.c ---- */
enum bt_code sql_plan_add(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                          struct bt_error *err);
enum bt_code sql_plan_status(struct journal *j, uint64_t ix, struct str status, msec ended,
                             struct bt_error *err);
enum bt_code sql_plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                            struct bt_error *err);
enum bt_code sql_plan_head(struct journal *j, struct uuid id, struct journal_plan *ret,
                           struct bt_error *err);
/* sql_owners.c: whose it is */
enum bt_code sql_plan_owner(struct journal *j, uint64_t ix, char *ret, size_t cap,
                            struct bt_error *err);
enum bt_code sql_blob_owned(struct journal *j, uint64_t blob, struct str owner, bool *ret,
                            struct bt_error *err);
enum bt_code sql_plan_by_key(struct journal *j, struct str key, struct journal_plan *ret,
                             struct bt_error *err);
enum bt_code sql_plans(struct journal *j, struct str status, struct str session, uint64_t before_ix,
                       uint32_t limit, journal_plan_fn fn, void *self, struct bt_error *err);
enum bt_code sql_plans_between(struct journal *j, struct uuid first, struct uuid last,
                               uint32_t limit, journal_plan_fn fn, void *self,
                               struct bt_error *err);
enum bt_code sql_jobs(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                      journal_plan_fn fn, void *self, struct bt_error *err);
/* Copies strings and doc into text (cleared first). BT_NOT_FOUND; BT_IO when a checksum is
 * wrong. */
enum bt_code sql_plan_load(struct sql_journal *s, uint64_t ix, bool with_doc, struct buf *text,
                           struct journal_plan *ret, struct bt_error *err);

/* Reads the plan, or its document, from the statement's current row and verifies the checksum.
 * Leaves the state out. */
enum bt_code sql_plan_read(struct stmt *st, struct journal_plan *ret, struct bt_error *err);
enum bt_code sql_doc_read(struct stmt *st, struct journal_plan *ret, struct bt_error *err);

/* ---- sql_recovery.c ---- */
enum bt_code sql_plans_open(struct journal *j, journal_plan_fn fn, void *self,
                            struct bt_error *err);
enum bt_code sql_quarantine(struct journal *j, uint64_t ix, struct str why, struct bt_error *err);

/* ---- sql_sessions.c, sql_turns.c ---- */
enum bt_code sql_session(struct journal *j, struct str id, struct journal_session *ret,
                         struct bt_error *err);
enum bt_code sql_session_put(struct journal *j, const struct journal_session *p,
                             struct bt_error *err);
enum bt_code sql_sessions(struct journal *j, uint32_t limit, journal_session_fn fn, void *self,
                          struct bt_error *err);
enum bt_code sql_message_add(struct journal *j, struct str session, const struct journal_message *m,
                             struct bt_error *err);
enum bt_code sql_messages(struct journal *j, struct str session, uint64_t last,
                          journal_message_fn fn, void *self, struct bt_error *err);
enum bt_code sql_turn_put(struct journal *j, const struct journal_turn *t, struct bt_error *err);
enum bt_code sql_turn(struct journal *j, struct uuid id, struct journal_turn *ret,
                      struct bt_error *err);
enum bt_code sql_turn_key(struct journal *j, struct str session, struct str key, struct uuid *ret,
                          struct bt_error *err);
enum bt_code sql_turn_by_key(struct journal *j, struct str session, struct str key,
                             struct journal_turn *ret, struct bt_error *err);
enum bt_code sql_turn_of_plan(struct journal *j, struct uuid plan, struct journal_turn *ret,
                              struct bt_error *err);
enum bt_code sql_turns_open(struct journal *j, journal_turn_fn fn, void *self,
                            struct bt_error *err);
/* Reads the statement's current row; strings point into it. BT_IO when the checksum is wrong. */
enum bt_code sql_session_read(struct stmt *st, struct journal_session *ret, struct bt_error *err);
enum bt_code sql_message_read(struct stmt *st, struct journal_message *ret, struct bt_error *err);
enum bt_code sql_turn_read(struct stmt *st, struct journal_turn *ret, struct bt_error *err);
void sql_bind_uuid(struct stmt *st, int at, const struct uuid *v);

/* ---- sql_starts.c ---- */
enum bt_code sql_start_put(struct journal *j, struct str name, uint32_t place, uint64_t wall,
                           struct bt_error *err);
enum bt_code sql_starts(struct journal *j, uint64_t since, journal_start_fn fn, void *self,
                        struct bt_error *err);
enum bt_code sql_starts_drop(struct journal *j, uint64_t before, struct bt_error *err);

/* ---- sql_agents.c ---- */
enum bt_code sql_agent_read(struct stmt *st, struct journal_agent *ret, struct bt_error *err);
enum bt_code sql_agent_put(struct journal *j, const struct journal_agent *a, struct bt_error *err);
enum bt_code sql_agent_drop(struct journal *j, struct str id, bool *ret_found,
                            struct bt_error *err);
enum bt_code sql_agents_drop(struct journal *j, uint64_t before, struct bt_error *err);
enum bt_code sql_agents(struct journal *j, journal_agent_fn fn, void *self, struct bt_error *err);

/* ---- sql_schedules.c ---- */
enum bt_code sql_schedule_put(struct journal *j, const struct journal_schedule *p, uint64_t *ret_ix,
                              struct bt_error *err);
enum bt_code sql_schedule_state(struct journal *j, uint64_t ix, struct str state,
                                struct bt_error *err);
enum bt_code sql_schedule_delete(struct journal *j, uint64_t ix, struct bt_error *err);
enum bt_code sql_schedule_by_name(struct journal *j, struct str name, struct journal_schedule *ret,
                                  struct bt_error *err);
enum bt_code sql_schedules(struct journal *j, uint64_t after, journal_schedule_fn fn, void *self,
                           struct bt_error *err);
/* Reads the statement's current row; strings point into it. BT_IO when a checksum is wrong. */
enum bt_code sql_schedule_read(struct stmt *st, struct journal_schedule *ret, struct bt_error *err);
enum bt_code sql_schedule_doc_read(struct stmt *st, struct journal_schedule *ret,
                                   struct bt_error *err);
struct uuid sql_col_uuid(struct stmt *st, int at);

/* ---- sql_chain.c ---- */
BT_MUST_CHECK enum bt_code chain_begin(const struct journal_plan *p, char ret[CHAIN_HEAD_LEN + 1],
                                       struct bt_error *err);
BT_MUST_CHECK enum bt_code chain_blob(const void *bytes, size_t len, char ret[CHAIN_HEAD_LEN + 1],
                                      struct bt_error *err);
/* blobs: the hash of each of row->blobs. */
BT_MUST_CHECK enum bt_code chain_link(char io_head[CHAIN_HEAD_LEN + 1],
                                      const struct journal_row *row,
                                      char (*blobs)[CHAIN_HEAD_LEN + 1], struct bt_error *err);
/* Reads the current row of a SQL_CHAIN; false: its checksum is wrong. */
bool sql_chain_read(struct stmt *st, struct sql_chain *ret);
/* These write, within the open batch. */
enum bt_code sql_chain_begin(struct sql_journal *s, uint64_t ix, const struct journal_plan *p,
                             struct bt_error *err);
enum bt_code sql_chain_row(struct sql_journal *s, const struct journal_row *row,
                           struct bt_error *err);
enum bt_code sql_chain_now(struct sql_journal *s, uint64_t ix, struct sql_chain *ret,
                           struct bt_error *err);
enum bt_code sql_chain_flush(struct sql_journal *s, struct bt_error *err);
enum bt_code sql_blob_hashed(struct sql_journal *s, uint64_t id, const void *bytes, size_t len,
                             struct bt_error *err);
void sql_chain_drop(struct sql_journal *s, uint64_t ix);

/* ---- sql_delete.c ---- */
enum bt_code sql_plan_delete(struct journal *j, uint64_t ix, struct str why, msec wall,
                             struct bt_error *err);
enum bt_code sql_gone_by_id(struct journal *j, struct uuid id, struct journal_gone *ret,
                            struct bt_error *err);
enum bt_code sql_gone_by_key(struct sql_journal *s, struct str key, struct journal_gone *ret,
                             struct bt_error *err);
enum bt_code sql_plans_ended(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                             journal_plan_fn fn, void *self, struct bt_error *err);
enum bt_code sql_session_delete(struct journal *j, struct str id, uint32_t limit, bool *ret_more,
                                struct bt_error *err);
enum bt_code sql_sessions_idle(struct journal *j, msec before, uint32_t limit,
                               journal_session_fn fn, void *self, struct bt_error *err);
enum bt_code sql_gone_expire(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                             struct bt_error *err);
enum bt_code sql_rows_delete(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                             struct bt_error *err);
enum bt_code sql_sweep(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err);
enum bt_code sql_blobs_unused(struct journal *j, uint64_t *io_after, uint64_t last, uint32_t limit,
                              struct bt_error *err);
uint64_t sql_last_blob(const struct journal *j);
enum bt_code sql_plan_blobs(struct journal *j, uint64_t ix, uint64_t after, uint64_t *ret,
                            uint32_t max, uint32_t *ret_n, struct bt_error *err);
enum bt_code sql_plan_heirs(struct journal *j, uint64_t ix, uint64_t *ret, uint32_t max,
                            uint32_t *ret_n, struct bt_error *err);
enum bt_code sql_plan_state(struct journal *j, uint64_t ix, struct str status, msec ended,
                            struct str note, struct bt_error *err);
enum bt_code sql_gone_forget(struct journal *j, struct uuid id, struct bt_error *err);
enum bt_code sql_imports(struct journal *j, uint64_t *ret, uint32_t max, uint32_t *ret_n,
                         struct bt_error *err);
/* ---- sql_gone.c ---- */
enum bt_code sql_gone_put(struct sql_journal *s, const struct journal_gone *g,
                          struct bt_error *err);
/* Adds first to last, which is in no range yet, and joins it with its neighbours. */
enum bt_code sql_gap_add(struct sql_journal *s, enum gap kind, uint64_t first, uint64_t last,
                         struct bt_error *err);
/* Reads the current row of a SQL_GONE; false: its checksum is wrong. */
bool sql_gone_read(struct stmt *st, struct journal_gone *ret);
/* Reads the current row of kind, first, last, crc; false: its checksum is wrong. */
/* The highest number that was deleted. */
enum bt_code sql_gaps_top(struct sql_journal *s, enum gap kind, uint64_t *ret,
                          struct bt_error *err);
bool sql_gap_read(struct stmt *st);
/* Where the first deleted range after `at` begins; UINT64_MAX = there is none. */
enum bt_code sql_gap_next(struct sql_journal *s, enum gap kind, uint64_t at, uint64_t *ret,
                          struct bt_error *err);
/* The last number of the deleted range that `at` lies in; 0 = it was not deleted. */
enum bt_code sql_gap_end(struct sql_journal *s, enum gap kind, uint64_t at, uint64_t *ret,
                         struct bt_error *err);

/* The mutable part of a plan. */
struct plan_state {
    struct str status;
    msec ended;
    uint32_t recoveries; /* written by earlier versions; not read any more */
    struct str note;     /* why it is in quarantine */
};
enum bt_code sql_state_put(struct sql_journal *s, uint64_t ix, const struct plan_state *st,
                           struct bt_error *err);
/* BT_NOT_FOUND; BT_IO when the checksum is wrong. Strings are valid until sql_state_done resets
 * the statement. */
enum bt_code sql_state_get(struct sql_journal *s, uint64_t ix, struct plan_state *ret,
                           struct bt_error *err);
void sql_state_done(struct sql_journal *s);
/* Reads the columns from `at` on; BT_IO when the checksum is wrong. */
enum bt_code sql_state_read(struct stmt *st, int at, uint64_t ix, struct plan_state *ret,
                            struct bt_error *err);
/* The operations that are the same in both. */
#define SQL_OPS                                                                                    \
    .plan_add = sql_plan_add, .plan_status = sql_plan_status, .plan_by_id = sql_plan_by_id,        \
    .plan_head = sql_plan_head, .plan_by_key = sql_plan_by_key, .plan_owner = sql_plan_owner,      \
    .blob_owned = sql_blob_owned, .plans = sql_plans, .plans_between = sql_plans_between,          \
    .jobs = sql_jobs, .plans_open = sql_plans_open, .quarantine = sql_quarantine,                  \
    .session = sql_session, .session_put = sql_session_put, .sessions = sql_sessions,              \
    .message_add = sql_message_add, .messages = sql_messages, .turn_put = sql_turn_put,            \
    .turn = sql_turn, .turn_key = sql_turn_key, .turn_by_key = sql_turn_by_key,                    \
    .turn_of_plan = sql_turn_of_plan, .turns_open = sql_turns_open,                                \
    .schedule_put = sql_schedule_put, .schedule_state = sql_schedule_state,                        \
    .schedule_delete = sql_schedule_delete, .schedule_by_name = sql_schedule_by_name,              \
    .schedules = sql_schedules, .start_put = sql_start_put, .starts = sql_starts,                  \
    .starts_drop = sql_starts_drop, .agent_put = sql_agent_put, .agent_drop = sql_agent_drop,      \
    .agents_drop = sql_agents_drop, .agents = sql_agents, .append = sql_append,                    \
    .blob_add = sql_blob_add, .blob_get = sql_blob_get, .events = sql_events,                      \
    .last_row = sql_last_row, .replay = sql_replay, .plan_delete = sql_plan_delete,                \
    .gone_by_id = sql_gone_by_id, .plans_ended = sql_plans_ended,                                  \
    .session_delete = sql_session_delete, .sessions_idle = sql_sessions_idle,                      \
    .gone_expire = sql_gone_expire, .rows_delete = sql_rows_delete, .sweep = sql_sweep,            \
    .blobs_unused = sql_blobs_unused, .last_blob = sql_last_blob, .plan_blobs = sql_plan_blobs,    \
    .plan_heirs = sql_plan_heirs, .plan_state = sql_plan_state, .gone_forget = sql_gone_forget,    \
    .imports = sql_imports

#endif
