/*
 * A binary heap of row numbers, smallest key first, equal keys by lowest number. It knows where
 * each row is, so a key can be changed or taken out in O(log n). The memory is the caller's: three
 * arrays of one entry per row. Pure.
 */
#ifndef CORE_HEAP_H
#define CORE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"

#define HEAP_NONE UINT32_MAX

struct heap {
    uint32_t *items; /* row numbers, in heap order */
    uint32_t *pos;   /* of each row in items; HEAP_NONE = not in the heap */
    msec *keys;      /* of each row; MSEC_NEVER = not in the heap */
    uint32_t n;
};

/* All three arrays have `rows` entries. */
void heap_init(struct heap *h, uint32_t *items, uint32_t *pos, msec *keys, uint32_t rows);
/* Puts in, moves, or (MSEC_NEVER) takes out. */
void heap_set(struct heap *h, uint32_t entry, msec key);
/* HEAP_NONE when empty. */
uint32_t heap_top(const struct heap *h);
/* MSEC_NEVER when empty. */
msec heap_min(const struct heap *h);
/* Every row knows its place and no child is due before its parent. For tests. */
bool heap_ok(const struct heap *h, uint32_t rows);
#endif
