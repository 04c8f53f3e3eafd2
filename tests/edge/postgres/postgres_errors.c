/* What a server refuses, of itself and not in a fake: a statement that is ended, a deadlock, no
 * connections left, one that takes no writes, a clock that was put back. The class of each (G201).
 */
#include "tests/unit/journal/journal_fixture.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "supervisor/journal/owner.h"
#include "tests/support/pg_server/pg_server.h"

enum {
    LEASE = 6000 /* a third, which a lock may last, is more than the server's deadlock_timeout */,
    AWAY = 800
};
static const struct journal_options ONE = {.lease_ms = LEASE, .node = "one"};
static const struct journal_options TWO = {.lease_ms = LEASE, .node = "two"};

static struct journal *open_as(const struct journal_options *opt)
{
    struct journal *j = NULL;
    struct bt_error err;

    assert_ok(journal_open(pg_server_url(), opt, &j, &err), err);
    return j;
}

static struct journal *begin(void)
{
    struct journal *j;

    pg_server_clear();
    j = open_as(&ONE);
    add_event(j, 0, 0, "a");
    commit(j);
    return j;
}

static void expect_stored(struct journal *j, const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;

    journal_close(j);
    j = open_as(&TWO);
    assert_ok(journal_events(j, 1, 0, 1000, see_row, &s, &err), err);
    assert_string_equal(s.text, want);
    journal_close(j);
}

static int ready[2]; /* one writes a byte when it has done what the other waits for */

static pid_t beside(void (*fn)(void))
{
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    (void)close(ready[1]);
    return pid;
}

static void wait_ready(void)
{
    char c;

    assert_int_equal(read(ready[0], &c, 1), 1);
}

static void over(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(ready[0]);
}

static void wait_until(const char *sql)
{
    char n[8] = "";

    for (int i = 0; i < 400 && strcmp(n, "t") != 0; i++) {
        (void)poll(NULL, 0, 10);
        pg_server_run(sql, n, sizeof n);
    }
    assert_string_equal(n, "t");
}

/* 57014: by an administrator, or statement_timeout. */
static void end_its_statement(void)
{
    wait_until("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    pg_server_run("SELECT pg_cancel_backend(backend) FROM baton.shards", NULL, 0);
}

static void a_statement_that_is_ended_refuses_its_batch_and_no_more(void **state)
{
    struct journal *j = begin();
    struct bt_error err;
    pid_t pid;

    (void)state;
    pg_server_run("CREATE OR REPLACE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS "
                  "$$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$;"
                  "CREATE TRIGGER slow AFTER INSERT ON baton_s0.rows FOR EACH ROW EXECUTE FUNCTION "
                  "public.slow()",
                  NULL, 0);
    pid = beside(end_its_statement);
    add_event(j, 0, 0, "b");
    assert_int_equal(journal_commit(j, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "57014"));
    over(pid);
    pg_server_run("DROP TRIGGER slow ON baton_s0.rows", NULL, 0);
    assert_int_equal(journal_last_seq(j), 1);
    add_event(j, 0, 0, "c");
    commit(j);
    expect_stored(j, "1:a 2:c ");
}

/* It has the table, and wants the row that the fence has. */
static void cross(void)
{
    pg_server_run("SET deadlock_timeout = '1min'; BEGIN; LOCK TABLE baton_s0.rows; "
                  "CREATE TABLE public.locked(); "
                  "SELECT pg_sleep(0.5); UPDATE baton.shards SET owner = owner; COMMIT",
                  NULL, 0);
}

static void a_deadlock_is_no_loss(void **state)
{
    struct journal *j = begin();
    char deadlocks[8];
    pid_t pid;

    (void)state;
    pid = beside(cross);
    wait_until("SELECT count(*) > 0 FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' "
               "AND relation = 'baton_s0.rows'::regclass");
    add_event(j, 0, 0, "b");
    commit(j);
    over(pid);
    pg_server_run("DROP TABLE public.locked", NULL, 0);
    for (int i = 0; i < 200; i++) { /* counted by and by */
        pg_server_run("SELECT sum(deadlocks) > 0 FROM pg_stat_database", deadlocks,
                      sizeof deadlocks);
        if (deadlocks[0] == 't') {
            break;
        }
        (void)poll(NULL, 0, 50);
    }
    assert_string_equal(deadlocks, "t");
    expect_stored(j, "1:a 2:b ");
}

/* All connections that the server gives, the owner's too; for a while. */
static void take_all_connections(void)
{
    enum { ALL = 400 };
    static PGconn *c[ALL];
    int n = 0;

    for (; n < ALL; n++) {
        c[n] = PQconnectdb(pg_server_url());
        if (PQstatus(c[n]) != CONNECTION_OK) {
            PQfinish(c[n]);
            break;
        }
    }
    if (n == 0 || n == ALL) {
        _exit(1);
    }
    PQclear(PQexec(c[0], "SELECT pg_terminate_backend(backend) FROM baton.shards"));
    for (int i = 0; i < 400; i++) { /* its place, before the owner has it again */
        c[n] = PQconnectdb(pg_server_url());
        if (PQstatus(c[n]) == CONNECTION_OK) {
            break;
        }
        PQfinish(c[n]);
        c[n] = NULL;
        (void)poll(NULL, 0, 1);
    }
    (void)!write(ready[1], "", 1);
    (void)poll(NULL, 0, AWAY);
    for (int i = 0; i <= n; i++) {
        PQfinish(c[i]);
    }
}

static void who_gets_no_connection_waits_for_one(void **state)
{
    struct journal *j = begin();
    pid_t pid;

    (void)state;
    pid = beside(take_all_connections);
    wait_ready();
    add_event(j, 0, 0, "b");
    commit(j);
    over(pid);
    expect_stored(j, "1:a 2:b ");
}

static void who_gets_no_connection_to_begin_with_may_try_again(void **state)
{
    struct journal *j = begin();
    struct journal *two = NULL;
    struct bt_error err;
    enum bt_code code;
    pid_t pid;

    (void)state;
    pid = beside(take_all_connections);
    wait_ready();
    code = journal_open(pg_server_url(), &TWO, &two, &err);
    over(pid);
    assert_int_equal(code, BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "too many clients"));
    add_event(j, 0, 0, "b");
    commit(j);
    expect_stored(j, "1:a 2:b ");
}

static void set_read_only(bool on)
{
    char sql[96];

    (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET default_transaction_read_only = %s",
                   on ? "on" : "off");
    pg_server_run(sql, NULL, 0);
    pg_server_run("SELECT pg_reload_conf()", NULL, 0);
}

static void write_again(void)
{
    (void)poll(NULL, 0, AWAY);
    set_read_only(false);
}

/* 25006: some make it read-only when its disk is nearly full, or before a change of servers. */
static void a_server_that_takes_no_writes_is_one_that_is_away(void **state)
{
    struct journal *j = begin();
    struct bt_error err;
    uint64_t began;
    pid_t pid;

    (void)state;
    set_read_only(true);
    (void)poll(NULL, 0, 100);
    pid = beside(write_again);
    began = clock_boot_ms();
    add_event(j, 0, 0, "b");
    assert_ok(journal_commit(j, &err), err);
    assert_true(clock_boot_ms() - began > AWAY / 2);
    over(pid);
    add_event(j, 0, 0, "c");
    commit(j);
    expect_stored(j, "1:a 2:b 3:c ");
}

/* No owner has a lease of an hour: the clock was put back, and its owner is gone. */
static void a_lease_that_no_owner_can_have_is_over(void **state)
{
    struct journal *j = begin();
    struct journal_look *l = NULL;
    struct journal_owner now;
    struct journal *two = NULL;
    struct bt_error err;

    (void)state;
    pg_server_run("UPDATE baton.shards SET lease_until = clock_timestamp() + interval '59 seconds'",
                  NULL, 0);
    assert_int_equal(journal_open(pg_server_url(), &TWO, &two, &err), BT_CONFLICT);
    pg_server_run("UPDATE baton.shards SET lease_until = clock_timestamp() + interval '1 hour'",
                  NULL, 0);
    assert_ok(journal_look_open(pg_server_url(), LEASE, 0, &l, &err), err);
    assert_ok(journal_look(l, &now, &err), err);
    journal_look_close(l);
    assert_true(now.lease_left_ms <= 0);
    two = open_as(&TWO);
    add_event(j, 0, 0, "late");
    assert_int_equal(journal_commit(j, &err), BT_IO);
    journal_close(j);
    expect_stored(two, "1:a ");
}

/* One that lives renews it: by the clock that the server has now. */
static void an_owner_goes_on_when_the_clock_is_put_back_or_forward(void **state)
{
    static const char *const LEASES[] = {"- interval '1 hour'", "+ interval '1 hour'"};
    struct journal *j = begin();
    char sql[160];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(sql, sizeof sql,
                       "UPDATE baton.shards SET lease_until = clock_timestamp() %s", LEASES[i]);
        pg_server_run(sql, NULL, 0);
        add_event(j, 0, 0, "b");
        commit(j);
        wait_until("SELECT lease_until BETWEEN clock_timestamp() AND clock_timestamp() + interval "
                   "'6 seconds' FROM baton.shards");
    }
    expect_stored(j, "1:a 2:b 3:b ");
}

/* Whoever reads then would take every plan for damaged, and write that down. */
static void a_read_that_the_server_refuses_is_no_damage(void **state)
{
    struct journal *j = begin();
    struct seen s = {{0}};
    struct bt_error err;

    (void)state;
    (void)add_plan(j, "one", "first");
    commit(j);
    pg_server_run("ALTER TABLE baton_s0.plans RENAME TO elsewhere", NULL, 0);
    assert_int_equal(journal_plans_open(j, see_plan, &s, &err), BT_IO);
    assert_non_null(strstr(err.msg, "42P01"));
    pg_server_run("ALTER TABLE baton_s0.elsewhere RENAME TO plans", NULL, 0);
    assert_int_equal(journal_commit(j, &err), BT_IO);
    journal_close(j);
    pg_server_run("UPDATE baton.shards SET lease_until = clock_timestamp()", NULL, 0);
    j = open_as(&ONE);
    assert_ok(journal_plans_open(j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "1:first/running ");
    journal_close(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_statement_that_is_ended_refuses_its_batch_and_no_more),
        cmocka_unit_test(a_deadlock_is_no_loss),
        cmocka_unit_test(a_read_that_the_server_refuses_is_no_damage),
        cmocka_unit_test(who_gets_no_connection_waits_for_one),
        cmocka_unit_test(who_gets_no_connection_to_begin_with_may_try_again),
        cmocka_unit_test(a_server_that_takes_no_writes_is_one_that_is_away),
        cmocka_unit_test(a_lease_that_no_owner_can_have_is_over),
        cmocka_unit_test(an_owner_goes_on_when_the_clock_is_put_back_or_forward),
    };

    if (!pg_server_installed()) {
        return pg_server_skip("what a server refuses");
    }
    pg_server_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
