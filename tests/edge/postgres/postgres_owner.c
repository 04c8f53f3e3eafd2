/* Who owns a journal on a real PostgreSQL server: lease, epoch, fence, take-over, and what is not
 * known. */
#include "tests/unit/journal/journal_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/support/pg_server/pg_server.h"

enum { LEASE = 2000, GRACE = 2000 /* after the lease, for the take-over */, WAIT_MAX = 15000 };
static const struct journal_options ONE = {.lease_ms = LEASE, .node = "one"};
static const struct journal_options TWO = {.lease_ms = LEASE, .node = "two"};

static struct journal *open_as(const struct journal_options *opt)
{
    struct journal *j = NULL;
    struct bt_error err;

    assert_ok(journal_open(pg_server_url(), opt, &j, &err), err);
    return j;
}

/* As a standby does; the time that it took. */
static struct journal *take_over(uint64_t *ret_ms)
{
    const uint64_t began = clock_boot_ms();
    struct journal *j = NULL;
    struct bt_error err;

    while (clock_boot_ms() - began < WAIT_MAX &&
           journal_open(pg_server_url(), &TWO, &j, &err) != BT_OK) {
        (void)poll(NULL, 0, 20);
    }
    if (j == NULL) {
        fail_msg("not taken over: %s", err.msg);
    }
    *ret_ms = clock_boot_ms() - began;
    return j;
}

static void expect_events(struct journal *j, const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;

    assert_ok(journal_events(j, 1, 0, 100, see_row, &s, &err), err);
    assert_string_equal(s.text, want);
}

static void expect_refused(struct journal *j, const char *says)
{
    struct bt_error err;

    assert_int_equal(journal_commit(j, &err), BT_IO);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    }
    assert_int_equal(journal_commit(j, &err), BT_IO); /* dead from now on */
}

/* The old owner's connection stays: what is tested is the fence. */
static void keep_connection(void)
{
    pg_server_run("UPDATE baton.shards SET backend = 0", NULL, 0);
}

static void one_owner_at_a_time_and_the_next_when_it_lets_go(void **state)
{
    struct journal *one;
    struct journal *two = NULL;
    struct bt_error err;

    (void)state;
    pg_server_clear();
    one = open_as(&ONE);
    assert_int_equal(journal_open(pg_server_url(), &TWO, &two, &err), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "the node \"one\" owns this journal until "));
    add_event(one, 0, 0, "a");
    commit(one);
    journal_close(one);
    two = open_as(&TWO); /* at once */
    assert_int_equal(journal_boot(two), 2);
    expect_events(two, "1:a ");
    journal_close(two);
}

static void who_renews_stays_the_owner(void **state)
{
    struct journal *one;
    struct journal *two = NULL;
    struct bt_error err;
    uint64_t began;

    (void)state;
    pg_server_clear();
    one = open_as(&ONE);
    for (began = clock_boot_ms(); clock_boot_ms() - began < 3 * LEASE;) {
        assert_ok(journal_keep(one, &err), err);
        assert_int_equal(journal_open(pg_server_url(), &TWO, &two, &err), BT_CONFLICT);
        (void)poll(NULL, 0, LEASE / 10);
    }
    journal_close(one);
}

static void a_late_commit_of_an_earlier_owner_is_refused(void **state)
{
    struct journal *one;
    struct journal *two;
    uint64_t ms;

    (void)state;
    pg_server_clear();
    one = open_as(&ONE);
    add_event(one, 0, 0, "a");
    commit(one);
    add_event(one, 0, 0, "late");
    keep_connection();
    two = take_over(&ms);
    expect_refused(one, "another daemon has taken this journal over, and nothing was stored");
    add_event(two, 0, 0, "b");
    commit(two);
    expect_events(two, "1:a 2:b ");
    journal_close(one);
    journal_close(two);
}

static void a_turn_that_does_not_follow_the_last_one_is_refused(void **state)
{
    struct journal *one;

    (void)state;
    pg_server_clear();
    one = open_as(&ONE);
    add_event(one, 0, 0, "a");
    commit(one);
    pg_server_run("UPDATE baton.shards SET pos = pos + 1", NULL, 0);
    add_event(one, 0, 0, "b");
    expect_refused(one, "nothing was stored");
    journal_close(one);
}

static void who_is_no_owner_any_more_cannot_renew(void **state)
{
    struct journal *one;
    struct journal *two;
    struct bt_error err;
    char owner[32];
    uint64_t ms;

    (void)state;
    pg_server_clear();
    one = open_as(&ONE);
    keep_connection();
    two = take_over(&ms);
    assert_int_equal(journal_keep(one, &err), BT_IO);
    pg_server_run("SELECT convert_from(owner, 'UTF8') FROM baton.shards", owner, sizeof owner);
    assert_string_equal(owner, "two");
    journal_close(one);
    journal_close(two);
}

static void who_cannot_renew_in_time_does_nothing_more(void **state)
{
    enum { LONG = 2 * LEASE };
    const struct journal_options opt = {.lease_ms = LONG, .node = "one"};
    struct journal *one;
    struct bt_error err;
    enum bt_code code = BT_OK;
    char is_left[8];
    uint64_t began;
    pid_t pid;

    (void)state;
    pg_server_clear();
    one = open_as(&opt);
    add_event(one, 0, 0, "a");
    commit(one);
    began = clock_boot_ms();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pg_server_run("BEGIN; SELECT 1 FROM baton.shards FOR UPDATE; SELECT pg_sleep(6); COMMIT",
                      NULL, 0);
        _exit(0);
    }
    while (code == BT_OK && clock_boot_ms() - began < 2 * LONG) {
        (void)poll(NULL, 0, 10);
        code = journal_keep(one, &err); /* a lock refuses each */
    }
    pg_server_run("SELECT lease_until > clock_timestamp() FROM baton.shards", is_left,
                  sizeof is_left);
    assert_int_equal(code, BT_IO);
    assert_string_equal(is_left, "t");
    assert_true(clock_boot_ms() - began > 2 * LONG / 3);
    assert_int_equal(journal_commit(one, &err), BT_IO);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    journal_close(one);
}

static void a_batch_that_lasts_is_stored_in_parts_and_keeps_the_lease(void **state)
{
    struct journal *one;
    struct journal *two = NULL;
    struct bt_error err;
    uint64_t began;
    uint64_t n = 0;

    (void)state;
    pg_server_clear();
    one = open_as(&ONE);
    for (began = clock_boot_ms(); clock_boot_ms() - began < 3 * LEASE; n++) {
        add_event(one, 0, 0, "a");
        assert_ok(journal_hold(one, &err), err);
        assert_int_equal(journal_open(pg_server_url(), &TWO, &two, &err), BT_CONFLICT);
        (void)poll(NULL, 0, LEASE / 10);
    }
    assert_true(journal_committed_seq(one) > 0);
    if (journal_dirty(one)) {
        commit(one);
    }
    assert_int_equal(journal_committed_seq(one), n);
    journal_close(one);
}

/* The next turn stops this process when it is half sent, whichever of the program's it is. */
static void fail_halfway(void)
{
    char rules[2000];
    size_t n = 0;

    for (int i = 1; i <= 60; i++) {
        n += (size_t)snprintf(rules + n, sizeof rules - n, "%sturn_half@%d:error", i > 1 ? "," : "",
                              i);
    }
    (void)setenv("BATON_FAILPOINT", rules, 1);
}

/* A process that owns the journal and is stopped: after a commit, or with half a turn sent. */
static pid_t stopped_owner(bool half, int *ret_from)
{
    int fds[2];
    int status;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct journal *j = open_as(&ONE);
        struct bt_error err;
        int code;
        add_event(j, 0, 0, "a");
        commit(j);
        add_event(j, 0, 0, "late");
        if (half) {
            fail_halfway();
        } else {
            (void)raise(SIGSTOP);
        }
        code = (int)journal_commit(j, &err);
        (void)!write(fds[1], &code, sizeof code);
        _exit(0);
    }
    (void)close(fds[1]);
    *ret_from = fds[0];
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

static void a_stopped_owner(bool half)
{
    struct journal *two;
    uint64_t ms;
    int from;
    int code = -1;
    pid_t pid;

    pg_server_clear();
    pid = stopped_owner(half, &from);
    two = take_over(&ms);
    assert_in_range(ms, 0, LEASE + GRACE);
    add_event(two, 0, 0, "b");
    commit(two);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(read(from, &code, sizeof code), sizeof code);
    assert_int_equal(code, BT_IO);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(from);
    add_event(two, 0, 0, "c");
    commit(two);
    expect_events(two, "1:a 2:b 3:c ");
    journal_close(two);
}

static void a_stopped_owner_is_taken_over_and_its_late_commit_is_refused(void **state)
{
    (void)state;
    a_stopped_owner(false);
}

static void half_a_turn_that_was_sent_delays_no_take_over(void **state)
{
#ifdef BATON_CHECKED
    (void)state;
    a_stopped_owner(true);
#else
    (void)state; /* it has no failpoints */
    skip();
#endif
}

static void wait_for_lock(void)
{
    char n[8] = "0";

    for (int i = 0; i < 200 && strcmp(n, "1") != 0; i++) {
        (void)poll(NULL, 0, 20);
        pg_server_run("SELECT count(*) FROM pg_locks WHERE granted AND mode = "
                      "'AccessExclusiveLock' AND relation = 'baton_s0.rows'::regclass",
                      n, sizeof n);
    }
    assert_string_equal(n, "1");
}

static void a_lock_that_others_hold_refuses_one_batch_and_no_more(void **state)
{
    struct journal *one;
    struct bt_error err;
    pid_t pid;

    (void)state;
    pg_server_clear();
    one = open_as(&(struct journal_options){.lease_ms = 3 * LEASE, .node = "one"});
    add_event(one, 0, 0, "a");
    commit(one);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pg_server_run("BEGIN; LOCK TABLE baton_s0.rows; SELECT pg_sleep(5); COMMIT", NULL, 0);
        _exit(0);
    }
    wait_for_lock();
    add_event(one, 0, 0, "b");
    assert_int_equal(journal_commit(one, &err), BT_UNAVAILABLE);
    assert_int_equal(journal_last_seq(one), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    add_event(one, 0, 0, "c");
    commit(one);
    expect_events(one, "1:a 2:c ");
    journal_close(one);
}

static void two_that_begin_at_once_make_the_tables_once_and_one_wins(void **state)
{
    int opened = 0;
    pid_t pids[4];

    (void)state;
    pg_server_clear();
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct journal *j = NULL;
            struct bt_error err;
            _exit((int)journal_open(pg_server_url(), &ONE, &j, &err)); /* it keeps its lease */
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_true(WEXITSTATUS(status) == BT_OK || WEXITSTATUS(status) == BT_CONFLICT);
        opened += WEXITSTATUS(status) == BT_OK;
    }
    assert_int_equal(opened, 1);
}

static void two_that_take_it_at_once_are_one_owner_each_time(void **state)
{
    enum { ROUNDS = 20, TAKERS = 2 };

    (void)state;
    pg_server_clear();
    journal_close(open_as(&ONE));
    for (int round = 0; round < ROUNDS; round++) {
        int won = 0;
        int go[2];
        pid_t pids[TAKERS];
        pg_server_run("UPDATE baton.shards SET lease_until = '-infinity'", NULL, 0);
        assert_int_equal(pipe(go), 0);
        for (int i = 0; i < TAKERS; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                struct journal *j = NULL;
                struct bt_error err;
                char c;
                (void)close(go[1]);
                (void)!read(go[0], &c, 1); /* both at once */
                _exit((int)journal_open(pg_server_url(), i == 0 ? &ONE : &TWO, &j, &err));
            }
        }
        (void)close(go[0]);
        (void)close(go[1]);
        for (int i = 0; i < TAKERS; i++) {
            int status;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_true(WEXITSTATUS(status) == BT_OK || WEXITSTATUS(status) == BT_CONFLICT);
            won += WEXITSTATUS(status) == BT_OK;
        }
        assert_int_equal(won, 1);
    }
}

static void tables_of_a_newer_program_are_refused(void **state)
{
    struct journal *j = open_as(&ONE);
    struct bt_error err;

    (void)state;
    journal_close(j);
    pg_server_run("UPDATE baton.fleet SET format = 99", NULL, 0);
    assert_int_equal(journal_open(pg_server_url(), &ONE, &j, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "format 99, written by a newer Baton"));
    pg_server_clear();
}

static int clear(void **state)
{
    (void)state;
    pg_server_clear();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_owner_at_a_time_and_the_next_when_it_lets_go),
        cmocka_unit_test(who_renews_stays_the_owner),
        cmocka_unit_test(a_late_commit_of_an_earlier_owner_is_refused),
        cmocka_unit_test(a_turn_that_does_not_follow_the_last_one_is_refused),
        cmocka_unit_test(who_is_no_owner_any_more_cannot_renew),
        cmocka_unit_test(who_cannot_renew_in_time_does_nothing_more),
        cmocka_unit_test(a_batch_that_lasts_is_stored_in_parts_and_keeps_the_lease),
        cmocka_unit_test(a_stopped_owner_is_taken_over_and_its_late_commit_is_refused),
        cmocka_unit_test(half_a_turn_that_was_sent_delays_no_take_over),
        cmocka_unit_test(a_lock_that_others_hold_refuses_one_batch_and_no_more),
        cmocka_unit_test(two_that_begin_at_once_make_the_tables_once_and_one_wins),
        cmocka_unit_test(two_that_take_it_at_once_are_one_owner_each_time),
        cmocka_unit_test_setup(tables_of_a_newer_program_are_refused, clear),
    };

    if (!pg_server_installed()) {
        return pg_server_skip("owners of a journal");
    }
    pg_server_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
