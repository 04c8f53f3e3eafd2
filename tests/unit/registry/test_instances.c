#include "fixture.h"

static void each_registration_gets_a_new_epoch_above_the_base(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s1 = registry_register(r, a, id_of(1), 1, 1);
    const uint32_t s2 = registry_register(r, a, id_of(2), 1, 1);
    assert_int_equal(view_of(r, s1).epoch, small.epoch_base + 1);
    assert_int_equal(view_of(r, s2).epoch, small.epoch_base + 2);
}

static void the_same_id_again_fences_the_old_incarnation(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s = ready(r, a, 1, 2, 1);
    const uint64_t old = view_of(r, s).epoch;
    registry_lane_set(r, s, REGISTRY_CONTROL_LANE, true);
    registry_take(r, s);
    registry_drain(r, s);
    assert_true(registry_is_current(r, s, old));

    assert_int_equal(registry_register(r, a, id_of(1), 3, 2), s);
    assert_false(registry_is_current(r, s, old));
    const struct instance_view v = view_of(r, s);
    assert_true(registry_is_current(r, s, v.epoch));
    assert_int_equal(v.epoch, old + 1);
    assert_int_equal(v.capacity, 3);
    assert_int_equal(v.lanes_up, 0);
    assert_int_equal(v.outstanding, 0);
    assert_false(v.control_up);
    assert_false(v.draining);
    assert_int_equal(registry_agent_view(r, a).instances, 1);
}

static void an_instance_may_come_back_as_another_agent(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t b = add(r, "b", 1);
    const uint32_t s = ready(r, a, 1, 1, 1);
    assert_int_equal(registry_register(r, b, id_of(1), 1, 7), s);
    assert_int_equal(registry_agent_view(r, a).instances, 0);
    assert_int_equal(registry_agent_view(r, a).absent_since, 7);
    assert_int_equal(registry_agent_view(r, b).instances, 1);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
}

/* Since when none of its instances has a lane for work: one lane of one of them is enough. */
static void an_agent_is_out_of_reach_from_the_end_of_its_last_lane(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s1 = ready(r, a, 1, 1, 1);
    const uint32_t s2 = ready(r, a, 2, 1, 1);
    registry_connections(r, s1, 10);
    registry_connections(r, s2, 11);
    assert_int_equal(registry_agent_view(r, a).unreached_since, MSEC_NEVER);
    registry_remove(r, s1, 12);
    assert_int_equal(registry_agent_view(r, a).unreached_since, MSEC_NEVER);
    registry_lane_set(r, s2, 0, false);
    registry_connections(r, s2, 13);
    assert_int_equal(registry_agent_view(r, a).unreached_since, 13);
    registry_lane_set(r, s2, 0, true);
    registry_connections(r, s2, 14);
    assert_int_equal(registry_agent_view(r, a).unreached_since, MSEC_NEVER);
    registry_remove(r, s2, 15);
    assert_int_equal(registry_agent_view(r, a).unreached_since, 15);
    const uint32_t s3 = ready(r, a, 3, 1, 16);
    assert_int_equal(registry_agent_view(r, a).unreached_since, 15); /* nobody has said so */
    registry_remove(r, s3, 17);
    assert_int_equal(registry_agent_view(r, a).unreached_since, 15);
}

static void a_removed_slot_is_fenced_and_used_again_with_another_epoch(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s1 = ready(r, a, 1, 1, 1);
    const uint32_t s2 = ready(r, a, 2, 1, 1);
    const uint64_t old = view_of(r, s1).epoch;
    registry_remove(r, s1, 2);
    struct instance_view v;
    assert_false(registry_instance_view(r, s1, &v));
    assert_false(registry_is_current(r, s1, old));
    assert_int_equal(registry_instance(r, id_of(1)), REGISTRY_NONE);
    assert_int_equal(registry_instance(r, id_of(2)), s2);
    assert_int_equal(ready(r, a, 3, 1, 3), s1);
    assert_true(view_of(r, s1).epoch > old);
    assert_int_equal(registry_instances(r), 2);
    registry_remove(r, s1, 4);
    registry_remove(r, s1, 5);
}

static void the_lowest_free_slot_is_used_whatever_was_freed_first(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    uint32_t slots[3];
    for (uint32_t i = 0; i < 3; i++) {
        slots[i] = registry_register(r, a, id_of((uint8_t)(i + 1)), 1, 1);
    }
    registry_remove(r, slots[1], 2);
    registry_remove(r, slots[0], 2);
    assert_int_equal(registry_register(r, a, id_of(4), 1, 3), slots[0]);
    assert_int_equal(registry_register(r, a, id_of(5), 1, 3), slots[1]);
    registry_remove(r, slots[2], 4);
    registry_remove(r, slots[0], 4);
    assert_int_equal(registry_register(r, a, id_of(6), 1, 5), slots[0]);
    assert_int_equal(registry_register(r, a, id_of(7), 1, 5), slots[2]);
}

static void a_full_registry_refuses_a_new_instance_but_takes_a_known_one_back(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    for (uint8_t n = 1; n <= 4; n++) {
        ready(r, a, n, 1, 1);
    }
    assert_int_equal(registry_register(r, a, id_of(5), 1, 2), REGISTRY_NONE);
    assert_int_equal(registry_register(r, a, id_of(4), 1, 2), 3);
}

/* Lookup by id stays right through every order of additions and removals (backward-shift deletion).
 */
static void ids_are_found_through_random_churn(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t seed = 20261121;
    uint32_t x = seed;
    bool there[256] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        x = x * 1664525u + 1013904223u;
        const uint8_t id = (uint8_t)(x >> 24);
        const uint32_t slot = registry_instance(r, id_of(id));
        if (there[id] != (slot != REGISTRY_NONE)) {
            fail_msg("seed %u: id %u at turn %u", seed, id, i);
        }
        if (there[id]) {
            registry_remove(r, slot, i);
            there[id] = false;
            n--;
        } else if (registry_register(r, a, id_of(id), 1, i) != REGISTRY_NONE) {
            there[id] = true;
            n++;
        } else if (n != small.instances) {
            fail_msg("seed %u: refused with %u at turn %u", seed, n, i);
        } else {
            registry_remove(r, (x >> 8) % small.instances, i);
            for (uint32_t k = 0; k < 256; k++) {
                there[k] = registry_instance(r, id_of((uint8_t)k)) != REGISTRY_NONE;
            }
            n--;
        }
        assert_int_equal(registry_agent_view(r, a).instances, n);
    }
}

/* ---- lanes and credits ---- */

static void an_instance_without_lanes_gets_no_work(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s = registry_register(r, a, id_of(1), 2, 1);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    registry_lane_set(r, s, REGISTRY_CONTROL_LANE, true);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    registry_lane_set(r, s, 1, true);
    assert_int_equal(registry_select(r, a), s);
    assert_int_equal(registry_take(r, s), 1);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
}

static void the_lowest_free_lane_is_taken_and_a_released_one_again(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s = ready(r, a, 1, 64, 1);
    for (uint32_t lane = 0; lane < 64; lane++) {
        assert_int_equal(registry_take(r, s), lane);
    }
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    registry_release(r, s, 63);
    registry_release(r, s, 17);
    registry_release(r, s, 17);
    assert_int_equal(view_of(r, s).outstanding, 62);
    assert_int_equal(registry_take(r, s), 17);
    assert_int_equal(registry_take(r, s), 63);
}

static void a_lane_that_went_down_stays_quarantined_until_it_is_released(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s = ready(r, a, 1, 1, 1);
    const uint32_t lane = registry_take(r, s);
    registry_lane_set(r, s, lane, false);
    registry_lane_set(r, s, lane, true);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_int_equal(view_of(r, s).outstanding, 1);
    registry_release(r, s, lane);
    assert_int_equal(registry_select(r, a), s);
}

/* ---- selection ---- */

static void most_free_credits_win(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    ready(r, a, 1, 2, 1);
    const uint32_t wide = ready(r, a, 2, 3, 1);
    assert_int_equal(registry_select(r, a), wide);
}

static void among_equal_credits_the_least_outstanding_wins(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t busy = ready(r, a, 1, 3, 1);
    const uint32_t idle = ready(r, a, 2, 2, 1);
    registry_take(r, busy); /* both have two free */
    assert_int_equal(registry_select(r, a), idle);
}

static void among_equals_the_lowest_slot_wins(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s0 = ready(r, a, 1, 1, 1);
    const uint32_t s1 = ready(r, a, 2, 1, 1);
    const uint32_t s2 = ready(r, a, 3, 1, 1);
    assert_int_equal(registry_select(r, a), s0);
    registry_take(r, s0);
    assert_int_equal(registry_select(r, a), s1);
    registry_take(r, s1);
    assert_int_equal(registry_select(r, a), s2);
}

static void only_instances_of_the_agent_are_selected(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t b = add(r, "b", 1);
    const uint32_t sa = ready(r, a, 1, 1, 1);
    const uint32_t sb = ready(r, b, 2, 9, 1);
    assert_int_equal(registry_select(r, a), sa);
    assert_int_equal(registry_select(r, b), sb);
}

static void draining_suspect_and_disabled_get_no_new_work(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t s = ready(r, a, 1, 1, 1);
    registry_agent_enable(r, a, false);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    registry_agent_enable(r, a, true);
    assert_int_equal(registry_select(r, a), s);
    enum health h;
    assert_int_equal(registry_expire(r, 201, &h), s);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    registry_renew_lease(r, s, 202);
    assert_int_equal(registry_select(r, a), s);
    registry_drain(r, s);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_true(view_of(r, s).draining);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, registry_setup, registry_teardown)
    const struct CMUnitTest tests[] = {
        RULE(each_registration_gets_a_new_epoch_above_the_base),
        RULE(the_same_id_again_fences_the_old_incarnation),
        RULE(an_agent_is_out_of_reach_from_the_end_of_its_last_lane),
        RULE(an_instance_may_come_back_as_another_agent),
        RULE(a_removed_slot_is_fenced_and_used_again_with_another_epoch),
        RULE(the_lowest_free_slot_is_used_whatever_was_freed_first),
        RULE(a_full_registry_refuses_a_new_instance_but_takes_a_known_one_back),
        RULE(ids_are_found_through_random_churn),
        RULE(an_instance_without_lanes_gets_no_work),
        RULE(the_lowest_free_lane_is_taken_and_a_released_one_again),
        RULE(a_lane_that_went_down_stays_quarantined_until_it_is_released),
        RULE(most_free_credits_win),
        RULE(among_equal_credits_the_least_outstanding_wins),
        RULE(among_equals_the_lowest_slot_wins),
        RULE(only_instances_of_the_agent_are_selected),
        RULE(draining_suspect_and_disabled_get_no_new_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
