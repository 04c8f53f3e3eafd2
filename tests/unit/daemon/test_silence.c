/* What of the time between two cycles is nobody's silence. */
#include "supervisor/silence.h"
#include "tests/support/cmocka.h"

enum { BEGAN = 100000 };

/* A cycle of `took` ms, then a wait of `waited` that was to be `wait_ms`: what is excused. */
static msec excused(msec took, msec waited, msec wait_ms, bool unread)
{
    struct silence s = {
        .begun_at = BEGAN, .waited_from = BEGAN + took, .wait_ms = wait_ms, .unread = unread};
    const msec now = BEGAN + took + waited;
    const msec ret = silence_excuse(&s, now, false);

    assert_int_equal(s.begun_at, now);
    assert_int_equal(s.excused_ms, ret);
    return ret;
}

static void a_daemon_that_waited_for_work_has_heard_all(void **state)
{
    (void)state;
    assert_int_equal(excused(10, 1000, 1000, false), 0);
    assert_int_equal(excused(10, 500, 1000, false), 0); /* woken before */
    assert_int_equal(excused(0, 0, 0, false), 0);
}

static void a_pause_of_a_quarter_second_is_none_and_a_longer_one_is(void **state)
{
    (void)state;
    assert_int_equal(excused(SILENCE_STALL_MS, 1000, 1000, false), 0);
    assert_int_equal(excused(SILENCE_STALL_MS + 1, 1000, 1000, false), SILENCE_STALL_MS + 1001);
    assert_int_equal(excused(0, 1000 + SILENCE_STALL_MS, 1000, false), 0);
    /* It was stopped, before its wait or in it: all is excused. */
    assert_int_equal(excused(0, 1001 + SILENCE_STALL_MS, 1000, false), 1001 + SILENCE_STALL_MS);
}

static void while_something_is_unread_all_of_the_time_is_excused(void **state)
{
    (void)state;
    assert_int_equal(excused(10, 20, 1000, true), 30);
    assert_int_equal(excused(10, 0, 0, true), 10);
    assert_int_equal(excused(400, 20, 1000, true), 420);
}

static void without_a_cycle_before_and_while_nothing_is_decided_nothing_is_excused(void **state)
{
    struct silence s = {.waited_from = 0, .unread = true};

    (void)state;
    assert_int_equal(silence_excuse(&s, BEGAN, false), 0);
    assert_int_equal(s.begun_at, BEGAN);
    assert_int_equal(silence_excuse(&s, BEGAN + 900, true), 0);
    assert_int_equal(s.begun_at, BEGAN + 900);
    assert_int_equal(silence_excuse(&s, BEGAN + 1000, false), 100);
    s = (struct silence){.begun_at = 1, .unread = true}; /* just after the machine has started */
    assert_int_equal(silence_excuse(&s, 101, false), 100);
}

/* A flood that never ends cannot keep the dead alive; when all was read, it begins anew. */
static void no_more_than_half_a_minute_is_excused_until_all_was_read(void **state)
{
    struct silence s = {.begun_at = BEGAN, .unread = true};
    msec now = BEGAN;
    msec sum = 0;

    (void)state;
    s.excused_ms = SILENCE_MOST_MS - 1;
    assert_int_equal(silence_excuse(&s, now += 100, false), 100);
    assert_int_equal(s.excused_ms, SILENCE_MOST_MS + 99);
    assert_int_equal(silence_excuse(&s, now += 100, false), 0);
    s.excused_ms = SILENCE_MOST_MS;
    assert_int_equal(silence_excuse(&s, now += 100, false), 0);
    s.unread = false;
    s.waited_from = now;
    s.wait_ms = 100;
    assert_int_equal(silence_excuse(&s, now += 100, false), 0);
    assert_int_equal(s.excused_ms, 0);
    s.unread = true;
    for (int i = 0; i < 400; i++) {
        sum += silence_excuse(&s, now += 100, false);
    }
    assert_int_equal(sum, SILENCE_MOST_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_that_waited_for_work_has_heard_all),
        cmocka_unit_test(a_pause_of_a_quarter_second_is_none_and_a_longer_one_is),
        cmocka_unit_test(while_something_is_unread_all_of_the_time_is_excused),
        cmocka_unit_test(without_a_cycle_before_and_while_nothing_is_decided_nothing_is_excused),
        cmocka_unit_test(no_more_than_half_a_minute_is_excused_until_all_was_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
