/*
 * Recipes: parameterised plans. A recipe is a plan document with one or both of these members more:
 * `inputs` (a JSON Schema of an object), whose values stand for {{inputs.name}} or
 * {{inputs.name.path}} in its strings, and `recipe`, which says what it is called and what for.
 * Filling it in gives a plan document.
 *
 *   { "recipe": {"name": "word-count", "title": "Count words", "description": "..."},
 *     "inputs": {"type": "object", "properties": {"file": {"type": "string"}}, "required":
 * ["file"]}, "steps": [ {"agentId": "files", "skill": "read", "task": "read {{inputs.file}}",
 *                 "parameters": {"path": "{{inputs.file}}"}} ] }
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
 * Appends the plan document: `inputs` and `recipe` left out (the recipe's description becomes the
 * plan's when that has none), defaults of the schema's properties applied, every {{inputs.…}} put
 * in (a string that is exactly one template gets the value with its type). values may be absent:
 * an empty map. BT_INVALID: the values do not fit the schema, a template names no input, or a value
 * holds a template {{results.…}} (it would be given what other steps found); err says which.
 */
BT_MUST_CHECK enum bt_code recipe_fill(struct doc recipe, struct doc values, struct buf *out,
                                       struct bt_error *err);

/* One value that a recipe takes. */
struct recipe_input {
    struct str name;
    struct str type; /* "string", "integer", ..., "string or null", "one of a, b"; "any" */
    struct str description;
    struct doc default_value; /* its default; absent when there is none */
    bool required; /* it has to be given: the schema demands it and there is no default */
};

struct recipe_about {
    struct str name; /* empty: the recipe says none (files then go by their name) */
    struct str title;
    struct str description;
    struct recipe_input *inputs; /* in the order of the document */
    uint32_t n_inputs;
    uint32_t n_steps;
};

/* For lists and help texts. Borrows of the document, the rest lives in the arena. BT_INVALID when
 * it is no recipe; what else is wrong with it is for recipe_check to say. */
BT_MUST_CHECK enum bt_code recipe_describe(struct doc recipe, struct arena *arena,
                                           struct recipe_about *ret, struct bt_error *err);
/*
 * All that can be known before it is filled in: name and texts; inputs are a schema of an object
 * and their defaults fit it; every {{inputs.x}} names a property, and every property is used (a
 * warning); where each input has a default, the plan that they make is a right one, else what of
 * the plan does not depend on them. registry NULL = agents are not checked. BT_OK (perhaps with
 * warnings), BT_INVALID with problems->errors > 0 and err naming the first, BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code recipe_check(struct doc recipe, const struct registry *registry,
                                        struct problems *problems, struct bt_error *err);
#endif
