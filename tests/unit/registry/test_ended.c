/* Instances whose connections have all ended: their lease is over sooner. */
#include "fixture.h"

enum { ENDED_MS = 50 };

static struct registry *registry_with(msec ended_ms)
{
    const struct registry_limits limits = {.agents = 4,
                                           .instances = 4,
                                           .lease_ms = 300,
                                           .suspect_ms = 200,
                                           .ended_ms = ended_ms,
                                           .epoch_base = 10};
    void *mem = malloc(registry_size(&limits));

    assert_non_null(mem);
    return registry_init(mem, &limits);
}

static uint32_t connected(struct registry *r, uint32_t agent, uint8_t n, msec now)
{
    const uint32_t slot = ready(r, agent, n, 1, now);

    registry_connections(r, slot, now);
    return slot;
}

static void set_lane(struct registry *r, uint32_t slot, uint32_t lane, bool up, msec now)
{
    registry_lane_set(r, slot, lane, up);
    registry_connections(r, slot, now);
}

static uint32_t dead_at(struct registry *r, msec now)
{
    enum health h = HEALTH_COUNT;
    const uint32_t slot = registry_expire(r, now, &h);

    assert_true(slot == REGISTRY_NONE || h == HEALTH_DEAD);
    return slot;
}

static void without_a_connection_it_has_its_time_and_not_a_millisecond_more(void **state)
{
    struct registry *r = registry_with(ENDED_MS);
    const uint32_t s = connected(r, add(r, "a", 0), 1, 1000);

    (void)state;
    assert_int_equal(registry_deadline(r), 1200);
    set_lane(r, s, 0, false, 1010);
    assert_int_equal(registry_deadline(r), 1060);
    assert_int_equal(dead_at(r, 1059), REGISTRY_NONE);
    assert_int_equal(dead_at(r, 1060), s);
    free(r);
}

static void without_a_limit_its_lease_is_as_long_as_with_connections(void **state)
{
    struct registry *r = registry_with(0);
    const uint32_t s = connected(r, add(r, "a", 0), 1, 1000);

    (void)state;
    set_lane(r, s, 0, false, 1010);
    assert_int_equal(registry_deadline(r), 1200);
    free(r);
}

static void a_message_gives_it_its_time_again(void **state)
{
    struct registry *r = registry_with(ENDED_MS);
    const uint32_t s = connected(r, add(r, "a", 0), 1, 1000);

    (void)state;
    set_lane(r, s, 0, false, 1010);
    (void)registry_renew_lease(r, s, 1040);
    assert_int_equal(registry_deadline(r), 1090);
    set_lane(r, s, 0, false, 1080); /* it had none: nothing begins anew */
    assert_int_equal(registry_deadline(r), 1090);
    free(r);
}

static void any_connection_gives_it_its_lease_back(void **state)
{
    static const uint32_t lanes[] = {0, REGISTRY_CONTROL_LANE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct registry *r = registry_with(ENDED_MS);
        const uint32_t s = connected(r, add(r, "a", 0), 1, 1000);
        set_lane(r, s, 0, false, 1010);
        set_lane(r, s, lanes[i], true, 1020);
        assert_int_equal(registry_deadline(r), 1200);
        assert_int_equal(dead_at(r, 1100), REGISTRY_NONE);
        free(r);
    }
}

/* The order stays when one of them goes or gets a connection: the first, one between, the last. */
static void who_lost_them_first_goes_first(void **state)
{
    (void)state;
    for (uint32_t gone = 0; gone < 3; gone++) {
        for (int removed = 0; removed < 2; removed++) {
            struct registry *r = registry_with(ENDED_MS);
            const uint32_t a = add(r, "a", 0);
            uint32_t s[3];
            for (uint8_t i = 0; i < 3; i++) {
                s[i] = connected(r, a, (uint8_t)(i + 1), 1000);
            }
            for (uint32_t i = 0; i < 3; i++) {
                set_lane(r, s[i], 0, false, 1010 + 10 * i);
            }
            if (removed != 0) {
                registry_remove(r, s[gone], 1035);
            } else {
                set_lane(r, s[gone], 0, true, 1035);
            }
            for (uint32_t i = 0; i < 3; i++) {
                if (i != gone) {
                    assert_int_equal(dead_at(r, 1059 + 10 * i), REGISTRY_NONE);
                    assert_int_equal(dead_at(r, 1060 + 10 * i), s[i]);
                    registry_remove(r, s[i], 1060 + 10 * i);
                }
            }
            assert_int_equal(dead_at(r, 1150), REGISTRY_NONE);
            free(r);
        }
    }
}

static void a_new_instance_in_its_place_has_a_lease_of_its_own(void **state)
{
    struct registry *r = registry_with(ENDED_MS);
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = connected(r, a, 1, 1000);

    (void)state;
    set_lane(r, s, 0, false, 1010);
    registry_remove(r, s, 1020);
    assert_true(registry_deadline(r) == MSEC_NEVER);
    assert_int_equal(connected(r, a, 2, 1030), s);
    assert_int_equal(registry_deadline(r), 1230);
    set_lane(r, s, 0, false, 1040);
    assert_int_equal(registry_deadline(r), 1090);
    free(r);
}

/* While the supervisor could not listen, nobody's time has passed. */
static void what_is_excused_does_not_count(void **state)
{
    static const struct {
        msec ms, deadline;
    } all[] = {{5, 1065}, {10, 1070}, {11, 1070}, {1000, 1070}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct registry *r = registry_with(ENDED_MS);
        const uint32_t s = connected(r, add(r, "a", 0), 1, 1000);
        set_lane(r, s, 0, false, 1010);
        registry_excuse(r, 1020, all[i].ms);
        assert_int_equal(registry_deadline(r), all[i].deadline);
        free(r);
    }
}

/* Who is dead has no time any more; who is only silent keeps the one that began with its end. */
static void silence_does_not_give_it_more_time_and_death_ends_it(void **state)
{
    struct registry *r = registry_with(250);
    const uint32_t s = connected(r, add(r, "a", 0), 1, 1000);
    enum health h = HEALTH_COUNT;

    (void)state;
    set_lane(r, s, 0, false, 1010);
    assert_int_equal(registry_expire(r, 1200, &h), s);
    assert_int_equal(h, HEALTH_SUSPECT);
    assert_int_equal(registry_deadline(r), 1260);
    assert_int_equal(registry_expire(r, 1259, &h), REGISTRY_NONE);
    assert_int_equal(dead_at(r, 1260), s);
    registry_remove(r, s, 1260);
    assert_true(registry_deadline(r) == MSEC_NEVER);
    assert_int_equal(dead_at(r, 2000), REGISTRY_NONE);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_connection_it_has_its_time_and_not_a_millisecond_more),
        cmocka_unit_test(without_a_limit_its_lease_is_as_long_as_with_connections),
        cmocka_unit_test(a_message_gives_it_its_time_again),
        cmocka_unit_test(any_connection_gives_it_its_lease_back),
        cmocka_unit_test(who_lost_them_first_goes_first),
        cmocka_unit_test(a_new_instance_in_its_place_has_a_lease_of_its_own),
        cmocka_unit_test(what_is_excused_does_not_count),
        cmocka_unit_test(silence_does_not_give_it_more_time_and_death_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
