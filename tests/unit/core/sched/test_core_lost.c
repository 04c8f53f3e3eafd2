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

/* Its instance registered again before it was known that the request had not left. */
static void an_attempt_that_never_left_is_not_sent_after_its_time(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(timeout=1000 retries=1)");
    rig_register(r, "x", 1, 1);
    rig_lost(r, "A", false);
    rig_until(r, 999);
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] A#1 retry +100 SERVICE_UNAVAILABLE: The request could not be sent\n");
    rig_until(r, 1200);
    rig_lane(r, 1, 0, true);
    RIG_TRACE(r, "[1200] agent_up x i1\n"
                 "[1200] A#2 assigned i1\n"
                 "[1200] dispatch A#2 i1/0\n");
    rig_until(r, 2199);
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
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
    rig_until(r, 899);
    RIG_TRACE(r, "");
    rig_until(r, 900); /* the time of the attempt went on */
    RIG_TRACE(r, "[900] A#1 failed TIMEOUT (fenced): Step execution timeout\n"
                 "[900] cancel A#1 i1\n"
                 "[900] plan failed/failed step: Step execution timeout\n"
                 "[900] run done\n");
}

static void an_attempt_that_is_adopted_after_its_time_times_out_at_once(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(timeout=900)");
    rig_restart(r, 1000);
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_state(r, "A", true);
    RIG_TRACE(r, "[1000] A#1 assigned i1\n"
                 "[1000] A#1 failed TIMEOUT (fenced): Step execution timeout\n"
                 "[1000] cancel A#1 i1\n"
                 "[1000] plan failed/failed step: Step execution timeout\n"
                 "[1000] run done\n");
}

static struct rig *rig_that_asks_last(void **state)
{
    struct core_config config = rig_config();
    config.last_word_ms = 200;
    rig_free(*state);
    *state = rig_new_with(&config);
    return *state;
}

static void adopt(struct rig *r, const char *plan)
{
    rig_up(r, "x", 1, 1);
    rig_submit(r, plan);
    rig_lost(r, "A", true);
    rig_state(r, "A", true);
    rig_forget(r);
}

static void an_adopted_attempt_is_asked_about_before_its_time_is_over(void **state)
{
    struct rig *r = rig_that_asks_last(state);
    adopt(r, "A(timeout=900)");
    rig_until(r, 700);
    RIG_TRACE(r, "[700] query A#1 i1\n");
    rig_state(r, "A", true);
    rig_until(r, 899);
    RIG_TRACE(r, "");
    struct core_event done = rig_about(r, CORE_RESULT, "A");
    done.lane = LANE_NONE;
    rig_event(r, done);
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
}

static void an_adopted_attempt_is_asked_about_before_its_silence_is_too_long(void **state)
{
    struct rig *r = rig_that_asks_last(state);
    adopt(r, "A(idle=500)");
    rig_until(r, 300);
    RIG_TRACE(r, "[300] query A#1 i1\n");
    struct core_event news = rig_about(r, CORE_PROGRESS, "A");
    news.lane = LANE_NONE;
    rig_event(r, news);
    rig_forget(r);
    rig_until(r, 600);
    RIG_TRACE(r, "[600] query A#1 i1\n");
    rig_until(r, 799);
    RIG_TRACE(r, "");
    rig_until(r, 800);
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void what_no_heartbeat_lists_is_asked_for(void **state)
{
    struct rig *r = *state;
    adopt(r, "A");
    struct core_event ev = rig_about(r, CORE_NOT_LISTED, "A");
    ev.lane = LANE_NONE;
    rig_event(r, ev);
    RIG_TRACE(r, "[0] query A#1 i1\n");
    rig_state(r, "A", true); /* it still works on it */
    RIG_TRACE(r, "");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
    struct core_adopted found[2];
    assert_int_equal(core_adopted(rig_core(r), 0, found, 2), 1);
    assert_int_equal(found[0].attempt, 1);
}

static void what_a_lane_has_is_not_asked_for(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    struct core_event ev = rig_about(r, CORE_NOT_LISTED, "A");
    rig_event(r, ev);
    RIG_TRACE(r, "[0] reject: nothing waits for this\n");
    assert_int_equal(core_adopted(rig_core(r), 0, &(struct core_adopted){0}, 1), 0);
}

static void an_adopted_attempt_is_asked_about_when_the_control_lane_is_back(void **state)
{
    struct rig *r = *state;
    adopt(r, "A");
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, false);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    RIG_TRACE(r, "[0] query A#1 i1\n");
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

/* The instance's first process got the attempt; it is gone, and the nth one is asked. */
static void ask_process(struct rig *r, uint8_t first, uint8_t nth, const char *plan)
{
    rig_register_as(r, "x", 1, 1, first);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    rig_lane(r, 1, 0, true);
    rig_submit(r, plan);
    rig_silence_until(r, 3000);
    rig_register_as(r, "x", 1, 1, nth);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    rig_forget(r);
    rig_state(r, "A", false);
}

#define CANNOT_SAY "Reply lost: the agent that answers cannot say what became of the attempt"

static void a_new_process_cannot_say_that_an_unsafe_step_never_ran(void **state)
{
    struct rig *r = *state;
    ask_process(r, 1, 2, "A(unsafe retries=1)");
    RIG_TRACE(r, "[3000] A#1 waiting unknown_outcome: " CANNOT_SAY "\n"
                 "[3000] plan_paused review\n");
}

static void a_process_without_a_name_cannot_say_that_an_unsafe_step_never_ran(void **state)
{
    struct rig *r = *state;
    ask_process(r, 0, 0, "A(unsafe retries=1)");
    RIG_TRACE(r, "[3000] A#1 waiting unknown_outcome: " CANNOT_SAY "\n"
                 "[3000] plan_paused review\n");
}

static void a_safe_step_that_a_new_process_does_not_know_runs_again(void **state)
{
    struct rig *r = *state;
    ask_process(r, 1, 2, "A(retries=1)");
    RIG_TRACE(r, "[3000] A#1 retry +100 REPLY_LOST: " CANNOT_SAY "\n");
}

static void what_the_instance_worked_on_did_not_never_run(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=1)");
    rig_lost(r, "A", true);
    rig_state(r, "A", true);
    rig_register(r, "x", 1, 1);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    rig_forget(r);
    rig_state(r, "A", false);
    RIG_TRACE(r, "[0] A#1 waiting unknown_outcome: " CANNOT_SAY "\n"
                 "[0] plan_paused review\n");
}

static void what_the_agent_forgot_did_not_never_run(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe retries=1)");
    rig_lost(r, "A", true);
    rig_forget(r);
    struct core_event ev = rig_about(r, CORE_STATE, "A");
    ev.lane = LANE_NONE;
    rig_event(r, ev);
    RIG_TRACE(r, "[0] A#1 waiting unknown_outcome: " CANNOT_SAY "\n"
                 "[0] plan_paused review\n");
}

static void a_new_process_does_not_take_the_place_of_a_live_one(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    rig_register_as(r, "x", 1, 1, 2);
    RIG_TRACE(r, "[0] reject: instanceId: another process is registered under it; a new process "
                 "makes up a new instanceId and a new sessionKey\n");
    rig_register_as(r, "x", 1, 1, 0);
    RIG_TRACE(r, "[0] reject: instanceId: another process is registered under it; a new process "
                 "makes up a new instanceId and a new sessionKey\n");
    assert_int_equal(rig_status(r, "A"), STEP_IN_PROGRESS);
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

/* The instance has registered again, and delivers on the control socket what it could not answer.
 */
static void deliver(struct rig *r, const char *step, uint8_t instance)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    rig_forget(r);
    ev.lane = LANE_NONE;
    ev.slot = instance - 1;
    ev.epoch = 2;
    ev.instance.b[15] = instance;
    CORE_EV(&ev, result)->result = (struct blob_ref){.id = 100, .len = 3};
    CORE_EV(&ev, result)->usage = (struct usage){.input_tokens = 10, .output_tokens = 1};
    rig_event(r, ev);
}

static void a_result_that_its_own_process_brings_answers_the_question(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe)");
    rig_lost(r, "A", true);
    rig_until(r, 5000);
    rig_register(r, "x", 1, 1);
    deliver(r, "A", 1);
    RIG_TRACE(r, "[5000] A#1 completed\n"
                 "[5000] plan completed/success\n"
                 "[5000] run done\n");
}

static void a_result_that_its_own_process_brings_spares_the_next_attempt(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    rig_lost(r, "A", true);
    rig_until(r, 5000);
    rig_register(r, "x", 1, 1);
    deliver(r, "A", 1);
    RIG_TRACE(r, "[5000] A#1 completed\n"
                 "[5000] plan completed/success\n"
                 "[5000] run done\n");
}

static void a_result_that_another_instance_brings_answers_nothing(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(unsafe)");
    rig_lost(r, "A", true);
    rig_until(r, 5000);
    rig_up(r, "x", 2, 1);
    deliver(r, "A", 2);
    RIG_TRACE(r, "[5000] reject: this attempt is not the current one\n");
    assert_int_equal(rig_status(r, "A"), STEP_WAITING);
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

static void time_in_which_the_supervisor_stood_still_is_no_silence(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(timeout=60000)");
    rig_silence_until(r, 1400);
    rig_forget(r);
    rig_event(r, (struct core_event){CORE_EV_INIT(STALLED, stalled, .delay_ms = 1300)});
    rig_silence_until(r, 4200);
    RIG_TRACE(r, ""); /* 2900 ms of silence */
    rig_silence_until(r, 4300);
    RIG_TRACE(r, "[4300] agent_down x i1: lease expired\n"
                 "[4300] close epoch=1\n"
                 "[4300] A#1 unknown +5000\n");
}

static struct rig *rig_that_sees_ends(void **state)
{
    struct core_config config = rig_config();
    config.registry.ended_ms = 700;
    rig_free(*state);
    *state = rig_new_with(&config);
    return *state;
}

static void
an_instance_whose_connections_have_all_ended_is_down_before_its_lease_is_over(void **state)
{
    struct rig *r = rig_that_sees_ends(state);
    rig_up(r, "x", 1, 2);
    rig_submit(r, "A(timeout=60000)");
    rig_lane(r, 1, 0, false);
    rig_lane(r, 1, 1, false);
    rig_silence_until(r, 500);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, false);
    rig_forget(r);
    rig_silence_until(r, 1199);
    RIG_TRACE(r, "");
    rig_silence_until(r, 1200);
    RIG_TRACE(r, "[1200] agent_down x i1: all its connections have ended\n"
                 "[1200] close epoch=1\n"
                 "[1200] A#1 unknown +5000\n");
}

static void a_connection_or_a_message_gives_the_instance_its_time_again(void **state)
{
    struct rig *r = rig_that_sees_ends(state);
    rig_up(r, "x", 1, 1);
    rig_lane(r, 1, 0, false);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, false);
    rig_silence_until(r, 600);
    rig_instance(r, CORE_SEEN, 1, "");
    rig_silence_until(r, 1200);
    rig_lane(r, 1, 0, true);
    rig_forget(r);
    rig_silence_until(r, 4199);
    RIG_TRACE(r, "");
    rig_silence_until(r, 4200); /* the lease counts from then on */
    RIG_TRACE(r, "[4200] agent_down x i1: lease expired\n"
                 "[4200] close epoch=1\n");
}

static void an_agent_that_registers_and_is_never_reached_is_unavailable(void **state)
{
    struct rig *r = *state;
    rig_register(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_forget(r);
    for (int i = 0; i < 8; i++) {
        rig_until(r, rig_now(r) + 1000);
        rig_instance(r, CORE_GONE, 1, "unreadable");
        rig_register(r, "x", 1, 1);
    }
    rig_until(r, rig_now(r) + rig_config().agent_wait_ms);
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
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
        CORE_TEST(an_attempt_that_never_left_is_not_sent_after_its_time),
        CORE_TEST(a_request_that_never_leaves_is_a_failure_in_the_end),
        CORE_TEST(a_lost_reply_is_asked_for_at_once_when_the_control_lane_is_up),
        CORE_TEST(a_lost_reply_is_asked_for_when_the_same_instance_comes_back),
        CORE_TEST(an_attempt_that_is_adopted_after_its_time_times_out_at_once),
        CORE_TEST(an_adopted_attempt_is_asked_about_before_its_time_is_over),
        CORE_TEST(an_adopted_attempt_is_asked_about_before_its_silence_is_too_long),
        CORE_TEST(what_no_heartbeat_lists_is_asked_for),
        CORE_TEST(what_a_lane_has_is_not_asked_for),
        CORE_TEST(an_adopted_attempt_is_asked_about_when_the_control_lane_is_back),
        CORE_TEST(a_key_that_the_instance_does_not_know_never_ran_so_even_unsafe_runs_again),
        CORE_TEST(a_new_process_cannot_say_that_an_unsafe_step_never_ran),
        CORE_TEST(a_process_without_a_name_cannot_say_that_an_unsafe_step_never_ran),
        CORE_TEST(a_safe_step_that_a_new_process_does_not_know_runs_again),
        CORE_TEST(what_the_instance_worked_on_did_not_never_run),
        CORE_TEST(what_the_agent_forgot_did_not_never_run),
        CORE_TEST(a_new_process_does_not_take_the_place_of_a_live_one),
        CORE_TEST(an_unknown_outcome_that_nobody_clears_up_is_a_lost_reply),
        CORE_TEST(an_unsafe_unknown_outcome_waits_for_a_person),
        CORE_TEST(a_result_that_its_own_process_brings_answers_the_question),
        CORE_TEST(a_result_that_its_own_process_brings_spares_the_next_attempt),
        CORE_TEST(a_result_that_another_instance_brings_answers_nothing),
        CORE_TEST(a_dead_process_resolves_its_attempts_at_once),
        CORE_TEST(an_abort_while_a_dead_instance_is_cleared_up_ends_all_its_steps),
        CORE_TEST(the_loss_reported_after_the_death_changes_nothing),
        CORE_TEST(registering_again_fences_the_old_epoch_and_asks_for_what_it_had),
        CORE_TEST(the_old_incarnations_own_result_still_counts_while_nobody_else_has_it),
        CORE_TEST(another_instance_that_names_the_right_epoch_is_not_believed),
        CORE_TEST(a_state_nobody_asked_for_is_refused),
        CORE_TEST(silence_makes_attempts_unknown_and_the_instance_may_come_back),
        CORE_TEST(time_in_which_the_supervisor_stood_still_is_no_silence),
        CORE_TEST(an_instance_whose_connections_have_all_ended_is_down_before_its_lease_is_over),
        CORE_TEST(a_connection_or_a_message_gives_the_instance_its_time_again),
        CORE_TEST(an_agent_that_registers_and_is_never_reached_is_unavailable),
        CORE_TEST(a_suspect_instance_gets_no_new_work_until_it_is_heard_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
