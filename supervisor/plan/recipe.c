#include "supervisor/plan/recipe.h"

#include <cjson/cJSON.h>

#include "protocol/jsonschema/schema.h"
#include "protocol/limits.h"
#include "supervisor/plan/recipe_internal.h"
#include "supervisor/plan/subst_internal.h"

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

/* The given values, then the schema's defaults for properties that were not given. */
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
            const struct doc preset = doc_get(value, STR_LIT("default"));
            if (preset.ptr == NULL || doc_get(values, key).ptr != NULL) {
                continue;
            }
            n += pass == 0;
            if (pass == 1) {
                doc_put_str(out, key);
                doc_put_doc(out, preset);
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
    enum bt_code code = recipe_with_defaults(schema, values, &all, err);
    code = code == BT_OK ? check_values(schema, doc_from_buf(&all), err) : code;
    code = code == BT_OK ? put_plan(recipe, doc_from_buf(&all), out, err) : code;
    buf_done(&all);
    return code;
}
