/* Agents that left are forgotten when nobody needs them. rig_config: agent_wait_ms is 10,000. */
#include <stdio.h>

#include "tests/unit/core/sched/test_core.h"

enum { WAIT_MS = 10000 };

static bool knows(struct rig *r, const char *agent)
{
    return registry_agent(core_registry(rig_core(r)), str_from(agent)) != REGISTRY_NONE;
}

static void an_agent_that_left_is_known_for_the_time_that_a_step_would_wait(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_until(r, 500);
    rig_instance(r, CORE_GONE, 1, "deregistered");
    rig_until(r, 500 + WAIT_MS - 1);
    assert_true(knows(r, "x"));
    rig_until(r, 500 + WAIT_MS);
    assert_false(knows(r, "x"));
}

static void an_agent_that_comes_back_in_time_keeps_its_index(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint32_t x = registry_agent(core_registry(rig_core(r)), STR_LIT("x"));
    const uint32_t generation = registry_agent_generation(core_registry(rig_core(r)), x);
    rig_instance(r, CORE_GONE, 1, "restart");
    rig_until(r, WAIT_MS - 1);
    rig_up(r, "x", 2, 1);
    rig_until(r, 3 * WAIT_MS);
    assert_int_equal(registry_agent(core_registry(rig_core(r)), STR_LIT("x")), x);
    assert_int_equal(registry_agent_generation(core_registry(rig_core(r)), x), generation);
}

static void an_agent_that_an_open_plan_names_is_known_until_the_plan_ends(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    const uint64_t run = rig_submit(r, "A; B@y<A");
    rig_instance(r, CORE_GONE, 2, "deregistered");
    rig_until(r, 5 * WAIT_MS);
    assert_true(knows(r, "y"));
    rig_cancel(r, run, "enough");
    rig_ok(r, "A");
    assert_null(rig_run(r, run));
    rig_until(r, 5 * WAIT_MS + 1);
    assert_false(knows(r, "y"));
    assert_true(knows(r, "x"));
}

static void a_plan_waits_for_an_agent_that_left_and_goes_on_when_it_is_back(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_instance(r, CORE_GONE, 1, "deregistered");
    rig_until(r, WAIT_MS - 1);
    rig_submit(r, "A");
    rig_until(r, 2 * WAIT_MS - 2);
    assert_true(knows(r, "x"));
    rig_up(r, "x", 2, 1);
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
}

static void the_error_names_agents_that_are_there(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_up(r, "z", 3, 1);
    registry_agent_enable(core_registry(rig_core(r)),
                          registry_agent(core_registry(rig_core(r)), STR_LIT("z")), false);
    rig_instance(r, CORE_GONE, 1, "deregistered");
    rig_submit(r, "A");
    rig_forget(r);
    rig_until(r, WAIT_MS);
    RIG_TRACE(r, "[10000] A#0 failed AGENT_UNAVAILABLE: No instance of agent 'x' came within 10000 "
                 "ms; there are: y\n"
                 "[10000] plan failed/failed step: No instance of agent 'x' came within 10000 ms; "
                 "there are: y\n"
                 "[10000] run done\n");
}

static void configured_and_disabled_agents_are_never_forgotten(void **state)
{
    struct rig *r = *state;
    struct registry *registry = core_registry(rig_core(r));
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    (void)registry_agent_configure(registry, STR_LIT("x"), 0);
    registry_agent_enable(registry, registry_agent(registry, STR_LIT("y")), false);
    rig_instance(r, CORE_GONE, 1, "deregistered");
    rig_instance(r, CORE_GONE, 2, "deregistered");
    rig_until(r, 9 * WAIT_MS);
    assert_true(knows(r, "x"));
    assert_true(knows(r, "y"));
    assert_false(core_agent_room(rig_core(r)));
}

/* 16 fit; 2,000 come and go. */
static void there_is_always_room_for_an_agent_when_the_others_have_left(void **state)
{
    struct rig *r = *state;
    struct registry *registry = core_registry(rig_core(r));
    char name[24];
    rig_up(r, "x", 1, 1);
    for (uint32_t i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof name, "a%u", i);
        if (registry_agents_known(registry) == 16) {
            assert_true(core_agent_room(rig_core(r)));
        }
        rig_register(r, name, 2, 1);
        rig_instance(r, CORE_GONE, 2, "deregistered");
        rig_forget(r);
        rig_until(r, i + 1);
    }
    assert_true(knows(r, "a1999"));
    assert_false(knows(r, "a1"));
    assert_true(knows(r, "x"));
    rig_until(r, 2000 + WAIT_MS);
    assert_int_equal(registry_agents_known(registry), 1);
}

static void an_agent_of_an_open_plan_makes_no_room(void **state)
{
    struct rig *r = *state;
    struct registry *registry = core_registry(rig_core(r));
    rig_up(r, "x", 1, 1);
    rig_instance(r, CORE_GONE, 1, "deregistered");
    rig_submit(r, "A");
    assert_false(core_agent_room(rig_core(r)));
    (void)registry_agent_add(registry, STR_LIT("other"), 0);
    assert_true(core_agent_room(rig_core(r)));
    assert_true(knows(r, "x"));
    assert_false(knows(r, "other"));
}

static void after_a_restart_the_agents_of_open_plans_are_known_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_restart(r, 100);
    rig_until(r, 100 + WAIT_MS - 1);
    assert_true(knows(r, "x"));
    rig_until(r, 100 + 5 * WAIT_MS); /* the step failed, and with it the plan */
    assert_false(knows(r, "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(an_agent_that_left_is_known_for_the_time_that_a_step_would_wait),
        CORE_TEST(an_agent_that_comes_back_in_time_keeps_its_index),
        CORE_TEST(an_agent_that_an_open_plan_names_is_known_until_the_plan_ends),
        CORE_TEST(a_plan_waits_for_an_agent_that_left_and_goes_on_when_it_is_back),
        CORE_TEST(the_error_names_agents_that_are_there),
        CORE_TEST(configured_and_disabled_agents_are_never_forgotten),
        CORE_TEST(there_is_always_room_for_an_agent_when_the_others_have_left),
        CORE_TEST(an_agent_of_an_open_plan_makes_no_room),
        CORE_TEST(after_a_restart_the_agents_of_open_plans_are_known_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
