/* Calls of senders to the daemon, over a link without sockets: what is sent again and how often. */
#include "tests/unit/gateway/upstream_world.h"

enum { TRIES = 3, IDLE_MS = 60000 };

/* ---- lost answers ---- */

static void what_reads_is_sent_three_times_and_no_more(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    run(&w, NOW);
    for (int i = 1; i < TRIES; i++) {
        assert_non_null(busy(&w));
        fake_lane_down(busy(&w), true);
        run(&w, NOW);
        assert_int_equal(w.done, 0);
    }
    assert_non_null(busy(&w));
    fake_lane_down(busy(&w), true);
    run(&w, NOW);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.code, BT_UNAVAILABLE);
    assert_non_null(strstr(w.message, "the outcome is unknown"));
    assert_null(busy(&w));
    close_world(&w);
}

static void the_last_of_three_tries_can_be_answered(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    run(&w, NOW);
    for (int i = 1; i < TRIES; i++) {
        fake_lane_down(busy(&w), true);
        run(&w, NOW);
    }
    answer(&w, OK, NOW);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.ok, 1);
    assert_true(caller_is_proved(w.c));
    close_world(&w);
}

static void what_changes_something_is_not_sent_again(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, false, 0, NOW), BT_OK);
    run(&w, NOW);
    fake_lane_down(busy(&w), true);
    run(&w, NOW);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.code, BT_UNAVAILABLE);
    close_world(&w);
}

static void what_never_left_is_sent_again_however_often(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, false, 0, NOW), BT_OK);
    run(&w, NOW);
    for (int i = 0; i < 2 * TRIES; i++) {
        fake_lane_down(busy(&w), false);
        run(&w, NOW);
        assert_int_equal(w.done, 0);
    }
    answer(&w, OK, NOW);
    assert_int_equal(w.ok, 1);
    close_world(&w);
}

/* ---- answers ---- */

static void an_answer_of_another_kind_breaks_the_protocol(void **state)
{
    static const char *const bad[] = {"{'v':1,'id':'http','ok':true,'type':'plan.list.ok'}",
                                      "garbage"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct world w;
        open_world(&w);
        assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
        run(&w, NOW);
        answer(&w, bad[i], NOW);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.ok, 0);
        assert_int_equal(w.code, BT_PROTOCOL);
        assert_false(caller_is_proved(w.c));
        close_world(&w);
    }
}

static void a_sender_that_the_daemon_does_not_know_is_asked_for_nothing_more(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    run(&w, NOW);
    answer(&w,
           "{'v':1,'id':'http','ok':false,'type':'error','error':{'code':'UNAUTHORIZED',"
           "'message':'no','retryable':false,'details':{'sender':'unknown'}}}",
           NOW);
    assert_int_equal(w.done, 2); /* what waited, too */
    assert_int_equal(w.code, BT_UNAUTHORIZED);
    assert_int_equal(calls(&w, true, 0, NOW), BT_UNAUTHORIZED);
    close_world(&w);
}

/* ---- lanes and times ---- */

static void a_stranger_has_one_request_out_and_the_proved_one_has_eight(void **state)
{
    const struct link *l;
    struct world w;
    uint32_t out = 0;

    (void)state;
    open_world(&w);
    for (int i = 0; i < CALLER_LANES_MAX + 3; i++) {
        assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    }
    l = upstream_link(w.u);
    for (int i = 0; i < 3; i++) {
        run(&w, NOW);
    }
    assert_int_equal(fake_link_lanes(l), 1);
    answer(&w, OK, NOW);
    for (int i = 0; i < 2 * CALLER_LANES_MAX; i++) {
        run(&w, NOW);
    }
    for (uint32_t i = 0; i < fake_link_lanes(l); i++) {
        out += fake_link_lane(l, i)->outstanding;
    }
    assert_int_equal(out, CALLER_LANES_MAX);
    close_world(&w);
}

static void four_calls_may_wait_for_events_and_a_fifth_is_refused(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (int i = 0; i < CALLER_WAITS_MAX; i++) {
        assert_int_equal(calls(&w, true, 1000, NOW), BT_OK);
    }
    assert_int_equal(calls(&w, true, 1000, NOW), BT_BUSY);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK); /* one that does not wait */
    close_world(&w);
}

static void so_many_calls_of_a_sender_wait_and_one_more_is_refused(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (int i = 0; i < CALLER_CALLS_MAX; i++) {
        assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    }
    assert_int_equal(calls(&w, true, 0, NOW), BT_BUSY);
    close_world(&w);
}

static void an_answer_has_its_time_and_not_a_millisecond_more(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    run(&w, NOW);
    run(&w, NOW + CALL_MS - 1);
    assert_int_equal(w.done, 0);
    run(&w, NOW + CALL_MS);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.code, BT_TIMEOUT);
    close_world(&w);
}

static void a_call_that_never_had_a_lane_says_that_no_daemon_runs(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    remove_state();
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    run(&w, NOW + CALL_MS - 1);
    assert_int_equal(w.done, 0);
    run(&w, NOW + CALL_MS);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.code, BT_UNAVAILABLE);
    assert_non_null(strstr(w.message, "baton up"));
    close_world(&w);
}

static void an_idle_lane_is_closed_after_a_minute(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    run(&w, NOW);
    answer(&w, OK, NOW);
    run(&w, NOW + IDLE_MS);
    assert_false(fake_link_lane(upstream_link(w.u), 0)->retired);
    run(&w, NOW + IDLE_MS + 1);
    assert_true(fake_link_lane(upstream_link(w.u), 0)->retired);
    close_world(&w);
}

/* Only TLS reaches it, and this program has no identity for that. */
static void a_shard_that_another_host_leads_is_refused_with_its_node_and_address(void **unused)
{
    const uint8_t empty = 0x80;
    struct call_spec spec = {.type = MSG_supervisor_info,
                             .answer = MSG_supervisor_info_ok,
                             .fields = {&empty, 1},
                             .to_shard = 2,
                             .done = on_done};
    struct world w;
    struct call *call;
    struct bt_error err;
    char path[96];
    FILE *f;

    (void)unused;
    open_world(&w);
    (void)snprintf(path, sizeof path, "%s/fleet.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("{\"version\":1,\"shards\":[{\"shard\":0,\"control\":\"tcp://127.0.0.1:7117\","
                "\"here\":true},{\"shard\":1,\"control\":\"tcp://127.0.0.1:7118\",\"node\":\"two\","
                "\"remote\":\"tls+tcp://two.example:7119\",\"here\":false}]}",
                f);
    (void)fclose(f);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    upstream_run(w.u, NOW); /* which looks for the daemon, and reads the map */
    assert_int_equal(upstream_shards(w.u), 2);
    spec.self = &w;
    assert_int_equal(caller_call(w.c, &spec, NOW, &call, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "shard 1 is led by node two"));
    assert_non_null(strstr(err.msg, "tls+tcp://two.example:7119"));
    spec.to_shard = 1;
    assert_int_equal(caller_call(w.c, &spec, NOW, &call, &err), BT_OK);
    (void)unlink(path);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_reads_is_sent_three_times_and_no_more),
        cmocka_unit_test(the_last_of_three_tries_can_be_answered),
        cmocka_unit_test(what_changes_something_is_not_sent_again),
        cmocka_unit_test(what_never_left_is_sent_again_however_often),
        cmocka_unit_test(an_answer_of_another_kind_breaks_the_protocol),
        cmocka_unit_test(a_sender_that_the_daemon_does_not_know_is_asked_for_nothing_more),
        cmocka_unit_test(a_stranger_has_one_request_out_and_the_proved_one_has_eight),
        cmocka_unit_test(four_calls_may_wait_for_events_and_a_fifth_is_refused),
        cmocka_unit_test(so_many_calls_of_a_sender_wait_and_one_more_is_refused),
        cmocka_unit_test(an_answer_has_its_time_and_not_a_millisecond_more),
        cmocka_unit_test(a_call_that_never_had_a_lane_says_that_no_daemon_runs),
        cmocka_unit_test(an_idle_lane_is_closed_after_a_minute),
        cmocka_unit_test(a_shard_that_another_host_leads_is_refused_with_its_node_and_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
