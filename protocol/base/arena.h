/* Many small allocations with one end: chunks, freed together. Memory is aligned for any type and
 * zeroed. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "protocol/base/str.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    size_t used; /* in the newest chunk */
    size_t total;
    size_t max; /* 0 = no cap */
};

/* NULL when out of memory or over the cap. Valid until arena_done. A zeroed struct arena is ready
 * for use. */
void *arena_alloc(struct arena *a, size_t n);
/* A terminated copy; .ptr is NULL when out of memory. */
struct str arena_str(struct arena *a, struct str s);
/* Forgets all allocations but keeps the first chunk for the next use. */
void arena_reset(struct arena *a);
void arena_done(struct arena *a);
#endif
