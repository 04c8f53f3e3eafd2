/* Files of plans without memory: what begins says so, and leaks nothing. */
#include "tests/support/memory.h"

#include "protocol/artifact/artifact.h"
#include "supervisor/artifacts/arriving.h"
#include "supervisor/artifacts/sweep.h"

static void what_begins_without_memory_says_so(void **state)
{
    const struct sweep_options opt = {.root = NULL};
    struct arriving *arriving = NULL;
    struct sweep *sweep = NULL;
    struct bt_error err;

    (void)state;
    memory_begin(1);
    assert_int_equal(arriving_new(&arriving, &err), BT_NOMEM);
    assert_string_equal(err.msg, "out of memory for files that arrive");
    assert_true(memory_end());
    memory_begin(1);
    assert_int_equal(sweep_new(&opt, NULL, &sweep, &err), BT_NOMEM);
    assert_string_equal(err.msg, "out of memory");
    assert_true(memory_end());
    memory_begin(0);
    assert_int_equal(arriving_new(&arriving, &err), BT_OK);
    assert_int_equal(sweep_new(&opt, NULL, &sweep, &err), BT_OK);
    free(arriving);
    free(sweep);
    (void)memory_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_begins_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
