/* Gates, verifications by agents, and what people are asked before and after a step. */
#include "tests/unit/core/sched/test_core.h"

static void a_gate_is_asked_before_the_first_attempt(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "A; B(gate=judge)");
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started\n"
                 "[0] B#0 gate started by judge\n"
                 "[0] dispatch gate B#1 i2/0\n");
    rig_verdict(r, "B", true, "");
    RIG_TRACE(r, "[0] B#0 gate passed\n"
                 "[0] B#1 assigned i1\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void a_gate_without_anything_before_it_is_not_asked(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_forget(r);
    rig_submit(r, "A(gate=judge)");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started i1\n"
                 "[0] A#1 handoff from supervisor\n"
                 "[0] dispatch A#1 i1/0\n");
}

static void a_gate_that_says_no_fails_the_step_before_it_ran(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "A; B(gate=judge retries=3)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_verdict(r, "B", false, "no prices");
    RIG_TRACE(r, "[0] B#0 gate failed: no prices\n"
                 "[0] B#0 failed quality_gate_failed VERIFICATION_FAILED: no prices\n"
                 "[0] plan failed/failed step: no prices\n"
                 "[0] run done\n");
}

static void a_gate_that_cannot_answer_lets_the_step_go_on(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "A; B(gate=judge); C(gate=judge closed)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "B", CLASS_UNKNOWN, "broken");
    RIG_TRACE(r, "[0] B#0 gate error: broken\n"
                 "[0] B#1 assigned i1\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
    rig_forget(r);
    rig_fail(r, "C", CLASS_UNKNOWN, "broken");
    RIG_TRACE(r,
              "[0] C#0 gate error: broken\n"
              "[0] C#0 failed quality_gate_failed VERIFICATION_FAILED: Quality gate error: broken\n"
              "[0] plan failed/failed step: Quality gate error: broken\n"
              "[0] run done\n");
}

static void a_question_that_is_not_answered_in_time_is_an_error(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A; B(gate=judge check=700)"); /* nobody is there to ask */
    rig_ok(r, "A");
    rig_forget(r);
    rig_until(r, 800);
    RIG_TRACE(r, "[700] B#0 gate error: no answer in time\n"
                 "[700] B#1 assigned i1\n"
                 "[700] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
}

static void judge_gave_up(struct rig *r)
{
    rig_event(
        r, (struct core_event){
               CORE_EV_INIT(GAVE_UP, process,
                            .agent = registry_agent(core_registry(rig_core(r)), STR_LIT("judge"))),
               .text = STR_LIT("it gave up")});
}

static void a_question_to_an_agent_that_gave_up_is_an_error_at_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A; B(gate=judge check=700)");
    rig_ok(r, "A");
    rig_forget(r);
    judge_gave_up(r);
    rig_until(r, 1);
    RIG_TRACE(r, "[0] B#0 gate error: Agent 'judge' is not running: it gave up\n"
                 "[0] B#1 assigned i1\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
}

static void a_guest_that_left_again_is_no_hope(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A; B<A(gate=judge check=700); C<A(gate=judge check=700)");
    rig_ok(r, "A");
    judge_gave_up(r);
    rig_up(r, "judge", 2, 1); /* B is asked for, C waits for its turn */
    rig_forget(r);
    rig_until(r, 1);
    RIG_TRACE(r, "");
    rig_instance(r, CORE_GONE, 2, "killed");
    rig_until(r, 2);
    RIG_TRACE(r, "[1] agent_down judge i2: killed\n"
                 "[1] close epoch=2\n"
                 "[1] B#0 gate error: Agent 'judge' is not running: it gave up\n"
                 "[1] C#0 gate error: Agent 'judge' is not running: it gave up\n"
                 "[1] B#1 assigned i1\n"
                 "[1] dispatch B#1 i1/0\n");
}

static void a_lost_question_is_asked_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "A(verify=judge)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_lost(r, "A", true);
    RIG_TRACE(r, "[0] dispatch verify A#1 i2/0\n");
    rig_instance(r, CORE_GONE, 2, "killed");
    RIG_TRACE(r, "[0] agent_down judge i2: killed\n"
                 "[0] close epoch=2\n");
    rig_up(r, "judge", 3, 1);
    rig_forget(r);
    rig_verdict(r, "A", true, "");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void what_fails_its_verification_is_tried_again_with_the_diagnosis(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "A(verify=judge retries=1)");
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 checking verify by judge\n"
                 "[0] dispatch verify A#1 i2/0\n");
    rig_verdict(r, "A", false, "the sum is wrong");
    RIG_TRACE(r, "[0] A#1 verification failed: the sum is wrong\n"
                 "[0] A#1 retry +100 VERIFICATION_FAILED: the sum is wrong\n");
    rig_until(r, 100);
    rig_ok(r, "A");
    rig_forget(r);
    rig_verdict(r, "A", false, "still wrong");
    RIG_TRACE(r, "[100] A#2 verification failed: still wrong\n"
                 "[100] A#2 failed VERIFICATION_FAILED: still wrong\n"
                 "[100] plan failed/failed step: still wrong\n"
                 "[100] run done\n");
}

static void on_verification_failure_can_skip_or_go_on(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "A(verify=judge retries=5 onverify=skip); B(verify=judge onverify=continue); C");
    rig_ok(r, "A");
    rig_forget(r);
    rig_verdict(r, "A", false, "no");
    rig_ok(r, "B");
    rig_verdict(r, "B", false, "no");
    RIG_TRACE(r, "[0] A#1 verification failed: no\n"
                 "[0] A#1 skipped on_failure_skip VERIFICATION_FAILED: no\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n"
                 "[0] B#1 checking verify by judge\n"
                 "[0] dispatch verify B#1 i2/0\n"
                 "[0] B#1 verification failed: no\n"
                 "[0] B#1 failed VERIFICATION_FAILED: no\n"
                 "[0] C#1 started i1\n"
                 "[0] dispatch C#1 i1/0\n");
    rig_ok(r, "C");
}

static void a_verifier_that_cannot_answer_fails_the_step_unless_it_is_open(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "A(verify=judge open); B(verify=judge retries=2)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "A", CLASS_UNKNOWN, "broken");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
    rig_forget(r);
    rig_fail(r, "B", CLASS_UNKNOWN, "broken");
    RIG_TRACE(r, "[0] B#1 verification failed: Verifier error: broken\n"
                 "[0] B#1 failed VERIFICATION_FAILED: Verifier error: broken\n"
                 "[0] plan failed/failed step: Verifier error: broken\n"
                 "[0] run done\n");
}

static void a_result_that_is_not_whole_stays_so_through_its_verification(void **state)
{
    struct rig *r = *state;
    struct core_event ev;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    const uint64_t handle = rig_submit(r, "A(verify=judge); B<A");
    ev = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_COMPLETED;
    CORE_EV(&ev, result)->result = (struct blob_ref){.id = 7, .len = 3, .truncated = 1};
    rig_event(r, ev);
    assert_int_equal(rig_run(r, handle)->steps[0].status, STEP_CHECKING);
    rig_verdict(r, "A", true, "");
    assert_int_equal(rig_run(r, handle)->steps[0].status, STEP_COMPLETED);
    assert_int_equal(rig_run(r, handle)->steps[0].result.truncated, 1);
}

static void an_answer_counts_over_its_lane_only(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 2);
    rig_submit(r, "A(verify=judge)");
    rig_ok(r, "A");
    rig_forget(r);
    struct core_event ev = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&ev, result)->passed = true;
    ev.lane = LANE_NONE;
    rig_event(r, ev);
    ev = rig_about(r, CORE_RESULT, "A");
    ev.phase = PHASE_GATE;
    CORE_EV(&ev, result)->passed = true;
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: it belongs to another instance or agent\n"
                 "[0] A#1 result rejected: this attempt is not the current one\n"
                 "[0] reject: this attempt is not the current one\n");
}

static void an_approval_comes_before_the_first_attempt(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_submit(r, "A(approve); B(approve); C(approve skip)");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started\n"
                 "[0] A#0 waiting before_step\n"
                 "[0] plan_paused review\n");
    rig_decide(r, "A", DECISION_APPROVE, "yes");
    RIG_TRACE(r, "[0] A#0 decided approve: yes\n"
                 "[0] plan_resumed review\n"
                 "[0] A#1 assigned i1\n"
                 "[0] A#1 handoff from supervisor\n"
                 "[0] dispatch A#1 i1/0\n");
    rig_ok(r, "A");
    rig_forget(r);
    rig_decide(r, "B", DECISION_SKIP, "not needed");
    RIG_TRACE(r, "[0] B#0 decided skip: not needed\n"
                 "[0] B#0 skipped user_skip: not needed\n"
                 "[0] plan_resumed review\n"
                 "[0] C#1 started\n"
                 "[0] C#0 waiting before_step\n"
                 "[0] plan_paused review\n");
    rig_decide(r, "C", DECISION_REJECT, "no");
    RIG_TRACE(r, "[0] C#0 decided reject: no\n"
                 "[0] C#0 skipped rejected PERMISSION_DENIED: no\n"
                 "[0] plan completed/partial\n"
                 "[0] run done\n");
}

static void a_human_review_is_a_step_that_a_person_completes(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_submit(r, "A(review); B");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started\n"
                 "[0] A#0 waiting human_review\n"
                 "[0] plan_paused review\n");
    rig_decide(r, "A", DECISION_APPROVE, "looks fine");
    RIG_TRACE(r, "[0] A#0 decided approve: looks fine\n"
                 "[0] A#0 completed\n"
                 "[0] plan_resumed review\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void no_decision_in_time_is_a_denial(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(approve approval=60000 continue); B(review approval=5)");
    rig_restart(r, 1000); /* the time spent down counts */
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_until(r, 59999);
    RIG_TRACE(r, "");
    rig_until(r, 60005);
    RIG_TRACE(
        r, "[60000] A#0 decided reject: No decision within 60000ms: denied\n"
           "[60000] A#0 failed approval_timeout PERMISSION_DENIED: No decision within 60000ms: "
           "denied\n"
           "[60000] plan_resumed review\n"
           "[60000] B#1 started\n"
           "[60000] B#0 waiting human_review\n"
           "[60000] plan_paused review\n"
           "[60005] B#0 decided reject: No decision within 5ms: denied\n"
           "[60005] B#0 failed approval_timeout PERMISSION_DENIED: No decision within 5ms: denied\n"
           "[60005] plan failed/failed step: No decision within 5ms: denied\n"
           "[60005] run done\n");
}

static void on_failure_ask_lets_a_person_decide(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(ask); B(ask); C(ask)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad input");
    RIG_TRACE(r, "[0] A#1 waiting failure: bad input\n"
                 "[0] plan_paused review\n");
    rig_decide(r, "A", DECISION_APPROVE, "try again");
    rig_ok(r, "A");
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "bad input");
    rig_forget(r);
    rig_decide(r, "B", DECISION_SKIP, "");
    RIG_TRACE(r, "[0] B#1 decided skip\n"
                 "[0] B#1 skipped user_skip\n"
                 "[0] plan_resumed review\n"
                 "[0] C#1 started i1\n"
                 "[0] dispatch C#1 i1/0\n");
    rig_fail(r, "C", CLASS_VALIDATION_ERROR, "bad input");
    rig_forget(r);
    rig_decide(r, "C", DECISION_REJECT, "");
    RIG_TRACE(r, "[0] C#1 decided reject\n"
                 "[0] C#1 failed rejected VALIDATION_ERROR: Rejected by a reviewer\n"
                 "[0] plan failed/failed step: Rejected by a reviewer\n"
                 "[0] run done\n");
}

static void a_plan_can_need_a_sign_off_before_it_starts(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    const uint64_t run = rig_submit(r, "signoff: A");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_paused signoff\n");
    rig_restart(r, 1000);
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    (void)run;
    struct core_event ev = rig_about(r, CORE_DECIDE, "A");
    ev.step = STEP_NONE;
    ev.attempt = 1;
    CORE_EV(&ev, decide)->decision = DECISION_APPROVE;
    rig_event(r, ev);
    RIG_TRACE(r, "[1000] review_decided approve\n"
                 "[1000] plan_started\n"
                 "[1000] A#1 started i1\n"
                 "[1000] A#1 handoff from supervisor\n"
                 "[1000] dispatch A#1 i1/0\n");
    rig_submit(r, "signoff: B");
    rig_forget(r);
    ev = rig_about(r, CORE_DECIDE, "B");
    ev.step = STEP_NONE;
    ev.attempt = 1;
    CORE_EV(&ev, decide)->decision = DECISION_REJECT;
    rig_event(r, ev);
    RIG_TRACE(r, "[1000] review_decided reject\n"
                 "[1000] plan cancelled/failed rejected: Rejected by a reviewer\n"
                 "[1000] run done\n");
}

static void a_sign_off_that_does_not_come_is_a_denial(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "signoff signtime=5000 timeout=1000: A");
    rig_restart(r, 1000); /* the time spent down counts */
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_until(r, 6000);
    RIG_TRACE(r, "[5000] review_decided reject: No decision within 5000ms: denied\n"
                 "[5000] plan cancelled/failed rejected: No decision within 5000ms: denied\n"
                 "[5000] run done\n");
}

static void questions_and_reviews_survive_a_restart(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "judge", 2, 2);
    rig_submit(r, "A; B<A(gate=judge); C<A(verify=judge); D<A(approve)");
    rig_ok(r, "A");
    rig_ok(r, "C");
    rig_restart(r, 500);
    rig_up(r, "x", 1, 2);
    rig_forget(r);
    rig_up(r, "judge", 2, 2);
    RIG_TRACE(r, "[500] agent_registered judge i2\n"
                 "[500] registered i2 epoch=1002\n"
                 "[500] agent_up judge i2\n"
                 "[500] dispatch gate B#1 i2/0\n"
                 "[500] dispatch verify C#1 i2/1\n");
    rig_verdict(r, "B", true, "");
    rig_verdict(r, "C", true, "");
    rig_decide(r, "D", DECISION_APPROVE, "");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_COMPLETED);
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_gate_is_asked_before_the_first_attempt),
        CORE_TEST(a_gate_without_anything_before_it_is_not_asked),
        CORE_TEST(a_gate_that_says_no_fails_the_step_before_it_ran),
        CORE_TEST(a_gate_that_cannot_answer_lets_the_step_go_on),
        CORE_TEST(a_question_that_is_not_answered_in_time_is_an_error),
        CORE_TEST(a_question_to_an_agent_that_gave_up_is_an_error_at_once),
        CORE_TEST(a_guest_that_left_again_is_no_hope),
        CORE_TEST(a_lost_question_is_asked_again),
        CORE_TEST(what_fails_its_verification_is_tried_again_with_the_diagnosis),
        CORE_TEST(on_verification_failure_can_skip_or_go_on),
        CORE_TEST(a_verifier_that_cannot_answer_fails_the_step_unless_it_is_open),
        CORE_TEST(a_result_that_is_not_whole_stays_so_through_its_verification),
        CORE_TEST(an_answer_counts_over_its_lane_only),
        CORE_TEST(an_approval_comes_before_the_first_attempt),
        CORE_TEST(a_human_review_is_a_step_that_a_person_completes),
        CORE_TEST(no_decision_in_time_is_a_denial),
        CORE_TEST(on_failure_ask_lets_a_person_decide),
        CORE_TEST(a_plan_can_need_a_sign_off_before_it_starts),
        CORE_TEST(a_sign_off_that_does_not_come_is_a_denial),
        CORE_TEST(questions_and_reviews_survive_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
