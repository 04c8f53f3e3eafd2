/* A binary heap of entry numbers: smallest key first, equal keys by lowest number. It knows the
 * place of each entry, so a key is changed or removed in O(log n). The caller gives the memory:
 * three arrays with one element per entry. Pure. */
#ifndef CORE_HEAP_H
#define CORE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"

#define HEAP_NONE UINT32_MAX

struct heap {
    uint32_t *items; /* entry numbers, in heap order */
    uint32_t *pos;   /* of each entry in items; HEAP_NONE = not in the heap */
    msec *keys;      /* of each entry; MSEC_NEVER = not in the heap */
    uint32_t n;
};

/* All three arrays have room for all entries; `rows` of them can be used at once. */
void heap_init(struct heap *h, uint32_t *items, uint32_t *pos, msec *keys, uint32_t rows);
/* Makes the entry behind the last one usable: memory is written as it is needed. */
void heap_add(struct heap *h, uint32_t entry);
/* Inserts, moves, or (MSEC_NEVER) removes. */
void heap_set(struct heap *h, uint32_t entry, msec key);
/* HEAP_NONE when empty. */
uint32_t heap_top(const struct heap *h);
/* MSEC_NEVER when empty. */
msec heap_min(const struct heap *h);
/* Checks that all places are right and no child is due before its parent. For tests. */
bool heap_ok(const struct heap *h, uint32_t rows);
#endif
