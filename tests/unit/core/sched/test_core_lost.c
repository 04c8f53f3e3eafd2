/* Lost replies: unknown is not failed. */
#include "tests/unit/core/sched/test_core.h"

static void a_request_that_never_left_goes_to_the_front_with_the_same_attempt(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_submit(r, "B");
    rig_lane(r, 1, 0, false);
    rig_forget(r);
    rig_lost(r, "A", false);
    RIG_TRACE(r, "");
    rig_up(r, "x", 2, 1);
    RIG_TRACE(r, "[0] agent_registered x i2\n"
                 "[0] registered i2 epoch=2\n"
                 "[0] agent_up x i2\n"
                 "[0] A#1 assigned i2\n"
                 "[0] dispatch A#1 i2/0\n");
    assert_int_equal(rig_status(r, "B"), STEP_READY);
}

static void a_request_that_never_leaves_is_a_failure_in_the_end(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    for (int i = 0; i < 8; i++) {
        assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
        rig_forget(r);
        rig_lost(r, "A", false);
    }
    RIG_TRACE(r, "[0] A#1 retry +100 SERVICE_UNAVAILABLE: The request could not be sent\n");
}

static void a_lost_reply_is_asked_for_at_once_when_the_control_lane_is_up(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(timeout=60000)");
    rig_forget(r);
    rig_lost(r, "A", true);
    RIG_TRACE(r, "[0] A#1 unknown +5000\n"
                 "[0] query A#1 i1\n");
    struct core_event done = rig_about(r, CORE_RESULT, "A");
    done.lane = LANE_NONE;
    rig_event(r, done);
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void a_lost_reply_is_asked_for_when_the_same_instance_comes_back(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(timeout=900)");
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, false);
    rig_forget(r);
    rig_lost(r, "A", true);
    RIG_TRACE(r, "[0] A#1 unknown +5000\n");
    rig_until(r, 300);
    rig_register(r, "x", 1, 1);
    rig_forget(r);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    RIG_TRACE(r, "[300] query A#1 i1\n");
    rig_state(r, "A", true);
    RIG_TRACE(r, "[300] A#1 assigned i1\n");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    rig_until(r, 1100);
    RIG_TRACE(r, "");
    rig_until(r, 1200); /* the timeout counts from the answer */
    RIG_TRACE(r, "[1200] A#1 failed TIMEOUT (fenced): Step execution timeout\n"
                 "[1200] cancel A#1 i1\n"
                 "[1200] plan failed/failed step: Step execution timeout\n"
                 "[1200] run done\n");
}

static void a_key_that_the_instance_does_not_know_never_ran_so_even_unsafe_runs_again(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=1)");
    rig_lost(r, "A", true);
    rig_forget(r);
    rig_state(r, "A", false);
    RIG_TRACE(
        r, "[0] A#1 retry +100 REPLY_LOST: Reply lost: the agent does not know of the attempt\n");
}

static void an_unknown_outcome_that_nobody_clears_up_is_a_lost_reply(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    rig_lost(r, "A", true);
    rig_forget(r);
    rig_until(r, 5000);
    RIG_TRACE(r, "[5000] A#1 retry +100 REPLY_LOST: Reply lost: the agent ended, or its "
                 "connection, and no answer came\n");
}

static void an_unsafe_unknown_outcome_waits_for_a_person(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe)");
    rig_lost(r, "A", true);
    rig_forget(r);
    rig_until(r, 5000);
    RIG_TRACE(r, "[5000] A#1 waiting unknown_outcome: Reply lost: the agent ended, or its "
                 "connection, and no answer came\n"
                 "[5000] plan_paused review\n");
}

static void a_dead_process_resolves_its_attempts_at_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "par: A(retries=1); B(unsafe); C(continue); D(retries=1)");
    rig_lost(r, "D", true);
    rig_forget(r);
    rig_instance(r, CORE_GONE, 1, "killed by signal 9");
    RIG_TRACE(r, "[0] agent_down x i1: killed by signal 9\n"
                 "[0] close epoch=1\n"
                 "[0] A#1 retry +100 AGENT_CRASHED: Agent crashed: killed by signal 9\n"
                 "[0] B#1 waiting unknown_outcome: Agent crashed: killed by signal 9\n"
                 "[0] C#1 failed AGENT_CRASHED: Agent crashed: killed by signal 9\n"
                 "[0] D#1 retry +100 AGENT_CRASHED: Agent crashed: killed by signal 9\n");
}

static void an_abort_while_a_dead_instance_is_cleared_up_ends_all_its_steps(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    const uint64_t run = rig_submit(r, "par: A; B; C");
    rig_submit(r, "D(retries=1)");
    rig_instance(r, CORE_GONE, 1, "exit 1");
    assert_null(rig_run(r, run));
    assert_int_equal(rig_status(r, "C"), STEP_CANCELLED);
    assert_int_equal(rig_status(r, "D"), STEP_BACKOFF);
}

static void the_loss_reported_after_the_death_changes_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    const struct core_event lost = rig_about(r, CORE_LOST, "A");
    rig_instance(r, CORE_GONE, 1, "exit 1");
    rig_up(r, "x", 2, 1); /* takes the slot that became free */
    rig_forget(r);
    rig_event(r, lost);
    RIG_TRACE(r, "[0] reject: this attempt is not the current one\n");
    rig_until(r, 100);
    RIG_TRACE(r, "[100] A#2 assigned i2\n"
                 "[100] dispatch A#2 i2/0\n");
    rig_event(r, lost);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void registering_again_fences_the_old_epoch_and_asks_for_what_it_had(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    const struct core_event old = rig_about(r, CORE_RESULT, "A");
    rig_forget(r);
    rig_register(r, "x", 1, 1);
    RIG_TRACE(r, "[0] close epoch=1\n"
                 "[0] A#1 unknown +5000\n"
                 "[0] agent_registered x i1\n"
                 "[0] registered i1 epoch=2\n");
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    rig_state(r, "A", true);
    RIG_TRACE(r, "[0] query A#1 i1\n"
                 "[0] A#1 assigned i1\n");
    rig_event(r, old); /* the attempt is now the new incarnation's */
    RIG_TRACE(r,
              "[0] A#1 result rejected: this incarnation of the instance was replaced or is gone\n"
              "[0] reject: this incarnation of the instance was replaced or is gone\n");
}

static void the_old_incarnations_own_result_still_counts_while_nobody_else_has_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A");
    const struct core_event old = rig_about(r, CORE_RESULT, "A");
    rig_register(r, "x", 1, 1);
    rig_event(r, old);
    assert_null(rig_run(r, run));
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
}

static void another_instance_that_names_the_right_epoch_is_not_believed(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_up(r, "x", 2, 1);
    struct core_event ev = rig_about(r, CORE_RESULT, "A");
    ev.slot = 1; /* instance 2's */
    ev.lane = LANE_NONE;
    rig_forget(r);
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: this incarnation of the instance was replaced or is gone\n");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

static void a_state_nobody_asked_for_is_refused(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    rig_state(r, "A", false);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    rig_lost(r, "A", true);
    struct core_event ev = rig_about(r, CORE_STATE, "A");
    ev.lane = LANE_NONE;
    rig_register(r, "x", 1, 1);
    rig_forget(r);
    rig_event(r, ev); /* from before it registered again */
    RIG_TRACE(r, "[0] reject: this incarnation of the instance was replaced or is gone\n");
}

static void silence_makes_attempts_unknown_and_the_instance_may_come_back(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(timeout=60000 retries=1)");
    rig_forget(r);
    rig_silence_until(r, 3000);
    RIG_TRACE(r, "[3000] agent_down x i1: lease expired\n"
                 "[3000] close epoch=1\n"
                 "[3000] A#1 unknown +5000\n");
    rig_register(r, "x", 1, 1);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    RIG_TRACE(r, "[3000] agent_registered x i1\n"
                 "[3000] registered i1 epoch=2\n"
                 "[3000] query A#1 i1\n");
    rig_silence_until(r, 8000);
    RIG_TRACE(r, "[6000] agent_down x i1: lease expired\n"
                 "[6000] close epoch=2\n"
                 "[8000] A#1 retry +100 REPLY_LOST: Reply lost: the agent ended, or its "
                 "connection, and no answer came\n");
}

static void a_suspect_instance_gets_no_new_work_until_it_is_heard_of(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_silence_until(r, 2000);
    rig_submit(r, "A");
    assert_int_equal(rig_status(r, "A"), STEP_READY);
    rig_instance(r, CORE_SEEN, 1, "");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_request_that_never_left_goes_to_the_front_with_the_same_attempt),
        CORE_TEST(a_request_that_never_leaves_is_a_failure_in_the_end),
        CORE_TEST(a_lost_reply_is_asked_for_at_once_when_the_control_lane_is_up),
        CORE_TEST(a_lost_reply_is_asked_for_when_the_same_instance_comes_back),
        CORE_TEST(a_key_that_the_instance_does_not_know_never_ran_so_even_unsafe_runs_again),
        CORE_TEST(an_unknown_outcome_that_nobody_clears_up_is_a_lost_reply),
        CORE_TEST(an_unsafe_unknown_outcome_waits_for_a_person),
        CORE_TEST(a_dead_process_resolves_its_attempts_at_once),
        CORE_TEST(an_abort_while_a_dead_instance_is_cleared_up_ends_all_its_steps),
        CORE_TEST(the_loss_reported_after_the_death_changes_nothing),
        CORE_TEST(registering_again_fences_the_old_epoch_and_asks_for_what_it_had),
        CORE_TEST(the_old_incarnations_own_result_still_counts_while_nobody_else_has_it),
        CORE_TEST(another_instance_that_names_the_right_epoch_is_not_believed),
        CORE_TEST(a_state_nobody_asked_for_is_refused),
        CORE_TEST(silence_makes_attempts_unknown_and_the_instance_may_come_back),
        CORE_TEST(a_suspect_instance_gets_no_new_work_until_it_is_heard_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
