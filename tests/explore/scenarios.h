/* The worlds that are explored: families of scenarios. */
#ifndef TESTS_EXPLORE_SCENARIOS_H
#define TESTS_EXPLORE_SCENARIOS_H

#include "tests/explore/world.h"

enum explore_scope { EXPLORE_SHORT = -1, EXPLORE_USUAL, EXPLORE_DEEP };

/* Calls each of them in turn; deep ones have a trouble more on every path, short ones one less, and
 * fewer shapes. Stops at the first that is not 0 and returns it. */
int scenarios_each(enum explore_scope scope, int (*explore)(const struct scenario *s, void *arg),
                   void *arg);

/* ---- coverage.c ---- */
/* Says what never happened; how many. */
int coverage_check(const struct coverage *seen);
#endif
