/* Shared by the files of the node. */
#ifndef SUPERVISOR_NODE_INTERNAL_H
#define SUPERVISOR_NODE_INTERNAL_H

#include <sys/types.h>

#include "protocol/base/msec.h"
#include "protocol/base/shard.h"
#include "protocol/client/state.h"
#include "supervisor/journal/owner.h"
#include "supervisor/node/node.h"

enum { NODES_MAX = 64, NODE_PATH_MAX = 4096 };

struct node_child {
    pid_t pid;      /* 0 = it does not run */
    msec start_at;  /* not before */
    uint32_t fails; /* in a row, each soon after its start */
    msec started;
};

struct node {
    const struct node_options *opt;
    char **argv;
    int signals;
    uint32_t all; /* shards of the fleet */
    struct uuid instance;
    struct node_child children[SHARDS_MAX];
    struct node_child gateway;
    struct journal_look *look; /* NULL: the server is to be reached again */
    struct journal_shard shards[SHARDS_MAX];
    struct journal_node nodes[NODES_MAX];
    uint32_t shards_n, nodes_n;
    struct buf written;           /* the map, as it was last written */
    struct buf places;            /* where the shards of this node listen */
    char seed[STATE_URL_MAX + 1]; /* what endpoints.json names */
    msec moved_at;
    bool began;
    bool ready; /* it was said */
    bool stopping;
    int exit_code;
};

/* ---- node_map.c ---- */
/* STATE/shards/N. */
void node_shard_dir(const struct node *n, uint32_t shard, char ret[NODE_PATH_MAX]);
/* Replaces n->places by where its shards listen. */
void node_find_places(struct node *n);
/* Writes fleet.json and endpoints.json when they changed. True: every shard is led, and its address
 * is known. */
bool node_write_map(struct node *n);
#endif
