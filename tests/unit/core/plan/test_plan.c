#include "plan_builder.h"

static void linear_backoff_is_the_initial_delay_times_the_failed_attempts(void **state)
{
    (void)state;
    const struct backoff b = {.kind = BACKOFF_LINEAR, .initial_ms = 1000, .max_ms = 30000};
    assert_int_equal(backoff_delay(&b, 1, 7), 1000); /* M022 */
    assert_int_equal(backoff_delay(&b, 2, 7), 2000);
    assert_int_equal(backoff_delay(&b, 30, 7), 30000);
    assert_int_equal(backoff_delay(&b, 31, 7), 30000);
    assert_int_equal(backoff_delay(&b, UINT32_MAX, 7), 30000);
}

static void exponential_backoff_multiplies_up_to_its_cap(void **state)
{
    (void)state;
    const struct backoff b = {.kind = BACKOFF_EXPONENTIAL,
                              .initial_ms = 1000,
                              .multiplier_permille = 2000,
                              .max_ms = 30000};
    assert_int_equal(backoff_delay(&b, 1, 0), 1000);
    assert_int_equal(backoff_delay(&b, 2, 0), 2000);
    assert_int_equal(backoff_delay(&b, 5, 0), 16000);
    assert_int_equal(backoff_delay(&b, 6, 0), 30000);
    assert_int_equal(backoff_delay(&b, UINT32_MAX, 0), 30000);
}

static void a_multiplier_of_one_and_a_half_keeps_its_fraction(void **state)
{
    (void)state;
    const struct backoff b = {
        .kind = BACKOFF_EXPONENTIAL, .initial_ms = 10, .multiplier_permille = 1500, .max_ms = 1000};
    assert_int_equal(backoff_delay(&b, 2, 0), 15);
    assert_int_equal(backoff_delay(&b, 3, 0), 22);
}

static void fixed_backoff_never_grows_and_no_delay_overflows(void **state)
{
    (void)state;
    const struct backoff fixed = {.kind = BACKOFF_FIXED, .initial_ms = 2000, .max_ms = 30000};
    assert_int_equal(backoff_delay(&fixed, 1, 0), 2000);
    assert_int_equal(backoff_delay(&fixed, 90, 0), 2000);
    const struct backoff wide = {.kind = BACKOFF_EXPONENTIAL,
                                 .initial_ms = MSEC_NEVER / 2,
                                 .multiplier_permille = UINT32_MAX,
                                 .max_ms = MSEC_NEVER - 5,
                                 .jitter_permille = 1000};
    assert_true(backoff_delay(&wide, 3, 9) >= MSEC_NEVER - 5);
    const struct backoff linear = {.initial_ms = MSEC_NEVER / 3, .max_ms = MSEC_NEVER};
    assert_true(backoff_delay(&linear, 7, 0) == MSEC_NEVER);
}

static void jitter_adds_at_most_its_share_and_only_what_was_drawn(void **state)
{
    (void)state;
    const struct backoff b = {
        .kind = BACKOFF_FIXED, .initial_ms = 1000, .max_ms = 1000, .jitter_permille = 250};
    assert_int_equal(backoff_delay(&b, 1, 0), 1000);
    assert_int_equal(backoff_delay(&b, 1, 250), 1250);
    assert_int_equal(backoff_delay(&b, 1, 251), 1000);
    assert_int_equal(backoff_delay(&b, 1, 100), backoff_delay(&b, 2, 100));
}

static void linking_lists_the_dependents_of_each_step_in_order(void **state)
{
    (void)state;
    struct built *b = build_good("a; b<a; c<a; d<c,b");
    const struct plan *p = &b->plan;
    assert_int_equal(p->steps[0].dependents_n, 2);
    assert_int_equal(p->dependents[p->steps[0].dependents_at], 1);
    assert_int_equal(p->dependents[p->steps[0].dependents_at + 1], 2);
    assert_int_equal(p->steps[1].dependents_n, 1);
    assert_int_equal(p->dependents[p->steps[1].dependents_at], 3);
    assert_int_equal(p->steps[3].dependents_n, 0);
    built_free(b);
}

static void a_step_is_found_by_its_id(void **state)
{
    (void)state;
    struct built *b = build_good("a; b");
    assert_int_equal(plan_step_find(&b->plan, STR_LIT("b")), 1);
    assert_int_equal(plan_step_find(&b->plan, STR_LIT("B")), UINT32_MAX);
    built_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_backoff_is_the_initial_delay_times_the_failed_attempts),
        cmocka_unit_test(exponential_backoff_multiplies_up_to_its_cap),
        cmocka_unit_test(a_multiplier_of_one_and_a_half_keeps_its_fraction),
        cmocka_unit_test(fixed_backoff_never_grows_and_no_delay_overflows),
        cmocka_unit_test(jitter_adds_at_most_its_share_and_only_what_was_drawn),
        cmocka_unit_test(linking_lists_the_dependents_of_each_step_in_order),
        cmocka_unit_test(a_step_is_found_by_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
