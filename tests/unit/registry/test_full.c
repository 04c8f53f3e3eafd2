/* Instances whose places others have. */
#include "tests/unit/registry/fixture.h"

static void one_that_is_full_gets_no_work_until_its_time(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t slot = ready(r, a, 1, 2, 0);
    registry_full(r, slot, 10);
    assert_true(view_of(r, slot).full);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_int_equal(registry_deadline(r), 10 + REGISTRY_FULL_MS);
    assert_int_equal(registry_full_due(r, 10 + REGISTRY_FULL_MS - 1), REGISTRY_NONE);
    assert_int_equal(registry_full_due(r, 10 + REGISTRY_FULL_MS), a);
    assert_int_equal(registry_full_due(r, 10 + REGISTRY_FULL_MS), REGISTRY_NONE);
    assert_int_equal(registry_select(r, a), slot);
}

static void another_instance_is_chosen(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t one = ready(r, a, 1, 4, 0);
    const uint32_t two = ready(r, a, 2, 1, 0);
    assert_int_equal(registry_select(r, a), one);
    registry_full(r, one, 0);
    assert_int_equal(registry_select(r, a), two);
}

/* 50, 75, 112, 168, ... at most 1,000: half as long again each time in a row. */
static void the_wait_grows_up_to_its_maximum(void **state)
{
    struct registry *r = *state;
    const uint32_t slot = ready(r, add(r, "a", 0), 1, 1, 0);
    msec now = 0;
    msec wait = REGISTRY_FULL_MS;
    for (int i = 0; i < 12; i++) {
        (void)registry_renew_lease(r, slot, now);
        registry_full(r, slot, now);
        assert_int_equal(registry_full_due(r, now + wait - 1), REGISTRY_NONE);
        assert_int_not_equal(registry_full_due(r, now + wait), REGISTRY_NONE);
        now += wait;
        wait = wait * 3 / 2 < REGISTRY_FULL_MAX_MS ? wait * 3 / 2 : REGISTRY_FULL_MAX_MS;
    }
    assert_int_equal(wait, REGISTRY_FULL_MAX_MS);
}

static void answers_that_come_meanwhile_count_once(void **state)
{
    struct registry *r = *state;
    const uint32_t slot = ready(r, add(r, "a", 0), 1, 4, 0);
    for (int i = 0; i < 4; i++) {
        registry_full(r, slot, (msec)i);
    }
    assert_int_not_equal(registry_full_due(r, REGISTRY_FULL_MS), REGISTRY_NONE);
}

/* One that comes at the end of the wait, or later, begins the next, before or after the tick. */
static void an_answer_after_the_wait_begins_the_next(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t early = ready(r, a, 1, 4, 0);
    const uint32_t late = ready(r, a, 2, 4, 0);
    registry_full(r, early, 0);
    registry_full(r, late, 0);
    registry_full(r, early, REGISTRY_FULL_MS - 1);
    registry_full(r, late, REGISTRY_FULL_MS);
    assert_int_equal(view_of(r, early).full_until, REGISTRY_FULL_MS);
    assert_int_equal(view_of(r, late).full_until, REGISTRY_FULL_MS + REGISTRY_FULL_MS * 3 / 2);
}

static void a_place_that_became_free_ends_the_wait_and_its_growth(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t slot = ready(r, a, 1, 1, 0);
    registry_full(r, slot, 0);
    (void)registry_full_due(r, REGISTRY_FULL_MS);
    registry_full(r, slot, 50);
    registry_not_full(r, slot);
    assert_int_equal(registry_select(r, a), slot);
    assert_int_equal(registry_full_due(r, 1000), REGISTRY_NONE);
    registry_full(r, slot, 1000);
    assert_int_not_equal(registry_full_due(r, 1000 + REGISTRY_FULL_MS), REGISTRY_NONE);
}

static void one_that_leaves_or_comes_again_waits_for_nothing(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t one = ready(r, a, 1, 1, 0);
    const uint32_t two = ready(r, a, 2, 1, 0);
    registry_full(r, one, 0);
    registry_full(r, two, 0);
    assert_int_equal(ready(r, a, 1, 1, 5), one);
    assert_false(view_of(r, one).full);
    registry_remove(r, two, 10);
    assert_int_equal(registry_full_due(r, 10000), REGISTRY_NONE);
    registry_not_full(r, two); /* it is gone */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, registry_setup, registry_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_is_full_gets_no_work_until_its_time),
        TEST(another_instance_is_chosen),
        TEST(the_wait_grows_up_to_its_maximum),
        TEST(answers_that_come_meanwhile_count_once),
        TEST(an_answer_after_the_wait_begins_the_next),
        TEST(a_place_that_became_free_ends_the_wait_and_its_growth),
        TEST(one_that_leaves_or_comes_again_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
