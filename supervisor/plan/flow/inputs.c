#include "supervisor/plan/flow/inputs.h"

#include <string.h>

#include "supervisor/plan/flow/condition_internal.h"

struct filling {
    struct doc values, schema;
    struct buf *out;
    struct bt_error *err;
};

/* Where steps stand. Parameters and schemas are no business of this. */
static bool holds_steps(struct str name)
{
    static const char *const names[] = {"steps", "tasks",  "workflow", "phases",
                                        "plan",  "switch", NULL};
    for (size_t i = 0; names[i] != NULL; i++) {
        if (str_is(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* An optional input that was not given is null. */
static enum bt_code put_value(struct filling *f, const struct condition_ref *ref)
{
    const struct doc value = doc_path(f->values, ref->name);
    struct str first = ref->name;
    const char *dot = memchr(first.ptr, '.', first.len);
    first.len = dot == NULL ? first.len : (size_t)(dot - first.ptr);
    if (value.ptr == NULL &&
        doc_get(doc_get(f->schema, STR_LIT("properties")), first).ptr == NULL) {
        return err_set(f->err, BT_INVALID, "when: %.*s names no input of this recipe",
                       STR_ARG(ref->text));
    }
    doc_put_cstr(f->out, "value");
    doc_put_doc(f->out, value);
    return BT_OK;
}

static enum bt_code fill_tests(struct filling *f, const struct condition_ref *ref, struct doc tests)
{
    struct members m = members_of(tests);
    struct str name;
    struct doc operand;
    if (doc_head(tests).kind != DOC_MAP) {
        doc_put_map(f->out, 2);
        doc_put_cstr(f->out, "eq");
        doc_put_doc(f->out, tests);
        return put_value(f, ref);
    }
    doc_put_map(f->out, m.left + 1);
    while (member_next(&m, &name, &operand)) {
        doc_put_str(f->out, name);
        doc_put_doc(f->out, operand);
    }
    return put_value(f, ref);
}

static enum bt_code fill(struct filling *f, struct doc doc, bool condition);

static enum bt_code fill_map(struct filling *f, struct doc doc, bool condition)
{
    struct members m = members_of(doc);
    struct str key;
    struct doc value;
    enum bt_code code = BT_OK;
    doc_put_map(f->out, m.left);
    while (code == BT_OK && member_next(&m, &key, &value)) {
        struct condition_ref ref;
        doc_put_str(f->out, key);
        if (condition && condition_ref_read(key, &ref) && ref.kind == CONDITION_INPUT) {
            code = fill_tests(f, &ref, value);
        } else if (condition || holds_steps(key) || condition_is_member(key)) {
            code = fill(f, value, condition || condition_is_member(key));
        } else {
            doc_put_doc(f->out, value);
        }
    }
    return code;
}

/* The depth of a document is bounded. */
static enum bt_code fill(struct filling *f, struct doc doc, bool condition)
{
    struct doc_cursor c = doc_cursor(doc);
    struct doc_head head;
    enum bt_code code = BT_OK;
    if (doc_head(doc).kind == DOC_MAP) {
        return fill_map(f, doc, condition);
    }
    if (doc_head(doc).kind != DOC_ARRAY || !doc_next(&c, &head)) {
        doc_put_doc(f->out, doc);
        return BT_OK;
    }
    doc_put_array(f->out, head.n);
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        code = fill(f, doc_skip(&c), condition);
    }
    return code;
}

enum bt_code condition_fill_inputs(struct doc plan, struct doc values, struct doc schema,
                                   struct buf *out, struct bt_error *err)
{
    struct filling f = {.values = values, .schema = schema, .out = out, .err = err};
    const enum bt_code code = fill(&f, plan, false);
    return code == BT_OK ? buf_check(out, err) : code;
}
