#include "supervisor/core/sched/heap.h"

#include "protocol/base/assert.h"

static bool before(const struct heap *h, uint32_t a, uint32_t b)
{
    return h->keys[a] != h->keys[b] ? h->keys[a] < h->keys[b] : a < b;
}

static void place(struct heap *h, uint32_t at, uint32_t entry)
{
    h->items[at] = entry;
    h->pos[entry] = at;
}

static void sift_up(struct heap *h, uint32_t at, uint32_t entry)
{
    while (at > 0) {
        const uint32_t parent = (at - 1) / 2;
        if (!before(h, entry, h->items[parent])) {
            break;
        }
        place(h, at, h->items[parent]);
        at = parent;
    }
    place(h, at, entry);
}

static void sift_down(struct heap *h, uint32_t at, uint32_t entry)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= h->n) {
            break;
        }
        if (child + 1 < h->n && before(h, h->items[child + 1], h->items[child])) {
            child++;
        }
        if (!before(h, h->items[child], entry)) {
            break;
        }
        place(h, at, h->items[child]);
        at = child;
    }
    place(h, at, entry);
}

static void settle(struct heap *h, uint32_t at, uint32_t entry)
{
    if (at > 0 && before(h, entry, h->items[(at - 1) / 2])) {
        sift_up(h, at, entry);
    } else {
        sift_down(h, at, entry);
    }
}

void heap_add(struct heap *h, uint32_t entry)
{
    h->items[entry] = 0;
    h->pos[entry] = HEAP_NONE;
    h->keys[entry] = MSEC_NEVER;
}

void heap_init(struct heap *h, uint32_t *items, uint32_t *pos, msec *keys, uint32_t rows)
{
    *h = (struct heap){.items = items, .pos = pos, .keys = keys};
    for (uint32_t i = 0; i < rows; i++) {
        heap_add(h, i);
    }
}

void heap_set(struct heap *h, uint32_t entry, msec key)
{
    const uint32_t at = h->pos[entry];
    h->keys[entry] = key;
    if (at == HEAP_NONE) {
        if (key != MSEC_NEVER) {
            sift_up(h, h->n++, entry);
        }
        return;
    }
    if (key != MSEC_NEVER) {
        settle(h, at, entry);
        return;
    }
    ASSERT(h->n > 0);
    const uint32_t last = h->items[--h->n];
    h->pos[entry] = HEAP_NONE;
    if (last != entry) {
        settle(h, at, last);
    }
}

uint32_t heap_top(const struct heap *h)
{
    return h->n == 0 ? HEAP_NONE : h->items[0];
}

msec heap_min(const struct heap *h)
{
    return h->n == 0 ? MSEC_NEVER : h->keys[h->items[0]];
}

bool heap_ok(const struct heap *h, uint32_t rows)
{
    uint32_t in = 0;
    for (uint32_t entry = 0; entry < rows; entry++) {
        in += h->pos[entry] != HEAP_NONE ? 1 : 0;
        if ((h->pos[entry] != HEAP_NONE) != (h->keys[entry] != MSEC_NEVER)) {
            return false;
        }
    }
    for (uint32_t at = 0; at < h->n; at++) {
        if (h->items[at] >= rows || h->pos[h->items[at]] != at) {
            return false;
        }
        if (at > 0 && before(h, h->items[at], h->items[(at - 1) / 2])) {
            return false;
        }
    }
    return in == h->n;
}
