/* What the bridge waits for and how long, and what it says meanwhile. */
#include "tests/unit/bridge/copy_world.h"

/* ---- waiting ---- */

static void once_it_does_not_wait(void **state)
{
    static const char *const CALLS[] = {"client", "shards", "nats", "new",
                                        "sync",   "read",   "put",  "settle"};

    (void)state;
    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++) {
        (void)set_up(state);
        let_fail(CALLS[i], BT_UNAVAILABLE, 1);
        run(BT_UNAVAILABLE, CALLS[i]);
        assert_int_equal(count("pause"), 0);
        assert_int_equal(world.clients + world.servers + world.streams, 0);
        for (size_t k = 0; k < EVENTS_MAX; k++) {
            buf_done(&world.events[k]);
        }
    }
}

static void what_passes_is_waited_for(void **state)
{
    static const struct {
        enum bt_code code;
        int pause;
    } CASES[] = {
        {BT_UNAVAILABLE, PAUSE}, {BT_TIMEOUT, PAUSE}, {BT_BUSY, PAUSE}, {BT_LIMIT, PAUSE_LONG}};
    char text[TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        (void)set_up(state);
        opt.once = false;
        world.stop_at = world.now + 10000;
        let_fail("put", CASES[i].code, 2);
        run(BT_OK, NULL);
        (void)snprintf(text, sizeof text, "pause %d\n", CASES[i].pause);
        assert_int_equal(count("pause"), 2);
        assert_int_equal(count(text), 2);
        assert_int_equal(count("sync"), 3); /* it is asked where the stream ends */
        assert_int_equal(count("put 1 after 0"), 3);
        assert_int_equal(count("put 3 after 2"), 1);
        for (size_t k = 0; k < EVENTS_MAX; k++) {
            buf_done(&world.events[k]);
        }
    }
}

static void what_does_not_pass_ends_it(void **state)
{
    static const enum bt_code CODES[] = {BT_CONFLICT, BT_UNAUTHORIZED, BT_INVALID, BT_NOMEM, BT_IO};

    (void)state;
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
        (void)set_up(state);
        opt.once = false;
        let_fail("sync", CODES[i], 1);
        run(CODES[i], "sync: away");
        assert_int_equal(count("pause"), 0);
    }
}

/* Another bridge was faster: once more, also with --once. */
static void a_stream_that_has_changed_is_read_again(void **state)
{
    (void)state;
    let_fail("put", BT_BUSY, 1);
    run(BT_OK, NULL);
    assert_int_equal(count("pause 200\n"), 1);
    assert_int_equal(count("sync"), 2);
}

static void a_pause_ends_when_it_is_stopped(void **state)
{
    (void)state;
    opt.once = false;
    world.stop_at = world.now + PAUSE;
    let_fail("client", BT_UNAVAILABLE, UINT32_MAX);
    run(BT_OK, NULL);
    assert_int_equal(count("pause"), 1);
}

static void a_connection_that_is_lost_between_two_events_is_seen(void **state)
{
    (void)state;
    world.up = false;
    run(BT_UNAVAILABLE, "BATON_main: the connection to the server is lost");
    assert_int_equal(count("settle"), 0);
}

/* libnats has given up. */
static void a_connection_that_is_closed_is_opened_anew(void **state)
{
    (void)state;
    for (uint32_t closes = 0; closes < 2; closes++) {
        (void)set_up(state);
        opt.once = false;
        world.stop_at = world.now + 3000;
        world.closes = closes == 1;
        let_fail("settle", BT_UNAVAILABLE, 1);
        run(BT_OK, NULL);
        assert_int_equal(count("connect"), 1 + closes);
        assert_int_equal(count("sync"), 2);
        assert_int_equal(world.clients + world.servers + world.streams, 0);
        for (size_t k = 0; k < EVENTS_MAX; k++) {
            buf_done(&world.events[k]);
        }
    }
}

/* ---- what is said ---- */

static uint32_t said(const char *what)
{
    uint32_t n = 0;

    for (const char *at = strstr(world.said, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

static void a_trouble_is_told_when_it_is_new_and_every_minute(void **state)
{
    (void)state;
    opt.once = false;
    let_fail("client", BT_UNAVAILABLE, UINT32_MAX);
    world.stop_at = world.now + REPEAT;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.waits why=\"client: away\""), 1);
    world.said[0] = 0;
    world.stop_at = world.now + REPEAT + PAUSE;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.waits"), 2);
    world.said[0] = 0;
    world.fails[0].times = 2;
    let_fail("sync", BT_UNAVAILABLE, 2);
    let_fail("put", BT_BUSY, 1);
    let_fail("settle", BT_LIMIT, 1);
    world.stop_at = world.now + 3000;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.waits"), 3);
    assert_int_equal(said("why=\"sync: away\""), 1);
    assert_int_equal(said("why=\"settle: away\""), 1);
    assert_int_equal(said("bridge.ends last=3"), 1);
}

/* After it went on it is a new one. */
static void a_trouble_of_before_is_told_again(void **state)
{
    (void)state;
    opt.once = false;
    let_fail("settle", BT_UNAVAILABLE, 2);
    world.stop_at = world.now + 2000;
    run(BT_OK, NULL);
    assert_int_equal(said("why=\"settle: away\""), 2);
}

static void what_was_sent_is_told_every_minute(void **state)
{
    (void)state;
    opt.once = false;
    world.stop_at = world.now + REPEAT - 1000;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.state"), 0);
    assert_int_equal(said("bridge.begins stream=BATON_main after=0 of=3"), 1);
    world.at = (struct stream_at){.seq = 0, .made = true};
    world.said[0] = 0;
    world.stop_at = world.now + 3 * REPEAT;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.state stream=BATON_main last=3 of=3 sent=3"), 1);
    assert_int_equal(said("bridge.begins stream=BATON_main made=true after=0"), 1);
}

static void ranges_that_were_deleted_are_told(void **state)
{
    (void)state;
    world.deleted[0] = (struct msg_seq_range){.from_seq = 4, .to_seq = 6};
    world.deleted_n = 1;
    world.last_seq = 6;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.deleted ranges=1 up_to=6"), 1);
}

static void the_fleet_is_waited_for_but_for_once_and_status(void **state)
{
    uint32_t n = 9;

    (void)state;
    world.shards = 4;
    opt.once = false;
    let_fail("client", BT_UNAVAILABLE, 2);
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_OK);
    assert_int_equal(n, 4);
    assert_int_equal(count("pause 200\n"), 2);
    let_fail("shards", BT_UNAVAILABLE, 1);
    opt.once = true;
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_UNAVAILABLE);
    let_fail("shards", BT_UNAVAILABLE, 1);
    opt.once = false;
    opt.status = true;
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_UNAVAILABLE);
    opt.status = false;
    let_fail("client", BT_UNAUTHORIZED, 1);
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_UNAUTHORIZED);
    let_fail("client", BT_UNAVAILABLE, UINT32_MAX);
    world.stop_at = world.now + 3 * PAUSE;
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(count("pause 200\n"), 5);
}

static void the_state_is_one_line(void **state)
{
    char line[TEXT * 2] = "";
    FILE *out = fmemopen(line, sizeof line - 1, "w");

    (void)state;
    assert_non_null(out);
    world.at = (struct stream_at){.seq = 2, .messages = 5, .bytes = 700, .event_id = "e-2"};
    assert_int_equal(bridge_status(&opt, out, &err), BT_OK);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(line, "BATON_main: up to event 2 of 3, 1 behind; 5 messages, 700 bytes\n");
    expect_log("connect\nsync look\nread from 2 limit 1 wait 0 within 5000 after \n");
    out = fmemopen(line, sizeof line - 1, "w");
    assert_non_null(out);
    let_fail("sync", BT_NOT_FOUND, 1);
    assert_int_equal(bridge_status(&opt, out, &err), BT_NOT_FOUND);
    world.at.seq = 4;
    assert_int_equal(bridge_status(&opt, out, &err), BT_CONFLICT);
    assert_int_equal(ftell(out), 0);
    assert_int_equal(fclose(out), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(once_it_does_not_wait),
        TEST(what_passes_is_waited_for),
        TEST(what_does_not_pass_ends_it),
        TEST(a_stream_that_has_changed_is_read_again),
        TEST(a_pause_ends_when_it_is_stopped),
        TEST(a_connection_that_is_lost_between_two_events_is_seen),
        TEST(a_connection_that_is_closed_is_opened_anew),
        TEST(a_trouble_is_told_when_it_is_new_and_every_minute),
        TEST(a_trouble_of_before_is_told_again),
        TEST(what_was_sent_is_told_every_minute),
        TEST(ranges_that_were_deleted_are_told),
        TEST(the_fleet_is_waited_for_but_for_once_and_status),
        TEST(the_state_is_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
