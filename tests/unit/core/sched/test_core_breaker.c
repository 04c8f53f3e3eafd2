/* Steps and breakers: who waits, what is asked, and that nobody waits longer than that. Two
 * failures in a row open an instance, four an agent. */
#include "tests/unit/core/sched/test_core.h"

#include "supervisor/core/sched/core_internal.h"

static int setup(void **state)
{
    struct core_config config = rig_config();
    config.registry.breaker_failures = 2;
    config.registry.breaker_cooldown_ms = 1000;
    config.registry.breaker_cooldown_max_ms = 4000;
    config.registry.breaker_probe_ms = 500;
    *state = rig_new_with(&config);
    return 0;
}

static struct instance_view view_of(struct rig *r, uint8_t instance, uint32_t *ret_slot)
{
    struct instance_view v;
    *ret_slot =
        registry_instance(core_registry(rig_core(r)), (struct uuid){.b = {[15] = instance}});
    assert_true(registry_instance_view(core_registry(rig_core(r)), *ret_slot, &v));
    return v;
}

/* As if an attempt of the instance had ended so; the next event finds it. */
static void ended(struct rig *r, uint8_t instance, enum err_class cls, uint32_t times)
{
    uint32_t slot;
    const uint64_t epoch = view_of(r, instance, &slot).epoch;
    for (uint32_t i = 0; i < times; i++) {
        core_breaker_result(rig_core(r), slot, epoch, cls);
    }
}

static void answer(struct rig *r, uint8_t instance, bool ok)
{
    uint32_t slot;
    const uint64_t epoch = view_of(r, instance, &slot).epoch;
    rig_event(r, (struct core_event){CORE_EV_INIT(PROBED, probed, .ok = ok), .slot = slot,
                                     .epoch = epoch});
}

static enum breaker_state breaker_of(struct rig *r, uint8_t instance)
{
    uint32_t slot;
    return view_of(r, instance, &slot).breaker.state;
}

static void work_goes_to_the_other_instance(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_up(r, "x", 2, 1);
    ended(r, 1, CLASS_SERVICE_UNAVAILABLE, 2);
    rig_forget(r);
    rig_submit(r, "A");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_about(r, CORE_RESULT, "A").slot, 1);
}

static void a_step_waits_for_the_breaker_and_starts_when_the_probe_is_answered(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    ended(r, 1, CLASS_TIMEOUT, 2);
    const uint64_t run = rig_submit(r, "A; B; C");
    const struct step_wait why = core_step_wait(rig_core(r), run, 0);
    assert_int_equal(rig_status(r, "A"), STEP_READY);
    assert_int_equal(why.kind, WAIT_BREAKER);
    assert_int_equal(why.agent, 0);
    assert_int_equal(why.until, 1000);
    rig_until(r, 999);
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] probe i1\n");
    assert_int_equal(rig_status(r, "A"), STEP_READY);
    answer(r, 1, true);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    ended(r, 1, CLASS_NONE, 1);
    rig_ok(r, "A");
    assert_int_equal(breaker_of(r, 1), BREAKER_CLOSED);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void the_trial_is_one_attempt_though_more_lanes_are_free(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    ended(r, 1, CLASS_TIMEOUT, 2);
    rig_submit(r, "A");
    rig_submit(r, "B");
    rig_until(r, 1000);
    answer(r, 1, true);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    assert_int_equal(breaker_of(r, 1), BREAKER_TRIAL);
    ended(r, 1, CLASS_NONE, 1);
    rig_ok(r, "A");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void a_failed_trial_is_followed_by_a_longer_pause(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    ended(r, 1, CLASS_TIMEOUT, 2);
    rig_submit(r, "A(retries=1)");
    rig_until(r, 1000);
    answer(r, 1, true);
    ended(r, 1, CLASS_SERVICE_UNAVAILABLE, 1);
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "busy");
    assert_int_equal(breaker_of(r, 1), BREAKER_OPEN);
    rig_until(r, 2999);
    rig_forget(r);
    rig_until(r, 3000);
    RIG_TRACE(r, "[3000] probe i1\n");
}

static void a_probe_that_fails_or_has_no_answer_is_asked_again_later(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    ended(r, 1, CLASS_TIMEOUT, 2);
    rig_submit(r, "A");
    rig_until(r, 1000);
    answer(r, 1, false);
    rig_forget(r);
    rig_until(r, 3000);
    RIG_TRACE(r, "[3000] probe i1\n");
    rig_until(r, 3500);
    answer(r, 1, true); /* too late */
    assert_int_equal(rig_status(r, "A"), STEP_READY);
    rig_until(r, 7500);
    RIG_TRACE(r, "[7500] probe i1\n");
    answer(r, 1, true);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void an_open_agent_asks_one_instance_and_tries_one_step(void **state)
{
    struct rig *r = *state;
    for (uint8_t i = 1; i <= 4; i++) {
        rig_up(r, "x", i, 1);
        ended(r, i, CLASS_REPLY_LOST, 1);
    }
    rig_submit(r, "A");
    rig_submit(r, "B");
    assert_int_equal(rig_status(r, "A"), STEP_READY);
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] probe i1\n");
    answer(r, 1, true);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    ended(r, 1, CLASS_NONE, 1);
    rig_until(r, 1001);
    rig_instance(r, CORE_SEEN, 1, "");
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

/* The instance of the trial goes: whoever is left gets the next one, without waiting for anything.
 */
static void a_trial_that_dies_leaves_its_place_to_another_at_once(void **state)
{
    struct rig *r = *state;
    for (uint8_t i = 1; i <= 4; i++) {
        rig_up(r, "x", i, 1);
        ended(r, i, CLASS_REPLY_LOST, 1);
    }
    rig_submit(r, "A");
    rig_submit(r, "B");
    rig_until(r, 1000);
    answer(r, 1, true);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_register(r, "x", 1, 1); /* core_invariant: nobody waits while a lane is free */
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static uint32_t failures_of(struct rig *r, uint8_t instance)
{
    uint32_t slot;
    return view_of(r, instance, &slot).breaker.failures;
}

static void answers_timeouts_and_losses_are_told_to_the_breaker(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(retries=9 backoff=1 timeout=100)");
    rig_fail(r, "A", CLASS_TIMEOUT, "slow");
    assert_int_equal(failures_of(r, 1), 1);
    rig_until(r, 50);
    rig_fail(r, "A", CLASS_UNKNOWN, "a bug");
    assert_int_equal(failures_of(r, 1), 0);
    rig_until(r, 80);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_until(r, 160);
    assert_int_equal(failures_of(r, 1), 1); /* no answer within 100 ms */
    rig_ok(r, "A");
    assert_int_equal(failures_of(r, 1), 0);
    rig_submit(r, "B");
    rig_lost(r, "B", true);
    assert_int_equal(failures_of(r, 1), 1);
}

static void an_answer_of_an_incarnation_of_before_is_refused(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    ended(r, 1, CLASS_TIMEOUT, 2);
    rig_until(r, 1000);
    uint32_t slot;
    const uint64_t before = view_of(r, 1, &slot).epoch;
    rig_register(r, "x", 1, 1);
    rig_forget(r);
    rig_event(r, (struct core_event){CORE_EV_INIT(PROBED, probed, .ok = true), .slot = slot,
                                     .epoch = before});
    RIG_TRACE(r, "[1000] reject: this incarnation of the instance was replaced or is gone\n");
    assert_int_equal(breaker_of(r, 1), BREAKER_CLOSED);
}

static void results_of_attempts_that_this_daemon_never_saw_say_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    for (int i = 0; i < 10; i++) {
        core_breaker_result(rig_core(r), REGISTRY_NONE, 1, CLASS_TIMEOUT);
        core_breaker_result(rig_core(r), 0, 99, CLASS_TIMEOUT);
    }
    assert_int_equal(registry_agent_view(core_registry(rig_core(r)), 0).breaker.failures, 0);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, setup, core_test_teardown)
    const struct CMUnitTest tests[] = {
        RULE(work_goes_to_the_other_instance),
        RULE(a_step_waits_for_the_breaker_and_starts_when_the_probe_is_answered),
        RULE(the_trial_is_one_attempt_though_more_lanes_are_free),
        RULE(a_failed_trial_is_followed_by_a_longer_pause),
        RULE(a_probe_that_fails_or_has_no_answer_is_asked_again_later),
        RULE(an_open_agent_asks_one_instance_and_tries_one_step),
        RULE(a_trial_that_dies_leaves_its_place_to_another_at_once),
        RULE(answers_timeouts_and_losses_are_told_to_the_breaker),
        RULE(an_answer_of_an_incarnation_of_before_is_refused),
        RULE(results_of_attempts_that_this_daemon_never_saw_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
