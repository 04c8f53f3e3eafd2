/* Steps that wait for a person. */
#include "tests/unit/core/sched/test_core.h"

static void an_approved_step_runs_again_without_using_up_a_retry(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    rig_forget(r);
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "delete all?");
    rig_decide(r, "A", DECISION_APPROVE, "go");
    RIG_TRACE(r, "[0] A#1 waiting approval: delete all?\n"
                 "[0] plan_paused review\n"
                 "[0] A#1 decided approve: go\n"
                 "[0] plan_resumed review\n"
                 "[0] A#2 assigned i1\n"
                 "[0] dispatch A#2 i1/0\n");
    rig_fail(r, "A", CLASS_TIMEOUT, "e");
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF); /* the one retry is still there */
    rig_until(r, 100);
    rig_fail(r, "A", CLASS_TIMEOUT, "e");
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void a_rejected_step_fails_and_on_failure_decides(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 3);
    rig_submit(r, "par: A(continue); B(skip retries=2); C(retries=2)");
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_INPUT, "which?");
    rig_needs(r, "B", STEP_OUTCOME_NEEDS_APPROVAL, "ok?");
    rig_needs(r, "C", STEP_OUTCOME_NEEDS_APPROVAL, "ok?");
    rig_forget(r);
    rig_decide(r, "A", DECISION_REJECT, "neither");
    rig_decide(r, "B", DECISION_REJECT, "");
    RIG_TRACE(r, "[0] A#1 decided reject: neither\n"
                 "[0] A#1 failed rejected PERMISSION_DENIED: neither\n"
                 "[0] B#1 decided reject\n"
                 "[0] B#1 skipped rejected PERMISSION_DENIED: Rejected by a reviewer\n");
    rig_decide(r, "C", DECISION_REJECT, "no");
    RIG_TRACE(r, "[0] C#1 decided reject: no\n"
                 "[0] C#1 failed rejected PERMISSION_DENIED: no\n"
                 "[0] plan failed/failed step: no\n"
                 "[0] run done\n");
}

static void an_unknown_outcome_that_is_rejected_is_a_lost_reply(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe)");
    rig_lost(r, "A", true);
    rig_until(r, 5000);
    rig_forget(r);
    rig_decide(r, "A", DECISION_REJECT, "leave it");
    RIG_TRACE(r, "[5000] A#1 decided reject: leave it\n"
                 "[5000] A#1 failed rejected REPLY_LOST: leave it\n"
                 "[5000] plan failed/failed step: leave it\n"
                 "[5000] run done\n");
}

static void an_unknown_outcome_that_is_approved_runs_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe)");
    rig_lost(r, "A", true);
    rig_until(r, 5000);
    rig_forget(r);
    rig_decide(r, "A", DECISION_APPROVE, "");
    RIG_TRACE(r, "[5000] A#1 decided approve\n"
                 "[5000] plan_resumed review\n"
                 "[5000] A#2 assigned i1\n"
                 "[5000] dispatch A#2 i1/0\n");
}

static void decisions_about_anything_else_are_refused(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B");
    rig_forget(r);
    rig_decide(r, "A", DECISION_APPROVE, "");
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "?");
    rig_forget(r);
    struct core_event ev = {.type = CORE_DECIDE, .run = run, .step = 0, .attempt = 2};
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: this attempt is not the current one\n");
    ev.attempt = 1;
    CORE_EV(&ev, decide)->decision = DECISION_COUNT;
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_decide(r, "A", DECISION_APPROVE, "");
    rig_ok(r, "A");
    rig_forget(r);
    CORE_EV(&ev, decide)->decision = DECISION_APPROVE;
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: it has ended\n");
    ev.run = 0;
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: no open plan has this handle\n");
}

static void a_plan_waits_only_when_nothing_else_can_move(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "par max=2: A; B; C");
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "?");
    assert_int_equal(rig_run(r, run)->status, PLAN_RUNNING);
    rig_ok(r, "B");
    assert_int_equal(rig_run(r, run)->status, PLAN_RUNNING); /* C */
    rig_needs(r, "C", STEP_OUTCOME_NEEDS_INPUT, "?");
    assert_int_equal(rig_run(r, run)->status, PLAN_WAITING);
    rig_decide(r, "C", DECISION_APPROVE, "");
    assert_int_equal(rig_run(r, run)->status, PLAN_RUNNING);
}

static void waiting_for_a_person_has_no_deadline_but_the_plans(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "timeout=900000: A(timeout=1000)");
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "?");
    rig_until(r, 800000);
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    rig_until(r, 900000);
    assert_int_equal(rig_status(r, "A"), STEP_CANCELLED);
}

static void approvals_end_at_the_limit_of_attempts(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    for (int i = 1; i < LIMIT_ATTEMPTS; i++) {
        rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "?");
        rig_decide(r, "A", DECISION_APPROVE, "");
    }
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "?");
    rig_forget(r);
    rig_decide(r, "A", DECISION_APPROVE, "");
    RIG_TRACE(r, "[0] reject: too often\n");
    rig_decide(r, "A", DECISION_REJECT, "");
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(an_approved_step_runs_again_without_using_up_a_retry),
        CORE_TEST(a_rejected_step_fails_and_on_failure_decides),
        CORE_TEST(an_unknown_outcome_that_is_rejected_is_a_lost_reply),
        CORE_TEST(an_unknown_outcome_that_is_approved_runs_again),
        CORE_TEST(decisions_about_anything_else_are_refused),
        CORE_TEST(a_plan_waits_only_when_nothing_else_can_move),
        CORE_TEST(waiting_for_a_person_has_no_deadline_but_the_plans),
        CORE_TEST(approvals_end_at_the_limit_of_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
