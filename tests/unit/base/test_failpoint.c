/* Points of failure: counted by name and over all, and only what was chosen happens. One counter
 * per process, so one test. */
#include "tests/support/cmocka.h"

#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/base/failpoint.h"

static void hits_are_counted_by_name_and_over_all(void **state)
{
    (void)state;
#ifdef BATON_FAILPOINTS
    assert_int_equal(setenv("BATON_FAILPOINT", "b@2:error,4:drop,6:after,7:delay,12:error", 1), 0);
    assert_int_equal(FAILPOINT("a"), FAILPOINT_NONE);  /* 1 */
    assert_int_equal(FAILPOINT("b"), FAILPOINT_NONE);  /* 2 */
    assert_int_equal(FAILPOINT("b"), FAILPOINT_ERROR); /* 3: the second b */
    assert_int_equal(FAILPOINT("a"), FAILPOINT_DROP);  /* 4 of all */
    assert_int_equal(FAILPOINT("bb"), FAILPOINT_NONE); /* another name */
    assert_int_equal(FAILPOINT("b"), FAILPOINT_AFTER); /* 6 */
    const msec began = clock_mono_ms();
    assert_int_equal(FAILPOINT("a"), FAILPOINT_NONE); /* 7 */
    assert_true(clock_mono_ms() - began >= 250);
    assert_int_equal(unsetenv("BATON_FAILPOINT"), 0);
    for (int i = 8; i < 20; i++) {
        assert_int_equal(FAILPOINT("a"), FAILPOINT_NONE); /* nothing is chosen any more */
    }
#else
    assert_int_equal(FAILPOINT("a"), FAILPOINT_NONE);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hits_are_counted_by_name_and_over_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
