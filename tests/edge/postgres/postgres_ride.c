/* An owner whose connection is cut, whose answers are lost or late, whose server is away: it goes
 * on, each turn is stored once, and it never takes what another owns (G190). */
#include "tests/edge/postgres/proxy.h"
#include "tests/support/pg_server/pg_server.h"
#include "tests/unit/journal/journal_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"

enum { LEASE = 1600, CUTS = 12, CALLED_EVERY = 250 /* a busy machine with sanitizers */ };
static const struct journal_options ONE = {.lease_ms = LEASE, .node = "one"};
static const struct journal_options TWO = {.lease_ms = LEASE, .node = "two"};
static const char *proxy;

static struct journal *open_at(const char *url, const struct journal_options *opt)
{
    struct journal *j = NULL;
    struct bt_error err;

    assert_ok(journal_open(url, opt, &j, &err), err);
    return j;
}

static struct journal *begin(void)
{
    proxy_set(PROXY_PASS, 0);
    pg_server_clear();
    return open_at(proxy, &ONE);
}

static void expect_events(struct journal *j, const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;

    assert_ok(journal_events(j, 1, 0, 1000, see_row, &s, &err), err);
    assert_string_equal(s.text, want);
}

/* What another sees when this one has let go. */
static void expect_stored(struct journal *j, const char *want)
{
    struct journal *two;

    journal_close(j);
    two = open_at(pg_server_url(), &TWO);
    expect_events(two, want);
    journal_close(two);
}

static void an_answer_that_is_lost_is_no_loss(void **state)
{
    struct journal *j = begin();

    (void)state;
    add_event(j, 0, 0, "a");
    commit(j);
    proxy_set(PROXY_LOSE_ANSWERS, 0);
    add_event(j, 0, 0, "b");
    commit(j);
    add_event(j, 0, 0, "c");
    commit(j);
    expect_stored(j, "1:a 2:b 3:c ");
}

/* Its position does not tell. */
static void a_turn_without_rows_is_stored_once(void **state)
{
    const enum proxy_mode modes[] = {PROXY_LOSE_ANSWERS, PROXY_CUT};
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct buf got;
        uint64_t id = 0;
        uint64_t next = 0;
        assert_ok(journal_blob_add(j, "bytes", 5, &id, &err), err);
        proxy_set(modes[i], 90);
        commit(j); /* a second INSERT of the blob would end the journal */
        assert_ok(journal_blob_add(j, "others", 6, &next, &err), err);
        commit(j);
        assert_int_equal(next, id + 1);
        buf_init(&got, 64);
        assert_ok(journal_blob_get(j, id, &got, &err), err);
        assert_int_equal(got.len, 5);
        buf_done(&got);
    }
    journal_close(j);
}

static void a_turn_that_is_cut_anywhere_is_stored_once(void **state)
{
    struct journal *j = begin();
    char want[1024] = "";
    size_t n = 0;

    (void)state;
    for (uint32_t i = 0; i < CUTS; i++) {
        char body[8];
        proxy_set(PROXY_CUT, i * i * 8);
        (void)snprintf(body, sizeof body, "e%u", i);
        for (uint32_t k = 0; k < 1 + i % 7; k++) { /* single rows, and arrays */
            const uint64_t seq = add_event(j, 0, 0, body);
            n += (size_t)snprintf(want + n, sizeof want - n, "%u:%s ", (unsigned)seq, body);
        }
        commit(j);
    }
    expect_stored(j, want);
}

/* A read within a batch has sent its beginning, which ends with the connection. */
static void what_a_read_has_sent_is_sent_again(void **state)
{
    const enum proxy_mode modes[] = {PROXY_LOSE_ANSWERS, PROXY_CUT, PROXY_LEAVE};
    struct journal *j = begin();
    struct bt_error err;
    char want[64] = "";

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct journal_plan p;
        add_event(j, 0, 0, "a");
        assert_int_equal(journal_plan_by_key(j, STR_LIT("none"), &p, &err), BT_NOT_FOUND);
        add_event(j, 0, 0, "b");
        proxy_set(modes[i], 30);
        assert_int_equal(journal_plan_by_key(j, STR_LIT("none"), &p, &err), BT_NOT_FOUND);
        assert_int_equal(add_plan(j, "k", "g") != 0, 1); /* counted: asks, too */
        assert_ok(journal_plan_status(j, i + 1, STR_LIT("completed"), 1, &err), err);
        proxy_set(modes[i], 30);
        commit(j);
        assert_ok(journal_plan_delete(j, i + 1, STR_LIT("test"), 1, &err), err);
        commit(j);
        assert_int_equal(journal_gone_forget(j, (struct uuid){{0}}, &err), BT_NOT_FOUND);
        (void)snprintf(want + strlen(want), sizeof want - strlen(want), "%u:a %u:b ",
                       (unsigned)(2 * i + 1), (unsigned)(2 * i + 2));
        pg_server_run("DELETE FROM baton_s0.gone", NULL, 0); /* the key is free again */
    }
    expect_stored(j, want);
}

/* The server sleeps in the commit, and goes on when its client is gone. */
static struct journal *begin_slow(const char *seconds)
{
    char sql[400];
    struct journal *j = begin();

    add_event(j, 0, 0, "a");
    commit(j);
    (void)snprintf(sql, sizeof sql,
                   "CREATE OR REPLACE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS "
                   "$$ BEGIN PERFORM pg_sleep(%s); RETURN NULL; END $$;"
                   "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON baton_s0.rows DEFERRABLE "
                   "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.slow()",
                   seconds);
    pg_server_run(sql, NULL, 0);
    add_event(j, 0, 0, "b");
    return j;
}

static void go_on_fast(struct journal *j)
{
    commit(j);
    pg_server_run("DROP TRIGGER slow ON baton_s0.rows", NULL, 0);
    add_event(j, 0, 0, "c");
    commit(j);
    expect_stored(j, "1:a 2:b 3:c ");
}

static void a_commit_that_still_runs_is_ended_with_its_backend(void **state)
{
    struct journal *j = begin_slow("0.4");

    (void)state;
    proxy_set(PROXY_LEAVE, 100); /* the commit is asleep by then */
    go_on_fast(j);
}

/* SELECT would say that it is not there, and a second one would be sent. */
static void a_commit_that_still_runs_and_cannot_be_ended_is_waited_for(void **state)
{
    struct journal *j = begin_slow("0.4");

    (void)state;
    pg_server_run("UPDATE baton.shards SET backend = 0", NULL, 0);
    proxy_set(PROXY_LEAVE, 100);
    go_on_fast(j);
}

/* So many times the server undoes the turn: a deadlock, or a conflict between its nodes. */
static void undo_turns(int times)
{
    char sql[600];

    (void)snprintf(sql, sizeof sql,
                   "DROP SEQUENCE IF EXISTS public.turns; CREATE SEQUENCE public.turns;"
                   "CREATE OR REPLACE FUNCTION public.undo() RETURNS trigger LANGUAGE plpgsql AS "
                   "$$ BEGIN IF nextval('public.turns') <= %d THEN RAISE EXCEPTION 'again' USING "
                   "ERRCODE = '40001'; END IF; RETURN NULL; END $$;"
                   "DROP TRIGGER IF EXISTS undo ON baton_s0.rows;"
                   "CREATE CONSTRAINT TRIGGER undo AFTER INSERT ON baton_s0.rows DEFERRABLE "
                   "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.undo()",
                   times);
    pg_server_run(sql, NULL, 0);
}

static void a_turn_that_the_server_undoes_is_sent_again_five_times(void **state)
{
    struct journal *j = begin();
    struct journal_plan p;
    struct bt_error err;

    (void)state;
    undo_turns(5);
    add_event(j, 0, 0, "a");
    commit(j);
    undo_turns(1);
    add_event(j, 0, 0, "b");
    assert_int_equal(journal_plan_by_key(j, STR_LIT("none"), &p, &err), BT_NOT_FOUND);
    commit(j); /* its beginning was sent before */
    undo_turns(6);
    add_event(j, 0, 0, "c");
    assert_int_equal(journal_commit(j, &err), BT_IO);
    journal_close(j);
    pg_server_run("DROP TRIGGER undo ON baton_s0.rows; "
                  "UPDATE baton.shards SET lease_until = '-infinity'",
                  NULL, 0);
    j = open_at(pg_server_url(), &TWO);
    expect_events(j, "1:a 2:b ");
    journal_close(j);
}

static void an_answer_that_comes_late_is_not_waited_for(void **state)
{
    struct journal *j = begin();
    uint64_t began;

    (void)state;
    add_event(j, 0, 0, "a");
    commit(j);
    began = clock_boot_ms();
    proxy_set(PROXY_LATE, 2 * LEASE);
    add_event(j, 0, 0, "b");
    if (fork() == 0) {
        (void)poll(NULL, 0, LEASE);
        proxy_set(PROXY_PASS, 0);
        _exit(0);
    }
    commit(j);
    (void)wait(NULL);
    assert_true(clock_boot_ms() - began >= LEASE / 2);
    expect_stored(j, "1:a 2:b ");
}

/* The answers to what was asked before come, when others are waited for. */
static void plans_whose_answers_come_late_are_read_again_and_not_mixed_up(void **state)
{
    struct journal *j = begin();
    struct seen s = {{0}};
    struct bt_error err;

    (void)state;
    (void)add_plan(j, "one", "first");
    (void)add_plan(j, "two", "second");
    (void)add_plan(j, "three", "third");
    commit(j);
    proxy_set(PROXY_LATE_LONG, LEASE * 3 / 4); /* after half a lease */
    assert_ok(journal_plans_open(j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "1:first/running 2:second/running 3:third/running ");
    add_event(j, 0, 0, "a");
    commit(j);
    expect_stored(j, "1:a ");
}

static void the_answer_to_the_next_epoch_may_be_lost_too(void **state)
{
    struct journal *j = begin();

    (void)state;
    add_event(j, 0, 0, "a");
    commit(j);
    pg_server_run("SELECT pg_terminate_backend(backend) FROM baton.shards", NULL, 0);
    proxy_set(PROXY_LOSE_TAKE, 0);
    add_event(j, 0, 0, "b");
    commit(j);
    expect_stored(j, "1:a 2:b ");
}

struct calls {
    uint64_t last, longest, n, stop_after;
};

static bool on_wait(void *self)
{
    struct calls *c = self;
    const uint64_t now = clock_boot_ms();

    c->longest = c->n > 0 && now - c->last > c->longest ? now - c->last : c->longest;
    c->last = now;
    return ++c->n != c->stop_after;
}

static void the_caller_is_called_while_the_server_is_away(void **state)
{
    struct journal *j = begin();
    struct calls calls = {0};
    uint64_t began;
    char epoch[16];

    (void)state;
    journal_while_waiting(j, on_wait, &calls);
    add_event(j, 0, 0, "a");
    commit(j);
    proxy_set(PROXY_AWAY, 0);
    if (fork() == 0) {
        (void)poll(NULL, 0, 3 * LEASE); /* the lease is over, and nobody has taken it */
        proxy_set(PROXY_PASS, 0);
        _exit(0);
    }
    began = clock_boot_ms();
    add_event(j, 0, 0, "b");
    commit(j);
    (void)wait(NULL);
    assert_true(clock_boot_ms() - began >= 3 * LEASE);
    assert_true(calls.n > 3 * LEASE / CALLED_EVERY);
    assert_in_range(calls.longest, 0, CALLED_EVERY);
    pg_server_run("SELECT epoch FROM baton.shards", epoch, sizeof epoch);
    assert_string_equal(epoch, "2");
    assert_int_equal(journal_boot(j), 1); /* what lives from it goes on */
    expect_stored(j, "1:a 2:b ");
}

/* Clients are refused while the server is away, not while it is slow. */
static void nobody_is_called_while_an_answer_is_slow(void **state)
{
    const char *const seconds[] = {"0.1", "0.5"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct calls calls = {0};
        struct journal *j = begin_slow(seconds[i]);
        journal_while_waiting(j, on_wait, &calls);
        commit(j);
        assert_true((calls.n > 0) == (i == 1));
        journal_while_waiting(j, NULL, NULL);
        go_on_fast(j);
    }
}

static void who_is_asked_to_stop_stops_waiting(void **state)
{
    struct journal *j = begin();
    struct calls calls = {.stop_after = 10};
    struct bt_error err;
    const uint64_t began = clock_boot_ms();

    (void)state;
    journal_while_waiting(j, on_wait, &calls);
    add_event(j, 0, 0, "a");
    proxy_set(PROXY_AWAY, 0);
    assert_int_equal(journal_commit(j, &err), BT_IO);
    assert_in_range(clock_boot_ms() - began, 0, LEASE);
    assert_non_null(strstr(err.msg, "asked to stop"));
    assert_int_equal(journal_commit(j, &err), BT_IO);
    journal_close(j);
    proxy_set(PROXY_PASS, 0);
}

static void who_was_away_too_long_does_not_take_it_back(void **state)
{
    struct journal *j = begin();
    struct journal *two = NULL;
    struct bt_error err;
    int status;
    pid_t pid;

    (void)state;
    add_event(j, 0, 0, "a");
    commit(j);
    proxy_set(PROXY_AWAY, 0);
    pid = fork();
    if (pid == 0) {
        while (journal_open(pg_server_url(), &TWO, &two, &err) == BT_CONFLICT) {
            (void)poll(NULL, 0, 20);
        }
        add_event(two, 0, 0, "of two");
        commit(two);
        proxy_set(PROXY_PASS, 0);
        (void)poll(NULL, 0, LEASE / 2);
        commit(two);
        add_event(two, 0, 0, "of two again");
        _exit(journal_commit(two, &err) == BT_OK ? 0 : 1);
    }
    add_event(j, 0, 0, "late");
    assert_int_equal(journal_commit(j, &err), BT_IO);
    assert_non_null(strstr(err.msg, "another daemon has taken this journal over"));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    journal_close(j);
    pg_server_run("UPDATE baton.shards SET lease_until = '-infinity'", NULL, 0);
    two = open_at(pg_server_url(), &TWO);
    expect_events(two, "1:a 2:of two 3:of two again ");
    journal_close(two);
}

/* Of a turn of 20 rows, which is sent as arrays: so many bytes have come when its owner stops. */
static void half_a_turn(uint32_t bytes)
{
    enum { GRACE = 1500, PATIENCE = 8 * LEASE };
    const uint64_t began = clock_boot_ms();
    struct journal *two = NULL;
    struct bt_error err;
    pid_t pid;

    journal_close(begin());
    pid = fork();
    if (pid == 0) {
        struct journal *j = open_at(proxy, &ONE);
        add_event(j, 0, 0, "a");
        commit(j);
        for (int i = 0; i < 20; i++) {
            add_event(j, 0, 0, "late");
        }
        proxy_set(PROXY_HOLD, bytes);
        _exit(journal_commit(j, &err) == BT_OK);
    }
    (void)poll(NULL, 0, LEASE / 3);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    while (clock_boot_ms() - began < PATIENCE &&
           journal_open(pg_server_url(), &TWO, &two, &err) != BT_OK) {
        (void)poll(NULL, 0, 20);
    }
    if (two == NULL) {
        fail_msg("not taken over with %u bytes: %s", (unsigned)bytes, err.msg);
    }
    assert_in_range(clock_boot_ms() - began, LEASE / 2, LEASE + LEASE / 3 + GRACE);
    expect_events(two, "1:a ");
    journal_close(two);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The fence has its locks, and waits for the rest. */
static void half_a_turn_that_has_come_delays_no_take_over(void **state)
{
    /* nothing; within the fence's first message; the fence without its Execute; the fence whole;
     * within the arrays; within the last array */
    static const uint32_t BYTES[] = {0, 1, 60, 130, 600, 1500};

    (void)state;
    for (size_t i = 0; i < sizeof BYTES / sizeof BYTES[0]; i++) {
        half_a_turn(BYTES[i]);
    }
}

static void history_that_a_failover_has_lost_is_not_gone_over(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    add_event(j, 0, 0, "a");
    commit(j);
    add_event(j, 0, 0, "b");
    commit(j);
    proxy_set(PROXY_AWAY, 0);
    (void)poll(NULL, 0, 50);
    pg_server_run("DELETE FROM baton_s0.rows WHERE pos >> 20 = 2;"
                  "UPDATE baton.shards SET pos = 1 << 20",
                  NULL, 0);
    proxy_set(PROXY_PASS, 0);
    add_event(j, 0, 0, "c");
    assert_int_equal(journal_commit(j, &err), BT_IO);
    assert_non_null(strstr(err.msg, "a failover has lost history"));
    journal_close(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_is_lost_is_no_loss),
        cmocka_unit_test(a_turn_without_rows_is_stored_once),
        cmocka_unit_test(a_turn_that_is_cut_anywhere_is_stored_once),
        cmocka_unit_test(what_a_read_has_sent_is_sent_again),
        cmocka_unit_test(a_commit_that_still_runs_is_ended_with_its_backend),
        cmocka_unit_test(a_commit_that_still_runs_and_cannot_be_ended_is_waited_for),
        cmocka_unit_test(a_turn_that_the_server_undoes_is_sent_again_five_times),
        cmocka_unit_test(an_answer_that_comes_late_is_not_waited_for),
        cmocka_unit_test(plans_whose_answers_come_late_are_read_again_and_not_mixed_up),
        cmocka_unit_test(the_answer_to_the_next_epoch_may_be_lost_too),
        cmocka_unit_test(the_caller_is_called_while_the_server_is_away),
        cmocka_unit_test(nobody_is_called_while_an_answer_is_slow),
        cmocka_unit_test(who_is_asked_to_stop_stops_waiting),
        cmocka_unit_test(who_was_away_too_long_does_not_take_it_back),
        cmocka_unit_test(half_a_turn_that_has_come_delays_no_take_over),
        cmocka_unit_test(history_that_a_failover_has_lost_is_not_gone_over),
    };

    if (!pg_server_installed()) {
        return pg_server_skip("a connection that is lost");
    }
    pg_server_start();
    proxy = proxy_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
