/*
 * A list of a fleet: the answers of all shards as one. A shard that was asked and does not answer
 * is named in `missingShards`. `cursor` is a vector, "S0=CURSOR;S3=CURSOR" of the shards that have
 * more. Pure.
 */
#ifndef WIRE_SHARD_MERGE_H
#define WIRE_SHARD_MERGE_H

#include "protocol/base/err.h"
#include "protocol/base/shard.h"
#include "protocol/wire/doc.h"

enum { SHARD_MERGE_KEYS_MAX = 64 };

struct shard_order;

struct shard_merge {
    const struct shard_order *order; /* NULL: figures, which are added up */
    struct doc of[SHARDS_MAX];       /* .ptr NULL: no answer */
    uint32_t shards;
    bool asked[SHARDS_MAX]; /* a cursor may leave shards out */
    struct str keys[SHARD_MERGE_KEYS_MAX];
    uint32_t keys_n;
};

/* Appends the fields that the shard is asked with, a map: those of the request, with the shard's
 * part of the cursor. False: the shard has no more, and is not asked. */
bool shard_fields(struct doc fields, uint32_t shard, struct buf *out);
/* type: of the request. */
void shard_merge_begin(struct shard_merge *m, struct str type, uint32_t shards);
/* The answer of a shard, a map, which must live as long. The caller sets `asked`. */
void shard_merge_take(struct shard_merge *m, uint32_t shard, struct doc answer);
/* Appends the one answer. BT_UNAVAILABLE: no shard has answered. */
BT_MUST_CHECK enum bt_code shard_merge_write(const struct shard_merge *m, struct buf *out,
                                             struct bt_error *err);
#endif
