/* What a failed attempt leads to: retries, backoff, timeouts, on_failure. */
#include "tests/unit/core/sched/test_core.h"

static void two_retries_are_three_attempts_with_linear_waits(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=2 linear=1000)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_TIMEOUT, "one");
    rig_until(r, 1000);
    rig_fail(r, "A", CLASS_TIMEOUT, "two");
    rig_until(r, 3000);
    rig_fail(r, "A", CLASS_TIMEOUT, "three");
    RIG_TRACE(r, "[0] A#1 retry +1000 TIMEOUT: one\n"
                 "[1000] A#2 assigned i1\n"
                 "[1000] dispatch A#2 i1/0\n"
                 "[1000] A#2 retry +2000 TIMEOUT: two\n"
                 "[3000] A#3 assigned i1\n"
                 "[3000] dispatch A#3 i1/0\n"
                 "[3000] A#3 failed TIMEOUT: three\n"
                 "[3000] plan failed/failed step: three\n"
                 "[3000] run done\n");
}

static void a_class_that_is_not_retryable_fails_at_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=2)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad input");
    RIG_TRACE(r, "[0] A#1 failed VALIDATION_ERROR: bad input\n"
                 "[0] plan failed/failed step: bad input\n"
                 "[0] run done\n");
}

static void fail_with_word(struct rig *r, bool retryable, enum err_class c, msec retry_after_ms)
{
    struct core_event ev = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(&ev, result)->error_class = c;
    CORE_EV(&ev, result)->retryable_given = true;
    CORE_EV(&ev, result)->retryable = retryable;
    CORE_EV(&ev, result)->retry_after_ms = retry_after_ms;
    ev.text = STR_LIT("e");
    rig_event(r, ev);
}

static void the_agents_word_on_retrying_beats_the_class(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=2)");
    fail_with_word(r, true, CLASS_VALIDATION_ERROR, 0);
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_until(r, 100);
    fail_with_word(r, false, CLASS_TIMEOUT, 0);
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void a_class_of_retry_on_is_retried_whatever_its_default_and_the_agent_say(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=2 retryon=RESOURCE_NOT_FOUND)");
    rig_fail(r, "A", CLASS_RESOURCE_NOT_FOUND, "e");
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_until(r, 100);
    fail_with_word(r, false, CLASS_RESOURCE_NOT_FOUND, 0);
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_until(r, 200);
    fail_with_word(r, false, CLASS_VALIDATION_ERROR, 0); /* not of the list */
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void retry_on_ends_with_the_retries_and_gives_way_to_no_retry(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1 continue retryon=VALIDATION_ERROR); B(retries=1 "
                  "retryon=VALIDATION_ERROR noretry=VALIDATION_ERROR)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "e");
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_until(r, 100);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "e");
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "e");
    assert_int_equal(rig_status(r, "B"), STEP_FAILED);
}

static void retry_on_does_not_repeat_an_unsafe_step(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=2 retryon=VALIDATION_ERROR)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "e");
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void retry_after_prolongs_the_backoff_up_to_the_pause_that_the_plan_grants(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=3)");
    rig_forget(r);
    fail_with_word(r, true, CLASS_RATE_LIMITED, 700);
    RIG_TRACE(r, "[0] A#1 retry +700 RATE_LIMITED: e\n");
    rig_until(r, 700);
    rig_forget(r);
    fail_with_word(r, true, CLASS_RATE_LIMITED, 5);
    RIG_TRACE(r, "[700] A#2 retry +100 RATE_LIMITED: e\n");
    rig_until(r, 800);
    rig_forget(r);
    fail_with_word(r, true, CLASS_RATE_LIMITED, PLAN_MAX_PAUSE_MS);
    RIG_TRACE(r, "[800] A#3 retry +300000 RATE_LIMITED: e\n");
}

static void a_longer_pause_than_the_plan_grants_fails_the_step_and_says_so(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "fallbacks=5: A(retries=3)");
    rig_forget(r);
    fail_with_word(r, true, CLASS_RATE_LIMITED, PLAN_MAX_PAUSE_MS + 1);
    RIG_TRACE(r, "[0] A#1 failed RATE_LIMITED: The agent asks for a pause of 300001 ms, at most "
                 "300000 ms (maxPauseMs): e\n"
                 "[0] plan failed/failed step: The agent asks for a pause of 300001 ms, at most "
                 "300000 ms (maxPauseMs): e\n"
                 "[0] run done\n");
}

static void a_pause_without_end_is_no_pause(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "maxpause=50: A(retries=3)");
    rig_forget(r);
    fail_with_word(r, true, CLASS_RATE_LIMITED, UINT64_C(1) << 63);
    RIG_TRACE(r, "[0] A#1 failed RATE_LIMITED: The agent asks for a pause of 9223372036854775808 "
                 "ms, at most 50 ms (maxPauseMs): e\n"
                 "[0] plan failed/failed step: The agent asks for a pause of 9223372036854775808 "
                 "ms, at most 50 ms (maxPauseMs): e\n"
                 "[0] run done\n");
}

/* The other agent did not ask for anything. */
static void a_longer_pause_than_the_plan_grants_leaves_the_alternative_agent(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    const uint64_t run = rig_submit(r, "fallbacks=5 maxpause=50: A(retries=3 alt=y)");
    fail_with_word(r, true, CLASS_SERVICE_UNAVAILABLE, 51);
    assert_int_equal(rig_run(r, run)->steps[0].alternative, 1);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void a_pause_shows_whether_the_agent_asked_for_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "fallbacks=5: A(retries=1); B(retries=0)");
    fail_with_word(r, true, CLASS_RATE_LIMITED, 101);
    struct step_wait w = core_step_wait(rig_core(r), run, 0);
    assert_int_equal(w.kind, WAIT_BACKOFF);
    assert_int_equal(w.agent, rig_plan(r, run)->steps[0].agent);
    assert_int_equal(w.until, 101);
    rig_until(r, 101);
    fail_with_word(r, true, CLASS_RATE_LIMITED, 2000); /* as long as the fallback's own wait */
    w = core_step_wait(rig_core(r), run, 0);
    assert_int_equal(w.agent, AGENT_NONE);
    assert_int_equal(w.until, 2101);
}

static enum step_status after_pause(const char *plan, msec pause)
{
    struct rig *r = rig_new();
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, plan);
    fail_with_word(r, true, CLASS_RATE_LIMITED, pause);
    const enum step_status status = rig_run(r, run) == NULL
                                        ? STEP_FAILED /* and its plan with it */
                                        : (enum step_status)rig_run(r, run)->steps[0].status;
    rig_free(r);
    return status;
}

/* Its cause is told, not that time ran out. */
static void a_pause_that_the_plan_or_the_step_does_not_outlast_is_not_waited_for(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "timeout=500 fallbacks=5: A(retries=3)");
    rig_forget(r);
    fail_with_word(r, true, CLASS_RATE_LIMITED, 500);
    RIG_TRACE(r, "[0] A#1 failed RATE_LIMITED: e\n"
                 "[0] plan failed/failed step: e\n"
                 "[0] run done\n");
    assert_int_equal(after_pause("timeout=500: A(retries=3)", 499), STEP_BACKOFF);
    assert_int_equal(after_pause("A(retries=3 limit=300)", 300), STEP_FAILED);
    assert_int_equal(after_pause("A(retries=3 limit=300)", 299), STEP_BACKOFF);
    assert_int_equal(after_pause("timeout=2000 fallbacks=5: A(retries=0)", 1), STEP_FAILED);
    assert_int_equal(after_pause("timeout=2001 fallbacks=5: A(retries=0)", 1), STEP_BACKOFF);
}

static void jitter_is_drawn_from_the_seed(void **state)
{
    (void)state;
    msec delays[2][3];
    for (int round = 0; round < 2; round++) {
        struct rig *r = rig_new();
        rig_up(r, "x", 1, 1);
        const uint64_t run = rig_submit(r, "A(retries=3 backoff=1000 jitter=500)");
        for (int i = 0; i < 3; i++) {
            rig_fail(r, "A", CLASS_TIMEOUT, "e");
            const msec due = rig_run(r, run)->steps[0].deadline;
            delays[round][i] = due - rig_now(r);
            assert_in_range(delays[round][i], 1000, 1500);
            rig_until(r, due);
        }
        rig_free(r);
    }
    assert_memory_equal(delays[0], delays[1], sizeof delays[0]);
    assert_true(delays[0][0] != delays[0][1] || delays[0][1] != delays[0][2]);
}

static void an_empty_error_still_says_something(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    rig_fail(r, "A", CLASS_UNKNOWN, "");
    RIG_TRACE(r, "[0] A#1 failed UNKNOWN: Unknown error after retries\n"
                 "[0] plan failed/failed step: Unknown error after retries\n"
                 "[0] run done\n");
}

static void a_timeout_cancels_at_the_instance_and_retries(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(retries=1 timeout=500)");
    rig_forget(r);
    rig_until(r, 600);
    /* Lane 0 is still out: the second attempt goes over lane 1. */
    RIG_TRACE(r, "[500] A#1 retry +100 TIMEOUT: Step execution timeout\n"
                 "[500] cancel A#1 i1\n"
                 "[600] A#2 assigned i1\n"
                 "[600] dispatch A#2 i1/1\n");
    rig_until(r, 1100);
    RIG_TRACE(r, "[1100] A#2 failed TIMEOUT (fenced): Step execution timeout\n"
                 "[1100] cancel A#2 i1\n"
                 "[1100] plan failed/failed step: Step execution timeout\n"
                 "[1100] run done\n");
}

static void the_lane_of_a_timed_out_attempt_is_not_used_until_it_answers(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1 timeout=500)");
    struct core_event late = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&late, result)->outcome = STEP_OUTCOME_FAILED;
    rig_until(r, 700);
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF); /* due, but no lane */
    rig_forget(r);
    rig_event(r, late);
    RIG_TRACE(r, "[700] A#1 result rejected: this attempt is not the current one\n"
                 "[700] reject: this attempt is not the current one\n"
                 "[700] A#2 assigned i1\n"
                 "[700] dispatch A#2 i1/0\n");
}

static void an_answer_that_fits_nothing_frees_its_lane(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(timeout=500)");
    rig_submit(r, "B");
    struct core_event ev = rig_about(r, CORE_LANE_FREE, "A");
    rig_until(r, 500);
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_event(r, ev);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void an_unsafe_step_that_timed_out_asks_a_person_instead_of_running_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A(unsafe retries=2 timeout=500)");
    rig_forget(r);
    rig_until(r, 500);
    RIG_TRACE(r, "[500] A#1 waiting unknown_outcome: Step execution timeout\n"
                 "[500] plan_paused review\n"
                 "[500] cancel A#1 i1\n");
    assert_int_equal(rig_run(r, run)->status, PLAN_WAITING);
}

static void an_unsafe_step_runs_again_after_a_failure_only_on_the_agents_word(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=2 continue); B");
    fail_with_word(r, true, CLASS_SERVICE_UNAVAILABLE, 0);
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_until(r, 100);
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "e"); /* the class alone is not enough */
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void abort_fails_the_plan_and_cancels_what_is_under_way(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "par max=3: A; B; C; D");
    rig_forget(r);
    rig_fail(r, "B", CLASS_PERMISSION_DENIED, "no");
    RIG_TRACE(r, "[0] B#1 failed PERMISSION_DENIED: no\n"
                 "[0] A#1 cancelled plan_aborted CANCELLED (fenced): no\n"
                 "[0] cancel A#1 i1\n"
                 "[0] plan failed/failed step: no\n"
                 "[0] run done\n");
    assert_int_equal(rig_status(r, "C"), STEP_CANCELLED); /* queued */
    assert_int_equal(rig_status(r, "D"), STEP_CANCELLED); /* ready */
}

static void continue_goes_on_and_the_plan_is_partial(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "par: A(continue); B");
    rig_forget(r);
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    rig_ok(r, "B");
    RIG_TRACE(r, "[0] A#1 failed PERMISSION_DENIED: no\n"
                 "[0] B#1 completed\n"
                 "[0] plan completed/partial\n"
                 "[0] run done\n");
}

static void an_attempt_without_a_timeout_waits_as_long_as_its_instance_lives(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_until(r, 100000);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void a_result_counts_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B");
    const struct core_event again = rig_about(r, CORE_RESULT, "A");
    rig_ok(r, "A");
    rig_forget(r);
    struct core_event other = again;
    other.lane = LANE_NONE; /* told once more, over the control socket */
    rig_event(r, other);
    RIG_TRACE(r, "[0] reject: it has ended\n");
    rig_ok(r, "B");
    assert_null(rig_run(r, run));
    rig_forget(r);
    rig_event(r, other);
    RIG_TRACE(r, "[0] reject: no open plan has this handle\n");
}

static void results_of_other_attempts_instances_and_steps_change_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "x", 2, 1);
    rig_submit(r, "A(retries=3 backoff=0)");
    const struct core_event first = rig_about(r, CORE_RESULT, "A");
    rig_fail(r, "A", CLASS_TIMEOUT, "e");
    rig_until(r, 1);
    struct core_event ev = first;
    ev.lane = LANE_NONE;
    rig_forget(r);
    rig_event(r, ev);
    RIG_TRACE(r, "[1] reject: this attempt is not the current one\n");
    ev = rig_about(r, CORE_RESULT, "A");
    ev.lane = LANE_NONE;
    ev.attempt = 0;
    rig_event(r, ev);
    RIG_TRACE(r, "[1] reject: this attempt is not the current one\n");
    ev.attempt = 2;
    ev.slot = 1 - ev.slot;
    ev.epoch = ev.slot == 0 ? 1 : 2;
    rig_event(r, ev);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_forget(r);
    ev = rig_about(r, CORE_RESULT, "A");
    ev.lane = LANE_NONE;
    ev.instance = (struct uuid){.b = {[15] = 99}};
    rig_event(r, ev);
    RIG_TRACE(r, "[1] reject: it belongs to another instance or agent\n");
    ev.instance = (struct uuid){0};
    ev.step = 77;
    rig_event(r, ev);
    RIG_TRACE(r, "[1] reject: this attempt is not the current one\n");
    ev.run = 12345;
    rig_event(r, ev);
    RIG_TRACE(r, "[1] reject: no open plan has this handle\n");
}

static void progress_is_recorded_ten_times_a_second_at_most(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    struct core_event ev = rig_about(r, CORE_PROGRESS, "A");
    for (int i = 0; i < 10; i++) {
        rig_event(r, ev);
        RIG_TRACE(r, "[0] A#1 progress\n");
    }
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: too often\n");
    rig_until(r, 1000);
    rig_event(r, ev);
    RIG_TRACE(r, "[1000] A#1 progress\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(two_retries_are_three_attempts_with_linear_waits),
        CORE_TEST(a_class_that_is_not_retryable_fails_at_once),
        CORE_TEST(the_agents_word_on_retrying_beats_the_class),
        CORE_TEST(a_class_of_retry_on_is_retried_whatever_its_default_and_the_agent_say),
        CORE_TEST(retry_on_ends_with_the_retries_and_gives_way_to_no_retry),
        CORE_TEST(retry_on_does_not_repeat_an_unsafe_step),
        CORE_TEST(retry_after_prolongs_the_backoff_up_to_the_pause_that_the_plan_grants),
        CORE_TEST(a_longer_pause_than_the_plan_grants_fails_the_step_and_says_so),
        CORE_TEST(a_pause_without_end_is_no_pause),
        CORE_TEST(a_longer_pause_than_the_plan_grants_leaves_the_alternative_agent),
        CORE_TEST(a_pause_shows_whether_the_agent_asked_for_it),
        CORE_TEST(a_pause_that_the_plan_or_the_step_does_not_outlast_is_not_waited_for),
        cmocka_unit_test(jitter_is_drawn_from_the_seed),
        CORE_TEST(an_empty_error_still_says_something),
        CORE_TEST(a_timeout_cancels_at_the_instance_and_retries),
        CORE_TEST(the_lane_of_a_timed_out_attempt_is_not_used_until_it_answers),
        CORE_TEST(an_answer_that_fits_nothing_frees_its_lane),
        CORE_TEST(an_unsafe_step_that_timed_out_asks_a_person_instead_of_running_again),
        CORE_TEST(an_unsafe_step_runs_again_after_a_failure_only_on_the_agents_word),
        CORE_TEST(abort_fails_the_plan_and_cancels_what_is_under_way),
        CORE_TEST(continue_goes_on_and_the_plan_is_partial),
        CORE_TEST(an_attempt_without_a_timeout_waits_as_long_as_its_instance_lives),
        CORE_TEST(a_result_counts_once),
        CORE_TEST(results_of_other_attempts_instances_and_steps_change_nothing),
        CORE_TEST(progress_is_recorded_ten_times_a_second_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
