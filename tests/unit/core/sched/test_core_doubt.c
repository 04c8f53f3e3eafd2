/* An unsafe step that may have been done although it has not completed: which ends say so, and that
 * a person is asked before it runs again, in a plan that does the same again or in a revision. */
#include "tests/unit/core/sched/test_core.h"

#define DOUBT "The plan before this one got no answer to it that counts"

static uint64_t after(struct rig *r, const char *plan, uint32_t step)
{
    return rig_submit_after(r, plan, &(struct core_reuse){.step = step, .doubt = true}, 1);
}

/* ---- before it runs again ---- */

static void a_person_is_asked_before_it_begins(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    (void)after(r, "A(unsafe); B", 0);
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#0 doubted\n"
                 "[0] A#1 started\n"
                 "[0] A#0 waiting unknown_outcome: " DOUBT "\n"
                 "[0] plan_paused review\n");
    rig_restart(r, 10);
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_decide(r, "A", DECISION_APPROVE, "");
    RIG_TRACE(r, "[10] A#0 decided approve\n"
                 "[10] plan_resumed review\n"
                 "[10] A#1 assigned i1\n"
                 "[10] A#1 handoff from supervisor\n"
                 "[10] dispatch A#1 i1/0\n");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no");
    RIG_TRACE(r, "[10] A#1 failed VALIDATION_ERROR: no\n"
                 "[10] plan failed/failed step: no\n"
                 "[10] run done\n");
}

static void it_is_asked_when_the_step_could_begin_and_a_restart_does_not_forget_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = after(r, "A; B(unsafe)", 1);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_run(r, run)->steps[1].doubt, 1);
    rig_restart(r, 10);
    rig_up(r, "x", 1, 1);
    rig_state(r, "A", true);
    rig_forget(r);
    struct core_event done = rig_about(r, CORE_RESULT, "A");
    done.epoch = 1001;
    rig_event(r, done);
    RIG_TRACE(r, "[10] A#1 completed\n"
                 "[10] B#1 started\n"
                 "[10] B#0 waiting unknown_outcome: " DOUBT "\n"
                 "[10] plan_paused review\n");
}

static void one_question_is_enough_for_a_step_that_requires_approval(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    (void)after(r, "A(unsafe approve)", 0);
    rig_forget(r);
    rig_decide(r, "A", DECISION_APPROVE, "");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void a_decision_against_it_leaves_the_doubt(void **state)
{
    static const struct {
        enum review_decision decision;
        const char *trace;
    } cases[] = {
        {DECISION_SKIP, "[0] A#0 decided skip: it was\n"
                        "[0] A#0 skipped user_skip (may be done): it was\n"
                        "[0] plan_resumed review\n"
                        "[0] B#1 started i1\n"
                        "[0] B#1 handoff from supervisor\n"
                        "[0] dispatch B#1 i1/0\n"},
        {DECISION_REJECT, "[0] A#0 decided reject: it was\n"
                          "[0] A#0 failed rejected REPLY_LOST (may be done): it was\n"
                          "[0] plan failed/failed step: it was\n"
                          "[0] run done\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig *r = rig_new();
        rig_up(r, "x", 1, 1);
        (void)after(r, "A(unsafe); B", 0);
        rig_forget(r);
        rig_decide(r, "A", cases[i].decision, "it was");
        RIG_TRACE(r, cases[i].trace);
        rig_free(r);
    }
}

static void a_step_that_never_began_keeps_it_past_the_end_of_its_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    (void)after(r, "A; B(unsafe)", 1);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no");
    assert_int_equal(rig_nth(r, 0)->steps[1].status, STEP_CANCELLED);
    assert_int_equal(rig_nth(r, 0)->steps[1].doubt, 1);
}

static void what_has_begun_or_has_no_agent_is_not_doubted(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A(unsafe); W(sleep=50); C");
    struct run *now = (struct run *)(uintptr_t)rig_run(r, run);
    struct record rec = {.type = REC_STEP_DOUBTED};
    assert_false(run_apply(now, rig_plan(r, run), &rec));
    rec.step = 1;
    assert_false(run_apply(now, rig_plan(r, run), &rec));
    rec.step = 2;
    assert_true(run_apply(now, rig_plan(r, run), &rec));
    assert_false(run_apply(now, rig_plan(r, run), &rec));
    now->steps[2].doubt = 0; /* as the rig knows it */
}

/* ---- which ends leave it ---- */

static void lose(struct rig *r, uint64_t run)
{
    (void)run;
    rig_lost(r, "A", true);
    rig_until(r, 5000);
    rig_forget(r);
}

static void cancelled_while_a_person_is_asked(struct rig *r, uint64_t run)
{
    lose(r, run);
    rig_cancel(r, run, "no");
}

static void cancelled_while_unknown(struct rig *r, uint64_t run)
{
    rig_lost(r, "A", true);
    rig_cancel(r, run, "no");
}

static void cancelled_and_no_answer(struct rig *r, uint64_t run)
{
    rig_cancel(r, run, "no");
    rig_until(r, 1000);
}

static void cancelled_and_answered(struct rig *r, uint64_t run)
{
    rig_cancel(r, run, "no");
    rig_fail(r, "A", CLASS_CANCELLED, "stopped");
}

static void another_step_failed(struct rig *r, uint64_t run)
{
    lose(r, run);
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "no");
}

static void another_step_failed_while_it_ran(struct rig *r, uint64_t run)
{
    (void)run;
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "no");
}

static void failed(struct rig *r, uint64_t run)
{
    (void)run;
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no");
}

static void timed_out_at_its_agent(struct rig *r, uint64_t run)
{
    (void)run;
    rig_fail(r, "A", CLASS_TIMEOUT, "no answer from the bank");
}

static void answered_garbage(struct rig *r, uint64_t run)
{
    (void)run;
    rig_fail(r, "A", CLASS_PROTOCOL_ERROR, "the agent's answer cannot be read");
}

static void timed_out(struct rig *r, uint64_t run)
{
    (void)run;
    rig_until(r, 500);
}

static void rejected_by_a_verifier(struct rig *r, uint64_t run)
{
    (void)run;
    rig_up(r, "v", 2, 1);
    rig_ok(r, "A");
    rig_verdict(r, "A", false, "wrong");
}

static void cancelled_at_the_verifier(struct rig *r, uint64_t run)
{
    rig_up(r, "v", 2, 1);
    rig_ok(r, "A");
    rig_cancel(r, run, "no");
    rig_until(r, 1000);
}

static void no_decision_in_time(struct rig *r, uint64_t run)
{
    lose(r, run);
    rig_until(r, 6000);
}

static void timed_out_and_then_cancelled(struct rig *r, uint64_t run)
{
    rig_until(r, 500);
    rig_cancel(r, run, "no");
}

static void failed_and_then_cancelled(struct rig *r, uint64_t run)
{
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "no");
    rig_cancel(r, run, "no");
}

static void approved_and_completed(struct rig *r, uint64_t run)
{
    lose(r, run);
    rig_decide(r, "A", DECISION_APPROVE, "");
    rig_ok(r, "A");
}

static void an_end_without_an_answer_says_that_an_unsafe_step_may_be_done(void **state)
{
    static const struct {
        const char *what, *plan;
        void (*act)(struct rig *r, uint64_t run);
        int doubt;
    } cases[] = {
        {"cancelled, waiting", "A(unsafe)", cancelled_while_a_person_is_asked, 1},
        {"cancelled, waiting, safe", "A(retries=9 backoff=9000)", cancelled_while_a_person_is_asked,
         0},
        {"cancelled, unknown", "A(unsafe)", cancelled_while_unknown, 1},
        {"cancelled, no answer", "A(unsafe)", cancelled_and_no_answer, 1},
        {"cancelled, no answer, safe", "A", cancelled_and_no_answer, 0},
        {"cancelled, answered", "A(unsafe)", cancelled_and_answered, 0},
        {"another failed", "par: A(unsafe); B", another_step_failed, 1},
        {"another failed, ran", "par: A(unsafe); B", another_step_failed_while_it_ran, 1},
        {"failed", "A(unsafe)", failed, 0},
        {"timed out at its agent", "A(unsafe)", timed_out_at_its_agent, 1},
        {"garbage", "A(unsafe)", answered_garbage, 1},
        {"timed out", "A(unsafe timeout=500)", timed_out, 1},
        {"timed out, skipped", "A(unsafe timeout=500 skip)", timed_out, 1},
        {"timed out, asked, cancelled", "A(unsafe timeout=500 ask)", timed_out_and_then_cancelled,
         1},
        {"failed, asked, cancelled", "A(unsafe ask)", failed_and_then_cancelled, 0},
        {"limit", "A(unsafe limit=500)", timed_out, 1},
        {"verifier", "A(unsafe verify=v)", rejected_by_a_verifier, 1},
        {"verifier, cancelled", "A(unsafe verify=v)", cancelled_at_the_verifier, 1},
        {"no decision", "A(unsafe approval=1000)", no_decision_in_time, 1},
        {"approved", "A(unsafe)", approved_and_completed, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig *r = rig_new();
        rig_up(r, "x", 1, 2);
        const uint64_t run = rig_submit(r, cases[i].plan);
        cases[i].act(r, run);
        const struct run_step *a = &rig_nth(r, 0)->steps[0];
        if (!step_is_final(a->status) || a->doubt != cases[i].doubt) {
            fail_msg("%s: %s, doubt %u", cases[i].what, step_status_name(a->status), a->doubt);
        }
        rig_free(r);
    }
}

static void one_that_its_instance_left_with_another_that_fails_the_plan_may_be_done(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    (void)rig_submit(r, "par: B(retries=0); A(unsafe)");
    rig_forget(r);
    rig_instance(r, CORE_GONE, 1, "killed by signal 9");
    assert_int_equal(rig_nth(r, 0)->status, PLAN_FAILED);
    assert_int_equal(rig_nth(r, 0)->steps[1].status, STEP_CANCELLED);
    assert_int_equal(rig_nth(r, 0)->steps[1].doubt, 1);
}

/* ---- revisions ---- */

static void a_replan_repeats_it_only_with_an_approval(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct rig *r = rig_new();
        rig_up(r, "x", 1, 1);
        rig_up(r, "p", 2, 1);
        (void)rig_submit(r, "replan=p: A(unsafe timeout=500 replan)");
        rig_until(r, 500);
        rig_forget(r);
        rig_replan(r, "A",
                   way == 0 ? "replan=p: A(unsafe gone); A2(unsafe)"
                            : "replan=p: A(unsafe gone); A2(unsafe approve)");
        if (way == 0) {
            assert_int_equal(rig_status(r, "A"), STEP_FAILED);
        } else {
            assert_int_equal(rig_status(r, "A2"), STEP_WAITING);
        }
        rig_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_person_is_asked_before_it_begins),
        CORE_TEST(it_is_asked_when_the_step_could_begin_and_a_restart_does_not_forget_it),
        CORE_TEST(one_question_is_enough_for_a_step_that_requires_approval),
        CORE_TEST(a_decision_against_it_leaves_the_doubt),
        CORE_TEST(a_step_that_never_began_keeps_it_past_the_end_of_its_plan),
        CORE_TEST(what_has_begun_or_has_no_agent_is_not_doubted),
        CORE_TEST(an_end_without_an_answer_says_that_an_unsafe_step_may_be_done),
        CORE_TEST(one_that_its_instance_left_with_another_that_fails_the_plan_may_be_done),
        CORE_TEST(a_replan_repeats_it_only_with_an_approval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
