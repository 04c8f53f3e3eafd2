/* One answer out of all results: when it is asked for, what becomes of it, and steps that are tried
 * again for its sake. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/core/sched/test_core.h"

#define ASKED(end) "[0] synthesis_started by w +60000, plan " end "\n[0] errand synthesis#1\n"

/* A plan whose two steps are over. */
static uint64_t two(struct rig *r, const char *words)
{
    char text[200];
    rig_up(r, "x", 1, 2);
    (void)snprintf(text, sizeof text, "answer=w answertime=60000 %s: A; B", words);
    const uint64_t run = rig_submit(r, text);
    rig_ok(r, "A");
    rig_forget(r);
    rig_ok(r, "B");
    return run;
}

static void the_answer_is_written_out_of_all_results(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "");
    RIG_TRACE(r, "[0] B#1 completed\n" ASKED("completed/success"));
    rig_answer_text(r, run, "All ");
    rig_answer_text(r, run, "is well.");
    RIG_TRACE(r, "[0] text 0: All \n"
                 "[0] text 1: is well.\n");
    rig_answered(r, run, 9, 30);
    RIG_TRACE(r, "[0] synthesis_finished ok\n"
                 "[0] plan completed/success result=9\n"
                 "[0] run done\n");
    assert_int_equal(run_phases(rig_nth(r, 0))->synthesis.input_tokens, 30);
    assert_int_equal(rig_nth(r, 0)->usage.input_tokens, 50);
}

static void a_new_attempt_begins_the_answer_anew(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "");
    rig_answer_text(r, run, "All ");
    rig_answer_text(r, run, "is ");
    rig_forget(r);
    rig_event(r, (struct core_event){CORE_EV_INIT(JOB_TEXT, job_text, .restarts = true), .run = run,
                                     .lane = LANE_NONE, .text = STR_LIT("No, ")});
    rig_answer_text(r, run, "not quite.");
    RIG_TRACE(r, "[0] text 0: No, \n"
                 "[0] text 1: not quite.\n");
}

static void no_piece_of_an_jobs_answer_is_lost(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t job = rig_submit(r, "errand: A");
    const uint64_t plan = rig_submit(r, "B");
    const uint64_t before = rig_run(r, plan)->plan_seq;
    const uint64_t first = rig_run(r, job)->plan_seq;
    for (int i = 0; i < 100; i++) {
        rig_event(r, rig_about(r, CORE_PROGRESS, "A"));
        rig_event(r, rig_about(r, CORE_PROGRESS, "B"));
    }
    assert_int_equal(rig_run(r, job)->plan_seq - first, 100);
    assert_int_equal(rig_run(r, plan)->plan_seq - before,
                     10); /* news, of which the newest counts */
}

static void an_answer_comes_in_so_many_pieces_and_no_more(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "");
    struct run *block = (struct run *)(uintptr_t)rig_run(r, run); /* as if they had been told */
    block->texts = 65536;
    struct commands out = {.at = calloc(4, sizeof *out.at), .cap = 4};
    core_handle(rig_core(r), &(struct core_event){.type = CORE_JOB_TEXT, .run = run}, &out);
    assert_int_equal(out.n, 1);
    assert_int_equal(out.at[0].reject, REJECT_TOO_MUCH);
    free(out.at);
}

static void without_an_answer_the_results_stand_for_themselves(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "");
    rig_forget(r);
    rig_job_failed(r, run, false, "no model", 4);
    RIG_TRACE(r, "[0] synthesis_finished without: no model\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
    assert_int_equal(run_phases(rig_nth(r, 0))->synthesis.input_tokens, 4);
}

static void the_time_of_the_plan_ends_the_question_and_not_the_plan(void **state)
{
    struct rig *r = *state;
    (void)two(r, "timeout=5000");
    rig_forget(r);
    rig_until(r, 5000);
    RIG_TRACE(r, "[5000] stop errand synthesis\n"
                 "[5000] synthesis_finished without: Execution timeout after 5000ms\n"
                 "[5000] plan completed/success\n"
                 "[5000] run done\n");
}

static void a_plan_that_is_out_of_time_asks_nobody(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "answer=w timeout=700: A; B");
    rig_ok(r, "A");
    rig_forget(r);
    rig_until(r, 700);
    RIG_TRACE(r,
              "[700] B#1 cancelled plan_timeout CANCELLED (fenced): Execution timeout after 700ms\n"
              "[700] cancel B#1 i1\n"
              "[700] plan failed/failed timeout: Execution timeout after 700ms\n"
              "[700] run done\n");
}

static void a_plan_that_is_called_off_has_no_answer(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "");
    rig_forget(r);
    rig_cancel(r, run, "enough");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] stop errand synthesis\n"
                 "[0] plan cancelled/failed: enough\n"
                 "[0] run done\n");
    rig_answered(r, run, 9, 1);
    RIG_TRACE(r, "[0] reject: no open plan has this handle\n");
    const uint64_t second = rig_submit(r, "answer=w: C; D");
    rig_ok(r, "C");
    rig_forget(r);
    rig_cancel(r, second, "");
    rig_fail(r, "D", CLASS_CANCELLED, "stopped");
    RIG_TRACE(r, "[0] plan_cancelling\n"
                 "[0] cancel D#1 i1\n"
                 "[0] D#1 cancelled cancelled CANCELLED (acknowledged): Cancelled\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

static void with_the_budget_spent_nobody_is_asked(void **state)
{
    struct rig *r = *state;
    (void)two(r, "budget=22"); /* each step used 11 */
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] synthesis_finished without: Budget exceeded: nothing is left to ask for an "
                 "answer\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void one_result_is_answered_for_too_when_a_synthesis_is_wanted(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "answer=w answertime=60000: A"); /* C21 */
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n" ASKED("completed/success"));
    rig_submit(r, "D");
    rig_forget(r);
    rig_ok(r, "D");
    RIG_TRACE(r, "[0] D#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
    rig_submit(r, "answer=w answertime=60000: B");
    rig_forget(r);
    rig_fail(r, "B", CLASS_UNKNOWN, "e");
    RIG_TRACE(r, "[0] B#1 failed UNKNOWN: e\n" ASKED("failed/failed step: e"));
}

static void a_failed_plan_has_an_answer_and_stays_failed(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "answer=w answertime=60000: A; B; C");
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "B", CLASS_UNKNOWN, "the disk is full");
    RIG_TRACE(r, "[0] B#1 failed UNKNOWN: the disk is full\n" ASKED(
                     "failed/failed step: the disk is full"));
    assert_int_equal(rig_status(r, "C"), STEP_CANCELLED);
    rig_restart(r, 0); /* the sentence is in the journal */
    rig_forget(r);
    rig_answered(r, core_newest_run(rig_core(r)), 9, 1);
    RIG_TRACE(r, "[0] synthesis_finished ok\n"
                 "[0] plan failed/failed step result=9: the disk is full\n"
                 "[0] run done\n");
    (void)run;
}

static void a_long_sentence_is_kept_as_far_as_there_is_room(void **state)
{
    struct rig *r = *state;
    char text[400];
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "answer=w: A; B");
    memset(text, 'e', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + RUN_END_TEXT - 1, "\xe2\x82\xac", 3); /* a euro sign over the edge */
    rig_fail(r, "A", CLASS_UNKNOWN, text);
    assert_int_equal(run_phases(rig_run(r, run))->end_text_n, RUN_END_TEXT - 1);
    assert_memory_equal(run_phases(rig_run(r, run))->end_text, text, RUN_END_TEXT - 1);
}

static void what_is_under_way_is_stopped_before_anybody_is_asked(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "par answer=w answertime=60000: A; B; C(review)");
    const struct core_event late = rig_about(r, CORE_RESULT, "B");
    rig_forget(r);
    rig_fail(r, "A", CLASS_UNKNOWN, "e");
    RIG_TRACE(r, "[0] A#1 failed UNKNOWN: e\n"
                 "[0] B#1 cancelled plan_aborted CANCELLED (fenced): e\n"
                 "[0] cancel B#1 i1\n"
                 "[0] C#0 cancelled plan_aborted CANCELLED: e\n" ASKED("failed/failed step: e"));
    rig_event(r, late); /* it still answers its lane, and that is all */
    RIG_TRACE(r, "[0] B#1 result rejected: it has ended\n"
                 "[0] reject: it has ended\n");
    rig_decide(r, "C", DECISION_APPROVE, "");
    RIG_TRACE(r, "[0] reject: it has ended\n");
    assert_int_equal(rig_run(r, run)->job, JOB_SYNTHESIS);
    rig_submit(r, "par: D; E");
    assert_int_equal(rig_status(r, "E"), STEP_IN_PROGRESS);
}

static void while_it_is_written_nothing_can_be_changed(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "rectify=1");
    rig_forget(r);
    rig_plan_event(r, CORE_PAUSE, run, "");
    rig_modify(r, run, MODIFY_SKIP_TO_STEP, 0, 0);
    rig_insert(r, run, "A; B; C");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[0] reject: the plan is still being made, or its answer is being written\n"
                 "[0] reject: the plan is still being made, or its answer is being written\n"
                 "[0] reject: the plan is still being made, or its answer is being written\n"
                 "[0] reject: nothing waits for this\n");
    rig_planned(r, run, "C", 1);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    assert_int_equal(rig_run(r, run)->revision, 1);
}

/* Pausing holds steps: the question about steps that are over is still asked. */
static void a_pause_holds_the_steps_that_are_tried_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    uint64_t run = rig_submit(r, "answer=w rectify=2: A(continue); B");
    rig_fail(r, "A", CLASS_UNKNOWN, "e");
    rig_plan_event(r, CORE_PAUSE, run, "");
    rig_ok(r, "B");
    assert_int_equal(rig_run(r, run)->job, JOB_SYNTHESIS);
    rig_forget(r);
    rig_rectify(r, run, "par answer=w rectify=2: A(gone); B; A2");
    RIG_TRACE(r, "[0] synthesis_retry revision=2: once more\n"
                 "[0] revised\n");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[0] plan_resumed requested\n"
                 "[0] A2#1 started i1\n"
                 "[0] A2#1 handoff from supervisor\n"
                 "[0] dispatch A2#1 i1/0\n");
    rig_plan_event(r, CORE_PAUSE, run, "");
    rig_fail(r, "A2", CLASS_UNKNOWN, "e");
    assert_int_equal(rig_run(r, run)->job, JOB_SYNTHESIS);
    rig_forget(r);
    rig_plan_event(r, CORE_RESUME, run, ""); /* lifted while the answer is being written */
    RIG_TRACE(r, "[0] plan_resumed requested\n");
    rig_rectify(r, run, "par answer=w rectify=2: A(gone); B; A2(gone); A3");
    assert_int_equal(rig_status(r, "A3"), STEP_IN_PROGRESS);
}

static void failed_steps_are_tried_again_for_a_better_answer(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "answer=w answertime=60000 rectify=1: A; B<A(skip); C<A");
    rig_ok(r, "A");
    rig_fail(r, "B", CLASS_UNKNOWN, "e");
    rig_ok(r, "C");
    rig_answer_text(r, run, "Well");
    rig_forget(r);
    rig_rectify(r, run, "answer=w answertime=60000 rectify=1: A; B<A(gone); C<A; B2<A");
    RIG_TRACE(r, "[0] synthesis_retry revision=2: once more\n"
                 "[0] revised\n"
                 "[0] B2#1 started i1\n"
                 "[0] dispatch B2#1 i1/0\n");
    assert_int_equal(run_phases(rig_run(r, run))->synthesis.input_tokens, 1);
    rig_ok(r, "B2");
    RIG_TRACE(r, "[0] B2#1 completed\n"
                 "[0] synthesis_started by w +60000, plan completed/success\n"
                 "[0] errand synthesis#2\n");
    rig_answer_text(r, run, "Better");
    RIG_TRACE(r, "[0] text 0: Better\n");
    rig_rectify(r, run, "answer=w: A; B<A(gone); C<A(gone); B2<A; C2<A");
    RIG_TRACE(r, "[0] reject: too often\n");
    rig_answered(r, run, 9, 4);
    RIG_TRACE(r, "[0] synthesis_finished ok\n"
                 "[0] plan completed/success result=9\n"
                 "[0] run done\n");
    assert_int_equal(run_phases(rig_nth(r, 0))->synthesis.input_tokens, 5);
    assert_int_equal(rig_nth(r, 0)->usage.input_tokens, 35);
}

static void steps_that_do_not_fit_are_not_tried_again(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "rectify=5");
    rig_forget(r);
    rig_rectify(r, run, "answer=w: A; B");        /* nothing new */
    rig_rectify(r, run, "answer=w: A");           /* a step is missing */
    rig_rectify(r, run, "answer=w: A; B; C@new"); /* who was never granted */
    RIG_TRACE(r, "[0] reject: too often\n"
                 "[0] reject: too often\n"
                 "[0] reject: too often\n");
    rig_answered(r, run, 9, 4);
    RIG_TRACE(r, "[0] synthesis_finished ok\n"
                 "[0] plan completed/success result=9\n"
                 "[0] run done\n");
}

static void what_failed_the_plan_is_mended_by_trying_it_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "answer=w answertime=60000 rectify=1: A; B");
    rig_fail(r, "A", CLASS_UNKNOWN, "e");
    rig_rectify(r, run, "answer=w answertime=60000: A(gone); B(gone); A2; B2<A2");
    rig_ok(r, "A2");
    rig_forget(r);
    rig_ok(r, "B2");
    RIG_TRACE(r, "[0] B2#1 completed\n"
                 "[0] synthesis_started by w +60000, plan completed/success\n"
                 "[0] errand synthesis#2\n");
}

static void what_failed_the_plan_still_does_when_something_else_is_tried_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    uint64_t run = rig_submit(r, "par max=1 answer=w rectify=2: A(skip); B; C");
    rig_fail(r, "A", CLASS_UNKNOWN, "e");
    rig_fail(r, "B", CLASS_UNKNOWN, "the disk is full");
    rig_rectify(r, run, "par answer=w rectify=2: A(gone); B; C; A2");
    rig_restart(r, 0); /* and is not taken for something that was left undone */
    rig_up(r, "x", 1, 1);
    rig_state(r, "A2", true);
    struct core_event done = rig_about(r, CORE_RESULT, "A2");
    done.epoch = 1001;
    done.lane = LANE_NONE;
    rig_forget(r);
    rig_event(r, done);
    RIG_TRACE(r, "[0] A2#1 completed\n"
                 "[0] synthesis_started by w +0, plan failed/failed step: the disk is full\n"
                 "[0] errand synthesis#2\n");
    run = core_newest_run(rig_core(r));
    rig_job_failed(r, run, false, "no model", 0);
    RIG_TRACE(r, "[0] synthesis_finished without: no model\n"
                 "[0] plan failed/failed step: the disk is full\n"
                 "[0] run done\n");
}

static void a_restart_asks_again_for_the_answer(void **state)
{
    struct rig *r = *state;
    (void)two(r, "rectify=1");
    rig_forget(r);
    rig_restart(r, 100);
    RIG_TRACE(r, "[100] errand synthesis#1\n");
    const uint64_t run = core_newest_run(rig_core(r));
    rig_answer_text(r, run, "All");
    rig_restart(r, 100);
    RIG_TRACE(r, "[100] text 0: All\n"
                 "[200] errand synthesis#1\n");
    rig_answered(r, core_newest_run(rig_core(r)), 9, 1);
    RIG_TRACE(r, "[200] synthesis_finished ok\n"
                 "[200] plan completed/success result=9\n"
                 "[200] run done\n");
}

static void tell(struct rig *r)
{
    rig_up(r, "x", 1, 1);
    uint64_t run = rig_submit(r, "answer=w rectify=1: A(continue); B; C");
    rig_fail(r, "A", CLASS_UNKNOWN, "e");
    rig_fail(r, "B", CLASS_UNKNOWN, "f");
    rig_answer_text(r, run, "a");
    rig_rectify(r, run, "par answer=w: A(gone); B; C; A2");
    rig_ok(r, "A2");
    rig_answered(r, run, 9, 1);
    run = rig_submit(r, "answer=w budget=22: D; E");
    rig_ok(r, "D");
    rig_ok(r, "E");
    run = rig_submit(r, "answer=w: F; G");
    rig_ok(r, "F");
    rig_ok(r, "G");
    rig_cancel(r, run, "");
}

static void a_journal_that_lost_its_end_has_one_end_and_one_answer(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 3; n++) {
        struct rig *whole = rig_new();
        tell(whole);
        const uint32_t all = rig_records(whole, n);
        rig_free(whole);
        for (uint32_t keep = 0; keep < all; keep++) {
            struct rig *r = rig_new();
            tell(r);
            uint64_t run = rig_cut(r, n, keep);
            rig_up(r, "x", 1, 1);
            rig_until(r, 30000);
            if (run != 0 && rig_run(r, run) != NULL && rig_run(r, run)->job != JOB_NONE) {
                rig_answered(r, run, 9, 1);
            }
            if (run != 0 && rig_run(r, run) != NULL) {
                rig_cancel(r, run, "");
                rig_until(r, 60000);
            }
            assert_int_equal(core_runs_open(rig_core(r)), 0);
            assert_true(plan_is_final(rig_nth(r, n)->status));
            rig_free(r);
        }
    }
}

static void an_answer_that_was_written_is_not_asked_for_again(void **state)
{
    struct rig *r = *state;
    const uint64_t run = two(r, "");
    rig_answered(r, run, 9, 30);
    rig_forget(r);
    assert_int_equal(rig_cut(r, 0, rig_records(r, 0) - 1), 0);
    RIG_TRACE(r, "[0] plan completed/success result=9\n"
                 "[0] run done\n");
}

/* Forty goals at once for a planner that takes four at a time: none of them is its failure. */
static void a_plans_question_has_its_time_from_when_it_is_asked(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    const uint64_t run = rig_submit(r, "errand timeout=1000: E");
    assert_int_equal(core_plan_deadline(rig_core(r), run), MSEC_NEVER);
    rig_until(r, 5000);
    assert_int_equal(rig_status(r, "E"), STEP_READY);
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "E"), STEP_IN_PROGRESS);
    assert_int_equal(core_plan_deadline(rig_core(r), run), 6000);
    rig_until(r, 5999);
    rig_forget(r);
    rig_until(r, 6000);
    RIG_TRACE(r, "[6000] E#1 cancelled plan_timeout CANCELLED (fenced): Execution timeout after "
                 "1000ms\n"
                 "[6000] cancel E#1 i1\n"
                 "[6000] plan failed/failed timeout: Execution timeout after 1000ms\n"
                 "[6000] run done\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_plans_question_has_its_time_from_when_it_is_asked),
        CORE_TEST(the_answer_is_written_out_of_all_results),
        CORE_TEST(a_new_attempt_begins_the_answer_anew),
        CORE_TEST(no_piece_of_an_jobs_answer_is_lost),
        CORE_TEST(an_answer_comes_in_so_many_pieces_and_no_more),
        CORE_TEST(without_an_answer_the_results_stand_for_themselves),
        CORE_TEST(the_time_of_the_plan_ends_the_question_and_not_the_plan),
        CORE_TEST(a_plan_that_is_out_of_time_asks_nobody),
        CORE_TEST(a_plan_that_is_called_off_has_no_answer),
        CORE_TEST(with_the_budget_spent_nobody_is_asked),
        CORE_TEST(one_result_is_answered_for_too_when_a_synthesis_is_wanted),
        CORE_TEST(a_failed_plan_has_an_answer_and_stays_failed),
        CORE_TEST(a_long_sentence_is_kept_as_far_as_there_is_room),
        CORE_TEST(what_is_under_way_is_stopped_before_anybody_is_asked),
        CORE_TEST(while_it_is_written_nothing_can_be_changed),
        CORE_TEST(a_pause_holds_the_steps_that_are_tried_again),
        CORE_TEST(failed_steps_are_tried_again_for_a_better_answer),
        CORE_TEST(steps_that_do_not_fit_are_not_tried_again),
        CORE_TEST(what_failed_the_plan_is_mended_by_trying_it_again),
        CORE_TEST(what_failed_the_plan_still_does_when_something_else_is_tried_again),
        CORE_TEST(a_restart_asks_again_for_the_answer),
        CORE_TEST(a_journal_that_lost_its_end_has_one_end_and_one_answer),
        CORE_TEST(an_answer_that_was_written_is_not_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
