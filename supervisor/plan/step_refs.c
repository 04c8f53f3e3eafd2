/* What a step depends on, by name, and where its parameters hold templates. */
#include <stdio.h>

#include "supervisor/core/plan/template.h"
#include "supervisor/plan/reader_internal.h"

/* ---- dependencies ---- */

static enum bt_code add_dep(struct step_reader *s, struct doc name)
{
    struct str id;
    bool oom = false;
    if (s->r->plan->n_edges == LIMIT_EDGES) {
        return BT_LIMIT;
    }
    if (value_id(&s->at, "dependsOn", name, &s->r->scratch, &id, &oom)) {
        buf_add(&s->r->dep_names, &id, sizeof id);
        s->r->plan->n_edges++;
        s->step->deps_n++;
    }
    return oom ? reader_nomem(s->r) : buf_check(&s->r->dep_names, s->r->err);
}

static enum bt_code add_deps(struct step_reader *s, struct doc deps)
{
    struct doc_cursor c = doc_cursor(deps);
    struct doc_head head;
    enum bt_code code = BT_OK;
    if (deps.ptr == NULL || !doc_next(&c, &head)) {
        return BT_OK;
    }
    s->r->any_deps = true;
    if (head.kind != DOC_ARRAY) {
        return add_dep(s, deps); /* one name, not in a list */
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        code = add_dep(s, doc_skip(&c));
    }
    return code;
}

enum bt_code plan_step_deps(struct step_reader *s)
{
    s->step->deps_at = s->r->plan->n_edges;
    enum bt_code code = add_deps(s, s->values[STEP_DEPS]);
    if (code == BT_OK && s->r->phase_deps != NULL) {
        code = add_deps(s, s->r->phase_deps[s->ix - s->r->first]);
    }
    if (code == BT_LIMIT && s->r->plan->n_edges == LIMIT_EDGES) {
        place_problem(&s->at, PROBLEM_LIMIT, false, "dependsOn",
                      "the plan has more than %u dependencies", (unsigned)LIMIT_EDGES);
        return BT_OK;
    }
    return code;
}

/* ---- templates ---- */

static enum bt_code add_text(struct plan_reader *r, uint32_t ix, struct str text, struct str key)
{
    char field[64];
    struct plan_text entry = {.step = ix, .text = text};
    (void)snprintf(field, sizeof field, "parameters.%.*s", (int)(key.len < 40 ? key.len : 40),
                   key.ptr);
    entry.field = arena_str(&r->scratch, str_from(field)).ptr;
    if (entry.field == NULL) {
        return reader_nomem(r);
    }
    buf_add(&r->texts, &entry, sizeof entry);
    return buf_check(&r->texts, r->err);
}

/* Every string with braces in it; map keys among them do no harm: they are not expanded, but
 * checked all the same. */
static enum bt_code find_texts(struct plan_reader *r, uint32_t ix, struct doc value, struct str key)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    struct template_ref t;
    enum bt_code code = BT_OK;
    while (code == BT_OK && doc_next(&c, &head)) {
        size_t from = 0;
        if (head.kind == DOC_STR && template_next(head.str, &from, &t)) {
            code = add_text(r, ix, head.str, key);
        }
    }
    return code;
}

enum bt_code plan_step_texts(struct plan_reader *r, uint32_t ix)
{
    const struct doc parameters = r->plan->steps[ix].parameters;
    struct doc_cursor c = doc_cursor(parameters);
    struct doc_head head;
    struct doc_head key;
    enum bt_code code = BT_OK;
    if (parameters.ptr == NULL || !doc_next(&c, &head)) {
        return BT_OK;
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK && doc_next(&c, &key); i++) {
        code = find_texts(r, ix, doc_skip(&c), key.str);
    }
    return code;
}
