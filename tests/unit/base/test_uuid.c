#include "protocol/base/uuid.h"

#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/support/cmocka.h"

static void text_and_id_are_each_others_inverse(void **state)
{
    const char *text = "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B";
    char printed[UUID_TEXT_LEN + 1];
    struct uuid id;
    struct uuid lower;

    (void)state;
    assert_true(uuid_parse(str_from(text), &id));
    uuid_format(id, printed);
    assert_string_equal(printed, text);
    assert_true(uuid_parse(str_from("0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"), &lower));
    assert_true(uuid_eq(id, lower));
}

static void what_is_no_uuid_is_refused_and_leaves_the_result_alone(void **state)
{
    static const char *const bad[] = {"",
                                      "0199A1B2",
                                      "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5",
                                      "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5BC",
                                      "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5G",
                                      "0199A1B2+C3D4-7E5F-8A9B-0C1D2E3F4A5B",
                                      "0199A1B2-C3D4-7E5F-8A9B00C1D2E3F4A5B",
                                      "{199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B"};
    struct uuid id = {{1, 2, 3}};
    struct uuid before = id;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(uuid_parse(str_from(bad[i]), &id));
        assert_true(uuid_eq(id, before));
    }
}

static void new_ids_are_version_7_in_order_and_carry_the_time(void **state)
{
    msec before = clock_wall_ms();
    struct uuid last = uuid_new();
    msec stamp = 0;

    (void)state;
    for (int i = 0; i < 6; i++) {
        stamp = stamp << 8 | last.b[i];
    }
    assert_true(stamp >= before && stamp < before + 60000);
    for (int i = 0; i < 20000; i++) { /* more than the counter of one millisecond holds */
        struct uuid id = uuid_new();
        assert_int_equal(id.b[6] >> 4, 7);
        assert_int_equal(id.b[8] >> 6, 2);
        assert_true(memcmp(last.b, id.b, 8) < 0);
        last = id;
    }
}

/* Random bytes are drawn for several ids at once. */
static void a_forked_child_gives_out_other_ids_than_its_parent(void **state)
{
    struct uuid ours;
    struct uuid theirs;
    int ends[2];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    (void)uuid_new();
    pid = fork();
    if (pid == 0) {
        struct uuid id = uuid_new();
        _exit(write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1);
    }
    assert_true(pid > 0);
    ours = uuid_new();
    assert_int_equal(read(ends[0], &theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_memory_not_equal(ours.b + 9, theirs.b + 9, sizeof ours.b - 9);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void only_the_zero_id_is_nil(void **state)
{
    (void)state;
    assert_true(uuid_is_nil((struct uuid){{0}}));
    assert_false(uuid_is_nil(uuid_new()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_id_are_each_others_inverse),
        cmocka_unit_test(what_is_no_uuid_is_refused_and_leaves_the_result_alone),
        cmocka_unit_test(new_ids_are_version_7_in_order_and_carry_the_time),
        cmocka_unit_test(a_forked_child_gives_out_other_ids_than_its_parent),
        cmocka_unit_test(only_the_zero_id_is_nil),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
