/* The plans inside a plan, jobs and child plans, which go before it. */
#include <inttypes.h>
#include <string.h>

#include "supervisor/plan/flow/inside.h"
#include "supervisor/retention/retention_internal.h"

enum {
    LOOKS = 20000,       /* ended plans that one call looks at; some tens of ms */
    DELETES = 1000,      /* and deletes */
    JOB_LATE_MS = 60000, /* a job that was called off may end so long after its plan */
    KNOWN_BYTES = 16 * 1024 * 1024
};

struct look {
    struct retention *r;
    struct job_search *s;
    msec last_wall;
    struct uuid ids[SLICE_PLANS];
    uint64_t ixs[SLICE_PLANS];
    uint32_t n, looks;
    bool over;           /* all that follow ended too late */
    enum bt_code failed; /* a plan cannot be read: whether another one is inside is not known */
    struct bt_error why;
};

static bool take_job(const struct journal_plan *p, void *self)
{
    struct look *l = self;

    if (p->ended_wall > l->last_wall) {
        l->over = true;
        return false;
    }
    l->looks++;
    l->s->at_wall = p->ended_wall;
    l->s->at_ix = p->ix;
    if (p->job.len > 0 && !str_is(p->status, JOURNAL_IMPORTING)) {
        l->ixs[l->n] = p->ix;
        l->ids[l->n++] = p->plan_id;
    }
    return l->n < SLICE_PLANS;
}

static bool document(void *self, struct uuid plan_id, struct doc *ret)
{
    struct look *l = self;
    struct journal_plan row;
    const enum bt_code code = journal_plan_by_id(l->r->journal, plan_id, &row, &l->why);

    if (code != BT_OK) {
        l->failed = code == BT_NOT_FOUND ? l->failed : code;
        return false;
    }
    *ret = (struct doc){row.doc, row.doc_len};
    return true;
}

/* A child plan may end in the same millisecond as one inside it, and go first. */
static bool is_known(void *self, struct str plan_id)
{
    const struct look *l = self;

    return str_is(plan_id, l->s->of) || map_get(&l->s->known, plan_id) != MAP_NONE;
}

static enum bt_code delete_one(struct look *l, uint32_t i, struct str why, msec wall,
                               struct bt_error *err)
{
    char id[UUID_TEXT_LEN + 1];
    struct str key;
    enum bt_code code;

    uuid_format(l->ids[i], id);
    if (l->r->hooks.is_open(l->r->hooks.self, l->ids[i])) {
        return err_set(err, BT_BUSY,
                       "the last attempts of plan %s, which is inside it, are not over", id);
    }
    key = arena_str(&l->s->arena, str_from(id));
    if (key.ptr == NULL || map_put(&l->s->known, key, i) != BT_OK) {
        return err_set(err, BT_NOMEM, "out of memory for the plans inside a plan");
    }
    code = journal_plan_delete(l->r->journal, l->ixs[i], why, wall, err);
    if (code == BT_OK) {
        l->r->hooks.deleted(l->r->hooks.self, l->ids[i]);
        l->s->deleted++;
    }
    return code;
}

static void from_the_start(struct job_search *s)
{
    s->at_wall = s->created > 0 ? s->created - 1 : 0;
    s->at_ix = INT64_MAX;
    s->before = s->deleted;
}

static void begin(struct job_search *s, const struct ended *p)
{
    if (s->of_ix != p->ix) {
        retention_search_done(s);
        s->arena.max = KNOWN_BYTES;
        s->of_ix = p->ix;
        s->created = p->created;
        uuid_format(p->id, s->of);
        from_the_start(s);
    }
}

void retention_search_done(struct job_search *s)
{
    map_done(&s->known);
    arena_done(&s->arena);
    *s = (struct job_search){.of_ix = 0};
}

bool retention_is_under_way(const struct retention *r, uint64_t plan_ix)
{
    return r->search.of_ix == plan_ix && r->search.more;
}

/* The next few. *ret_more: there are others. */
static enum bt_code delete_some(struct look *l, struct str why, msec wall, bool *ret_more,
                                struct bt_error *err)
{
    const struct inside in = {l, document, is_known};
    const uint32_t looks = l->looks;
    enum bt_code code;

    l->n = 0;
    code = journal_plans_ended(l->r->journal, l->s->at_wall, l->s->at_ix, 4 * SLICE_PLANS, take_job,
                               l, err);
    *ret_more = !l->over && l->looks > looks;
    for (uint32_t i = 0; i < l->n && code == BT_OK; i++) {
        if (plan_is_inside(l->ids[i], &in)) {
            code = delete_one(l, i, why, wall, err);
        } else if (l->failed != BT_OK) {
            code = err_set(err, l->failed, "%s", l->why.msg);
        }
    }
    if (code == BT_OK && !*ret_more && l->s->deleted > l->s->before) {
        from_the_start(l->s); /* a full disk may have refused what was deleted before */
        l->over = false;
        *ret_more = true;
    }
    return code;
}

enum bt_code retention_delete_jobs(struct retention *r, const struct ended *p, struct str why,
                                   msec wall, uint32_t *ret_jobs, struct bt_error *err)
{
    struct job_search *s = &r->search;
    struct look l = {.r = r, .s = s, .last_wall = msec_add(p->ended, JOB_LATE_MS)};
    enum bt_code code = BT_OK;
    uint32_t most;
    bool more = true;

    begin(s, p);
    most = s->deleted + DELETES;
    while (more && code == BT_OK && l.looks < LOOKS && s->deleted < most) {
        code = delete_some(&l, why, wall, &more, err);
    }
    *ret_jobs = s->deleted;
    s->more = code == BT_OK && more;
    if (s->more) {
        return err_set(err, BT_BUSY,
                       "%" PRIu32
                       " plans inside it are deleted, and there may be more: send it again",
                       s->deleted);
    }
    if (code != BT_OK) {
        from_the_start(s); /* what is known stays: it tells what was inside those that went */
    } else {
        retention_search_done(s);
    }
    return code;
}
