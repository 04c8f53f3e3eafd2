/*
 * Recipes: plans with parameters. A recipe is a plan document that also has `inputs` (a JSON Schema
 * of an object), `recipe` (name, title, description), or both. The values of the inputs replace
 * {{inputs.name}} and {{inputs.name.path}} in its strings; the outcome is a plan document.
 * protocol/PLANS.md has an example.
 */
#ifndef PLAN_RECIPE_H
#define PLAN_RECIPE_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "registry/registry.h"
#include "supervisor/core/plan/plan_check.h"

enum { RECIPE_INPUTS_MAX = 64 };

/* Whether the document is a recipe: a map with `inputs` or `recipe`. */
bool recipe_is(struct doc doc);
/*
 * Appends the plan document. `inputs` and `recipe` are left out; the recipe's description becomes
 * the plan's if that has none. The schema's defaults apply. A string that is exactly one template
 * gets the value with its type. values may be absent: an empty map. BT_INVALID with the reason in
 * err: the values do not fit the schema, a template names no input, or a value contains
 * {{results.…}}, which would give it results of other steps. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code recipe_fill(struct doc recipe, struct doc values, struct buf *out,
                                       struct bt_error *err);

/* One input of a recipe. */
struct recipe_input {
    struct str name;
    struct str type; /* "string", "integer", ..., "string or null", "one of a, b"; "any" */
    struct str description;
    struct doc default_value; /* its default; absent when there is none */
    bool required;            /* the schema requires it and it has no default */
};

struct recipe_about {
    struct str name; /* empty: the recipe has none, and its file's name is used */
    struct str title;
    struct str description;
    struct recipe_input *inputs; /* in the order of the document */
    uint32_t n_inputs;
    uint32_t n_steps;
};

/*
 * For lists and help texts. Borrows the document; the rest is allocated in the arena. BT_INVALID
 * when it is no recipe; recipe_check reports everything else. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code recipe_describe(struct doc recipe, struct arena *arena,
                                           struct recipe_about *ret, struct bt_error *err);
/*
 * Checks a recipe before it is filled in. Its name and texts are valid. Its inputs are a schema of
 * an object, and their defaults fit it. Every {{inputs.x}} names a property; an unused property is
 * a warning. When each input has a default, the plan that they make is checked as well; else only
 * what does not depend on the inputs. registry NULL = agents are not checked. BT_OK, perhaps with
 * warnings; BT_INVALID with problems->errors > 0 and err naming the first; BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code recipe_check(struct doc recipe, const struct registry *registry,
                                        struct problems *problems, struct bt_error *err);
#endif
