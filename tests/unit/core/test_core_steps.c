/* How steps begin: order, concurrency, queues, handoffs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core/rig.h"

static int setup(void **state)
{
    *state = rig_new();
    return 0;
}

static int teardown(void **state)
{
    rig_free(*state);
    return 0;
}

static void a_chain_runs_in_order_and_hands_off_when_the_agent_changes(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_forget(r);
    rig_submit(r, "A; B; C@y; D");
    RIG_TRACE(r, "[0] plan_generated\n"
                 "[0] plan_started\n"
                 "[0] A#1 started i1\n"
                 "[0] A#1 handoff from supervisor\n"
                 "[0] dispatch A#1 i1/0\n");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] dispatch B#1 i1/0\n");
    rig_ok(r, "B");
    rig_ok(r, "C");
    rig_ok(r, "D");
    RIG_TRACE(r, "[0] B#1 completed\n"
                 "[0] C#1 started i2\n"
                 "[0] C#1 handoff from x\n"
                 "[0] dispatch C#1 i2/0\n"
                 "[0] C#1 completed\n"
                 "[0] D#1 started i1\n"
                 "[0] D#1 handoff from y\n"
                 "[0] dispatch D#1 i1/0\n"
                 "[0] D#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_chain_runs_in_order_and_hands_off_when_the_agent_changes,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
