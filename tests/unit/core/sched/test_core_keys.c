/* Priorities, concurrency keys and rates. */
#include "tests/unit/core/sched/test_core.h"

enum { AGE_MS = 30000 /* of waiting are worth one priority */ };

/* The attempt goes on after a restart, and completes. */
static void finish_adopted(struct rig *r, const char *step)
{
    rig_state(r, step, true);
    struct core_event done = rig_about(r, CORE_RESULT, step);
    done.epoch = 1001;
    done.lane = LANE_NONE;
    rig_event(r, done);
}

/* ---- priorities ---- */

static void a_full_agent_takes_the_highest_priority_first(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "prio=5: A");
    rig_submit(r, "prio=1: B");
    rig_submit(r, "prio=9: C");
    rig_submit(r, "prio=5: D");
    rig_forget(r);
    rig_ok(r, "A");
    rig_ok(r, "C");
    rig_ok(r, "D");
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/0\n"
                 "[0] C#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n"
                 "[0] D#1 started i1\n"
                 "[0] D#1 handoff from supervisor\n"
                 "[0] dispatch D#1 i1/0\n"
                 "[0] D#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n"
                 "[0] B#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

/* Priority 0 begins to wait; nine priorities are worth nine times AGE_MS. */
static void after_its_age_the_lowest_priority_goes_before_the_highest(void **state)
{
    for (msec late = 9 * AGE_MS - 1; late <= 9 * AGE_MS; late++) {
        struct rig *r = rig_new();
        rig_up(r, "x", 1, 1);
        rig_submit(r, "A");
        rig_submit(r, "prio=0: B");
        rig_until(r, 1);
        rig_until(r, late);
        rig_submit(r, "prio=9: C");
        rig_ok(r, "A");
        /* B has waited for `late`: at 9 * AGE_MS both turns are the same, and the priority decides
         */
        assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
        rig_free(r);
    }
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_submit(r, "prio=0: B");
    rig_until(r, 9 * AGE_MS + 1);
    rig_submit(r, "prio=9: C");
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
}

/* ---- keys of plans ---- */

static void two_plans_with_a_key_come_one_after_the_other(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: A");
    rig_forget(r);
    const uint64_t second = rig_submit(r, "key=0: B");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_paused concurrency: 0\n");
    const struct step_wait w = core_step_wait(rig_core(r), second, 0);
    assert_int_equal(w.kind, WAIT_KEY);
    assert_int_equal(w.n, 1);
    assert_true(str_is(w.key, "0"));
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n"
                 "[0] plan_resumed concurrency: 0\n"
                 "[0] plan_started\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void a_key_has_as_many_plans_as_places_and_not_one_more(void **state)
{
    struct rig *r = *state;
    rig_key(r, 1, 2, 0, 0);
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=1: A");
    rig_submit(r, "key=1: B");
    rig_submit(r, "key=1: C");
    rig_submit(r, "key=2: D"); /* another key */
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
    rig_ok(r, "B");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void the_key_goes_to_the_highest_priority(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: A");
    rig_submit(r, "key=0 prio=4: B");
    rig_submit(r, "key=0 prio=6: C");
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_plan_that_skips_ends_when_its_key_is_taken(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: A");
    rig_forget(r);
    rig_submit(r, "key=0 keyskip: B");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan cancelled/failed: overlap is skip, and no place is free of the "
                 "concurrencyKey 0\n"
                 "[0] run done\n");
    rig_ok(r, "A");
    rig_submit(r, "key=0 keyskip: C");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_plan_that_cancels_ends_the_older_ones_and_begins_after_them(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: A");
    rig_submit(r, "key=0: B");
    rig_forget(r);
    rig_submit(r, "key=0 keycancel: C");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_cancelling: A newer plan has the concurrencyKey 0\n"
                 "[0] plan cancelled/failed: A newer plan has the concurrencyKey 0\n"
                 "[0] run done\n"
                 "[0] plan_cancelling: A newer plan has the concurrencyKey 0\n"
                 "[0] cancel A#1 i1\n"
                 "[0] plan_paused concurrency: 0\n");
    rig_until(r, 1000); /* the grace of A is over */
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_plan_that_is_undone_keeps_its_key_and_a_newer_one_waits_for_its_end(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    const uint64_t older = rig_submit(r, "key=0: reserve(undo); ship<reserve");
    rig_ok(r, "reserve");
    rig_fail(r, "ship", CLASS_VALIDATION_ERROR, "no such street");
    rig_forget(r);
    rig_submit(r, "key=0 keycancel: C");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_paused concurrency: 0\n");
    rig_compensated(r, older, true, "");
    assert_int_equal(rig_nth(r, 0)->status, PLAN_FAILED);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_restart_keeps_who_has_the_key_and_who_waits(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: A");
    rig_submit(r, "key=0: B");
    rig_submit(r, "key=0: C");
    rig_restart(r, 10);
    rig_up(r, "x", 1, 4);
    rig_until(r, 20);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    finish_adopted(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
}

/* The one that waits is rebuilt before the one that has the key. */
static void a_plan_that_waits_is_not_started_while_others_are_rebuilt(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    const uint64_t first = rig_submit(r, "key=0: A");
    rig_submit(r, "key=0: B");
    rig_submit(r, "key=0: C");
    rig_cancel(r, first, "");
    rig_until(r, 1000);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    rig_submit(r, "key=0: D"); /* it may get the slot of A */
    rig_restart(r, 10);
    rig_up(r, "x", 1, 4);
    rig_until(r, 1100);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    assert_int_equal(rig_status(r, "D"), STEP_READY);
}

static void a_plan_on_hold_is_not_given_its_key(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: A");
    const uint64_t b = rig_submit(r, "key=0 prio=9: B");
    rig_plan_event(r, CORE_PAUSE, b, "not yet");
    rig_restart(r, 1);
    const uint64_t again = core_newest_run(rig_core(r));
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: C");
    finish_adopted(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    rig_plan_event(r, CORE_RESUME, again, "now");
    rig_ok(r, "C");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_plan_that_waits_for_its_key_can_be_cancelled(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "key=0: A");
    const uint64_t b = rig_submit(r, "key=0: B");
    rig_submit(r, "key=0: C");
    rig_cancel(r, b, "");
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_sign_off_comes_before_the_key(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    const uint64_t a = rig_submit(r, "key=0 signoff signtime=500: A");
    rig_submit(r, "key=0: B");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    rig_forget(r);
    rig_decide_plan(r, a, DECISION_APPROVE, NULL);
    RIG_TRACE(r, "[0] review_decided approve\n"
                 "[0] plan_paused concurrency: 0\n");
    rig_ok(r, "B");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

/* ---- keys of steps ---- */

static void steps_with_a_key_do_not_overlap(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    const uint64_t run = rig_submit(r, "par: A(key=0); B(key=0); C");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    assert_int_equal(core_step_wait(rig_core(r), run, 1).kind, WAIT_KEY);
    rig_submit(r, "D(key=0)");
    assert_int_equal(rig_status(r, "D"), STEP_READY);
    rig_forget(r);
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
}

static void a_step_keeps_its_key_between_attempts(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par: A(key=0 retries=1); B(key=0)");
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "not now");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_until(r, 100);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_step_with_an_unknown_outcome_keeps_its_key_over_a_restart(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par: A(key=0); B(key=0)");
    rig_restart(r, 10);
    rig_up(r, "x", 1, 8);
    assert_int_equal(rig_status(r, "A"), STEP_UNKNOWN);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    finish_adopted(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

/* B was told to go on, but its agent is busy: C is not held up by it. */
static void a_step_without_a_lane_holds_nobody_up_for_long(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "par: A(key=0); L@y");
    rig_submit(r, "B@y(key=0)");
    rig_submit(r, "C(key=0)");
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_until(r, 1000);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    rig_ok(r, "L");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_ok(r, "C");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_pause_takes_a_step_out_of_the_line_of_its_key(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "A(key=0)");
    const uint64_t b = rig_submit(r, "B(key=0)");
    rig_submit(r, "C(key=0)");
    rig_plan_event(r, CORE_PAUSE, b, "");
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    rig_plan_event(r, CORE_RESUME, b, "");
    rig_ok(r, "C");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void the_end_of_a_plan_frees_the_keys_of_its_steps(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par timeout=50: A(key=0); B(key=0)");
    rig_submit(r, "C(key=0)");
    rig_until(r, 49);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_until(r, 50);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

/* ---- rates ---- */

/* Two in 1000 ms: the third waits until the first is 1000 ms ago, to the millisecond. */
static void an_agent_gets_n_in_its_window_and_the_next_one_at_its_end(void **state)
{
    struct rig *r = *state;
    rig_rate(r, "x", 2, 1000);
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par: A; B; C; D");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    const struct step_wait w = core_step_wait(rig_core(r), 1, 0);
    (void)w;
    rig_until(r, 999);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] C#1 started i1\n"
                 "[1000] C#1 handoff from supervisor\n"
                 "[1000] dispatch C#1 i1/2\n"
                 "[1000] D#1 started i1\n"
                 "[1000] D#1 handoff from supervisor\n"
                 "[1000] dispatch D#1 i1/3\n");
}

static void the_window_slides(void **state)
{
    struct rig *r = *state;
    rig_rate(r, "x", 2, 1000);
    rig_up(r, "x", 1, 8);
    rig_submit(r, "A");
    rig_until(r, 600);
    rig_submit(r, "B");
    const uint64_t c = rig_submit(r, "par: C; D");
    const struct step_wait w = core_step_wait(rig_core(r), c, 0);
    assert_int_equal(w.kind, WAIT_RATE);
    assert_int_equal(w.until, 1000);
    assert_int_equal(w.n, 2);
    rig_until(r, 1000);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
    rig_until(r, 1599);
    assert_int_equal(rig_status(r, "D"), STEP_READY);
    rig_until(r, 1600);
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
}

static void a_restart_forgets_no_start(void **state)
{
    struct rig *r = *state;
    rig_rate(r, "x", 1, 1000);
    rig_up(r, "x", 1, 8);
    rig_submit(r, "A");
    rig_submit(r, "B");
    rig_ok(r, "A");
    rig_restart(r, 500);
    rig_up(r, "x", 1, 8);
    rig_until(r, 999);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_until(r, 1000);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void the_rate_of_a_key_counts_steps_of_all_agents(void **state)
{
    struct rig *r = *state;
    rig_key(r, 0, 0, 2, 1000);
    rig_up(r, "x", 1, 8);
    rig_up(r, "y", 2, 8);
    const uint64_t run = rig_submit(r, "par: A(key=0); B@y(key=0); C(key=0); D@y");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "D"), STEP_IN_PROGRESS);
    const struct step_wait w = core_step_wait(rig_core(r), run, 2);
    assert_int_equal(w.kind, WAIT_RATE);
    assert_int_equal(w.until, 1000);
    assert_true(str_is(w.key, "0"));
    rig_until(r, 999);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_until(r, 1000);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void an_attempt_that_is_made_again_counts_again(void **state)
{
    struct rig *r = *state;
    rig_key(r, 0, 1, 1, 1000);
    rig_up(r, "x", 1, 8);
    rig_submit(r, "A(key=0 retries=1)");
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "not now");
    rig_until(r, 999);
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_until(r, 1000);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void the_rate_of_a_key_counts_starts_of_plans(void **state)
{
    struct rig *r = *state;
    rig_key(r, 0, 0, 1, 1000);
    rig_up(r, "x", 1, 8);
    rig_submit(r, "key=0: A");
    rig_submit(r, "key=0: B");
    rig_ok(r, "A");
    rig_restart(r, 500);
    rig_up(r, "x", 1, 8);
    rig_until(r, 999);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_until(r, 1000);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void another_rule_holds_from_now_on(void **state)
{
    struct rig *r = *state;
    rig_rate(r, "x", 1, 1000);
    rig_up(r, "x", 1, 8);
    rig_submit(r, "par: A; B; C");
    rig_rate(r, "x", 2, 1000);
    rig_until(r, 1);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_rate(r, "x", 0, 0);
    rig_until(r, 2);
    assert_int_equal(rig_status(r, "C"), STEP_IN_PROGRESS);
}

static void a_key_is_idle_when_nobody_has_it_and_its_window_is_over(void **state)
{
    struct rig *r = *state;
    rig_key(r, 0, 1, 1, 1000);
    rig_up(r, "x", 1, 8);
    assert_true(core_key_is_idle(rig_core(r), 0));
    rig_submit(r, "A(key=0)");
    assert_false(core_key_is_idle(rig_core(r), 0));
    rig_ok(r, "A");
    assert_false(core_key_is_idle(rig_core(r), 0));
    rig_submit(r, "B");
    rig_until(r, 1000);
    rig_ok(r, "B");
    assert_true(core_key_is_idle(rig_core(r), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_full_agent_takes_the_highest_priority_first),
        CORE_TEST(after_its_age_the_lowest_priority_goes_before_the_highest),
        CORE_TEST(two_plans_with_a_key_come_one_after_the_other),
        CORE_TEST(a_key_has_as_many_plans_as_places_and_not_one_more),
        CORE_TEST(the_key_goes_to_the_highest_priority),
        CORE_TEST(a_plan_that_skips_ends_when_its_key_is_taken),
        CORE_TEST(a_plan_that_cancels_ends_the_older_ones_and_begins_after_them),
        CORE_TEST(a_plan_that_is_undone_keeps_its_key_and_a_newer_one_waits_for_its_end),
        CORE_TEST(a_restart_keeps_who_has_the_key_and_who_waits),
        CORE_TEST(a_plan_that_waits_is_not_started_while_others_are_rebuilt),
        CORE_TEST(a_plan_on_hold_is_not_given_its_key),
        CORE_TEST(a_plan_that_waits_for_its_key_can_be_cancelled),
        CORE_TEST(a_sign_off_comes_before_the_key),
        CORE_TEST(steps_with_a_key_do_not_overlap),
        CORE_TEST(a_step_keeps_its_key_between_attempts),
        CORE_TEST(a_step_with_an_unknown_outcome_keeps_its_key_over_a_restart),
        CORE_TEST(a_step_without_a_lane_holds_nobody_up_for_long),
        CORE_TEST(a_pause_takes_a_step_out_of_the_line_of_its_key),
        CORE_TEST(the_end_of_a_plan_frees_the_keys_of_its_steps),
        CORE_TEST(an_agent_gets_n_in_its_window_and_the_next_one_at_its_end),
        CORE_TEST(the_window_slides),
        CORE_TEST(a_restart_forgets_no_start),
        CORE_TEST(the_rate_of_a_key_counts_steps_of_all_agents),
        CORE_TEST(an_attempt_that_is_made_again_counts_again),
        CORE_TEST(the_rate_of_a_key_counts_starts_of_plans),
        CORE_TEST(another_rule_holds_from_now_on),
        CORE_TEST(a_key_is_idle_when_nobody_has_it_and_its_window_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
