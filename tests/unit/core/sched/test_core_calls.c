/* Agents that call others: a turn is an attempt, a child plan does its calls. */
#include "tests/unit/core/sched/test_core.h"

static void calls_go_to_a_child_plan_and_their_agent_is_asked_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B<A");
    rig_forget(r);
    rig_calls(r, "A", 2);
    RIG_TRACE(r, "[0] A#1 turn 1: 2 calls\n"
                 "[0] child A#1/0\n");
    rig_child(r, "A", CHILD_PROGRESS, "1 of 2");
    RIG_TRACE(r, "[0] A#1 progress\n");
    rig_child(r, "A", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] A#1 turn 1 over\n"
                 "[0] A#2 assigned i1\n"
                 "[0] dispatch A#2 i1/0\n");
    rig_calls(r, "A", 1);
    rig_child(r, "A", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] A#2 turn 2: 1 calls\n"
                 "[0] child A#2/0\n"
                 "[0] A#2 turn 2 over\n"
                 "[0] A#3 assigned i1\n"
                 "[0] dispatch A#3 i1/0\n");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#3 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void the_lane_is_free_while_others_work(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "par max=2: A; B");
    rig_forget(r);
    rig_calls(r, "A", 1);
    RIG_TRACE(r, "[0] A#1 turn 1: 1 calls\n"
                 "[0] child A#1/0\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void turns_are_no_retries_and_a_retry_keeps_the_turns(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(retries=1 linear=50)");
    rig_calls(r, "A", 1);
    rig_child(r, "A", CHILD_COMPLETED, "");
    rig_forget(r);
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    rig_until(r, 100);
    RIG_TRACE(r, "[0] A#2 retry +100 TIMEOUT: slow\n"
                 "[100] A#3 assigned i1\n"
                 "[100] dispatch A#3 i1/0\n");
    rig_calls(r, "A", 1);
    RIG_TRACE(r, "[100] A#3 turn 2: 1 calls\n"
                 "[100] child A#3/0\n");
    rig_child(r, "A", CHILD_COMPLETED, "");
    rig_forget(r);
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    RIG_TRACE(r, "[100] A#4 failed TIMEOUT: slow\n"
                 "[100] plan failed/failed step: slow\n"
                 "[100] run done\n");
}

static void after_thirty_turns_the_step_fails(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A");
    for (int turn = 1; turn <= LIMIT_TURNS; turn++) {
        rig_calls(r, "A", 1);
        rig_child(r, "A", CHILD_COMPLETED, "");
    }
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS); /* it may still answer */
    rig_forget(r);
    rig_calls(r, "A", 1); /* turn LIMIT_TURNS + 1 */
    RIG_TRACE(r, "[0] A#31 failed LOOP_LIMIT: No answer after 30 turns of calls\n"
                 "[0] plan failed/failed step: No answer after 30 turns of calls\n"
                 "[0] run done\n");
}

static void a_restart_asks_for_the_same_calls_again_and_not_for_the_attempt(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A");
    rig_calls(r, "A", 1);
    rig_forget(r);
    rig_restart(r, 0);
    RIG_TRACE(r, "[0] child A#1/0\n");
    rig_up(r, "x", 1, 2);
    rig_forget(r);
    rig_child(r, "A", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] A#1 turn 1 over\n"
                 "[0] A#2 assigned i1\n"
                 "[0] dispatch A#2 i1/0\n");
}

static void calls_of_a_paused_plan_wait_for_its_end(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A");
    rig_plan_event(r, CORE_PAUSE, run, "wait");
    rig_forget(r);
    rig_calls(r, "A", 1);
    RIG_TRACE(r, "[0] A#1 turn 1: 1 calls\n");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[0] plan_resumed requested\n"
                 "[0] resume child A#1/0\n"
                 "[0] child A#1/0\n");
}

static void a_paused_plan_stays_so_over_a_restart(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A");
    rig_plan_event(r, CORE_PAUSE, run, "wait");
    rig_calls(r, "A", 1);
    rig_forget(r);
    rig_restart(r, 0);
    RIG_TRACE(r, "");
}

static void cancel_stops_the_calls_and_waits_for_them(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B");
    rig_calls(r, "A", 1);
    rig_forget(r);
    rig_cancel(r, run, "enough");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] stop child A#1/0\n");
    rig_child(r, "A", CHILD_FAILED, "cancelled");
    RIG_TRACE(r, "[0] A#1 cancelled cancelled CANCELLED (acknowledged): Cancelled\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

static void calls_of_a_cancelled_plan_are_not_made(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A");
    rig_cancel(r, run, "enough");
    rig_forget(r);
    rig_calls(r, "A", 1);
    RIG_TRACE(r, "[0] A#1 cancelled cancelled CANCELLED (acknowledged): Cancelled\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

static void a_late_result_of_an_attempt_before_the_calls_counts_for_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(retries=1 timeout=30 linear=1)");
    struct core_event late = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&late, result)->outcome = STEP_OUTCOME_COMPLETED;
    rig_until(r, 31); /* the first attempt is given up, the second one is under way */
    rig_calls(r, "A", 1);
    rig_forget(r);
    rig_event(r, late);
    RIG_TRACE(r, "[31] A#1 result rejected: this attempt is not the current one\n"
                 "[31] reject: this attempt is not the current one\n");
    rig_child(r, "A", CHILD_COMPLETED, "");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void the_time_of_an_attempt_ends_with_its_calls_and_that_of_the_step_does_not(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(timeout=30 limit=100)");
    rig_calls(r, "A", 1);
    rig_forget(r);
    rig_until(r, 99);
    RIG_TRACE(r, "");
    rig_until(r, 100);
    RIG_TRACE(r, "[100] A#1 failed TIMEOUT (fenced): Step limit of 100ms reached\n"
                 "[100] stop child A#1/0\n"
                 "[100] plan failed/failed step: Step limit of 100ms reached\n"
                 "[100] run done\n");
}

static void what_agent_and_calls_use_is_the_plans(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B");
    rig_calls(r, "A", 1);                   /* 3 */
    rig_child(r, "A", CHILD_COMPLETED, ""); /* 10 */
    rig_calls(r, "A", 1);                   /* 3 */
    assert_int_equal(core_run(rig_core(r), run, NULL)->usage.input_tokens, 16);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 0, 0);
    rig_child(r, "A", CHILD_FAILED, ""); /* stopped, and paid for */
    assert_int_equal(core_run(rig_core(r), run, NULL)->usage.input_tokens, 26);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(calls_go_to_a_child_plan_and_their_agent_is_asked_again),
        CORE_TEST(the_lane_is_free_while_others_work),
        CORE_TEST(turns_are_no_retries_and_a_retry_keeps_the_turns),
        CORE_TEST(after_thirty_turns_the_step_fails),
        CORE_TEST(a_restart_asks_for_the_same_calls_again_and_not_for_the_attempt),
        CORE_TEST(calls_of_a_paused_plan_wait_for_its_end),
        CORE_TEST(a_paused_plan_stays_so_over_a_restart),
        CORE_TEST(cancel_stops_the_calls_and_waits_for_them),
        CORE_TEST(calls_of_a_cancelled_plan_are_not_made),
        CORE_TEST(a_late_result_of_an_attempt_before_the_calls_counts_for_nothing),
        CORE_TEST(the_time_of_an_attempt_ends_with_its_calls_and_that_of_the_step_does_not),
        CORE_TEST(what_agent_and_calls_use_is_the_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
