#include "protocol/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

struct arena_chunk {
    struct arena_chunk *next;
    size_t cap;
    alignas(max_align_t) uint8_t bytes[];
};

enum { CHUNK_MIN = 1024, CHUNK_MAX = 64 * 1024 };

static struct arena_chunk *grow(struct arena *a, size_t n)
{
    /* Doubles the arena, so at most half of its memory is unused. */
    size_t cap = a->total < CHUNK_MIN ? CHUNK_MIN : a->total;
    struct arena_chunk *c;

    cap = cap > CHUNK_MAX ? CHUNK_MAX : cap;
    cap = cap < n ? n : cap;
    if (a->max != 0 && cap > a->max - a->total) {
        cap = n;
    }
    if (a->max != 0 && n > a->max - a->total) {
        return NULL;
    }
    c = malloc(sizeof *c + cap);
    if (c == NULL) {
        return NULL;
    }
    c->next = a->chunks;
    c->cap = cap;
    a->chunks = c;
    a->used = 0;
    a->total += cap;
    return c;
}

void *arena_room(struct arena *a, size_t n)
{
    const size_t align = alignof(max_align_t);
    void *at;

    if (n > SIZE_MAX - align) {
        return NULL;
    }
    n = (n + align - 1) / align * align;
    if (a->chunks == NULL || a->chunks->cap - a->used < n) {
        if (grow(a, n) == NULL) {
            return NULL;
        }
    }
    at = a->chunks->bytes + a->used;
    a->used += n;
    return at;
}

void *arena_alloc(struct arena *a, size_t n)
{
    void *at = arena_room(a, n);

    if (at != NULL) {
        memset(at, 0, n);
    }
    return at;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *at = arena_alloc(a, s.len + 1);
    if (at == NULL) {
        return (struct str){NULL, 0};
    }
    if (s.len > 0) {
        memcpy(at, s.ptr, s.len);
    }
    return (struct str){at, s.len};
}

void arena_reset(struct arena *a)
{
    while (a->chunks != NULL && a->chunks->next != NULL) {
        struct arena_chunk *c = a->chunks;
        a->chunks = c->next;
        a->total -= c->cap;
        free(c);
    }
    a->used = 0;
}

void arena_done(struct arena *a)
{
    while (a->chunks != NULL) {
        struct arena_chunk *c = a->chunks;
        a->chunks = c->next;
        free(c);
    }
    *a = (struct arena){.max = a->max};
}
