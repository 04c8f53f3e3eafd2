/* Shared by the files of the PostgreSQL store. */
#ifndef JOURNAL_POSTGRES_INTERNAL_H
#define JOURNAL_POSTGRES_INTERNAL_H

#include <libpq-fe.h>

#include "supervisor/journal/owner.h"
#include "supervisor/journal/sql.h"

enum {
    PG_FORMAT = 3, /* of the tables; see postgres_schema.c */
    PG_PARAMS_MAX = 14,
    PG_AHEAD_MAX = 64,  /* statements */
    PG_FIRST_PAGE = 64, /* rows */
    PG_TAKES_MAX = 8,
    PG_TRIES_MAX = 8, /* of one turn */
    PG_NODE_MAX = 64,
    PG_STATE_LEN = 5, /* of an SQLSTATE */
    PG_LEASE_MS = 3000,
    PG_LEASE_MIN_MS = 100,
    PG_QUEUE_MAX = 256 * 1024 * 1024
};

/* Of a connection that looks: programs before format 3 said "baton-look". */
#define PG_LOOK_NAME "baton-look/3"

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

/* A result that was read ahead. */
struct pg_ahead {
    enum sql which;
    uint64_t ix;    /* of the plan */
    uint64_t last;  /* the committed position then */
    PGresult *rows; /* NULL: taken */
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
    size_t sent;         /* of them, in the transaction: kept until it has ended */
    bool in_transaction; /* a read made it necessary to send what there was */
    uint64_t turns;      /* turns without rows so far: they leave a mark */
    /* the last pipeline */
    PGresult *result;             /* of its last statement */
    char state[PG_STATE_LEN + 1]; /* of its first error; "" = none, or no answer */
    char message[BT_ERROR_MSG_MAX / 2];
    bool lost;   /* no answer: what became of it is not known */
    bool behind; /* answers of this connection were not taken: the next ones would be those */
    struct pg_ahead ahead[PG_AHEAD_MAX];
    uint32_t ahead_n;
    uint32_t ahead_at; /* answers of the pipeline that reads ahead; ahead_n: it is another one */
    /* ownership */
    uint32_t shard;
    uint32_t there;  /* shards of the fleet */
    uint32_t shards; /* that the caller believes in; 0 = not said */
    char config[JOURNAL_CONFIG_MAX + 1];
    char before[PG_NODE_MAX + 1]; /* who led it before; "" = nobody */
    uint64_t epoch;
    bool replicated;  /* commits wait for a standby, and that is checked */
    uint64_t checked; /* when, ms of CLOCK_BOOTTIME */
    uint32_t lease_ms;
    uint64_t looked;  /* for rewinds; when, ms of CLOCK_BOOTTIME */
    uint64_t renewed; /* when the last renewal was sent, ms of CLOCK_BOOTTIME */
    char node[PG_NODE_MAX + 1];
    /* riding through */
    char *url;
    bool rides;  /* it owns the journal, and may connect again */
    bool riding; /* it does: what fails now is tried again */
    uint32_t hosts_tried;
    int64_t takes[PG_TAKES_MAX]; /* backends that took the next epoch, perhaps; 0 = none */
    uint32_t takes_n;            /* of all times: the next one takes this place, modulo */
    uint64_t called;             /* when base.waits was called last */
    uint64_t asked;              /* when the last pipeline was */
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
extern const char *const PG_TURN;   /* the mark of a turn without rows */

/* ---- postgres_open.c, postgres_connect.c ---- */
void pg_name(const struct pg_journal *p, char *ret, size_t cap); /* as the server sees it */
/* *ret is the caller's in any case; it may be NULL. */
BT_MUST_CHECK enum bt_code pg_connect(const char *url, const char *name, uint32_t lease_ms,
                                      PGconn **ret, struct bt_error *err);

/* What each connection sets; a SELECT, so that it fits a pipeline. */
void pg_settings_text(const struct pg_journal *p, char *ret, size_t cap);

/* ---- postgres_ride.c: another connection, and what became of the last turn ---- */
/* Whether the last statements were lost, and it can go on. `sent`: they were sent as a whole. */
bool pg_is_lost(struct pg_journal *p, bool sent);
/*
 * Connects again, waits while nobody answers, and takes the next epoch: then nothing of the old
 * connection can happen any more. *ret_pos: what is stored. The open batch is there, unsent.
 * BT_IO: dead, and *err says why.
 */
BT_MUST_CHECK enum bt_code pg_ride(struct pg_journal *p, const char *what, uint64_t *ret_pos,
                                   struct bt_error *err);
/* The same between turns: true when what was lost can be asked again. */
bool pg_ride_on(struct pg_journal *p, bool sent, const char *what);

/* ---- postgres_connect.c ---- */
/* As pg_connect, to one of its hosts, the next one at each call; base.waits is called meanwhile. */
BT_MUST_CHECK enum bt_code pg_connect_again(struct pg_journal *p, struct bt_error *err);

/* ---- postgres_rewound.c: history that a failover lost ---- */
/* Writes down that it was; kept_seq 0: nobody knows where. Who leads tells it with an event. */
void pg_note_rewound(struct pg_journal *p, uint64_t kept_seq, uint64_t lost_seq);
/* Fills base.rewound with what nobody has told. */
BT_MUST_CHECK enum bt_code pg_find_rewound(struct pg_journal *p, struct bt_error *err);
enum bt_code pg_rewound_told(struct journal *j, struct bt_error *err);
enum bt_code pg_parted(struct journal *j, uint64_t seq, uint64_t *ret, struct bt_error *err);

/* ---- postgres_schema.c ---- */
/* Makes the tables, or adds what this program's have and an older one does not miss; see
 * pg_finalize. BT_INVALID: they are of a newer one. */
BT_MUST_CHECK enum bt_code pg_migrate(PGconn *conn, struct bt_error *err);
/* The same, and makes so many shards (0: what there is) of a fleet that nobody has led yet.
 * BT_CONFLICT: it has another number of them. */
BT_MUST_CHECK enum bt_code pg_migrate_to(PGconn *conn, uint32_t shards, struct bt_error *err);
/* Within a transaction: the tables as pg_migrate makes them, with fleet locked; one more shard. */
BT_MUST_CHECK enum bt_code pg_migrate_in(PGconn *conn, struct bt_error *err);
BT_MUST_CHECK enum bt_code pg_make_shard(PGconn *conn, uint32_t shard, struct bt_error *err);
/* Runs it; *ret, when not NULL, is the number that it returns, -1 = none. */
BT_MUST_CHECK enum bt_code pg_run(PGconn *conn, const char *sql, int *ret, struct bt_error *err);

/* ---- postgres_grow.c: more shards, and the format ---- */
/* base.maps: the older numbers of shards that still count. BT_IO: there are other shards than the
 * caller believes. */
BT_MUST_CHECK enum bt_code pg_find_maps(struct pg_journal *p, struct bt_error *err);
enum bt_code pg_key_is_at(struct journal *j, uint32_t shard, enum journal_key kind, struct str key,
                          bool *ret, struct bt_error *err);
/* Tells the others what this program is, and notes when who led before has another configuration.
 */
BT_MUST_CHECK enum bt_code pg_introduce(struct pg_journal *p, struct bt_error *err);
/* BT_IO: the format is one that this program does not know, since it opened the journal. */
BT_MUST_CHECK enum bt_code pg_check_format(struct pg_journal *p, struct bt_error *err);

/* ---- postgres_look.c ---- */
/* NULL: *err. The caller clears it. */
PGresult *pg_look_query(struct journal_look *l, const char *sql, struct bt_error *err);

/* ---- postgres_stmt.c ---- */
void pg_statements_init(struct pg_journal *p);
/* Prepares all on the server. */
BT_MUST_CHECK enum bt_code pg_statements_prepare(struct pg_journal *p, struct bt_error *err);
void pg_statements_done(struct pg_journal *p);

/* ---- postgres_ahead.c: the open plans of a start, read in few round trips ---- */
void pg_ahead(struct sql_journal *s, const uint64_t *ix, size_t n);
/* The rows of the bound statement, when they were read ahead and nothing has changed them; the
 * caller's. */
PGresult *pg_ahead_take(struct pg_stmt *s);
/* A write changes what the plan is. */
void pg_ahead_forget(struct pg_journal *p, const struct pg_stmt *write);

/* ---- postgres_pipe.c: what is sent, and the answers to it ---- */
void pg_put_value(struct pg_value *to, const void *bytes, size_t len);
void pg_put_number(struct pg_value *to, int64_t v);
bool pg_send(struct pg_journal *p, const char *name, const struct pg_value *v, int n);
bool pg_send_text(struct pg_journal *p, const char *sql);
/* Ends the pipeline and waits for all its answers, at most half a lease. False: p->state,
 * p->message, p->lost. */
bool pg_sync(struct pg_journal *p);
enum { PG_SLICE_MS = 20, PG_SLOW_MS = 250 /* an answer that takes long */ };
/* Waits a slice of time at most until the descriptor (-1 = none) can be read, or written. False:
 * base.waits wants no more of it. */
bool pg_wait_slice(struct pg_journal *p, int fd, short events, uint64_t until);
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
/* SQL: the lease of a shard, or of a node, goes on by the server's clock. No owner has one that is
 * longer than the longest that may be set: then the clock was put back since. */
#define PG_GOES_ON                                                                                 \
    "(lease_until > clock_timestamp() AND lease_until <= clock_timestamp() + interval '60 "        \
    "seconds')"
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
