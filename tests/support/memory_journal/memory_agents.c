/* Agents that are remembered, in the memory journal. */
#include "tests/support/memory_journal/memory_internal.h"

static enum bt_code write_one(struct memory *m, struct journal_agent a, struct bt_error *err)
{
    a.id.ptr = memory_copy(m, a.id.ptr, a.id.len);
    a.card.ptr = memory_copy(m, a.card.len > 0 ? a.card.ptr : "", a.card.len);
    if (a.id.ptr == NULL || a.card.ptr == NULL ||
        !memory_grow(&m->agents, m->agents_n, &m->agents_cap, sizeof *m->agents)) {
        return memory_full(err);
    }
    m->agents[m->agents_n++] = a;
    return BT_OK;
}

enum bt_code memory_agent_put(struct journal *j, const struct journal_agent *a,
                              struct bt_error *err)
{
    return write_one(memory_of(j), *a, err);
}

/* The last write of an id counts; one without a card forgets it. */
static bool counts(const struct memory *m, size_t ix)
{
    for (size_t i = ix + 1; i < m->agents_n; i++) {
        if (str_eq(m->agents[i].id, m->agents[ix].id)) {
            return false;
        }
    }
    return m->agents[ix].card.len > 0;
}

enum bt_code memory_agent_drop(struct journal *j, struct str id, bool *ret_found,
                               struct bt_error *err)
{
    struct memory *m = memory_of(j);

    *ret_found = false;
    for (size_t i = 0; i < m->agents_n; i++) {
        *ret_found = *ret_found || (str_eq(m->agents[i].id, id) && counts(m, i));
    }
    return *ret_found ? write_one(m, (struct journal_agent){.id = id}, err) : BT_OK;
}

enum bt_code memory_agents_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    struct memory *m = memory_of(j);
    const size_t n = m->agents_n;
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < n && code == BT_OK; i++) {
        if (counts(m, i) && m->agents[i].seen_wall < before) {
            code = write_one(m, (struct journal_agent){.id = m->agents[i].id}, err);
        }
    }
    return code;
}

static int newest_first(const void *a, const void *b)
{
    const struct journal_agent *x = a;
    const struct journal_agent *y = b;

    return x->seen_wall > y->seen_wall ? -1 : x->seen_wall < y->seen_wall;
}

enum bt_code memory_agents(struct journal *j, journal_agent_fn fn, void *self, struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct journal_agent *list = calloc(m->agents_n + 1, sizeof *list);
    size_t n = 0;

    if (list == NULL) {
        return memory_full(err);
    }
    for (size_t i = 0; i < m->agents_n; i++) {
        if (counts(m, i)) {
            list[n++] = m->agents[i];
        }
    }
    qsort(list, n, sizeof *list, newest_first);
    for (size_t i = 0; i < n; i++) {
        fn(&list[i], self);
    }
    free(list);
    return BT_OK;
}
