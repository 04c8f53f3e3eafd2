/* All checksums of a journal, part by part: for `baton doctor`, on a stopped and a running daemon.
 */
#include <inttypes.h>

#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

/* One part of a table is read, and each entry is given to check(): it returns the bytes read, or
 * writes what is wrong. `key` is the column that orders the table; NULL: by number of the entry. */
struct table {
    const char *sql;   /* with ?1, the first key */
    const char *count; /* about how many entries */
    int since;         /* version */
    bool keyed;        /* column 0 is the key, an integer */
    enum bt_code (*check)(struct stmt *st, size_t *ret_bytes, struct bt_error *err);
    int until; /* the last version; 0 = all */
};

/* The plan of a damaged row, when its number is one. */
static void name_plan(sqlite3 *db, uint64_t ix, struct bt_error *io)
{
    sqlite3_stmt *st = NULL;
    char id[UUID_TEXT_LEN + 1];
    struct uuid plan;

    if (ix != 0 &&
        sqlite3_prepare_v2(db, "SELECT id FROM plans WHERE ix = ?1", -1, &st, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
        if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_bytes(st, 0) == (int)sizeof plan.b) {
            memcpy(plan.b, sqlite3_column_blob(st, 0), sizeof plan.b);
            uuid_format(plan, id);
            (void)err_wrap(io, "plan %s", id);
        }
    }
    (void)sqlite3_finalize(st);
}

static enum bt_code check_row(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_row row;
    enum bt_code code = sql_row_read(st, &row, err);

    *ret_bytes = row.body_len + row.topic.len + row.type.len;
    if (code != BT_OK) {
        name_plan(sqlite3_db_handle(st->at), sql_col_u64(st, 1), err);
    }
    return code;
}

static enum bt_code check_blob(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    const uint64_t id = sql_col_u64(st, 0);
    const struct str bytes = stmt_col_blob(st, 2);

    *ret_bytes = bytes.len;
    return sql_col_u64(st, 1) == crc32c_bytes(crc32c_u64(0, id), bytes.ptr, bytes.len)
               ? BT_OK
               : err_set(err, BT_IO, "blob %" PRIu64 " (a result or a document) is damaged", id);
}

static enum bt_code check_state(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct plan_state state;
    const uint64_t ix = sql_col_u64(st, 0);
    enum bt_code code = sql_state_read(st, 1, ix, &state, err);

    *ret_bytes = 0;
    if (code != BT_OK) {
        name_plan(sqlite3_db_handle(st->at), ix, err);
    }
    return code;
}

static enum bt_code check_plan(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_plan p = {.ix = 0};
    enum bt_code code = sql_plan_read(st, &p, err);

    *ret_bytes = p.goal.len;
    if (code != BT_OK) {
        name_plan(sqlite3_db_handle(st->at), sql_col_u64(st, 0), err);
    }
    return code;
}

static enum bt_code check_doc(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_plan p = {.ix = 0};
    enum bt_code code = sql_doc_read(st, &p, err);

    *ret_bytes = p.doc_len;
    if (code != BT_OK) {
        name_plan(sqlite3_db_handle(st->at), sql_col_u64(st, 0), err);
    }
    return code;
}

static enum bt_code check_session(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_session p;

    *ret_bytes = 0;
    return sql_session_read(st, &p, err);
}

static enum bt_code check_message(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_message m;
    enum bt_code code = sql_message_read(st, &m, err);

    *ret_bytes = m.text.len;
    return code;
}

static enum bt_code check_turn(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_turn t;

    *ret_bytes = 0;
    return sql_turn_read(st, &t, err);
}

static enum bt_code check_count(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct str id = sql_col_str(st, 0);

    *ret_bytes = 0;
    return sql_col_u64(st, 1) == sql_col_u64(st, 2)
               ? BT_OK
               : err_set(err, BT_IO, "messages of the session \"%.*s\" are missing",
                         id.len > 64 ? 64 : (int)id.len, id.ptr);
}

static enum bt_code check_gone(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_gone g;

    *ret_bytes = 0;
    return sql_gone_read(st, &g)
               ? BT_OK
               : err_set(err, BT_IO,
                         "what is left of the deleted plan number %" PRIu64 " is damaged",
                         sql_col_u64(st, 0));
}

static enum bt_code check_chain(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct sql_chain c;
    enum bt_code code = BT_OK;

    *ret_bytes = 0;
    if (!sql_chain_read(st, &c)) {
        code = err_set(err, BT_IO, "the hash of plan number %" PRIu64 " is damaged",
                       sql_col_u64(st, 0));
        name_plan(sqlite3_db_handle(st->at), sql_col_u64(st, 0), err);
    }
    return code;
}

static enum bt_code check_gap(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    *ret_bytes = 0;
    return sql_gap_read(st)
               ? BT_OK
               : err_set(err, BT_IO, "the range of deleted numbers from %" PRIu64 " is damaged",
                         sql_col_u64(st, 1));
}

static enum bt_code check_schedule(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_schedule p;
    enum bt_code code = sql_schedule_read(st, &p, err);

    *ret_bytes = p.rule.len + p.state.len;
    return code;
}

static enum bt_code check_schedule_doc(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_schedule p = {.ix = 0};
    enum bt_code code = sql_schedule_doc_read(st, &p, err);

    *ret_bytes = p.doc.len;
    return code;
}

static enum bt_code check_agent(struct stmt *st, size_t *ret_bytes, struct bt_error *err)
{
    struct journal_agent a;
    enum bt_code code = sql_agent_read(st, &a, err);

    *ret_bytes = a.card.len;
    return code;
}

#define PLAN_HEAD_2                                                                                \
    "SELECT ix, id, session, client_key, body_hash, goal, created, crc, '', '' FROM plans p"
/* Of versions without owners. */
#define PLAN_HEAD_4                                                                                \
    "SELECT p.ix, p.id, p.session, p.client_key, p.body_hash, p.goal, p.created, p.crc, "          \
    "coalesce(e.kind, ''), '' FROM plans p LEFT JOIN errands e ON e.ix = p.ix"
#define SESSION_4                                                                                  \
    "SELECT id, created, updated, messages, summarized, summary, agent_calls, tool_calls, crc, "   \
    "'' FROM sessions"
#define GONE_4                                                                                     \
    "SELECT ix, id, client_key, status, created, ended, deleted, why, rows, head, crc, '' "        \
    "FROM gone"

static const struct table TABLES[] = {
    {"SELECT ix, status, ended, recoveries, note, crc FROM plan_state WHERE ix >= ?1 ORDER BY ix",
     "SELECT coalesce(max(ix), 0) FROM plan_state", 1, true, check_state, 0},
    {SQL_PLAN_HEAD " WHERE p.ix >= ?1 ORDER BY p.ix", "SELECT coalesce(max(ix), 0) FROM plans", 5,
     true, check_plan, 0},
    {PLAN_HEAD_4 " WHERE p.ix >= ?1 ORDER BY p.ix", "SELECT coalesce(max(ix), 0) FROM plans", 3,
     true, check_plan, 4},
    {PLAN_HEAD_2 " WHERE p.ix >= ?1 ORDER BY p.ix", "SELECT coalesce(max(ix), 0) FROM plans", -2,
     true, check_plan, 0},
    {"SELECT ix, doc_crc, doc FROM plans WHERE ix >= ?1 ORDER BY ix",
     "SELECT coalesce(max(ix), 0) FROM plans", 1, true, check_doc, 0},
    {"SELECT pos, plan, plan_seq, type, topic, wall, crc, body FROM rows WHERE pos >= ?1 "
     "ORDER BY pos",
     "SELECT coalesce(max(pos), 0) >> 20 FROM rows", 1, true, check_row, 0},
    {"SELECT id, crc, bytes FROM blobs WHERE id >= ?1 ORDER BY id",
     "SELECT coalesce(max(id), 0) FROM blobs", 1, true, check_blob, 0},
    {SQL_SESSION " ORDER BY id LIMIT -1 OFFSET ?1", "SELECT count(*) FROM sessions", 5, false,
     check_session, 0},
    {SESSION_4 " ORDER BY id LIMIT -1 OFFSET ?1", "SELECT count(*) FROM sessions", 3, false,
     check_session, 4},
    {SQL_MESSAGE " ORDER BY rowid LIMIT -1 OFFSET ?1",
     "SELECT coalesce(max(rowid), 0) FROM messages", 3, false, check_message, 0},
    /* lost messages: numbers have no gaps */
    {"SELECT s.id, s.messages, (SELECT count(*) FROM messages m WHERE m.session = s.id) "
     "FROM sessions s ORDER BY s.id LIMIT -1 OFFSET ?1",
     "SELECT count(*) FROM sessions", 3, false, check_count, 3},
    /* those of a deleted session of the same name are still to be swept */
    {"SELECT s.id, s.messages, (SELECT count(*) FROM messages m WHERE m.session = s.id AND "
     "m.rowid > (SELECT coalesce(max(g.last), 0) FROM gone_sessions g WHERE g.id = s.id)) "
     "FROM sessions s ORDER BY s.id LIMIT -1 OFFSET ?1",
     "SELECT count(*) FROM sessions", 4, false, check_count, 0},
    {SQL_TURN " ORDER BY id LIMIT -1 OFFSET ?1", "SELECT count(*) FROM turns", 3, false, check_turn,
     0},
    {SQL_GONE " WHERE ix >= ?1 ORDER BY ix", "SELECT count(*) FROM gone", 5, true, check_gone, 0},
    {GONE_4 " WHERE ix >= ?1 ORDER BY ix", "SELECT count(*) FROM gone", 4, true, check_gone, 4},
    {SQL_CHAIN " WHERE ix >= ?1 ORDER BY ix", "SELECT count(*) FROM chains", 4, true, check_chain,
     0},
    {"SELECT kind, first, last, crc FROM gaps ORDER BY kind, first LIMIT -1 OFFSET ?1",
     "SELECT count(*) FROM gaps", 4, false, check_gap, 0},
    {SQL_SCHEDULE " WHERE s.ix >= ?1 ORDER BY s.ix", "SELECT count(*) FROM schedules", 6, true,
     check_schedule, 0},
    {"SELECT ix, doc_crc, doc FROM schedules WHERE ix >= ?1 ORDER BY ix",
     "SELECT count(*) FROM schedules", 6, true, check_schedule_doc, 0},
    {SQL_AGENT " ORDER BY id LIMIT -1 OFFSET ?1", "SELECT count(*) FROM agents", 8, false,
     check_agent, 0},
};

enum { N_TABLES = sizeof TABLES / sizeof TABLES[0], ENTRY_BYTES = 256 };

static bool is_in(const struct table *t, int version)
{
    return t->since < 0 ? version <= -t->since
                        : version >= t->since && (t->until == 0 || version <= t->until);
}

static void unreadable(sqlite3 *db, struct journal_scrub *io, const struct table *t,
                       sqlite3_stmt *st, journal_problem_fn fn, void *self)
{
    const uint64_t from = io->at;
    struct stmt of = sqlite_stmt(st);
    struct bt_error why;

    (void)err_set(&why, BT_IO, "%s", sqlite3_errmsg(db));
    (void)sqlite3_reset(st);
    io->at = t->keyed ? sql_next_readable(&of, from, INT64_MAX - 1) : INT64_MAX;
    (void)err_wrap(&why,
                   "a part of a table cannot be read (%.20s... from %" PRIu64 " to %" PRIu64 ")",
                   strstr(t->sql, "FROM ") + 5, from, io->at - 1);
    fn(str_from(why.msg), self);
}

/* True: the table is done. */
static bool scrub_table(sqlite3 *db, const struct table *t, struct journal_scrub *io,
                        uint64_t *io_bytes, journal_problem_fn fn, void *self)
{
    sqlite3_stmt *st = NULL;
    struct bt_error err;
    bool done = false;
    int rc = sqlite3_prepare_v2(db, t->sql, -1, &st, NULL);

    if (rc != SQLITE_OK) {
        fn(str_from(sqlite3_errmsg(db)), self);
        return true;
    }
    struct stmt of = sqlite_stmt(st);
    (void)sqlite3_bind_int64(st, 1, (int64_t)io->at);
    while (!done && *io_bytes > 0) {
        size_t bytes = 0;
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW) {
            if (t->check(&of, &bytes, &err) != BT_OK) {
                fn(str_from(err.msg), self);
            }
            io->checked++;
            io->at = t->keyed ? sql_col_u64(&of, 0) + 1 : io->at + 1;
            *io_bytes -= bytes + ENTRY_BYTES < *io_bytes ? bytes + ENTRY_BYTES : *io_bytes;
        } else if (rc == SQLITE_DONE) {
            done = true;
        } else {
            unreadable(db, io, t, st, fn, self);
            done = io->at >= INT64_MAX;
            (void)sqlite3_bind_int64(st, 1, (int64_t)io->at);
        }
    }
    (void)sqlite3_finalize(st);
    return done;
}

static void estimate(sqlite3 *db, int version, struct journal_scrub *io)
{
    int64_t n;

    io->total = 0;
    for (int i = 0; i < N_TABLES; i++) {
        if (is_in(&TABLES[i], version) && sqlite_number(db, TABLES[i].count, &n, NULL) == BT_OK &&
            n > 0) {
            io->total += (uint64_t)n;
        }
    }
}

void sqlite_scrub_db(sqlite3 *db, int version, struct journal_scrub *io, uint64_t max_bytes,
                     journal_problem_fn fn, void *self)
{
    uint64_t left = max_bytes;

    if (io->total == 0) {
        estimate(db, version, io);
    }
    while (io->table < N_TABLES && left > 0) {
        const struct table *t = &TABLES[io->table];
        if (!is_in(t, version) || scrub_table(db, t, io, &left, fn, self)) {
            io->table++;
            io->at = 0;
        }
    }
    io->done = io->table >= N_TABLES;
}

enum bt_code sqlite_scrub(struct journal *j, struct journal_scrub *io, uint64_t max_bytes,
                          journal_problem_fn fn, void *self, struct bt_error *err)
{
    (void)err;
    sqlite_scrub_db(sqlite_of(j)->db, SCHEMA_VERSION, io, max_bytes, fn, self);
    return BT_OK;
}
