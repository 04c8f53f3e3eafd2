/* Conditions: the engine's verdict decides whether a step begins; who comes after skipped steps. */
#include "tests/unit/core/sched/test_core.h"

static void a_condition_that_is_true_starts_its_step(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B<A(when)");
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] condition B#1\n");
    rig_condition(r, "B", CONDITION_TRUE, "results.A.n is 7");
    RIG_TRACE(r, "[0] B#0 condition true: results.A.n is 7\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void a_condition_that_is_false_skips_its_step_and_what_hangs_on_it_alone(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B<A(when); C<B; D<A,C");
    rig_ok(r, "A");
    rig_forget(r);
    rig_condition(r, "B", CONDITION_FALSE, "results.A.n is 1");
    RIG_TRACE(r, "[0] B#0 skipped condition: results.A.n is 1\n"
                 "[0] C#0 skipped condition: every step before it was skipped\n"
                 "[0] D#1 started i1\n"
                 "[0] dispatch D#1 i1/0\n");
    rig_ok(r, "D");
    RIG_TRACE(r, "[0] D#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void of_two_branches_one_runs_and_the_join_goes_on(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B<A(when); C<A(when); D<B,C");
    rig_ok(r, "A");
    rig_condition(r, "B", CONDITION_FALSE, "no");
    rig_condition(r, "C", CONDITION_TRUE, "yes");
    assert_int_equal(rig_status(r, "D"), STEP_PENDING);
    rig_ok(r, "C");
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
}

static void a_plan_that_conditions_left_nothing_to_do_succeeds(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(when); B<A");
    rig_forget(r);
    rig_condition(r, "A", CONDITION_FALSE, "inputs.mode is none");
    RIG_TRACE(r, "[0] A#0 skipped condition: inputs.mode is none\n"
                 "[0] B#0 skipped condition: every step before it was skipped\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void a_chain_goes_on_after_a_step_that_its_condition_skips(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B(when); C");
    rig_ok(r, "A");
    rig_condition(r, "B", CONDITION_FALSE, "no");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_condition_without_a_verdict_fails_its_step(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B<A(when)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_condition(r, "B", CONDITION_FAILED, "results.A.n is text");
    RIG_TRACE(r, "[0] B#0 condition failed: results.A.n is text\n"
                 "[0] B#0 failed VALIDATION_ERROR: results.A.n is text\n"
                 "[0] plan failed/failed step: results.A.n is text\n"
                 "[0] run done\n");
}

static void without_a_verdict_a_fallback_is_no_help_and_a_person_may_decide(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "fallbacks=1: A; B<A(when alt=y ask)");
    rig_ok(r, "A");
    rig_condition(r, "B", CONDITION_FAILED, "bad");
    assert_int_equal(rig_status(r, "B"), STEP_WAITING);
    rig_decide(r, "B", DECISION_APPROVE, "run it");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_step_for_failures_runs_only_after_one(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(continue); B; C<A(cleanup); D<B(cleanup); E<D,B");
    rig_forget(r);
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    RIG_TRACE(r, "[0] A#1 failed PERMISSION_DENIED: no\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/0\n");
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] D#0 skipped condition: no step before it failed\n"
                 "[0] E#1 started i1\n"
                 "[0] dispatch E#1 i1/1\n");
}

static void in_a_chain_a_step_for_failures_looks_at_the_one_before(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(continue); B(cleanup); C(cleanup); D");
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    rig_ok(r, "B");
    assert_int_equal(rig_status(r, "C"), STEP_SKIPPED);
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
}

static void a_step_keeps_its_place_while_its_condition_is_evaluated(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "par max=1: A(when); B; C(when)");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_forget(r);
    rig_condition(r, "A", CONDITION_FALSE, "no");
    RIG_TRACE(r, "[0] A#0 skipped condition: no\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void a_gate_and_an_approval_come_after_the_condition(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A; B<A(when approve)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_condition(r, "B", CONDITION_TRUE, "yes");
    assert_int_equal(rig_status(r, "B"), STEP_WAITING);
}

static void a_restart_asks_again_for_the_verdict_and_not_for_one_that_was_given(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "par max=2: A(when); B(when)");
    rig_restart(r, 0);
    rig_forget(r);
    rig_up(r, "x", 1, 1);
    rig_condition(r, "A", CONDITION_TRUE, "yes");
    rig_condition(r, "B", CONDITION_TRUE, "yes");
    assert_int_equal(rig_status(r, "B"), STEP_READY); /* it waits for the only lane */
    rig_forget(r);
    rig_restart(r, 0);
    RIG_TRACE(r, "[0] A#1 unknown +5000\n");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
}

static void a_verdict_for_a_plan_on_hold_is_refused_and_asked_for_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    const uint64_t run = rig_submit(r, "A; B<A(when)");
    rig_ok(r, "A");
    rig_plan_event(r, CORE_PAUSE, run, "wait");
    rig_forget(r);
    rig_condition(r, "B", CONDITION_FALSE, "no");
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[0] plan_resumed requested\n"
                 "[0] condition B#1\n");
}

static void a_verdict_from_before_a_revision_does_not_count(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    const uint64_t run = rig_submit(r, "A; B<A(when); C<B");
    rig_ok(r, "A");
    rig_forget(r);
    rig_insert(r, run, "A; B<A(when); C<B; D<C");
    RIG_TRACE(r, "[0] plan_modified insert revision=2\n"
                 "[0] revised\n"
                 "[0] condition B#2\n");
    rig_event(r, (struct core_event){CORE_EV_INIT(CONDITION, condition, .verdict = CONDITION_FALSE),
                                     .run = run, .step = 1, .attempt = 1});
    RIG_TRACE(r, "[0] reject: the plan has been changed since; look at it again\n");
    rig_condition(r, "B", CONDITION_TRUE, "yes");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void verdicts_about_nothing_are_refused(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    const uint64_t run = rig_submit(r, "A; B<A(when)");
    rig_forget(r);
    rig_condition(r, "A", CONDITION_TRUE, "");
    rig_condition(r, "B", CONDITION_TRUE, "");
    rig_event(r, (struct core_event){CORE_EV_INIT(CONDITION, condition, .verdict = CONDITION_TRUE),
                                     .run = run, .step = 9, .attempt = 1});
    rig_event(r, (struct core_event){CORE_EV_INIT(CONDITION, condition, .verdict = CONDITION_TRUE),
                                     .run = run + 1, .attempt = 1});
    RIG_TRACE(r, "[0] reject: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n"
                 "[0] reject: the plan has no such step\n"
                 "[0] reject: no open plan has this handle\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_condition_that_is_true_starts_its_step),
        CORE_TEST(a_condition_that_is_false_skips_its_step_and_what_hangs_on_it_alone),
        CORE_TEST(of_two_branches_one_runs_and_the_join_goes_on),
        CORE_TEST(a_plan_that_conditions_left_nothing_to_do_succeeds),
        CORE_TEST(a_chain_goes_on_after_a_step_that_its_condition_skips),
        CORE_TEST(a_condition_without_a_verdict_fails_its_step),
        CORE_TEST(without_a_verdict_a_fallback_is_no_help_and_a_person_may_decide),
        CORE_TEST(a_step_for_failures_runs_only_after_one),
        CORE_TEST(in_a_chain_a_step_for_failures_looks_at_the_one_before),
        CORE_TEST(a_step_keeps_its_place_while_its_condition_is_evaluated),
        CORE_TEST(a_gate_and_an_approval_come_after_the_condition),
        CORE_TEST(a_restart_asks_again_for_the_verdict_and_not_for_one_that_was_given),
        CORE_TEST(a_verdict_for_a_plan_on_hold_is_refused_and_asked_for_again),
        CORE_TEST(a_verdict_from_before_a_revision_does_not_count),
        CORE_TEST(verdicts_about_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
