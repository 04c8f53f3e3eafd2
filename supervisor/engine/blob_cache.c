#include "supervisor/engine/blob_cache.h"

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
    uint8_t *copy;

    if (c->slots == NULL) {
        c->slots = calloc(BLOB_CACHE_SLOTS, sizeof *c->slots);
    }
    if (c->slots == NULL || id == 0 || len > BLOB_CACHE_BYTES / 4) {
        return;
    }
    copy = malloc(len == 0 ? 1 : len);
    if (copy == NULL) {
        return;
    }
    memcpy(copy, bytes, len); /* before anything is freed: the bytes may be those of an entry */
    e = &c->slots[id % BLOB_CACHE_SLOTS];
    drop(c, e);
    while (c->bytes + len > BLOB_CACHE_BYTES) {
        drop(c, &c->slots[c->hand]);
        c->hand = (c->hand + 1) % BLOB_CACHE_SLOTS;
    }
    *e = (struct blob_cache_entry){.id = id, .bytes = copy, .len = len};
    c->bytes += len;
}

struct doc blob_cache_get(const struct blob_cache *c, uint64_t id)
{
    const struct blob_cache_entry *e;

    if (c->slots == NULL) {
        return (struct doc){NULL, 0};
    }
    e = &c->slots[id % BLOB_CACHE_SLOTS];
    return e->id == id && id != 0 && !e->passing ? (struct doc){e->bytes, e->len}
                                                 : (struct doc){NULL, 0};
}

void blob_cache_pass(struct blob_cache *c, uint64_t id)
{
    if (c->slots != NULL && c->slots[id % BLOB_CACHE_SLOTS].id == id) {
        c->slots[id % BLOB_CACHE_SLOTS].passing = true;
    }
}

void blob_cache_forget(struct blob_cache *c, uint64_t id)
{
    if (c->slots != NULL && c->slots[id % BLOB_CACHE_SLOTS].id == id) {
        drop(c, &c->slots[id % BLOB_CACHE_SLOTS]);
    }
}

void blob_cache_done(struct blob_cache *c)
{
    for (uint32_t i = 0; c->slots != NULL && i < BLOB_CACHE_SLOTS; i++) {
        free(c->slots[i].bytes);
    }
    free(c->slots);
    *c = (struct blob_cache){0};
}
