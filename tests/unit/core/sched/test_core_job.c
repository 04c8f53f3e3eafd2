/* Plans that come in without steps: an agent is asked for them, and what it says becomes of them.
 */
#include "tests/unit/core/sched/test_core.h"

#define MADE "[0] plan_generated\n[0] revised\n"
#define BEGINS(step)                                                                               \
    "[0] plan_started\n[0] " step "#1 started i1\n[0] " step "#1 handoff from supervisor\n"        \
    "[0] dispatch " step "#1 i1/0\n"

static uint64_t ask(struct rig *r, const char *plan)
{
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    const uint64_t run = rig_submit(r, plan);
    return run;
}

static void a_plan_without_steps_is_planned_and_then_runs(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p plantime=30000 repairs=1:");
    RIG_TRACE(r, "[0] planning_started by p +30000\n"
                 "[0] errand planning#1\n");
    assert_int_equal(rig_run(r, run)->status, PLAN_PENDING);
    rig_planned(r, run, "A; B", 12);
    RIG_TRACE(r, MADE BEGINS("A"));
    rig_ok(r, "A");
    rig_forget(r);
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
    assert_int_equal(rig_nth(r, 0)->planning_usage.input_tokens, 12);
    assert_int_equal(rig_nth(r, 0)->usage.input_tokens, 12 + 10 + 10);
    assert_int_equal(rig_nth(r, 0)->revision, 1);
}

static void what_is_no_plan_is_sent_back_once(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p repairs=1:");
    rig_forget(r);
    rig_job_failed(r, run, true, "steps[0]: no such agent", 5);
    RIG_TRACE(r, "[0] planning_retry after 1: 2 wrong: steps[0]: no such agent\n"
                 "[0] errand planning#2: steps[0]: no such agent\n");
    rig_planned(r, run, "A", 7);
    RIG_TRACE(r, MADE BEGINS("A"));
    assert_int_equal(rig_run(r, run)->planning_usage.input_tokens, 12);
}

static void what_is_no_plan_again_fails_it(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p repairs=1:");
    rig_job_failed(r, run, true, "steps[0]: no such agent", 5);
    rig_forget(r);
    rig_job_failed(r, run, true, "still none", 6);
    RIG_TRACE(r, "[0] invalid_plan after 2: still none\n"
                 "[0] plan failed/failed invalid_plan: still none\n"
                 "[0] run done\n");
    assert_int_equal(rig_nth(r, 0)->planning_usage.input_tokens, 11);
    assert_int_equal(rig_nth(r, 0)->usage.input_tokens, 11);
}

static void there_is_an_end_to_repairs(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p repairs=1000:");
    for (uint32_t i = 1; i < LIMIT_ATTEMPTS; i++) {
        rig_job_failed(r, run, true, "a poem", 0);
    }
    rig_forget(r);
    rig_job_failed(r, run, true, "a poem", 0);
    RIG_TRACE(r, "[0] invalid_plan after 100: a poem\n"
                 "[0] plan failed/failed invalid_plan: a poem\n"
                 "[0] run done\n");
}

static void without_repairs_the_first_answer_counts(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p:");
    rig_forget(r);
    rig_job_failed(r, run, true, "a poem", 0);
    RIG_TRACE(r, "[0] invalid_plan after 1: a poem\n"
                 "[0] plan failed/failed invalid_plan: a poem\n"
                 "[0] run done\n");
}

static void a_planner_that_fails_is_not_asked_again(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p repairs=1 answer=w:");
    rig_forget(r);
    rig_job_failed(r, run, false, "Execution timeout after 30000ms", 3);
    RIG_TRACE(r, "[0] planning_failed after 1: Execution timeout after 30000ms\n"
                 "[0] plan failed/failed planning_failed: Execution timeout after 30000ms\n"
                 "[0] run done\n");
    assert_int_equal(rig_nth(r, 0)->usage.input_tokens, 3);
}

static void an_answer_without_a_plan_where_the_policy_says_so(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p oninvalid=synthesize answer=w answertime=60000:");
    rig_forget(r);
    rig_job_failed(r, run, true, "a poem", 1);
    RIG_TRACE(r, "[0] invalid_plan after 1: a poem\n"
                 "[0] plan_started\n"
                 "[0] synthesis_started by w +60000, plan failed/failed invalid_plan: a poem\n"
                 "[0] errand synthesis#1\n");
    rig_answered(r, run, 9, 2);
    RIG_TRACE(r, "[0] synthesis_finished ok\n"
                 "[0] plan completed/partial result=9\n"
                 "[0] run done\n");
    const uint64_t second = rig_submit(r, "planner=p oninvalid=synthesize answer=w:");
    rig_job_failed(r, second, false, "gone", 1);
    rig_forget(r);
    rig_job_failed(r, second, false, "gone, too", 1);
    RIG_TRACE(r, "[0] synthesis_finished without: gone, too\n"
                 "[0] plan failed/failed planning_failed: gone\n"
                 "[0] run done\n");
    assert_int_equal(rig_nth(r, 1)->usage.input_tokens, 2);
}

static void without_a_synthesizer_there_is_no_answer_alone(void **state)
{
    struct rig *r = *state;
    uint64_t run = ask(r, "planner=p oninvalid=synthesize:");
    rig_forget(r);
    rig_job_failed(r, run, true, "a poem", 1);
    RIG_TRACE(r, "[0] invalid_plan after 1: a poem\n"
                 "[0] plan failed/failed invalid_plan: a poem\n"
                 "[0] run done\n");
    run = rig_submit(r, "dry planner=p oninvalid=synthesize answer=w:"); /* it was only to plan */
    rig_forget(r);
    rig_job_failed(r, run, true, "a poem", 1);
    RIG_TRACE(r, "[0] invalid_plan after 1: a poem\n"
                 "[0] plan failed/failed invalid_plan: a poem\n"
                 "[0] run done\n");
}

static uint64_t unplanned(struct rig *r, const char *plan)
{
    const uint64_t run = ask(r, plan);
    rig_job_failed(r, run, true, "a poem", 4);
    RIG_TRACE(r, "[0] planning_started by p +0\n"
                 "[0] errand planning#1\n"
                 "[0] invalid_plan after 1: a poem\n"
                 "[0] plan_paused planning: a poem\n");
    return run;
}

static void a_person_lets_it_be_planned_again(void **state)
{
    struct rig *r = *state;
    const uint64_t run = unplanned(r, "planner=p oninvalid=interrupt signtime=5000:");
    rig_decide_plan(r, run, DECISION_SKIP, NULL);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_decide_plan(r, run, DECISION_APPROVE, NULL);
    RIG_TRACE(r, "[0] review_decided approve\n"
                 "[0] planning_started by p +0\n"
                 "[0] errand planning#1\n");
    rig_until(r, 60000); /* the person's time no longer counts */
    RIG_TRACE(r, "");
    rig_decide_plan(r, run, DECISION_APPROVE, NULL);
    RIG_TRACE(r, "[60000] reject: nothing waits for this\n");
    rig_planned(r, run, "A", 6);
    assert_int_equal(rig_run(r, run)->planning_usage.input_tokens, 10);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void a_person_brings_the_plan(void **state)
{
    struct rig *r = *state;
    const uint64_t run = unplanned(r, "planner=p oninvalid=interrupt:");
    rig_decide_plan(r, run, DECISION_REJECT, "A"); /* a plan that is refused with the other hand */
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_decide_plan(r, run, DECISION_APPROVE, "");
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_decide_plan(r, run, DECISION_APPROVE, "planner=p:");
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_decide_plan(r, run, DECISION_APPROVE, "session=0: A");
    RIG_TRACE(r, "[0] review_decided approve\n" MADE BEGINS("A"));
}

static void a_plan_comes_with_no_other_decision(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "signoff: A");
    rig_forget(r);
    rig_decide_plan(r, run, DECISION_APPROVE, "B");
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
}

static void a_person_gives_up_what_cannot_be_planned(void **state)
{
    struct rig *r = *state;
    const uint64_t run = unplanned(r, "planner=p oninvalid=interrupt:");
    rig_decide_plan(r, run, DECISION_REJECT, NULL);
    RIG_TRACE(r, "[0] review_decided reject\n"
                 "[0] plan cancelled/failed rejected: Rejected by a reviewer\n"
                 "[0] run done\n");
}

static void no_word_in_time_gives_it_up(void **state)
{
    struct rig *r = *state;
    (void)unplanned(r, "planner=p oninvalid=interrupt signtime=5000:");
    rig_restart(r, 1000); /* the time spent down counts */
    RIG_TRACE(r, "");
    rig_until(r, 5000);
    RIG_TRACE(r, "[5000] review_decided reject: No decision within 5000ms: denied\n"
                 "[5000] plan cancelled/failed rejected: No decision within 5000ms: denied\n"
                 "[5000] run done\n");
}

static void calling_it_off_ends_the_question(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p answer=w:");
    rig_forget(r);
    rig_cancel(r, run, "enough");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] stop errand planning\n"
                 "[0] plan cancelled/failed: enough\n"
                 "[0] run done\n");
    rig_job_failed(r, run, true, "a poem", 4);
    RIG_TRACE(r, "[0] reject: no open plan has this handle\n");
    const uint64_t waits = rig_submit(r, "planner=p oninvalid=interrupt answer=w:");
    rig_job_failed(r, waits, true, "a poem", 4);
    rig_forget(r);
    rig_cancel(r, waits, "");
    RIG_TRACE(r, "[0] plan_cancelling\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

static void only_the_question_that_is_out_is_answered(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p repairs=1:");
    struct core_event stale = {CORE_EV_INIT(JOB_FAILED, job_failed, .job = JOB_PLANNING),
                               .run = run,
                               .step = STEP_NONE,
                               .lane = LANE_NONE,
                               .attempt = 1,
                               .text = STR_LIT("too late")};
    rig_job_failed(r, run, true, "a poem", 4);
    rig_forget(r);
    rig_event(r, stale);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    stale.attempt = 2;
    CORE_EV(&stale, job_failed)->job = JOB_SYNTHESIS;
    rig_event(r, stale);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_answered(r, run, 9, 1);
    rig_answer_text(r, run, "a");
    rig_rectify(r, run, "A");
    RIG_TRACE(r, "[0] reject: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n");
    rig_planned(r, run, "A", 1);
    rig_forget(r);
    rig_planned(r, run, "B", 1); /* a second plan for the same question */
    CORE_EV(&stale, job_failed)->job = JOB_PLANNING;
    rig_event(r, stale);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n");
}

static void while_it_is_planned_nothing_of_it_can_be_changed(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "planner=p:");
    rig_forget(r);
    rig_plan_event(r, CORE_PAUSE, run, "");
    rig_plan_event(r, CORE_RESUME, run, "");
    rig_modify(r, run, MODIFY_SKIP_TO_STEP, 0, 0);
    rig_insert(r, run, "A");
    RIG_TRACE(r, "[0] reject: the plan is still being made, or its answer is being written\n"
                 "[0] reject: the plan is still being made, or its answer is being written\n"
                 "[0] reject: the plan is still being made, or its answer is being written\n"
                 "[0] reject: the plan is still being made, or its answer is being written\n");
}

static void a_planned_plan_can_need_a_sign_off(void **state)
{
    struct rig *r = *state;
    const uint64_t run = ask(r, "signoff signtime=5000 planner=p:");
    RIG_TRACE(r, "[0] planning_started by p +0\n"
                 "[0] errand planning#1\n");
    rig_until(r, 60000);
    RIG_TRACE(r, "");
    rig_planned(r, run, "signoff signtime=5000: A", 1);
    RIG_TRACE(r, "[60000] plan_generated\n"
                 "[60000] revised\n"
                 "[60000] plan_paused signoff\n");
    rig_restart(r, 0);
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_decide_plan(r, core_newest_run(rig_core(r)), DECISION_APPROVE, NULL);
    RIG_TRACE(r, "[60000] review_decided approve\n"
                 "[60000] plan_started\n"
                 "[60000] A#1 started i1\n"
                 "[60000] A#1 handoff from supervisor\n"
                 "[60000] dispatch A#1 i1/0\n");
}

static void a_dry_run_ends_with_the_plan(void **state)
{
    struct rig *r = *state;
    uint64_t run = ask(r, "dry signoff: A; B");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
    assert_int_equal(rig_status(r, "A"), STEP_CANCELLED);
    run = rig_submit(r, "dry planner=p answer=w:");
    rig_forget(r);
    rig_planned(r, run, "dry answer=w: C; D", 3);
    RIG_TRACE(r, MADE "[0] plan completed/success\n"
                      "[0] run done\n");
    assert_int_equal(rig_nth(r, 1)->usage.input_tokens, 3);
    assert_int_equal(core_runs_open(rig_core(r)), 0);
}

static void planning_may_spend_all_that_there_is(void **state)
{
    struct rig *r = *state;
    uint64_t run = ask(r, "budget=10 planner=p repairs=3:");
    rig_forget(r);
    rig_job_failed(r, run, true, "a poem", 10); /* nothing is left to ask again with */
    RIG_TRACE(r, "[0] invalid_plan after 1: a poem\n"
                 "[0] plan failed/failed invalid_plan: a poem\n"
                 "[0] run done\n");
    run = rig_submit(r, "budget=10 planner=p:");
    rig_forget(r);
    rig_planned(r, run, "budget=10: A", 10);
    RIG_TRACE(r, MADE "[0] plan_started\n"
                      "[0] A#0 failed BUDGET_EXCEEDED: Budget exceeded: 10 of 10 tokens spent\n"
                      "[0] plan failed/failed budget_exceeded: Budget exceeded: 10 of 10 tokens "
                      "spent\n"
                      "[0] run done\n");
    run = rig_submit(r, "budget=10 planner=p oninvalid=interrupt:");
    rig_job_failed(r, run, false, "no idea", 10);
    rig_forget(r);
    rig_decide_plan(r, run, DECISION_APPROVE, NULL);
    RIG_TRACE(r, "[0] review_decided approve\n"
                 "[0] plan failed/failed budget_exceeded: Budget exceeded: nothing is left to ask "
                 "for a plan\n"
                 "[0] run done\n");
}

static void what_is_left_is_known_while_it_is_planned(void **state)
{
    struct rig *r = *state;
    uint64_t tokens;
    uint64_t micros;
    const uint64_t run = ask(r, "budget=100 cost=50 planner=p repairs=1:");
    rig_job_failed(r, run, true, "a poem", 30);
    core_budget_left(rig_core(r), run, STEP_NONE, &tokens, &micros);
    assert_int_equal(tokens, 70);
    assert_int_equal(micros, 50);
}

static void a_restart_asks_again_for_what_was_asked(void **state)
{
    struct rig *r = *state;
    uint64_t run = ask(r, "planner=p repairs=1:");
    rig_forget(r);
    rig_restart(r, 100);
    RIG_TRACE(r, "[100] errand planning#1\n");
    run = core_newest_run(rig_core(r));
    rig_job_failed(r, run, true, "a poem", 4);
    rig_forget(r);
    rig_restart(r, 100);
    RIG_TRACE(r, "[200] errand planning#2\n");
    rig_job_failed(r, core_newest_run(rig_core(r)), true, "a poem", 4);
    RIG_TRACE(r, "[200] invalid_plan after 2: a poem\n"
                 "[200] plan failed/failed invalid_plan: a poem\n"
                 "[200] run done\n");
    assert_int_equal(rig_nth(r, 0)->usage.input_tokens, 8);
}

static void a_job_has_all_its_time_again_after_a_restart(void **state)
{
    struct rig *r = *state;
    (void)ask(r, "errand timeout=30000: E(idempotent retries=3 timeout=60000)");
    rig_until(r, 20000);
    rig_restart(r, 50000);
    rig_up(r, "x", 1, 1);
    rig_until(r, 99999);
    const uint64_t run = core_newest_run(rig_core(r));
    assert_int_equal(rig_run(r, run)->deadline, 30000);
    assert_int_equal(core_plan_deadline(rig_core(r), run), 100000);
    rig_forget(r);
    rig_until(r, 100000);
    RIG_TRACE(r, "[100000] E#2 cancelled plan_timeout CANCELLED (fenced): Execution timeout after "
                 "30000ms\n"
                 "[100000] cancel E#2 i1\n"
                 "[100000] plan failed/failed timeout: Execution timeout after 30000ms\n"
                 "[100000] run done\n");
}

static void a_job_asks_no_person(void **state)
{
    struct rig *r = *state;
    (void)ask(r, "errand: E(retries=5)");
    rig_forget(r);
    rig_needs(r, "E", STEP_OUTCOME_NEEDS_INPUT, "which day?");
    RIG_TRACE(
        r,
        "[0] E#1 failed VALIDATION_ERROR: The agent needs input from a person, which nobody "
        "gives for this\n"
        "[0] plan failed/failed step: The agent needs input from a person, which nobody gives for "
        "this\n"
        "[0] run done\n");
    (void)rig_submit(r, "errand: F");
    rig_forget(r);
    rig_needs(r, "F", STEP_OUTCOME_NEEDS_APPROVAL, "may I?");
    RIG_TRACE(
        r,
        "[0] F#1 failed VALIDATION_ERROR: The agent needs approval by a person, which nobody "
        "gives for this\n"
        "[0] plan failed/failed step: The agent needs approval by a person, which nobody gives for "
        "this\n"
        "[0] run done\n");
}

/* All kinds of ends of planning, each with its beginning. */
static void tell(struct rig *r)
{
    uint64_t run = rig_submit(r, "planner=p repairs=1 oninvalid=interrupt signoff:");
    rig_job_failed(r, run, true, "a poem", 4);
    rig_job_failed(r, run, true, "a poem", 4);
    rig_decide_plan(r, run, DECISION_APPROVE, NULL);
    rig_planned(r, run, "signoff: A", 1);
    rig_decide_plan(r, run, DECISION_APPROVE, NULL);
    run = rig_submit(r, "planner=p oninvalid=interrupt:");
    rig_job_failed(r, run, true, "a poem", 4);
    rig_decide_plan(r, run, DECISION_REJECT, NULL);
    run = rig_submit(r, "planner=p:");
    rig_cancel(r, run, "");
    run = rig_submit(r, "planner=p dry:");
    rig_planned(r, run, "dry: B", 1);
    run = rig_submit(r, "planner=p oninvalid=synthesize answer=w:");
    rig_job_failed(r, run, true, "a poem", 4);
    rig_answered(r, run, 7, 1);
}

/* Brings an open plan to its end, whatever it waits for. */
static void end_it(struct rig *r, uint64_t run)
{
    const uint32_t asks = 1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING;
    for (int i = 0; i < 20 && rig_run(r, run) != NULL; i++) {
        const struct run *is = rig_run(r, run);
        if (is->job == JOB_PLANNING) {
            rig_planned(r, run, "Z", 1);
        } else if (is->job == JOB_SYNTHESIS) {
            rig_answered(r, run, 8, 1);
        } else if ((is->paused & asks) != 0) {
            rig_decide_plan(r, run, DECISION_APPROVE, NULL);
        } else {
            rig_up(r, "x", 1, 1);
            rig_until(r, rig_now(r) + 20000);
            if (rig_run(r, run) != NULL) {
                rig_cancel(r, run, "");
            }
        }
    }
    assert_null(rig_run(r, run));
}

static void a_journal_that_lost_its_end_goes_on_to_another(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 5; n++) {
        struct rig *whole = rig_new();
        tell(whole);
        const uint32_t all = rig_records(whole, n);
        rig_free(whole);
        for (uint32_t keep = 0; keep < all; keep++) {
            struct rig *r = rig_new();
            tell(r);
            const uint64_t run = rig_cut(r, n, keep);
            if (run != 0) {
                end_it(r, run);
            }
            rig_free(r);
        }
    }
}

static void gave_up(struct rig *r, const char *why)
{
    rig_event(
        r, (struct core_event){CORE_EV_INIT(GAVE_UP, process, .agent = 0), .text = str_from(why)});
}

#define NO_AGENT "Agent 'x' is not running: it gave up: exit code 2"

static void a_job_for_an_agent_that_gave_up_fails_at_once(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "errand: E(retries=5)");
    rig_until(r, 100);
    rig_forget(r);
    gave_up(r, "it gave up: exit code 2"); /* while it waits */
    rig_until(r, 100);
    RIG_TRACE(r, "[100] E#0 failed AGENT_UNAVAILABLE: " NO_AGENT "\n"
                 "[100] plan failed/failed step: " NO_AGENT "\n"
                 "[100] run done\n");
    rig_submit(r, "errand: F"); /* and one that comes later */
    rig_forget(r);
    rig_until(r, 100);
    RIG_TRACE(r, "[100] F#0 failed AGENT_UNAVAILABLE: " NO_AGENT "\n"
                 "[100] plan failed/failed step: " NO_AGENT "\n"
                 "[100] run done\n");
    rig_up(r, "x", 1, 1); /* somebody started it by hand */
    rig_submit(r, "errand: G");
    rig_until(r, 100);
    assert_int_equal(rig_status(r, "G"), STEP_IN_PROGRESS);
}

static void a_step_waits_for_an_agent_that_gave_up_as_for_any(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A");
    rig_forget(r);
    gave_up(r, "it gave up: exit code 2");
    rig_until(r, 9999);
    RIG_TRACE(r, "");
    rig_until(r, 10000);
    RIG_TRACE(r, "[10000] A#0 failed AGENT_UNAVAILABLE: " NO_AGENT "\n"
                 "[10000] plan failed/failed step: " NO_AGENT "\n"
                 "[10000] run done\n");
}

static void a_process_that_was_started_again_is_waited_for_again(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "errand: E");
    gave_up(r, "it gave up: exit code 2");
    rig_event(
        r, (struct core_event){CORE_EV_INIT(RESTARTED, process, .agent = 0), .text = STR_LIT("")});
    rig_forget(r);
    rig_until(r, 9999);
    RIG_TRACE(r, "");
}

static void an_agent_that_nobody_knows_cannot_give_up(void **state)
{
    struct rig *r = *state;
    rig_event(
        r, (struct core_event){CORE_EV_INIT(GAVE_UP, process, .agent = 77), .text = STR_LIT("x")});
    RIG_TRACE(r, "[0] reject: it belongs to another instance or agent\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_plan_without_steps_is_planned_and_then_runs),
        CORE_TEST(what_is_no_plan_is_sent_back_once),
        CORE_TEST(what_is_no_plan_again_fails_it),
        CORE_TEST(there_is_an_end_to_repairs),
        CORE_TEST(without_repairs_the_first_answer_counts),
        CORE_TEST(a_planner_that_fails_is_not_asked_again),
        CORE_TEST(an_answer_without_a_plan_where_the_policy_says_so),
        CORE_TEST(without_a_synthesizer_there_is_no_answer_alone),
        CORE_TEST(a_person_lets_it_be_planned_again),
        CORE_TEST(a_person_brings_the_plan),
        CORE_TEST(a_plan_comes_with_no_other_decision),
        CORE_TEST(a_person_gives_up_what_cannot_be_planned),
        CORE_TEST(no_word_in_time_gives_it_up),
        CORE_TEST(calling_it_off_ends_the_question),
        CORE_TEST(only_the_question_that_is_out_is_answered),
        CORE_TEST(while_it_is_planned_nothing_of_it_can_be_changed),
        CORE_TEST(a_planned_plan_can_need_a_sign_off),
        CORE_TEST(a_dry_run_ends_with_the_plan),
        CORE_TEST(planning_may_spend_all_that_there_is),
        CORE_TEST(what_is_left_is_known_while_it_is_planned),
        CORE_TEST(a_restart_asks_again_for_what_was_asked),
        CORE_TEST(a_job_has_all_its_time_again_after_a_restart),
        CORE_TEST(a_job_asks_no_person),
        CORE_TEST(a_job_for_an_agent_that_gave_up_fails_at_once),
        CORE_TEST(a_step_waits_for_an_agent_that_gave_up_as_for_any),
        CORE_TEST(a_process_that_was_started_again_is_waited_for_again),
        CORE_TEST(an_agent_that_nobody_knows_cannot_give_up),
        CORE_TEST(a_journal_that_lost_its_end_goes_on_to_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
