/* Checks a recipe before it is filled in. */
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "protocol/base/utf8.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/limits.h"
#include "registry/card.h"
#include "supervisor/plan/fields_internal.h"
#include "supervisor/plan/problem_add.h"
#include "supervisor/plan/read.h"
#include "supervisor/plan/recipe.h"
#include "supervisor/plan/recipe_internal.h"
#include "supervisor/plan/subst_internal.h"

enum { TITLE_MAX = 200, DESCRIPTION_MAX = 4096, DEFAULT_PROBLEMS_MAX = 64 };

struct recipe_checker {
    struct doc recipe, inputs;
    const struct registry *registry;
    struct problems *problems;
    struct bt_error *err;
    struct location at;              /* the top level */
    uint8_t used[RECIPE_INPUTS_MAX]; /* per property: whether a template names it */
    bool bad_template;
    bool bad_inputs;
};

/* ---- `recipe` ---- */

enum { REC_NAME, REC_TITLE, REC_DESCRIPTION, REC_COUNT };
static const struct field_name recipe_names[] = {
#define FIELDS_RECIPE
#include "supervisor/plan/field_names.def"
};

static void check_text(const struct location *at, const char *field, struct doc v, size_t cap)
{
    struct str text;
    if (value_string(at, field, v, &text) && text.len > cap) {
        location_report(at, PROBLEM_LIMIT, false, field, "%zu bytes, at most %zu", text.len, cap);
    }
}

static void check_about(struct recipe_checker *k)
{
    const struct doc about = doc_get(k->recipe, STR_LIT("recipe"));
    const struct location at = {.problems = k->problems, .prefix = "recipe"};
    struct fields_reported reported = {{0}};
    struct fields_unknown unknown = {.lenient = false};
    const struct field_table table = {recipe_names, REC_COUNT, &reported, &unknown};
    struct doc values[REC_COUNT] = {{NULL, 0}};
    struct str name;
    if (!value_map(&k->at, "recipe", about)) {
        return;
    }
    fields_read(&table, about, &at, values);
    if (values[REC_NAME].ptr == NULL) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "name",
                        "is missing; give 1 to 64 of A-Z a-z 0-9 _ . -");
    } else if (value_string(&at, "name", values[REC_NAME], &name) && !card_id_ok(name)) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "name",
                        "\"%.*s%s\" is no name; it needs 1 to 64 of A-Z a-z 0-9 _ . -",
                        PROBLEM_NAME(name));
    }
    check_text(&at, "title", values[REC_TITLE], TITLE_MAX);
    check_text(&at, "description", values[REC_DESCRIPTION], DESCRIPTION_MAX);
    if (doc_string(values[REC_DESCRIPTION]).len == 0) {
        location_report(&at, PROBLEM_STYLE, true, "description",
                        "is missing; say what the recipe is for");
    }
}

/* ---- `inputs` ---- */

static struct doc property_at(const struct recipe_checker *k, uint32_t ix, struct str *ret_name)
{
    struct pairs properties = pairs_of(doc_get(k->inputs, STR_LIT("properties")));
    struct doc property = {NULL, 0};
    for (uint32_t i = 0; i <= ix; i++) {
        if (!next_pair(&properties, ret_name, &property)) {
            return (struct doc){NULL, 0};
        }
    }
    return property;
}

static uint32_t property_find(const struct recipe_checker *k, struct str name)
{
    struct pairs properties = pairs_of(doc_get(k->inputs, STR_LIT("properties")));
    struct str key;
    struct doc property;
    for (uint32_t i = 0; next_pair(&properties, &key, &property); i++) {
        if (str_eq(key, name)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void bad_inputs(struct recipe_checker *k, const char *field, const char *message)
{
    k->bad_inputs = true;
    location_report(&k->at, PROBLEM_INVALID_FIELD, false, field, "%.400s", message);
}

/* Reports problems of given values only, not of missing ones. */
static void put_default_problems(struct recipe_checker *k, struct doc defaults,
                                 const struct schema_problem *found, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *name = found[i].path[0] == '/' ? found[i].path + 1 : found[i].path;
        const struct str first = {name, strcspn(name, "/")};
        char field[96];
        if (doc_get(defaults, first).ptr == NULL) {
            continue;
        }
        (void)snprintf(field, sizeof field, "inputs.properties.%.*s.default",
                       (int)utf8_cut(first.ptr, first.len, 48), first.ptr);
        bad_inputs(k, field, found[i].message);
    }
}

static enum bt_code check_schema(struct recipe_checker *k, struct doc defaults)
{
    struct cJSON *tree = NULL;
    struct cJSON *values = NULL;
    struct schema *schema = NULL;
    struct schema_problem found[DEFAULT_PROBLEMS_MAX];
    struct bt_error why = {.code = BT_OK};
    uint32_t n = 0;
    enum bt_code code = doc_to_cjson(k->inputs, &tree, &why);
    code = code == BT_OK ? schema_compile(tree, &schema, &why) : code;
    code = code == BT_OK ? doc_to_cjson(defaults, &values, &why) : code;
    if (code == BT_OK) {
        code = schema_check(schema, values, found, DEFAULT_PROBLEMS_MAX, &n, &why);
        if (code == BT_INVALID && n > 0) {
            put_default_problems(k, defaults, found, n);
            code = BT_OK;
        }
    }
    if (code != BT_OK && code != BT_NOMEM) {
        bad_inputs(k, "inputs", why.msg);
        code = BT_OK;
    }
    schema_free(schema);
    cJSON_Delete(values);
    cJSON_Delete(tree);
    return code == BT_OK ? BT_OK : err_set(k->err, code, "out of memory for a recipe");
}

static enum bt_code check_inputs(struct recipe_checker *k, struct buf *defaults)
{
    const struct doc none = {NULL, 0};
    if (k->inputs.ptr == NULL) {
        doc_put_map(defaults, 0);
        return buf_check(defaults, k->err);
    }
    if (doc_head(k->inputs).kind != DOC_MAP || !str_is(recipe_text(k->inputs, "type"), "object")) {
        bad_inputs(k, "inputs", "expected a JSON Schema with \"type\": \"object\"");
        return BT_OK;
    }
    if (pairs_of(doc_get(k->inputs, STR_LIT("properties"))).left > RECIPE_INPUTS_MAX) {
        bad_inputs(k, "inputs.properties", "are more than the 64 of one recipe");
        return BT_OK;
    }
    const enum bt_code code = recipe_with_defaults(k->inputs, none, defaults, k->err);
    return code == BT_OK ? check_schema(k, doc_from_buf(defaults)) : code;
}

/* ---- templates ---- */

static enum bt_code note_use(const struct template_ref *t, struct doc *ret, void *self,
                             struct bt_error *err)
{
    static const uint8_t nil[] = {0xc0};
    struct recipe_checker *k = self;
    const char *dot = memchr(t->ref.ptr, '.', t->ref.len);
    const struct str name = {t->ref.ptr, dot == NULL ? t->ref.len : (size_t)(dot - t->ref.ptr)};
    const uint32_t ix = property_find(k, name);
    (void)err;
    if (ix < RECIPE_INPUTS_MAX) {
        k->used[ix] = 1;
    } else {
        k->bad_template = true;
        location_report(&k->at, PROBLEM_BAD_TEMPLATE, false, "inputs",
                        "%.*s names no input of this recipe",
                        (int)utf8_cut(t->text.ptr, t->text.len, 100), t->text.ptr);
    }
    *ret = (struct doc){nil, sizeof nil};
    return BT_OK;
}

static void check_uses(struct recipe_checker *k)
{
    struct str name;
    for (uint32_t i = 0; i < RECIPE_INPUTS_MAX && !k->bad_inputs; i++) {
        const struct doc property = property_at(k, i, &name);
        if (property.ptr == NULL) {
            return;
        }
        char field[96];
        (void)snprintf(field, sizeof field, "inputs.properties.%.*s%s", PROBLEM_NAME(name));
        if (k->used[i] == 0) {
            location_report(&k->at, PROBLEM_STYLE, true, field, "is used nowhere in the recipe");
        } else if (!recipe_requires(k->inputs, name) &&
                   doc_get(property, STR_LIT("default")).ptr == NULL) {
            location_report(&k->at, PROBLEM_STYLE, true, field,
                            "is used but may be missing; make it required or give it a default");
        }
    }
}

/* Each member except `inputs` by itself, so that one bad template does not hide the others. */
static enum bt_code check_templates(struct recipe_checker *k)
{
    const struct subst s = {.word = STR_LIT("inputs"), .lookup = note_use, .self = k};
    struct pairs members = pairs_of(k->recipe);
    struct str key;
    struct doc value;
    struct buf out;
    buf_init(&out, LIMIT_CONTROL_BYTES);
    enum bt_code code = BT_OK;
    while (code == BT_OK && next_pair(&members, &key, &value)) {
        struct bt_error why = {.code = BT_OK};
        char field[96];
        if (str_is(key, "inputs")) {
            continue;
        }
        buf_clear(&out);
        code = subst_doc(&s, value, &out, &why);
        if (code != BT_OK && code != BT_NOMEM) {
            k->bad_template = true;
            (void)snprintf(field, sizeof field, "%.*s%s", PROBLEM_NAME(key));
            location_report(&k->at, PROBLEM_BAD_TEMPLATE, false, field, "%.400s", why.msg);
            code = BT_OK;
        }
    }
    buf_done(&out);
    check_uses(k);
    return code == BT_OK ? BT_OK : err_set(k->err, code, "out of memory for a recipe");
}

/* ---- the plan ---- */

/* Problems of an unfilled plan that no inputs can remove. */
static bool stands_anyway(enum problem_category c)
{
    return c == PROBLEM_EMPTY_PLAN || c == PROBLEM_DUPLICATE_ID ||
           c == PROBLEM_MISSING_DEPENDENCY || c == PROBLEM_CYCLE_DETECTED ||
           c == PROBLEM_BAD_TEMPLATE || c == PROBLEM_LIMIT || c == PROBLEM_UNKNOWN_FIELD ||
           c == PROBLEM_UNSUPPORTED;
}

static enum bt_code read_plan(struct recipe_checker *k, struct doc plan, bool filled)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    struct problem *list = calloc(RECIPE_INPUTS_MAX, sizeof *list);
    struct problems found = {.at = list, .cap = RECIPE_INPUTS_MAX};
    struct arena arena = {.chunks = NULL};
    struct plan *made;
    struct bt_error why = {.code = BT_OK};
    enum bt_code code = list == NULL ? BT_NOMEM
                                     : plan_read(plan, &defaults, filled ? k->registry : NULL,
                                                 &arena, &made, &found, NULL, &why);
    for (uint32_t i = 0; i < found.n; i++) {
        const struct problem *p = &list[i];
        const struct str message = str_from(p->message);
        const struct plan_step step = {.step_id = str_from(p->step_id)};
        if (filled || (!p->warning && stands_anyway(p->category))) {
            problem_put(k->problems, p->category, p->warning, p->step == UINT32_MAX ? NULL : &step,
                        p->step, p->field, &message, 1);
        }
    }
    free(list);
    arena_done(&arena);
    return code == BT_NOMEM ? err_set(k->err, code, "out of memory for a recipe") : BT_OK;
}

/* Appends the members of the plan with their templates. */
static void put_unfilled(struct recipe_checker *k, struct buf *out)
{
    struct pairs members = pairs_of(k->recipe);
    struct str key;
    struct doc value;
    doc_put_map(out, members.left - (doc_get(k->recipe, STR_LIT("inputs")).ptr != NULL));
    while (next_pair(&members, &key, &value)) {
        if (!str_is(key, "inputs")) {
            doc_put_str(out, key);
            doc_put_doc(out, value);
        }
    }
}

static enum bt_code check_plan(struct recipe_checker *k)
{
    const struct doc none = {NULL, 0};
    struct bt_error why = {.code = BT_OK};
    struct buf plan;
    buf_init(&plan, LIMIT_CONTROL_BYTES);
    enum bt_code code = recipe_fill(k->recipe, none, &plan, &why);
    const bool filled = code == BT_OK;
    if (!filled && code != BT_NOMEM) {
        buf_clear(&plan);
        put_unfilled(k, &plan);
        code = buf_check(&plan, &why);
    }
    code = code == BT_OK ? read_plan(k, doc_from_buf(&plan), filled) : code;
    buf_done(&plan);
    return code == BT_NOMEM ? err_set(k->err, code, "out of memory for a recipe") : code;
}

/* ---- entry points ---- */

static enum bt_code reject(const struct recipe_checker *k)
{
    char text[400];
    for (uint32_t i = 0; i < k->problems->n; i++) {
        const struct problem *p = &k->problems->at[i];
        if (!p->warning) {
            problem_text(p, text, sizeof text);
            return err_set(k->err, BT_INVALID, "%s", text);
        }
    }
    return err_set(k->err, BT_INVALID, "the recipe has %u problems", k->problems->errors);
}

enum bt_code recipe_check(struct doc recipe, const struct registry *registry,
                          struct problems *problems, struct bt_error *err)
{
    struct recipe_checker k = {.recipe = recipe,
                               .inputs = doc_get(recipe, STR_LIT("inputs")),
                               .registry = registry,
                               .problems = problems,
                               .err = err,
                               .at = {.problems = problems, .prefix = ""}};
    struct buf defaults;
    if (!recipe_is(recipe)) {
        location_report(&k.at, PROBLEM_INVALID_FIELD, false, "recipe",
                        "expected a recipe: a map with \"recipe\" or \"inputs\"");
        return reject(&k);
    }
    buf_init(&defaults, LIMIT_CONTROL_BYTES);
    check_about(&k);
    enum bt_code code = check_inputs(&k, &defaults);
    code = code == BT_OK ? check_templates(&k) : code;
    if (code == BT_OK && !k.bad_inputs && !k.bad_template) {
        code = check_plan(&k);
    }
    buf_done(&defaults);
    return code == BT_OK && problems->errors > 0 ? reject(&k) : code;
}
