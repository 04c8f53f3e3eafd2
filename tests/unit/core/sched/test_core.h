/* What every test of the core starts with: a rig in *state. */
#ifndef TESTS_TEST_CORE_H
#define TESTS_TEST_CORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/core/sched/rig.h"

#define CORE_TEST(f) cmocka_unit_test_setup_teardown(f, core_test_setup, core_test_teardown)

static inline int core_test_setup(void **state)
{
    *state = rig_new();
    return 0;
}

static inline int core_test_teardown(void **state)
{
    rig_free(*state);
    return 0;
}
#endif
