#include "protocol/base/shard.h"

enum { HIGH_BITS = 0x3F, LOW_SHIFT = 4, LOW_BITS = 0x0F, KEEP_HIGH = 0xC0 };

uint32_t shard_of_id(struct uuid id)
{
    return (uint32_t)(id.b[8] & HIGH_BITS) << LOW_SHIFT | (uint32_t)id.b[9] >> LOW_SHIFT;
}

struct uuid shard_put(struct uuid id, uint32_t shard)
{
    id.b[8] = (uint8_t)((id.b[8] & KEEP_HIGH) | (shard >> LOW_SHIFT & HIGH_BITS));
    id.b[9] = (uint8_t)((shard & LOW_BITS) << LOW_SHIFT | (id.b[9] & LOW_BITS));
    return id;
}

uint32_t shard_of_key(struct str key, uint32_t shards)
{
    const uint64_t h = str_hash(key);

    return ((uint32_t)(h >> 32) ^ (uint32_t)h) % shards;
}
