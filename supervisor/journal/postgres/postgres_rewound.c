/* History that a failover lost, written down by whoever sees it: an owner whose acknowledged rows
 * are not there, or a standby that had seen more. Whoever leads tells it once, with an event. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/log.h"
#include "supervisor/journal/owner.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { SQL_LEN = 512 };

static void note_text(uint32_t shard, uint64_t kept_seq, uint64_t lost_seq, char ret[SQL_LEN])
{
    (void)snprintf(ret, SQL_LEN,
                   "INSERT INTO baton.rewinds(shard, kept, lost) VALUES(%" PRIu32 ", %" PRIu64
                   ", %" PRIu64 ") ON CONFLICT DO NOTHING",
                   shard, kept_seq, lost_seq);
}

void pg_note_rewound(struct pg_journal *p, uint64_t kept_seq, uint64_t lost_seq)
{
    char sql[SQL_LEN];

    log_err("journal.rewound",
            "the server lacks events that were acknowledged, up to %" PRIu64
            "; the last one that is as it was is %" PRIu64 " (0: not known)",
            lost_seq, kept_seq);
    note_text(p->shard, kept_seq, lost_seq, sql);
    if (!pg_send_text(p, sql) || !pg_sync(p)) {
        log_warn("journal.rewound", "it cannot be written down: %s", p->message);
    }
}

enum bt_code journal_look_rewound(struct journal_look *l, uint64_t kept_seq, uint64_t lost_seq,
                                  struct bt_error *err)
{
    char sql[SQL_LEN];
    PGresult *r;
    enum bt_code code = BT_OK;

    note_text(l->shard, kept_seq, lost_seq, sql);
    r = PQexec(l->conn, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK) {
        code = err_set(err, BT_IO, "cannot write down that the journal was rewound: PostgreSQL: %s",
                       PQerrorMessage(l->conn));
    }
    PQclear(r);
    return code;
}

enum bt_code pg_find_rewound(struct pg_journal *p, struct bt_error *err)
{
    char sql[SQL_LEN];
    int64_t lost = 0;
    int64_t kept = 0;
    enum bt_code code;

    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(max(lost), 0) FROM baton.rewinds WHERE shard = %" PRIu32
                   " AND NOT told",
                   p->shard);
    code = pg_number(p, sql, &lost, err);
    if (code == BT_OK && lost > 0) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT min(kept) FROM baton.rewinds WHERE shard = %" PRIu32 " AND NOT told",
                       p->shard);
        code = pg_number(p, sql, &kept, err);
    }
    if (code == BT_OK) {
        p->sql.base.rewound =
            (struct journal_rewound){.kept_seq = (uint64_t)kept, .lost_seq = (uint64_t)lost};
    }
    return code;
}

enum bt_code pg_rewound_told(struct journal *j, struct bt_error *err)
{
    struct pg_journal *p = pg_of(j);
    char sql[SQL_LEN];
    int64_t n;

    (void)snprintf(sql, sizeof sql,
                   "WITH u AS (UPDATE baton.rewinds SET told = true WHERE shard = %" PRIu32
                   " AND NOT told AND lost <= %" PRIu64 " RETURNING 1) SELECT count(*) FROM u",
                   p->shard, j->rewound.lost_seq);
    return pg_number(p, sql, &n, err);
}

/* The earliest of all: how old a reader's cursor is nobody knows. */
enum bt_code pg_parted(struct journal *j, uint64_t seq, uint64_t *ret, struct bt_error *err)
{
    struct pg_journal *p = pg_of(j);
    char sql[SQL_LEN];
    int64_t kept = 0;
    enum bt_code code;

    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(min(kept), 0) FROM baton.rewinds WHERE shard = %" PRIu32
                   " AND kept < %" PRIu64,
                   p->shard, seq);
    code = pg_number(p, sql, &kept, err);
    *ret = (uint64_t)kept + 1;
    return code;
}
