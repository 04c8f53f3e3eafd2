/* Points of failure: counted by name and over all, and only what was chosen happens. One counter
 * per process, so one test. */
#include "tests/support/cmocka.h"

#include <signal.h>
#include <stdio.h>
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

static volatile sig_atomic_t raised;

static void note(int sig)
{
    raised = sig;
}

static void a_point_of_a_plan_raises_the_signal_for_that_plan_alone(void **state)
{
    (void)state;
    const struct uuid plan = uuid_new();
    const struct uuid other = uuid_new();
    char id[UUID_TEXT_LEN + 1];
    char rule[128];

    uuid_format(plan, id);
    (void)snprintf(rule, sizeof rule, "a@9:error,apply=%s:%d", id, SIGUSR1);
    assert_int_equal(setenv("BATON_FAILPOINT", rule, 1), 0);
    (void)signal(SIGUSR1, note);
    FAILPOINT_OF("apply", other);
    FAILPOINT_OF("perform", plan);
    assert_int_equal(raised, 0);
    FAILPOINT_OF("apply", plan);
#ifdef BATON_FAILPOINTS
    assert_int_equal(raised, SIGUSR1);
#else
    assert_int_equal(raised, 0);
#endif
    assert_int_equal(unsetenv("BATON_FAILPOINT"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_are_counted_by_name_and_over_all),
        cmocka_unit_test(a_point_of_a_plan_raises_the_signal_for_that_plan_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
