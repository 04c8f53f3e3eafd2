/* Whether what a person gives an agent that asks for input fits the schema that it asked with, and
 * the data of a signal the schema of the plan. */
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
/* Whether the data of a signal (.ptr NULL = null) fit the schema that the plan's steps wait with.
 */
BT_MUST_CHECK enum bt_code dispatch_signal_check(const struct plan_wait *wait, struct doc data,
                                                 struct bt_error *err);
#endif
