/* What a reload of the configuration sets anew while plans are open. */
#include "tests/unit/core/sched/test_core.h"

/* rig_config: agents are waited for 10,000 ms, a cancelled attempt has 1,000. */
static struct core_tuning as_the_rig(void)
{
    const struct core_config config = rig_config();
    return (struct core_tuning){.agent_wait_ms = config.agent_wait_ms,
                                .unknown_wait_ms = config.unknown_wait_ms,
                                .cancel_grace_ms = config.cancel_grace_ms,
                                .lease_ms = config.registry.lease_ms,
                                .suspect_ms = config.registry.suspect_ms};
}

static void a_cancelled_attempt_has_the_new_time_to_stop(void **state)
{
    struct rig *r = *state;
    struct core_tuning to = as_the_rig();
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A");
    to.cancel_grace_ms = 300;
    core_retune(rig_core(r), &to);
    rig_cancel(r, run, "no longer needed");
    rig_until(r, 299);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_until(r, 300);
    assert_int_equal(core_runs_open(rig_core(r)), 0);
}

static void an_order_that_was_given_keeps_its_time(void **state)
{
    struct rig *r = *state;
    struct core_tuning to = as_the_rig();
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A");
    rig_cancel(r, run, "no longer needed");
    to.cancel_grace_ms = 300;
    core_retune(rig_core(r), &to);
    rig_until(r, 999);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_until(r, 1000);
    assert_int_equal(core_runs_open(rig_core(r)), 0);
}

static void who_waits_for_an_agent_from_now_on_has_the_new_time(void **state)
{
    struct rig *r = *state;
    struct core_tuning to = as_the_rig();
    rig_submit(r, "A");
    to.agent_wait_ms = 500;
    core_retune(rig_core(r), &to);
    rig_submit(r, "B");
    rig_until(r, 499);
    assert_int_equal(core_runs_open(rig_core(r)), 2);
    rig_until(r, 500);
    assert_int_equal(core_runs_open(rig_core(r)), 1);
    assert_int_equal(rig_status(r, "A"), STEP_READY);
    rig_until(r, 9999);
    assert_int_equal(core_runs_open(rig_core(r)), 1);
    rig_until(r, 10000);
    assert_int_equal(core_runs_open(rig_core(r)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_cancelled_attempt_has_the_new_time_to_stop),
        CORE_TEST(an_order_that_was_given_keeps_its_time),
        CORE_TEST(who_waits_for_an_agent_from_now_on_has_the_new_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
