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
                 "[5000] A#1 failed rejected REPLY_LOST (may be done): leave it\n"
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
    RIG_TRACE(r, "[0] reject: another review is open by now\n");
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

/* T3: the approval before the step, sent again, does not decide about its failure. */
static void a_decision_is_about_one_review_and_no_later_one_of_the_step(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A(approve ask); B(approve)");
    struct core_event ev = {.type = CORE_DECIDE, .run = run, .step = 0, .attempt = 1};
    rig_event(r, ev);
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    rig_forget(r);
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: another review is open by now\n");
    ev.attempt = 3; /* none that will come, either */
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: another review is open by now\n");
    ev.attempt = 2;
    rig_event(r, ev);
    rig_ok(r, "A");
    const struct run *now = rig_run(r, run);
    assert_int_equal(now->steps[1].review_serial, 3); /* serials count over the whole plan */
    assert_int_equal(now->reviews, 3);
}

/* T3: a plan that could not be made is planned again, and then nobody has seen it. */
static void approving_another_planning_is_no_sign_off_of_the_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "planner=p oninvalid=interrupt signoff:");
    rig_job_failed(r, run, false, "no plan", 0);
    struct core_event ev = {.type = CORE_DECIDE, .run = run, .step = STEP_NONE, .attempt = 1};
    assert_int_equal(rig_run(r, run)->plan_review, 1);
    rig_event(r, ev);
    rig_planned(r, run, "signoff: A", 1);
    assert_int_equal(rig_run(r, run)->plan_review, 2);
    rig_forget(r);
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: another review is open by now\n");
    assert_int_equal(rig_run(r, run)->status, PLAN_PENDING);
    ev.attempt = 2;
    rig_event(r, ev);
    assert_int_equal(rig_run(r, run)->status, PLAN_RUNNING);
}

/* ---- an approval is of what was shown ---- */

static void decide_plan(struct rig *r, uint64_t run, uint32_t serial, enum review_decision decision)
{
    rig_event(r, (struct core_event){CORE_EV_INIT(DECIDE, decide, .decision = decision), .run = run,
                                     .step = STEP_NONE, .attempt = serial});
}

static void a_replan_needs_a_new_sign_off(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "planner", 2, 1);
    const uint64_t run = rig_submit(r, "par max=2 signoff replan=planner: A(replan); B(retries=1)");
    decide_plan(r, run, 1, DECISION_APPROVE);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no such table");
    rig_until(r, 1); /* the cooldown */
    rig_forget(r);
    rig_replan(r, "A", "par max=2 signoff replan=planner: A(gone); B(retries=1); C");
    RIG_TRACE(r,
              "[1] A#1 failed superseded VALIDATION_ERROR: A revision of the plan does without it\n"
              "[1] A#1 replan done revision=2\n"
              "[1] revised\n"
              "[1] plan_paused signoff\n");
    rig_fail(r, "B", CLASS_TIMEOUT, "slow"); /* what is under way goes on; nothing begins */
    rig_until(r, 1000);
    RIG_TRACE(r, "[1] B#1 retry +100 TIMEOUT: slow\n");
    decide_plan(r, run, 1, DECISION_APPROVE);
    RIG_TRACE(r, "[1000] reject: another review is open by now\n");
    decide_plan(r, run, 2, DECISION_APPROVE);
    RIG_TRACE(r, "[1000] review_decided approve\n"
                 "[1000] B#2 assigned i1\n"
                 "[1000] dispatch B#2 i1/0\n"
                 "[1000] C#1 started i1\n"
                 "[1000] C#1 handoff from supervisor\n"
                 "[1000] dispatch C#1 i1/1\n");
}

static void a_change_during_a_sign_off_asks_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "signoff: A; B; C");
    decide_plan(r, run, 1, DECISION_APPROVE);
    rig_forget(r);
    rig_modify(r, run, MODIFY_CONVERSATION_ONLY, 0, 0);
    RIG_TRACE(r, "[0] plan_modified conversation_only revision=2: because\n");
    rig_insert(r, run, "signoff: A; B; C; N");
    RIG_TRACE(r, "[0] plan_modified insert revision=3\n"
                 "[0] revised\n"
                 "[0] plan_paused signoff\n");
    rig_modify(r, run, MODIFY_SKIP_STEPS, 1, 0);
    RIG_TRACE(r, "[0] review_voided revision=3\n"
                 "[0] plan_modified skip_steps revision=4: because\n"
                 "[0] B#0 skipped user_skip: because\n"
                 "[0] plan_paused signoff\n");
    decide_plan(r, run, 2, DECISION_APPROVE);
    RIG_TRACE(r, "[0] reject: another review is open by now\n");
    rig_ok(r, "A");
    rig_restart(r, 10);
    rig_up(r, "x", 1, 2);
    rig_forget(r);
    decide_plan(r, run, 3, DECISION_APPROVE);
    RIG_TRACE(r, "[10] review_decided approve\n"
                 "[10] C#1 started i1\n"
                 "[10] dispatch C#1 i1/0\n");
}

static void a_change_that_nobody_signs_off_ends_the_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "signoff signtime=5000 timeout=90000: A; B");
    decide_plan(r, run, 1, DECISION_APPROVE);
    rig_insert(r, run, "signoff signtime=5000 timeout=90000: A; B; N");
    rig_forget(r);
    rig_until(r, 6000);
    RIG_TRACE(r, "[5000] review_decided reject: No decision within 5000ms: denied\n"
                 "[5000] A#1 cancelled plan_aborted CANCELLED (fenced): No decision within 5000ms: "
                 "denied\n"
                 "[5000] cancel A#1 i1\n"
                 "[5000] plan cancelled/failed rejected: No decision within 5000ms: denied\n"
                 "[5000] run done\n");
}

static void a_revision_keeps_the_sign_off_of_its_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "signoff: A; B");
    decide_plan(r, run, 1, DECISION_APPROVE);
    rig_forget(r);
    rig_insert(r, run, "A; B; N");
    RIG_TRACE(r, "[0] reject: a step that has begun cannot be changed\n");
}

static void an_approval_does_not_hold_for_another_agent(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "fallbacks=1: A(approve alt=y)");
    rig_decide(r, "A", DECISION_APPROVE, "");
    rig_forget(r);
    rig_fail(r, "A", CLASS_AGENT_CRASHED, "gone");
    RIG_TRACE(r, "[0] A#1 fallback alternative_agent +0 AGENT_CRASHED: gone\n"
                 "[0] A#1 handoff from x to y fallback\n"
                 "[0] A#1 waiting before_step\n"
                 "[0] plan_paused review\n");
    rig_decide(r, "A", DECISION_APPROVE, "");
    RIG_TRACE(r, "[0] A#1 decided approve\n"
                 "[0] plan_resumed review\n"
                 "[0] A#2 assigned i2\n"
                 "[0] dispatch A#2 i2/0\n");
}

static void an_approval_does_not_follow_a_handoff(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "handoffs=1: A; B@y(skip)"); /* y is granted by B */
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "Pay?");
    rig_decide(r, "A", DECISION_APPROVE, "");
    rig_handoff(r, "A", "y", "yours");
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    rig_decide(r, "A", DECISION_APPROVE, "");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
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
        CORE_TEST(a_decision_is_about_one_review_and_no_later_one_of_the_step),
        CORE_TEST(approving_another_planning_is_no_sign_off_of_the_plan),
        CORE_TEST(a_replan_needs_a_new_sign_off),
        CORE_TEST(a_change_during_a_sign_off_asks_again),
        CORE_TEST(a_change_that_nobody_signs_off_ends_the_plan),
        CORE_TEST(a_revision_keeps_the_sign_off_of_its_plan),
        CORE_TEST(an_approval_does_not_hold_for_another_agent),
        CORE_TEST(an_approval_does_not_follow_a_handoff),
        CORE_TEST(a_plan_waits_only_when_nothing_else_can_move),
        CORE_TEST(waiting_for_a_person_has_no_deadline_but_the_plans),
        CORE_TEST(approvals_end_at_the_limit_of_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
