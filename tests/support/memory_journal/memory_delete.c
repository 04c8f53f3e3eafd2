/* Deletion in the memory journal. */
#include "tests/support/memory_journal/memory_internal.h"

static bool is_newest_write(const struct mem_conversation *t, size_t at)
{
    for (size_t i = at + 1; i < t->turns_n; i++) {
        if (uuid_eq(t->turns[i].turn_id, t->turns[at].turn_id)) {
            return false;
        }
    }
    return true;
}

bool memory_session_cut(const struct mem_conversation *t, struct str session, size_t sessions_at,
                        size_t messages_at, size_t turns_at)
{
    for (size_t i = 0; i < t->cuts_n; i++) {
        const struct mem_cut *c = &t->cuts[i];
        if (str_eq(c->session, session) &&
            (sessions_at < c->sessions_n || messages_at < c->messages_n || turns_at < c->turns_n)) {
            return true;
        }
    }
    return false;
}

enum bt_code memory_plan_delete(struct journal *j, uint64_t ix, struct str why, msec wall,
                                struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_plan *mp = ix >= 1 && ix <= m->plans_n ? m->plans[ix - 1] : NULL;
    const struct journal_plan *p;

    if (mp == NULL || mp->gone) {
        return err_set(err, BT_NOT_FOUND, "no plan number %llu", (unsigned long long)ix);
    }
    if (mp->state.ended == 0) {
        return err_set(err, BT_CONFLICT, "the plan has not ended");
    }
    if (!memory_grow(&m->gone, m->gone_n, &m->gone_cap, sizeof *m->gone)) {
        return memory_full(err);
    }
    p = &mp->plan;
    mp->gone = true;
    mp->tomb = (struct journal_gone){.ix = ix,
                                     .plan_id = p->plan_id,
                                     .client_key = p->client_key,
                                     .owner = p->owner,
                                     .status = str_from(mp->state.status),
                                     .created_wall = p->created_wall,
                                     .ended_wall = mp->state.ended,
                                     .deleted_wall = wall,
                                     .why = {memory_copy(m, why.ptr, why.len), why.len},
                                     .head = STR_LIT("")};
    for (size_t i = 0; i < m->rows_n; i++) {
        mp->tomb.rows += m->rows[i].row.plan_ix == ix;
    }
    (void)map_remove(&m->by_id, (struct str){(const char *)p->plan_id.b, sizeof p->plan_id.b});
    if (p->client_key.len > 0) {
        (void)map_remove(&m->by_key, p->client_key);
    }
    m->gone[m->gone_n++] = ix;
    return BT_OK;
}

static enum bt_code find_gone(const struct memory *m, const struct uuid *id, struct str key,
                              struct journal_gone *ret, struct bt_error *err)
{
    for (size_t i = 0; i < m->gone_n; i++) {
        const struct mem_plan *mp = m->plans[m->gone[i] - 1];
        if (mp->forgotten != MEM_HERE) {
            continue;
        }
        if (id != NULL ? uuid_eq(mp->plan.plan_id, *id)
                       : key.len > 0 && str_eq(mp->plan.client_key, key)) {
            *ret = mp->tomb;
            return BT_OK;
        }
    }
    return err_set(err, BT_NOT_FOUND, "no such deleted plan");
}

enum bt_code memory_gone_by_id(struct journal *j, struct uuid id, struct journal_gone *ret,
                               struct bt_error *err)
{
    return find_gone(memory_of(j), &id, STR_LIT(""), ret, err);
}

enum bt_code memory_gone_by_key(const struct memory *m, struct str key, struct journal_gone *ret,
                                struct bt_error *err)
{
    return find_gone(m, NULL, key, ret, err);
}

/* The plan that ended next after (ended, ix); NULL = none. */
static const struct mem_plan *next_ended(const struct memory *m, msec ended, uint64_t ix)
{
    const struct mem_plan *best = NULL;

    for (size_t i = 0; i < m->plans_n; i++) {
        const struct mem_plan *mp = m->plans[i];
        if (mp->gone || mp->state.ended == 0 || mp->state.ended < ended ||
            (mp->state.ended == ended && mp->plan.ix <= ix)) {
            continue;
        }
        if (best == NULL || mp->state.ended < best->state.ended) {
            best = mp;
        }
    }
    return best;
}

enum bt_code memory_plans_ended(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                                journal_plan_fn fn, void *self, struct bt_error *err)
{
    const struct memory *m = memory_of(j);
    const struct mem_plan *mp = next_ended(m, after, after_ix);

    (void)err;
    for (; mp != NULL && limit > 0; limit--) {
        struct journal_plan p;
        memory_plan_show(mp, &p);
        p.doc = NULL;
        p.doc_len = 0;
        if (!memory_give_plan(&p, fn, self)) {
            break;
        }
        mp = next_ended(m, mp->state.ended, mp->plan.ix);
    }
    return BT_OK;
}

enum bt_code memory_session_delete(struct journal *j, struct str id, uint32_t limit, bool *ret_more,
                                   struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_conversation *t = &m->conversation;
    struct journal_session s;
    enum bt_code code = memory_session(j, id, &s, err);

    (void)limit;
    *ret_more = false;
    for (size_t i = 0; i < t->turns_n && code == BT_OK; i++) {
        if (str_eq(t->turns[i].session_id, id) && t->turns[i].ended_wall == 0 &&
            is_newest_write(t, i) && !memory_session_cut(t, id, SIZE_MAX, SIZE_MAX, i)) {
            code = err_set(err, BT_CONFLICT, "a message of the session has no answer yet");
        }
    }
    if (code != BT_OK) {
        return code;
    }
    if (!memory_grow(&t->cuts, t->cuts_n, &t->cuts_cap, sizeof *t->cuts)) {
        return memory_full(err);
    }
    t->cuts[t->cuts_n++] = (struct mem_cut){
        {memory_copy(m, id.ptr, id.len), id.len}, t->sessions_n, t->messages_n, t->turns_n};
    return BT_OK;
}

struct idle {
    msec before;
    uint32_t left;
    journal_session_fn fn;
    void *self;
};

static bool give_idle(const struct journal_session *s, void *self)
{
    struct idle *i = self;

    if (s->updated_wall >= i->before) {
        return true;
    }
    return i->left-- > 0 && i->fn(s, i->self);
}

/* In no particular order. */
enum bt_code memory_sessions_idle(struct journal *j, msec before, uint32_t limit,
                                  journal_session_fn fn, void *self, struct bt_error *err)
{
    struct idle i = {before, limit, fn, self};

    return memory_sessions(j, UINT32_MAX, give_idle, &i, err);
}

enum bt_code memory_rows_delete(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err)
{
    struct memory *m = memory_of(j);

    (void)err;
    for (size_t i = 0; i < m->rows_committed && *ret_n < limit; i++) {
        if (m->rows[i].gone == MEM_HERE && m->rows[i].row.plan_ix == 0 &&
            m->rows[i].row.wall < before && m->rows[i].pos < j->committed_pos) {
            m->rows[i].gone = MEM_DELETED_IN_BATCH;
            m->deleted = true;
            ++*ret_n;
        }
    }
    return BT_OK;
}

/* By their numbers; what is swept has no row that is here. */
enum bt_code memory_gone_expire(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err)
{
    struct memory *m = memory_of(j);

    (void)err;
    while (*ret_n < limit) {
        struct mem_plan *lowest = NULL;
        for (size_t i = 0; i < m->gone_n; i++) {
            struct mem_plan *mp = m->plans[m->gone[i] - 1];
            if (mp->forgotten == MEM_HERE && (lowest == NULL || mp->plan.ix < lowest->plan.ix)) {
                lowest = mp;
            }
        }
        if (lowest == NULL || lowest->tomb.deleted_wall >= before) {
            break;
        }
        lowest->forgotten = MEM_DELETED_IN_BATCH;
        m->deleted = true;
        ++*ret_n;
    }
    return BT_OK;
}

static bool is_named(const struct memory *m, uint64_t id)
{
    const struct mem_conversation *t = &m->conversation;

    for (size_t i = 0; i < m->rows_n; i++) {
        for (uint32_t k = 0; m->rows[i].gone == MEM_HERE && k < m->rows[i].row.blobs_n; k++) {
            if (m->rows[i].row.blobs[k] == id) {
                return true;
            }
        }
    }
    for (size_t i = 0; i < t->sessions_n; i++) {
        if (t->sessions[i].summary == id &&
            !memory_session_cut(t, t->sessions[i].session_id, i, SIZE_MAX, SIZE_MAX)) {
            return true;
        }
    }
    for (size_t i = 0; i < t->turns_n; i++) {
        if (t->turns[i].context_blob == id &&
            !memory_session_cut(t, t->turns[i].session_id, SIZE_MAX, SIZE_MAX, i)) {
            return true;
        }
    }
    return false;
}

enum bt_code memory_sweep(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err)
{
    struct memory *m = memory_of(j);

    (void)err;
    for (size_t i = 0; i < m->rows_n && budget > 0; i++) {
        const uint64_t ix = m->rows[i].row.plan_ix;
        if (m->rows[i].gone != MEM_HERE || ix == 0 || ix > m->plans_n || !m->plans[ix - 1]->gone) {
            continue;
        }
        m->rows[i].gone = MEM_DELETED_IN_BATCH;
        m->deleted = true;
        budget--;
        for (uint32_t k = 0; k < m->rows[i].row.blobs_n; k++) {
            const uint64_t id = m->rows[i].row.blobs[k];
            if (id <= m->blobs_n && m->blobs[id - 1].gone == MEM_HERE && !is_named(m, id)) {
                m->blobs[id - 1].gone = MEM_DELETED_IN_BATCH;
            }
        }
    }
    *ret_more = budget == 0;
    return BT_OK;
}

enum bt_code memory_blobs_unused(struct journal *j, uint64_t *io_after, uint64_t last,
                                 uint32_t limit, struct bt_error *err)
{
    struct memory *m = memory_of(j);

    (void)err;
    for (; *io_after < last && *io_after < m->blobs_n && limit > 0; limit--) {
        const uint64_t id = ++*io_after;
        if (m->blobs[id - 1].gone == MEM_HERE && !is_named(m, id)) {
            m->blobs[id - 1].gone = MEM_DELETED_IN_BATCH;
            m->deleted = true;
        }
    }
    *io_after = *io_after >= m->blobs_n ? last : *io_after;
    return BT_OK;
}

uint64_t memory_last_blob(const struct journal *j)
{
    return ((const struct memory *)j)->blobs_n;
}

enum bt_code memory_size(struct journal *j, struct journal_size *ret, struct bt_error *err)
{
    const struct memory *m = memory_of(j);

    (void)err;
    *ret = (struct journal_size){0};
    for (size_t i = 0; i < m->rows_n; i++) {
        ret->file += m->rows[i].row.body_len;
        ret->used += m->rows[i].gone == MEM_HERE ? m->rows[i].row.body_len : 0;
    }
    for (size_t i = 0; i < m->blobs_n; i++) {
        ret->file += m->blobs[i].len;
        ret->used += m->blobs[i].gone == MEM_HERE ? m->blobs[i].len : 0;
    }
    return BT_OK;
}

static void settle(struct memory *m, enum mem_gone to)
{
    for (size_t i = 0; i < m->gone_n; i++) {
        struct mem_plan *mp = m->plans[m->gone[i] - 1];
        mp->forgotten = mp->forgotten == MEM_DELETED_IN_BATCH ? to : mp->forgotten;
    }
    for (size_t i = 0; i < m->rows_n; i++) {
        m->rows[i].gone = m->rows[i].gone == MEM_DELETED_IN_BATCH ? to : m->rows[i].gone;
    }
    for (size_t i = 0; i < m->blobs_n; i++) {
        m->blobs[i].gone = m->blobs[i].gone == MEM_DELETED_IN_BATCH ? to : m->blobs[i].gone;
    }
}

void memory_delete_commit(struct memory *m)
{
    if (m->deleted) {
        settle(m, MEM_DELETED);
    }
    m->deleted = false;
    m->gone_committed = m->gone_n;
    m->conversation.cuts_committed = m->conversation.cuts_n;
}

void memory_delete_rollback(struct memory *m)
{
    if (m->deleted) {
        settle(m, MEM_HERE);
    }
    m->deleted = false;
    m->conversation.cuts_n = m->conversation.cuts_committed;
    for (; m->gone_n > m->gone_committed; m->gone_n--) {
        struct mem_plan *mp = m->plans[m->gone[m->gone_n - 1] - 1];
        const struct journal_plan *p = &mp->plan;
        mp->gone = false;
        (void)!map_put(&m->by_id, (struct str){(const char *)p->plan_id.b, sizeof p->plan_id.b},
                       (uint32_t)p->ix);
        if (p->client_key.len > 0) {
            (void)!map_put(&m->by_key, p->client_key, (uint32_t)p->ix);
        }
    }
}
