/* How long a daemon waits. */
#include "supervisor/due.h"
#include "tests/support/cmocka.h"

enum { NOW = 5000 };

static msec waits(msec a, msec b, msec c, bool stopping)
{
    const msec at[] = {a, b, c};

    return due_wait(at, 3, NOW, stopping);
}

static void the_first_deadline_ends_the_wait(void **state)
{
    (void)state;
    assert_int_equal(waits(NOW + 7, NOW + 8, NOW + 9, false), 7);
    assert_int_equal(waits(NOW + 8, NOW + 7, NOW + 9, false), 7);
    assert_int_equal(waits(NOW + 8, NOW + 9, NOW + 7, false), 7);
    assert_int_equal(waits(MSEC_NEVER, NOW + 9, MSEC_NEVER, false), 9);
}

static void what_is_over_waits_for_nothing(void **state)
{
    (void)state;
    assert_int_equal(waits(NOW + 1, NOW, NOW + 9, false), 0);
    assert_int_equal(waits(NOW + 1, NOW + 2, NOW - 1, false), 0);
    assert_int_equal(waits(NOW + 1, 0, NOW + 2, false), 0);
    assert_int_equal(waits(NOW + 1, NOW + 2, NOW + 3, false), 1);
}

static void a_second_is_the_longest_and_20_ms_while_it_stops(void **state)
{
    (void)state;
    assert_int_equal(waits(MSEC_NEVER, MSEC_NEVER, MSEC_NEVER, false), 1000);
    assert_int_equal(waits(NOW + 1001, NOW + 1000, MSEC_NEVER, false), 1000);
    assert_int_equal(waits(NOW + 999, MSEC_NEVER, MSEC_NEVER, false), 999);
    assert_int_equal(due_wait(NULL, 0, NOW, false), 1000);
    assert_int_equal(waits(MSEC_NEVER, NOW + 21, MSEC_NEVER, true), 20);
    assert_int_equal(waits(NOW + 19, NOW + 21, MSEC_NEVER, true), 19);
    assert_int_equal(waits(NOW, NOW + 21, MSEC_NEVER, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_deadline_ends_the_wait),
        cmocka_unit_test(what_is_over_waits_for_nothing),
        cmocka_unit_test(a_second_is_the_longest_and_20_ms_while_it_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
