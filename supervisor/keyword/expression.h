/*
 * Arithmetic in a clause: "6 * 7", "(17 + 4) * 2", "sqrt(2) / 3". Pure; linear in the text. Private
 * to this folder.
 */
#ifndef PLANNER_EXPRESSION_H
#define PLANNER_EXPRESSION_H

#include "protocol/base/str.h"

/*
 * The first expression of the text: numbers and functions of numbers, with an operator, a function
 * or parentheses at least, standing between blanks, quotes aside. "2026-01-01", "3, 4 and 8" and
 * "total / days" are none.
 */
bool expression_find(struct str text, struct str *ret);
#endif
