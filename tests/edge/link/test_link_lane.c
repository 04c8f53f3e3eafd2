/* Lanes and servers: one request, at most one execution, an outcome in every case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

enum { BIG_BYTES = 300 * 1024, MANY_LANES = 64 };

/* Waits until the peer's log has `lines` lines, one per request. The link stays silent meanwhile.
 */
static void wait_for_lines(struct link *l, const char *log, int lines)
{
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS;
    struct link_event ev;
    while (fixture_lines(log) < lines) {
        assert_true(clock_mono_ms() < until);
        assert_false(fixture_next(l, 2, &ev));
    }
}

static void request_is_echoed_between_a_lane_and_a_server(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    assert_string_not_equal(link_server_url(s), "tcp://127.0.0.1:0");
    struct link_lane *lane = fixture_lane(l, link_server_url(s));
    assert_true(link_lane_is_up(lane));
    for (int i = 0; i < 100; i++) {
        fixture_send(lane, "hello");
        fixture_assert_bytes(fixture_serve_until(l, LINK_ANSWER), "hello");
    }
    fixture_send(lane, "");
    fixture_assert_bytes(fixture_serve_until(l, LINK_ANSWER), "");
    link_free(l);
}

static void bytes_of_a_large_request_survive(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    struct link_lane *lane = fixture_lane(l, link_server_url(s));
    char *big = malloc(BIG_BYTES);
    assert_non_null(big);
    for (size_t i = 0; i < BIG_BYTES; i++) {
        big[i] = (char)(i * 31 % 251);
    }
    assert_int_equal(link_lane_send(lane, big, BIG_BYTES, NULL), BT_OK);
    const struct link_event ev = fixture_serve_until(l, LINK_ANSWER);
    assert_int_equal(link_msg_bytes(ev.msg).len, BIG_BYTES);
    assert_memory_equal(link_msg_bytes(ev.msg).ptr, big, BIG_BYTES);
    link_msg_free(ev.msg);
    free(big);
    link_free(l);
}

static void oversize_body_is_refused_and_the_lane_recovers(void **state)
{
    (void)state;
    static const char body[8192];
    struct link *l = fixture_link();
    struct link_server *s = NULL;
    struct bt_error err;
    const struct link_limits small = {.recv_max = 1024};
    assert_int_equal(link_server_open(l, "tcp://127.0.0.1:0", 2, &small, NULL, &s, &err), BT_OK);
    struct link_lane *lane = fixture_lane(l, link_server_url(s));
    assert_int_equal(link_lane_send(lane, body, FIXTURE_RECV_MAX + 1, &err), BT_LIMIT);
    struct link_server *large = fixture_server(l, "tcp://127.0.0.1:0", 2);
    struct link_lane *full = fixture_lane(l, link_server_url(large));
    char *most = calloc(1, FIXTURE_RECV_MAX);
    assert_non_null(most);
    assert_int_equal(link_lane_send(full, most, FIXTURE_RECV_MAX, &err), BT_OK);
    const struct link_event whole = fixture_serve_until(l, LINK_ANSWER);
    assert_int_equal(link_msg_bytes(whole.msg).len, FIXTURE_RECV_MAX);
    link_msg_free(whole.msg);
    free(most);
    assert_int_equal(link_lane_send(lane, body, sizeof body, &err), BT_OK);
    assert_true(fixture_expect_lost_and(l, LINK_UP).sent);
    /* exactly at the cap is not over it */
    assert_int_equal(link_lane_send(lane, body, 1024, &err), BT_OK);
    const struct link_event ev = fixture_serve_until(l, LINK_ANSWER);
    assert_int_equal(link_msg_bytes(ev.msg).len, 1024);
    link_msg_free(ev.msg);
    link_free(l);
}

static void second_outstanding_request_is_busy(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    struct link_lane *lane = fixture_lane(l, link_server_url(s));
    fixture_send(lane, "first");
    assert_int_equal(link_lane_send(lane, "second", 6, NULL), BT_BUSY);
    fixture_assert_bytes(fixture_serve_until(l, LINK_ANSWER), "first");
    fixture_send(lane, "second");
    fixture_assert_bytes(fixture_serve_until(l, LINK_ANSWER), "second");
    link_free(l);
}

static void request_without_a_pipe_is_unavailable(void **state)
{
    (void)state;
    char url[64];
    struct link *l = fixture_link();
    struct link *gone = fixture_link();
    (void)snprintf(url, sizeof url, "%s",
                   link_server_url(fixture_server(gone, "tcp://127.0.0.1:0", 1)));
    link_free(gone);
    struct link_lane *lane = NULL;
    struct bt_error err;
    assert_int_equal(link_lane_dial(l, url, &fixture_limits, NULL, &lane, &err), BT_OK);
    assert_int_equal(link_lane_send(lane, "x", 1, &err), BT_UNAVAILABLE);
    assert_false(link_lane_is_up(lane));
    link_free(l);
}

/* What no peer has got is over; the lane takes its peer and the next request. */
static void lane_that_had_no_peer_takes_the_one_that_comes(void **state)
{
    (void)state;
    char url[128];
    struct link *l = fixture_link();
    const char *dir = fixture_dir();
    struct link_lane *lane = NULL;
    struct bt_error err;
    (void)snprintf(url, sizeof url, "ipc://%s/late.sock", dir);
    assert_int_equal(link_lane_dial(l, url, &fixture_limits, NULL, &lane, &err), BT_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(link_lane_send(lane, "x", 1, &err), BT_UNAVAILABLE);
    }
    (void)fixture_server(l, url, 1);
    (void)fixture_expect(l, LINK_UP);
    fixture_send(lane, "later");
    fixture_assert_bytes(fixture_serve_until(l, LINK_ANSWER), "later");
    link_free(l);
    fixture_rmdir(dir);
}

static void handle_is_answered_once_and_no_other_handle_is(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    struct link_lane *lane = fixture_lane(l, link_server_url(s));
    fixture_send(lane, "q");
    const struct link_event ev = fixture_expect(l, LINK_REQUEST);
    link_msg_free(ev.msg);
    assert_false(link_answer(s, ev.request + 1, "no", 2));
    assert_false(link_answer(s, ev.request + (UINT64_C(1) << 32), "no", 2));
    assert_false(link_answer(s, UINT64_MAX, "no", 2));
    assert_true(link_answer(s, ev.request, "yes", 3));
    assert_false(link_answer(s, ev.request, "no", 2));
    fixture_assert_bytes(fixture_expect(l, LINK_ANSWER), "yes");
    assert_false(link_answer(s, ev.request, "no", 2));
    link_free(l);
}

static void killed_peer_loses_the_request_and_no_successor_repeats_it(void **state)
{
    (void)state;
    char log[128];
    const char *dir = fixture_dir();
    (void)snprintf(log, sizeof log, "%s/log", dir);
    struct link *l = fixture_link();
    struct child p = peer_start("hold", "tcp://127.0.0.1:0", log);
    char url[256];
    (void)snprintf(url, sizeof url, "%s", child_line(&p));
    struct link_lane *lane = fixture_lane(l, url);
    fixture_send(lane, "first");
    wait_for_lines(l, log, 1);
    child_kill(&p);
    const msec killed = clock_mono_ms();
    const struct link_event lost = fixture_expect_lost_and(l, LINK_DOWN);
    assert_true(clock_mono_ms() - killed < 1000);
    assert_true(lost.sent);
    p = peer_start("echo", url, log);
    assert_ptr_equal(fixture_expect(l, LINK_UP).lane, lane);
    fixture_send(lane, "second");
    fixture_assert_bytes(fixture_expect(l, LINK_ANSWER), "second");
    assert_int_equal(fixture_lines(log), 2);
    child_kill(&p);
    link_free(l);
    fixture_rmdir(dir);
}

static void slow_handler_is_not_sent_the_request_again(void **state)
{
    (void)state;
    char log[128];
    struct link_event ev;
    const char *dir = fixture_dir();
    (void)snprintf(log, sizeof log, "%s/log", dir);
    struct link *l = fixture_link();
    struct child p = peer_start("hold", "tcp://127.0.0.1:0", log);
    struct link_lane *lane = fixture_lane(l, child_line(&p));
    fixture_send(lane, "slow");
    wait_for_lines(l, log, 1);
    assert_false(fixture_next(l, 300, &ev));
    assert_int_equal(write(p.in, "g", 1), 1);
    fixture_assert_bytes(fixture_expect(l, LINK_ANSWER), "slow");
    assert_int_equal(fixture_lines(log), 1);
    child_kill(&p);
    link_free(l);
    fixture_rmdir(dir);
}

static void lane_over_the_inbox_cap_is_refused(void **state)
{
    (void)state;
    struct link *l = NULL;
    struct link_server *s = NULL;
    struct link_lane *lane = NULL;
    struct bt_error err;
    assert_int_equal(link_new(3, &l, &err), BT_OK);
    assert_int_equal(link_server_open(l, "tcp://127.0.0.1:0", 4, &fixture_limits, NULL, &s, &err),
                     BT_LIMIT);
    assert_int_equal(link_server_open(l, "tcp://127.0.0.1:0", 3, &fixture_limits, NULL, &s, &err),
                     BT_OK);
    assert_int_equal(link_lane_dial(l, link_server_url(s), &fixture_limits, NULL, &lane, &err),
                     BT_LIMIT);
    link_free(l);
}

static void many_lanes_echo_at_once(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", MANY_LANES);
    struct link_lane *lanes[MANY_LANES];
    struct link_event ev;
    int answers = 0;
    for (int i = 0; i < MANY_LANES; i++) {
        lanes[i] = fixture_lane(l, link_server_url(s));
    }
    for (int i = 0; i < MANY_LANES; i++) {
        fixture_send(lanes[i], "round");
    }
    while (answers < MANY_LANES * 50) {
        assert_true(fixture_next(l, FIXTURE_WAIT_MS, &ev));
        const struct str bytes = link_msg_bytes(ev.msg);
        if (ev.type == LINK_REQUEST) {
            assert_true(link_answer(ev.server, ev.request, bytes.ptr, bytes.len));
        } else {
            assert_int_equal(ev.type, LINK_ANSWER);
            answers++;
            if (answers <= MANY_LANES * 49) {
                fixture_send(ev.lane, "round");
            }
        }
        link_msg_free(ev.msg);
    }
    link_free(l);
}

int main(void)
{
    fixture_watchdog(170);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_is_echoed_between_a_lane_and_a_server),
        cmocka_unit_test(bytes_of_a_large_request_survive),
        cmocka_unit_test(oversize_body_is_refused_and_the_lane_recovers),
        cmocka_unit_test(second_outstanding_request_is_busy),
        cmocka_unit_test(request_without_a_pipe_is_unavailable),
        cmocka_unit_test(lane_that_had_no_peer_takes_the_one_that_comes),
        cmocka_unit_test(handle_is_answered_once_and_no_other_handle_is),
        cmocka_unit_test(killed_peer_loses_the_request_and_no_successor_repeats_it),
        cmocka_unit_test(slow_handler_is_not_sent_the_request_again),
        cmocka_unit_test(lane_over_the_inbox_cap_is_refused),
        cmocka_unit_test(many_lanes_echo_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
