/*
 * The things to do of a goal, and which of them come first. One after the other, unless the words
 * say otherwise:
 *
 *   side by side   "in parallel: a, b", "a and b at the same time", "meanwhile b", "a while doing
 *                  b", "both a and b", and the items of a list under "...in parallel:". What comes
 *                  next waits for all of them
 *   named          "after a, b", "once a is done, b", "b after doing a", "before b, a". Where a
 *                  names something to do that was said earlier, b follows that one alone
 *   and            "read a.log and count the installs" are two things where verbs.h knows that
 *                  "count" begins one
 *
 * What words cannot say (unsaid.h) stays one clause that is marked. Deterministic. Private to this
 * folder.
 */
#ifndef PLANNER_ORDER_H
#define PLANNER_ORDER_H

#include "supervisor/keyword/clauses.h"
#include "supervisor/keyword/unsaid.h"
#include "supervisor/keyword/verbs.h"

_Static_assert(CLAUSES_MAX <= 64, "a bit per clause");

struct clause {
    struct str text;
    uint64_t after; /* bit per clause that has to be over; never its own, and no cycle */
    enum unsaid_kind unsaid;
    struct str unsaid_words;
};

struct order {
    struct clause at[CLAUSES_MAX];
    uint32_t n;
};

/* BT_LIMIT: more than CLAUSES_MAX things to do. Texts are parts of the goal, or in the arena. */
BT_MUST_CHECK enum bt_code order_make(struct str goal, const struct verbs *verbs,
                                      struct arena *arena, struct order *ret, struct bt_error *err);
#endif
