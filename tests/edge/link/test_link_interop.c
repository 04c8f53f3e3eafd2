/* Other implementations of SP: Debian's nngcat and plain Python (tests/support/sp.py). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/edge/link/fixture.h"

#define ARG(text) ((char *)(uintptr_t)(text))

static const char interop[] = INTEROP_SCRIPT;

/* Runs argv[0] against the server in `l` while this process answers `requests` requests. */
static void serve_child(struct link *l, struct child *c, int requests)
{
    for (int i = 0; i < requests; i++) {
        const struct link_event ev = fixture_expect(l, LINK_REQUEST);
        const struct str bytes = link_msg_bytes(ev.msg);
        assert_true(link_answer(ev.server, ev.request, bytes.ptr, bytes.len));
        link_msg_free(ev.msg);
    }
    child_finish(c);
    assert_int_equal(c->status, 0);
}

static void nngcat_asks_a_server(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    char *argv[] = {ARG("nngcat"), ARG("--req"),       ARG("--dial"),  ARG(link_server_url(s)),
                    ARG("-D"),     ARG("from nngcat"), ARG("--ascii"), NULL};
    struct child c = child_start(argv);
    serve_child(l, &c, 1);
    assert_memory_equal(c.text, "from nngcat", strlen("from nngcat"));
    link_free(l);
}

static void nngcat_subscribes(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_pub *p = NULL;
    struct link_event ev;
    assert_int_equal(link_pub_open(l, "tcp://127.0.0.1:0", &fixture_limits, &p, NULL), BT_OK);
    char *argv[] = {ARG("nngcat"),      ARG("--sub"), ARG("--dial"),   ARG(link_pub_url(p)),
                    ARG("--subscribe"), ARG("plan/"), ARG("--quoted"), ARG("--count"),
                    ARG("1"),           NULL};
    struct child c = child_start(argv);
    for (int i = 0; i < 500 && !child_readable(&c); i++) {
        link_publish(p, STR_LIT("agent/x"), "no", 2);
        link_publish(p, STR_LIT("plan/1"), "body", 4);
        assert_false(fixture_next(l, 10, &ev));
    }
    child_finish(&c);
    assert_int_equal(c.status, 0);
    assert_string_equal(c.text, "\"plan/1\\x00body\"\n");
    link_free(l);
}

static void python_asks_a_server(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    char *argv[] = {ARG("python3"), ARG(interop), ARG("req"), ARG(link_server_url(s)), NULL};
    struct child c = child_start(argv);
    serve_child(l, &c, 4);
    assert_string_equal(c.text, "ask 0,ask 1,ask 2\n300000\n");
    link_free(l);
}

static void python_subscribes(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_pub *p = NULL;
    struct link_event ev;
    assert_int_equal(link_pub_open(l, "tcp://127.0.0.1:0", &fixture_limits, &p, NULL), BT_OK);
    char *argv[] = {ARG("python3"), ARG(interop), ARG("sub"), ARG(link_pub_url(p)), NULL};
    struct child c = child_start(argv);
    child_line(&c);
    for (int i = 0; i < 500 && !child_readable(&c); i++) {
        link_publish(p, STR_LIT("agent/x"), "no", 2);
        link_publish(p, STR_LIT("plan/1"), "body", 4);
        assert_false(fixture_next(l, 10, &ev));
    }
    child_finish(&c);
    assert_int_equal(c.status, 0);
    assert_string_equal(c.text, "connected\nplan/1 body\n");
    link_free(l);
}

static void python_agent_that_listens_answers_a_lane(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    char *argv[] = {ARG("python3"), ARG(interop), ARG("rep"), NULL};
    struct child c = child_start(argv);
    struct link_lane *lane = fixture_lane(l, child_line(&c));
    for (int i = 0; i < 2; i++) {
        fixture_send(lane, "hi");
        fixture_assert_bytes(fixture_expect(l, LINK_ANSWER), "py:hi");
    }
    child_finish(&c);
    assert_int_equal(c.status, 0);
    (void)fixture_expect(l, LINK_DOWN);
    link_free(l);
}

static void python_agent_that_dials_answers_a_listening_lane(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_lane *lane = NULL;
    assert_int_equal(link_lane_listen(l, "tcp://127.0.0.1:0", &fixture_limits, NULL, &lane, NULL),
                     BT_OK);
    char *argv[] = {ARG("python3"), ARG(interop), ARG("repdial"), ARG(link_lane_url(lane)), NULL};
    struct child c = child_start(argv);
    (void)fixture_expect(l, LINK_UP);
    for (int i = 0; i < 2; i++) {
        fixture_send(lane, "hi");
        fixture_assert_bytes(fixture_expect(l, LINK_ANSWER), "py:hi");
    }
    child_finish(&c);
    assert_int_equal(c.status, 0);
    (void)fixture_expect(l, LINK_DOWN);
    link_free(l);
}

int main(void)
{
    fixture_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nngcat_asks_a_server),
        cmocka_unit_test(nngcat_subscribes),
        cmocka_unit_test(python_asks_a_server),
        cmocka_unit_test(python_subscribes),
        cmocka_unit_test(python_agent_that_listens_answers_a_lane),
        cmocka_unit_test(python_agent_that_dials_answers_a_listening_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
