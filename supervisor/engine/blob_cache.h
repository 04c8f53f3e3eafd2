/*
 * The results used last, in memory, so that a step's context needs no read of the journal. Keyed by
 * blob id (results are immutable, so nothing is ever stale). Bounded in entries and bytes. Not
 * thread-safe: the loop thread's.
 */
#ifndef ENGINE_BLOB_CACHE_H
#define ENGINE_BLOB_CACHE_H

#include <stdint.h>

#include "protocol/wire/doc.h"

struct blob_cache_entry {
    uint64_t id; /* 0 = free */
    uint8_t *bytes;
    size_t len;
    bool passing; /* not found any more */
};

enum { BLOB_CACHE_SLOTS = 65536, BLOB_CACHE_BYTES = 64 * 1024 * 1024 };

/* Blob ids are consecutive, so an id's slot is the id modulo the size. When bytes run short a hand
 * goes round the slots and frees what it meets: about the order in which they came, and O(1) per
 * blob over time. */
struct blob_cache {
    struct blob_cache_entry *slots;
    size_t bytes;
    uint32_t hand;
};

/* Copies. Not being able to cache is no failure. Ends the validity of what blob_cache_get gave. */
void blob_cache_put(struct blob_cache *c, uint64_t id, const void *bytes, size_t len);
/* .ptr NULL when it is not cached; valid until the next put. */
struct doc blob_cache_get(const struct blob_cache *c, uint64_t id);
/* It is not found any more; what blob_cache_get gave for it stays valid as before. */
void blob_cache_pass(struct blob_cache *c, uint64_t id);
/* It will not be asked for again. Ends the validity of what blob_cache_get gave for it. */
void blob_cache_forget(struct blob_cache *c, uint64_t id);
void blob_cache_done(struct blob_cache *c);
#endif
