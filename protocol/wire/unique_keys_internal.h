/*
 * Checks that the keys of one map are unique, without allocation and without a slow case. The hash
 * table has a fixed size and lives on the stack. A map with more keys is walked several times, each
 * time for the keys of one range of the hash. Keys that were made to collide are rejected when a
 * pass has used up its probes. Pure.
 */
#ifndef WIRE_UNIQUE_KEYS_INTERNAL_H
#define WIRE_UNIQUE_KEYS_INTERNAL_H

#include "protocol/wire/doc.h"

enum unique_keys_result { KEYS_UNIQUE, KEYS_DUPLICATE, KEYS_COLLIDING };

struct unique_keys_duplicate {
    const uint8_t *at; /* the second of two equal keys */
    uint32_t ordinal;  /* index of that key in the map, from 0 */
    struct str key;
};

/* first = the first key of a map of n pairs whose bytes are well formed. *ret is set for
 * KEYS_DUPLICATE only. */
enum unique_keys_result unique_keys_check(const uint8_t *first, const uint8_t *end, uint32_t n,
                                          struct unique_keys_duplicate *ret);
#endif
