/* Steps that wait: for a time, a date of the wall clock, or a signal. */
#include "tests/unit/core/sched/test_core.h"

static void a_step_waits_for_a_time_without_agent_or_lane(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_forget(r);
    rig_submit(r, "A(sleep=500); B");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started\n"
                 "[0] A#0 sleeps +500\n");
    rig_until(r, 499);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_until(r, 500);
    RIG_TRACE(r, "[500] A#0 completed\n"
                 "[500] B#1 started i1\n"
                 "[500] B#1 handoff from supervisor\n"
                 "[500] dispatch B#1 i1/0\n");
}

static void a_wait_takes_no_place_of_others(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "par max=1: A; B(sleep=500); C(sleep=100); D");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "B"), STEP_SLEEPING);
    assert_int_equal(rig_status(r, "C"), STEP_SLEEPING);
    assert_int_equal(rig_status(r, "D"), STEP_READY);
    assert_int_equal(rig_run(r, run)->status, PLAN_RUNNING);
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
}

static void time_goes_on_while_the_supervisor_is_down(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(sleep=500)");
    rig_until(r, 100);
    rig_forget(r);
    rig_restart(r, 399);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_until(r, 500);
    RIG_TRACE(r, "[500] A#0 completed\n"
                 "[500] plan completed/success\n"
                 "[500] run done\n");
}

static void a_time_goes_on_in_a_pause_and_what_follows_waits_for_its_end(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(sleep=500); B");
    rig_plan_event(r, CORE_PAUSE, run, "a moment");
    rig_until(r, 900);
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_plan_event(r, CORE_RESUME, run, "go on");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

/* The wall clock of the rig shows 1000 s at first. */

static void a_date_comes_by_the_wall_clock(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(date=1000500)");
    rig_until(r, 499);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_forget(r);
    rig_until(r, 500);
    RIG_TRACE(r, "[500] A#0 completed\n"
                 "[500] plan completed/success\n"
                 "[500] run done\n");
}

static void a_date_that_is_over_is_no_wait(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(date=900000)");
    rig_until(r, 0);
    assert_int_equal(core_runs_open(rig_core(r)) == 0, 1);
}

static void a_machine_that_slept_finds_the_date_over(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(date=87400000)"); /* in a day */
    rig_until(r, 100);
    rig_forget(r);
    rig_clock(r, 86400000); /* the monotonic clock stood still */
    RIG_TRACE(r, "[100] A#0 completed\n"
                 "[100] plan completed/success\n"
                 "[100] run done\n");
}

static void a_clock_that_is_put_back_delays_the_date(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(date=1000500)");
    rig_clock(r, -3000);
    rig_until(r, 3499);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_until(r, 3500);
    assert_int_equal(core_runs_open(rig_core(r)) == 0, 1);
}

/* A second is the jump that counts: below it the date comes late by less, and never early. */
static void a_clock_that_drifts_is_followed_from_one_second_on(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(date=1010000)");
    rig_clock(r, 999);
    assert_int_equal(core_deadline(rig_core(r)), 10000);
    rig_submit(r, "B(sleep=30000)"); /* it looks at the clock, and leaves the date as it was */
    assert_int_equal(core_deadline(rig_core(r)), 10000);
    rig_clock(r, 1000);
    assert_int_equal(core_deadline(rig_core(r)), 9000);
    rig_clock(r, 1);
    assert_int_equal(core_deadline(rig_core(r)), 9000); /* 999 ms from there */
    rig_until(r, 9999 - 1);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING); /* woken early, it slept again */
    rig_until(r, 9999);
    assert_int_equal(core_runs_open(rig_core(r)), 1); /* B */
}

static void a_date_is_kept_over_a_restart(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(date=1000500)");
    rig_restart(r, 200);
    rig_until(r, 499);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_until(r, 500);
    assert_int_equal(core_runs_open(rig_core(r)) == 0, 1);
}

/* ---- signals ---- */

static void a_signal_completes_the_step_that_waits_for_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(signal=paid); B");
    rig_forget(r);
    rig_signal(r, run, "paid", 77);
    RIG_TRACE(r, "[0] signal_received 1: paid\n"
                 "[0] A#0 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
    assert_int_equal(rig_run(r, run)->steps[0].result.id, 77);
    assert_int_equal(rig_run(r, run)->kept, 0);
}

static void a_signal_that_comes_early_is_kept(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B(signal=paid)");
    rig_forget(r);
    rig_signal(r, run, "paid", 77);
    RIG_TRACE(r, "[0] signal_received 1: paid\n");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started\n"
                 "[0] B#0 sleeps +0\n"
                 "[0] signal for B\n");
    rig_kept_signal(r, "B", "paid", 1, 77);
    RIG_TRACE(r, "[0] B#0 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void a_restart_asks_again_for_a_signal_that_was_kept(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B(signal=paid)");
    rig_signal(r, run, "paid", 77);
    rig_ok(r, "A");
    rig_forget(r);
    rig_restart(r, 100);
    RIG_TRACE(r, "[100] signal for B\n");
    rig_kept_signal(r, "B", "paid", 1, 77);
    assert_int_equal(core_runs_open(rig_core(r)) == 0, 1);
}

static void two_signals_of_a_name_are_for_two_steps(void **state)
{
    struct rig *r = *state;
    const uint64_t run = rig_submit(r, "par: A(signal=go); B(signal=go); C(signal=stop)");
    rig_signal(r, run, "go", 1);
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
    assert_int_equal(rig_status(r, "B"), STEP_SLEEPING);
    rig_signal(r, run, "go", 2);
    assert_int_equal(rig_status(r, "B"), STEP_COMPLETED);
    assert_int_equal(rig_run(r, run)->steps[1].result.id, 2);
    assert_int_equal(rig_status(r, "C"), STEP_SLEEPING);
}

static void an_older_signal_comes_first(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B(signal=go)");
    rig_signal(r, run, "go", 1);
    rig_ok(r, "A");
    rig_forget(r);
    rig_signal(r, run, "go", 2); /* before the first was brought */
    RIG_TRACE(r, "[0] signal_received 2: go\n"
                 "[0] signal for B\n");
    rig_kept_signal(r, "B", "go", 1, 1);
    assert_int_equal(core_runs_open(rig_core(r)), 0);
}

static void a_plan_keeps_64_signals_and_no_more(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "par: A; B<A(signal=go); C(signal=now)");
    for (uint32_t i = 1; i <= LIMIT_SIGNALS_KEPT; i++) {
        rig_signal(r, run, "go", i);
    }
    assert_int_equal(rig_run(r, run)->kept, LIMIT_SIGNALS_KEPT);
    rig_forget(r);
    rig_signal(r, run, "go", LIMIT_SIGNALS_KEPT + 1);
    RIG_TRACE(r, "[0] reject: 64 signals are kept already, and no step waits for this one now\n");
    rig_signal(r, run, "now", 100); /* it is not kept: a step takes it */
    assert_int_equal(rig_status(r, "C"), STEP_COMPLETED);
    assert_int_equal(rig_run(r, run)->kept, LIMIT_SIGNALS_KEPT);
}

static void without_its_signal_a_step_times_out(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(signal=paid patience=500)");
    rig_until(r, 499);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_forget(r);
    rig_until(r, 500);
    RIG_TRACE(r, "[500] A#0 failed TIMEOUT: No signal within 500ms\n"
                 "[500] plan failed/failed step: No signal within 500ms\n"
                 "[500] run done\n");
}

static void after_a_timeout_on_failure_decides(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A(signal=paid patience=500 ask); B(cleanup)");
    rig_until(r, 500);
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    rig_signal(r, run, "paid", 5); /* too late for the step, in time for its next wait */
    rig_forget(r);
    rig_decide(r, "A", DECISION_APPROVE, "wait again");
    RIG_TRACE(r, "[500] A#0 decided approve: wait again\n"
                 "[500] plan_resumed review\n"
                 "[500] A#0 sleeps +500\n"
                 "[500] signal for A\n");
    rig_kept_signal(r, "A", "paid", 1, 5);
    assert_int_equal(core_runs_open(rig_core(r)) == 0, 1);
}

static void a_condition_and_an_approval_come_before_the_wait(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A(sleep=100 when approve)");
    rig_until(r, 300);
    rig_condition(r, "A", CONDITION_TRUE, "yes");
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    rig_until(r, 600);
    rig_decide(r, "A", DECISION_APPROVE, "");
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_until(r, 699);
    assert_int_equal(rig_status(r, "A"), STEP_SLEEPING);
    rig_until(r, 700);
    assert_int_equal(core_runs_open(rig_core(r)) == 0, 1);
}

static void a_person_may_skip_a_wait_and_cancel_its_plan(void **state)
{
    struct rig *r = *state;
    const uint64_t run = rig_submit(r, "par: A(sleep=500); B(signal=go); C(date=9000000)");
    rig_modify(r, run, MODIFY_SKIP_STEPS, 0, 0);
    assert_int_equal(rig_status(r, "A"), STEP_SKIPPED);
    rig_forget(r);
    rig_cancel(r, run, "enough");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] B#0 cancelled cancelled CANCELLED: enough\n"
                 "[0] C#0 cancelled cancelled CANCELLED: enough\n"
                 "[0] plan cancelled/failed: enough\n"
                 "[0] run done\n");
    rig_signal(r, run, "go", 1);
    RIG_TRACE(r, "[0] reject: no open plan has this handle\n");
}

static void a_signal_that_nobody_asked_for_changes_nothing(void **state)
{
    struct rig *r = *state;
    const uint64_t run = rig_submit(r, "par: A(signal=go); B(sleep=500)");
    rig_forget(r);
    rig_kept_signal(r, "A", "go", 1, 5); /* none is kept */
    rig_kept_signal(r, "B", "go", 1, 5); /* it waits for no signal */
    rig_kept_signal(r, "A", "no", 1, 5);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n"
                 "[0] reject: nothing waits for this\n");
    assert_int_equal(rig_run(r, run)->signals, 0);
}

static void what_a_step_waits_for_is_told(void **state)
{
    struct rig *r = *state;
    const uint64_t run = rig_submit(r, "par: A(signal=go); B(sleep=500); C(date=1000200)");
    struct step_wait w = core_step_wait(rig_core(r), run, 0);
    assert_int_equal(w.kind, WAIT_SIGNAL);
    assert_int_equal(w.until, MSEC_NEVER);
    w = core_step_wait(rig_core(r), run, 1);
    assert_int_equal(w.kind, WAIT_TIMER);
    assert_int_equal(w.until, 500);
    w = core_step_wait(rig_core(r), run, 2);
    assert_int_equal(w.kind, WAIT_TIMER);
    assert_int_equal(w.until, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_step_waits_for_a_time_without_agent_or_lane),
        CORE_TEST(a_wait_takes_no_place_of_others),
        CORE_TEST(time_goes_on_while_the_supervisor_is_down),
        CORE_TEST(a_time_goes_on_in_a_pause_and_what_follows_waits_for_its_end),
        CORE_TEST(a_date_comes_by_the_wall_clock),
        CORE_TEST(a_date_that_is_over_is_no_wait),
        CORE_TEST(a_machine_that_slept_finds_the_date_over),
        CORE_TEST(a_clock_that_is_put_back_delays_the_date),
        CORE_TEST(a_clock_that_drifts_is_followed_from_one_second_on),
        CORE_TEST(a_date_is_kept_over_a_restart),
        CORE_TEST(a_signal_completes_the_step_that_waits_for_it),
        CORE_TEST(a_signal_that_comes_early_is_kept),
        CORE_TEST(a_restart_asks_again_for_a_signal_that_was_kept),
        CORE_TEST(two_signals_of_a_name_are_for_two_steps),
        CORE_TEST(an_older_signal_comes_first),
        CORE_TEST(a_plan_keeps_64_signals_and_no_more),
        CORE_TEST(without_its_signal_a_step_times_out),
        CORE_TEST(after_a_timeout_on_failure_decides),
        CORE_TEST(a_condition_and_an_approval_come_before_the_wait),
        CORE_TEST(a_person_may_skip_a_wait_and_cancel_its_plan),
        CORE_TEST(a_signal_that_nobody_asked_for_changes_nothing),
        CORE_TEST(what_a_step_waits_for_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
