/* Arithmetic: a recursive-descent parser over doubles. Whole numbers are exact up to 2^53. Pure
 * except for libm. */
#ifndef CALC_EXPR_H
#define CALC_EXPR_H

#include "protocol/base/err.h"

struct cJSON;

enum { EXPR_TEXT_MAX = 4096, EXPR_DEPTH_MAX = 64, EXPR_VALUES_MAX = 100000 };

/*
 * Grammar:
 *   sum = product (("+" | "-") product)*
 *   product = sign (("*" | "/" | "%") sign)*     % is the remainder, with the sign of the left side
 *   sign = ("-" | "+") sign | power
 *   power = atom ("^" sign)?                     to the right: 2^3^2 = 512; -2^2 = -4
 *   atom = number | name | name "(" sum ("," sum)* ")" | "(" sum ")"
 * Names are the members of `variables` (may be NULL), pi and e. A variable that is a list may be an
 * argument: its numbers become the arguments. BT_INVALID names the position in the text. A division
 * by zero and a result that is not finite are errors.
 */
BT_MUST_CHECK enum bt_code expr_eval(const char *text, const struct cJSON *variables, double *ret,
                                     struct bt_error *err);
#endif
