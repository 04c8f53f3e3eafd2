/* Events: no loss for a subscriber that reads, no blocking by one that does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <signal.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

enum { BURST = 5000, FLOOD = 20000 };

static void burst_reaches_a_healthy_subscriber_whole_and_in_order(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link *reader = fixture_link();
    struct link_pub *p = fixture_publisher(l, "tcp://127.0.0.1:0");
    (void)fixture_subscriber(reader, link_pub_url(p), NULL, 0);
    fixture_wait_live(reader, p);
    for (uint32_t i = 0; i < BURST; i++) {
        char body[256] = {0};
        memcpy(body, &i, sizeof i);
        link_publish(p, STR_LIT("plan/1"), body, sizeof body);
    }
    for (uint32_t i = 0; i < BURST; i++) {
        uint32_t got = 0;
        struct str topic;
        struct str body;
        const struct link_event ev = fixture_expect(reader, LINK_FRAME);
        assert_true(link_frame_split(link_msg_bytes(ev.msg), &topic, &body));
        assert_int_equal(body.len, 256);
        memcpy(&got, body.ptr, sizeof got);
        assert_int_equal(got, i);
        assert_true(str_is(topic, "plan/1"));
        link_msg_free(ev.msg);
    }
    link_free(reader);
    link_free(l);
}

static void stopped_subscriber_never_blocks_the_publisher(void **state)
{
    (void)state;
    static const char body[1024];
    struct link *l = fixture_link();
    struct link_pub *p = fixture_publisher(l, "tcp://127.0.0.1:0");
    struct child stuck = peer_start("subscribe", link_pub_url(p), NULL);
    (void)child_line(&stuck);
    assert_int_equal(kill(stuck.pid, SIGSTOP), 0);
    msec worst = 0;
    for (int i = 0; i < FLOOD; i++) {
        const msec before = clock_mono_ms();
        link_publish(p, STR_LIT("flood"), body, sizeof body);
        const msec took = clock_mono_ms() - before;
        worst = took > worst ? took : worst;
    }
    assert_true(worst < 500);
    /* and a subscriber that reads still gets its frames */
    struct link *reader = fixture_link();
    (void)fixture_subscriber(reader, link_pub_url(p), NULL, 0);
    fixture_wait_live(reader, p);
    child_kill(&stuck);
    link_free(reader);
    link_free(l);
}

static void prefixes_filter_by_the_bytes_of_the_topic(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link *reader = fixture_link();
    struct link_pub *p = fixture_publisher(l, "tcp://127.0.0.1:0");
    const struct str prefixes[] = {STR_LIT("plan/42/"), STR_LIT("live")};
    (void)fixture_subscriber(reader, link_pub_url(p), prefixes, 2);
    fixture_wait_live(reader, p);
    link_publish(p, STR_LIT("plan/421/x"), "no", 2);
    link_publish(p, STR_LIT("agent/42/"), "no", 2);
    link_publish(p, STR_LIT("plan/42/x"), "yes", 3);
    struct str topic;
    struct str body;
    const struct link_event ev = fixture_expect(reader, LINK_FRAME);
    assert_true(link_frame_split(link_msg_bytes(ev.msg), &topic, &body));
    assert_true(str_is(topic, "plan/42/x"));
    assert_true(str_is(body, "yes"));
    link_msg_free(ev.msg);
    link_free(reader);
    link_free(l);
}

/* The ring between nng and the owner fills, pauses and resumes. The flood of one sub does not
 * starve a lane. */
static void flooded_inbox_still_serves_others(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link *reader = fixture_link();
    struct link_pub *p = fixture_publisher(l, "tcp://127.0.0.1:0");
    (void)fixture_subscriber(reader, link_pub_url(p), NULL, 0);
    fixture_wait_live(reader, p);
    struct link_server *s = fixture_server(reader, "tcp://127.0.0.1:0", 1);
    struct link_lane *lane = fixture_lane(l, link_server_url(s));
    for (int i = 0; i < 4000; i++) {
        link_publish(p, STR_LIT("flood"), "x", 1);
    }
    fixture_send(lane, "urgent");
    struct link_event ev;
    int frames = 0;
    bool answered = false;
    while (frames < 4000) {
        assert_true(fixture_next(reader, FIXTURE_WAIT_MS, &ev));
        if (ev.type == LINK_REQUEST) {
            assert_true(link_answer(ev.server, ev.request, "ok", 2));
            answered = true;
        }
        frames += ev.type == LINK_FRAME;
        link_msg_free(ev.msg);
    }
    if (!answered) {
        const struct link_event request = fixture_expect(reader, LINK_REQUEST);
        assert_true(link_answer(request.server, request.request, "ok", 2));
        link_msg_free(request.msg);
    }
    fixture_assert_bytes(fixture_expect(l, LINK_ANSWER), "ok");
    link_free(reader);
    link_free(l);
}

int main(void)
{
    fixture_watchdog(120);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(burst_reaches_a_healthy_subscriber_whole_and_in_order),
        cmocka_unit_test(stopped_subscriber_never_blocks_the_publisher),
        cmocka_unit_test(prefixes_filter_by_the_bytes_of_the_topic),
        cmocka_unit_test(flooded_inbox_still_serves_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
