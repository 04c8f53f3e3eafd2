/* Plans of the memory journal. */
#include <stdio.h>

#include "protocol/base/clock.h"
#include "tests/support/memory_journal/memory_internal.h"

static struct mem_plan *plan_at(struct memory *m, uint64_t ix)
{
    return ix >= 1 && ix <= m->plans_n && !m->plans[ix - 1]->gone ? m->plans[ix - 1] : NULL;
}

static void state_set(struct mem_state *st, struct str status, msec ended)
{
    size_t n = status.len < STATUS_MAX - 1 ? status.len : STATUS_MAX - 1;
    if (n > 0) {
        memcpy(st->status, status.ptr, n);
    }
    st->status[n] = 0;
    st->ended = ended;
}

void memory_plan_show(const struct mem_plan *mp, struct journal_plan *ret)
{
    *ret = mp->plan;
    ret->status = str_from(mp->state.status);
    ret->ended_wall = mp->state.ended;
}

/* Marks the plan as changed by this batch and returns it; NULL with *err filled. */
static struct mem_plan *touch(struct memory *m, uint64_t ix, struct bt_error *err)
{
    struct mem_plan *mp = plan_at(m, ix);

    if (mp == NULL) {
        (void)err_set(err, BT_NOT_FOUND, "no plan number %llu", (unsigned long long)ix);
        return NULL;
    }
    if (mp->touched) {
        return mp;
    }
    if (!memory_grow(&m->touched, m->touched_n, &m->touched_cap, sizeof *m->touched)) {
        (void)memory_full(err);
        return NULL;
    }
    m->touched[m->touched_n++] = ix;
    mp->touched = true;
    return mp;
}

enum bt_code memory_plan_add(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                             struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_plan *mp;
    struct journal_plan *to;

    if (p->client_key.len > 0 && map_get(&m->by_key, p->client_key) != MAP_NONE) {
        return err_set(err, BT_CONFLICT, "clientKey \"%.*s\" was used before",
                       STR_ARG(p->client_key));
    }
    if (map_get(&m->by_id, (struct str){(const char *)p->plan_id.b, sizeof p->plan_id.b}) !=
        MAP_NONE) {
        return err_set(err, BT_CONFLICT, "a plan with this planId exists");
    }
    for (size_t i = 0; i < m->gone_n && p->client_key.len > 0; i++) {
        if (m->plans[m->gone[i] - 1]->forgotten == MEM_HERE &&
            str_eq(m->plans[m->gone[i] - 1]->plan.client_key, p->client_key)) {
            return err_set(err, BT_CONFLICT,
                           "clientKey \"%.*s\" was used by a plan that was deleted",
                           STR_ARG(p->client_key));
        }
    }
    mp = arena_alloc(&m->arena, sizeof *mp);
    if (mp == NULL ||
        !memory_grow(&m->plans, m->plans_n, &m->plans_cap, sizeof(struct mem_plan *))) {
        return memory_full(err);
    }
    *mp = (struct mem_plan){.plan = *p};
    to = &mp->plan;
    to->ix = m->plans_n + 1;
    to->session_id.ptr = memory_copy(m, p->session_id.ptr, p->session_id.len);
    to->client_key.ptr = memory_copy(m, p->client_key.ptr, p->client_key.len);
    to->goal.ptr = memory_copy(m, p->goal.ptr, p->goal.len);
    to->job.ptr = memory_copy(m, p->job.ptr, p->job.len);
    to->owner.ptr = memory_copy(m, p->owner.ptr, p->owner.len);
    to->doc = memory_copy(m, p->doc, p->doc_len);
    if (to->session_id.ptr == NULL || to->client_key.ptr == NULL || to->goal.ptr == NULL ||
        to->job.ptr == NULL || to->owner.ptr == NULL || to->doc == NULL) {
        return memory_full(err);
    }
    state_set(&mp->state, p->status, p->ended_wall);
    mp->committed = mp->state;
    if (map_put(&m->by_id, (struct str){(const char *)to->plan_id.b, sizeof to->plan_id.b},
                (uint32_t)to->ix) != BT_OK ||
        (to->client_key.len > 0 &&
         map_put(&m->by_key, to->client_key, (uint32_t)to->ix) != BT_OK)) {
        return memory_full(err);
    }
    m->plans[m->plans_n++] = mp;
    *ret_ix = to->ix;
    return BT_OK;
}

enum bt_code memory_plan_owner(struct journal *j, uint64_t ix, char *ret, size_t cap,
                               struct bt_error *err)
{
    const struct mem_plan *mp = plan_at(memory_of(j), ix);

    if (mp != NULL && mp->plan.owner.len >= cap) {
        return err_set(err, BT_IO, "the owner of a plan in the journal is damaged");
    }
    if (mp != NULL) {
        (void)snprintf(ret, cap, "%.*s", STR_ARG(mp->plan.owner));
    }
    return BT_OK;
}

enum bt_code memory_blob_owned(struct journal *j, uint64_t blob, struct str owner, bool *ret,
                               struct bt_error *err)
{
    struct memory *m = memory_of(j);

    (void)err;
    for (size_t i = 0; i < m->rows_n && !*ret; i++) {
        const struct mem_plan *mp = plan_at(m, m->rows[i].row.plan_ix);
        for (uint32_t k = 0; mp != NULL && k < m->rows[i].row.blobs_n; k++) {
            *ret = *ret || (m->rows[i].row.blobs[k] == blob && str_eq(mp->plan.owner, owner));
        }
    }
    return BT_OK;
}

enum bt_code memory_plan_status(struct journal *j, uint64_t ix, struct str status, msec ended,
                                struct bt_error *err)
{
    struct mem_plan *mp = touch(memory_of(j), ix, err);

    if (mp == NULL) {
        return err->code;
    }
    state_set(&mp->state, status, ended);
    return BT_OK;
}

enum bt_code memory_quarantine(struct journal *j, uint64_t ix, struct str why, struct bt_error *err)
{
    struct mem_plan *mp = plan_at(memory_of(j), ix);

    if (mp != NULL) { /* only a plan in quarantine has one, and stays there */
        mp->plan.note = (struct str){memory_copy(memory_of(j), why.ptr, why.len), why.len};
    }
    return memory_plan_status(j, ix, STR_LIT("quarantined"), clock_wall_ms(), err);
}

static enum bt_code found(struct memory *m, uint32_t ix, struct journal_plan *ret,
                          struct bt_error *err)
{
    if (ix == MAP_NONE) {
        return err_set(err, BT_NOT_FOUND, "no such plan");
    }
    memory_plan_show(m->plans[ix - 1], ret);
    return memory_lend_plan(&m->plan, ret, err);
}

enum bt_code memory_plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct str key = {(const char *)id.b, sizeof id.b};
    return found(m, map_get(&m->by_id, key), ret, err);
}

enum bt_code memory_plan_head(struct journal *j, struct uuid id, struct journal_plan *ret,
                              struct bt_error *err)
{
    const enum bt_code code = memory_plan_by_id(j, id, ret, err);

    ret->doc = code == BT_OK ? NULL : ret->doc; /* who needs it asks for it */
    ret->doc_len = code == BT_OK ? 0 : ret->doc_len;
    return code;
}

enum bt_code memory_plan_by_key(struct journal *j, struct str key, struct journal_plan *ret,
                                struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct journal_gone gone;

    if (memory_gone_by_key(m, key, &gone, NULL) == BT_OK) {
        ret->plan_id = gone.plan_id;
        return err_set(err, BT_CONFLICT, "the plan of this clientKey was deleted");
    }
    return found(m, map_get(&m->by_key, key), ret, err);
}

static void list(struct memory *m, bool jobs, struct str status, struct str session,
                 uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self)
{
    uint64_t ix = before_ix == 0 || before_ix > m->plans_n ? m->plans_n : before_ix - 1;

    for (uint32_t given = 0; ix > 0 && given < limit; ix--) {
        struct journal_plan p;
        memory_plan_show(m->plans[ix - 1], &p);
        if (m->plans[ix - 1]->gone) {
            continue;
        }
        if (jobs != (p.job.len > 0) || (status.len > 0 && !str_eq(status, p.status)) ||
            (session.len > 0 && !str_eq(session, p.session_id))) {
            continue;
        }
        p.doc = NULL;
        p.doc_len = 0;
        given++;
        if (!memory_give_plan(&p, fn, self)) {
            break;
        }
    }
}

enum bt_code memory_plans(struct journal *j, struct str status, struct str session,
                          uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                          struct bt_error *err)
{
    (void)err;
    list(memory_of(j), false, status, session, before_ix, limit, fn, self);
    return BT_OK;
}

struct between {
    struct uuid first, last;
    uint32_t left;
    journal_plan_fn fn;
    void *self;
};

static bool give_between(const struct journal_plan *p, void *self)
{
    struct between *b = self;

    if (memcmp(p->plan_id.b, b->first.b, sizeof b->first.b) < 0 ||
        memcmp(p->plan_id.b, b->last.b, sizeof b->last.b) > 0) {
        return true;
    }
    return b->left-- > 0 && b->fn(p, b->self);
}

enum bt_code memory_plans_between(struct journal *j, struct uuid first, struct uuid last,
                                  uint32_t limit, journal_plan_fn fn, void *self,
                                  struct bt_error *err)
{
    const struct str any = {"", 0};
    struct between b = {.first = first, .last = last, .left = limit, .fn = fn, .self = self};

    (void)err;
    list(memory_of(j), false, any, any, 0, UINT32_MAX, give_between, &b);
    return BT_OK;
}

enum bt_code memory_jobs(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                         journal_plan_fn fn, void *self, struct bt_error *err)
{
    (void)err;
    list(memory_of(j), true, (struct str){"", 0}, session, before_ix, limit, fn, self);
    return BT_OK;
}

enum bt_code memory_plans_open(struct journal *j, journal_plan_fn fn, void *self,
                               struct bt_error *err)
{
    struct memory *m = memory_of(j);
    uint64_t n = m->plans_n;

    (void)err;
    for (uint64_t ix = 1; ix <= n; ix++) {
        struct journal_plan p;
        memory_plan_show(m->plans[ix - 1], &p);
        if (p.ended_wall == 0 && !m->plans[ix - 1]->gone && !memory_give_plan(&p, fn, self)) {
            break;
        }
    }
    return BT_OK;
}

void memory_plans_commit(struct memory *m)
{
    for (size_t i = 0; i < m->touched_n; i++) {
        struct mem_plan *mp = m->plans[m->touched[i] - 1];
        mp->committed = mp->state;
        mp->touched = false;
    }
    m->touched_n = 0;
    m->plans_committed = m->plans_n;
}

void memory_plans_rollback(struct memory *m)
{
    for (size_t i = 0; i < m->touched_n; i++) {
        struct mem_plan *mp = m->plans[m->touched[i] - 1];
        mp->state = mp->committed;
        mp->touched = false;
    }
    m->touched_n = 0;
    for (; m->plans_n > m->plans_committed; m->plans_n--) {
        const struct journal_plan *p = &m->plans[m->plans_n - 1]->plan;
        (void)map_remove(&m->by_id, (struct str){(const char *)p->plan_id.b, sizeof p->plan_id.b});
        if (p->client_key.len > 0) {
            (void)map_remove(&m->by_key, p->client_key);
        }
    }
}
