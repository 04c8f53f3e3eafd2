/*
 * Recipes: parameterised plans. A recipe is a plan document with one more member, `inputs` (a JSON
 * Schema of an object), and {{inputs.name}} or {{inputs.name.path}} in its strings. Filling it in
 * gives a plan document.
 *
 *   { "inputs": {"type": "object", "properties": {"file": {"type": "string"}}, "required":
 * ["file"]}, "steps": [ {"agentId": "files", "skill": "read", "task": "read {{inputs.file}}",
 *                 "parameters": {"path": "{{inputs.file}}"}} ] }
 */
#ifndef PLANNER_RECIPE_H
#define PLANNER_RECIPE_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

/* Whether the document is a recipe (a map with `inputs`). */
bool recipe_is(struct doc doc);
/*
 * Appends the plan document: `inputs` left out, defaults of the schema's properties applied, every
 * {{inputs.…}} put in (a string that is exactly one template gets the value with its type). values
 * may be absent: an empty map. BT_INVALID: the values do not fit the schema, or a template names no
 * input; err says which.
 */
BT_MUST_CHECK enum bt_code recipe_fill(struct doc recipe, struct doc values, struct buf *out,
                                       struct bt_error *err);
#endif
