/* The life of a plan as a whole: which moves it may have. A second opinion for tests that count
 * them.
 */
#ifndef TESTS_PLAN_LIFE_H
#define TESTS_PLAN_LIFE_H

#include "supervisor/core/run/run.h"

enum plan_life {
    LIFE_NEW,
    LIFE_PLANNING,
    LIFE_UNPLANNED, /* a person is asked what becomes of it */
    LIFE_SIGNOFF,
    LIFE_RUNNING,
    LIFE_ANSWERING,
    LIFE_ANSWERED,
    LIFE_UNDOING, /* another plan undoes what it did */
    LIFE_UNDONE,
    LIFE_OVER,
    LIFE_COUNT
};

enum plan_life plan_life(const struct run *run);
bool plan_life_may(enum plan_life from, enum plan_life to);
const char *plan_life_name(enum plan_life life);
#endif
