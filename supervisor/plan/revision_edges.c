/* Which row depends on which in the next revision of a plan. */
#include "supervisor/plan/revision_edges.h"

/* ---- the plan as it is ---- */

static uint32_t old_deps(const struct plan *old, uint32_t row)
{
    return old->chain ? (row > 0 ? 1 : 0) : old->steps[row].deps_n;
}

static uint32_t old_dep(const struct plan *old, uint32_t row, uint32_t i)
{
    return old->chain ? row - 1 : old->deps[old->steps[row].deps_at + i];
}

static uint32_t old_dependents(const struct plan *old, uint32_t row)
{
    return old->chain ? (row + 1 < old->n_steps ? 1 : 0) : old->steps[row].dependents_n;
}

static uint32_t old_dependent(const struct plan *old, uint32_t row, uint32_t i)
{
    return old->chain ? row + 1 : old->dependents[old->steps[row].dependents_at + i];
}

static bool is_live(const struct weave *w, uint32_t row)
{
    return !w->r->plan->steps[row].superseded;
}

static bool is_over(const struct weave *w, uint32_t row)
{
    return step_is_final(w->request->run->steps[row].status);
}

/* ---- threads ---- */

static void tie(struct weave *w, uint32_t row, uint32_t dep)
{
    const struct thread t = {dep, w->threads[row]};
    if (w->thread.len / sizeof t >= LIMIT_EDGES) {
        return; /* put_edges says so */
    }
    w->threads[row] = (uint32_t)(w->thread.len / sizeof t);
    buf_add(&w->thread, &t, sizeof t);
}

static void tie_sources(struct weave *w, uint32_t dep)
{
    for (uint32_t i = 0; i < w->n_sources; i++) {
        tie(w, w->sources[i], dep);
    }
}

static void tie_to_sinks(struct weave *w, uint32_t row)
{
    for (uint32_t i = 0; i < w->n_sinks; i++) {
        tie(w, row, w->sinks[i]);
    }
}

/* ---- the new steps among each other ---- */

static enum bt_code index_ids(struct weave *w)
{
    const struct plan *p = w->r->plan;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (is_live(w, i) && p->steps[i].step_id.len > 0 &&
            map_put(&w->ids, p->steps[i].step_id, i) != BT_OK) {
            return reader_nomem(w->r);
        }
    }
    return BT_OK;
}

static const struct str *names_of(const struct weave *w, uint32_t row)
{
    const struct str *names = (const struct str *)(const void *)w->r->dep_names.at;
    return names == NULL ? NULL : names + w->r->plan->steps[row].deps_at;
}

static void find_ends(struct weave *w)
{
    const struct plan *p = w->r->plan;
    const uint32_t first = w->r->first;
    if (!w->r->any_deps) {
        for (uint32_t i = first + 1; i < p->n_steps; i++) {
            tie(w, i, i - 1);
        }
        w->sources[w->n_sources++] = first;
        w->sinks[w->n_sinks++] = p->n_steps - 1;
        return;
    }
    for (uint32_t i = first; i < p->n_steps; i++) {
        const struct str *names = names_of(w, i);
        bool source = true;
        for (uint32_t d = 0; d < p->steps[i].deps_n; d++) {
            const uint32_t dep = map_get(&w->ids, names[d]);
            if (dep != MAP_NONE && dep >= first) {
                w->mark[dep] = 1; /* something depends on it */
                source = false;
            }
        }
        if (source) {
            w->sources[w->n_sources++] = i;
        }
    }
    for (uint32_t i = first; i < p->n_steps; i++) {
        if (w->mark[i] == 0) {
            w->sinks[w->n_sinks++] = i;
        }
        w->mark[i] = 0;
    }
}

/* ---- what the kinds mean ---- */

static void put_begun(struct weave *w, uint32_t row, const char *field)
{
    const struct place at = {.problems = w->r->problems, .prefix = ""};
    place_problem(&at, PROBLEM_INVALID_FIELD, false, field,
                  "step \"%.*s\" has begun, so nothing can come before it any more",
                  STR_ARG(w->r->plan->steps[row].step_id));
}

/*
 * Steps that only wait for the end of `row`, in a chain the next one, wait for the new ones, too.
 * Behind one that is over already (skipped, say) those are meant that wait for it.
 */
static void push_back_followers(struct weave *w, uint32_t row)
{
    const struct plan *old = w->request->plan;
    uint32_t n = 0;
    w->list[n++] = row;
    while (n > 0) {
        const uint32_t of = w->list[--n];
        for (uint32_t i = 0; i < old_dependents(old, of); i++) {
            const uint32_t next = old_dependent(old, of, i);
            if (w->mark[next] != 0 || !is_live(w, next) || !w->r->plan->steps[next].after_any_end) {
                continue;
            }
            w->mark[next] = 1;
            if (is_over(w, next)) {
                w->list[n++] = next;
            } else if (w->settled[next] != 0) {
                put_begun(w, next, "afterStepId");
            } else {
                tie_to_sinks(w, next);
            }
        }
    }
    memset(w->mark, 0, w->r->plan->n_steps * sizeof w->mark[0]);
}

bool weave_is_ordered(const struct weave *w)
{
    for (uint32_t i = 0; i < w->r->first; i++) {
        if (is_live(w, i) && !w->r->plan->steps[i].after_any_end) {
            return false;
        }
    }
    return true;
}

/* The first new ones come after every row that passes and that no other passing row depends on. */
static void append_after(struct weave *w, bool (*passes)(const struct weave *w, uint32_t row))
{
    const struct plan *old = w->request->plan;
    for (uint32_t i = 0; i < w->r->first; i++) {
        bool last = passes(w, i);
        for (uint32_t d = 0; last && d < old_dependents(old, i); d++) {
            last = !passes(w, old_dependent(old, i, d));
        }
        if (last) {
            tie_sources(w, i);
        }
    }
}

static void weave_insert(struct weave *w)
{
    const struct plan *old = w->request->plan;
    if (w->after != UINT32_MAX) {
        tie_sources(w, w->after);
    }
    if (w->before != UINT32_MAX) {
        for (uint32_t i = 0; w->after == UINT32_MAX && i < old_deps(old, w->before); i++) {
            tie_sources(w, old_dep(old, w->before, i));
        }
        tie_to_sinks(w, w->before);
    } else if (w->after != UINT32_MAX) {
        push_back_followers(w, w->after);
    } else if (weave_is_ordered(w)) {
        append_after(w, is_live);
    }
}

static void weave_replace(struct weave *w)
{
    const struct plan *old = w->request->plan;
    if (w->replaced == UINT32_MAX) {
        return;
    }
    for (uint32_t i = 0; i < old_deps(old, w->replaced); i++) {
        tie_sources(w, old_dep(old, w->replaced, i));
    }
    for (uint32_t i = 0; i < old_dependents(old, w->replaced); i++) {
        const uint32_t row = old_dependent(old, w->replaced, i);
        if (is_live(w, row) && w->settled[row] == 0) {
            tie_to_sinks(w, row);
        }
    }
}

/* The answer without any dependsOn is a chain, as any plan (C10), behind what it keeps. */
static void weave_replan(struct weave *w)
{
    struct plan *p = w->r->plan;
    if (w->r->any_deps) {
        return;
    }
    for (uint32_t i = w->r->first; i < p->n_steps; i++) {
        p->steps[i].after_any_end = true;
    }
    append_after(w, is_live);
}

/* ---- the result ---- */

static void put_edge(struct weave *w, struct str name, uint32_t dep)
{
    buf_add(&w->names, &name, sizeof name);
    buf_add(&w->rows, &dep, sizeof dep);
    w->r->plan->n_edges++;
}

static void put_row(struct weave *w, uint32_t row)
{
    const struct plan *old = w->request->plan;
    const struct str none = {NULL, 0};
    const uint32_t stamp = row + 1;
    const uint32_t at = w->r->plan->n_edges;
    struct plan_step *s = &w->r->plan->steps[row];
    const bool drops = row < w->r->first && is_live(w, row) && w->settled[row] == 0;
    for (uint32_t i = 0; row < w->r->first && i < old_deps(old, row); i++) {
        const uint32_t dep = old_dep(old, row, i);
        if (!drops || dep != w->replaced) {
            w->mark[dep] = stamp;
            put_edge(w, none, dep);
        }
    }
    for (uint32_t i = 0; row >= w->r->first && i < s->deps_n; i++) {
        const struct str name = names_of(w, row)[i];
        const uint32_t dep = map_get(&w->ids, name);
        if (dep != MAP_NONE) {
            w->mark[dep] = stamp;
        }
        put_edge(w, name, UINT32_MAX);
    }
    const struct thread *threads = (const struct thread *)(const void *)w->thread.at;
    for (uint32_t t = w->threads[row]; t != UINT32_MAX; t = threads[t].next) {
        if (w->mark[threads[t].dep] != stamp) {
            w->mark[threads[t].dep] = stamp;
            put_edge(w, none, threads[t].dep);
        }
    }
    s->deps_at = at;
    s->deps_n = w->r->plan->n_edges - at;
}

static enum bt_code put_edges(struct weave *w)
{
    struct plan *p = w->r->plan;
    p->n_edges = 0;
    p->chain = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        put_row(w, i);
    }
    if (w->names.bad == BT_LIMIT || p->n_edges > LIMIT_EDGES ||
        w->thread.len / sizeof(struct thread) >= LIMIT_EDGES) {
        const struct place at = {.problems = w->r->problems, .prefix = ""};
        place_problem(&at, PROBLEM_LIMIT, false, "steps",
                      "the plan would have more than %u dependencies", (unsigned)LIMIT_EDGES);
        return BT_OK;
    }
    const enum bt_code code = buf_check(&w->names, w->r->err);
    return code == BT_OK ? buf_check(&w->rows, w->r->err) : code;
}

static enum bt_code make_room(struct weave *w)
{
    const size_t n = w->r->plan->n_steps + 1;
    const size_t fresh = n - w->r->first;
    struct arena *a = &w->r->scratch;
    w->threads = arena_alloc(a, n * sizeof w->threads[0]);
    w->mark = arena_alloc(a, n * sizeof w->mark[0]);
    w->list = arena_alloc(a, n * sizeof w->list[0]);
    w->sources = arena_alloc(a, fresh * sizeof w->sources[0]);
    w->sinks = arena_alloc(a, fresh * sizeof w->sinks[0]);
    if (w->threads == NULL || w->mark == NULL || w->list == NULL || w->sources == NULL ||
        w->sinks == NULL) {
        return reader_nomem(w->r);
    }
    memset(w->threads, 0xff, n * sizeof w->threads[0]);
    buf_init(&w->thread, (LIMIT_EDGES + 1) * sizeof(struct thread));
    buf_init(&w->names, 2 * (LIMIT_EDGES + 1) * sizeof(struct str));
    buf_init(&w->rows, 2 * (LIMIT_EDGES + 1) * sizeof(uint32_t));
    return BT_OK;
}

enum bt_code weave_edges(struct weave *w)
{
    enum bt_code code = make_room(w);
    code = code == BT_OK ? index_ids(w) : code;
    if (code != BT_OK) {
        return code;
    }
    find_ends(w);
    switch (w->request->kind) {
    case REVISE_INSERT:
        weave_insert(w);
        break;
    case REVISE_REPLACE:
        weave_replace(w);
        break;
    case REVISE_REPLAN:
        weave_replan(w);
        break;
    case REVISE_AGAIN: /* they say it themselves */
        break;
    }
    if (w->thread.bad == BT_NOMEM) {
        return reader_nomem(w->r);
    }
    return put_edges(w);
}

void weave_done(struct weave *w)
{
    map_done(&w->ids);
    buf_done(&w->thread);
    buf_done(&w->names);
    buf_done(&w->rows);
}
