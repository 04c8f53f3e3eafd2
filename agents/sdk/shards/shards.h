/*
 * An agent for a fleet of several shards (--shards N): one process for each shard, all of one
 * program. Each registers with its shard under the same instance id and keeps its own session and
 * epoch, as if the shard were the only one. Their places are one pool: a step that finds all taken
 * is answered BUSY, so all of them together never run more than the capacity says.
 */
#ifndef SDK_SHARDS_SHARDS_H
#define SDK_SHARDS_SHARDS_H

#include "agents/sdk/options.h"

/* With more than one shard: forks, and returns in each child with the options of its shard. The
 * parent ends with them. Before threads exist. */
BT_MUST_CHECK enum bt_code shards_begin(struct options *o, uint32_t capacity, struct bt_error *err);
/* Where the shard is led when this node does not, and another one of this host does. False: nowhere
 * that this process can reach. ret has STATE_URL_MAX + 1 bytes. */
bool shards_elsewhere(const struct options *o, char *ret);
/* Takes a place; with one shard there always is one. False: all are taken. Any thread. */
BT_MUST_CHECK bool shards_place_take(void);
/* Gives it back when the step has ended. */
void shards_place_put(void);
#endif
