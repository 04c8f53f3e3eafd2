#include "supervisor/plan/revise.h"

#include "protocol/base/utf8.h"
#include "supervisor/plan/flow/references.h"
#include "supervisor/plan/problem_add.h"
#include "supervisor/plan/revision_edges_internal.h"

static struct location top(const struct revision_edges *w)
{
    return (struct location){.problems = w->r->problems, .prefix = ""};
}

/* ---- the old plan ---- */

static bool has_begun(const struct run *run, uint32_t entry)
{
    const enum step_status s = (enum step_status)run->steps[entry].status;
    return s != STEP_PENDING && s != STEP_READY;
}

/* A copy whose entries, agents and numbers may change; texts are shared. */
static enum bt_code start(struct revision_edges *w, struct plan_reader *r)
{
    const struct plan *old = w->request->plan;
    r->plan = arena_alloc(r->arena, sizeof *r->plan);
    r->policy = arena_alloc(r->arena, sizeof *r->policy);
    if (r->plan == NULL || r->policy == NULL) {
        return reader_nomem(r);
    }
    *r->plan = *old;
    *r->policy = *old->policy;
    r->plan->policy = r->policy;
    r->plan->revision = w->request->revision;
    r->plan->n_edges = 0;
    r->first = old->n_steps;
    if (plan_grants_init(r) != BT_OK || plan_keys_init(r) != BT_OK) {
        return reader_nomem(r);
    }
    for (uint32_t i = 0; i < old->keys.n; i++) {
        r->plan->keys.names[i] = old->keys.names[i];
        r->plan->keys.at[i] = KEY_NONE;
    }
    r->plan->keys.n = old->keys.n;
    memcpy(r->plan->agents.ids, old->agents.ids, old->agents.n * sizeof old->agents.ids[0]);
    memcpy(r->plan->agents.at, old->agents.at, old->agents.n * sizeof old->agents.at[0]);
    for (uint32_t i = 0; i < old->n_alternatives; i++) {
        const struct str id = old->agents.ids[old->alternatives[i]];
        buf_add(&r->fallbacks, &id, sizeof id);
    }
    return buf_check(&r->fallbacks, r->err);
}

static enum bt_code copy_entries(struct revision_edges *w)
{
    struct plan *p = w->r->plan;
    const struct plan *old = w->request->plan;
    const size_t n = p->n_steps + 1;
    p->steps = plan_steps_alloc(w->r->arena, n);
    w->settled = arena_alloc(&w->r->scratch, n);
    w->reused = arena_alloc(&w->r->scratch, n);
    if (p->steps == NULL || w->settled == NULL || w->reused == NULL) {
        return reader_nomem(w->r);
    }
    for (uint32_t i = 0; i < old->n_steps; i++) {
        struct step_rules *rules = p->steps[i].rules;
        *rules = *old->steps[i].rules;
        p->steps[i] = old->steps[i];
        p->steps[i].rules = rules;
        w->settled[i] = has_begun(w->request->run, i) ? 1 : 0;
        p->steps[i].after_any_end = p->steps[i].after_any_end || old->chain;
    }
    return BT_OK;
}

/* ---- the steps that a change names ---- */

/* The entry of a step that is not superseded; UINT32_MAX after a problem was reported. */
static uint32_t named_entry(struct revision_edges *w, const char *field, struct str id)
{
    const struct location at = top(w);
    const uint32_t entry = plan_step_find(w->request->plan, id);
    if (entry != UINT32_MAX && !w->request->plan->steps[entry].superseded) {
        return entry;
    }
    location_report(&at, PROBLEM_MISSING_DEPENDENCY, false, field,
                    "\"%.*s%s\" is no step of this plan%s", PROBLEM_NAME(id),
                    entry == UINT32_MAX ? "" : " any more");
    return UINT32_MAX;
}

static void must_not_have_begun(struct revision_edges *w, const char *field, uint32_t entry,
                                const char *but)
{
    const struct location at = top(w);
    if (entry != UINT32_MAX && w->settled[entry] != 0) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, field, "step \"%.*s\" has %s, so %s",
                        STR_ARG(w->request->plan->steps[entry].step_id),
                        step_is_final(w->request->run->steps[entry].status) ? "ended" : "begun",
                        but);
    }
}

static struct str either(struct str given, struct str reported)
{
    return given.len > 0 ? given : reported;
}

static void find_insert(struct revision_edges *w)
{
    const struct plan_change *c = w->r->change;
    const struct str after = either(w->request->after, c->after);
    const struct str before = either(w->request->before, c->before);
    w->after = after.len > 0 ? named_entry(w, "afterStepId", after) : UINT32_MAX;
    w->before = before.len > 0 ? named_entry(w, "beforeStepId", before) : UINT32_MAX;
    must_not_have_begun(w, "beforeStepId", w->before, "nothing can come before it any more");
}

static void find_replaced(struct revision_edges *w)
{
    const struct str id = either(w->request->step, w->r->change->step);
    const struct location at = top(w);
    if (id.len == 0) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "stepId",
                        "is missing; name the step that is to be replaced");
        return;
    }
    w->replaced = named_entry(w, "stepId", id);
    must_not_have_begun(w, "stepId", w->replaced, "it cannot be replaced any more");
    if (w->replaced != UINT32_MAX) {
        w->r->plan->steps[w->replaced].superseded = true;
    }
}

static void reuse(struct revision_edges *w, struct doc name)
{
    const struct location at = top(w);
    struct str id;
    if (!value_string(&at, "reuse", name, &id)) {
        return;
    }
    const uint32_t entry = named_entry(w, "reuse", id);
    if (entry != UINT32_MAX && w->request->run->steps[entry].status != STEP_COMPLETED) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "reuse",
                        "step \"%.*s\" has not completed; only results can be used again",
                        STR_ARG(id));
    } else if (entry != UINT32_MAX) {
        w->reused[entry] = REUSED_BY_NAME;
    }
}

static void find_reused(struct revision_edges *w)
{
    const struct location at = top(w);
    const struct doc list = w->r->change->reuse;
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    if (list.ptr != NULL && doc_next(&c, &head)) {
        if (head.kind != DOC_ARRAY) {
            location_report(&at, PROBLEM_INVALID_FIELD, false, "reuse",
                            "expected a list of the ids of completed steps");
            head.n = 0;
        }
        for (uint32_t i = 0; i < head.n; i++) {
            reuse(w, doc_skip(&c));
        }
    }
    /* What has completed is kept whether `reuse` names it or not (C32). */
    for (uint32_t i = 0; i < w->r->first; i++) {
        struct plan_step *s = &w->r->plan->steps[i];
        s->superseded = s->superseded || w->request->run->steps[i].status != STEP_COMPLETED;
    }
}

/* Marks the entries of a rerun as superseded. */
static void find_rerun(struct revision_edges *w)
{
    for (uint32_t i = 0; i < w->r->first; i++) {
        struct plan_step *s = &w->r->plan->steps[i];
        s->superseded = s->superseded || w->request->rerun[i] != 0;
    }
}

static void find_anchor(struct revision_edges *w)
{
    const struct plan_step *steps = w->r->plan->steps;
    uint32_t anchor = UINT32_MAX;
    switch (w->request->kind) {
    case REVISE_INSERT:
        find_insert(w);
        anchor = w->before != UINT32_MAX ? w->before : w->after;
        break;
    case REVISE_REPLACE:
        find_replaced(w);
        anchor = w->replaced;
        break;
    case REVISE_REPLAN:
        find_reused(w);
        break;
    case REVISE_RERUN:
        find_rerun(w);
        break;
    }
    /* New steps wait in the same way as the steps at their place. */
    w->r->after_any_end =
        anchor != UINT32_MAX
            ? steps[anchor].after_any_end
            : (w->request->kind == REVISE_INSERT && revision_edges_is_ordered(w)) ||
                  (w->request->kind == REVISE_RERUN && w->request->plan->chain);
}

/* ---- the new steps ---- */

static void check_size(struct revision_edges *w)
{
    const struct location at = top(w);
    if (w->r->plan->n_steps == w->r->first && w->r->problems->errors == 0) {
        location_report(&at, PROBLEM_EMPTY_PLAN, false, "steps",
                        "the change has no steps; give at least one");
    }
    if (w->request->revision > LIMIT_REVISIONS) {
        location_report(&at, PROBLEM_LIMIT, false, "steps",
                        "the plan has been changed %u times; more is not possible",
                        (unsigned)LIMIT_REVISIONS - 1);
    }
}

/* Checks the templates of entries that have not begun again: what they name may be gone. */
static enum bt_code old_texts(struct revision_edges *w)
{
    enum bt_code code = BT_OK;
    for (uint32_t i = 0; i < w->r->first && code == BT_OK; i++) {
        if (w->settled[i] == 0 && !w->r->plan->steps[i].superseded) {
            code = plan_step_texts(w->r, i);
        }
    }
    return code;
}

/* The agents of a replan's steps; plan_check reports unknown ones. */
static void check_granted(struct revision_edges *w)
{
    struct plan_reader *r = w->r;
    for (uint32_t i = r->first; i < r->plan->n_steps && r->granted_only; i++) {
        const struct plan_step *s = &r->plan->steps[i];
        const struct location at = {.problems = r->problems, .step = s, .ix = i, .prefix = ""};
        if (s->agent_id.len > 0 && (r->registry == NULL || s->agent != REGISTRY_NONE)) {
            (void)plan_agent_check_granted(r, &at, "agentId", s->agent_id);
        }
    }
}

static enum bt_code read_change(struct revision_edges *w)
{
    enum bt_code code = plan_document_find(w->r, w->request->change);
    if (code != BT_OK) {
        return code;
    }
    code = copy_entries(w);
    if (code != BT_OK) {
        return code;
    }
    check_size(w);
    find_anchor(w);
    code = old_texts(w);
    code = code == BT_OK ? plan_reader_steps(w->r) : code;
    if (code == BT_OK && w->request->kind == REVISE_REPLAN) {
        code = revision_repeats_settle(w);
    }
    if (code == BT_OK) {
        check_granted(w);
    }
    return code;
}

/* ---- checks and result ---- */

static enum bt_code check(struct revision_edges *w)
{
    struct plan_reader *r = w->r;
    struct plan *p = r->plan;
    uint32_t *scratch = arena_alloc(&r->scratch, plan_check_scratch(p) * sizeof *scratch);
    p->deps = arena_alloc(r->arena, (p->n_edges + 1) * sizeof p->deps[0]);
    if (scratch == NULL || p->deps == NULL) {
        return reader_nomem(r);
    }
    if (p->n_edges > 0) {
        memcpy(p->deps, w->entries.at, p->n_edges * sizeof p->deps[0]);
    }
    struct plan_check_input in = {
        .plan = p,
        .dep_names = (const struct str *)(const void *)w->names.at,
        .registry = r->registry,
        .texts = (const struct plan_text *)(const void *)r->texts.at,
        .n_texts = (uint32_t)(r->texts.len / sizeof(struct plan_text)),
        .late_agents = r->policy->wait_for_agents && !r->granted_only,
        .first = r->first,
        .settled = w->settled,
        .scratch = scratch,
        .ret_deps = p->deps,
    };
    const enum bt_code code =
        plan_check_references(&in, p, r->problems, r->arena, &r->scratch, r->err);
    return code == BT_OK ? plan_schema_check(r) : code;
}

static enum bt_code compose(struct revision_edges *w)
{
    struct plan_reader *r = w->r;
    enum bt_code code = start(w, r);
    code = code == BT_OK ? read_change(w) : code;
    if (code != BT_OK) {
        return code;
    }
    if (r->plan->n_steps > r->first || w->left_out > 0) {
        code = revision_edges_find(w);
        if (code == BT_OK && r->plan->n_edges <= LIMIT_EDGES) {
            plan_reader_finish(r);
            code = plan_grants(r);
            code = code == BT_OK ? check(w) : code;
        }
    }
    return code == BT_OK && r->problems->errors > 0 ? plan_reader_reject(r) : code;
}

/* The plan is read from its canonical document, so it equals the plan after a restart. */
static enum bt_code finish(struct revision_edges *w, struct arena *arena, struct plan **ret,
                           struct buf *document)
{
    const struct plan *old = w->request->plan;
    const struct plan_defaults defaults = plan_defaults_builtin();
    const size_t from = document->len;
    struct plan *plan = NULL;
    enum bt_code code = plan_write(w->r->plan, document, w->r->err);
    if (code != BT_OK) {
        return code;
    }
    const struct doc doc = doc_copy(arena, (struct doc){document->at + from, document->len - from});
    if (doc.ptr == NULL) {
        return reader_nomem(w->r);
    }
    code = plan_read_canonical(doc, &defaults, w->request->registry, arena, &plan, w->r->err);
    if (code == BT_OK) {
        plan->session = old->session;
        *ret = plan;
    }
    return code;
}

enum bt_code plan_revise(const struct plan_revise_request *request, struct arena *arena,
                         struct plan **ret, struct problems *problems, struct buf *document,
                         struct bt_error *err)
{
    const struct plan_request none = {.registry = request->registry};
    const size_t from = document->len;
    struct arena composing = {.chunks = NULL};
    struct plan_change change = {.reuse = {NULL, 0}};
    struct plan_reader r = {.request = &none,
                            .registry = request->registry,
                            .granted_only = request->kind >= REVISE_REPLAN,
                            .untrusted = request->kind >= REVISE_REPLAN,
                            .change = &change,
                            .arena = &composing,
                            .problems = problems,
                            .err = err};
    struct revision_edges w = {.request = request,
                               .r = &r,
                               .after = UINT32_MAX,
                               .before = UINT32_MAX,
                               .replaced = UINT32_MAX};
    if (request->plan->child.kind == CHILD_OF_MAP) { /* its document has the steps of one item */
        return err_set(
            err, BT_INVALID,
            "the plan does the items of a forEach; change the step of the plan around it");
    }
    plan_reader_init(&r);
    enum bt_code code = compose(&w);
    if (code == BT_OK) {
        code = finish(&w, arena, ret, document);
    }
    if (code != BT_OK && document->len > from) {
        buf_truncate(document, from);
    }
    revision_edges_done(&w);
    plan_reader_done(&r);
    arena_done(&composing);
    return code;
}
