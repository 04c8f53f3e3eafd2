/* What the supervisor hands to a process alone: read once, given out by name, and wiped. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agents/sdk/handover.h"
#include "tests/support/cmocka.h"

static struct handover h;
static int fd;

/* The descriptor of a file with these bytes, named in the variable. */
static void hand_over(const char *bytes, size_t n)
{
    char number[16];

    fd = memfd_create("handover", MFD_CLOEXEC);
    assert_true(fd > 2);
    assert_int_equal(write(fd, bytes, n),
                     n); /* its offset is at the end, as after another reader */
    (void)snprintf(number, sizeof number, "%d", fd);
    assert_int_equal(setenv("BATON_HANDOVER", number, 1), 0);
}

static int clean(void **state)
{
    (void)state;
    handover_done(&h);
    handover_done(&h);
    return unsetenv("BATON_HANDOVER");
}

static void what_is_handed_over_is_read_once_and_found_by_its_whole_name(void **state)
{
    static const char bytes[] = "control=tcp://127.0.0.1:1\0secret:KEY=a=b\0secret:KEY2=c\0empty=";
    struct bt_error err;

    (void)state;
    hand_over(bytes, sizeof bytes);
    assert_int_equal(handover_read(&h, &err), BT_OK);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_null(getenv("BATON_HANDOVER"));
    assert_string_equal(handover_get(&h, "control"), "tcp://127.0.0.1:1");
    assert_string_equal(handover_get(&h, "empty"), "");
    assert_null(handover_get(&h, "contro"));
    assert_null(handover_get(&h, "control2"));
    assert_null(handover_get(&h, "KEY"));
    assert_string_equal(handover_secret(&h, "KEY"), "a=b");
    assert_string_equal(handover_secret(&h, "KEY2"), "c");
    assert_null(handover_secret(&h, "KEY3"));
}

static void without_a_descriptor_there_is_nothing(void **state)
{
    static const char *const wrong[] = {"", "x", "7x", "2", "-1", "1000001", "999983"};
    struct bt_error err;

    (void)state;
    assert_int_equal(handover_read(&h, &err), BT_OK);
    assert_null(handover_get(&h, "control"));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char want[80];
        assert_int_equal(setenv("BATON_HANDOVER", wrong[i], 1), 0);
        assert_int_equal(handover_read(&h, &err), BT_INVALID);
        (void)snprintf(want, sizeof want, "BATON_HANDOVER '%s': is no open descriptor above 2",
                       wrong[i]);
        assert_string_equal(err.msg, want);
    }
}

static void what_cannot_be_read_is_an_error(void **state)
{
    struct bt_error err;
    char number[16];
    const int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(dir > 2);
    (void)snprintf(number, sizeof number, "%d", dir);
    assert_int_equal(setenv("BATON_HANDOVER", number, 1), 0);
    assert_int_equal(handover_read(&h, &err), BT_IO);
    assert_int_equal(strncmp(err.msg, "BATON_HANDOVER: ", 16), 0);
    assert_int_equal(fcntl(dir, F_GETFD), -1);
    assert_null(getenv("BATON_HANDOVER"));
}

/* The memory of the environment is what others see of it. */
static void a_secret_of_the_environment_is_taken_out_of_it(void **state)
{
    const char *value;
    const char *seen;

    (void)state;
    assert_int_equal(setenv("HANDOVER_TEST_KEY", "s3cret", 1), 0);
    value = getenv("HANDOVER_TEST_KEY");
    h = (struct handover){0};
    seen = handover_secret(&h, "HANDOVER_TEST_KEY");
    assert_string_equal(seen, "s3cret");
    assert_null(getenv("HANDOVER_TEST_KEY"));
    for (size_t i = 0; i < strlen("s3cret"); i++) {
        assert_int_equal(value[i], 0);
    }
    assert_null(handover_secret(&h, "HANDOVER_TEST_KEY")); /* once */
}

static void what_was_handed_over_goes_before_the_environment(void **state)
{
    static const char bytes[] = "secret:HANDOVER_TEST_KEY=handed";
    struct bt_error err;

    (void)state;
    hand_over(bytes, sizeof bytes);
    assert_int_equal(handover_read(&h, &err), BT_OK);
    assert_int_equal(setenv("HANDOVER_TEST_KEY", "around", 1), 0);
    assert_string_equal(handover_secret(&h, "HANDOVER_TEST_KEY"), "handed");
    assert_string_equal(getenv("HANDOVER_TEST_KEY"), "around");
    assert_int_equal(unsetenv("HANDOVER_TEST_KEY"), 0);
}

static void sixteen_variables_are_taken_and_a_seventeenth_stays(void **state)
{
    char name[32];

    (void)state;
    h = (struct handover){0};
    for (int i = 0; i < HANDOVER_ENV_MAX + 1; i++) {
        (void)snprintf(name, sizeof name, "HANDOVER_TEST_%d", i);
        assert_int_equal(setenv(name, name, 1), 0);
        const char *got = handover_secret(&h, name);
        if (i < HANDOVER_ENV_MAX) {
            assert_string_equal(got, name);
        } else {
            assert_null(got);
            assert_string_equal(getenv(name), name);
            assert_int_equal(unsetenv(name), 0);
        }
    }
    handover_wipe(&h);
    assert_int_equal(h.env_n, 0);
}

static void secrets_and_the_key_are_wiped_and_the_rest_stays(void **state)
{
    static const char bytes[] =
        "credential=calc\0key=0123\0secret:KEY=abc\0control=tcp://127.0.0.1:1";
    struct bt_error err;

    (void)state;
    hand_over(bytes, sizeof bytes);
    assert_int_equal(handover_read(&h, &err), BT_OK);
    handover_wipe(&h);
    assert_string_equal(handover_get(&h, "credential"), "calc");
    assert_string_equal(handover_get(&h, "control"), "tcp://127.0.0.1:1");
    assert_string_equal(handover_get(&h, "key"), "");
    assert_string_equal(handover_secret(&h, "KEY"), "");
    assert_null(memmem(h.bytes, h.len, "0123", 4));
    assert_null(memmem(h.bytes, h.len, "abc", 3));
}

#define RULE(f) cmocka_unit_test_teardown(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(what_is_handed_over_is_read_once_and_found_by_its_whole_name),
        RULE(without_a_descriptor_there_is_nothing),
        RULE(what_cannot_be_read_is_an_error),
        RULE(a_secret_of_the_environment_is_taken_out_of_it),
        RULE(what_was_handed_over_goes_before_the_environment),
        RULE(sixteen_variables_are_taken_and_a_seventeenth_stays),
        RULE(secrets_and_the_key_are_wiped_and_the_rest_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
