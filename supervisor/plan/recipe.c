#include "supervisor/plan/recipe.h"

#include <cjson/cJSON.h>

#include "protocol/base/utf8.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/limits.h"
#include "supervisor/plan/flow/inputs.h"
#include "supervisor/plan/recipe_internal.h"
#include "supervisor/plan/subst_internal.h"

enum { TYPE_MAX = 120 };

static bool has(struct doc doc, const char *key)
{
    const struct doc v = doc_get(doc, str_from(key));
    return v.ptr != NULL && doc_head(v).kind != DOC_NIL;
}

bool recipe_is(struct doc doc)
{
    return has(doc, "inputs") || has(doc, "recipe");
}

/* ---- the values ---- */

/* Appends the given values, then the schema's defaults of the missing properties. */
enum bt_code recipe_with_defaults(struct doc schema, struct doc values, struct buf *out,
                                  struct bt_error *err)
{
    uint32_t n = pairs_of(values).left;
    for (int pass = 0; pass < 2; pass++) {
        struct pairs given = pairs_of(values);
        struct pairs properties = pairs_of(doc_get(schema, STR_LIT("properties")));
        struct str key;
        struct doc value;
        if (pass == 1) {
            doc_put_map(out, n);
        }
        while (pass == 1 && next_pair(&given, &key, &value)) {
            doc_put_str(out, key);
            doc_put_doc(out, value);
        }
        while (next_pair(&properties, &key, &value)) {
            const struct doc default_value = doc_get(value, STR_LIT("default"));
            if (default_value.ptr == NULL || doc_get(values, key).ptr != NULL) {
                continue;
            }
            n += pass == 0;
            if (pass == 1) {
                doc_put_str(out, key);
                doc_put_doc(out, default_value);
            }
        }
    }
    return buf_check(out, err);
}

static enum bt_code check_values(struct doc schema_doc, struct doc values, struct bt_error *err)
{
    if (schema_doc.ptr == NULL) {
        return pairs_of(values).left == 0 ? BT_OK
                                          : err_set(err, BT_INVALID, "this recipe takes no inputs");
    }
    struct cJSON *schema_tree = NULL;
    struct cJSON *tree = NULL;
    struct schema *schema = NULL;
    struct schema_problem problem;
    uint32_t n = 0;
    enum bt_code code = doc_to_cjson(schema_doc, &schema_tree, err);
    code = code == BT_OK ? schema_compile(schema_tree, &schema, err) : code;
    if (code != BT_OK) {
        (void)err_wrap(err, "inputs");
        goto out;
    }
    code = doc_to_cjson(values, &tree, err);
    code = code == BT_OK ? schema_check(schema, tree, &problem, 1, &n, err) : code;
    if (code == BT_INVALID && n > 0) {
        (void)err_set(err, BT_INVALID, "input%s %s", problem.path, problem.message);
    }
out:
    schema_free(schema);
    cJSON_Delete(tree);
    cJSON_Delete(schema_tree);
    return code;
}

/* ---- the plan ---- */

static enum bt_code lookup(const struct template_ref *t, struct doc *ret, void *self,
                           struct bt_error *err)
{
    const struct doc *values = self;
    *ret = doc_path(*values, t->ref);
    return ret->ptr != NULL
               ? BT_OK
               : err_set(err, BT_INVALID, "%.*s names no input of this recipe", STR_ARG(t->text));
}

static enum bt_code put_plan(struct doc recipe, struct doc values, struct buf *out,
                             struct bt_error *err)
{
    const struct subst s = {
        .word = STR_LIT("inputs"), .lookup = lookup, .self = &values, .own = STR_LIT("results")};
    const struct doc description =
        doc_get(doc_get(recipe, STR_LIT("recipe")), STR_LIT("description"));
    const bool described = doc_string(description).len > 0 && !has(recipe, "description");
    struct pairs members = pairs_of(recipe);
    struct str key;
    struct doc value;
    enum bt_code code = BT_OK;
    doc_put_map(out, members.left - (doc_get(recipe, STR_LIT("inputs")).ptr != NULL) -
                         (doc_get(recipe, STR_LIT("recipe")).ptr != NULL) -
                         (described && doc_get(recipe, STR_LIT("description")).ptr != NULL) +
                         described);
    if (described) {
        doc_put_cstr(out, "description");
        code = subst_doc(&s, description, out, err);
    }
    while (code == BT_OK && next_pair(&members, &key, &value)) {
        if (!str_is(key, "inputs") && !str_is(key, "recipe") &&
            !(described && str_is(key, "description"))) {
            doc_put_str(out, key);
            code = subst_doc(&s, value, out, err);
        }
    }
    return code == BT_OK ? buf_check(out, err) : code;
}

enum bt_code recipe_fill(struct doc recipe, struct doc values, struct buf *out,
                         struct bt_error *err)
{
    const struct doc schema = doc_get(recipe, STR_LIT("inputs"));
    struct buf all;
    struct buf plan;
    if (!recipe_is(recipe)) {
        return err_set(err, BT_INVALID, "expected a recipe: a map with \"inputs\" and \"steps\"");
    }
    if (schema.ptr != NULL && doc_head(schema).kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "inputs: expected a JSON Schema of an object");
    }
    if (values.ptr != NULL && doc_head(values).kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "expected the inputs as a map of names and values");
    }
    buf_init(&all, LIMIT_CONTROL_BYTES);
    buf_init(&plan, LIMIT_STEP_BYTES);
    enum bt_code code = recipe_with_defaults(schema, values, &all, err);
    code = code == BT_OK ? check_values(schema, doc_from_buf(&all), err) : code;
    code = code == BT_OK ? put_plan(recipe, doc_from_buf(&all), &plan, err) : code;
    if (code == BT_OK) {
        code = condition_fill_inputs(doc_from_buf(&plan), doc_from_buf(&all), schema, out, err);
    }
    buf_done(&plan);
    buf_done(&all);
    return code;
}

/* ---- description ---- */

struct str recipe_text(struct doc map, const char *key)
{
    const struct str text = doc_string(doc_get(map, str_from(key)));
    return text.ptr == NULL ? (struct str){"", 0} : text;
}

bool recipe_requires(struct doc schema, struct str name)
{
    const struct doc names = doc_get(schema, STR_LIT("required"));
    for (uint32_t i = 0;; i++) {
        const struct doc one = doc_at(names, i);
        if (one.ptr == NULL) {
            return false;
        }
        if (str_eq(doc_string(one), name)) {
            return true;
        }
    }
}

/* Appends the values joined: "a, b" of an enum, "string or null" of types. */
static void put_listed(struct buf *out, struct doc list, const char *between)
{
    for (uint32_t i = 0; out->len < TYPE_MAX; i++) {
        const struct doc one = doc_at(list, i);
        if (one.ptr == NULL) {
            return;
        }
        buf_add_cstr(out, i == 0 ? "" : between);
        if (doc_to_text(one, out, NULL) != BT_OK) {
            return;
        }
    }
}

static enum bt_code type_of(struct doc property, struct arena *arena, struct str *ret,
                            struct bt_error *err)
{
    const struct doc type = doc_get(property, STR_LIT("type"));
    const struct doc values = doc_get(property, STR_LIT("enum"));
    struct buf out;
    buf_init(&out, LIMIT_CONTROL_BYTES);
    if (values.ptr != NULL) {
        buf_add_cstr(&out, "one of ");
        put_listed(&out, values, ", ");
    } else if (doc_string(type).ptr != NULL) {
        buf_add_str(&out, doc_string(type));
    } else {
        put_listed(&out, type, " or ");
    }
    const struct str text = out.len == 0 ? STR_LIT("any") : buf_str(&out);
    *ret = arena_str(arena, (struct str){text.ptr, utf8_cut(text.ptr, text.len, TYPE_MAX)});
    const enum bt_code code = buf_check(&out, err);
    buf_done(&out);
    return code == BT_OK && ret->ptr == NULL
               ? err_set(err, BT_NOMEM, "out of memory for the inputs of a recipe")
               : code;
}

static uint32_t steps_of(struct doc recipe)
{
    static const char *const names[] = {"steps", "tasks", "workflow"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct doc steps = doc_get(recipe, str_from(names[i]));
        if (steps.ptr != NULL) {
            return doc_head(steps).kind == DOC_ARRAY ? doc_head(steps).n : 0;
        }
    }
    return 0;
}

enum bt_code recipe_describe(struct doc recipe, struct arena *arena, struct recipe_about *ret,
                             struct bt_error *err)
{
    const struct doc about = doc_get(recipe, STR_LIT("recipe"));
    const struct doc schema = doc_get(recipe, STR_LIT("inputs"));
    struct pairs properties = pairs_of(doc_get(schema, STR_LIT("properties")));
    struct recipe_about r = {.name = recipe_text(about, "name"),
                             .title = recipe_text(about, "title"),
                             .description = recipe_text(about, "description"),
                             .n_steps = steps_of(recipe)};
    struct recipe_input input;
    struct doc property;
    if (!recipe_is(recipe)) {
        return err_set(err, BT_INVALID, "expected a recipe: a map with \"recipe\" or \"inputs\"");
    }
    r.description = r.description.len > 0 ? r.description : recipe_text(recipe, "description");
    r.description = r.description.len > 0 ? r.description : recipe_text(recipe, "goal");
    r.inputs = arena_alloc(arena, (RECIPE_INPUTS_MAX + 1) * sizeof r.inputs[0]);
    if (r.inputs == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the inputs of a recipe");
    }
    while (r.n_inputs < RECIPE_INPUTS_MAX && next_pair(&properties, &input.name, &property)) {
        input.description = recipe_text(property, "description");
        input.default_value = doc_get(property, STR_LIT("default"));
        input.required = input.default_value.ptr == NULL && recipe_requires(schema, input.name);
        const enum bt_code code = type_of(property, arena, &input.type, err);
        if (code != BT_OK) {
            return code;
        }
        r.inputs[r.n_inputs++] = input;
    }
    *ret = r;
    return BT_OK;
}
