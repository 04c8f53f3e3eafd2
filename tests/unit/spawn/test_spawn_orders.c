/* What the daemon orders the spawner, and what it makes of the reports. */
#include "tests/unit/spawn/spawn_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/spawn/spawn_internal.h"

enum { EXIT_3 = 3 << 8, PID = 4711 };

static void one_is_up(void)
{
    const struct spawn_spec spec = rig_spec("a#1");

    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    rig_up("a#1", PID);
}

static void a_process_is_up_when_it_has_registered_and_not_before(void **state)
{
    const struct spawn_spec spec = rig_spec("a#1");
    const uint32_t nothing_changed = 0;
    uint32_t changes;

    (void)state;
    rig_begin(NULL, NULL, 0);
    assert_int_equal(spawn_changes(rig.s), nothing_changed);
    rig_set(&spec, 1);
    changes = spawn_changes(rig.s);
    assert_int_equal(changes, 1);
    rig_started("a#1");
    assert_true(spawn_owns(rig.s, str_from(rig.instance)));
    assert_false(spawn_owns(rig.s, STR_LIT("")));
    rig_no_event();
    rig_report(PACKET_STARTED, rig.instance, PID, 0, "");
    rig_event(SPAWN_STARTED, "a#1");
    assert_int_equal(rig.ev.pid, PID);
    assert_string_equal(rig.ev.instance_id, rig.instance);
    assert_string_equal(rig.ev.agent_id, "agent");
    assert_int_equal(rig.ev.restarts, 0);
    rig_no_event();
    assert_false(spawn_registered(rig.s, STR_LIT("another"), rig.now));
    rig_no_order();
    assert_true(spawn_registered(rig.s, str_from(rig.instance), rig.now));
    rig_ordered(PACKET_REGISTERED);
    assert_string_equal(rig.got.instance, rig.instance);
    rig_event(SPAWN_UP, "a#1");
    rig_no_event();
    assert_int_equal(spawn_deadline(rig.s), MSEC_NEVER);
    assert_int_equal(spawn_spawner_pid(rig.s), getpid());
}

/* The report that it exists is read before: its events stay in order. */
static void who_registers_before_its_report_is_read_is_started_first(void **state)
{
    static struct packet p;
    const struct spawn_spec spec = rig_spec("a#1");

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    rig_started("a#1");
    p = (struct packet){.type = PACKET_STARTED, .instance = rig.instance, .pid = PID};
    rig_send(&p);
    assert_true(spawn_registered(rig.s, str_from(rig.instance), rig.now));
    rig_event(SPAWN_STARTED, "a#1");
    rig_event(SPAWN_UP, "a#1");
}

static void who_does_not_register_in_time_is_killed(void **state)
{
    const struct spawn_spec spec = rig_spec("a#1");
    const msec limit = spec.policy.start_deadline_ms;

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    rig_started("a#1");
    rig_report(PACKET_STARTED, rig.instance, PID, 0, "");
    rig_event(SPAWN_STARTED, "a#1");
    assert_int_equal(spawn_deadline(rig.s), rig.now + limit);
    rig_pass(limit - 1);
    rig_no_order();
    rig_pass(1);
    rig_ordered(PACKET_KILL_TREE);
    assert_string_equal(rig.got.instance, rig.instance);
    rig_report(PACKET_EXITED, rig.instance, PID, SIGKILL, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_string_equal(rig.ev.reason, "did not register in time: killed by signal 9");
    assert_false(rig.ev.expected);
}

static void an_end_has_its_reason(void **state)
{
    static const struct {
        enum packet_type type;
        int status;
        const char *text, *reason;
        bool expected;
    } cases[] = {
        {PACKET_EXITED, EXIT_3, "", "exit code 3", false},
        {PACKET_EXITED, 0, "", "exit code 0", true},
        {PACKET_EXITED, SIGSEGV, "", "killed by signal 11", false},
        {PACKET_EXITED, SIGKILL, "memory limit",
         "killed by signal 9; it had reached its memory limit", false},
        {PACKET_START_FAILED, 0, "exec of x failed: No such file or directory",
         "exec of x failed: No such file or directory", false},
    };
    struct spawn_spec spec = rig_spec("a#1");

    (void)state;
    spec.policy.restart = POLICY_TEMPORARY;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct spawn_info info;
        rig_started("a#1");
        rig_report(cases[i].type, rig.instance, PID, cases[i].status, cases[i].text);
        rig_event(SPAWN_EXITED, "a#1");
        assert_string_equal(rig.ev.reason, cases[i].reason);
        assert_int_equal(rig.ev.expected, cases[i].expected);
        assert_string_equal(rig.ev.instance_id, rig.instance);
        rig_no_event();
        spawn_describe(rig.s, 0, &info);
        assert_string_equal(info.reason, cases[i].reason);
        assert_string_equal(info.instance_id, "");
        assert_int_equal(info.pid, 0);
        assert_int_equal(info.state, POLICY_STOPPED);
        assert_false(spawn_owns(rig.s, str_from(rig.instance)));
        assert_true(spawn_is_idle(rig.s));
        assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
        assert_false(spawn_is_idle(rig.s));
    }
}

/* A permanent one has no end that is expected. */
static void a_clean_end_of_a_permanent_one_is_none_that_is_expected(void **state)
{
    (void)state;
    one_is_up();
    rig_report(PACKET_EXITED, rig.instance, PID, 0, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_false(rig.ev.expected);
}

/* The path leads to nobody: a new spawner is started, which is this program and ends at once. */
static void lose_spawner(void)
{
    assert_int_equal(close(rig.conn), 0);
    rig.conn = -1;
    assert_int_equal(close(rig.listener), 0);
    rig.listener = -1;
    spawn_handle(rig.s, rig.now);
}

static void the_last_line_of_its_log_is_kept_and_only_of_this_process(void **state)
{
    struct spawn_info info;
    char path[128];
    FILE *f;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/log/a#1.log", rig.dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs("of an earlier one\n", f) >= 0);
    assert_int_equal(fflush(f), 0);
    one_is_up();
    rig_report(PACKET_EXITED, rig.instance, PID, EXIT_3, "");
    rig_event(SPAWN_EXITED, "a#1");
    spawn_describe(rig.s, 0, &info);
    assert_string_equal(info.last_line, "");
    assert_string_equal(info.log, path);
    rig_pass(100);
    rig_started("a#1");
    assert_true(fputs("it broke\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    rig_report(PACKET_EXITED, rig.instance, PID, EXIT_3, "");
    spawn_describe(rig.s, 0, &info);
    assert_string_equal(info.last_line, "it broke");
    rig_pass(200);
    rig_started("a#1"); /* which ends with its spawner: that line is not of this process */
    lose_spawner();
    spawn_describe(rig.s, 0, &info);
    assert_string_equal(info.reason, "the spawner ended");
    assert_string_equal(info.last_line, "");
}

static void a_crash_is_restarted_after_its_backoff_under_another_id(void **state)
{
    char first[UUID_TEXT_LEN + 1];
    struct spawn_info info;

    (void)state;
    one_is_up();
    (void)snprintf(first, sizeof first, "%s", rig.instance);
    rig_report(PACKET_EXITED, first, PID, EXIT_3, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_int_equal(spawn_deadline(rig.s), rig.now + 100);
    rig_pass(99);
    rig_no_order();
    rig_pass(1);
    rig_started("a#1");
    assert_string_not_equal(rig.instance, first);
    rig_report(PACKET_STARTED, rig.instance, PID + 1, 0, "");
    rig_event(SPAWN_RESTARTED, "a#1");
    assert_int_equal(rig.ev.restarts, 1);
    assert_int_equal(rig.ev.pid, PID + 1);
    assert_string_equal(rig.ev.reason, "exit code 3");
    rig_no_event();
    spawn_describe(rig.s, 0, &info);
    assert_int_equal(info.restarts, 1);
    /* a report of the first one is too late */
    rig_report(PACKET_EXITED, first, PID, EXIT_3, "");
    rig_no_event();
}

static void a_crash_loop_is_given_up_and_an_operator_starts_it_again(void **state)
{
    struct spawn_spec spec = rig_spec("a#1");
    struct spawn_info info;

    (void)state;
    spec.policy.intensity = 2;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    for (int i = 0; i < 2; i++) {
        rig_started("a#1");
        rig_report(PACKET_EXITED, rig.instance, PID, EXIT_3, "");
        rig_event(SPAWN_EXITED, "a#1");
        if (i == 0) {
            rig_pass(100);
        }
    }
    rig_event(SPAWN_GAVE_UP, "a#1");
    assert_string_equal(rig.ev.reason, "2 crashes within 30000 ms; the last: exit code 3");
    rig_no_event();
    spawn_describe(rig.s, 0, &info);
    assert_int_equal(info.state, POLICY_FAILED);
    assert_int_equal(spawn_deadline(rig.s), MSEC_NEVER);
    assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    rig_started("a#1");
}

static void a_stop_is_a_signal_then_a_kill(void **state)
{
    struct spawn_info info;
    struct spawn_spec spec = rig_spec("a#1");
    const msec grace = spec.policy.grace_ms;

    (void)state;
    one_is_up();
    assert_int_equal(spawn_stop_child(rig.s, STR_LIT("none"), rig.now, &rig.err), BT_NOT_FOUND);
    assert_string_equal(rig.err.msg, "no agent process is called 'none'");
    assert_int_equal(spawn_stop_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    rig_ordered(PACKET_SIGNAL);
    assert_int_equal(rig.got.status, SIGTERM);
    assert_string_equal(rig.got.instance, rig.instance);
    spawn_handle(rig.s, rig.now);
    rig_pass(grace - 1);
    rig_no_order();
    rig_pass(1);
    rig_ordered(PACKET_KILL_TREE);
    spawn_handle(rig.s, rig.now); /* each order is sent once */
    rig_no_order();
    rig_report(PACKET_EXITED, rig.instance, PID, SIGKILL, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_string_equal(rig.ev.reason, "did not stop in time: killed by signal 9");
    assert_true(rig.ev.expected);
    spawn_describe(rig.s, 0, &info);
    assert_true(info.parked);
    assert_int_equal(info.state, POLICY_STOPPED);
    assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    spawn_describe(rig.s, 0, &info);
    assert_false(info.parked);
}

static void a_drain_waits_before_its_signal(void **state)
{
    enum { DRAIN_MS = 700 };

    (void)state;
    one_is_up();
    assert_int_equal(spawn_drain_child(rig.s, STR_LIT("a#1"), DRAIN_MS, rig.now, &rig.err), BT_OK);
    rig_pass(DRAIN_MS - 1);
    rig_no_order();
    rig_pass(1);
    rig_ordered(PACKET_SIGNAL);
    rig_report(PACKET_EXITED, rig.instance, PID, 0, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_true(rig.ev.expected);
}

static void one_that_is_to_be_killed_says_why_and_counts_as_crashed(void **state)
{
    (void)state;
    one_is_up();
    assert_false(spawn_kill_instance(rig.s, STR_LIT("none"), "silent", rig.now));
    assert_true(spawn_kill_instance(rig.s, str_from(rig.instance), "silent", rig.now));
    rig_ordered(PACKET_KILL_TREE);
    rig_report(PACKET_EXITED, rig.instance, PID, SIGKILL, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_string_equal(rig.ev.reason, "silent: killed by signal 9");
    assert_false(rig.ev.expected);
    rig_pass(100);
    rig_started("a#1");
    rig_report(PACKET_EXITED, rig.instance, PID, EXIT_3, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_string_equal(rig.ev.reason, "exit code 3"); /* that was of the one before */
}

static void one_whose_lease_is_over_has_its_time_to_come_back(void **state)
{
    enum { WAIT_MS = 900 };

    (void)state;
    one_is_up();
    spawn_lost(rig.s, STR_LIT("none"), WAIT_MS, rig.now);
    assert_int_equal(spawn_deadline(rig.s), MSEC_NEVER);
    spawn_lost(rig.s, str_from(rig.instance), WAIT_MS, rig.now);
    rig_pass(WAIT_MS - 1);
    rig_no_order();
    rig_pass(1);
    rig_ordered(PACKET_KILL_TREE);
    rig_report(PACKET_EXITED, rig.instance, PID, SIGKILL, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_string_equal(rig.ev.reason,
                        "hung: its lease is over, and it did not come back: killed by signal 9");
}

static void all_stop_and_nothing_comes_after(void **state)
{
    enum { GRACE_MS = 300 };
    const struct spawn_spec specs[] = {rig_spec("a#1"), rig_spec("b#1")};
    const struct spawn_spec more = rig_spec("c#1");
    char first[UUID_TEXT_LEN + 1];
    enum spawn_put put;

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(specs, 2);
    rig_started("a#1");
    (void)snprintf(first, sizeof first, "%s", rig.instance);
    rig_started("b#1");
    spawn_stop_all(rig.s, GRACE_MS, rig.now);
    rig_ordered(PACKET_SIGNAL);
    rig_ordered(PACKET_SIGNAL);
    assert_false(spawn_is_idle(rig.s));
    assert_int_equal(spawn_put(rig.s, &more, rig.now, &put, &rig.err), BT_UNAVAILABLE);
    rig_report(PACKET_EXITED, first, PID, 0, "");
    assert_false(spawn_is_idle(rig.s));
    rig_pass(GRACE_MS - 1);
    rig_no_order();
    rig_pass(1);
    rig_ordered(PACKET_KILL_TREE);
    rig_report(PACKET_EXITED, rig.instance, PID, SIGKILL, "");
    assert_true(spawn_is_idle(rig.s));
}

/* ---- the spawner ends ---- */

static void the_end_of_the_spawner_is_the_end_of_its_children_but_no_crash_of_theirs(void **state)
{
    struct spawn_spec spec = rig_spec("a#1");

    (void)state;
    spec.policy.intensity = 1;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    rig_up("a#1", PID);
    lose_spawner();
    rig_event(SPAWN_EXITED, "a#1");
    assert_string_equal(rig.ev.reason, "the spawner ended");
    assert_false(spawn_owns(rig.s, str_from(rig.instance)));
}

/* Until the end of the new one was seen, too. */
static void loses_the_next_one(void)
{
    while (rig.s->link.sock >= 0) {
        struct pollfd fd = {.fd = spawn_fd(rig.s), .events = POLLIN};
        assert_int_equal(poll(&fd, 1, 60000), 1);
        spawn_handle(rig.s, rig.now);
    }
}

/* Its order waits for a spawner: there is nothing to signal. */
static void one_that_was_not_started_yet_stops_without_an_order(void **state)
{
    (void)state;
    one_is_up();
    assert_int_equal(spawn_stop_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    rig_ordered(PACKET_SIGNAL);
    rig_report(PACKET_EXITED, rig.instance, PID, 0, "");
    rig_event(SPAWN_EXITED, "a#1");
    lose_spawner();
    rig_no_event();
    assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    loses_the_next_one();
    assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    while (spawn_next_event(rig.s, &rig.ev)) {
    }
    assert_int_equal(spawn_stop_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    assert_true(spawn_is_idle(rig.s));
}

/* Otherwise they would be started in a tight loop. */
static void a_spawner_that_ends_at_once_is_replaced_a_second_later(void **state)
{
    (void)state;
    one_is_up();
    lose_spawner();
    loses_the_next_one(); /* which was started at once */
    assert_int_equal(rig.s->retry_due, rig.now + 1000);
    assert_in_range(spawn_deadline(rig.s), rig.now, rig.now + 1000);
    rig_pass(999);
    assert_int_not_equal(rig.s->retry_due, MSEC_NEVER);
    rig_pass(1);
    assert_int_equal(rig.s->retry_due, MSEC_NEVER);
    assert_true(rig.s->link.sock >= 0);
}

static void a_packet_that_is_none_costs_the_spawner(void **state)
{
    (void)state;
    one_is_up();
    assert_int_equal(send(rig.conn, "\xff", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(close(rig.listener), 0);
    rig.listener = -1;
    spawn_handle(rig.s, rig.now);
    rig_event(SPAWN_EXITED, "a#1");
    assert_string_equal(rig.ev.reason, "the spawner ended");
    assert_int_equal(recv(rig.conn, rig.in, sizeof rig.in, MSG_DONTWAIT), 0); /* it hung up */
}

/* ---- orders that do not fit ---- */

static void orders_wait_for_room_and_none_is_lost_or_sent_twice(void **state)
{
    enum { CHILDREN = 30, BYTES = 50000 };
    static char settings[BYTES];
    static char names[CHILDREN][16];
    struct spawn_spec specs[CHILDREN];

    (void)state;
    memset(settings, 'x', sizeof settings - 1);
    for (int i = 0; i < CHILDREN; i++) {
        (void)snprintf(names[i], sizeof names[i], "a#%d", i);
        specs[i] = rig_spec(names[i]);
        specs[i].settings = settings;
    }
    rig_begin(NULL, NULL, 0);
    rig_set(specs, CHILDREN);
    for (int i = 0; i < CHILDREN; i++) {
        rig_started(names[i]);
        spawn_handle(rig.s, rig.now);
    }
    rig_no_order();
    spawn_handle(rig.s, rig.now);
    rig_no_order();
}

/* Reports are read while there is room for their events: none is lost. */
static void a_queue_of_events_that_is_full_stops_the_reading(void **state)
{
    enum { MANY = 1000 };
    static struct packet p;
    struct spawn_spec spec = rig_spec("a#1");
    int n = 0;
    int seen = 0;

    (void)state;
    spec.policy.restart = POLICY_TEMPORARY;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    while (n < MANY) {
        rig_started("a#1");
        p = (struct packet){.type = PACKET_EXITED, .instance = rig.instance, .pid = PID};
        rig_send(&p);
        n++;
        spawn_handle(rig.s, rig.now);
        if (!spawn_is_idle(rig.s)) {
            break; /* the report waits */
        }
        assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    }
    assert_in_range(n, 2, MANY - 1);
    while (spawn_next_event(rig.s, &rig.ev)) {
        assert_int_equal(rig.ev.type, SPAWN_EXITED);
        seen++;
    }
    assert_int_equal(seen, n - 1);
    spawn_handle(rig.s, rig.now);
    rig_event(SPAWN_EXITED, "a#1");
    rig_no_event();
}

/* ---- the end of the daemon ---- */

static void a_close_ends_the_spawner(void **state)
{
    (void)state;
    one_is_up();
    assert_int_equal(shutdown(rig.conn, SHUT_WR), 0); /* as if it had ended */
    spawn_close(rig.s);
    rig.s = NULL;
    rig_ordered(PACKET_SHUTDOWN);
    spawn_close(NULL);
}

static void a_successor_may_adopt_what_is_abandoned(void **state)
{
    (void)state;
    one_is_up();
    spawn_abandon(rig.s);
    rig.s = NULL;
    assert_int_equal(recv(rig.conn, rig.in, sizeof rig.in, 0), 0); /* no order: it hung up */
}

static void names_of_events_are_words(void **state)
{
    (void)state;
    assert_string_equal(spawn_event_name(SPAWN_STARTED), "started");
    assert_string_equal(spawn_event_name(SPAWN_GROUP_GAVE_UP), "group gave up");
    assert_string_equal(spawn_event_name(SPAWN_EVENT_COUNT), "?");
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        T(a_process_is_up_when_it_has_registered_and_not_before),
        T(who_registers_before_its_report_is_read_is_started_first),
        T(who_does_not_register_in_time_is_killed),
        T(an_end_has_its_reason),
        T(a_clean_end_of_a_permanent_one_is_none_that_is_expected),
        T(the_last_line_of_its_log_is_kept_and_only_of_this_process),
        T(a_crash_is_restarted_after_its_backoff_under_another_id),
        T(a_crash_loop_is_given_up_and_an_operator_starts_it_again),
        T(a_stop_is_a_signal_then_a_kill),
        T(a_drain_waits_before_its_signal),
        T(one_that_is_to_be_killed_says_why_and_counts_as_crashed),
        T(one_whose_lease_is_over_has_its_time_to_come_back),
        T(all_stop_and_nothing_comes_after),
        T(the_end_of_the_spawner_is_the_end_of_its_children_but_no_crash_of_theirs),
        T(one_that_was_not_started_yet_stops_without_an_order),
        T(a_spawner_that_ends_at_once_is_replaced_a_second_later),
        T(a_packet_that_is_none_costs_the_spawner),
        T(orders_wait_for_room_and_none_is_lost_or_sent_twice),
        T(a_queue_of_events_that_is_full_stops_the_reading),
        T(a_close_ends_the_spawner),
        T(a_successor_may_adopt_what_is_abandoned),
        cmocka_unit_test(names_of_events_are_words),
    };
#undef T

    if (argc > 1 && strcmp(argv[1], "--spawner") == 0) {
        /* a spawner that ends as soon as it was reached */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)alarm(60);
        (void)poll(&(struct pollfd){.fd = 3, .events = POLLIN}, 1, -1);
        (void)accept(3, NULL, NULL);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
