/* How plans end: by themselves, called off, out of time, for want of an agent. */
#include "tests/unit/core/plan/plan_text.h"
#include "tests/unit/core/sched/test_core.h"

static void nothing_completed_is_a_failed_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(continue)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_UNKNOWN, "e");
    RIG_TRACE(r, "[0] A#1 failed UNKNOWN: e\n"
                 "[0] plan failed/failed nothing_completed\n"
                 "[0] run done\n");
    rig_submit(r, "B(skip)");
    rig_forget(r);
    rig_fail(r, "B", CLASS_UNKNOWN, "e");
    RIG_TRACE(r, "[0] B#1 skipped on_failure_skip UNKNOWN: e\n"
                 "[0] plan failed/failed nothing_completed\n"
                 "[0] run done\n");
}

static void a_plan_without_steps_fails_at_once(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] plan failed/failed nothing_completed\n"
                 "[0] run done\n");
    assert_int_equal(core_runs_open(rig_core(r)), 0);
}

static void a_skipped_failure_makes_the_plan_partial(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(skip); B");
    rig_fail(r, "A", CLASS_UNKNOWN, "e");
    rig_forget(r);
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] plan completed/partial\n"
                 "[0] run done\n");
}

static void cancelling_ends_every_step_that_began_exactly_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 3);
    const uint64_t run = rig_submit(r, "par max=4: A; B(retries=1); C(unsafe); D; E");
    rig_fail(r, "B", CLASS_TIMEOUT, "e");
    rig_needs(r, "C", STEP_OUTCOME_NEEDS_APPROVAL, "?");
    rig_lost(r, "D", true);
    rig_forget(r);
    rig_cancel(r, run, "changed my mind");
    RIG_TRACE(r, "[0] plan_cancelling: changed my mind\n"
                 "[0] cancel A#1 i1\n"
                 "[0] B#1 cancelled cancelled CANCELLED: changed my mind\n"
                 "[0] C#1 cancelled cancelled CANCELLED: changed my mind\n"
                 "[0] D#1 cancelled cancelled CANCELLED (fenced): changed my mind\n"
                 "[0] cancel D#1 i1\n");
    rig_cancel(r, run, "again");
    RIG_TRACE(r, "[0] reject: the plan is being cancelled\n");
    rig_fail(r, "A", CLASS_CANCELLED, "stopped");
    RIG_TRACE(r, "[0] A#1 cancelled cancelled CANCELLED (acknowledged): Cancelled\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
    assert_int_equal(rig_status(r, "E"), STEP_CANCELLED);
    rig_cancel(r, run, "again");
    RIG_TRACE(r, "[0] reject: no open plan has this handle\n");
}

static void the_lanes_of_cancelled_attempts_stay_taken_until_they_answer(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A");
    const struct core_event late = rig_about(r, CORE_RESULT, "A");
    rig_cancel(r, run, "");
    rig_submit(r, "B");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_event(r, late);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_plan_out_of_time_fails_and_says_so(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "timeout=700: A; B");
    rig_until(r, 100);
    rig_ok(r, "A");
    rig_forget(r);
    rig_until(r, 700);
    RIG_TRACE(r,
              "[700] B#1 cancelled plan_timeout CANCELLED (fenced): Execution timeout after 700ms\n"
              "[700] cancel B#1 i1\n"
              "[700] plan failed/failed timeout: Execution timeout after 700ms\n"
              "[700] run done\n");
}

/* Its heartbeats come: it is there, and "no instance came" would send people to the wrong place. */
static void a_step_whose_agent_registered_and_does_not_answer_says_so(void **state)
{
    struct rig *r = *state;
    rig_register(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    rig_until(r, 10000);
    RIG_TRACE(r, "[10000] A#0 failed AGENT_UNAVAILABLE: Agent 'x' has registered, but took no step "
                 "within 10000 ms: it does not answer at its endpoint, or drains\n"
                 "[10000] plan failed/failed step: Agent 'x' has registered, but took no step "
                 "within 10000 ms: it does not answer at its endpoint, or drains\n"
                 "[10000] run done\n");
}

static void a_step_whose_agent_never_comes_fails_after_the_wait(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(retries=3 continue); B");
    rig_forget(r);
    rig_until(r, 20000);
    RIG_TRACE(
        r, "[10000] A#0 failed AGENT_UNAVAILABLE: No instance of agent 'x' came within 10000 ms\n"
           "[20000] B#0 failed AGENT_UNAVAILABLE: No instance of agent 'x' came within 10000 ms\n"
           "[20000] plan failed/failed step: No instance of agent 'x' came within 10000 ms\n"
           "[20000] run done\n");
}

static void a_step_may_have_a_wait_of_its_own(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "par: A(agentwait=25000 continue); B(agentwait=300 continue); C(continue); "
                  "D@y(agentwait=25000)");
    rig_forget(r);
    rig_until(r, 24999);
    RIG_TRACE(
        r, "[300] B#0 failed AGENT_UNAVAILABLE: No instance of agent 'x' came within 300 ms\n"
           "[10000] C#0 failed AGENT_UNAVAILABLE: No instance of agent 'x' came within 10000 ms\n");
    rig_forget(r);
    rig_restart(r, 0);
    rig_up(r, "y", 1, 1);
    rig_forget(r);
    rig_until(r, 24999 + 25000); /* the wait begins again with the daemon: agents come back */
    RIG_TRACE(
        r, "[49999] A#0 failed AGENT_UNAVAILABLE: No instance of agent 'x' came within 25000 ms; "
           "there are: y\n");
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
}

static void the_wait_counts_from_when_the_last_instance_went(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_submit(r, "B");
    rig_until(r, 25000); /* B waits, but x is there */
    rig_instance(r, CORE_GONE, 1, "");
    rig_until(r, 34999);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_until(r, 35000);
    assert_int_equal(rig_status(r, "B"), STEP_FAILED);
}

static void an_agent_that_comes_in_time_gets_its_steps(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A");
    rig_until(r, 9999);
    rig_up(r, "x", 1, 1);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void the_number_of_open_plans_has_an_end(void **state)
{
    (void)state;
    struct core_config config = rig_config();
    config.runs_max = 2;
    struct rig *r = rig_new_with(&config);
    const uint64_t first = rig_submit(r, "A");
    const uint64_t second = rig_submit(r, "B");
    assert_int_not_equal(first, 0);
    assert_int_not_equal(second, 0);
    struct plan *plan = plan_text_blank(1, 0, 0, "x");
    static max_align_t block[64];
    assert_true(core_run_size(plan) <= sizeof block);
    rig_forget(r);
    rig_event(r, (struct core_event){CORE_EV_INIT(SUBMIT, submit, .plan = plan, .block = block)});
    RIG_TRACE(r, "[0] reject: too many plans are open; try again when some have ended\n");
    assert_int_equal(core_newest_run(rig_core(r)), 0);
    rig_cancel(r, first, "");
    const uint64_t third = rig_submit(r, "C");
    assert_int_not_equal(third, 0);
    assert_int_not_equal(third, first); /* the slot is the same, the handle is not */
    assert_null(rig_run(r, first));
    plan_text_free(plan);
    rig_free(r);
}

static void counts_and_usage_add_up(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B(skip); C");
    rig_ok(r, "A");
    rig_fail(r, "B", CLASS_UNKNOWN, "e");
    const struct run *live = rig_run(r, run);
    assert_int_equal(live->completed, 1);
    assert_int_equal(live->skipped, 1);
    assert_int_equal(live->open, 1);
    assert_int_equal(live->current, 2);
    assert_int_equal(live->last_done, 0);
    assert_int_equal(live->handoffs, 1);
    assert_int_equal(live->usage.input_tokens, 10);
    assert_int_equal(live->steps[0].result.id, 100);
    assert_int_equal(live->plan_seq, 8);
}

static void time_never_runs_back(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_until(r, 1000);
    const uint64_t run = rig_submit(r, "A(timeout=500)");
    struct commands out = {0};
    struct core_cmd room[8];
    out.at = room;
    out.cap = 8;
    core_handle(rig_core(r), &(struct core_event){.type = CORE_TICK, .now = 5}, &out);
    assert_int_equal(out.n, 0);
    assert_int_equal(rig_run(r, run)->steps[0].deadline, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(nothing_completed_is_a_failed_plan),
        CORE_TEST(a_plan_without_steps_fails_at_once),
        CORE_TEST(a_skipped_failure_makes_the_plan_partial),
        CORE_TEST(cancelling_ends_every_step_that_began_exactly_once),
        CORE_TEST(the_lanes_of_cancelled_attempts_stay_taken_until_they_answer),
        CORE_TEST(a_plan_out_of_time_fails_and_says_so),
        CORE_TEST(a_step_whose_agent_registered_and_does_not_answer_says_so),
        CORE_TEST(a_step_whose_agent_never_comes_fails_after_the_wait),
        CORE_TEST(a_step_may_have_a_wait_of_its_own),
        CORE_TEST(the_wait_counts_from_when_the_last_instance_went),
        CORE_TEST(an_agent_that_comes_in_time_gets_its_steps),
        CORE_TEST(the_number_of_open_plans_has_an_end),
        CORE_TEST(counts_and_usage_add_up),
        CORE_TEST(time_never_runs_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
