/* Whether what a person gives an agent that asks for input fits the schema that it asked with. */
#ifndef DISPATCH_INPUT_CHECK_H
#define DISPATCH_INPUT_CHECK_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

/*
 * value: the data that the person gave, .ptr NULL = none; words: the comment. BT_INVALID names the
 * member that does not fit, or that data are missing. Words instead of data are not checked. Reads
 * the plan's rows.
 */
BT_MUST_CHECK enum bt_code dispatch_input_check(struct engine *engine, const struct open_plan *p,
                                                uint32_t step, struct doc value, struct str words,
                                                struct bt_error *err);
#endif
