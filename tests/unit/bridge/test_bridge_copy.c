/* What the bridge reads from a daemon and puts into a stream, and what it refuses. */
#include "tests/unit/bridge/copy_world.h"

#define E(n) "{\"eventId\":\"e-" #n "\",\"seq\":" #n ",\"goal\":\"<\\u2028\"}"

static void once_copies_what_the_daemon_has(void **state)
{
    (void)state;
    run(BT_OK, NULL);
    expect_log("connect\nsync make\n"
               "read from 1 limit 1 wait 0 within 5000 after \n"
               "read from 1 limit 1000 wait 0 within 5000 after \n"
               "put 1 after 0 " E(1) "\nput 2 after 1 " E(2) "\nput 3 after 2 " E(3) "\n"
                                                                                     "settle\n");
}

static void it_goes_on_behind_what_the_stream_has(void **state)
{
    (void)state;
    world.at = (struct stream_at){.seq = 2, .event_id = "e-2"};
    run(BT_OK, NULL);
    expect_log("connect\nsync make\n"
               "read from 2 limit 1 wait 0 within 5000 after \n"
               "read from 3 limit 1000 wait 0 within 5000 after e-2\n"
               "put 3 after 2 " E(3) "\nsettle\n");
}

static void pages_follow_each_other_and_are_settled_at_the_end(void **state)
{
    (void)state;
    world.page_max = 2;
    run(BT_OK, NULL);
    expect_log("connect\nsync make\n"
               "read from 1 limit 1 wait 0 within 5000 after \n"
               "read from 1 limit 1000 wait 0 within 5000 after \n"
               "put 1 after 0 " E(1) "\nput 2 after 1 " E(
                   2) "\n"
                      "read from 3 limit 1000 wait 0 within 5000 after last-of-page\n"
                      "put 3 after 2 " E(3) "\nsettle\n");
}

static void then_it_waits_for_events_until_it_is_stopped(void **state)
{
    (void)state;
    opt.once = false;
    world.stop_at = world.now + 2500;
    run(BT_OK, NULL);
    assert_int_equal(count("read from 4 limit 1000 wait 1000 within 6000 after "), 3);
    assert_int_equal(count("settle"), 4);
    assert_int_equal(count("sync"), 1);
    (void)tear_down(state);
    (void)set_up(state);
    opt.once = false;
    world.stop_at = 0;
    run(BT_OK, NULL);
    assert_int_equal(count("put"), 0); /* it was told before */
}

static void a_shard_is_read_by_its_number(void **state)
{
    (void)state;
    world.shards = opt.shards = 4;
    opt.shard = 2;
    run(BT_OK, NULL);
    assert_int_equal(count("read of 2 from 1 "), 2);
    opt.shards = 3;
    run(BT_INVALID, "--shard: the fleet has 4 shards, not 3");
    opt.shards = 0;
    run(BT_INVALID, "--shard: the fleet has 4 shards, not 1");
    world.shards = 1;
    opt.shards = 1;
    run(BT_OK, NULL);
}

static void ranges_that_were_deleted_are_gone_over(void **state)
{
    (void)state;
    events(3, (uint64_t[]){3, 4, 9});
    world.deleted[0] = (struct msg_seq_range){.from_seq = 1, .to_seq = 1};
    world.deleted[1] = (struct msg_seq_range){.from_seq = 2, .to_seq = 2};
    world.deleted[2] = (struct msg_seq_range){.from_seq = 5, .to_seq = 8};
    world.deleted[3] = (struct msg_seq_range){.from_seq = 10, .to_seq = 12};
    world.deleted_n = 4;
    world.last_seq = 12;
    run(BT_OK, NULL);
    assert_int_equal(count("put"), 3);
    assert_int_equal(count("put 3 after 0 "), 1);
    assert_int_equal(count("put 4 after 3 "), 1);
    assert_int_equal(count("put 9 after 4 "), 1);
}

static void a_range_that_began_before_counts_from_here_on(void **state)
{
    (void)state;
    events(1, (uint64_t[]){6});
    world.at = (struct stream_at){.seq = 3, .event_id = ""};
    world.deleted[0] = (struct msg_seq_range){.from_seq = 1, .to_seq = 2}; /* long ago */
    world.deleted[1] = (struct msg_seq_range){.from_seq = 2, .to_seq = 5};
    world.deleted_n = 2;
    run(BT_OK, NULL);
    assert_int_equal(count("put 6 after 3 "), 1);
}

static void a_gap_that_nobody_deleted_is_not_put(void **state)
{
    (void)state;
    events(3, (uint64_t[]){1, 2, 5});
    run(BT_CONFLICT, "the daemon does not show the events 3 to 4, which were not deleted");
    assert_int_equal(count("put"), 2);
    (void)tear_down(state);
    (void)set_up(state);
    world.next_seq = 6;
    run(BT_CONFLICT, "does not show the events 4 to 5");
    assert_int_equal(count("put"), 3);
    assert_int_equal(count("settle"), 0);
}

static void a_stream_of_another_journal_is_refused(void **state)
{
    (void)state;
    world.at = (struct stream_at){.seq = 3, .event_id = "e-3"};
    run(BT_OK, NULL);
    world.at.seq = 4;
    run(BT_CONFLICT, "the stream BATON_main ends with event 4, and the daemon has 3");
    world.at = (struct stream_at){.seq = 3, .event_id = "other"};
    run(BT_CONFLICT, "event 3 is e-3 in the daemon and other in the stream BATON_main");
    world.at.event_id[0] = 0; /* nothing to compare */
    run(BT_OK, NULL);
    assert_int_equal(count("put"), 0);
}

static void an_event_that_was_deleted_is_not_compared(void **state)
{
    (void)state;
    events(2, (uint64_t[]){1, 4});
    world.deleted[0] = (struct msg_seq_range){.from_seq = 2, .to_seq = 3};
    world.deleted_n = 1;
    world.at = (struct stream_at){.seq = 2, .event_id = "e-2"};
    run(BT_OK, NULL);
    assert_int_equal(count("put 4 after 2 "), 1);
}

static void of_a_failover_it_is_said_from_where_on(void **state)
{
    static const char SAYS[] = "a failover lost events that the stream BATON_main has, from event 2"
                               " on, and their numbers are used again";

    (void)state;
    world.history = 2;
    world.at = (struct stream_at){.seq = 3, .event_id = "e-3"};
    run(BT_CONFLICT, SAYS); /* read_next */
    world.at = (struct stream_at){.seq = 3, .event_id = "other"};
    run(BT_CONFLICT, SAYS);
    assert_int_equal(count("read from 4 limit 1 wait 0 within 5000 after other\n"), 1);
    world.at = (struct stream_at){.seq = 4, .event_id = "e-4"};
    run(BT_CONFLICT, SAYS);
    world.history = 1; /* it knows of none */
    run(BT_CONFLICT, "the stream BATON_main ends with event 4, and the daemon has 3");
}

/* The text, and then what JavaScript takes for the end of a line. */
static void an_event_that_there_is_no_memory_for_is_not_put(void **state)
{
    static char goal[1024];
    int fails = 0;

    (void)state;
    for (size_t n = 0; n + 7 < sizeof goal;) {
        n += (size_t)snprintf(goal + n, sizeof goal - n, "\\u2028");
    }
    for (int left = 0; left < 20; left++) {
        enum bt_code code;
        (void)tear_down(state);
        (void)set_up(state);
        world.goal = goal;
        world.begins_with = left;
        code = bridge_run(&opt, STOP_FD, &err);
        world.few = false;
        if (code == BT_OK) {
            assert_int_equal(count("put"), 3);
            assert_true(fails >= 2);
            return;
        }
        assert_int_equal(code, BT_NOMEM);
        assert_int_equal(count("put"), 0);
        fails++;
    }
    fail_msg("it fails with all the memory that it wants");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(once_copies_what_the_daemon_has),
        TEST(it_goes_on_behind_what_the_stream_has),
        TEST(pages_follow_each_other_and_are_settled_at_the_end),
        TEST(then_it_waits_for_events_until_it_is_stopped),
        TEST(a_shard_is_read_by_its_number),
        TEST(ranges_that_were_deleted_are_gone_over),
        TEST(a_range_that_began_before_counts_from_here_on),
        TEST(a_gap_that_nobody_deleted_is_not_put),
        TEST(a_stream_of_another_journal_is_refused),
        TEST(an_event_that_was_deleted_is_not_compared),
        TEST(of_a_failover_it_is_said_from_where_on),
        TEST(an_event_that_there_is_no_memory_for_is_not_put),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
