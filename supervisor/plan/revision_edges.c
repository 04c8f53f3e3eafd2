/* The entries of the next revision of a plan: their dependencies, and what has completed already.
 */
#include "supervisor/plan/revision_edges_internal.h"

/* ---- the old plan ---- */

static uint32_t old_deps(const struct plan *old, uint32_t entry)
{
    return old->chain ? (entry > 0 ? 1 : 0) : old->steps[entry].deps_n;
}

static uint32_t old_dep(const struct plan *old, uint32_t entry, uint32_t i)
{
    return old->chain ? entry - 1 : old->deps[old->steps[entry].deps_at + i];
}

static uint32_t old_dependents(const struct plan *old, uint32_t entry)
{
    return old->chain ? (entry + 1 < old->n_steps ? 1 : 0) : old->steps[entry].dependents_n;
}

static uint32_t old_dependent(const struct plan *old, uint32_t entry, uint32_t i)
{
    return old->chain ? entry + 1 : old->dependents[old->steps[entry].dependents_at + i];
}

static bool is_live(const struct revision_edges *w, uint32_t entry)
{
    return !w->r->plan->steps[entry].superseded;
}

static bool is_over(const struct revision_edges *w, uint32_t entry)
{
    return step_is_final(w->request->run->steps[entry].status);
}

/* ---- edges ---- */

static void add_edge(struct revision_edges *w, uint32_t entry, uint32_t dep)
{
    const struct added_edge t = {dep, w->last_added[entry]};
    if (w->added.len / sizeof t >= LIMIT_EDGES) {
        return; /* put_edges reports it */
    }
    w->last_added[entry] = (uint32_t)(w->added.len / sizeof t);
    buf_add(&w->added, &t, sizeof t);
}

static void add_edges_from_sources(struct revision_edges *w, uint32_t dep)
{
    for (uint32_t i = 0; i < w->n_sources; i++) {
        add_edge(w, w->sources[i], dep);
    }
}

static void add_edges_to_sinks(struct revision_edges *w, uint32_t entry)
{
    for (uint32_t i = 0; i < w->n_sinks; i++) {
        add_edge(w, entry, w->sinks[i]);
    }
}

/* ---- the new steps among each other ---- */

static enum bt_code index_ids(struct revision_edges *w)
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

static const struct str *names_of(const struct revision_edges *w, uint32_t entry)
{
    const struct str *names = (const struct str *)(const void *)w->r->dep_names.at;
    return names == NULL ? NULL : names + w->r->plan->steps[entry].deps_at;
}

static void find_ends(struct revision_edges *w)
{
    const struct plan *p = w->r->plan;
    const uint32_t first = w->r->first;
    if (p->n_steps == first) {
        return; /* all of them have completed already */
    }
    if (!w->r->any_deps) {
        for (uint32_t i = first + 1; i < p->n_steps; i++) {
            add_edge(w, i, i - 1);
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

/* ---- insert, replace, replan ---- */

static void put_begun(struct revision_edges *w, uint32_t entry, const char *field)
{
    const struct location at = {.problems = w->r->problems, .prefix = ""};
    location_report(&at, PROBLEM_INVALID_FIELD, false, field,
                    "step \"%.*s\" has begun, so nothing can come before it any more",
                    STR_ARG(w->r->plan->steps[entry].step_id));
}

/*
 * Followers are steps that wait only for the end of `entry` (in a chain: the next one). They also
 * wait for the new ones. After a follower that is over already (skipped, say) come its own
 * followers.
 */
static void delay_followers(struct revision_edges *w, uint32_t entry)
{
    const struct plan *old = w->request->plan;
    uint32_t n = 0;
    w->list[n++] = entry;
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
                add_edges_to_sinks(w, next);
            }
        }
    }
    memset(w->mark, 0, w->r->plan->n_steps * sizeof w->mark[0]);
}

bool revision_edges_is_ordered(const struct revision_edges *w)
{
    for (uint32_t i = 0; i < w->r->first; i++) {
        if (is_live(w, i) && !w->r->plan->steps[i].after_any_end) {
            return false;
        }
    }
    return true;
}

/* Makes the first new steps depend on every entry that passes and on which no other passing one
 * depends. */
static void append_after(struct revision_edges *w,
                         bool (*passes)(const struct revision_edges *w, uint32_t entry))
{
    const struct plan *old = w->request->plan;
    for (uint32_t i = 0; i < w->r->first; i++) {
        bool last = passes(w, i);
        for (uint32_t d = 0; last && d < old_dependents(old, i); d++) {
            last = !passes(w, old_dependent(old, i, d));
        }
        if (last) {
            add_edges_from_sources(w, i);
        }
    }
}

static void revision_edges_insert(struct revision_edges *w)
{
    const struct plan *old = w->request->plan;
    if (w->after != UINT32_MAX) {
        add_edges_from_sources(w, w->after);
    }
    if (w->before != UINT32_MAX) {
        for (uint32_t i = 0; w->after == UINT32_MAX && i < old_deps(old, w->before); i++) {
            add_edges_from_sources(w, old_dep(old, w->before, i));
        }
        add_edges_to_sinks(w, w->before);
    } else if (w->after != UINT32_MAX) {
        delay_followers(w, w->after);
    } else if (revision_edges_is_ordered(w)) {
        append_after(w, is_live);
    }
}

static void revision_edges_replace(struct revision_edges *w)
{
    const struct plan *old = w->request->plan;
    if (w->replaced == UINT32_MAX) {
        return;
    }
    for (uint32_t i = 0; i < old_deps(old, w->replaced); i++) {
        add_edges_from_sources(w, old_dep(old, w->replaced, i));
    }
    for (uint32_t i = 0; i < old_dependents(old, w->replaced); i++) {
        const uint32_t entry = old_dependent(old, w->replaced, i);
        if (is_live(w, entry) && w->settled[entry] == 0) {
            add_edges_to_sinks(w, entry);
        }
    }
}

/* An answer without any dependsOn is a chain (C10), after the completed steps. */
static void revision_edges_replan(struct revision_edges *w)
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

static void put_edge(struct revision_edges *w, struct str name, uint32_t dep)
{
    buf_add(&w->names, &name, sizeof name);
    buf_add(&w->entries, &dep, sizeof dep);
    w->r->plan->n_edges++;
}

static void put_entry(struct revision_edges *w, uint32_t entry)
{
    const struct plan *old = w->request->plan;
    const struct str none = {NULL, 0};
    const uint32_t stamp = entry + 1;
    const uint32_t at = w->r->plan->n_edges;
    struct plan_step *s = &w->r->plan->steps[entry];
    const bool drops = entry < w->r->first && is_live(w, entry) && w->settled[entry] == 0;
    for (uint32_t i = 0; entry < w->r->first && i < old_deps(old, entry); i++) {
        const uint32_t dep = old_dep(old, entry, i);
        if (!drops || dep != w->replaced) {
            w->mark[dep] = stamp;
            put_edge(w, none, dep);
        }
    }
    for (uint32_t i = 0; entry >= w->r->first && i < s->deps_n; i++) {
        const struct str name = names_of(w, entry)[i];
        const uint32_t dep = map_get(&w->ids, name);
        if (dep != MAP_NONE) {
            w->mark[dep] = stamp;
        }
        put_edge(w, name, UINT32_MAX);
    }
    const struct added_edge *edges = (const struct added_edge *)(const void *)w->added.at;
    for (uint32_t t = w->last_added[entry]; t != UINT32_MAX; t = edges[t].next) {
        if (w->mark[edges[t].dep] != stamp) {
            w->mark[edges[t].dep] = stamp;
            put_edge(w, none, edges[t].dep);
        }
    }
    s->deps_at = at;
    s->deps_n = w->r->plan->n_edges - at;
}

static enum bt_code put_edges(struct revision_edges *w)
{
    struct plan *p = w->r->plan;
    p->n_edges = 0;
    p->chain = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        put_entry(w, i);
    }
    if (w->names.bad == BT_LIMIT || p->n_edges > LIMIT_EDGES ||
        w->added.len / sizeof(struct added_edge) >= LIMIT_EDGES) {
        const struct location at = {.problems = w->r->problems, .prefix = ""};
        location_report(&at, PROBLEM_LIMIT, false, "steps",
                        "%u or more dependencies of the plan, at most %u", LIMIT_EDGES + 1U,
                        (unsigned)LIMIT_EDGES);
        return BT_OK;
    }
    const enum bt_code code = buf_check(&w->names, w->r->err);
    return code == BT_OK ? buf_check(&w->entries, w->r->err) : code;
}

static enum bt_code make_room(struct revision_edges *w)
{
    const size_t n = w->r->plan->n_steps + 1;
    const size_t fresh = n - w->r->first;
    struct arena *a = &w->r->scratch;
    w->last_added = arena_alloc(a, n * sizeof w->last_added[0]);
    w->mark = arena_alloc(a, n * sizeof w->mark[0]);
    w->list = arena_alloc(a, n * sizeof w->list[0]);
    w->sources = arena_alloc(a, fresh * sizeof w->sources[0]);
    w->sinks = arena_alloc(a, fresh * sizeof w->sinks[0]);
    if (w->last_added == NULL || w->mark == NULL || w->list == NULL || w->sources == NULL ||
        w->sinks == NULL) {
        return reader_nomem(w->r);
    }
    memset(w->last_added, 0xff, n * sizeof w->last_added[0]);
    buf_init(&w->added, (LIMIT_EDGES + 1) * sizeof(struct added_edge));
    buf_init(&w->names, 2 * (LIMIT_EDGES + 1) * sizeof(struct str));
    buf_init(&w->entries, 2 * (LIMIT_EDGES + 1) * sizeof(uint32_t));
    return BT_OK;
}

enum bt_code revision_edges_find(struct revision_edges *w)
{
    enum bt_code code = make_room(w);
    code = code == BT_OK ? index_ids(w) : code;
    if (code != BT_OK) {
        return code;
    }
    find_ends(w);
    switch (w->request->kind) {
    case REVISE_INSERT:
        revision_edges_insert(w);
        break;
    case REVISE_REPLACE:
        revision_edges_replace(w);
        break;
    case REVISE_REPLAN:
        revision_edges_replan(w);
        break;
    case REVISE_RERUN: /* the new steps name their dependencies */
        break;
    }
    if (w->added.bad == BT_NOMEM) {
        return reader_nomem(w->r);
    }
    return put_edges(w);
}

void revision_edges_done(struct revision_edges *w)
{
    map_done(&w->ids);
    buf_done(&w->added);
    buf_done(&w->names);
    buf_done(&w->entries);
}

/* ---- repeats ---- */

/*
 * What a replan brings that has completed already (C32). A new step whose id, agent, skill, task
 * and parameters equal a completed one's is that one: it is left out. The same id with other
 * content is new work and takes the id. New work that repeats an unsafe step waits for a person.
 */
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
            (same_skill || new->rules->policy.effects == EFFECTS_UNSAFE));
}

/* The plan's author may call a step unsafe that its card does not: then its repetition is, too. */
static void settle_unsafe(struct revision_edges *w, struct plan_step *new)
{
    for (uint32_t i = 0; i < w->r->first; i++) {
        const struct plan_step *old = &w->r->plan->steps[i];
        if (old->rules->policy.effects == EFFECTS_UNSAFE && repeats(old, new) &&
            (has_completed(w, i) || run_may_be_done(w->request->run, w->request->plan, i))) {
            new->rules->policy.effects = EFFECTS_UNSAFE;
            new->rules->policy.requires_approval = true;
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
