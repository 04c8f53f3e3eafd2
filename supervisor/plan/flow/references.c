#include "supervisor/plan/flow/references.h"

#include <string.h>

#include "supervisor/core/plan/template.h"
#include "supervisor/plan/flow/child_refs.h"
#include "supervisor/plan/flow/condition.h"

static bool has_template(struct str text)
{
    struct template_ref t;
    size_t from = 0;
    while (template_next(text, &from, &t)) {
        if (t.kind == TEMPLATE_OK) {
            return true;
        }
    }
    return false;
}

static void note_step(void *self, const struct condition_ref *ref)
{
    bool *names = self;
    *names = *names || ref->kind == CONDITION_RESULT || ref->kind == CONDITION_STATUS;
}

static bool note_outer(void *self, struct str text, bool reference)
{
    (void)text;
    (void)reference;
    *(bool *)self = true;
    return false;
}

bool plan_step_refers(const struct plan_step *step)
{
    struct doc_cursor c = doc_cursor(step->parameters);
    struct doc_head head;
    struct bt_error unused;
    bool names = step->type != STEP_TYPE_PLAN && has_template(step->task);
    while (!names && step->parameters.ptr != NULL && doc_next(&c, &head)) {
        names = head.kind == DOC_STR && has_template(head.str);
    }
    if (!names && step->rules->when.ptr != NULL) {
        (void)!condition_check(step->rules->when, note_step, &names, &unused);
    }
    if (!names && step->rules->child.ptr != NULL) {
        (void)!child_references(step->rules->child, step->step_id, note_outer, &names, &unused);
    }
    if (!names && step->rules->compensate.ptr != NULL) {
        (void)!compensate_references(step->rules->compensate, step->step_id, note_outer, &names,
                                     &unused);
    }
    return names;
}

/* The edges with those that references add, all of them resolved. */
static enum bt_code add_edges(struct plan_check_input *in, struct plan *plan, struct arena *arena,
                              struct arena *scratch, struct bt_error *err)
{
    const size_t n = plan->n_edges + in->n_missing;
    uint32_t *deps = arena_alloc(arena, (n + 1) * sizeof *deps);
    struct str *names = arena_alloc(scratch, (n + 1) * sizeof *names);
    uint32_t *numbers;
    uint32_t at = 0;
    uint32_t next = 0; /* of the missing ones, which are in the order of the steps */
    if (deps == NULL || names == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a plan");
    }
    memset(names, 0, (n + 1) * sizeof *names); /* resolved */
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        struct plan_step *step = &plan->steps[s];
        const uint32_t from = at;
        for (uint32_t e = step->deps_at; e < step->deps_at + step->deps_n; e++) {
            deps[at++] = in->ret_deps[e];
        }
        for (; next < in->n_missing && in->missing[next].step == s; next++) {
            deps[at++] = in->missing[next].dep;
        }
        step->deps_at = from;
        step->deps_n = at - from;
    }
    plan->n_edges = at;
    plan->deps = deps;
    numbers = arena_alloc(scratch, plan_check_scratch(plan) * sizeof *numbers);
    plan->dependents = arena_alloc(arena, (n + 1) * sizeof *plan->dependents);
    in->dep_names = names;
    in->ret_deps = deps;
    in->scratch = numbers;
    return numbers == NULL || plan->dependents == NULL
               ? err_set(err, BT_NOMEM, "out of memory for a plan")
               : BT_OK;
}

enum bt_code plan_check_references(struct plan_check_input *in, struct plan *plan,
                                   struct problems *problems, struct arena *arena,
                                   struct arena *scratch, struct bt_error *err)
{
    const struct problems before = *problems;
    if (in->again || plan->chain) {
        plan_check(in, problems);
        return BT_OK;
    }
    in->missing_max = LIMIT_EDGES - (plan->n_edges < LIMIT_EDGES ? plan->n_edges : LIMIT_EDGES);
    if (plan->n_steps * (uint64_t)plan->n_steps < in->missing_max) { /* each pair once */
        in->missing_max = plan->n_steps * plan->n_steps;
    }
    in->missing = arena_room(scratch, (in->missing_max + 1) * sizeof *in->missing);
    if (in->missing == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a plan");
    }
    plan_check(in, problems);
    if (in->n_missing == 0 || problems->errors > before.errors) {
        return BT_OK;
    }
    *problems = before; /* without errors nothing of it was replaced */
    const enum bt_code code = add_edges(in, plan, arena, scratch, err);
    in->missing_max = 0;
    if (code == BT_OK) {
        plan_check(in, problems);
    }
    return code;
}
