/*
 * What a replan brings that has completed already (C32). A new step whose id, agent, skill, task
 * and parameters equal a completed one's is that one: it is left out. The same id with other
 * content is new work and takes the id. New work that repeats an unsafe step waits for a person.
 */
#include "supervisor/plan/revision_edges_internal.h"

static bool is_absent(struct doc parameters)
{
    return parameters.ptr == NULL ||
           (doc_head(parameters).kind == DOC_MAP && doc_head(parameters).n == 0);
}

static bool is_same_work(const struct plan_step *a, const struct plan_step *b, bool same_task)
{
    if (!str_eq(a->agent_id, b->agent_id) || !str_eq(a->skill, b->skill) ||
        (same_task && !str_eq(a->task, b->task))) {
        return false;
    }
    return is_absent(a->parameters) || is_absent(b->parameters)
               ? is_absent(a->parameters) && is_absent(b->parameters)
               : doc_eq(a->parameters, b->parameters);
}

static bool has_completed(const struct revision_edges *w, uint32_t entry)
{
    return w->request->run->steps[entry].status == STEP_COMPLETED;
}

/* ---- equal steps ---- */

/* The entries that are kept, by id. */
static enum bt_code index_kept(const struct revision_edges *w, struct map *ids)
{
    const struct plan *p = w->r->plan;
    for (uint32_t i = 0; i < w->r->first; i++) {
        if (!p->steps[i].superseded && map_put(ids, p->steps[i].step_id, i) != BT_OK) {
            return reader_nomem(w->r);
        }
    }
    return BT_OK;
}

/* True: the new entry is a completed one. Otherwise an entry of its id that `reuse` does not name
 * gives the id away. */
static bool is_completed_one(struct revision_edges *w, const struct map *ids, uint32_t entry)
{
    struct plan_step *steps = w->r->plan->steps;
    const uint32_t old = map_get(ids, steps[entry].step_id);
    if (old == MAP_NONE || !has_completed(w, old)) {
        return false;
    }
    if (is_same_work(&steps[old], &steps[entry], true)) {
        return true;
    }
    steps[old].superseded = steps[old].superseded || w->reused[old] != REUSED_BY_NAME;
    return false;
}

/* Entry `from` moves to `to`, with what the reader holds about it. */
static void move_entry(struct plan_reader *r, uint32_t from, uint32_t to)
{
    r->plan->steps[to] = r->plan->steps[from];
    r->gate_given[to - r->first] = r->gate_given[from - r->first];
    r->steps[to - r->first] = r->steps[from - r->first];
}

/* Templates of entries that are left out are not checked; the others follow their entries. */
static void move_texts(struct plan_reader *r, const uint32_t *moved)
{
    struct plan_text *texts = (struct plan_text *)(void *)r->texts.at;
    const size_t n = r->texts.len / sizeof *texts;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct plan_text t = texts[i];
        if (t.step >= r->first) {
            t.step = moved[t.step - r->first];
        }
        if (t.step != UINT32_MAX) {
            texts[kept++] = t;
        }
    }
    buf_truncate(&r->texts, kept * sizeof *texts);
}

static enum bt_code leave_out(struct revision_edges *w, const struct map *ids)
{
    struct plan_reader *r = w->r;
    const uint32_t n = r->plan->n_steps;
    uint32_t *moved = arena_alloc(&r->scratch, (n - r->first + 1) * sizeof *moved);
    uint32_t to = r->first;
    if (moved == NULL) {
        return reader_nomem(r);
    }
    for (uint32_t i = r->first; i < n; i++) {
        const bool out = is_completed_one(w, ids, i);
        moved[i - r->first] = out ? UINT32_MAX : to;
        if (!out) {
            move_entry(r, i, to++);
        }
    }
    w->left_out = n - to;
    r->plan->n_steps = to;
    if (w->left_out > 0) {
        move_texts(r, moved);
    }
    return BT_OK;
}

/* ---- unsafe steps ---- */

/* Its work: the same agent, skill and parameters, in whatever words; without parameters the words
 * count. Its id: for the same agent and skill, or for other unsafe work. */
static bool repeats(const struct plan_step *old, const struct plan_step *new)
{
    const bool same_skill = str_eq(old->agent_id, new->agent_id) && str_eq(old->skill, new->skill);
    return is_same_work(old, new, is_absent(old->parameters)) ||
           (str_eq(old->step_id, new->step_id) &&
            (same_skill || new->policy.effects == EFFECTS_UNSAFE));
}

/* The plan's author may call a step unsafe that its card does not: then its repetition is, too. */
static void settle_unsafe(struct revision_edges *w, struct plan_step *new)
{
    for (uint32_t i = 0; i < w->r->first; i++) {
        const struct plan_step *old = &w->r->plan->steps[i];
        if (old->policy.effects == EFFECTS_UNSAFE && has_completed(w, i) && repeats(old, new)) {
            new->policy.effects = EFFECTS_UNSAFE;
            new->policy.requires_approval = true;
        }
    }
}

enum bt_code revision_repeats_settle(struct revision_edges *w)
{
    struct map ids = {0};
    enum bt_code code = index_kept(w, &ids);
    code = code == BT_OK ? leave_out(w, &ids) : code;
    map_done(&ids);
    for (uint32_t i = w->r->first; i < w->r->plan->n_steps && code == BT_OK; i++) {
        settle_unsafe(w, &w->r->plan->steps[i]);
    }
    return code;
}
