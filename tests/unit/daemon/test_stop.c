#include "supervisor/stop.h"

#include "tests/support/cmocka.h"

static void a_daemon_that_nobody_asked_does_not_stop(void **state)
{
    const struct stop s = {.asked = false};
    (void)state;
    assert_false(stop_is_over(&s, false, 0, MSEC_NEVER));
}

static void the_grace_of_the_request_is_the_deadline(void **state)
{
    static const msec graces[] = {100, 7000, 86400000};
    (void)state;
    for (size_t i = 0; i < sizeof graces / sizeof graces[0]; i++) {
        struct stop s = {.asked = false};
        assert_true(stop_ask(&s, graces[i], 1000));
        assert_false(stop_is_over(&s, false, 1, 1000 + graces[i] - 1));
        assert_true(stop_is_over(&s, false, 1, 1000 + graces[i]));
    }
}

static void the_first_request_counts(void **state)
{
    struct stop s = {.asked = false};
    (void)state;
    assert_true(stop_ask(&s, 500, 1000));
    assert_false(stop_ask(&s, 90000, 1100));
    assert_false(stop_is_over(&s, false, 1, 1499));
    assert_true(stop_is_over(&s, false, 1, 1500));
}

static void an_idle_daemon_ends_after_its_farewell(void **state)
{
    struct stop s = {.asked = false};
    (void)state;
    assert_true(stop_ask(&s, 10000, 1000));
    assert_false(stop_is_over(&s, false, 0, 1000 + STOP_FAREWELL_MS - 1));
    assert_true(stop_is_over(&s, false, 0, 1000 + STOP_FAREWELL_MS));
}

static void a_grace_of_zero_waits_for_the_farewell_alone(void **state)
{
    struct stop s = {.asked = false};
    (void)state;
    assert_true(stop_ask(&s, 0, 1000));
    assert_false(stop_is_over(&s, false, 3, 1000 + STOP_FAREWELL_MS - 1));
    assert_true(stop_is_over(&s, false, 3, 1000 + STOP_FAREWELL_MS));
}

static void processes_are_waited_for_until_they_end(void **state)
{
    struct stop s = {.asked = false};
    (void)state;
    assert_true(stop_ask(&s, 100, 1000));
    assert_false(stop_is_over(&s, true, 0, 5000));
    assert_true(stop_is_over(&s, false, 0, 5000));
}

static void a_second_signal_waits_for_nothing(void **state)
{
    struct stop s = {.asked = false};
    (void)state;
    assert_true(stop_ask(&s, 10000, 1000));
    s.at_once = true;
    assert_true(stop_is_over(&s, true, 5, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_that_nobody_asked_does_not_stop),
        cmocka_unit_test(the_grace_of_the_request_is_the_deadline),
        cmocka_unit_test(the_first_request_counts),
        cmocka_unit_test(an_idle_daemon_ends_after_its_farewell),
        cmocka_unit_test(a_grace_of_zero_waits_for_the_farewell_alone),
        cmocka_unit_test(processes_are_waited_for_until_they_end),
        cmocka_unit_test(a_second_signal_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
