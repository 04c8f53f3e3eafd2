#include "fixture.h"

static void silence_makes_suspect_and_then_dead(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = registry_register(r, a, id_of(1), 1, 1000);
    enum health h = HEALTH_COUNT;
    assert_int_equal(view_of(r, s).health, HEALTH_HEALTHY);
    assert_int_equal(registry_deadline(r), 1200);
    assert_int_equal(registry_expire(r, 1199, &h), REGISTRY_NONE);
    assert_int_equal(registry_expire(r, 1200, &h), s);
    assert_int_equal(h, HEALTH_SUSPECT);
    assert_int_equal(view_of(r, s).health, HEALTH_SUSPECT);
    assert_int_equal(view_of(r, s).last_seen, 1000);
    assert_int_equal(registry_deadline(r), 1300);
    assert_int_equal(registry_expire(r, 1299, &h), REGISTRY_NONE);
    assert_int_equal(registry_expire(r, 1300, &h), s);
    assert_int_equal(h, HEALTH_DEAD);
    registry_remove(r, s, 1300);
    assert_int_equal(registry_expire(r, 1300, &h), REGISTRY_NONE);
    assert_true(registry_deadline(r) == MSEC_NEVER);
    assert_int_equal(registry_agent_view(r, a).absent_since, 1300);
}

static void a_heartbeat_renews_the_lease(void **state)
{
    struct registry *r = *state;
    const uint32_t s = registry_register(r, add(r, "a", 0), id_of(1), 1, 1000);
    enum health h;
    assert_false(registry_renew_lease(r, s, 1150));
    assert_int_equal(registry_deadline(r), 1350);
    assert_int_equal(registry_expire(r, 1349, &h), REGISTRY_NONE);
    assert_int_equal(registry_expire(r, 1350, &h), s);
}

static void a_heartbeat_clears_suspicion_and_says_so_once(void **state)
{
    struct registry *r = *state;
    const uint32_t s = registry_register(r, add(r, "a", 0), id_of(1), 1, 1000);
    enum health h;
    registry_expire(r, 1250, &h);
    assert_true(registry_renew_lease(r, s, 1260));
    assert_false(registry_renew_lease(r, s, 1261));
    assert_int_equal(view_of(r, s).health, HEALTH_HEALTHY);
    assert_int_equal(registry_deadline(r), 1461);
}

static void a_long_pause_passes_through_suspect_on_the_way_to_dead(void **state)
{
    struct registry *r = *state;
    const uint32_t s = registry_register(r, add(r, "a", 0), id_of(1), 1, 1000);
    enum health h;
    assert_int_equal(registry_expire(r, 9000, &h), s);
    assert_int_equal(h, HEALTH_SUSPECT);
    assert_int_equal(registry_expire(r, 9000, &h), s);
    assert_int_equal(h, HEALTH_DEAD);
}

static void the_longest_silent_comes_first(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s0 = registry_register(r, a, id_of(1), 1, 1000);
    const uint32_t s1 = registry_register(r, a, id_of(2), 1, 1010);
    const uint32_t s2 = registry_register(r, a, id_of(3), 1, 1020);
    registry_renew_lease(r, s0, 1030);
    enum health h;
    assert_int_equal(registry_deadline(r), 1210);
    assert_int_equal(registry_expire(r, 1400, &h), s1);
    assert_int_equal(h, HEALTH_SUSPECT);
    assert_int_equal(registry_expire(r, 1400, &h), s2);
    assert_int_equal(registry_expire(r, 1400, &h), s0);
    assert_int_equal(h, HEALTH_SUSPECT);
    assert_int_equal(registry_expire(r, 1400, &h), s1);
    assert_int_equal(h, HEALTH_DEAD);
}

static void removing_one_keeps_the_order_of_the_others(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s0 = registry_register(r, a, id_of(1), 1, 1000);
    const uint32_t s1 = registry_register(r, a, id_of(2), 1, 1010);
    const uint32_t s2 = registry_register(r, a, id_of(3), 1, 1020);
    registry_remove(r, s1, 1030);
    enum health h;
    assert_int_equal(registry_expire(r, 1220, &h), s0);
    assert_int_equal(registry_expire(r, 1220, &h), s2);
    assert_int_equal(registry_expire(r, 1220, &h), REGISTRY_NONE);
}

static void time_never_runs_back(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s0 = registry_register(r, a, id_of(1), 1, 1000);
    const uint32_t s1 = registry_register(r, a, id_of(2), 1, 500);
    assert_int_equal(view_of(r, s1).last_seen, 1000);
    registry_renew_lease(r, s0, 900);
    assert_int_equal(view_of(r, s0).last_seen, 1000);
}

static void word_from_a_free_slot_changes_nothing(void **state)
{
    struct registry *r = *state;
    const uint32_t s = registry_register(r, add(r, "a", 0), id_of(1), 1, 1000);
    registry_remove(r, s, 1001);
    assert_false(registry_renew_lease(r, s, 1002));
    assert_false(registry_renew_lease(r, 3, 1002));
    registry_drain(r, s);
    assert_true(registry_deadline(r) == MSEC_NEVER);
}

/* The deadline is exact: nothing is due before it, something is due at it. */
static void the_deadline_is_exact_through_random_histories(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t seed = 4711;
    uint32_t x = seed;
    msec now = 1000;
    for (uint32_t i = 0; i < 20000; i++) {
        x = x * 1664525u + 1013904223u;
        now += (x >> 20) % 60;
        enum health h;
        const bool due = registry_deadline(r) <= now;
        const uint32_t slot = registry_expire(r, now, &h);
        if (due != (slot != REGISTRY_NONE)) {
            fail_msg("seed %u turn %u", seed, i);
        }
        if (slot != REGISTRY_NONE && h == HEALTH_DEAD) {
            assert_true(now - view_of(r, slot).last_seen >= small.lease_ms);
            registry_remove(r, slot, now);
        }
        const uint32_t pick = (x >> 9) % small.instances;
        if ((x & 0x70) == 0) {
            registry_register(r, a, id_of((uint8_t)((x >> 12) % 6)), 1, now);
        } else if ((x & 0x40) != 0) {
            registry_renew_lease(r, pick, now);
        } else if ((x & 0x30) == 0x30) {
            registry_remove(r, pick, now);
        }
    }
}

static void a_shorter_lease_counts_when_the_last_longer_one_has_gone(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t old = registry_register(r, a, id_of(1), 1, 1000);
    enum health h;
    registry_lease_set(r, 100, 50);
    const uint32_t new = registry_register(r, a, id_of(2), 1, 1000);
    assert_int_equal(registry_deadline(r), 1200); /* the old one keeps what it was given */
    assert_int_equal(registry_expire(r, 1199, &h), REGISTRY_NONE);
    registry_renew_lease(r, new, 1199);
    registry_remove(r, old, 1199);
    assert_int_equal(registry_deadline(r), 1249);
    assert_int_equal(registry_expire(r, 1249, &h), new);
    assert_int_equal(h, HEALTH_SUSPECT);
    assert_int_equal(registry_deadline(r), 1299);
}

static void a_longer_lease_counts_at_once(void **state)
{
    struct registry *r = *state;
    const uint32_t s = registry_register(r, add(r, "a", 0), id_of(1), 1, 1000);
    enum health h;
    registry_lease_set(r, 3000, 2000);
    assert_int_equal(registry_deadline(r), 3000); /* for those that are there, too */
    (void)registry_register(r, 0, id_of(2), 1, 1100);
    assert_int_equal(registry_expire(r, 2999, &h), REGISTRY_NONE);
    assert_int_equal(registry_expire(r, 3000, &h), s);
}

/* No other one is registered in between. */
static void a_longer_lease_that_is_taken_back_counts_no_more(void **state)
{
    struct registry *r = *state;
    registry_lease_set(r, 100, 50);
    (void)registry_register(r, add(r, "a", 0), id_of(1), 1, 1000);
    registry_lease_set(r, 3000, 2000);
    assert_int_equal(registry_deadline(r), 3000);
    registry_lease_set(r, 100, 50);
    assert_int_equal(registry_deadline(r), 1050);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, registry_setup, registry_teardown)
    const struct CMUnitTest tests[] = {
        RULE(silence_makes_suspect_and_then_dead),
        RULE(a_heartbeat_renews_the_lease),
        RULE(a_heartbeat_clears_suspicion_and_says_so_once),
        RULE(a_long_pause_passes_through_suspect_on_the_way_to_dead),
        RULE(the_longest_silent_comes_first),
        RULE(removing_one_keeps_the_order_of_the_others),
        RULE(time_never_runs_back),
        RULE(word_from_a_free_slot_changes_nothing),
        RULE(a_shorter_lease_counts_when_the_last_longer_one_has_gone),
        RULE(a_longer_lease_counts_at_once),
        RULE(a_longer_lease_that_is_taken_back_counts_no_more),
        RULE(the_deadline_is_exact_through_random_histories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
