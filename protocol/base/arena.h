/* An arena: many small allocations that are freed together. Memory is zeroed and aligned for any
 * type. One owner; not thread-safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "protocol/base/str.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    size_t used; /* in the newest chunk */
    size_t total;
    size_t max; /* bytes; 0 = no cap */
};

/* Returns NULL when out of memory or over the cap. The memory is valid until arena_done or
 * arena_reset. A zeroed struct arena is ready for use. */
void *arena_alloc(struct arena *a, size_t n);
/* The same, but the bytes are whatever they were: the caller writes what it reads. */
void *arena_room(struct arena *a, size_t n);
/* Returns a copy with a terminating zero; .ptr is NULL when out of memory. */
struct str arena_str(struct arena *a, struct str s);
/* Drops all allocations and keeps the first chunk for the next use. */
void arena_reset(struct arena *a);
void arena_done(struct arena *a);
#endif
