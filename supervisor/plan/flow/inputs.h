/* Conditions over the inputs of a recipe. */
#ifndef PLAN_FLOW_INPUTS_H
#define PLAN_FLOW_INPUTS_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

/*
 * Appends the plan with the value of each input beside the tests of its conditions, where
 * condition.h looks for it. values: the recipe's inputs; schema: what they may be, absent = none.
 * BT_INVALID: a condition names no input of the recipe.
 */
BT_MUST_CHECK enum bt_code condition_fill_inputs(struct doc plan, struct doc values,
                                                 struct doc schema, struct buf *out,
                                                 struct bt_error *err);
#endif
