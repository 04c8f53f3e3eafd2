#include "supervisor/plan/flow/child_refs.h"

#include <string.h>

#include "protocol/base/map.h"
#include "supervisor/core/plan/template.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/flow/condition.h"

struct visit {
    struct map inner; /* ids of the steps of the bodies */
    child_on_ref *on_ref;
    void *self;
    bool over;
};

static bool is_inner(const struct visit *v, struct str ref)
{
    struct str id = {NULL, 0};
    struct str path;
    while (template_split(ref, &id, &path)) {
        if (map_get(&v->inner, id) != MAP_NONE) {
            return true;
        }
    }
    return false;
}

static void tell(struct visit *v, struct str text, bool reference)
{
    v->over = v->over || !v->on_ref(v->self, text, reference);
}

static void visit_text(struct visit *v, struct str text)
{
    struct template_ref t;
    size_t from = 0;
    while (template_next(text, &from, &t)) {
        if (t.kind != TEMPLATE_FOREIGN && (t.kind != TEMPLATE_OK || !is_inner(v, t.ref))) {
            tell(v, t.text, false);
        }
    }
}

/* Every string of the value. */
static void visit_value(struct visit *v, struct doc value)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    while (value.ptr != NULL && !v->over && doc_next(&c, &head)) {
        if (head.kind == DOC_STR) {
            visit_text(v, head.str);
        }
    }
}

static void visit_ref(void *self, const struct condition_ref *ref)
{
    struct visit *v = self;
    const bool status = ref->kind == CONDITION_STATUS;
    if ((ref->kind == CONDITION_RESULT || status) && !is_inner(v, ref->name)) {
        const size_t end = status ? strlen(".status") : 0;
        tell(v, (struct str){ref->text.ptr, ref->text.len - end}, true);
    }
}

static void visit_condition(struct visit *v, struct doc condition)
{
    struct bt_error unused;
    if (condition.ptr != NULL) {
        (void)!condition_check(condition, visit_ref, v, &unused);
    }
}

static void visit_compensation(struct visit *v, struct doc compensate)
{
    if (compensate.ptr != NULL) {
        visit_value(v, doc_get(compensate, STR_LIT("task")));
        visit_value(v, doc_get(compensate, STR_LIT("parameters")));
    }
}

static enum bt_code visit_child(struct visit *v, struct doc child, struct str own, uint32_t depth,
                                struct bt_error *err);

static enum bt_code add_ids(struct visit *v, struct doc steps, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(steps);
    struct doc_head head;
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str id = doc_string(doc_get(doc_skip(&c), STR_LIT("stepId")));
        if (id.len > 0 && map_put(&v->inner, id, 1) != BT_OK) {
            return err_set(err, BT_NOMEM, "out of memory for a plan");
        }
    }
    return BT_OK;
}

static enum bt_code visit_body(struct visit *v, struct doc body, uint32_t depth,
                               struct bt_error *err)
{
    const struct doc steps = doc_get(body, STR_LIT("steps"));
    if (steps.ptr == NULL || doc_head(steps).kind != DOC_ARRAY) {
        return BT_OK;
    }
    struct doc_cursor c = doc_cursor(steps);
    struct doc_head head;
    enum bt_code code = add_ids(v, steps, err);
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < head.n && code == BT_OK && !v->over; i++) {
        const struct doc step = doc_skip(&c);
        visit_value(v, doc_get(step, STR_LIT("task")));
        visit_value(v, doc_get(step, STR_LIT("parameters")));
        visit_condition(v, doc_get(step, STR_LIT("when")));
        visit_compensation(v, doc_get(step, STR_LIT("compensate")));
        code = visit_child(v, doc_get(step, STR_LIT("child")),
                           doc_string(doc_get(step, STR_LIT("stepId"))), depth + 1, err);
    }
    return code;
}

/* The ids of a body inside another one hide those outside, which a plan does not have twice. */
static enum bt_code visit_child(struct visit *v, struct doc child, struct str own, uint32_t depth,
                                struct bt_error *err)
{
    struct child_step how;
    if (!child_step_read(child, &how) || depth > CHILD_DEPTH_MAX) {
        return BT_OK;
    }
    visit_value(v, how.list);
    visit_value(v, how.inputs);
    const enum bt_code code = visit_body(v, how.body, depth, err);
    if (code == BT_OK && how.kind == CHILD_OF_LOOP) {
        if (own.len > 0 && map_put(&v->inner, own, 1) != BT_OK) {
            return err_set(err, BT_NOMEM, "out of memory for a plan");
        }
        visit_condition(v, how.condition);
    }
    return code;
}

enum bt_code child_references(struct doc child, struct str own, child_on_ref *on_ref, void *self,
                              struct bt_error *err)
{
    struct visit v = {.on_ref = on_ref, .self = self};
    const enum bt_code code = visit_child(&v, child, own, 0, err);
    map_done(&v.inner);
    return code;
}

enum bt_code compensate_references(struct doc compensate, struct str own, child_on_ref *on_ref,
                                   void *self, struct bt_error *err)
{
    struct visit v = {.on_ref = on_ref, .self = self};
    const enum bt_code code = own.len > 0 ? map_put(&v.inner, own, 1) : BT_OK;
    if (code == BT_OK) {
        visit_compensation(&v, compensate);
    }
    map_done(&v.inner);
    return code == BT_OK ? BT_OK : err_set(err, BT_NOMEM, "out of memory for a plan");
}
