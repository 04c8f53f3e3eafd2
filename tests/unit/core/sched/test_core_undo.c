/* Undoing what a plan did. The engine makes the plan that undoes it; the core decides whether and
 * when, in which order, and what the plan's end is. */
#include "tests/unit/core/sched/test_core.h"

/* reserve and pay are done, ship fails. */
static uint64_t failed_order(struct rig *r, const char *plan)
{
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, plan);
    rig_ok(r, "reserve");
    rig_ok(r, "pay");
    rig_forget(r);
    rig_fail(r, "ship", CLASS_VALIDATION_ERROR, "no such street");
    return run;
}

#define ORDER "reserve(undo); pay<reserve(undo unsafe); ship<pay"

static void a_plan_that_fails_is_undone_before_it_ends(void **state)
{
    struct rig *r = *state;
    const uint64_t run = failed_order(r, ORDER);
    RIG_TRACE(r, "[0] ship#1 failed VALIDATION_ERROR: no such street\n"
                 "[0] compensation_started, plan failed/failed step: no such street\n"
                 "[0] compensate\n");
    assert_int_equal(rig_run(r, run)->status, PLAN_RUNNING);
    assert_int_equal(rig_run(r, run)->job, JOB_COMPENSATION);
    const uint64_t spent = rig_run(r, run)->usage.input_tokens;
    rig_compensated(r, run, true, "");
    RIG_TRACE(r, "[0] compensated 2/0\n"
                 "[0] plan failed/failed step: no such street\n"
                 "[0] run done\n");
    assert_int_equal(rig_nth(r, 0)->usage.input_tokens, spent + 7);
}

static void what_ended_last_is_undone_first(void **state)
{
    struct rig *r = *state;
    uint32_t order[8];
    rig_up(r, "x", 1, 4);
    const uint64_t run =
        rig_submit(r, "A(undo); B(undo); C; D(undo continue); E(undo); F<E,B,A,D(anyend)");
    rig_ok(r, "B");
    rig_ok(r, "A");
    rig_ok(r, "C");
    rig_fail(r, "D", CLASS_UNKNOWN, "it did nothing");
    rig_ok(r, "E");
    rig_fail(r, "F", CLASS_UNKNOWN, "enough");
    const struct run *is = rig_run(r, run);
    assert_int_equal(run_undo_order(is, rig_plan(r, run), order), 3);
    assert_int_equal(order[0], 4); /* E, A, B; D failed, and C has nothing to undo */
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 1);
    rig_restart(r, 10);
    assert_int_equal(run_undo_order(rig_run(r, run) != NULL ? rig_run(r, run) : rig_nth(r, 0),
                                    rig_plan(r, run) != NULL ? rig_plan(r, run) : NULL, order),
                     3);
    assert_int_equal(order[0], 4);
}

static void what_is_not_undone_leaves_the_plan_failed_and_says_so(void **state)
{
    struct rig *r = *state;
    const uint64_t run = failed_order(r, ORDER);
    rig_forget(r);
    rig_compensated(r, run, false, "the bank is closed");
    RIG_TRACE(r, "[0] compensation_failed 2/1: the bank is closed\n"
                 "[0] plan failed/failed step: no such street\n"
                 "[0] run done\n");
}

static void a_plan_without_anything_to_undo_ends_at_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A; B<A(undo)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "it did nothing");
    RIG_TRACE(r, "[0] B#1 failed VALIDATION_ERROR: it did nothing\n"
                 "[0] plan failed/failed step: it did nothing\n"
                 "[0] run done\n");
}

static void a_plan_that_succeeds_is_not_undone(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "undoalways: A(undo); B<A(continue)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "no matter");
    RIG_TRACE(r, "[0] B#1 failed VALIDATION_ERROR: no matter\n"
                 "[0] plan completed/partial\n"
                 "[0] run done\n");
}

static void a_cancelled_plan_is_undone_only_when_its_policy_asks_for_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t first = rig_submit(r, "A(undo); B<A");
    rig_ok(r, "A");
    rig_forget(r);
    rig_cancel(r, first, "enough");
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] cancel B#1 i1\n"
                 "[0] B#1 completed (acknowledged)\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
    const uint64_t second = rig_submit(r, "undoalways: C(undo); D<C(undo)");
    rig_ok(r, "C");
    rig_forget(r);
    rig_cancel(r, second, "enough");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] cancel D#1 i1\n");
    rig_ok(r, "D"); /* within the grace: it is done, so it is undone, too */
    RIG_TRACE(r, "[0] D#1 completed (acknowledged)\n"
                 "[0] compensation_started, plan cancelled/failed\n"
                 "[0] compensate\n");
    rig_compensated(r, second, true, "");
    RIG_TRACE(r, "[0] compensated 2/0\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

static void a_plan_may_forbid_it(void **state)
{
    struct rig *r = *state;
    (void)failed_order(r, "undonever: " ORDER);
    RIG_TRACE(r, "[0] ship#1 failed VALIDATION_ERROR: no such street\n"
                 "[0] plan failed/failed step: no such street\n"
                 "[0] run done\n");
}

static void a_restart_asks_again_and_once_it_is_over_never(void **state)
{
    struct rig *r = *state;
    uint64_t run = failed_order(r, ORDER);
    rig_forget(r);
    rig_restart(r, 100);
    RIG_TRACE(r, "[100] compensate\n");
    rig_until(r, 10000); /* nothing else is due */
    RIG_TRACE(r, "");
    const uint32_t before = rig_records(r, 0);
    run = (uint64_t)1 << 32;
    rig_compensated(r, run, true, "");
    rig_forget(r);
    /* The journal was cut between COMPENSATION_FINISHED and PLAN_COMPLETED. */
    assert_int_equal(rig_records(r, 0), before + 2);
    assert_true(rig_cut(r, 0, before + 1) == 0);
    RIG_TRACE(r, "[10000] plan failed/failed step: no such street\n"
                 "[10000] run done\n");
}

static void it_cannot_be_cancelled_paused_or_changed_meanwhile(void **state)
{
    struct rig *r = *state;
    const uint64_t run = failed_order(r, ORDER);
    const char *why =
        "[0] reject: the plan has ended, and what it did is being undone; to stop that, cancel the "
        "plan that undoes it\n";
    rig_forget(r);
    rig_cancel(r, run, "stop");
    RIG_TRACE(r, why);
    rig_plan_event(r, CORE_PAUSE, run, "wait");
    RIG_TRACE(r, why);
    rig_modify(r, run, MODIFY_CONVERSATION_ONLY, STEP_NONE, 0);
    RIG_TRACE(r, why);
}

static void the_time_of_the_plan_does_not_end_its_undoing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "timeout=500: A(undo); B<A");
    rig_ok(r, "A");
    rig_forget(r);
    rig_until(r, 500);
    RIG_TRACE(
        r, "[500] B#1 cancelled plan_timeout CANCELLED (fenced): Execution timeout after 500ms\n"
           "[500] cancel B#1 i1\n"
           "[500] compensation_started, plan failed/failed timeout: Execution timeout after 500ms\n"
           "[500] compensate\n");
    rig_ok(r, "B"); /* too late: it counts for nothing */
    RIG_TRACE(r, "[500] B#1 result rejected: it has ended\n"
                 "[500] reject: it has ended\n");
    rig_until(r, 100000);
    RIG_TRACE(r, "");
    rig_compensated(r, run, true, "");
    RIG_TRACE(r, "[100000] compensated 2/0\n"
                 "[100000] plan failed/failed timeout: Execution timeout after 500ms\n"
                 "[100000] run done\n");
}

static void a_spent_budget_does_not_keep_it_from_being_undone(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "budget=10: A(undo est=10); B<A(est=10)");
    rig_forget(r);
    struct core_event ok = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&ok, result)->outcome = STEP_OUTCOME_COMPLETED;
    CORE_EV(&ok, result)->result = (struct blob_ref){.id = 1, .len = 5};
    CORE_EV(&ok, result)->usage.input_tokens = 10;
    rig_event(r, ok);
    assert_int_equal(rig_nth(r, 0)->job, JOB_COMPENSATION);
}

static void the_answer_comes_first_and_what_it_retries_is_not_undone(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "w", 2, 1);
    const uint64_t run = rig_submit(r, "answer=w answertime=1000: A(undo); B<A(continue); C<A");
    rig_ok(r, "A");
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "no");
    rig_forget(r);
    rig_fail(r, "C", CLASS_VALIDATION_ERROR, "also no");
    RIG_TRACE(r, "[0] C#1 failed VALIDATION_ERROR: also no\n"
                 "[0] synthesis_started by w +1000, plan failed/failed step: also no\n"
                 "[0] errand synthesis#1\n");
    rig_answered(r, run, 500, 3);
    RIG_TRACE(r, "[0] synthesis_finished ok\n"
                 "[0] compensation_started, plan failed/failed step: also no\n"
                 "[0] compensate\n");
    rig_restart(r, 0);
    RIG_TRACE(r, "[0] compensate\n");
    rig_compensated(r, (uint64_t)1 << 32, true, "");
    RIG_TRACE(r, "[0] compensated 2/0\n"
                 "[0] plan failed/failed step result=500: also no\n"
                 "[0] run done\n");
    assert_int_equal(run_phases(rig_nth(r, 0))->answer.id, 500);
}

static void a_cancelled_child_leaves_it_to_its_parent_and_a_failed_one_does_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "inner undoalways: A(undo); B<A");
    rig_ok(r, "A");
    rig_cancel(r, run, "nobody waits for it any more");
    rig_forget(r);
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] B#1 completed (acknowledged)\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
    rig_submit(r, "inner: C(undo); D<C");
    rig_ok(r, "C");
    rig_forget(r);
    rig_fail(r, "D", CLASS_VALIDATION_ERROR, "no");
    RIG_TRACE(r, "[0] D#1 failed VALIDATION_ERROR: no\n"
                 "[0] compensation_started, plan failed/failed step: no\n"
                 "[0] compensate\n");
}

static void what_child_plans_did_is_undone_even_if_their_step_failed(void **state)
{
    struct rig *r = *state;
    uint32_t order[4];
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(undo); B<A(child undoes); C(child undoes)<A");
    (void)run;
    rig_ok(r, "A");
    rig_child(r, "B", CHILD_FAILED, "an item failed");
    const struct run *is = rig_nth(r, 0);
    assert_int_equal(is->job, JOB_COMPENSATION);
    assert_int_equal(run_undo_order(is, rig_plan(r, run), order), 3);
    assert_int_equal(order[0], 2); /* C was stopped last */
    assert_int_equal(order[1], 1);
    assert_int_equal(order[2], 0);
}

static void a_compensation_that_a_person_gives_up_does_not_stop_those_before_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "undoing: refund(ask); release(ask)");
    rig_forget(r);
    rig_fail(r, "refund", CLASS_VALIDATION_ERROR, "the bank is closed");
    rig_forget(r);
    rig_decide(r, "refund", DECISION_REJECT, "never");
    RIG_TRACE(r, "[0] refund#1 decided reject: never\n"
                 "[0] refund#1 failed rejected VALIDATION_ERROR: never\n"
                 "[0] plan_resumed review\n"
                 "[0] release#1 started i1\n"
                 "[0] dispatch release#1 i1/0\n");
    rig_ok(r, "release");
    RIG_TRACE(r, "[0] release#1 completed\n"
                 "[0] plan completed/partial\n"
                 "[0] run done\n");
}

static void a_late_report_or_one_for_another_plan_counts_for_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(undo); B<A");
    rig_forget(r);
    rig_compensated(r, run, true, "");
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_compensated(r, 99, true, "");
    RIG_TRACE(r, "[0] reject: no open plan has this handle\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_plan_that_fails_is_undone_before_it_ends),
        CORE_TEST(what_ended_last_is_undone_first),
        CORE_TEST(what_is_not_undone_leaves_the_plan_failed_and_says_so),
        CORE_TEST(a_plan_without_anything_to_undo_ends_at_once),
        CORE_TEST(a_plan_that_succeeds_is_not_undone),
        CORE_TEST(a_cancelled_plan_is_undone_only_when_its_policy_asks_for_it),
        CORE_TEST(a_plan_may_forbid_it),
        CORE_TEST(a_restart_asks_again_and_once_it_is_over_never),
        CORE_TEST(it_cannot_be_cancelled_paused_or_changed_meanwhile),
        CORE_TEST(the_time_of_the_plan_does_not_end_its_undoing),
        CORE_TEST(a_spent_budget_does_not_keep_it_from_being_undone),
        CORE_TEST(the_answer_comes_first_and_what_it_retries_is_not_undone),
        CORE_TEST(a_cancelled_child_leaves_it_to_its_parent_and_a_failed_one_does_it),
        CORE_TEST(what_child_plans_did_is_undone_even_if_their_step_failed),
        CORE_TEST(a_compensation_that_a_person_gives_up_does_not_stop_those_before_it),
        CORE_TEST(a_late_report_or_one_for_another_plan_counts_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
