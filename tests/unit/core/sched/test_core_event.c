/* Which types of events have which member. */
#include "tests/support/death.h"
#include "tests/unit/core/sched/test_core.h"

/* The same initialiser with another member, CORE_EV_INIT(LOST, state, ...), does not compile. */
static const struct core_event lost = {CORE_EV_INIT(LOST, lost, .sent = true), .step = 3};
_Static_assert(CORE_EV_FITS(LOST, lost) == 1, "the type has the member");
_Static_assert((int)CORE_EV_MEMBER_OF_LOST != (int)CORE_EV_state, "and no other");

static void read_another_member(void)
{
    _exit(CORE_EV(&lost, state)->running ? 1 : 2);
}

static void write_another_member(void)
{
    struct core_event ev = lost;
    CORE_EV(&ev, decide)->decision = DECISION_SKIP;
}

static void a_type_has_its_own_member_and_no_other(void **state)
{
    (void)state;
    assert_true(CORE_EV(&lost, lost)->sent);
    assert_int_equal(core_ev_member(CORE_PLANNED), core_ev_member(CORE_RECTIFY));
    assert_int_equal(core_ev_member(CORE_TICK), CORE_EV_none);
    assert_int_equal(core_ev_member(CORE_EVENT_TYPE_COUNT), CORE_EV_none);
}

static void the_member_of_another_type_ends_a_debug_build(void **state)
{
    (void)state;
#ifndef BATON_CHECKED
    skip(); /* a release does not look */
#endif
    assert_true(dies(read_another_member));
    assert_true(dies(write_another_member));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_type_has_its_own_member_and_no_other),
        cmocka_unit_test(the_member_of_another_type_ends_a_debug_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
