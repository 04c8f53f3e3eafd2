/*
 * The probe that guards ipc:// listeners (N6). This is a program of its own because nng loses the
 * memory of connections that reach a dead listener. Only that is hidden from the leak checker here.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

enum { STORM = 60, RECOVERY_MS = 15000 };

BT_API const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

static void connect_and_close(const char *url)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", url + strlen("ipc://"));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    (void)connect(fd, (struct sockaddr *)&to, sizeof to);
    (void)close(fd);
}

static void serve_one(struct link *l)
{
    const struct link_event request = fixture_expect(l, LINK_REQUEST);
    assert_true(link_answer(request.server, request.request, "ok", 2));
    link_msg_free(request.msg);
}

/* A storm ends nng's accept loop. The guard puts a listener back, and the existing lane continues.
 */
static void listener_comes_back_after_a_storm_of_empty_connections(void **state)
{
    (void)state;
    char url[128];
    const char *dir = fixture_dir();
    (void)snprintf(url, sizeof url, "ipc://%s/control.sock", dir);
    struct link *l = fixture_link();
    struct link *client = fixture_link();
    (void)fixture_server(l, url, 4);
    struct link_lane *old = fixture_lane(client, url);
    fixture_send(old, "before the storm"); /* answered, so its pipe exists on both sides */
    serve_one(l);
    fixture_assert_bytes(fixture_expect(client, LINK_ANSWER), "ok");
    for (int i = 0; i < STORM; i++) {
        connect_and_close(url);
    }
    fixture_send(old, "in the storm");
    serve_one(l);
    fixture_assert_bytes(fixture_expect(client, LINK_ANSWER), "ok");
    /* A peer that connects to the dead listener is never served and must dial again, as this client
     * does. */
    const msec until = clock_mono_ms() + RECOVERY_MS;
    bool served = false;
    while (!served) {
        struct link_event ev;
        assert_true(clock_mono_ms() < until);
        struct link *again = fixture_link();
        struct link_lane *fresh = NULL;
        assert_int_equal(link_lane_dial(again, url, &fixture_limits, NULL, &fresh, NULL), BT_OK);
        if (fixture_next(again, 500, &ev)) {
            fixture_send(fresh, "after the storm");
            served = fixture_next(l, 500, &ev);
        }
        if (served) {
            assert_true(link_answer(ev.server, ev.request, "ok", 2));
            link_msg_free(ev.msg);
            fixture_assert_bytes(fixture_expect(again, LINK_ANSWER), "ok");
        }
        link_free(again);
    }
    fixture_send(old, "again");
    serve_one(l);
    fixture_assert_bytes(fixture_expect(client, LINK_ANSWER), "ok");
    link_free(client);
    link_free(l);
    fixture_rmdir(dir);
}

int main(void)
{
    fixture_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listener_comes_back_after_a_storm_of_empty_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
