/*
 * A goal in words, cut into pieces: sentences, lines, items of lists, and what "then" sets apart.
 * What the pieces mean for each other is order.h's. Pure.
 *
 * A piece ends at: a new line; ";"; a full stop, "!" or "?" before a blank; "->"; the next number
 * of a numbered list on the same line; and the words "then", "and then", "after that",
 * "afterwards", "finally" between blanks, with or without a comma before them, and ", next".
 * Nothing splits inside quotes (phrase.h), nor "then" in a piece that began with if, when, once,
 * after, before or while. From the front of a piece go list marks ("1.", "2)", "a)", "(3)", "1.2",
 * "-", "*", "[ ]") and words such as first, then, next, finally, and, please.
 */
#ifndef PLANNER_CLAUSES_H
#define PLANNER_CLAUSES_H

#include <stdint.h>

#include "protocol/base/str.h"

enum { CLAUSES_MAX = 64 };

struct piece {
    struct str text; /* part of the goal */
    bool then;       /* "then", "next", "->" or the like stood before it */
    bool listed;     /* it had a list mark */
    bool colon;      /* it ended its line with ":" */
    uint32_t indent; /* blanks before its mark */
};

/* The pieces; their number, or CLAUSES_MAX + 1 when there are more. */
uint32_t clauses_split(struct str goal, struct piece ret[CLAUSES_MAX]);
/* A text without list mark and words of order or politeness at its front, and without punctuation
 * at its end. *then (may be NULL) is set when one of those words said that it comes next. */
struct str clauses_trim(struct str text, bool *then);
#endif
