/*
 * A journal that several daemons share: who owns it, seen by those who do not. For a standby, and
 * for `baton fleet`. Only PostgreSQL has such journals. One thread.
 */
#ifndef JOURNAL_OWNER_H
#define JOURNAL_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"

enum { JOURNAL_NODE_MAX = 64, JOURNAL_SERVER_MAX = 64, JOURNAL_STANDBYS_MAX = 256 };

struct journal_owner {
    char node[JOURNAL_NODE_MAX + 1]; /* "" = nobody yet */
    uint64_t epoch;                  /* how many times it was taken */
    uint64_t seq;                    /* of the newest event */
    int64_t lease_left_ms;           /* by the server's clock; not above 0: it is over */
    bool connected;                  /* the owner's connection is there */
    int format, format_known;        /* of the tables, 0 = there are none; of this program */
    char server[JOURNAL_SERVER_MAX]; /* its version */
    /* synchronous_standby_names; "" = commits wait for no other server */
    char standbys[JOURNAL_STANDBYS_MAX];
};

struct journal_look;

/* Connects. BT_UNAVAILABLE: no connection. BT_INVALID: this address, or this build, has no such
 * journals. The caller closes *ret. */
BT_MUST_CHECK enum bt_code journal_look_open(const char *url, uint32_t lease_ms,
                                             struct journal_look **ret, struct bt_error *err);
/* BT_UNAVAILABLE: the connection is lost; open another one. */
BT_MUST_CHECK enum bt_code journal_look(struct journal_look *l, struct journal_owner *ret,
                                        struct bt_error *err);
/* Makes the tables, or brings them to this program's format. BT_INVALID: they are of a newer one.
 * BT_CONFLICT: a daemon owns the journal, and the format would change. */
BT_MUST_CHECK enum bt_code journal_look_init(struct journal_look *l, struct bt_error *err);
/* Accepts NULL. */
void journal_look_close(struct journal_look *l);

/* Whether the address is of such a journal. */
bool journal_is_shared(const char *url);
/* The lock of a state directory whose journal is elsewhere, as journal_open_sqlite takes it; until
 * the end of the process. BT_CONFLICT: another daemon has it. */
BT_MUST_CHECK enum bt_code journal_lock_dir(const char *dir, struct bt_error *err);
#endif
