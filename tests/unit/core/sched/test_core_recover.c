/* After a restart: the run is rebuilt from its records, and nothing is run twice without asking. */
#include "tests/unit/core/sched/test_core.h"

static void an_attempt_in_flight_is_asked_for_before_it_runs_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1 timeout=60000); B");
    rig_forget(r);
    rig_restart(r, 200);
    RIG_TRACE(r, "[200] A#1 unknown +5000\n");
    rig_up(r, "x", 1, 1);
    RIG_TRACE(r, "[200] agent_registered x i1\n"
                 "[200] registered i1 epoch=1001\n"
                 "[200] query A#1 i1\n"
                 "[200] agent_up x i1\n");
    rig_state(r, "A", true);
    struct core_event done = rig_about(r, CORE_RESULT, "A");
    done.epoch = 1001;
    done.lane = LANE_NONE;
    rig_forget(r);
    rig_event(r, done);
    RIG_TRACE(r, "[200] A#1 completed\n"
                 "[200] B#1 started i1\n"
                 "[200] dispatch B#1 i1/0\n");
}

static void an_instance_that_does_not_come_back_is_a_lost_reply(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    rig_restart(r, 200);
    rig_up(r, "x", 2, 1);
    rig_forget(r);
    rig_until(r, 5300);
    RIG_TRACE(r, "[5200] A#1 retry +100 REPLY_LOST: Reply lost: the agent ended, or its "
                 "connection, and no answer came\n"
                 "[5300] A#2 assigned i2\n"
                 "[5300] dispatch A#2 i2/0\n");
}

static void an_unsafe_attempt_in_flight_waits_for_a_person(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=1)");
    rig_restart(r, 200);
    rig_until(r, 5200);
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    rig_restart(r, 0);
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
    rig_up(r, "x", 2, 1);
    rig_decide(r, "A", DECISION_APPROVE, "");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void ready_steps_and_backoffs_go_on_where_they_were(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "par max=2: A(retries=1 backoff=1000); B@y; C");
    rig_fail(r, "A", CLASS_TIMEOUT, "e");
    rig_forget(r);
    rig_restart(r, 300);
    RIG_TRACE(r, "");
    rig_up(r, "x", 1, 2);
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] A#2 assigned i1\n"
                 "[1000] dispatch A#2 i1/0\n");
    assert_int_equal(rig_status(r, "C"), STEP_READY); /* B has the other place */
}

static void the_plans_deadline_counts_the_time_down(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "timeout=1000: A");
    rig_restart(r, 1500);
    rig_forget(r);
    rig_until(r, 1500);
    assert_int_equal(rig_status(r, "A"), STEP_CANCELLED);
}

static void a_second_restart_waits_anew(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    rig_restart(r, 4000);
    rig_forget(r);
    rig_restart(r, 4000);
    RIG_TRACE(r, "[8000] A#1 unknown +5000\n");
    rig_until(r, 12999);
    assert_int_equal(rig_status(r, "A"), STEP_UNKNOWN);
    rig_until(r, 13000);
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
}

static void a_recovered_run_gets_a_handle_even_without_a_record(void **state)
{
    struct rig *r = *state;
    rig_submit(r, "A");
    rig_restart(r, 10);
    assert_int_not_equal(core_newest_run(rig_core(r)), 0);
    rig_cancel(r, core_newest_run(rig_core(r)), "");
    assert_int_equal(rig_status(r, "A"), STEP_CANCELLED);
}

static void a_late_result_of_the_attempt_before_the_restart_counts(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    struct core_event done = rig_about(r, CORE_RESULT, "A");
    rig_restart(r, 100);
    done.run = core_newest_run(rig_core(r));
    done.lane = LANE_NONE;
    done.instance = (struct uuid){.b = {[15] = 1}};
    rig_event(r, done); /* over the control socket, before it registers again */
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(an_attempt_in_flight_is_asked_for_before_it_runs_again),
        CORE_TEST(an_instance_that_does_not_come_back_is_a_lost_reply),
        CORE_TEST(an_unsafe_attempt_in_flight_waits_for_a_person),
        CORE_TEST(ready_steps_and_backoffs_go_on_where_they_were),
        CORE_TEST(the_plans_deadline_counts_the_time_down),
        CORE_TEST(a_second_restart_waits_anew),
        CORE_TEST(a_recovered_run_gets_a_handle_even_without_a_record),
        CORE_TEST(a_late_result_of_the_attempt_before_the_restart_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
