/*
 * An agent for a fleet of several shards (--shards N): one process for each shard, all of one
 * program. Each registers with its shard under the same instance id and keeps its own session and
 * epoch, as if the shard were the only one. Their places are one pool: a step that finds all taken
 * waits in its process, so the machine never runs more than the capacity says.
 */
#ifndef SDK_SHARDS_SHARDS_H
#define SDK_SHARDS_SHARDS_H

#include "agents/sdk/options.h"
#include "agents/sdk/step.h"

/* With more than one shard: forks, and returns in each child with the options of its shard. The
 * parent ends with them. Before threads exist. */
BT_MUST_CHECK enum bt_code shards_begin(struct options *o, uint32_t capacity, struct bt_error *err);
/* Waits for a place; at once with one shard. False: the step was cancelled, or its time is over.
 * Any thread. */
bool shards_place_take(const struct bt_step *step);
void shards_place_put(void);
#endif
