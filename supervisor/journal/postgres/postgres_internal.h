/* Shared by the files of the PostgreSQL store. */
#ifndef JOURNAL_POSTGRES_INTERNAL_H
#define JOURNAL_POSTGRES_INTERNAL_H

#include <libpq-fe.h>

#include "supervisor/journal/sql.h"

enum {
    PG_FORMAT = 2, /* of the tables; see postgres_schema.c */
    PG_PARAMS_MAX = 14,
    PG_NODE_MAX = 64,
    PG_STATE_LEN = 5, /* of an SQLSTATE */
    PG_LEASE_MS = 3000,
    PG_LEASE_MIN_MS = 100,
    PG_QUEUE_MAX = 256 * 1024 * 1024
};

#define PG_NOT_REPLICATED                                                                          \
    "durability \"replicated\" needs a synchronous standby, and synchronous_standby_names of "     \
    "this "                                                                                        \
    "PostgreSQL is empty: set it, or set fleet.durability: power"

struct pg_journal;

/* What is behind owner.h. */
struct journal_look {
    PGconn *conn;
    uint32_t shard, lease_ms;
};

/* A value as PostgreSQL reads it; NULL: bytes is NULL. */
struct pg_value {
    const void *bytes;
    int len;
    uint64_t number; /* the bytes of a number, big-endian */
};

/* What is behind a struct stmt. */
struct pg_stmt {
    struct pg_journal *of;
    enum sql which;
    struct pg_value bound[PG_PARAMS_MAX];
    int n;          /* parameters */
    PGresult *rows; /* the page that is being read; NULL = none */
    int at;         /* the current row in it; -1 = before the first */
    int64_t before; /* rows in the pages before it */
    int64_t page;   /* rows that were asked for; 0 = all at once */
};

/* A statement that waits in the open batch: its values are in the queue, each with its length. */
struct pg_write {
    enum sql which;
    int n;
    size_t from;
};

struct pg_journal {
    struct sql_journal sql;
    PGconn *conn;
    struct pg_stmt stmts[SQL_COUNT];
    /* the open batch */
    struct buf queue;
    struct pg_write *writes;
    size_t writes_n, writes_cap;
    bool in_transaction; /* a read made it necessary to send what there was */
    /* the last pipeline */
    PGresult *result;             /* of its last statement */
    char state[PG_STATE_LEN + 1]; /* of its first error; "" = none, or no answer */
    char message[BT_ERROR_MSG_MAX / 2];
    bool lost; /* no answer: what became of it is not known */
    /* ownership */
    uint32_t shard;
    uint64_t epoch;
    bool replicated;  /* commits wait for a standby, and that is checked */
    uint64_t checked; /* when, ms of CLOCK_BOOTTIME */
    uint32_t lease_ms;
    uint64_t renewed; /* when the last renewal was sent, ms of CLOCK_BOOTTIME */
    char node[PG_NODE_MAX];
};

static inline struct pg_journal *pg_of(struct journal *j)
{
    return (struct pg_journal *)j;
}

/* ---- postgres_text.c: SQLite's statements as PostgreSQL has them ---- */
/* The caller frees the text; NULL: it is none that this store runs, or there is no memory. */
char *pg_text(enum sql which);
/* Whether its rows are read page by page, and the most rows of one page. */
bool pg_is_paged(enum sql which, int64_t *ret_max);
extern const char *const PG_UNNEST; /* rows of one turn as arrays */

/* ---- postgres_open.c ---- */
/* *ret is the caller's in any case; it may be NULL. */
BT_MUST_CHECK enum bt_code pg_connect(const char *url, const char *name, uint32_t lease_ms,
                                      PGconn **ret, struct bt_error *err);

/* ---- postgres_schema.c ---- */
/* Makes the tables, or brings them to this program's format. BT_INVALID: they are of a newer one.
 */
BT_MUST_CHECK enum bt_code pg_migrate(PGconn *conn, struct bt_error *err);
/* The same, and makes so many shards (0: what there is) of a fleet that nobody has led yet.
 * BT_CONFLICT: it has another number of them. */
BT_MUST_CHECK enum bt_code pg_migrate_to(PGconn *conn, uint32_t shards, struct bt_error *err);

/* ---- postgres_look.c ---- */
/* NULL: *err. The caller clears it. */
PGresult *pg_look_query(struct journal_look *l, const char *sql, struct bt_error *err);

/* ---- postgres_stmt.c ---- */
void pg_statements_init(struct pg_journal *p);
/* Prepares all on the server. */
BT_MUST_CHECK enum bt_code pg_statements_prepare(struct pg_journal *p, struct bt_error *err);
void pg_statements_done(struct pg_journal *p);

/* ---- postgres_pipe.c: what is sent, and the answers to it ---- */
void pg_put_value(struct pg_value *to, const void *bytes, size_t len);
void pg_put_number(struct pg_value *to, int64_t v);
bool pg_send(struct pg_journal *p, const char *name, const struct pg_value *v, int n);
bool pg_send_text(struct pg_journal *p, const char *sql);
/* Ends the pipeline and waits for all its answers, at most half a lease. False: p->state,
 * p->message, p->lost. */
bool pg_sync(struct pg_journal *p);
/* Reads one number, without what waits in the batch. BT_UNAVAILABLE: not now; the batch is as it
 * was. */
BT_MUST_CHECK enum bt_code pg_number(struct pg_journal *p, const char *sql, int64_t *ret,
                                     struct bt_error *err);

/* ---- postgres_size.c ---- */
enum bt_code pg_size(struct journal *j, struct journal_size *ret, struct bt_error *err);

/* ---- postgres_batch.c ---- */
extern const struct sql_engine PG_ENGINE;
/* Sends what the batch has, so that what follows in the pipeline sees it. */
bool pg_send_batch(struct pg_journal *p);
BT_MUST_CHECK enum bt_code pg_commit(struct journal *j, struct bt_error *err);
/* What a failed pipeline means: *err, and whether the journal goes on. */
enum bt_code pg_failed(struct pg_journal *p, const char *what, struct bt_error *err);
void pg_batch_clear(struct pg_journal *p);

/* ---- postgres_lease.c ---- */
/* Takes the shard when nobody has it. BT_CONFLICT: somebody has, and until when. */
BT_MUST_CHECK enum bt_code pg_take(struct pg_journal *p, struct bt_error *err);
BT_MUST_CHECK enum bt_code pg_fence_prepare(struct pg_journal *p, struct bt_error *err);
bool pg_send_fence(struct pg_journal *p, uint64_t from, uint64_t to);
BT_MUST_CHECK enum bt_code pg_keep(struct journal *j, struct bt_error *err);
BT_MUST_CHECK enum bt_code pg_hold(struct journal *j, struct bt_error *err);
/* During long reads: true, or p says what failed. */
bool pg_keep_reading(struct pg_journal *p);
/* Before effects: true when enough of the lease is left, or it could be renewed. */
BT_MUST_CHECK enum bt_code pg_still_owner(struct pg_journal *p, struct bt_error *err);
void pg_release(struct pg_journal *p);
#endif
