#include "supervisor/node/balance.h"

#include <string.h>

static uint32_t led_by(const struct journal_shard *shards, uint32_t n, const char *node)
{
    uint32_t led = 0;

    for (uint32_t i = 0; i < n; i++) {
        led += shards[i].led && strcmp(shards[i].node, node) == 0;
    }
    return led;
}

/* One at a time: while a shard moves, nothing else does. */
const struct journal_node *balance_give(const char *self, const struct journal_shard *shards,
                                        uint32_t shards_n, const struct journal_node *nodes,
                                        uint32_t nodes_n, uint32_t *ret_shard)
{
    const uint32_t mine = led_by(shards, shards_n, self);
    const struct journal_node *least = NULL;
    uint32_t least_n = 0;
    bool drains = false;
    bool found = false;

    for (uint32_t i = 0; i < nodes_n; i++) {
        const uint32_t led = led_by(shards, shards_n, nodes[i].node);
        if (strcmp(nodes[i].node, self) == 0) {
            drains = nodes[i].draining;
        } else if (nodes[i].alive && !nodes[i].draining && (least == NULL || led < least_n)) {
            least = &nodes[i];
            least_n = led;
        }
    }
    for (uint32_t i = 0; i < shards_n; i++) {
        if (shards[i].moves_to[0] != 0 && !shards[i].led) {
            return NULL;
        }
        if (shards[i].led && strcmp(shards[i].node, self) == 0) {
            *ret_shard = shards[i].shard;
            found = true;
        }
    }
    return least != NULL && found && (drains || mine > least_n + 1) ? least : NULL;
}
