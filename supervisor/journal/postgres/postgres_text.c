/*
 * The statements of sql.h as PostgreSQL has them. Both know the same SQL but for: ?N ($N),
 * INDEXED BY (nothing), rowid (rid, a column of messages), LIMIT -1 (nothing), INSERT OR REPLACE
 * and OR IGNORE (ON CONFLICT).
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/journal/postgres/postgres_internal.h"

enum { TEXT_MAX = 4096, PAGE_ROWS = 256, PAGE_NUMBERS = 16384 };

static const char *const SQLITE_TEXT[SQL_COUNT] = {
#define SQL(name, text) [SQL_##name] = text,
    SQL_STATEMENTS(SQL)
#undef SQL
};

const char *const PG_UNNEST =
    "INSERT INTO rows(pos, plan, plan_seq, type, topic, wall, crc, body) SELECT * FROM "
    "unnest($1::int8[], $2::int8[], $3::int8[], $4::bytea[], $5::bytea[], $6::int8[], $7::int8[], "
    "$8::bytea[])";

const char *const PG_TURN =
    "INSERT INTO meta(key, value) VALUES('turn', $1) ON CONFLICT(key) DO UPDATE SET "
    "value = excluded.value";

/* Those that are written anew. */
static const char *other_text(enum sql which)
{
    if (which == SQL_PLAN_ADD) {
        return "INSERT INTO plans(ix, id, session, client_key, body_hash, goal, created, crc, "
               "doc_crc, doc) SELECT $1::int8, $2::uuid, $3::bytea, $4::bytea, $5::int8, "
               "$6::bytea, $7::int8, $8::int8, $9::int8, $10::bytea WHERE NOT EXISTS "
               "(SELECT 1 FROM gone WHERE id = $2 OR client_key = $4) ON CONFLICT DO NOTHING";
    }
    if (which == SQL_GONE_SESSION_PUT) {
        return "INSERT INTO gone_sessions(id, last) SELECT $1::bytea, coalesce(max(rid), 0) "
               "FROM messages";
    }
    return SQLITE_TEXT[which];
}

static bool skip(const char **io, const char *what)
{
    const size_t n = strlen(what);

    if (strncmp(*io, what, n) != 0) {
        return false;
    }
    *io += n;
    return true;
}

/* Adds ON CONFLICT for an INSERT OR REPLACE: the first columns are the key. */
static void add_replace(struct buf *out, const char *table)
{
    static const char *const PAIRS[] = {"gaps(", "starts(", "messages("};
    const char *at = strchr(table, '(') + 1;
    const char *end = strchr(at, ')');
    int keys = 1;
    int column = 0;

    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++) {
        keys = strncmp(table, PAIRS[i], strlen(PAIRS[i])) == 0 ? 2 : keys;
    }
    buf_add_cstr(out, " ON CONFLICT(");
    while (at < end) {
        const size_t n = strcspn(at, ",)");
        const struct str name = {at, n};
        if (column < keys) {
            buf_printf(out, "%s%.*s", column > 0 ? ", " : "", STR_ARG(name));
        } else {
            buf_printf(out, "%s%.*s = excluded.%.*s", column == keys ? ") DO UPDATE SET " : ", ",
                       STR_ARG(name), STR_ARG(name));
        }
        column++;
        at += n + strspn(at + n, ", ");
    }
    if (strncmp(table, "messages(", 9) == 0) {
        buf_add_cstr(out, ", rid = excluded.rid"); /* a later number, as SQLite gives one */
    }
}

static void translate(struct buf *out, const char *at)
{
    const char *replace = NULL;
    bool ignore = false;

    while (*at != 0) {
        if (skip(&at, "INSERT OR REPLACE INTO ")) {
            replace = at;
            buf_add_cstr(out, "INSERT INTO ");
        } else if (skip(&at, "INSERT OR IGNORE INTO ")) {
            ignore = true;
            buf_add_cstr(out, "INSERT INTO ");
        } else if (skip(&at, "INDEXED BY ")) {
            at += strcspn(at, " ");
            at += *at == ' ' ? 1 : 0;
        } else if (skip(&at, "LIMIT -1 ")) {
            continue;
        } else if (skip(&at, "rowid")) {
            buf_add_cstr(out, "rid");
        } else {
            buf_add_byte(out, *at == '?' ? '$' : (uint8_t)*at);
            at++;
        }
    }
    if (replace != NULL) {
        add_replace(out, replace);
    }
    buf_add_cstr(out, ignore ? " ON CONFLICT DO NOTHING" : "");
}

bool pg_is_paged(enum sql which, int64_t *ret_max)
{
    const char *text = SQLITE_TEXT[which];
    const bool is_long = strstr(text, "body") != NULL || strstr(text, "text") != NULL ||
                         strstr(text, "card") != NULL;

    *ret_max = is_long ? PAGE_ROWS : PAGE_NUMBERS;
    return strncmp(text, "SELECT", 6) == 0 && strstr(text, "ORDER BY") != NULL &&
           strstr(text, "LIMIT") == NULL;
}

/* The last two parameters of a paged one are LIMIT and OFFSET. */
static void add_page(struct buf *out, const char *text)
{
    int last = 0;

    for (const char *at = strchr(text, '?'); at != NULL; at = strchr(at + 1, '?')) {
        const int n = (int)strtol(at + 1, NULL, 10);
        last = n > last ? n : last;
    }
    buf_printf(out, " LIMIT $%d OFFSET $%d", last + 1, last + 2);
}

char *pg_text(enum sql which)
{
    struct buf out;
    int64_t max;
    size_t len;

    if (which == SQL_BEGIN || which == SQL_COMMIT || which == SQL_ROLLBACK) {
        return NULL;
    }
    buf_init(&out, TEXT_MAX);
    translate(&out, other_text(which));
    if (pg_is_paged(which, &max)) {
        add_page(&out, SQLITE_TEXT[which]);
    }
    buf_add_byte(&out, 0);
    if (out.bad != BT_OK) {
        buf_done(&out);
        return NULL;
    }
    return (char *)buf_take(&out, &len);
}
