#include "protocol/base/map.h"

#include <stdlib.h>

void map_done(struct map *m)
{
    if (m != NULL) {
        free(m->slots);
        *m = (struct map){0};
    }
}

/* Returns the slot of the key, or the free slot for it. */
static uint32_t find(const struct map *m, struct str key)
{
    uint32_t i = (uint32_t)str_hash(key) & (m->cap - 1);
    while (m->slots[i].key.ptr != NULL && !str_eq(m->slots[i].key, key)) {
        i = (i + 1) & (m->cap - 1);
    }
    return i;
}

uint32_t map_get(const struct map *m, struct str key)
{
    uint32_t i;
    if (m->cap == 0) {
        return MAP_NONE;
    }
    i = find(m, key);
    return m->slots[i].key.ptr == NULL ? MAP_NONE : m->slots[i].value;
}

static enum bt_code grow(struct map *m)
{
    struct map bigger = {.cap = m->cap == 0 ? 16 : m->cap * 2};

    bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return BT_NOMEM;
    }
    for (uint32_t i = 0; i < m->cap; i++) {
        if (m->slots[i].key.ptr != NULL) {
            bigger.slots[find(&bigger, m->slots[i].key)] = m->slots[i];
        }
    }
    bigger.used = m->used;
    free(m->slots);
    *m = bigger;
    return BT_OK;
}

enum bt_code map_put(struct map *m, struct str key, uint32_t value)
{
    uint32_t i;

    if (m->cap == 0 || m->used + 1 > m->cap / 4 * 3) {
        enum bt_code code = grow(m);
        if (code != BT_OK) {
            return code;
        }
    }
    i = find(m, key);
    m->used += m->slots[i].key.ptr == NULL;
    m->slots[i] = (struct map_slot){{key.ptr == NULL ? "" : key.ptr, key.len}, value};
    return BT_OK;
}

uint32_t map_remove(struct map *m, struct str key)
{
    uint32_t hole;
    uint32_t value;

    if (m->cap == 0) {
        return MAP_NONE;
    }
    hole = find(m, key);
    if (m->slots[hole].key.ptr == NULL) {
        return MAP_NONE;
    }
    value = m->slots[hole].value;
    for (uint32_t i = (hole + 1) & (m->cap - 1); m->slots[i].key.ptr != NULL;
         i = (i + 1) & (m->cap - 1)) {
        uint32_t home = (uint32_t)str_hash(m->slots[i].key) & (m->cap - 1);
        if (((i - home) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct map_slot){{NULL, 0}, 0};
    m->used--;
    return value;
}
