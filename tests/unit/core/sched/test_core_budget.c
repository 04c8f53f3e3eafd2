/* The budget of a plan: what is reserved, what is spent, who waits, when it is over. */
#include "tests/unit/core/sched/test_core.h"

static void spend(struct rig *r, const char *step, uint64_t tokens, uint64_t micros)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_COMPLETED;
    CORE_EV(&ev, result)->usage = (struct usage){
        .input_tokens = tokens / 2, .output_tokens = tokens - tokens / 2, .cost_micros = micros};
    rig_event(r, ev);
}

static uint64_t tokens_left(struct rig *r, const char *step)
{
    const struct core_event about = rig_about(r, CORE_RESULT, step);
    uint64_t tokens;
    uint64_t micros;
    core_budget_left(rig_core(r), about.run, about.step, &tokens, &micros);
    assert_true(micros == UINT64_MAX);
    return tokens;
}

static void a_step_that_does_not_fit_into_what_is_left_fails_the_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "budget=1000: A(est=800); B(est=200); C");
    rig_forget(r);
    spend(r, "A", 900, 0); /* more than it said */
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#0 failed BUDGET_EXCEEDED: Budget exceeded: 900 of 1000 tokens spent, this "
                 "step needs 200\n"
                 "[0] plan failed/failed budget_exceeded: Budget exceeded: 900 of 1000 tokens "
                 "spent, this step needs 200\n"
                 "[0] run done\n");
    assert_null(rig_run(r, run));
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED); /* partial results are kept */
    assert_int_equal(rig_status(r, "C"), STEP_CANCELLED);
}

static void a_budget_that_is_spent_lets_nothing_more_begin(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "budget=1000: A; B");
    rig_forget(r);
    spend(r, "A", 1000, 0);
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#0 failed BUDGET_EXCEEDED: Budget exceeded: 1000 of 1000 tokens spent\n"
                 "[0] plan failed/failed budget_exceeded: Budget exceeded: 1000 of 1000 tokens "
                 "spent\n"
                 "[0] run done\n");
}

static void the_last_step_may_spend_all_that_is_left(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "budget=1000: A(est=500); B(est=500)");
    spend(r, "A", 500, 0);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    spend(r, "B", 700, 0); /* what is done is done */
    assert_null(rig_run(r, run));
    assert_int_equal(rig_status(r, "B"), STEP_COMPLETED);
}

static void a_step_waits_for_what_others_have_reserved(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par budget=1000: A(est=400); B(est=400); C(est=300); D(est=100)");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS); /* 900 of 1000 */
    spend(r, "D", 100, 0);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    spend(r, "A", 250, 0); /* 350 spent, 400 reserved: 250 are left */
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    spend(r, "B", 50, 0);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_reservation_that_was_overspent_ends_those_that_wait_for_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par budget=1000: A(est=600); B(est=500); C(est=100)");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_forget(r);
    spend(r, "A", 700, 0);
    RIG_TRACE(
        r, "[0] A#1 completed\n"
           "[0] B#0 failed BUDGET_EXCEEDED: Budget exceeded: 700 of 1000 tokens spent, this "
           "step needs 500\n"
           "[0] C#1 cancelled plan_aborted CANCELLED (fenced): Budget exceeded: 700 of 1000 tokens "
           "spent, this step needs 500\n"
           "[0] cancel C#1 i1\n"
           "[0] plan failed/failed budget_exceeded: Budget exceeded: 700 of 1000 tokens "
           "spent, this step needs 500\n"
           "[0] run done\n");
}

static void cost_has_its_own_budget(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "budget=1000 cost=50: A(estcost=40); B(est=10 estcost=20)");
    rig_forget(r);
    spend(r, "A", 1, 40);
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#0 failed BUDGET_EXCEEDED: Budget exceeded: 40 of 50 millionths spent, this "
                 "step needs 20\n"
                 "[0] plan failed/failed budget_exceeded: Budget exceeded: 40 of 50 millionths "
                 "spent, this step needs 20\n"
                 "[0] run done\n");
}

static void a_failed_attempt_spends_too_and_the_next_reserves_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "budget=1000: A(est=400 retries=5)");
    struct core_event ev = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(&ev, result)->error_class = CLASS_SERVICE_UNAVAILABLE;
    CORE_EV(&ev, result)->usage = (struct usage){.input_tokens = 500};
    rig_event(r, ev);
    rig_until(r, 100);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    ev = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(&ev, result)->error_class = CLASS_SERVICE_UNAVAILABLE;
    CORE_EV(&ev, result)->usage = (struct usage){.input_tokens = 200};
    rig_event(r, ev);
    rig_until(r, 200);
    assert_int_equal(rig_status(r, "A"), STEP_FAILED); /* not for want of retries */
}

static void a_lost_reply_keeps_its_reservation_until_it_is_known(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par budget=1000: A(est=600); B(est=600)");
    rig_lost(r, "A", true);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_until(r, 4000);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    spend(r, "A", 300, 0);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_step_that_waits_for_the_budget_has_its_place_in_the_concurrency(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par max=2 budget=1000: A(est=600); B(est=600); C(est=1)");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    assert_int_equal(rig_status(r, "C"), STEP_READY); /* max_concurrency, not the budget */
    spend(r, "A", 100, 0);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void after_a_restart_what_is_spent_is_known(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par max=2 budget=1000: A(est=300); B(est=300 unsafe); C(est=500)");
    spend(r, "A", 300, 0);
    assert_int_equal(rig_status(r, "C"), STEP_READY); /* 300 spent, 300 reserved, 500 to come */
    rig_restart(r, 1000);
    rig_up(r, "x", 1, 8);
    assert_int_equal(rig_status(r, "B"), STEP_UNKNOWN);
    assert_int_equal(rig_status(r, "C"), STEP_READY); /* B may still spend what it reserved */
    rig_state(r, "B", true);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    struct core_event ev = rig_about(r, CORE_RESULT, "B");
    ev.slot = 0;
    ev.epoch = rig_run(r, ev.run)->steps[ev.step].epoch; /* of the new registration */
    ev.lane = LANE_NONE;
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_COMPLETED;
    CORE_EV(&ev, result)->usage.input_tokens = 100;
    rig_event(r, ev);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void what_is_left_is_what_is_neither_spent_nor_reserved_by_others(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par budget=1000: A(est=100); B(est=200); C");
    assert_int_equal(tokens_left(r, "A"), 800);
    assert_int_equal(tokens_left(r, "B"), 900);
    assert_int_equal(tokens_left(r, "C"), 700);
    spend(r, "A", 650, 0);
    assert_int_equal(tokens_left(r, "B"), 350);
    assert_int_equal(tokens_left(r, "C"), 150);
    rig_submit(r, "D");
    assert_true(tokens_left(r, "D") == UINT64_MAX);
}

static void a_question_reserves_nothing_and_what_it_cost_is_spent(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_up(r, "v", 2, 8);
    rig_submit(r, "par budget=1000: A(est=900 verify=v check=5000); B(est=300)");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    spend(r, "A", 600, 0);
    assert_int_equal(rig_status(r, "A"), STEP_CHECKING);
    assert_int_equal(rig_status(r, "B"),
                     STEP_IN_PROGRESS); /* A holds nothing while it is asked about */
    assert_int_equal(tokens_left(r, "B"), 400);
}

static void what_waits_for_the_budget_waits_for_a_pause_too(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    const uint64_t run = rig_submit(r, "par budget=1000: A(est=600); B(est=600)");
    rig_plan_event(r, CORE_PAUSE, run, "");
    spend(r, "A", 100, 0);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_plan_event(r, CORE_RESUME, run, "");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_revision_may_say_that_a_step_needs_more(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    const uint64_t run = rig_submit(r, "par budget=1000: A(est=400); B<A");
    rig_insert(r, run, "par budget=1000: A(est=700); B<A; C(est=400)");
    assert_int_equal(tokens_left(r, "B"), 300);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    spend(r, "A", 100, 0);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

/* What a verifier cost is spent, too; with nothing left nobody is asked. */
static void a_question_is_not_asked_when_nothing_is_left(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "judge", 2, 1);
    rig_submit(r, "budget=11: A(verify=judge open)");
    rig_forget(r);
    rig_ok(r, "A"); /* 11 tokens */
    RIG_TRACE(
        r,
        "[0] A#1 checking verify by judge\n"
        "[0] A#1 failed BUDGET_EXCEEDED: Budget exceeded: nothing is left to ask about the step\n"
        "[0] plan failed/failed budget_exceeded: Budget exceeded: nothing is left to ask about the "
        "step\n"
        "[0] run done\n");
}

static void replanning_has_a_budget_of_its_own(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "planner", 2, 1);
    rig_submit(r, "replan=planner replanbudget=1: A(replan)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    rig_until(r, 1);
    struct core_event ev = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&ev, result)->usage = (struct usage){.input_tokens = 1};
    rig_revise(r, ev.run, ev, "replan=planner replanbudget=1: A(gone); B(replan)");
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "bad again");
    rig_forget(r);
    rig_until(r, 2);
    RIG_TRACE(
        r,
        "[1] B#1 failed BUDGET_EXCEEDED: Budget exceeded: nothing is left for replanning\n"
        "[1] plan failed/failed budget_exceeded: Budget exceeded: nothing is left for replanning\n"
        "[1] run done\n");
}

/* ---- what work that does not count any more has used ---- */

static uint64_t used(const struct rig *r, uint64_t run)
{
    const struct usage *u = &rig_run(r, run)->usage;
    return u->input_tokens + u->output_tokens;
}

static struct core_event answer(const struct rig *r, const char *step, enum step_outcome outcome,
                                uint64_t tokens)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = outcome;
    CORE_EV(&ev, result)->usage = (struct usage){.output_tokens = tokens};
    return ev;
}

/* The same answer, but to a query or as a request of the agent. */
static struct core_event beside_its_lane(const struct rig *r, uint64_t run, struct core_event ev)
{
    ev.lane = LANE_NONE;
    ev.instance = rig_run(r, run)->steps[ev.step].instance;
    return ev;
}

static void a_late_failure_is_paid_for_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(retries=1 timeout=500); B");
    const struct core_event late = answer(r, "A", STEP_OUTCOME_FAILED, 300);
    rig_until(r, 700);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS); /* its second attempt */
    assert_int_equal(used(r, run), 0);
    rig_event(r, late);
    assert_int_equal(used(r, run), 300);
    rig_event(r, late);
    rig_event(r, beside_its_lane(r, run, late));
    assert_int_equal(used(r, run), 300);
    spend(r, "A", 200, 0);
    assert_int_equal(used(r, run), 500);
    rig_event(r, late);
    assert_int_equal(used(r, run), 500);
    rig_restart(r, 10);
    assert_int_equal(used(r, run), 500);
}

static void what_came_another_way_is_not_paid_for_again_over_its_lane(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "par: A; B");
    const struct core_event its = answer(r, "A", STEP_OUTCOME_COMPLETED, 100);
    rig_event(r, beside_its_lane(r, run, its));
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
    assert_int_equal(used(r, run), 100);
    rig_event(r, its);
    assert_int_equal(used(r, run), 100);
}

/* The attempt that is called off because an earlier one has completed costs, too. */
static void both_attempts_are_paid_for_when_the_earlier_one_completes(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 3);
    const uint64_t run = rig_submit(r, "par: A(retries=1 timeout=500); B(timeout=9000)");
    const struct core_event first = answer(r, "A", STEP_OUTCOME_COMPLETED, 300);
    rig_until(r, 700);
    const struct core_event second = answer(r, "A", STEP_OUTCOME_FAILED, 50);
    rig_event(r, first);
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
    assert_int_equal(used(r, run), 300);
    rig_event(r, second);
    rig_event(r, second);
    assert_int_equal(used(r, run), 350);
}

static void what_another_instance_claims_is_not_paid_for(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(retries=1 timeout=500); B");
    struct core_event claim = answer(r, "A", STEP_OUTCOME_FAILED, 300);
    rig_until(r, 550); /* between the attempts */
    claim.lane = LANE_NONE;
    rig_event(r, claim); /* by nobody */
    claim.instance = (struct uuid){{9}};
    rig_event(r, claim);
    assert_int_equal(used(r, run), 0);
    claim = beside_its_lane(r, run, claim);
    claim.attempt = 7; /* none that was made */
    rig_event(r, claim);
    assert_int_equal(used(r, run), 0);
    claim.attempt = 1;
    rig_event(r, claim);
    assert_int_equal(used(r, run), 300);
    rig_event(r, claim);
    assert_int_equal(used(r, run), 300);
}

static void the_budget_sees_what_a_late_failure_has_used(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "budget=1000: A(retries=1 timeout=500); B");
    const struct core_event late = answer(r, "A", STEP_OUTCOME_FAILED, 900);
    rig_until(r, 700);
    rig_event(r, late);
    spend(r, "A", 100, 0);
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
    assert_int_equal(rig_status(r, "B"), STEP_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_question_is_not_asked_when_nothing_is_left),
        CORE_TEST(replanning_has_a_budget_of_its_own),
        CORE_TEST(a_step_that_does_not_fit_into_what_is_left_fails_the_plan),
        CORE_TEST(a_budget_that_is_spent_lets_nothing_more_begin),
        CORE_TEST(the_last_step_may_spend_all_that_is_left),
        CORE_TEST(a_step_waits_for_what_others_have_reserved),
        CORE_TEST(a_reservation_that_was_overspent_ends_those_that_wait_for_it),
        CORE_TEST(cost_has_its_own_budget),
        CORE_TEST(a_failed_attempt_spends_too_and_the_next_reserves_again),
        CORE_TEST(a_lost_reply_keeps_its_reservation_until_it_is_known),
        CORE_TEST(a_step_that_waits_for_the_budget_has_its_place_in_the_concurrency),
        CORE_TEST(after_a_restart_what_is_spent_is_known),
        CORE_TEST(a_question_reserves_nothing_and_what_it_cost_is_spent),
        CORE_TEST(what_waits_for_the_budget_waits_for_a_pause_too),
        CORE_TEST(a_revision_may_say_that_a_step_needs_more),
        CORE_TEST(a_late_failure_is_paid_for_once),
        CORE_TEST(what_came_another_way_is_not_paid_for_again_over_its_lane),
        CORE_TEST(both_attempts_are_paid_for_when_the_earlier_one_completes),
        CORE_TEST(what_another_instance_claims_is_not_paid_for),
        CORE_TEST(the_budget_sees_what_a_late_failure_has_used),
        CORE_TEST(what_is_left_is_what_is_neither_spent_nor_reserved_by_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
