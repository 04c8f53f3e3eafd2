/* Which shard a node gives away. Pure. */
#ifndef SUPERVISOR_BALANCE_H
#define SUPERVISOR_BALANCE_H

#include "supervisor/journal/owner.h"

/* A shard that this node should give away now, and to whom; NULL: none. A node that drains gives
 * all, another one what it has more of than the node with the least, while the difference is more
 * than one. Nothing while a shard is on its way. */
const struct journal_node *balance_give(const char *self, const struct journal_shard *shards,
                                        uint32_t shards_n, const struct journal_node *nodes,
                                        uint32_t nodes_n, uint32_t *ret_shard);
#endif
