/* Why a step does not move. */
#include "tests/unit/core/sched/test_core.h"

static struct step_wait wait_of(struct rig *r, const char *step)
{
    const struct core_event about = rig_about(r, CORE_RESULT, step);
    return core_step_wait(rig_core(r), about.run, about.step);
}

static void waits_for(struct rig *r, const char *step, const char *kind)
{
    assert_string_equal(wait_kind_name(wait_of(r, step).kind), kind);
}

static void what_moves_or_is_over_waits_for_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A; B");
    waits_for(r, "A", "nothing");
    rig_ok(r, "A");
    waits_for(r, "A", "nothing");
    assert_int_equal(core_step_wait(rig_core(r), 12345, 0).kind, WAIT_NOTHING);
    assert_int_equal(core_step_wait(rig_core(r), core_newest_run(rig_core(r)), 9).kind,
                     WAIT_NOTHING);
}

static void a_pending_step_waits_for_its_first_open_dependency(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A; B; C; D<A,B,C");
    rig_ok(r, "A");
    const struct step_wait w = wait_of(r, "D");
    assert_int_equal(w.kind, WAIT_DEPENDENCY);
    assert_int_equal(w.n, 2);
    assert_int_equal(w.step, 1);
}

static void a_ready_step_waits_for_a_place_an_agent_or_a_lane(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "par max=3: A; B; C@y; D");
    struct step_wait w = wait_of(r, "B");
    assert_int_equal(w.kind, WAIT_LANE);
    assert_int_equal(w.n, 1);
    w = wait_of(r, "C");
    assert_int_equal(w.kind, WAIT_AGENT);
    assert_int_equal(w.agent, 1);
    w = wait_of(r, "D");
    assert_int_equal(w.kind, WAIT_CONCURRENCY);
    assert_int_equal(w.n, 3);
}

static void the_limits_in_flight_are_told(void **state)
{
    struct core_config config = rig_config();
    (void)state;
    for (int i = 0; i < 3; i++) {
        config.in_flight = i == 0 ? 1 : 0;
        config.in_flight_agent = i == 1 ? 1 : 0;
        config.in_flight_session = i == 2 ? 1 : 0;
        struct rig *r = rig_new_with(&config);
        rig_up(r, "x", 1, 4);
        rig_submit(r, "par: A; B");
        const struct step_wait w = wait_of(r, "B");
        assert_int_equal(w.kind, WAIT_LIMIT);
        assert_int_equal(w.n, 1);
        rig_free(r);
    }
}

static void waits_of_attempts_say_until_when(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "par: A(retries=1 backoff=700); B; C");
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    struct step_wait w = wait_of(r, "A");
    assert_int_equal(w.kind, WAIT_BACKOFF);
    assert_int_equal(w.until, 700);
    rig_lost(r, "B", true);
    w = wait_of(r, "B");
    assert_int_equal(w.kind, WAIT_REPLY);
    assert_int_equal(w.until, 5000);
    rig_needs(r, "C", STEP_OUTCOME_NEEDS_INPUT, "which?");
    w = wait_of(r, "C");
    assert_int_equal(w.kind, WAIT_PERSON);
    assert_int_equal(w.review, REVIEW_INPUT);
    assert_true(w.until == MSEC_NEVER);
}

static void what_others_have_reserved_is_waited_for(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "par budget=100: A(est=60); B(est=60)");
    waits_for(r, "B", "budget");
}

static void a_hold_is_told_of_what_would_go_on_without_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "par: A(retries=1 backoff=700); B; C<B");
    rig_plan_event(r, CORE_PAUSE, run, "");
    waits_for(r, "A", "nothing"); /* what is out goes on */
    waits_for(r, "B", "paused");
    waits_for(r, "C", "dependency");
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    waits_for(r, "A", "backoff");
    rig_until(r, 700);
    waits_for(r, "A", "paused");
}

static void a_replan_is_waited_for(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "p", 2, 1);
    rig_submit(r, "par replan=p cooldown=500 replantime=9000: A(replan); B; C");
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    struct step_wait w = wait_of(r, "A");
    assert_int_equal(w.kind, WAIT_REPLAN);
    assert_int_equal(w.until, 500);
    waits_for(r, "B", "replan");
    rig_until(r, 500);
    waits_for(r, "A", "nothing"); /* the replanner has the question */
    waits_for(r, "B", "replan");
}

static void a_question_waits_for_the_agent_that_it_is_asked_of(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "par: A(verify=v check=5000)");
    rig_ok(r, "A");
    const struct step_wait w = wait_of(r, "A");
    assert_int_equal(w.kind, WAIT_AGENT);
    assert_int_equal(w.agent, 1);
    rig_up(r, "v", 2, 1);
    waits_for(r, "A", "nothing");
}

static void a_plan_that_waits_for_its_sign_off_is_paused(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "signoff: A; B");
    waits_for(r, "A", "paused");
    waits_for(r, "B", "dependency");
}

static void an_open_breaker_is_told_with_the_time_of_its_next_try(void **state)
{
    struct core_config config = rig_config();
    config.registry.breaker_failures = 2;
    config.registry.breaker_cooldown_ms = 1000;
    config.registry.breaker_cooldown_max_ms = 4000;
    config.registry.breaker_probe_ms = 500;
    struct rig *r = rig_new_with(&config);
    (void)state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(retries=5)");
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    rig_until(r, 100);
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    rig_until(r, 300);
    const struct step_wait w = wait_of(r, "A");
    assert_int_equal(w.kind, WAIT_BREAKER);
    assert_int_equal(w.until, 1100);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(what_moves_or_is_over_waits_for_nothing),
        CORE_TEST(a_pending_step_waits_for_its_first_open_dependency),
        CORE_TEST(a_ready_step_waits_for_a_place_an_agent_or_a_lane),
        cmocka_unit_test(the_limits_in_flight_are_told),
        CORE_TEST(waits_of_attempts_say_until_when),
        CORE_TEST(what_others_have_reserved_is_waited_for),
        CORE_TEST(a_hold_is_told_of_what_would_go_on_without_it),
        CORE_TEST(a_replan_is_waited_for),
        CORE_TEST(a_plan_that_waits_for_its_sign_off_is_paused),
        cmocka_unit_test(an_open_breaker_is_told_with_the_time_of_its_next_try),
        CORE_TEST(a_question_waits_for_the_agent_that_it_is_asked_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
