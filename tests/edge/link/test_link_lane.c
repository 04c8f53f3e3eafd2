/* Lanes and servers: one request, one answer, never twice. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

static void request_is_echoed_between_a_lane_and_a_server(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 2);
    assert_null(strstr(link_server_url(s), ":0\0"));
    struct link_lane *lane = fixture_lane(l, link_server_url(s));
    for (int i = 0; i < 100; i++) {
        fixture_send(lane, "hello");
        fixture_assert_bytes(fixture_serve_until(l, LINK_ANSWER), "hello");
    }
    link_free(l);
}

int main(void)
{
    fixture_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_is_echoed_between_a_lane_and_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
