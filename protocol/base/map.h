/*
 * From a string to a 32-bit number: open addressing, linear probing, backward-shift deletion
 * (Knuth, TAOCP 3, 6.4 R). Keys are borrowed: they must live as long as their entry. Grows by
 * itself; map_put reports BT_NOMEM.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

#define MAP_NONE UINT32_MAX

struct map_slot {
    struct str key; /* .ptr NULL = free */
    uint32_t value;
};

struct map {
    struct map_slot *slots;
    uint32_t cap; /* a power of two */
    uint32_t used;
};

/* A zeroed struct map is empty and ready. */
void map_done(struct map *m);
/* MAP_NONE when the key is not there. */
uint32_t map_get(const struct map *m, struct str key);
/* Adds, or replaces the value (and the borrowed key) of an equal key. */
BT_MUST_CHECK enum bt_code map_put(struct map *m, struct str key, uint32_t value);
/* Returns the value that was there, or MAP_NONE. */
uint32_t map_remove(struct map *m, struct str key);
#endif
