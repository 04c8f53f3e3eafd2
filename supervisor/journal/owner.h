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
    uint32_t shards;                 /* of the fleet; 0 = there are no tables */
    uint64_t epoch;                  /* how many times it was taken */
    uint64_t seq;                    /* of the newest event */
    int64_t lease_left_ms;           /* by the server's clock; not above 0: it is over */
    bool connected;                  /* the owner's connection is there */
    int format, format_known;        /* what a program must know; 0 = no tables; what this knows */
    int tables;                      /* the format to which the tables were brought */
    char server[JOURNAL_SERVER_MAX]; /* its version */
    /* synchronous_standby_names; "" = commits wait for no other server */
    char standbys[JOURNAL_STANDBYS_MAX];
};

struct journal_look;

/* Connects, to look at one shard. BT_UNAVAILABLE: no connection. BT_INVALID: this address, or this
 * build, has no such journals. The caller closes *ret. */
BT_MUST_CHECK enum bt_code journal_look_open(const char *url, uint32_t lease_ms, uint32_t shard,
                                             struct journal_look **ret, struct bt_error *err);
/* BT_UNAVAILABLE: the connection is lost; open another one. */
BT_MUST_CHECK enum bt_code journal_look(struct journal_look *l, struct journal_owner *ret,
                                        struct bt_error *err);
/* Writes down that the journal of this shard was rewound: it had events up to lost_seq, and has
 * those up to kept_seq (0: not known) as they were. Who leads tells it with an event. */
BT_MUST_CHECK enum bt_code journal_look_rewound(struct journal_look *l, uint64_t kept_seq,
                                                uint64_t lost_seq, struct bt_error *err);
/* Makes the tables of so many shards (0: of those that there are, at least one), or brings them to
 * this program's format. BT_INVALID: they are of a newer one. BT_CONFLICT: a daemon owns the
 * journal, and the format would change; or a fleet that has worked has another number of shards. */
BT_MUST_CHECK enum bt_code journal_look_init(struct journal_look *l, uint32_t shards,
                                             struct bt_error *err);
/* Adds what this program's tables have and an older program does not miss; the format stays. */
BT_MUST_CHECK enum bt_code journal_look_expand(struct journal_look *l, struct bt_error *err);
/* Raises the format to this program's: programs that do not know it open no shard any more.
 * BT_CONFLICT: one that lives does not know it; *err names it. */
BT_MUST_CHECK enum bt_code journal_look_finalize(struct journal_look *l, struct bt_error *err);
/* Makes more shards, `shards` in all. Each leader is fenced, so that no plan gets its shard by two
 * numbers, and its node takes its shard again. BT_INVALID: not more than there are, or there is
 * one. BT_CONFLICT: the format is older, or nobody has led yet. */
BT_MUST_CHECK enum bt_code journal_look_grow(struct journal_look *l, uint32_t shards,
                                             struct bt_error *err);
/* Accepts NULL. */
void journal_look_close(struct journal_look *l);

/* ---- a fleet of several shards ---- */
enum { JOURNAL_PLACES_MAX = 32 * 1024, JOURNAL_VERSION_MAX = 32, JOURNAL_CONFIG_MAX = 16 };

/* A shard, as all see it. */
struct journal_shard {
    uint32_t shard;
    uint64_t epoch, seq;
    int64_t lease_left_ms;
    char node[JOURNAL_NODE_MAX + 1];     /* "" = nobody yet */
    char moves_to[JOURNAL_NODE_MAX + 1]; /* "" = nobody: it is taken by who is there */
    bool led;                            /* the lease goes on */
};

struct journal_node {
    char node[JOURNAL_NODE_MAX + 1];
    bool alive;                            /* its lease goes on */
    bool draining;                         /* it takes nothing */
    char *places;                          /* JSON: where its shards listen; the caller frees it */
    char version[JOURNAL_VERSION_MAX + 1]; /* of its program; "" = an older one, which says none */
    int knows;                             /* the newest format of the tables that it knows */
    char config[JOURNAL_CONFIG_MAX + 1];   /* hash of its configuration; "" = it says none */
};

/* How long this node, who looks, should leave the shard to others: 0 = it may take it now. An
 * orphan is taken at once by nodes that have less than their share, by others a lease later; one
 * that moves is left to where it goes. */
BT_MUST_CHECK enum bt_code journal_look_wait(struct journal_look *l, const char *node,
                                             int64_t *ret_ms, struct bt_error *err);
/* The node lives, with that configuration (its hash; "" = not said), and its shards listen there
 * (JSON). */
BT_MUST_CHECK enum bt_code journal_look_beat(struct journal_look *l, const char *node,
                                             const char *places, const char *config,
                                             struct bt_error *err);
/* The node ends: others need not wait for its lease. */
BT_MUST_CHECK enum bt_code journal_look_leave(struct journal_look *l, const char *node,
                                              struct bt_error *err);
/* At most max; *ret_n is how many there are. */
BT_MUST_CHECK enum bt_code journal_look_shards(struct journal_look *l, struct journal_shard *ret,
                                               uint32_t max, uint32_t *ret_n, struct bt_error *err);
BT_MUST_CHECK enum bt_code journal_look_nodes(struct journal_look *l, struct journal_node *ret,
                                              uint32_t max, uint32_t *ret_n, struct bt_error *err);
/* Takes the shard from who leads it, and lets the node take it. BT_NOT_FOUND: no such node lives,
 * or no such shard. */
BT_MUST_CHECK enum bt_code journal_look_move(struct journal_look *l, uint32_t shard,
                                             const char *node, struct bt_error *err);
/* A node that drains takes nothing, and its shards go to the others. */
BT_MUST_CHECK enum bt_code journal_look_drain(struct journal_look *l, const char *node, bool drain,
                                              struct bt_error *err);

/* Whether the address is of such a journal. */
bool journal_is_shared(const char *url);
/* The lock of a state directory whose journal is elsewhere, as journal_open_sqlite takes it; until
 * the end of the process. BT_CONFLICT: another daemon has it. */
BT_MUST_CHECK enum bt_code journal_lock_dir(const char *dir, struct bt_error *err);
#endif
