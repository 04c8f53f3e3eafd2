/*
 * Shards of a fleet. Ten bits of the random part of an id that a fleet makes are the shard that has
 * it: the low six of byte 8, then the high four of byte 9. Pure.
 */
#ifndef BASE_SHARD_H
#define BASE_SHARD_H

#include "protocol/base/str.h"
#include "protocol/base/uuid.h"

enum { SHARDS_MAX = 64, SHARD_BLOB_BITS = 46 /* below the shard in the id of a blob */ };

uint32_t shard_of_id(struct uuid id);
/* The id with the bits of that shard. */
struct uuid shard_put(struct uuid id, uint32_t shard);
/* FNV-1a of 64 bits over the bytes of the key, upper half xor lower half, modulo shards (at least
 * 1). Part of the wire protocol: clients may route by it. */
uint32_t shard_of_key(struct str key, uint32_t shards);
#endif
