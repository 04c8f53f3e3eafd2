/* The core's records about instances, and the reports about them that it refuses. */
#include "tests/unit/core/sched/test_core.h"

static void an_instance_is_told_of_once_per_incarnation(void **state)
{
    struct rig *r = *state;
    rig_register(r, "x", 1, 2);
    rig_lane(r, 1, REGISTRY_CONTROL_LANE, true);
    RIG_TRACE(r, "[0] agent_registered x i1\n"
                 "[0] registered i1 epoch=1\n");
    rig_lane(r, 1, 0, true);
    rig_lane(r, 1, 1, true);
    rig_lane(r, 1, 1, false);
    rig_lane(r, 1, 1, true);
    RIG_TRACE(r, "[0] agent_up x i1\n");
    rig_register(r, "x", 1, 2);
    rig_lane(r, 1, 1, true);
    RIG_TRACE(r, "[0] close epoch=1\n"
                 "[0] agent_registered x i1\n"
                 "[0] registered i1 epoch=2\n"
                 "[0] agent_up x i1\n");
}

static void a_draining_instance_finishes_and_gets_nothing_new(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A; B");
    rig_forget(r);
    rig_instance(r, CORE_DRAIN, 1, "update");
    rig_instance(r, CORE_DRAIN, 1, "update");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] agent_draining x i1: update\n"
                 "[0] A#1 completed\n");
    rig_up(r, "x", 2, 1);
    assert_int_equal(rig_status(r, "B"), STEP_IN_PROGRESS);
}

static void an_agent_that_left_is_down(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_instance(r, CORE_GONE, 1, "deregistered");
    RIG_TRACE(r, "[0] agent_down x i1: deregistered\n"
                 "[0] close epoch=1\n");
}

static void an_instance_cannot_change_its_agent(void **state)
{
    struct rig *r = *state;
    rig_register(r, "x", 1, 1);
    rig_forget(r);
    rig_register(r, "y", 1, 1);
    RIG_TRACE(r, "[0] reject: it belongs to another instance or agent\n");
}

static void the_number_of_instances_has_an_end(void **state)
{
    struct rig *r = *state;
    for (uint8_t i = 0; i < 32; i++) {
        rig_event(r,
                  (struct core_event){CORE_EV_INIT(REGISTER, registration,
                                                   .agent = registry_agent_add(
                                                       core_registry(rig_core(r)), STR_LIT("x"), 0),
                                                   .capacity = 1),
                                      .instance = {.b = {[14] = 1, [15] = i & 7, [13] = i}}});
    }
    rig_forget(r);
    rig_register(r, "x", 9, 1);
    RIG_TRACE(r, "[0] reject: too many instances are registered\n");
}

static void reports_about_a_replaced_incarnation_are_refused(void **state)
{
    static const enum core_event_type types[] = {CORE_SEEN, CORE_LANE_UP, CORE_LANE_DOWN,
                                                 CORE_GONE, CORE_DRAIN,   CORE_LANE_FREE};
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_register(r, "x", 1, 1);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        rig_forget(r);
        rig_event(r, (struct core_event){.type = types[i], .slot = 0, .epoch = 1});
        RIG_TRACE(r, "[0] reject: this incarnation of the instance was replaced or is gone\n");
        rig_event(r, (struct core_event){.type = types[i], .slot = 12345, .epoch = 1});
        RIG_TRACE(r, "[0] reject: this incarnation of the instance was replaced or is gone\n");
    }
}

static void a_lane_that_the_instance_does_not_have_is_refused(void **state)
{
    struct rig *r = *state;
    rig_register(r, "x", 1, 2);
    rig_forget(r);
    rig_lane(r, 1, 2, true);
    RIG_TRACE(r, "[0] reject: it belongs to another instance or agent\n");
    rig_lane(r, 1, 63, false);
    RIG_TRACE(r, "[0] reject: it belongs to another instance or agent\n");
    struct core_event ev = {.type = CORE_LANE_FREE, .slot = 0, .epoch = 1, .lane = 40};
    rig_event(r, ev);
    RIG_TRACE(r, "");
}

static void a_restarted_process_is_only_told(void **state)
{
    struct rig *r = *state;
    rig_register(r, "x", 1, 1);
    rig_forget(r);
    rig_event(r, (struct core_event){CORE_EV_INIT(RESTARTED, process, .agent = 0, .pid = 7),
                                     .text = STR_LIT("exit 1")});
    RIG_TRACE(r, "[0] agent_restarted x i0: exit 1\n");
}

static void long_last_words_are_cut_between_characters(void **state)
{
    struct rig *r = *state;
    char words[400];
    for (size_t i = 0; i < sizeof words; i++) {
        words[i] = i % 2 == 0 ? '\xC3' : '\xA9'; /* e with acute accent, two bytes */
    }
    words[sizeof words - 1] = '\0';
    memmove(words + 1, words, sizeof words - 2); /* the limit falls inside a character */
    words[0] = 'x';
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A(retries=1)");
    assert_non_null(rig_run(r, run));
    struct commands out = {0};
    static struct core_cmd room[16];
    out.at = room;
    out.cap = 16;
    core_handle(
        rig_core(r),
        &(struct core_event){.type = CORE_GONE, .slot = 0, .epoch = 1, .text = str_from(words)},
        &out);
    const struct record *retry = NULL;
    for (uint32_t i = 0; i < out.n; i++) {
        retry =
            room[i].type == CMD_RECORD && room[i].rec.type == REC_STEP_RETRY ? &room[i].rec : retry;
    }
    assert_non_null(retry);
    assert_in_range(retry->text.len, 255, 15 + 256);
    assert_int_equal((unsigned char)retry->text.ptr[retry->text.len - 1], 0xA9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(an_instance_is_told_of_once_per_incarnation),
        CORE_TEST(a_draining_instance_finishes_and_gets_nothing_new),
        CORE_TEST(an_agent_that_left_is_down),
        CORE_TEST(an_instance_cannot_change_its_agent),
        CORE_TEST(the_number_of_instances_has_an_end),
        CORE_TEST(reports_about_a_replaced_incarnation_are_refused),
        CORE_TEST(a_lane_that_the_instance_does_not_have_is_refused),
        CORE_TEST(a_restarted_process_is_only_told),
        CORE_TEST(long_last_words_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
