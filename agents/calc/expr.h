/* Arithmetic: a small recursive-descent parser over doubles, so whole numbers are exact up to 2^53.
 * Pure but for libm. */
#ifndef CALC_EXPR_H
#define CALC_EXPR_H

#include "protocol/base/err.h"

struct cJSON;

enum { EXPR_TEXT_MAX = 4096, EXPR_DEPTH_MAX = 64, EXPR_VALUES_MAX = 100000 };

/*
 *   sum     = product (("+" | "-") product)*
 *   product = sign (("*" | "/" | "%") sign)*          % is the remainder, with the sign of the left
 * side sign    = ("-" | "+") sign | power power   = atom ("^" sign)?                        to the
 * right: 2^3^2 = 512; -2^2 = -4 atom    = number | name | name "(" sum ("," sum)* ")" | "(" sum ")"
 *
 * Names are the members of `variables` (may be NULL), pi and e. A variable that is a list may stand
 * as an argument: its numbers are the arguments. BT_INVALID tells the place in the text; a division
 * by zero and a result that is no finite number are errors.
 */
BT_MUST_CHECK enum bt_code expr_eval(const char *text, const struct cJSON *variables, double *ret,
                                     struct bt_error *err);
#endif
