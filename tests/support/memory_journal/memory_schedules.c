/* Schedules of the memory journal. */
#include "tests/support/memory_journal/memory_internal.h"

static const struct mem_schedule *last_of(const struct memory *m, uint64_t ix)
{
    for (size_t i = m->schedules_n; i > 0; i--) {
        if (m->schedules[i - 1].p.ix == ix) {
            return m->schedules[i - 1].gone ? NULL : &m->schedules[i - 1];
        }
    }
    return NULL;
}

static const struct mem_schedule *of_name(const struct memory *m, struct str name)
{
    for (size_t i = m->schedules_n; i > 0; i--) {
        const struct mem_schedule *s = &m->schedules[i - 1];
        if (str_eq(s->p.name, name) && last_of(m, s->p.ix) == s) {
            return s;
        }
    }
    return NULL;
}

static uint64_t top(const struct memory *m)
{
    uint64_t ix = 0;

    for (size_t i = 0; i < m->schedules_n; i++) {
        ix = m->schedules[i].p.ix > ix ? m->schedules[i].p.ix : ix;
    }
    return ix;
}

static enum bt_code write_one(struct memory *m, const struct mem_schedule *p, struct bt_error *err)
{
    struct mem_schedule kept = *p;
    struct str *const all[] = {&kept.p.name, &kept.p.owner, &kept.p.rule, &kept.p.doc,
                               &kept.p.state};

    if (!memory_grow(&m->schedules, m->schedules_n, &m->schedules_cap, sizeof *m->schedules)) {
        return memory_full(err);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->ptr = memory_copy(m, all[i]->ptr, all[i]->len);
        if (all[i]->ptr == NULL) {
            return memory_full(err);
        }
    }
    m->schedules[m->schedules_n++] = kept;
    return BT_OK;
}

enum bt_code memory_schedule_put(struct journal *j, const struct journal_schedule *p,
                                 uint64_t *ret_ix, struct bt_error *err)
{
    struct memory *m = memory_of(j);
    const struct mem_schedule *before = of_name(m, p->name);
    struct mem_schedule next = {.p = *p};

    next.p.ix = before != NULL ? before->p.ix : top(m) + 1;
    *ret_ix = next.p.ix;
    return write_one(m, &next, err);
}

enum bt_code memory_schedule_state(struct journal *j, uint64_t ix, struct str state,
                                   struct bt_error *err)
{
    struct memory *m = memory_of(j);
    const struct mem_schedule *before = last_of(m, ix);
    struct mem_schedule next;

    if (before == NULL) {
        return BT_OK; /* as SQLite: the state of nothing */
    }
    next = *before;
    next.p.state = state;
    return write_one(m, &next, err);
}

enum bt_code memory_schedule_delete(struct journal *j, uint64_t ix, struct bt_error *err)
{
    struct memory *m = memory_of(j);
    const struct mem_schedule *before = last_of(m, ix);
    struct mem_schedule next;

    if (before == NULL) {
        return BT_OK;
    }
    next = *before;
    next.gone = true;
    return write_one(m, &next, err);
}

enum bt_code memory_schedule_by_name(struct journal *j, struct str name,
                                     struct journal_schedule *ret, struct bt_error *err)
{
    const struct mem_schedule *s = of_name(memory_of(j), name);

    if (s == NULL) {
        return err_set(err, BT_NOT_FOUND, "no schedule '%.*s'", STR_ARG(name));
    }
    *ret = s->p;
    return memory_lend(
               &memory_of(j)->schedule,
               (struct str *const[]){&ret->name, &ret->owner, &ret->rule, &ret->doc, &ret->state},
               5)
               ? BT_OK
               : memory_full(err);
}

enum bt_code memory_schedules(struct journal *j, uint64_t after, journal_schedule_fn fn, void *self,
                              struct bt_error *err)
{
    const struct memory *m = memory_of(j);
    const uint64_t last = top(m);

    (void)err;
    for (uint64_t ix = after + 1; ix <= last; ix++) {
        const struct mem_schedule *s = last_of(m, ix);
        struct journal_schedule shown;
        if (s == NULL) {
            continue;
        }
        shown = s->p;
        shown.doc = (struct str){NULL, 0};
        if (!fn(&shown, self)) {
            break;
        }
    }
    return BT_OK;
}
