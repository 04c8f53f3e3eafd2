/* Starts that count for rates, in the memory journal. */
#include "tests/support/memory_journal/memory_internal.h"

static enum bt_code write_one(struct journal *j, struct mem_start start, struct bt_error *err)
{
    struct memory *m = memory_of(j);

    start.name.ptr = memory_copy(m, start.name.ptr, start.name.len);
    if (start.name.ptr == NULL ||
        !memory_grow(&m->starts, m->starts_n, &m->starts_cap, sizeof *m->starts)) {
        return memory_full(err);
    }
    m->starts[m->starts_n++] = start;
    return BT_OK;
}

enum bt_code memory_start_put(struct journal *j, struct str name, uint32_t place, uint64_t wall,
                              struct bt_error *err)
{
    return write_one(j, (struct mem_start){name, place, wall}, err);
}

/* A write without a name: the starts before it that are older do not count. */
enum bt_code memory_starts_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    return write_one(j, (struct mem_start){{"", 0}, 0, before}, err);
}

static bool counts(const struct memory *m, size_t ix)
{
    const struct mem_start *s = &m->starts[ix];
    bool ret = s->name.len > 0;

    for (size_t i = ix + 1; i < m->starts_n; i++) {
        const struct mem_start *later = &m->starts[i];
        ret =
            ret && (later->name.len > 0 ? later->place != s->place || !str_eq(later->name, s->name)
                                        : s->wall >= later->wall);
    }
    return ret;
}

static int by_name_and_time(const void *a, const void *b)
{
    const struct mem_start *x = a;
    const struct mem_start *y = b;
    const size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    const int order = memcmp(x->name.ptr, y->name.ptr, n);

    return order != 0                   ? order
           : x->name.len != y->name.len ? (x->name.len < y->name.len ? -1 : 1)
           : x->wall != y->wall         ? (x->wall < y->wall ? -1 : 1)
                                        : 0;
}

enum bt_code memory_starts(struct journal *j, uint64_t since, journal_start_fn fn, void *self,
                           struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_start *list = calloc(m->starts_n + 1, sizeof *list);
    size_t n = 0;

    if (list == NULL) {
        return memory_full(err);
    }
    for (size_t i = 0; i < m->starts_n; i++) {
        if (m->starts[i].wall >= since && counts(m, i)) {
            list[n++] = m->starts[i];
        }
    }
    qsort(list, n, sizeof *list, by_name_and_time);
    for (size_t i = 0; i < n; i++) {
        fn(list[i].name, list[i].place, list[i].wall, self);
    }
    free(list);
    return BT_OK;
}
