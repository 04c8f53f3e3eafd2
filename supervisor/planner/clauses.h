/*
 * A goal in words, split into the things to do, in order. Pure.
 *
 * A clause ends at: a new line; ";"; a full stop, "!" or "?" before a blank; "->"; and the words
 * "then", "and then", "after that", "afterwards", "finally" between blanks, with or without a comma
 * before them. Nothing splits inside "quotes", `backticks` or 'single quotes' that open after a
 * blank, nor "then" in a clause that began with if or when. From the front of a clause go list
 * marks ("1.", "2)", "-", "*") and the words first, then, next, finally, and, please.
 */
#ifndef PLANNER_CLAUSES_H
#define PLANNER_CLAUSES_H

#include <stdint.h>

#include "protocol/base/str.h"

enum { CLAUSES_MAX = 64 };

/* The clauses (parts of goal); their number, or CLAUSES_MAX + 1 when there are more. */
uint32_t clauses_split(struct str goal, struct str ret[CLAUSES_MAX]);
#endif
