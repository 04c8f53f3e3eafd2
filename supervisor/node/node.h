/*
 * A node of a fleet of several shards: a small process without threads or sockets. It starts one
 * batond for each shard, which leads the shard or stands by; it tells the others that it lives and
 * where its shards listen, writes the map that its shards answer from, and gives shards away when
 * it has more than its share.
 *
 *     STATE/fleet.json          the map, for the shards of this node
 *     STATE/endpoints.json      one shard, for clients of this host: it knows the others
 *     STATE/shards/N            the state directory of a shard
 */
#ifndef SUPERVISOR_NODE_H
#define SUPERVISOR_NODE_H

#include <stdint.h>

#include "protocol/base/err.h"

struct node_options {
    const char *state_dir;
    const char *fleet_url;
    const char *name;           /* of this node; not empty */
    const char *remote;         /* listen.remote, of shard 0; "" = none */
    const char *const *gateway; /* its command, absolute; NULL = none */
    uint32_t lease_ms;
    uint32_t shards;    /* at the start, more than 1; a fleet may grow */
    const char *config; /* hash of the configuration */
    int ready_fd;       /* gets "ready\n" when every shard is led by someone; -1 = none */
};

/* How many shards the fleet has, 1 when there are no tables yet. Waits for the server, until
 * SIGTERM or SIGINT: *ret_stop. */
BT_MUST_CHECK enum bt_code node_count_shards(const char *url, uint32_t lease_ms, uint32_t *ret,
                                             bool *ret_stop, struct bt_error *err);
/* Runs until SIGTERM or SIGINT, or until a shard was asked to stop; the exit code. argv: of this
 * process, which its shards get, too. */
int node_run(const struct node_options *opt, char **argv);

/* An address with that number added to its port; the same when the port is 0 or a name. */
void node_url(const char *url, uint32_t shard, char *ret, size_t cap);
#endif
