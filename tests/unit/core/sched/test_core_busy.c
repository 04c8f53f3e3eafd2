/* Instances that have no place: others have it. Nothing ran, so nothing is used up, and the shard
 * comes again. */
#include "tests/unit/core/sched/test_core.h"

#include "supervisor/core/sched/core_internal.h"

static void busy(struct rig *r, const char *step)
{
    rig_event(r, rig_about(r, CORE_BUSY, step));
}

static int setup_with_breakers(void **state)
{
    struct core_config config = rig_config();
    config.registry.breaker_failures = 1;
    config.registry.breaker_cooldown_ms = 1000;
    config.registry.breaker_cooldown_max_ms = 4000;
    config.registry.breaker_probe_ms = 500;
    *state = rig_new_with(&config);
    return 0;
}

static void an_instance_without_a_place_costs_no_attempt(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=0)");
    rig_forget(r);
    for (int i = 0; i < 20; i++) { /* more than requests that do not leave */
        busy(r, "A");
        rig_until(r, (msec)(i + 1) * REGISTRY_FULL_MAX_MS);
        assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    }
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[20000] A#1 completed\n"
                 "[20000] plan completed/success\n"
                 "[20000] run done\n");
}

/* The lane is free at once, and gets nothing before the wait is over: at T - 1, at T. */
static void it_is_asked_again_after_a_wait_that_grows(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    busy(r, "A");
    rig_until(r, 49);
    RIG_TRACE(r, "");
    rig_until(r, 50);
    RIG_TRACE(r, "[50] A#1 assigned i1\n"
                 "[50] dispatch A#1 i1/0\n");
    busy(r, "A");
    rig_until(r, 124);
    RIG_TRACE(r, "");
    rig_until(r, 125);
    RIG_TRACE(r, "[125] A#1 assigned i1\n"
                 "[125] dispatch A#1 i1/0\n");
}

static void another_instance_gets_it_at_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "x", 2, 1);
    rig_submit(r, "A");
    rig_forget(r);
    busy(r, "A");
    RIG_TRACE(r, "[0] A#1 assigned i2\n"
                 "[0] dispatch A#1 i2/0\n");
}

static void the_end_of_a_step_there_ends_the_wait(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A");
    rig_submit(r, "B");
    busy(r, "B");
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n"
                 "[0] B#1 assigned i1\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void steps_keep_their_order(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_submit(r, "B");
    busy(r, "A");
    rig_forget(r);
    rig_until(r, 50);
    RIG_TRACE(r, "[50] A#1 assigned i1\n"
                 "[50] dispatch A#1 i1/0\n");
}

static void it_is_no_failure_for_the_breaker(void **state)
{
    struct rig *r = *state;
    struct instance_view v;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    busy(r, "A");
    assert_true(registry_instance_view(core_registry(rig_core(r)), 0, &v));
    assert_int_equal(v.breaker.state, BREAKER_CLOSED);
    assert_true(v.full);
    rig_until(r, 50);
    assert_true(registry_instance_view(core_registry(rig_core(r)), 0, &v));
    assert_false(v.full);
}

/* The wait in the queue goes on from where it began; so does the limit of the step. */
static void the_queue_timeout_counts_over_all_refusals(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(queue=200)");
    busy(r, "A");
    rig_until(r, 60);
    busy(r, "A"); /* asked again at 135 */
    rig_until(r, 140);
    busy(r, "A"); /* and at 252 */
    rig_until(r, 199);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_forget(r);
    rig_until(r, 200);
    RIG_TRACE(r, "[200] A#1 failed TIMEOUT: Queue timeout after 200ms\n"
                 "[200] plan failed/failed step: Queue timeout after 200ms\n"
                 "[200] run done\n");
}

static void the_time_of_the_attempt_does_not_run_meanwhile(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(timeout=100 retries=0)");
    busy(r, "A");
    rig_until(r, 50);
    busy(r, "A");
    rig_until(r, 125);
    rig_until(r, 224);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_until(r, 225);
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void a_cancelled_plan_ends_with_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t plan = rig_submit(r, "A");
    rig_cancel(r, plan, "enough");
    rig_forget(r);
    busy(r, "A");
    RIG_TRACE(r, "[0] A#1 cancelled cancelled CANCELLED: Cancelled\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

/* It is asked again until its drain is known; then another one has the same attempt. */
static void one_that_drains_gives_the_attempt_to_another(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=0)");
    busy(r, "A");
    rig_until(r, 50);
    rig_instance(r, CORE_DRAIN, 1, "SIGTERM");
    busy(r, "A");
    rig_until(r, 500);
    rig_forget(r);
    rig_up(r, "x", 2, 1);
    RIG_TRACE(r, "[500] agent_registered x i2\n"
                 "[500] registered i2 epoch=2\n"
                 "[500] agent_up x i2\n"
                 "[500] A#1 assigned i2\n"
                 "[500] dispatch A#1 i2/0\n");
}

static void an_old_incarnation_holds_nothing_up(void **state)
{
    struct rig *r = *state;
    struct instance_view v;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    const struct core_event late = rig_about(r, CORE_BUSY, "A");
    rig_up(r, "x", 1, 1);
    rig_event(r, late);
    assert_true(registry_instance_view(core_registry(rig_core(r)), 0, &v));
    assert_false(v.full);
    assert_int_equal(rig_status(r, "A"), STEP_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(an_instance_without_a_place_costs_no_attempt),
        CORE_TEST(it_is_asked_again_after_a_wait_that_grows),
        CORE_TEST(another_instance_gets_it_at_once),
        CORE_TEST(the_end_of_a_step_there_ends_the_wait),
        CORE_TEST(steps_keep_their_order),
        cmocka_unit_test_setup_teardown(it_is_no_failure_for_the_breaker, setup_with_breakers,
                                        core_test_teardown),
        CORE_TEST(the_queue_timeout_counts_over_all_refusals),
        CORE_TEST(the_time_of_the_attempt_does_not_run_meanwhile),
        CORE_TEST(a_cancelled_plan_ends_with_it),
        CORE_TEST(one_that_drains_gives_the_attempt_to_another),
        CORE_TEST(an_old_incarnation_holds_nothing_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
