#include "supervisor/bus/blob_cache.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct blob_cache *c, struct blob_cache_entry *e)
{
    c->bytes -= e->len;
    free(e->bytes);
    *e = (struct blob_cache_entry){0};
}

void blob_cache_put(struct blob_cache *c, uint64_t id, const void *bytes, size_t len)
{
    struct blob_cache_entry *e;

    if (c->slots == NULL) {
        c->slots = calloc(BLOB_CACHE_SLOTS, sizeof *c->slots);
        c->oldest = id;
    }
    if (c->slots == NULL || len > BLOB_CACHE_BYTES / 4) {
        return;
    }
    while (c->bytes + len > BLOB_CACHE_BYTES && c->oldest <= c->newest) {
        e = &c->slots[c->oldest % BLOB_CACHE_SLOTS];
        if (e->id == c->oldest) {
            drop(c, e);
        }
        c->oldest++;
    }
    e = &c->slots[id % BLOB_CACHE_SLOTS];
    if (e->id != 0) {
        drop(c, e);
    }
    e->bytes = malloc(len == 0 ? 1 : len);
    if (e->bytes == NULL) {
        return;
    }
    memcpy(e->bytes, bytes, len);
    e->id = id;
    e->len = len;
    c->bytes += len;
    c->newest = id > c->newest ? id : c->newest;
    c->oldest = id < c->oldest ? id : c->oldest;
}

struct doc blob_cache_get(const struct blob_cache *c, uint64_t id)
{
    const struct blob_cache_entry *e;

    if (c->slots == NULL) {
        return (struct doc){NULL, 0};
    }
    e = &c->slots[id % BLOB_CACHE_SLOTS];
    return e->id == id && id != 0 ? (struct doc){e->bytes, e->len} : (struct doc){NULL, 0};
}

void blob_cache_done(struct blob_cache *c)
{
    for (uint32_t i = 0; c->slots != NULL && i < BLOB_CACHE_SLOTS; i++) {
        free(c->slots[i].bytes);
    }
    free(c->slots);
    *c = (struct blob_cache){0};
}
