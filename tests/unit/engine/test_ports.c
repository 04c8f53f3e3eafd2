/* The ports that belong to a state directory. */
#include <string.h>

#include "supervisor/engine/ports.h"
#include "tests/support/cmocka.h"

static void a_directory_has_two_ports_of_its_own(void **state)
{
    static const char *const dirs[] = {"/home/a/.local/state/baton", "/home/b/.local/state/baton",
                                       "/var/lib/baton", "/", ""};

    (void)state;
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        const uint16_t port = ports_of(dirs[i]);
        assert_in_range(port, 20000, 31998);
        assert_int_equal(port % 2, 0); /* the next one is the events' */
        assert_int_equal(port, ports_of(dirs[i]));
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(port, ports_of(dirs[k]));
        }
    }
}

static void only_a_port_that_is_auto_is_replaced(void **state)
{
    char url[PORTS_URL_MAX];

    (void)state;
    ports_url("tcp://127.0.0.1:auto", 20002, url, sizeof url);
    assert_string_equal(url, "tcp://127.0.0.1:20002");
    ports_url("tcp://[::1]:auto", 0, url, sizeof url);
    assert_string_equal(url, "tcp://[::1]:0");
    ports_url("tcp://127.0.0.1:7117", 20002, url, sizeof url);
    assert_string_equal(url, "tcp://127.0.0.1:7117");
    assert_false(ports_is_auto("auto"));
    assert_false(ports_is_auto(""));
    assert_true(ports_is_auto("tcp://localhost:auto"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_has_two_ports_of_its_own),
        cmocka_unit_test(only_a_port_that_is_auto_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
