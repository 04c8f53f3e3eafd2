/*
 * A hash map from strings to 32-bit numbers: open addressing, linear probing, backward-shift
 * deletion (Knuth, TAOCP 3, 6.4 R). Keys are borrowed and must live as long as their entry. The map
 * grows by itself; map_put returns BT_NOMEM when it cannot. Not thread-safe.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

#define MAP_NONE UINT32_MAX

struct map_slot {
    struct str key; /* .ptr NULL = a free slot */
    uint32_t value;
};

struct map {
    struct map_slot *slots;
    uint32_t cap; /* a power of two */
    uint32_t used;
};

/* A zeroed struct map is empty and ready. */
void map_done(struct map *m);
/* Returns MAP_NONE when the map does not have the key. */
uint32_t map_get(const struct map *m, struct str key);
/* Adds the key, or replaces the value and the borrowed key of an equal one. */
BT_MUST_CHECK enum bt_code map_put(struct map *m, struct str key, uint32_t value);
/* Removes the key. Returns its value, or MAP_NONE. */
uint32_t map_remove(struct map *m, struct str key);
#endif
