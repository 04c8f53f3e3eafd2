/* How steps begin: order, concurrency, queues, lanes, handoffs, skips. */
#include <stdio.h>

#include "tests/unit/core/sched/test_core.h"

static void a_chain_runs_in_order_and_hands_off_when_the_agent_changes(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_forget(r);
    rig_submit(r, "A; B; C@y; D");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started i1\n"
                 "[0] A#1 handoff from supervisor\n"
                 "[0] dispatch A#1 i1/0\n");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
    rig_ok(r, "C");
    rig_ok(r, "D");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] C#1 started i2\n"
                 "[0] C#1 handoff from x\n"
                 "[0] dispatch C#1 i2/0\n"
                 "[0] C#1 completed\n"
                 "[0] D#1 started i1\n"
                 "[0] D#1 handoff from y\n"
                 "[0] dispatch D#1 i1/0\n"
                 "[0] D#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void a_diamond_starts_each_step_when_its_dependencies_are_done(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A; B<A; C<A; D<B,C");
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n"
                 "[0] C#1 started i1\n"
                 "[0] dispatch C#1 i1/1\n");
    rig_ok(r, "C");
    RIG_TRACE(r, "[0] C#1 completed\n");
    rig_ok(r, "B");
    rig_ok(r, "D");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] D#1 started i1\n"
                 "[0] dispatch D#1 i1/0\n"
                 "[0] D#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void in_a_dag_the_dependency_completed_last_hands_over(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "y", 2, 2);
    rig_submit(r, "A@x; B@y; C@x<A,B; D@x<A; E@y");
    rig_ok(r, "B");
    rig_forget(r);
    rig_ok(r, "A"); /* after B: C and D come from A, which is x's, as they are */
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] C#1 started i1\n"
                 "[0] dispatch C#1 i1/0\n"
                 "[0] D#1 started i1\n"
                 "[0] dispatch D#1 i1/1\n");
    rig_submit(r, "F@x; G@y; H@x<F,G");
    rig_ok(r, "C");
    rig_ok(r, "F");
    rig_forget(r);
    rig_ok(r, "G");
    RIG_TRACE(r, "[0] G#1 completed\n"
                 "[0] H#1 started i1\n"
                 "[0] H#1 handoff from y\n"
                 "[0] dispatch H#1 i1/0\n");
}

static void a_retry_is_no_second_start_and_no_second_handoff(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    rig_until(r, 100);
    RIG_TRACE(r, "[0] A#1 retry +100 SERVICE_UNAVAILABLE: down\n"
                 "[100] A#2 assigned i1\n"
                 "[100] dispatch A#2 i1/0\n");
}

static void max_concurrency_counts_queued_steps_and_those_between_attempts(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    const uint64_t run = rig_submit(r, "par max=2: A(retries=1); B@y; C; D");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "B"), STEP_READY); /* queued at y, which is not there */
    assert_int_equal(rig_status(r, "C"), STEP_READY); /* although x has free lanes */
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_until(r, 100);
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "D"), STEP_READY);
    assert_int_equal(rig_run(r, run)->active, 1);
}

static void ready_steps_begin_in_the_order_in_which_they_became_ready_then_by_index(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "max=1: A; B; C<A; D<A");
    rig_ok(r, "A"); /* B was ready before C and D */
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    rig_ok(r, "B");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "D"), STEP_READY);
}

static void steps_of_all_plans_wait_at_their_agent_first_come_first_served(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_submit(r, "B");
    rig_submit(r, "C");
    assert_int_equal(core_agent_queued(rig_core(r), 0), 2);
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_ok(r, "B");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    assert_int_equal(core_agent_queued(rig_core(r), 0), 0);
}

static void a_step_waits_until_a_lane_is_up(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A");
    rig_register(r, "x", 1, 2);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    assert_int_equal(rig_status(r, "A"), STEP_READY);
    rig_forget(r);
    rig_lane(r, 1, 1, true);
    RIG_TRACE(r, "[0] agent_up x i1\n"
                 "[0] A#1 started i1\n"
                 "[0] A#1 handoff from supervisor\n"
                 "[0] dispatch A#1 i1/1\n");
}

static void the_instance_with_most_free_lanes_gets_the_step(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "x", 2, 3);
    rig_forget(r);
    rig_submit(r, "par: A; B; C; D");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started i2\n"
                 "[0] A#1 handoff from supervisor\n"
                 "[0] dispatch A#1 i2/0\n"
                 "[0] B#1 started i2\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i2/1\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/0\n"
                 "[0] D#1 started i2\n"
                 "[0] D#1 handoff from supervisor\n"
                 "[0] dispatch D#1 i2/2\n");
}

static void a_failed_dependency_skips_all_that_hang_on_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(continue); B<A; C<B; D; E<D,C; F<D");
    rig_forget(r);
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    RIG_TRACE(r, "[0] A#1 failed PERMISSION_DENIED: no\n"
                 "[0] B#0 skipped dependency_failed DEPENDENCY_FAILED: A dependency failed\n"
                 "[0] C#0 skipped dependency_failed DEPENDENCY_FAILED: A dependency failed\n"
                 "[0] E#0 skipped dependency_failed DEPENDENCY_FAILED: A dependency failed\n");
    rig_ok(r, "D");
    rig_ok(r, "F");
    RIG_TRACE(r, "[0] D#1 completed\n"
                 "[0] F#1 started i1\n"
                 "[0] dispatch F#1 i1/0\n"
                 "[0] F#1 completed\n"
                 "[0] plan completed/partial\n"
                 "[0] run done\n");
}

static void run_if_always_needs_its_dependencies_over_not_successful(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(continue); B<A; C<A,B(always); D");
    rig_forget(r);
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    RIG_TRACE(r, "[0] A#1 failed PERMISSION_DENIED: no\n"
                 "[0] B#0 skipped dependency_failed DEPENDENCY_FAILED: A dependency failed\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/0\n");
}

static void a_skip_that_is_no_dependency_failure_satisfies_dependents(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(skip); B<A");
    rig_forget(r);
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    RIG_TRACE(r, "[0] A#1 skipped on_failure_skip PERMISSION_DENIED: no\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void in_a_chain_any_end_of_the_step_before_will_do(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(continue); B");
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_long_line_of_dependents_is_skipped_in_one_event(void **state)
{
    struct rig *r = *state;
    char text[1024] = "S0(continue)";
    for (int i = 1; i < 60; i++) {
        char step[16];
        (void)snprintf(step, sizeof step, "; S%d<S%d", i, i - 1);
        (void)strncat(text, step, sizeof text - strlen(text) - 1);
    }
    rig_up(r, "x", 1, 4);
    const uint64_t run = rig_submit(r, text);
    rig_fail(r, "S0", CLASS_PERMISSION_DENIED, "no");
    assert_null(rig_run(r, run));
    assert_int_equal(rig_status(r, "S59"), STEP_SKIPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_chain_runs_in_order_and_hands_off_when_the_agent_changes),
        CORE_TEST(a_diamond_starts_each_step_when_its_dependencies_are_done),
        CORE_TEST(in_a_dag_the_dependency_completed_last_hands_over),
        CORE_TEST(a_retry_is_no_second_start_and_no_second_handoff),
        CORE_TEST(max_concurrency_counts_queued_steps_and_those_between_attempts),
        CORE_TEST(ready_steps_begin_in_the_order_in_which_they_became_ready_then_by_index),
        CORE_TEST(steps_of_all_plans_wait_at_their_agent_first_come_first_served),
        CORE_TEST(a_step_waits_until_a_lane_is_up),
        CORE_TEST(the_instance_with_most_free_lanes_gets_the_step),
        CORE_TEST(a_failed_dependency_skips_all_that_hang_on_it),
        CORE_TEST(run_if_always_needs_its_dependencies_over_not_successful),
        CORE_TEST(a_skip_that_is_no_dependency_failure_satisfies_dependents),
        CORE_TEST(in_a_chain_any_end_of_the_step_before_will_do),
        CORE_TEST(a_long_line_of_dependents_is_skipped_in_one_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
