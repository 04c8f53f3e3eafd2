/* What a recipe is, for lists and help texts. */
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "supervisor/plan/recipe.h"
#include "supervisor/plan/recipe_internal.h"

enum { TYPE_MAX = 120 };

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

/* "one of a, b" of a list of values, "string or null" of a list of types. */
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
        input.preset = doc_get(property, STR_LIT("default"));
        input.required = input.preset.ptr == NULL && recipe_requires(schema, input.name);
        const enum bt_code code = type_of(property, arena, &input.type, err);
        if (code != BT_OK) {
            return code;
        }
        r.inputs[r.n_inputs++] = input;
    }
    *ret = r;
    return BT_OK;
}
