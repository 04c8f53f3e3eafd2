/* Corners where two or three mechanisms of the core meet. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/core/plan/plan_text.h"
#include "tests/unit/core/sched/rig_internal.h"
#include "tests/unit/core/sched/test_core.h"

static void an_approval_counts_once_per_attempt_however_often_it_is_given(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t h = rig_submit(r, "A(ask retries=1); B");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no");
    rig_instance(r, CORE_GONE, 1, "");
    for (int i = 0; i < 3; i++) { /* nobody comes: asked again, with the same attempt behind it */
        rig_decide(r, "A", DECISION_APPROVE, "");
        rig_until(r, rig_now(r) + 10000);
        assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    }
    rig_up(r, "x", 2, 1);
    rig_decide(r, "A", DECISION_APPROVE, "");
    assert_int_equal(rig_run(r, h)->steps[0].attempt, 2);
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF); /* its retry is not lost */
}

static void fallbacks_that_find_nobody_leave_the_retries_as_they_are(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "v", 4, 1);
    rig_submit(r, "fallbacks=5: A(retries=1 alt=y alt=z alt=v)");
    rig_fail(r, "A", CLASS_TOOL_NOT_FOUND, "gone"); /* not retried: to y */
    rig_until(r, 10000);                            /* who is not there: to z */
    rig_until(r, 20000);                            /* nor is he: to v */
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
}

static void a_search_that_is_retried_is_still_a_search(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "finder", 2, 1);
    rig_submit(r, "fallbacks=5 search=finder: A(retries=1); B");
    rig_fail(r, "A", CLASS_RESOURCE_NOT_FOUND, "no such page");
    rig_forget(r);
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    rig_until(r, 100);
    RIG_TRACE(r, "[0] A#2 retry +100 TIMEOUT: slow\n"
                 "[100] A#3 assigned i2 search\n"
                 "[100] dispatch search A#3 i2/0\n");
}

static void a_search_that_is_rate_limited_or_waits_for_a_person_is_still_a_search(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "finder", 2, 1);
    rig_submit(r, "fallbacks=5 search=finder: A; B");
    rig_fail(r, "A", CLASS_RESOURCE_NOT_FOUND, "no such page");
    rig_fail(r, "A", CLASS_RATE_LIMITED, "429");
    rig_until(r, 4000);
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "may I?");
    rig_forget(r);
    rig_decide(r, "A", DECISION_APPROVE, "");
    RIG_TRACE(r, "[4000] A#3 decided approve\n"
                 "[4000] plan_resumed review\n"
                 "[4000] A#4 assigned i2 search\n"
                 "[4000] dispatch search A#4 i2/0\n");
}

static void a_question_that_may_not_be_asked_has_no_clock(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "v", 2, 1);
    const uint64_t h = rig_submit(r, "A(verify=v check=1000); B");
    rig_plan_event(r, CORE_PAUSE, h, "lunch");
    rig_ok(r, "A");
    rig_until(r, 3600000);
    rig_forget(r);
    rig_plan_event(r, CORE_RESUME, h, "");
    rig_verdict(r, "A", true, "");
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
}

static void a_paused_replan_has_no_clock(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "p", 2, 1);
    const uint64_t h = rig_submit(r, "replan=p cooldown=1000 replantime=2000: A(replan); B");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no");
    rig_plan_event(r, CORE_PAUSE, h, "lunch");
    rig_until(r, 3600000);
    assert_non_null(rig_run(r, h));
    rig_plan_event(r, CORE_RESUME, h, "");
    rig_until(r, 3601500);
    rig_replan(r, "A", "replan=p: A(gone); B(gone); C");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_question_that_waits_for_a_replan_keeps_its_time(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "v", 2, 1);
    rig_up(r, "p", 3, 1);
    rig_submit(r, "par replan=p replantime=60000: A(verify=v check=1000); B(replan)");
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "no");
    rig_ok(r, "A");
    rig_until(r, 5000);
    rig_replan(r, "B", "par replan=p: A(verify=v check=1000); B(gone); C");
    rig_verdict(r, "A", true, "");
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
}

static void an_ending_plan_does_not_say_that_it_waits(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 3);
    rig_submit(r, "par: A; B; C(approve); D<C");
    rig_forget(r);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no");
    RIG_TRACE(r, "[0] A#1 failed VALIDATION_ERROR: no\n"
                 "[0] B#1 cancelled plan_aborted CANCELLED (fenced): no\n"
                 "[0] cancel B#1 i1\n"
                 "[0] C#0 cancelled plan_aborted CANCELLED: no\n"
                 "[0] plan failed/failed step: no\n"
                 "[0] run done\n");
}

static void steps_that_are_skipped_together_do_not_pause_the_plan_on_the_way(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 3);
    const uint64_t h = rig_submit(r, "par: A; B(approve); C<B");
    const uint32_t steps[] = {0, 1};
    rig_forget(r);
    rig_event(r, (struct core_event){CORE_EV_INIT(MODIFY, modify, .kind = MODIFY_SKIP_STEPS,
                                                  .steps = steps, .n_steps = 2),
                                     .run = h, .lane = LANE_NONE});
    RIG_TRACE(r, "[0] plan_modified skip_steps revision=2\n"
                 "[0] A#1 skipped user_skip (fenced)\n"
                 "[0] cancel A#1 i1\n"
                 "[0] B#0 skipped user_skip\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/1\n");
}

static void sentences_are_whole_however_many_are_due_at_once(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < 14; i++) {
        char text[2048] = "max=60";
        size_t at = strlen(text);
        for (int k = 0; k < 60; k++) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s s%dx%d(skip queue=100)",
                                   k == 0 ? " par:" : ";", i, k);
        }
        rig_submit(r, text);
    }
    rig_forget(r);
    rig_until(r, 100);
    assert_int_equal(core_runs_open(rig_core(r)), 0);
    assert_non_null(strstr(r->trace, "Queue timeout after 100ms\n"));
    assert_null(strstr(r->trace, "Queue timeout after \n"));
}

static void a_timed_out_attempt_that_cannot_be_replanned_is_told_to_stop(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(replan timeout=100); B");
    rig_forget(r);
    rig_until(r, 100);
    RIG_TRACE(r, "[100] A#1 failed TIMEOUT (fenced): Step execution timeout\n"
                 "[100] cancel A#1 i1\n"
                 "[100] plan failed/failed step: Step execution timeout\n"
                 "[100] run done\n");
}

static void a_word_about_a_gate_is_no_approval_of_the_step(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "g", 2, 1);
    rig_submit(r, "A; B(gate=g approve ask)");
    rig_ok(r, "A");
    rig_verdict(r, "B", false, "too thin");
    rig_decide(r, "B", DECISION_APPROVE, "look again");
    rig_verdict(r, "B", true, "");
    assert_int_equal(rig_status(r, "B"), STEP_WAITING);
    rig_decide(r, "B", DECISION_APPROVE, "go");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_plan_that_is_called_off_ends_cancelled_though_its_time_is_over(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t h = rig_submit(r, "timeout=500: A; B");
    rig_cancel(r, h, "no longer needed");
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] A#1 cancelled cancelled CANCELLED (fenced): Cancelled\n"
                 "[1000] plan cancelled/failed\n"
                 "[1000] run done\n");
}

static void nobody_is_asked_about_a_gate_without_end(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "g", 2, 1);
    const uint64_t h = rig_submit(r, "A; B(gate=g ask)");
    rig_ok(r, "A");
    struct rig_plan *p = rig_plan_of(r, h);
    core_block_run(p->block)->steps[1].ask = UINT16_MAX - 1; /* as if it had been asked so often */
    p->shadow->steps[1].ask = UINT16_MAX - 1;
    struct core_event ev = rig_about(r, CORE_RESULT, "B");
    ev.attempt = UINT16_MAX - 1;
    rig_event(r, ev);
    assert_int_equal(rig_status(r, "B"), STEP_WAITING);
    rig_forget(r);
    rig_decide(r, "B", DECISION_APPROVE, "once more");
    RIG_TRACE(r, "[0] reject: too often\n");
    rig_decide(r, "B", DECISION_SKIP, "");
    assert_int_equal(rig_status(r, "B"), STEP_SKIPPED);
}

static void a_step_that_was_handed_over_is_handed_back_when_the_plan_says_so(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "handback grant=y: A; B");
    rig_handoff(r, "A", "y", "yours");
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#2 completed\n"
                 "[0] A#2 handoff from y to x handback\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(an_approval_counts_once_per_attempt_however_often_it_is_given),
        CORE_TEST(fallbacks_that_find_nobody_leave_the_retries_as_they_are),
        CORE_TEST(a_search_that_is_retried_is_still_a_search),
        CORE_TEST(a_search_that_is_rate_limited_or_waits_for_a_person_is_still_a_search),
        CORE_TEST(a_question_that_may_not_be_asked_has_no_clock),
        CORE_TEST(a_paused_replan_has_no_clock),
        CORE_TEST(a_question_that_waits_for_a_replan_keeps_its_time),
        CORE_TEST(an_ending_plan_does_not_say_that_it_waits),
        CORE_TEST(steps_that_are_skipped_together_do_not_pause_the_plan_on_the_way),
        CORE_TEST(sentences_are_whole_however_many_are_due_at_once),
        CORE_TEST(a_timed_out_attempt_that_cannot_be_replanned_is_told_to_stop),
        CORE_TEST(a_word_about_a_gate_is_no_approval_of_the_step),
        CORE_TEST(a_plan_that_is_called_off_ends_cancelled_though_its_time_is_over),
        CORE_TEST(nobody_is_asked_about_a_gate_without_end),
        CORE_TEST(a_step_that_was_handed_over_is_handed_back_when_the_plan_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
