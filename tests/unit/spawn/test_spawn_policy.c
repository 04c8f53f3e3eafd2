/* The restart policy: its rules one by one. Time is a number. */
#include "supervisor/spawn/policy.h"
#include "tests/support/cmocka.h"

struct fixture {
    struct policy_child child;
    struct policy_commands out;
    msec now;
};

static struct fixture with(enum policy_restart restart)
{
    struct fixture f = {.now = 1000};
    struct policy_settings set = policy_defaults();

    set.restart = restart;
    policy_init(&f.child, &set);
    return f;
}

static void send(struct fixture *f, enum policy_event_type type)
{
    policy_handle(&f->child, &(struct policy_event){.type = type, .now = f->now}, &f->out);
}

static void exits(struct fixture *f, bool clean)
{
    policy_handle(&f->child,
                  &(struct policy_event){.type = POLICY_ON_EXITED, .now = f->now, .clean = clean},
                  &f->out);
}

static void start_up(struct fixture *f)
{
    send(f, POLICY_ON_START);
    send(f, POLICY_ON_SPAWNED);
    send(f, POLICY_ON_REGISTERED);
    assert_int_equal(f->child.state, POLICY_UP);
}

static bool said(const struct fixture *f, enum policy_command command)
{
    bool found = false;

    for (uint32_t i = 0; i < f->out.n; i++) {
        found = found || f->out.at[i] == command;
    }
    return found;
}

static void wait_for_deadline(struct fixture *f)
{
    assert_true(policy_deadline(&f->child) != MSEC_NEVER);
    f->now = policy_deadline(&f->child);
    send(f, POLICY_ON_TICK);
}

static void spawned_is_not_up_until_registered(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    send(&f, POLICY_ON_START);
    assert_true(said(&f, POLICY_SPAWN));
    send(&f, POLICY_ON_SPAWNED);
    assert_int_equal(f.child.state, POLICY_STARTING);
    send(&f, POLICY_ON_REGISTERED);
    assert_true(said(&f, POLICY_CAME_UP));
    assert_int_equal(f.child.state, POLICY_UP);
    assert_true(policy_deadline(&f.child) == MSEC_NEVER);
}

static void backoff_doubles_from_100_ms_to_5_s(void **state)
{
    static const msec expected[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000};
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    f.child.set.intensity = POLICY_INTENSITY_MAX;
    start_up(&f);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        f.now += 1;
        exits(&f, false);
        assert_int_equal(f.child.state, POLICY_BACKOFF);
        assert_int_equal(policy_deadline(&f.child) - f.now, expected[i]);
        wait_for_deadline(&f);
        assert_true(said(&f, POLICY_SPAWN));
        send(&f, POLICY_ON_SPAWNED);
        assert_true(said(&f, POLICY_RESTARTED));
        send(&f, POLICY_ON_REGISTERED);
    }
}

static void a_stable_time_resets_the_backoff(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    for (int i = 0; i < 3; i++) {
        exits(&f, false);
        wait_for_deadline(&f);
        send(&f, POLICY_ON_REGISTERED);
    }
    f.now += f.child.set.stable_ms;
    exits(&f, false);
    assert_int_equal(policy_deadline(&f.child) - f.now, 100);
}

static void tick_before_the_deadline_does_nothing(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    exits(&f, false);
    f.now = policy_deadline(&f.child) - 1;
    send(&f, POLICY_ON_TICK);
    assert_int_equal(f.child.state, POLICY_BACKOFF);
    assert_int_equal(f.out.n, 0);
}

static void a_crash_loop_is_at_most_intensity_spawns(void **state)
{
    (void)state;
    for (uint32_t intensity = 1; intensity <= POLICY_INTENSITY_MAX; intensity++) {
        struct fixture f = with(POLICY_PERMANENT);
        uint32_t spawns = 1;

        f.child.set.intensity = intensity;
        f.child.set.period_ms = 3600000;
        send(&f, POLICY_ON_START);
        for (;;) {
            exits(&f, false);
            if (f.child.state == POLICY_FAILED) {
                break;
            }
            wait_for_deadline(&f);
            spawns++;
        }
        assert_true(said(&f, POLICY_GAVE_UP));
        assert_int_equal(spawns, intensity);
        assert_true(policy_deadline(&f.child) == MSEC_NEVER);
    }
}

static void crashes_outside_the_period_never_give_up(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    for (int i = 0; i < 200; i++) {
        f.now += f.child.set.period_ms / (f.child.set.intensity - 1);
        exits(&f, false);
        assert_int_equal(f.child.state, POLICY_BACKOFF);
        wait_for_deadline(&f);
        send(&f, POLICY_ON_REGISTERED);
    }
}

static void a_crash_counts_for_exactly_the_period(void **state)
{
    (void)state;
    for (msec early = 0; early <= 1; early++) {
        struct fixture f = with(POLICY_PERMANENT);
        msec first = f.now;

        f.child.set.intensity = 2;
        start_up(&f);
        exits(&f, false);
        wait_for_deadline(&f);
        f.now = first + f.child.set.period_ms - early;
        exits(&f, false);
        assert_int_equal(f.child.state, early == 1 ? POLICY_FAILED : POLICY_BACKOFF);
    }
}

static void given_up_starts_only_by_hand_and_forgets_then(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    f.child.set.intensity = 1;
    start_up(&f);
    exits(&f, false);
    assert_int_equal(f.child.state, POLICY_FAILED);
    f.now += 1000000;
    send(&f, POLICY_ON_TICK);
    send(&f, POLICY_ON_REGISTERED);
    send(&f, POLICY_ON_STOP);
    assert_int_equal(f.child.state, POLICY_FAILED);
    f.child.set.intensity = 2;
    start_up(&f);
    exits(&f, false);
    assert_int_equal(f.child.state, POLICY_BACKOFF);
}

static void transient_with_exit_0_is_not_restarted(void **state)
{
    struct fixture f = with(POLICY_TRANSIENT);

    (void)state;
    start_up(&f);
    exits(&f, true);
    assert_int_equal(f.child.state, POLICY_STOPPED);
    start_up(&f);
    exits(&f, false);
    assert_int_equal(f.child.state, POLICY_BACKOFF);
}

static void permanent_with_exit_0_is_restarted(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    exits(&f, true);
    assert_int_equal(f.child.state, POLICY_BACKOFF);
}

static void temporary_is_never_restarted(void **state)
{
    struct fixture f = with(POLICY_TEMPORARY);

    (void)state;
    start_up(&f);
    exits(&f, false);
    assert_int_equal(f.child.state, POLICY_STOPPED);
    assert_true(said(&f, POLICY_ENDED));
    assert_int_equal(f.out.n, 1);
}

static void stop_is_term_then_grace_then_kill(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    send(&f, POLICY_ON_STOP);
    assert_true(said(&f, POLICY_TERM));
    assert_int_equal(policy_deadline(&f.child) - f.now, f.child.set.grace_ms);
    wait_for_deadline(&f);
    assert_true(said(&f, POLICY_KILL));
    exits(&f, false);
    assert_int_equal(f.child.state, POLICY_STOPPED);
    assert_int_equal(f.out.n, 0);
}

static void a_given_grace_replaces_the_own_one(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    policy_handle(&f.child,
                  &(struct policy_event){.type = POLICY_ON_STOP, .now = f.now, .grace_ms = 7},
                  &f.out);
    assert_int_equal(policy_deadline(&f.child) - f.now, 7);
}

static void stop_while_in_backoff_starts_nothing_more(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    exits(&f, false);
    send(&f, POLICY_ON_STOP);
    assert_int_equal(f.child.state, POLICY_STOPPED);
    f.now += 100000;
    send(&f, POLICY_ON_TICK);
    assert_int_equal(f.out.n, 0);
}

static void start_while_stopping_starts_after_the_end(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    send(&f, POLICY_ON_STOP);
    send(&f, POLICY_ON_START);
    assert_int_equal(f.child.state, POLICY_STOPPING);
    exits(&f, false);
    assert_true(said(&f, POLICY_SPAWN));
    assert_int_equal(f.child.state, POLICY_STARTING);
}

static void not_registering_in_time_is_a_kill_and_a_crash(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    send(&f, POLICY_ON_START);
    send(&f, POLICY_ON_SPAWNED);
    assert_int_equal(policy_deadline(&f.child) - f.now, 10000);
    wait_for_deadline(&f);
    assert_true(said(&f, POLICY_KILL));
    send(&f, POLICY_ON_REGISTERED); /* too late: it is being killed */
    assert_int_equal(f.child.state, POLICY_STOPPING);
    exits(&f, false);
    assert_int_equal(f.child.state, POLICY_BACKOFF);
    assert_int_equal(f.child.crashes, 1);
}

static void a_lost_kill_is_repeated(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    start_up(&f);
    send(&f, POLICY_ON_KILL);
    assert_true(said(&f, POLICY_KILL));
    wait_for_deadline(&f);
    assert_true(said(&f, POLICY_KILL));
}

static void adopted_must_register_again(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);

    (void)state;
    send(&f, POLICY_ON_ADOPTED);
    assert_int_equal(f.out.n, 0);
    assert_int_equal(f.child.state, POLICY_STARTING);
    wait_for_deadline(&f);
    assert_true(said(&f, POLICY_KILL));
}

static void a_drain_is_time_then_term_then_kill_and_its_end_is_no_crash(void **state)
{
    const struct policy_event drain = {.type = POLICY_ON_DRAIN, .now = 1000, .grace_ms = 700};

    (void)state;
    for (int early = 0; early <= 2; early++) {
        struct fixture f = with(POLICY_PERMANENT);
        start_up(&f);
        policy_handle(&f.child, &drain, &f.out);
        assert_int_equal(f.out.n, 0);
        assert_int_equal(policy_deadline(&f.child), 1700);
        if (early == 1) { /* it left by itself */
            exits(&f, true);
        } else if (early == 2) { /* it has nothing to do */
            f.now += 10;
            send(&f, POLICY_ON_STOP);
            assert_true(said(&f, POLICY_TERM));
            assert_int_equal(policy_deadline(&f.child), f.now + f.child.set.grace_ms);
            exits(&f, true);
        } else {
            wait_for_deadline(&f);
            assert_true(said(&f, POLICY_TERM));
            wait_for_deadline(&f);
            assert_true(said(&f, POLICY_KILL));
            exits(&f, false);
        }
        assert_int_equal(f.child.state, POLICY_STOPPED);
        assert_int_equal(f.child.crashes, 0);
    }
}

static void a_lost_registration_is_a_kill_when_it_does_not_come_back(void **state)
{
    struct fixture f = with(POLICY_PERMANENT);
    const struct policy_event lost = {.type = POLICY_ON_LOST, .grace_ms = 5000};

    (void)state;
    for (int back = 1; back >= 0; back--) {
        struct policy_event ev = lost;
        start_up(&f);
        ev.now = f.now;
        policy_handle(&f.child, &ev, &f.out);
        assert_int_equal(f.child.state, POLICY_STARTING);
        assert_int_equal(policy_deadline(&f.child) - f.now, 5000);
        f.now += 4999;
        send(&f, POLICY_ON_TICK);
        assert_int_equal(f.out.n, 0);
        if (back == 1) {
            send(&f, POLICY_ON_REGISTERED);
            assert_int_equal(f.child.state, POLICY_UP);
            exits(&f, false);
            wait_for_deadline(&f);
            continue;
        }
        wait_for_deadline(&f);
        assert_true(said(&f, POLICY_KILL));
        exits(&f, false);
        assert_int_equal(f.child.state, POLICY_BACKOFF);
    }
}

static void a_member_of_a_group_is_held_after_a_crash(void **state)
{
    struct policy_settings set = policy_defaults();
    struct fixture f = {.now = 1000};

    (void)state;
    set.grouped = true;
    set.intensity = 1;
    policy_init(&f.child, &set);
    start_up(&f);
    exits(&f, false);
    assert_int_equal(f.child.state, POLICY_HELD);
    assert_true(said(&f, POLICY_CRASHED) && !said(&f, POLICY_GAVE_UP));
    assert_true(policy_deadline(&f.child) == MSEC_NEVER);
    assert_false(policy_is_live(&f.child));
    send(&f, POLICY_ON_START);
    assert_true(said(&f, POLICY_SPAWN));
    exits(&f, false);
    send(&f, POLICY_ON_STOP);
    assert_int_equal(f.child.state, POLICY_STOPPED);
}

static void settings_out_of_range_are_brought_into_it(void **state)
{
    struct policy_settings set = {.intensity = 1000, .backoff_min_ms = 50, .backoff_max_ms = 10};
    struct policy_child child;

    (void)state;
    policy_init(&child, &set);
    assert_int_equal(child.set.intensity, POLICY_INTENSITY_MAX);
    assert_int_equal(child.set.backoff_max_ms, 50);
    set.intensity = 0;
    policy_init(&child, &set);
    assert_int_equal(child.set.intensity, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spawned_is_not_up_until_registered),
        cmocka_unit_test(backoff_doubles_from_100_ms_to_5_s),
        cmocka_unit_test(a_stable_time_resets_the_backoff),
        cmocka_unit_test(tick_before_the_deadline_does_nothing),
        cmocka_unit_test(a_crash_loop_is_at_most_intensity_spawns),
        cmocka_unit_test(crashes_outside_the_period_never_give_up),
        cmocka_unit_test(a_crash_counts_for_exactly_the_period),
        cmocka_unit_test(given_up_starts_only_by_hand_and_forgets_then),
        cmocka_unit_test(transient_with_exit_0_is_not_restarted),
        cmocka_unit_test(permanent_with_exit_0_is_restarted),
        cmocka_unit_test(temporary_is_never_restarted),
        cmocka_unit_test(stop_is_term_then_grace_then_kill),
        cmocka_unit_test(a_given_grace_replaces_the_own_one),
        cmocka_unit_test(stop_while_in_backoff_starts_nothing_more),
        cmocka_unit_test(start_while_stopping_starts_after_the_end),
        cmocka_unit_test(not_registering_in_time_is_a_kill_and_a_crash),
        cmocka_unit_test(a_lost_kill_is_repeated),
        cmocka_unit_test(adopted_must_register_again),
        cmocka_unit_test(a_drain_is_time_then_term_then_kill_and_its_end_is_no_crash),
        cmocka_unit_test(a_lost_registration_is_a_kill_when_it_does_not_come_back),
        cmocka_unit_test(a_member_of_a_group_is_held_after_a_crash),
        cmocka_unit_test(settings_out_of_range_are_brought_into_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
