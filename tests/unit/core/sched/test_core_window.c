/* Sliding windows of starts: how many are left, until when, and when nothing is remembered. */
#include "supervisor/core/sched/window.h"

#include "tests/support/cmocka.h"

static msec starts[8];

static struct core_window window_of(uint32_t n, msec per_ms)
{
    struct core_window w = {.used = 0};

    for (int i = 0; i < 8; i++) {
        starts[i] = 1; /* what was there before is none of it */
    }
    window_set(&w, (struct core_rate){.n = n, .per_ms = per_ms}, starts);
    return w;
}

static void a_window_opens_when_its_first_start_is_as_old_as_it_is_long(void **state)
{
    struct core_window w = window_of(2, 1000);

    (void)state;
    assert_true(window_is_open(&w, 0));
    window_add(&w, 5000);
    assert_int_equal(window_opens(&w), 0);
    window_add(&w, 5400);
    assert_int_equal(window_opens(&w), 6000);
    assert_false(window_is_open(&w, 5999));
    assert_true(window_is_open(&w, 6000));
    window_add(&w, 6000);
    assert_int_equal(window_opens(&w), 6400);
    window_add(&w, 6400);
    assert_int_equal(window_opens(&w), 7000);
}

static void the_room_of_a_window_grows_as_starts_leave_it(void **state)
{
    struct core_window w = window_of(3, 1000);

    (void)state;
    assert_int_equal(window_room(&w, 0, 9), 3);
    assert_int_equal(window_room(&w, 0, 2), 2);
    window_add(&w, 5000);
    assert_int_equal(window_room(&w, 5000, 9), 2);
    window_add(&w, 5100);
    window_add(&w, 5200);
    assert_int_equal(window_room(&w, 5999, 9), 0);
    assert_int_equal(window_room(&w, 6000, 9), 1);
    assert_int_equal(window_room(&w, 6100, 9), 2);
    assert_int_equal(window_room(&w, 6200, 9), 3);
    assert_int_equal(window_room(&w, 6200, 1), 1);
    w = window_of(0, 0); /* no rate */
    assert_int_equal(window_room(&w, 0, 7), 7);
    assert_true(window_is_open(&w, 0));
}

static void a_window_is_over_when_its_last_start_has_left_it(void **state)
{
    struct core_window w = window_of(3, 1000);

    (void)state;
    assert_true(window_is_over(&w, 0));
    window_add(&w, 5000);
    assert_false(window_is_over(&w, 5999));
    assert_true(window_is_over(&w, 6000));
    window_add(&w, 5500);
    assert_false(window_is_over(&w, 6499));
    assert_true(window_is_over(&w, 6500));
    window_add(&w, 5600);
    window_add(&w, 5700); /* the first one makes room */
    assert_false(window_is_over(&w, 6699));
    assert_true(window_is_over(&w, 6700));
}

/* The newest starts count under another rule; those that it has no room for are forgotten. */
static void another_rate_keeps_the_newest_starts(void **state)
{
    static msec others[2];
    struct core_window w = window_of(3, 1000);

    (void)state;
    window_add(&w, 5000);
    window_add(&w, 5100);
    window_add(&w, 5200);
    window_set(&w, (struct core_rate){.n = 2, .per_ms = 500}, others);
    assert_int_equal(w.used, 2);
    assert_int_equal(window_opens(&w), 5600);
    assert_false(window_is_over(&w, 5699));
    assert_true(window_is_over(&w, 5700));
    window_set(&w, (struct core_rate){.n = 0, .per_ms = 0}, NULL);
    assert_int_equal(w.used, 0);
    window_add(&w, 6000);
    assert_int_equal(w.used, 0);
    assert_true(window_is_over(&w, 6000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_opens_when_its_first_start_is_as_old_as_it_is_long),
        cmocka_unit_test(the_room_of_a_window_grows_as_starts_leave_it),
        cmocka_unit_test(a_window_is_over_when_its_last_start_has_left_it),
        cmocka_unit_test(another_rate_keeps_the_newest_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
