/* A full disk: what waits, what is left out, and what comes when there is room (G20). */
#include <string.h>

#include "supervisor/engine/engine_internal.h"
#include "supervisor/journal/port.h"
#include "tests/support/cmocka.h"
#include "tests/unit/engine/engine_fixture.h"

static const char plan_json[] = "{'steps':[{'stepId':'a','agentId':'calc','skill':'add',"
                                "'task':'add 2 and 3'}]}";
static char lanes[3]; /* the engine only compares their addresses */
static char taken[16];

static void note_lane(const struct link_event *ev)
{
    const char *lane = (const char *)ev->lane;
    char name[2] = {(char)('a' + (lane - lanes)), 0};

    (void)strncat(taken, name, sizeof taken - strlen(taken) - 1);
}

static void set_room(struct engine_world *w, enum journal_room room)
{
    w->journal->storage_low = room != JOURNAL_ROOM;
    w->journal->storage_full = room == JOURNAL_FULL;
}

static void lane_says(struct engine_world *w, int lane)
{
    struct link_event ev = {.type = LINK_LOST, .lane = (struct link_lane *)(void *)&lanes[lane]};

    engine_on_link(w->engine, &ev);
}

static void next_cycle(struct engine_world *w)
{
    static msec now = 5000;
    struct bt_error err;

    assert_int_equal(engine_end(w->engine, &err), BT_OK);
    now++;
    engine_begin(w->engine, now, 1700000000000 + now);
}

static void open_world(struct engine_world *w, enum journal_room room)
{
    engine_world_open(w);
    engine_world_on_lane = note_lane;
    taken[0] = 0;
    set_room(w, room);
    next_cycle(w);
}

static void answers_of_lanes_wait_in_order_and_come_when_there_is_room(void **state)
{
    struct engine_world w;

    (void)state;
    open_world(&w, JOURNAL_FULL);
    lane_says(&w, 0);
    lane_says(&w, 1);
    next_cycle(&w);
    lane_says(&w, 0);
    assert_string_equal(taken, "");
    set_room(&w, JOURNAL_LOW);
    next_cycle(&w);
    assert_string_equal(taken, "aba");
    assert_int_equal(w.engine->held_n, 0); /* its room is free for the next time */
    lane_says(&w, 2);                      /* at once */
    assert_string_equal(taken, "abac");
    engine_world_close(&w);
}

/* Room may end in the middle of a cycle: what comes then waits behind what waits already. */
static void room_that_ends_in_a_cycle_stops_at_the_next_event(void **state)
{
    struct engine_world w;

    (void)state;
    open_world(&w, JOURNAL_LOW);
    lane_says(&w, 0);
    set_room(&w, JOURNAL_FULL);
    lane_says(&w, 1);
    assert_string_equal(taken, "a");
    set_room(&w, JOURNAL_ROOM);
    lane_says(&w, 2);
    assert_string_equal(taken, "a"); /* not before b */
    next_cycle(&w);
    assert_string_equal(taken, "abc");
    engine_world_close(&w);
}

static void a_lane_that_was_retired_meanwhile_has_nothing_to_say(void **state)
{
    struct engine_world w;

    (void)state;
    open_world(&w, JOURNAL_FULL);
    lane_says(&w, 0);
    lane_says(&w, 1);
    engine_forget_lane(w.engine, (struct link_lane *)(void *)&lanes[0]);
    set_room(&w, JOURNAL_ROOM);
    next_cycle(&w);
    assert_string_equal(taken, "b");
    engine_world_close(&w);
}

static void a_hold_lasts_until_it_ends_whatever_the_disk_has(void **state)
{
    struct engine_world w;

    (void)state;
    open_world(&w, JOURNAL_ROOM);
    assert_false(engine_is_stalled(w.engine));
    engine_hold(w.engine, true);
    lane_says(&w, 0);
    next_cycle(&w);
    assert_true(engine_is_stalled(w.engine));
    assert_string_equal(taken, "");
    engine_hold(w.engine, false);
    assert_false(engine_is_stalled(w.engine));
    next_cycle(&w);
    assert_string_equal(taken, "a");
    engine_world_close(&w);
}

/* Deadlines that pass while nothing can be written must not be judged: their results may wait. */
static void nothing_is_due_while_it_stalls(void **state)
{
    const struct submit_request request = {.goal = STR_LIT(""), .plan = {NULL, 0}};
    struct submit_request with = request;
    struct engine_world w;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;

    (void)state;
    open_world(&w, JOURNAL_ROOM);
    with.plan = engine_world_doc(&w, plan_json);
    engine_world_submit(&w, &with, id);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    set_room(&w, JOURNAL_FULL);
    engine_begin(w.engine, 100000, 1700000100000); /* agentWaitMs is long over */
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    assert_true(engine_deadline(w.engine) > 100000);
    assert_non_null(open_plan_by_id(w.engine, str_from(id)));
    set_room(&w, JOURNAL_ROOM);
    engine_begin(w.engine, 100001, 1700000100001);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    engine_begin(w.engine, 100002, 1700000100002);
    assert_null(open_plan_by_id(w.engine, str_from(id)));
    engine_world_close(&w);
}

static void rows_about_agents_and_the_daemon_are_left_out_on_a_low_disk(void **state)
{
    struct engine_world w;
    struct bt_error err;
    uint64_t before;

    (void)state;
    open_world(&w, JOURNAL_LOW);
    before = journal_last_seq(w.journal);
    assert_int_equal(engine_system_record(w.engine, REC_SUPERVISOR_STARTED, STR_LIT(""), 0, &err),
                     BT_OK);
    assert_int_equal(journal_last_seq(w.journal), before);
    set_room(&w, JOURNAL_ROOM);
    next_cycle(&w);
    assert_int_equal(engine_system_record(w.engine, REC_SUPERVISOR_STARTED, STR_LIT(""), 0, &err),
                     BT_OK);
    assert_int_equal(journal_last_seq(w.journal), before + 1);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    engine_world_close(&w);
}

static void new_work_is_refused_with_the_directory_and_what_helps(void **state)
{
    struct engine_world w;
    struct bt_error err;

    (void)state;
    open_world(&w, JOURNAL_LOW);
    assert_int_equal(submission_room(w.engine, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "/nowhere"));
    assert_non_null(strstr(err.msg, "Free some room"));
    set_room(&w, JOURNAL_ROOM);
    assert_int_equal(submission_room(w.engine, &err), BT_OK);
    engine_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_lanes_wait_in_order_and_come_when_there_is_room),
        cmocka_unit_test(room_that_ends_in_a_cycle_stops_at_the_next_event),
        cmocka_unit_test(a_lane_that_was_retired_meanwhile_has_nothing_to_say),
        cmocka_unit_test(a_hold_lasts_until_it_ends_whatever_the_disk_has),
        cmocka_unit_test(nothing_is_due_while_it_stalls),
        cmocka_unit_test(rows_about_agents_and_the_daemon_are_left_out_on_a_low_disk),
        cmocka_unit_test(new_work_is_refused_with_the_directory_and_what_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
