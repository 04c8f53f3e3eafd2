/* Child plans: maps, loops and sub-plans. The engine runs the child; the core waits for its end. */
#include "tests/unit/core/sched/test_core.h"

static void a_child_plan_does_a_step_and_its_answer_is_the_result(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B<A(child); C<B");
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started\n"
                 "[0] B#1 child 0\n"
                 "[0] child B#1/0\n");
    rig_child(r, "B", CHILD_PROGRESS, "1 of 2");
    RIG_TRACE(r, "[0] B#1 progress\n");
    rig_child(r, "B", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/0\n");
}

static void a_child_that_fails_is_tried_again_as_often_as_the_step_may(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(child retries=1 linear=50)");
    rig_forget(r);
    rig_child(r, "A", CHILD_FAILED, "an item failed");
    RIG_TRACE(r, "[0] A#1 retry +50 UNKNOWN: an item failed\n");
    rig_until(r, 50);
    RIG_TRACE(r, "[50] A#2 child 0\n"
                 "[50] child A#2/0\n");
    rig_child(r, "A", CHILD_FAILED, "an item failed");
    RIG_TRACE(r, "[50] A#2 failed UNKNOWN: an item failed\n"
                 "[50] plan failed/failed step: an item failed\n"
                 "[50] run done\n");
}

static void a_loop_has_rounds_with_a_pause_between_them_until_its_condition_holds(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_forget(r);
    rig_submit(r, "A(child rounds=3 pause=100)");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started\n"
                 "[0] A#1 child 0\n"
                 "[0] child A#1/0\n");
    rig_child(r, "A", CHILD_AGAIN, "results.A.state is open");
    RIG_TRACE(r, "[0] A#1 round 1 +100: results.A.state is open\n");
    rig_until(r, 99);
    RIG_TRACE(r, "");
    rig_until(r, 100);
    RIG_TRACE(r, "[100] A#1 child 1\n"
                 "[100] child A#1/1\n");
    rig_child(r, "A", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[100] A#1 completed\n"
                 "[100] plan completed/success\n"
                 "[100] run done\n");
}

static void after_its_last_round_a_loop_fails(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(child rounds=2)");
    rig_forget(r);
    rig_child(r, "A", CHILD_AGAIN, "n is 1");
    RIG_TRACE(r, "[0] A#1 round 1 +0: n is 1\n"
                 "[0] A#1 child 1\n"
                 "[0] child A#1/1\n");
    rig_child(r, "A", CHILD_AGAIN, "n is 2");
    RIG_TRACE(r, "[0] A#1 failed LOOP_LIMIT: Not done after 2 rounds: n is 2\n"
                 "[0] plan failed/failed step: Not done after 2 rounds: n is 2\n"
                 "[0] run done\n");
}

static void a_loop_may_accept_its_last_round(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(child rounds=1 accept)");
    rig_forget(r);
    rig_child(r, "A", CHILD_AGAIN, "n is 1");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void the_pause_of_a_loop_outlives_a_restart_and_so_does_its_round(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(child rounds=3 pause=100)");
    rig_child(r, "A", CHILD_AGAIN, "");
    rig_forget(r);
    rig_restart(r, 0);
    RIG_TRACE(r, "");
    rig_until(r, 100);
    RIG_TRACE(r, "[100] A#1 child 1\n"
                 "[100] child A#1/1\n");
    rig_restart(r, 0);
    RIG_TRACE(r, "[100] child A#1/1\n"); /* the same round again: no record */
}

static void a_restart_asks_for_the_child_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B(child)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_restart(r, 0);
    RIG_TRACE(r, "[0] child B#1/0\n");
    rig_child(r, "B", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void cancel_goes_down_and_waits_for_the_child(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(child); B");
    rig_forget(r);
    rig_cancel(r, run, "enough");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] stop child A#1/0\n");
    rig_until(r, 1000000); /* no grace of its own: the child has one */
    RIG_TRACE(r, "");
    rig_child(r, "A", CHILD_FAILED, "cancelled");
    RIG_TRACE(r, "[1000000] A#1 cancelled cancelled CANCELLED (acknowledged): Cancelled\n"
                 "[1000000] plan cancelled/failed\n"
                 "[1000000] run done\n");
}

static void a_pause_goes_down_and_so_does_its_end(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "par max=2: A(child); B(child)");
    rig_forget(r);
    rig_plan_event(r, CORE_PAUSE, run, "wait");
    RIG_TRACE(r, "[0] plan_paused requested: wait\n"
                 "[0] pause child A#1/0\n"
                 "[0] pause child B#1/0\n");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[0] plan_resumed requested\n"
                 "[0] resume child A#1/0\n"
                 "[0] resume child B#1/0\n");
}

static void a_round_of_a_plan_on_hold_waits_for_its_end(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(child rounds=3)");
    rig_plan_event(r, CORE_PAUSE, run, "wait");
    rig_forget(r);
    rig_child(r, "A", CHILD_AGAIN, "");
    RIG_TRACE(r, "[0] A#1 round 1 +0\n");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[0] plan_resumed requested\n"
                 "[0] A#1 child 1\n"
                 "[0] child A#1/1\n");
}

static void
a_step_that_a_person_skips_stops_its_child_and_a_late_end_counts_for_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(child); B");
    rig_forget(r);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 0, 0);
    RIG_TRACE(r, "[0] plan_modified skip_steps revision=2: because\n"
                 "[0] A#1 skipped user_skip (fenced): because\n"
                 "[0] stop child A#1/0\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_child(r, "A", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] A#1 result rejected: nothing waits for this\n" /* it is only paid for */
                 "[0] reject: nothing waits for this\n");
}

static void the_time_of_a_step_stops_its_child(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(child timeout=100 retries=1 linear=1)");
    rig_forget(r);
    rig_until(r, 99);
    RIG_TRACE(r, "");
    rig_until(r, 100);
    RIG_TRACE(r, "[100] A#1 retry +1 TIMEOUT: Step execution timeout\n"
                 "[100] stop child A#1/0\n");
    rig_event(r, (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_COMPLETED),
                                     .run = run, .step = 0, .attempt = 1});
    RIG_TRACE(r, "[100] reject: nothing waits for this\n");
    rig_until(r, 101);
    RIG_TRACE(r, "[101] A#2 child 0\n"
                 "[101] child A#2/0\n");
    rig_event(r, (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_COMPLETED),
                                     .run = run, .step = 0, .attempt = 1});
    RIG_TRACE(r, "[101] reject: this attempt is not the current one\n");
}

static void the_end_of_an_earlier_round_counts_for_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(child rounds=3)");
    rig_child(r, "A", CHILD_AGAIN, "");
    rig_forget(r);
    rig_event(r, (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_COMPLETED),
                                     .run = run, .step = 0, .attempt = 1});
    RIG_TRACE(r, "[0] reject: this attempt is not the current one\n");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void a_child_waits_for_budget_that_others_have_reserved(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "par budget=100 max=2: A(child est=60); B(child est=60)");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_forget(r);
    rig_child(r, "A", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started\n"
                 "[0] B#1 child 0\n"
                 "[0] child B#1/0\n");
}

static void a_child_that_no_budget_is_left_for_fails_the_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "budget=100: A(child est=60); B(child est=60)");
    rig_child(r, "A", CHILD_COMPLETED, "");
    rig_forget(r);
    rig_child(r, "B", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
    rig_submit(r, "budget=100: A(child est=200)");
    RIG_TRACE(
        r, "[0] plan_generated\n"
           "[0] plan_started\n"
           "[0] A#0 failed BUDGET_EXCEEDED: Budget exceeded: 0 of 100 tokens spent, this "
           "step needs 200\n"
           "[0] plan failed/failed budget_exceeded: Budget exceeded: 0 of 100 tokens spent, this "
           "step needs 200\n"
           "[0] run done\n");
}

static void a_gate_an_approval_and_a_verification_work_as_for_agents(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "v", 2, 2);
    rig_submit(r, "A; B<A(child approve verify=v)");
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_WAITING);
    rig_decide(r, "B", DECISION_APPROVE, "go");
    rig_forget(r);
    rig_child(r, "B", CHILD_COMPLETED, "");
    assert_int_equal(rig_status(r, "B"), STEP_CHECKING);
}

static void ends_of_children_that_nobody_waits_for_are_refused(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B(child)");
    rig_forget(r);
    rig_child(r, "A", CHILD_COMPLETED, "");
    rig_child(r, "B", CHILD_COMPLETED, "");
    rig_event(r, (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_COMPLETED),
                                     .run = run, .step = 9, .attempt = 1});
    rig_event(r, (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_COMPLETED),
                                     .run = run + 1, .attempt = 1});
    RIG_TRACE(r, "[0] reject: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n"
                 "[0] reject: the plan has no such step\n"
                 "[0] reject: no open plan has this handle\n");
}

static void a_child_of_a_step_that_a_revision_drops_is_stopped(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "par max=1: A(child); B");
    rig_forget(r);
    rig_insert(r, run, "par max=1: A(child gone); B; C");
    RIG_TRACE(r, "[0] A#1 cancelled superseded CANCELLED (fenced): A revision of the plan does "
                 "without it\n"
                 "[0] stop child A#1/0\n"
                 "[0] plan_modified insert revision=2\n"
                 "[0] revised\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_child(r, "A", CHILD_COMPLETED, "");
    RIG_TRACE(r, "[0] A#1 result rejected: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n");
}

static void what_a_stopped_child_used_is_paid_for_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(child timeout=50 continue); B");
    const struct core_event end = {
        CORE_EV_INIT(CHILD, child, .outcome = CHILD_FAILED, .usage = {.input_tokens = 30}),
        .run = run, .step = 0, .attempt = 1, .lane = LANE_NONE};
    rig_until(r, 50);
    const uint64_t before = rig_run(r, run)->usage.input_tokens;
    rig_event(r, end);
    rig_event(r, end);
    assert_int_equal(rig_run(r, run)->usage.input_tokens, before + 30);
    assert_true(rig_status(r, "A") == STEP_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_child_plan_does_a_step_and_its_answer_is_the_result),
        CORE_TEST(a_child_that_fails_is_tried_again_as_often_as_the_step_may),
        CORE_TEST(a_loop_has_rounds_with_a_pause_between_them_until_its_condition_holds),
        CORE_TEST(after_its_last_round_a_loop_fails),
        CORE_TEST(a_loop_may_accept_its_last_round),
        CORE_TEST(the_pause_of_a_loop_outlives_a_restart_and_so_does_its_round),
        CORE_TEST(a_restart_asks_for_the_child_again),
        CORE_TEST(cancel_goes_down_and_waits_for_the_child),
        CORE_TEST(a_pause_goes_down_and_so_does_its_end),
        CORE_TEST(a_round_of_a_plan_on_hold_waits_for_its_end),
        CORE_TEST(a_step_that_a_person_skips_stops_its_child_and_a_late_end_counts_for_nothing),
        CORE_TEST(the_time_of_a_step_stops_its_child),
        CORE_TEST(the_end_of_an_earlier_round_counts_for_nothing),
        CORE_TEST(a_child_waits_for_budget_that_others_have_reserved),
        CORE_TEST(a_child_that_no_budget_is_left_for_fails_the_plan),
        CORE_TEST(a_gate_an_approval_and_a_verification_work_as_for_agents),
        CORE_TEST(ends_of_children_that_nobody_waits_for_are_refused),
        CORE_TEST(a_child_of_a_step_that_a_revision_drops_is_stopped),
        CORE_TEST(what_a_stopped_child_used_is_paid_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
