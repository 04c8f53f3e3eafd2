/* The schedules in memory: by slot, by name, and in a heap by when they are due. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "supervisor/schedule/schedule_internal.h"

enum { FIRST_CAP = 16 };

enum bt_code schedule_new(struct str name, struct str owner, struct schedule **ret,
                          struct bt_error *err)
{
    struct schedule *p = calloc(1, sizeof *p + name.len + owner.len + 2);

    *ret = p;
    if (p == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a schedule");
    }
    memcpy(p->name, name.ptr, name.len);
    if (owner.len > 0) {
        memcpy(p->name + name.len + 1, owner.ptr, owner.len);
    }
    p->owner = p->name + name.len + 1;
    p->seed = str_hash(name);
    p->due = p->rule.end_ms = MSEC_NEVER;
    return BT_OK;
}

void schedule_free(struct schedule *p)
{
    if (p != NULL) {
        free(p->reason);
        free(p);
    }
}

/* ---- the heap ---- */

static msec due_of(const struct schedules *s, uint32_t heap_at)
{
    return s->at[s->heap[heap_at]]->due;
}

static void put_at(struct schedules *s, uint32_t heap_at, uint32_t slot)
{
    s->heap[heap_at] = slot;
    s->at[slot]->heap_at = heap_at;
}

static void sift(struct schedules *s, uint32_t i)
{
    const uint32_t slot = s->heap[i];
    const msec due = s->at[slot]->due;

    while (i > 0 && due < due_of(s, (i - 1) / 2)) {
        put_at(s, i, s->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        uint32_t child = i * 2 + 1;
        if (child + 1 < s->n && due_of(s, child + 1) < due_of(s, child)) {
            child++;
        }
        if (child >= s->n || due <= due_of(s, child)) {
            break;
        }
        put_at(s, i, s->heap[child]);
        i = child;
    }
    put_at(s, i, slot);
}

void table_due(struct schedules *s, struct schedule *p, msec due)
{
    if (p->due != due) {
        p->due = due;
        sift(s, p->heap_at);
    }
}

/* ---- slots ---- */

static bool grow(struct schedules *s)
{
    const uint32_t cap = s->cap == 0 ? FIRST_CAP : s->cap * 2;
    struct schedule **at = realloc(s->at, cap * sizeof(struct schedule *));
    uint32_t *heap;

    if (at == NULL) {
        return false;
    }
    s->at = at;
    heap = realloc(s->heap, cap * sizeof *heap);
    if (heap == NULL) {
        return false;
    }
    s->heap = heap;
    s->cap = cap;
    return true;
}

enum bt_code table_add(struct schedules *s, struct schedule *p, struct bt_error *err)
{
    if (s->n == s->cap && !grow(s)) {
        schedule_free(p);
        return err_set(err, BT_NOMEM, "out of memory for a schedule");
    }
    if (map_put(&s->by_name, str_from(p->name), s->n) != BT_OK) {
        schedule_free(p);
        return err_set(err, BT_NOMEM, "out of memory for a schedule");
    }
    p->slot = p->heap_at = s->n++;
    s->at[p->slot] = p;
    s->heap[p->heap_at] = p->slot;
    sift(s, p->heap_at);
    return BT_OK;
}

void table_replace(struct schedules *s, struct schedule *before, struct schedule *p)
{
    p->slot = before->slot;
    p->heap_at = before->heap_at;
    s->at[p->slot] = p;
    ASSERT(map_put(&s->by_name, str_from(p->name), p->slot) == BT_OK); /* the key is there */
    schedule_free(before);
    sift(s, p->heap_at);
}

/* The last slot takes the place of the one that goes. */
void table_remove(struct schedules *s, struct schedule *p)
{
    const uint32_t slot = p->slot;
    const uint32_t hole = p->heap_at;
    struct schedule *moved = s->at[s->n - 1];
    const uint32_t last = s->heap[--s->n];

    (void)map_remove(&s->by_name, str_from(p->name));
    if (hole < s->n) {
        put_at(s, hole, last);
        sift(s, hole);
    }
    if (moved != p) {
        moved->slot = slot;
        s->at[slot] = moved;
        s->heap[moved->heap_at] = slot;
        ASSERT(map_put(&s->by_name, str_from(moved->name), slot) == BT_OK);
        for (uint32_t i = 0; i < s->open_n; i++) {
            if (s->open[i]->ix == moved->ix) {
                s->open[i]->slot = slot;
            }
        }
    }
    schedule_free(p);
}

struct schedule *table_find(const struct schedules *s, struct str name)
{
    const uint32_t slot = map_get(&s->by_name, name);

    return slot == MAP_NONE ? NULL : s->at[slot];
}

/* ---- open plans ---- */

enum bt_code table_open(struct schedules *s, struct schedule *p, const char *plan_id,
                        struct bt_error *err)
{
    struct schedule_open *o = malloc(sizeof *o);

    if (s->open_n == s->open_cap) {
        const uint32_t cap = s->open_cap == 0 ? FIRST_CAP : s->open_cap * 2;
        struct schedule_open **grown = realloc(s->open, cap * sizeof(struct schedule_open *));
        s->open = grown != NULL ? grown : s->open;
        s->open_cap = grown != NULL ? cap : s->open_cap;
    }
    if (o == NULL || s->open_n == s->open_cap) {
        free(o);
        return err_set(err, BT_NOMEM, "out of memory for a plan of a schedule");
    }
    *o = (struct schedule_open){.slot = p->slot, .ix = p->ix};
    memcpy(o->id, plan_id, UUID_TEXT_LEN);
    if (map_put(&s->by_plan, str_from(o->id), s->open_n) != BT_OK) {
        free(o);
        return err_set(err, BT_NOMEM, "out of memory for a plan of a schedule");
    }
    s->open[s->open_n++] = o;
    p->open++;
    return BT_OK;
}

struct schedule *table_close(struct schedules *s, struct str plan_id)
{
    const uint32_t at = map_remove(&s->by_plan, plan_id);
    struct schedule_open o;
    struct schedule *p;

    if (at == MAP_NONE) {
        return NULL;
    }
    o = *s->open[at];
    free(s->open[at]);
    s->open[at] = s->open[--s->open_n];
    if (at < s->open_n) {
        ASSERT(map_put(&s->by_plan, str_from(s->open[at]->id), at) == BT_OK);
    }
    p = o.slot < s->n && s->at[o.slot]->ix == o.ix ? s->at[o.slot] : NULL;
    if (p != NULL) {
        p->open--;
    }
    return p;
}
