/* Each allocation for a program's change of the plan's state fails in its turn: it is in the reply,
 * or the step fails for another attempt. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/exec/state_file.h"
#include "tests/support/no_memory.h"

static char path[] = "/tmp/baton-patch-XXXXXX";

static void run(struct bt_step *step, void *self)
{
    (void)self;
    if (state_file_reply(step, "cmd", path)) {
        bt_step_reply_text(step, "done");
    }
}

static void a_change_of_the_state_is_told_whole_or_later(void **state)
{
    const int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\"n\":[1,2]}", 11), 11);
    assert_int_equal(close(fd), 0);
    no_memory_each("cmd", "{}", run, NULL);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_of_the_state_is_told_whole_or_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
