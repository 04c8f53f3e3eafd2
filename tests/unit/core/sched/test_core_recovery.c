/* How steps recover: fallbacks, handoffs, late results, time limits. */
#include <stdlib.h>

#include "tests/unit/core/plan/plan_text.h"
#include "tests/unit/core/sched/test_core.h"

static void a_rate_limited_step_waits_and_is_tried_once_more(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "fallbacks=5: A(retries=0)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_RATE_LIMITED, "429");
    RIG_TRACE(r, "[0] A#1 fallback wait_and_retry +2000 RATE_LIMITED: 429\n");
    rig_until(r, 1999);
    RIG_TRACE(r, "");
    rig_until(r, 2000);
    RIG_TRACE(r, "[2000] A#2 assigned i1\n"
                 "[2000] dispatch A#2 i1/0\n");
    rig_fail(r, "A", CLASS_RATE_LIMITED, "429");
    RIG_TRACE(r, "[2000] A#2 failed RATE_LIMITED: 429\n"
                 "[2000] plan failed/failed step: 429\n"
                 "[2000] run done\n");
}

static void the_wait_of_fallbacks_doubles_over_the_run(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "fallbacks=5: A; B; C");
    rig_fail(r, "A", CLASS_RATE_LIMITED, "429");
    rig_until(r, 2000);
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "B", CLASS_RATE_LIMITED, "429");
    rig_until(r, 6000);
    rig_ok(r, "B");
    RIG_TRACE(r, "[2000] B#1 fallback wait_and_retry +4000 RATE_LIMITED: 429\n"
                 "[6000] B#2 assigned i1\n"
                 "[6000] dispatch B#2 i1/0\n"
                 "[6000] B#2 completed\n"
                 "[6000] C#1 started i1\n"
                 "[6000] dispatch C#1 i1/0\n");
    rig_fail(r, "C", CLASS_SERVICE_UNAVAILABLE, "503");
    RIG_TRACE(r, "[6000] C#1 fallback wait_and_retry +2000 SERVICE_UNAVAILABLE: 503\n");
}

/* min(2^n * 1000, 30000), the count raised first (M042). */
static void the_wait_of_the_fifth_fallback_and_of_later_ones_is_thirty_seconds(void **state)
{
    static const msec waits[] = {2000, 4000, 8000, 16000, 30000, 30000, 30000};
    static const char *const steps[] = {"A", "B", "C", "D", "E", "F", "G"};
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "fallbacks=9: A; B; C; D; E; F; G; H");
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        const msec from = rig_now(r);
        rig_fail(r, steps[i], CLASS_RATE_LIMITED, "429");
        assert_int_equal(rig_run(r, run)->steps[i].deadline, from + waits[i]);
        rig_until(r, from + waits[i]);
        rig_ok(r, steps[i]);
    }
}

static void no_more_fallbacks_than_the_run_may_have(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "fallbacks=1: A; B");
    rig_fail(r, "A", CLASS_RATE_LIMITED, "429");
    rig_until(r, 2000);
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "B", CLASS_RATE_LIMITED, "429");
    RIG_TRACE(r, "[2000] B#1 failed RATE_LIMITED: 429\n"
                 "[2000] plan failed/failed step: 429\n"
                 "[2000] run done\n");
}

static void what_is_not_found_is_searched(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "finder", 2, 1);
    rig_submit(r, "fallbacks=5 search=finder: A; B");
    rig_forget(r);
    rig_fail(r, "A", CLASS_RESOURCE_NOT_FOUND, "no such page");
    RIG_TRACE(r, "[0] A#1 fallback search +0 RESOURCE_NOT_FOUND: no such page\n"
                 "[0] A#1 handoff from x to finder fallback\n"
                 "[0] A#2 assigned i2 search\n"
                 "[0] dispatch search A#2 i2/0\n");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#2 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from finder\n"
                 "[0] dispatch B#1 i1/0\n");
}

/* M042; whatever the search agent says, and when it says nothing. */
static void a_search_that_fails_leaves_the_steps_own_error(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct rig *r = rig_new();
        rig_up(r, "x", 1, 1);
        rig_up(r, "finder", 2, 1);
        rig_submit(r, "fallbacks=5 search=finder: A(timeout=500)");
        rig_fail(r, "A", CLASS_RESOURCE_NOT_FOUND, "no such page");
        rig_forget(r);
        if (way == 0) {
            rig_fail(r, "A", CLASS_PERMISSION_DENIED, "not for you");
            RIG_TRACE(r, "[0] A#2 failed RESOURCE_NOT_FOUND: no such page\n"
                         "[0] plan failed/failed step: no such page\n"
                         "[0] run done\n");
        } else if (way == 1) {
            rig_until(r, 499);
            RIG_TRACE(r, "");
            rig_until(r, 500);
            RIG_TRACE(r, "[500] A#2 failed RESOURCE_NOT_FOUND (fenced): no such page\n"
                         "[500] cancel A#2 i2\n"
                         "[500] plan failed/failed step: no such page\n"
                         "[500] run done\n");
        } else {
            rig_restart(r, 10); /* the run is rebuilt from its records */
            rig_forget(r);
            rig_until(r, 3600000);
            assert_int_equal(rig_status(r, "A"), STEP_FAILED);
        }
        rig_free(r);
    }
}

static void two_searches_at_once_keep_both_errors(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "finder", 2, 2);
    rig_submit(r, "par fallbacks=5 search=finder: A(continue); B(continue)");
    rig_fail(r, "A", CLASS_RESOURCE_NOT_FOUND, "no a");
    rig_fail(r, "B", CLASS_RESOURCE_NOT_FOUND, "no b");
    rig_forget(r);
    rig_fail(r, "A", CLASS_UNKNOWN, "nothing");
    RIG_TRACE(r, "[0] A#2 failed RESOURCE_NOT_FOUND: no a\n");
    rig_fail(r, "B", CLASS_UNKNOWN, "nothing");
    RIG_TRACE(r, "[0] B#2 failed RESOURCE_NOT_FOUND: no b\n"
                 "[0] plan failed/failed nothing_completed\n"
                 "[0] run done\n");
}

static void an_absent_agent_is_replaced_by_an_alternative(void **state)
{
    struct rig *r = *state;
    rig_up(r, "y", 2, 1);
    rig_submit(r, "fallbacks=5: A(alt=y)");
    rig_forget(r);
    rig_until(r, 10000);
    RIG_TRACE(r, "[10000] A#1 started\n"
                 "[10000] A#0 fallback alternative_agent +0 AGENT_UNAVAILABLE: No instance of "
                 "agent 'x' came within 10000 ms; there are: y\n"
                 "[10000] A#1 assigned i2\n"
                 "[10000] A#1 handoff from supervisor\n"
                 "[10000] dispatch A#1 i2/0\n");
    rig_ok(r, "A");
}

static void a_crashed_agent_is_replaced_when_its_retries_are_used_up(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "fallbacks=5: A(alt=y alt=z)");
    rig_forget(r);
    rig_instance(r, CORE_GONE, 1, "signal 9");
    RIG_TRACE(r, "[0] agent_down x i1: signal 9\n"
                 "[0] close epoch=1\n"
                 "[0] A#1 fallback alternative_agent +0 AGENT_CRASHED: Agent crashed: signal 9\n"
                 "[0] A#1 handoff from x to y fallback\n"
                 "[0] A#2 assigned i2\n"
                 "[0] dispatch A#2 i2/0\n");
}

static void an_unsafe_step_has_no_fallback_once_it_ran(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "fallbacks=5: A(unsafe alt=y)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "503");
    RIG_TRACE(r, "[0] A#1 failed SERVICE_UNAVAILABLE: 503\n"
                 "[0] plan failed/failed step: 503\n"
                 "[0] run done\n");
}

static void a_class_that_is_not_to_be_retried_is_not(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=3 noretry=TIMEOUT)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    RIG_TRACE(r, "[0] A#1 failed TIMEOUT: slow\n"
                 "[0] plan failed/failed step: slow\n"
                 "[0] run done\n");
}

static void on_failure_retry_repeats_what_its_class_would_not(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retry retries=1)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    rig_until(r, 100);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    RIG_TRACE(r, "[0] A#1 retry +100 VALIDATION_ERROR: bad\n"
                 "[100] A#2 assigned i1\n"
                 "[100] dispatch A#2 i1/0\n"
                 "[100] A#2 failed VALIDATION_ERROR: bad\n"
                 "[100] plan failed/failed step: bad\n"
                 "[100] run done\n");
}

/* ---- handoffs ---- */

static void an_agent_can_hand_its_step_to_another(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "grant=y handback: A; B");
    rig_forget(r);
    rig_handoff(r, "A", "y", "speaks French");
    RIG_TRACE(r, "[0] A#1 handoff from x to y agent_request: speaks French\n"
                 "[0] A#2 assigned i2\n"
                 "[0] dispatch A#2 i2/0\n");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#2 completed\n"
                 "[0] A#2 handoff from y to x handback\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n");
}

static void handoffs_do_not_go_in_circles(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "grant=y: A");
    rig_handoff(r, "A", "y", "");
    rig_forget(r);
    rig_handoff(r, "A", "x", "back to you");
    RIG_TRACE(
        r, "[0] A#2 failed VALIDATION_ERROR: Handoff refused: that agent has had this step before\n"
           "[0] plan failed/failed step: Handoff refused: that agent has had this step before\n"
           "[0] run done\n");
}

static void handoffs_go_to_granted_agents_and_not_too_often(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "y", 2, 1);
    rig_up(r, "stranger", 3, 1);
    rig_submit(r, "par handoffs=0 grant=y: A(continue); B(continue); C");
    rig_forget(r);
    rig_handoff(r, "A", "stranger", "");
    rig_handoff(r, "B", "y", "");
    RIG_TRACE(
        r,
        "[0] A#1 failed VALIDATION_ERROR: Handoff refused: the plan was not granted that agent\n"
        "[0] C#1 started i1\n"
        "[0] C#1 handoff from supervisor\n"
        "[0] dispatch C#1 i1/0\n"
        "[0] B#1 failed VALIDATION_ERROR: Handoff refused: the step was handed over too often\n");
    rig_handoff(r, "C", "nobody", "");
    RIG_TRACE(
        r, "[0] C#1 failed VALIDATION_ERROR: Handoff refused: the plan was not granted that agent\n"
           "[0] plan failed/failed step: Handoff refused: the plan was not granted that agent\n"
           "[0] run done\n");
}

/* ---- late results ---- */

static void a_late_result_counts_while_nothing_newer_has_finished(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(retries=1 timeout=500)");
    struct core_event late = rig_about(r, CORE_RESULT, "A");
    CORE_EV(&late, result)->result = (struct blob_ref){.id = 7, .len = 1};
    rig_until(r, 600);
    rig_forget(r);
    rig_event(r, late);
    RIG_TRACE(r, "[600] cancel A#2 i1\n"
                 "[600] A#2 completed (fenced)\n"
                 "[600] plan completed/success\n"
                 "[600] run done\n");
}

static void a_late_result_settles_what_a_person_is_asked_about(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=1 timeout=500)");
    const struct core_event late = rig_about(r, CORE_RESULT, "A");
    rig_until(r, 600);
    rig_forget(r);
    rig_event(r, late);
    RIG_TRACE(r, "[600] A#1 completed\n"
                 "[600] plan completed/success\n"
                 "[600] run done\n");
}

static void a_result_that_comes_after_a_newer_one_is_recorded_and_refused(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(retries=1 timeout=500); B");
    const struct core_event late = rig_about(r, CORE_RESULT, "A");
    rig_until(r, 600);
    rig_ok(r, "A");
    rig_forget(r);
    rig_event(r, late);
    RIG_TRACE(r, "[600] A#1 result rejected: it has ended\n"
                 "[600] reject: it has ended\n");
}

/* ---- time ---- */

static void silence_ends_an_attempt_and_progress_keeps_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(idle=1000 timeout=10000)");
    rig_until(r, 900);
    rig_event(r, rig_about(r, CORE_PROGRESS, "A"));
    rig_until(r, 1800);
    rig_forget(r);
    rig_until(r, 1900);
    RIG_TRACE(r, "[1900] A#1 failed TIMEOUT (fenced): No progress for 1000ms\n"
                 "[1900] cancel A#1 i1\n"
                 "[1900] plan failed/failed step: No progress for 1000ms\n"
                 "[1900] run done\n");
}

static void the_limit_of_a_step_covers_all_its_attempts(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(limit=1000 timeout=400 retries=9)");
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[400] A#1 retry +100 TIMEOUT: Step execution timeout\n"
                 "[400] cancel A#1 i1\n"
                 "[500] A#2 assigned i1\n"
                 "[500] dispatch A#2 i1/1\n"
                 "[900] A#2 retry +100 TIMEOUT: Step execution timeout\n"
                 "[900] cancel A#2 i1\n"
                 "[1000] A#2 failed TIMEOUT: Step limit of 1000ms reached\n"
                 "[1000] plan failed/failed step: Step limit of 1000ms reached\n"
                 "[1000] run done\n");
}

static void the_time_of_people_does_not_count_into_the_limit(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(limit=1000)");
    rig_until(r, 900);
    rig_needs(r, "A", STEP_OUTCOME_NEEDS_APPROVAL, "?");
    rig_until(r, 50000);
    rig_decide(r, "A", DECISION_APPROVE, "");
    rig_forget(r);
    rig_until(r, 50099);
    RIG_TRACE(r, "");
    rig_until(r, 50100); /* it went on where it stood */
    RIG_TRACE(r, "[50100] A#2 failed TIMEOUT (fenced): Step limit of 1000ms reached\n"
                 "[50100] cancel A#2 i1\n"
                 "[50100] plan failed/failed step: Step limit of 1000ms reached\n"
                 "[50100] run done\n");
}

static void no_room(struct commands *c)
{
    (void)c;
    abort();
}

/* plan_check refuses cycles; what gets past it must not hang (M026). */
static void a_cycle_that_nobody_checked_is_a_deadlock(void **state)
{
    (void)state;
    const struct core_config config = rig_config();
    struct core_cmd room[16];
    struct commands out = {.at = room, .cap = 16, .grow = no_room};
    void *mem = calloc(1, core_size(&config));
    struct core *core = core_init(mem, &config);
    struct plan *plan = plan_text_new("A; B<A", core_registry(core));
    plan->n_edges = 2; /* the second is A's, on B */
    plan->deps[1] = 1;
    plan->steps[0].deps_at = 1;
    plan->steps[0].deps_n = 1;
    plan_link(plan);
    void *block = calloc(1, core_run_size(plan));
    const struct core_event ev = {CORE_EV_INIT(SUBMIT, submit, .plan = plan, .block = block)};
    core_handle(core, &ev, &out);
    const struct record *end = &out.at[out.n - 2].rec;
    assert_int_equal(end->type, REC_PLAN_COMPLETED);
    assert_int_equal(REC(end, plan_completed)->failure, PLAN_FAILURE_DEADLOCK);
    assert_memory_equal(end->text.ptr, "Deadlock: no steps ready and none in progress",
                        end->text.len);
    assert_int_equal(core_runs_open(core), 0);
    plan_text_free(plan);
    free(block);
    free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_rate_limited_step_waits_and_is_tried_once_more),
        CORE_TEST(the_wait_of_fallbacks_doubles_over_the_run),
        CORE_TEST(the_wait_of_the_fifth_fallback_and_of_later_ones_is_thirty_seconds),
        CORE_TEST(no_more_fallbacks_than_the_run_may_have),
        CORE_TEST(what_is_not_found_is_searched),
        cmocka_unit_test(a_search_that_fails_leaves_the_steps_own_error),
        CORE_TEST(two_searches_at_once_keep_both_errors),
        CORE_TEST(an_absent_agent_is_replaced_by_an_alternative),
        CORE_TEST(a_crashed_agent_is_replaced_when_its_retries_are_used_up),
        CORE_TEST(an_unsafe_step_has_no_fallback_once_it_ran),
        CORE_TEST(a_class_that_is_not_to_be_retried_is_not),
        CORE_TEST(on_failure_retry_repeats_what_its_class_would_not),
        CORE_TEST(an_agent_can_hand_its_step_to_another),
        CORE_TEST(handoffs_do_not_go_in_circles),
        CORE_TEST(handoffs_go_to_granted_agents_and_not_too_often),
        CORE_TEST(a_late_result_counts_while_nothing_newer_has_finished),
        CORE_TEST(a_late_result_settles_what_a_person_is_asked_about),
        CORE_TEST(a_result_that_comes_after_a_newer_one_is_recorded_and_refused),
        CORE_TEST(silence_ends_an_attempt_and_progress_keeps_it),
        CORE_TEST(the_limit_of_a_step_covers_all_its_attempts),
        CORE_TEST(the_time_of_people_does_not_count_into_the_limit),
        CORE_TEST(a_cycle_that_nobody_checked_is_a_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
