/* Groups: their rules one by one. Time is a number. */
#include "tests/unit/spawn/group_rig.h"

static const enum policy_restart permanent[] = {POLICY_PERMANENT, POLICY_PERMANENT,
                                                POLICY_PERMANENT, POLICY_PERMANENT};

static void run_four(struct rig *r, enum group_strategy strategy,
                     const enum policy_restart *restart)
{
    rig_init(r, strategy, restart, 4);
    rig_settle(r);
    assert_string_equal(rig_trace(r), "+a +b +c +d ");
}

static void members_start_one_after_the_other_when_ready(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, GROUP_ONE_FOR_ONE, permanent, 3);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "+a ");
    rig_send(&r, 0, POLICY_ON_SPAWNED, false);
    assert_int_equal(rig_orders(&r), 0); /* spawned is not ready */
    rig_send(&r, 0, POLICY_ON_REGISTERED, false);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "+b ");
}

static void one_for_one_restarts_the_one(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ONE, permanent);
    rig_end(&r, 1, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "+b ");
}

static void one_for_all_stops_last_first_and_starts_first_first(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ALL, permanent);
    rig_end(&r, 1, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "-d -c -a +a +b +c +d ");
}

static void rest_for_one_leaves_those_before_it(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_REST_FOR_ONE, permanent);
    rig_end(&r, 1, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "-d -c +b +c +d ");
    rig_end(&r, 3, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "+d ");
}

static void nothing_starts_before_all_have_come_to_rest(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ALL, permanent);
    rig_end(&r, 0, false);
    r.now += 60000; /* the backoff is over long since */
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "-d ");
    assert_int_equal(rig_orders(&r), 0);
    rig_end(&r, 3, false);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "-c ");
    rig_end(&r, 2, false);
    (void)rig_orders(&r);
    rig_end(&r, 1, false);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "-b +a ");
}

static void the_backoff_doubles_and_holds_to_the_millisecond(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ONE, permanent);
    rig_end(&r, 0, false);
    assert_int_equal(group_deadline(&r.group, r.members, r.n) - r.now, 100);
    r.now += 99;
    assert_int_equal(rig_orders(&r), 0);
    r.now++;
    assert_int_equal(rig_orders(&r), 1);
    rig_settle(&r);
    rig_end(&r, 1, false);
    assert_int_equal(group_deadline(&r.group, r.members, r.n) - r.now, 200);
    rig_settle(&r);
    r.now = r.group.last_crash + r.group.set.stable_ms;
    rig_end(&r, 2, false);
    assert_int_equal(group_deadline(&r.group, r.members, r.n) - r.now, 100);
}

static void crashes_of_all_members_count_together(void **state)
{
    (void)state;
    for (msec early = 0; early <= 1; early++) {
        struct rig r;
        msec first;

        run_four(&r, GROUP_ONE_FOR_ONE, permanent);
        first = r.now;
        rig_end(&r, 0, false);
        rig_settle(&r);
        rig_end(&r, 1, false);
        rig_settle(&r);
        assert_false(r.gave_up);
        (void)rig_trace(&r);
        r.now = first + r.group.set.period_ms - early;
        rig_end(&r, 2, false);
        assert_int_equal(r.gave_up, early == 1);
        rig_settle(&r);
        assert_string_equal(rig_trace(&r), early == 1 ? "-d -b -a " : "+c ");
    }
}

static void given_up_stays_so_until_an_operator_starts_one(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ONE, permanent);
    group_park(r.members, 3);
    rig_send(&r, 3, POLICY_ON_STOP, false);
    for (uint32_t i = 0; i < 3; i++) {
        rig_end(&r, i, false);
        rig_settle(&r);
    }
    assert_true(r.gave_up);
    r.now += 3600000;
    (void)rig_trace(&r);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "");
    group_start(&r.group, r.members, r.n, 1);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "+a +b +c "); /* d was stopped by hand */
    rig_end(&r, 0, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "+a "); /* earlier crashes are forgotten */
}

static void a_transient_member_comes_back_with_the_others_a_temporary_one_not(void **state)
{
    static const enum policy_restart kinds[] = {POLICY_PERMANENT, POLICY_TRANSIENT,
                                                POLICY_TEMPORARY, POLICY_TEMPORARY};
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ALL, kinds);
    rig_end(&r, 1, true);
    rig_settle(&r);
    rig_end(&r, 2, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), ""); /* neither is restarted, nor takes the others with it */
    rig_end(&r, 0, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "-d +a +b ");
}

static void a_stopped_member_stays_so_and_holds_up_nobody(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ALL, permanent);
    group_park(r.members, 1);
    rig_send(&r, 1, POLICY_ON_STOP, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "-b ");
    rig_end(&r, 0, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "-d -c +a +c +d ");
    group_start(&r.group, r.members, r.n, 1);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "+b ");
}

static void a_member_that_fails_to_start_takes_the_rest_again(void **state)
{
    struct rig r;

    (void)state;
    run_four(&r, GROUP_ONE_FOR_ALL, permanent);
    rig_end(&r, 3, false);
    for (int i = 0; i < 6; i++) { /* until b is starting */
        (void)rig_orders(&r);
        for (uint32_t k = 0; k < r.n; k++) {
            if (r.children[k].state == POLICY_STOPPING) {
                rig_end(&r, k, false);
            }
        }
        r.now += r.children[0].state == POLICY_STARTING ? 0 : 100;
    }
    rig_send(&r, 0, POLICY_ON_REGISTERED, false);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "-c -b -a +a +b ");
    rig_end(&r, 1, false);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "-a +a +b +c +d ");
}

static void all_stop_last_first_and_at_once_when_time_is_over(void **state)
{
    struct rig r;
    msec begun;

    (void)state;
    run_four(&r, GROUP_REST_FOR_ONE, permanent);
    begun = r.now;
    group_stop(&r.group, begun + 2000);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "-d ");
    assert_int_equal(policy_deadline(&r.children[3]), begun + 2000); /* its own 5 s are too long */
    rig_end(&r, 0, true);                                            /* it drained, and left */
    assert_int_equal(group_deadline(&r.group, r.members, r.n), begun + 2000);
    r.now = begun + 1999;
    (void)rig_orders(&r);
    assert_false(policy_is_live(&r.children[0])); /* an end is no crash any more */
    assert_int_equal(r.children[1].state, POLICY_UP);
    r.now = begun + 2000;
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "-c -b ");
    assert_int_equal(policy_deadline(&r.children[1]), r.now + 1);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "");
}

static void an_adopted_member_is_waited_for(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, GROUP_REST_FOR_ONE, permanent, 3);
    rig_send(&r, 0, POLICY_ON_ADOPTED, false);
    rig_send(&r, 2, POLICY_ON_ADOPTED, false);
    assert_int_equal(rig_orders(&r), 0);
    rig_settle(&r);
    assert_string_equal(rig_trace(&r), "+b ");
}

static void jitter_is_of_the_seed_and_within_its_share(void **state)
{
    msec seen[2] = {0, 0};

    (void)state;
    for (uint64_t turn = 1; turn <= 200; turn++) {
        const msec full = policy_backoff(100, 5000, 4, 0, 7, turn);
        const msec wait = policy_backoff(100, 5000, 4, 250, 7, turn);
        assert_int_equal(full, 800);
        assert_true(wait >= 600 && wait <= 800);
        assert_int_equal(wait, policy_backoff(100, 5000, 4, 250, 7, turn));
        seen[wait < 700]++;
    }
    assert_true(seen[0] > 50 && seen[1] > 50);
    assert_true(policy_backoff(100, 5000, 9, 250, 7, 1) != policy_backoff(100, 5000, 9, 250, 8, 1));
}

/* The last one that was not told to end yet is the first: the group wakes for it. */
static void a_stop_has_a_deadline_while_one_waits_for_its_turn(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, GROUP_ONE_FOR_ALL, permanent, 2);
    rig_settle(&r);
    group_stop(&r.group, r.now + 2000);
    assert_true(group_deadline(&r.group, r.members, r.n) == r.now + 2000);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "+a +b -b ");
    assert_true(group_deadline(&r.group, r.members, r.n) == r.now + 2000); /* a waits */
    rig_end(&r, 1, true);
    (void)rig_orders(&r);
    assert_string_equal(rig_trace(&r), "-a ");
    assert_true(group_deadline(&r.group, r.members, r.n) == MSEC_NEVER); /* all are told */
    rig_end(&r, 0, true);
    assert_true(group_deadline(&r.group, r.members, r.n) == MSEC_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_start_one_after_the_other_when_ready),
        cmocka_unit_test(one_for_one_restarts_the_one),
        cmocka_unit_test(one_for_all_stops_last_first_and_starts_first_first),
        cmocka_unit_test(rest_for_one_leaves_those_before_it),
        cmocka_unit_test(nothing_starts_before_all_have_come_to_rest),
        cmocka_unit_test(the_backoff_doubles_and_holds_to_the_millisecond),
        cmocka_unit_test(crashes_of_all_members_count_together),
        cmocka_unit_test(given_up_stays_so_until_an_operator_starts_one),
        cmocka_unit_test(a_transient_member_comes_back_with_the_others_a_temporary_one_not),
        cmocka_unit_test(a_stopped_member_stays_so_and_holds_up_nobody),
        cmocka_unit_test(a_member_that_fails_to_start_takes_the_rest_again),
        cmocka_unit_test(all_stop_last_first_and_at_once_when_time_is_over),
        cmocka_unit_test(an_adopted_member_is_waited_for),
        cmocka_unit_test(jitter_is_of_the_seed_and_within_its_share),
        cmocka_unit_test(a_stop_has_a_deadline_while_one_waits_for_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
