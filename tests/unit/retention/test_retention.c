/* What goes when: ages at T - 1 and T, the size at N and N + 1, in virtual time. */
#include <string.h>

#include "protocol/wire/doc.h"
#include "supervisor/journal/port.h"
#include "supervisor/retention/retention.h"
#include "tests/unit/journal/journal_fixture.h"

enum { START = 1000000 };

struct world {
    struct journal *journal;
    struct retention *retention;
    msec now;
    struct uuid open;    /* still in memory; nil = none */
    struct uuid read_of; /* whose files another one reads; nil = none */
    uint32_t deleted;
};

static bool is_open(void *self, struct uuid id)
{
    const struct world *w = self;
    return uuid_eq(w->open, id);
}

static bool is_read(void *self, struct uuid id, uint64_t ix)
{
    const struct world *w = self;
    (void)ix;
    return uuid_eq(w->read_of, id);
}

static void on_deleted(void *self, struct uuid id)
{
    struct world *w = self;
    (void)id;
    w->deleted++;
}

static void open_world(struct world *w, const struct retention_options *opt)
{
    const struct retention_hooks hooks = {w, is_open, is_read, on_deleted};
    struct bt_error err;

    *w = (struct world){.now = START};
    assert_ok(memory_journal_open(&w->journal, &err), err);
    assert_ok(retention_new(opt, &hooks, w->journal, &w->retention, &err), err);
}

static void close_world(struct world *w)
{
    retention_free(w->retention);
    journal_close(w->journal);
}

/* Runs what is due at `now`; wall and monotonic time are the same here. */
static void run_at(struct world *w, msec now)
{
    struct bt_error err;

    w->now = now;
    for (int i = 0; retention_deadline(w->retention) <= now; i++) {
        assert_true(i < 10000);
        assert_ok(retention_cycle(w->retention, now, now, &err), err);
    }
}

static struct uuid add(struct world *w, const char *status, msec ended, const char *job,
                       const char *of)
{
    struct journal_plan p = {.plan_id = uuid_new(),
                             .goal = STR_LIT("goal"),
                             .created_wall = ended - 5,
                             .status = STR_LIT("running"),
                             .job = str_from(job)};
    struct bt_error err;
    struct buf doc;
    uint64_t ix;

    buf_init(&doc, 1000);
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, strcmp(job, "child") == 0 ? "child" : "errand");
    doc_put_map(&doc, 2);
    doc_put_cstr(&doc, "kind");
    doc_put_cstr(&doc, strcmp(job, "child") == 0 ? "repeat" : "planning");
    doc_put_cstr(&doc, "of");
    doc_put_cstr(&doc, of);
    p.doc = doc.at;
    p.doc_len = doc.len;
    assert_ok(journal_plan_add(w->journal, &p, &ix, &err), err);
    (void)add_event(w->journal, ix, 1, "0123456789");
    assert_ok(journal_plan_status(w->journal, ix, str_from(status), ended, &err), err);
    commit(w->journal);
    buf_done(&doc);
    return p.plan_id;
}

static bool has(struct world *w, struct uuid id)
{
    struct journal_plan p;
    struct bt_error err;
    return journal_plan_by_id(w->journal, id, &p, &err) == BT_OK;
}

static void nothing_goes_by_default(void **state)
{
    const struct retention_options opt = {0};
    struct world w;
    struct uuid a;

    (void)state;
    open_world(&w, &opt);
    a = add(&w, "completed", START - 900000, "", "");
    run_at(&w, START);
    assert_true(retention_deadline(w.retention) == MSEC_NEVER);
    run_at(&w, START + 1000000000000ull);
    assert_true(has(&w, a));
    close_world(&w);
}

static void plans_go_at_their_age_and_not_before(void **state)
{
    const struct retention_options opt = {.completed_ms = 3000, .failed_ms = 9000};
    struct world w;
    struct uuid ok;
    struct uuid dry;
    struct uuid failed;
    struct uuid cancelled;

    (void)state;
    open_world(&w, &opt);
    failed = add(&w, "failed", START, "", "");
    ok = add(&w, "completed", START, "", "");
    dry = add(&w, "planned", START, "", "");
    cancelled = add(&w, "cancelled", START, "", "");
    run_at(&w, START + 2999);
    assert_true(has(&w, ok) && has(&w, dry) && has(&w, failed));
    assert_int_equal(retention_deadline(w.retention), START + 3000); /* not a moment late */
    run_at(&w, START + 3000);
    assert_false(has(&w, ok) || has(&w, dry));
    assert_true(has(&w, failed) && has(&w, cancelled));
    assert_int_equal(w.deleted, 2);
    run_at(&w, START + 8999);
    assert_true(has(&w, failed) && has(&w, cancelled));
    run_at(&w, START + 9000);
    assert_false(has(&w, failed) || has(&w, cancelled));
    close_world(&w);
}

static void one_age_alone_keeps_the_others_for_ever(void **state)
{
    const struct retention_options opt = {.failed_ms = 1000};
    struct world w;
    struct uuid ok;
    struct uuid failed;

    (void)state;
    open_world(&w, &opt);
    ok = add(&w, "completed", START, "", "");
    failed = add(&w, "failed", START, "", "");
    run_at(&w, START + 999);
    assert_true(has(&w, failed));
    run_at(&w, START + 1000000000ull);
    assert_false(has(&w, failed));
    assert_true(has(&w, ok));
    close_world(&w);
}

static void many_plans_go_in_slices(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000, .failed_ms = 50000};
    struct world w;
    struct bt_error err;
    struct uuid last;
    uint32_t most = 0;

    (void)state;
    open_world(&w, &opt);
    for (int i = 0; i < 100; i++) {
        (void)add(&w, "failed", START, "", ""); /* all of one moment, and they stay */
    }
    for (int i = 0; i < 100; i++) {
        last = add(&w, "completed", START, "", "");
    }
    for (int i = 0; retention_deadline(w.retention) <= START + 1000; i++) {
        uint32_t before = w.deleted;
        assert_true(i < 1000);
        assert_ok(retention_cycle(w.retention, START + 1000, START + 1000, &err), err);
        most = w.deleted - before > most ? w.deleted - before : most;
    }
    assert_int_equal(w.deleted, 100);
    assert_true(most <= 16);
    assert_false(has(&w, last));
    close_world(&w);
}

static void a_plan_whose_attempts_are_not_over_stays(void **state)
{
    const struct retention_options opt = {.completed_ms = 10};
    struct journal_plan p;
    struct world w;
    struct bt_error err;
    uint32_t jobs;

    (void)state;
    open_world(&w, &opt);
    w.open = add(&w, "completed", START, "", "");
    run_at(&w, START + 10);
    assert_true(has(&w, w.open));
    assert_ok(journal_plan_by_id(w.journal, w.open, &p, &err), err);
    assert_int_equal(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), BT_BUSY);
    w.open = (struct uuid){{0}};
    run_at(&w, START + 20);
    assert_int_equal(w.deleted, 1);
    close_world(&w);
}

static void jobs_go_with_their_plan_and_alone_without_one(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000, .failed_ms = 5000};
    char of[UUID_TEXT_LEN + 1];
    struct world w;
    struct uuid plan;
    struct uuid job;
    struct uuid lonely;
    struct uuid foreign;
    struct uuid plain;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "failed", START, "", "");
    uuid_format(plan, of);
    job = add(&w, "completed", START - 3, "planning", of);
    lonely = add(&w, "completed", START - 3, "planning", "s1");
    foreign = add(&w, "failed", START - 3, "planning", "s1");
    plain =
        add(&w, "completed", START - 2, "", ""); /* no job: whose job came before it is not its */
    run_at(&w, START + 4000);
    assert_true(has(&w, job));
    assert_false(has(&w, plain));
    assert_false(has(&w, lonely));
    assert_true(has(&w, foreign));
    run_at(&w, START + 5000);
    assert_false(has(&w, job) || has(&w, plan) || has(&w, foreign));
    close_world(&w);
}

/* A plan, 3 rounds, in the second a sub-plan with a question, all in one millisecond. */
static struct uuid add_nest(struct world *w, msec ended, struct uuid ret[5])
{
    char of[UUID_TEXT_LEN + 1];
    const struct uuid plan = add(w, "failed", ended, "", "");

    for (int i = 0; i < 3; i++) {
        uuid_format(plan, of);
        ret[i] = add(w, "completed", ended, "child", of);
    }
    for (int i = 3; i < 5; i++) {
        uuid_format(ret[i - 2 + (i - 3)], of); /* in the second round; in what was made there */
        ret[i] = add(w, "completed", ended, i == 3 ? "child" : "planning", of);
    }
    return plan;
}

static void plans_inside_a_plan_live_as_long_as_it_and_no_longer(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000, .failed_ms = 5000};
    struct uuid inside[5];
    struct world w;

    (void)state;
    open_world(&w, &opt);
    (void)add_nest(&w, START, inside);
    run_at(&w, START + 4999);
    assert_int_equal(w.deleted, 0); /* their own age is over */
    run_at(&w, START + 5000);
    assert_int_equal(w.deleted, 6);
    for (int i = 0; i < 5; i++) {
        assert_false(has(&w, inside[i]));
    }
    close_world(&w);
}

static void a_plan_that_is_deleted_takes_all_inside_it_along(void **state)
{
    const struct retention_options opt = {0};
    struct journal_plan p;
    struct uuid inside[5];
    struct uuid others[5];
    struct uuid plan;
    struct uuid other;
    struct uuid lonely;
    char of[UUID_TEXT_LEN + 1];
    struct world w;
    struct bt_error err;
    uint32_t jobs;

    (void)state;
    open_world(&w, &opt);
    plan = add_nest(&w, START, inside);
    other = add_nest(&w, START, others);
    uuid_format(uuid_new(), of); /* a plan that is not there any more */
    lonely = add(&w, "completed", START, "child", of);
    assert_ok(journal_plan_by_id(w.journal, plan, &p, &err), err);
    w.open = inside[4];
    assert_int_equal(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), BT_BUSY);
    w.open = (struct uuid){{0}};
    assert_ok(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), err);
    commit(w.journal);
    for (int i = 0; i < 5; i++) {
        assert_false(has(&w, inside[i]));
        assert_true(has(&w, others[i]));
    }
    assert_false(has(&w, plan));
    assert_true(has(&w, other) && has(&w, lonely));
    close_world(&w);
}

static void a_plan_that_has_not_ended_is_not_deleted(void **state)
{
    const struct retention_options opt = {0};
    const struct uuid none = {{0}};
    struct journal_plan p;
    struct bt_error err;
    struct world w;
    uint32_t jobs;

    (void)state;
    open_world(&w, &opt);
    w.open = none;
    assert_ok(journal_plan_by_id(w.journal, add(&w, "running", 0, "", ""), &p, &err), err);
    assert_int_equal(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), BT_CONFLICT);
    assert_string_equal(err.msg, "the plan has not ended; cancel it first");
    assert_int_equal(w.deleted, 0);
    close_world(&w);
}

static void many_plans_inside_one_go_in_several_slices_and_it_goes_last(void **state)
{
    const struct retention_options opt = {0};
    char of[UUID_TEXT_LEN + 1];
    struct journal_plan p;
    struct uuid plan;
    struct world w;
    struct bt_error err;
    uint32_t jobs;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "completed", START, "", "");
    uuid_format(plan, of);
    for (int i = 0; i < 1001; i++) { /* one more than a call deletes */
        (void)add(&w, "completed", START, "child", of);
    }
    assert_ok(journal_plan_by_id(w.journal, plan, &p, &err), err);
    assert_int_equal(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), BT_BUSY);
    assert_true(retention_is_under_way(w.retention, p.ix));
    assert_true(jobs >= 1000 && jobs < 1001 + 16);
    commit(w.journal);
    assert_true(has(&w, plan));
    assert_ok(journal_plan_by_id(w.journal, plan, &p, &err), err);
    assert_ok(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), err);
    assert_false(retention_is_under_way(w.retention, p.ix));
    assert_int_equal(jobs, 1001);
    commit(w.journal);
    assert_false(has(&w, plan));
    assert_int_equal(w.deleted, 1002);
    close_world(&w);
}

static void the_size_takes_no_plan_from_within_another(void **state)
{
    const struct retention_options opt = {.max_bytes = 55};
    char of[UUID_TEXT_LEN + 1];
    struct uuid plan;
    struct uuid inside;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "running", 0, "", ""); /* has not ended */
    uuid_format(plan, of);
    inside = add(&w, "completed", START, "child", of);
    for (int i = 0; i < 5; i++) {
        (void)add(&w, "completed", START + 1, "", "");
    }
    run_at(&w, START + 20000);
    assert_true(has(&w, inside) && has(&w, plan));
    assert_true(w.deleted >= 1);
    close_world(&w);
}

static void the_oldest_plans_go_when_the_journal_is_too_big(void **state)
{
    struct retention_options opt = {.max_bytes = 100};
    struct uuid ids[11];
    struct world w;

    (void)state;
    open_world(&w, &opt);
    for (int i = 0; i < 10; i++) { /* 10 bytes each: 100 are allowed */
        ids[i] = add(&w, "completed", START + 100 - (msec)i, "", "");
    }
    run_at(&w, START + 1000);
    assert_int_equal(w.deleted, 0);
    ids[10] = add(&w, "completed", START + 500, "", "");
    run_at(&w, START + 20000);
    assert_true(w.deleted >= 1 && w.deleted <= 4);
    assert_false(has(&w, ids[9])); /* it ended first */
    assert_true(has(&w, ids[10]) && has(&w, ids[0]));
    close_world(&w);
}

static void sessions_go_at_their_age_and_not_before(void **state)
{
    const struct retention_options opt = {.sessions_ms = 500};
    struct journal_message m = {.role = STR_LIT("user"), .text = STR_LIT("hi"), .wall = START};
    struct journal_session s;
    struct world w;
    struct bt_error err;
    uint64_t n;

    (void)state;
    open_world(&w, &opt);
    assert_ok(journal_message_add(w.journal, STR_LIT("a"), &m, &n, &err), err);
    m.wall = START + 100;
    assert_ok(journal_message_add(w.journal, STR_LIT("b"), &m, &n, &err), err);
    commit(w.journal);
    run_at(&w, START + 499);
    assert_ok(journal_session(w.journal, STR_LIT("a"), &s, &err), err);
    run_at(&w, START + 499 + 500);
    assert_int_equal(journal_session(w.journal, STR_LIT("a"), &s, &err), BT_NOT_FOUND);
    assert_int_equal(journal_session(w.journal, STR_LIT("b"), &s, &err), BT_NOT_FOUND);
    close_world(&w);

    open_world(&w, &opt);
    m.wall = START;
    assert_ok(journal_message_add(w.journal, STR_LIT("a"), &m, &n, &err), err);
    commit(w.journal);
    run_at(&w, START + 500); /* exactly */
    assert_int_equal(journal_session(w.journal, STR_LIT("a"), &s, &err), BT_NOT_FOUND);
    close_world(&w);
}

static void events_of_no_plan_go_at_their_age_and_not_before(void **state)
{
    const struct retention_options opt = {.events_ms = 1000};
    struct seen s = {{0}};
    struct world w;
    struct bt_error err;

    (void)state;
    open_world(&w, &opt);
    (void)add_event(w.journal, 0, 0, "old"); /* at 1234 */
    (void)add_event(w.journal, 7, 1, "of a plan");
    (void)add_event(w.journal, 0, 0, "newest");
    commit(w.journal);
    run_at(&w, 2233);
    assert_ok(journal_events(w.journal, 1, 0, 9, see_row, &s, &err), err);
    assert_int_equal(s.n, 3);
    run_at(&w, 2234 + 3600 * 1000);
    memset(&s, 0, sizeof s);
    assert_ok(journal_events(w.journal, 1, 0, 9, see_row, &s, &err), err);
    assert_string_equal(s.text, "2:of a plan 3:newest ");
    close_world(&w);
}

static bool has_tombstone(struct world *w, struct uuid id)
{
    struct journal_gone g;
    struct bt_error err;
    return journal_gone_by_id(w->journal, id, &g, &err) == BT_OK;
}

static void what_is_left_of_a_deleted_plan_goes_at_its_age_and_not_before(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000, .gone_ms = 7000};
    struct world w;
    struct uuid first;
    struct uuid second;

    (void)state;
    open_world(&w, &opt);
    first = add(&w, "completed", START, "", "");
    second = add(&w, "completed", START + 1, "", "");
    run_at(&w, START + 1000);
    run_at(&w, START + 1001);
    assert_int_equal(w.deleted, 2);
    run_at(&w, START + 7999);
    assert_true(has_tombstone(&w, first) && has_tombstone(&w, second));
    run_at(&w, START + 8000 + 1000); /* passes are a second apart */
    assert_false(has_tombstone(&w, first) || has_tombstone(&w, second));
    close_world(&w);
}

static void exactly_at_its_age_a_tombstone_goes(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000, .gone_ms = 3000};
    struct world w;
    struct uuid id;

    (void)state;
    open_world(&w, &opt);
    id = add(&w, "completed", START, "", "");
    run_at(&w, START + 1000);
    run_at(&w, START + 2999);
    run_at(&w, START + 3999);
    assert_true(has_tombstone(&w, id));
    retention_free(w.retention); /* the pass of a start */
    assert_int_equal(retention_new(&opt,
                                   &(struct retention_hooks){&w, is_open, is_read, on_deleted},
                                   w.journal, &w.retention, NULL),
                     BT_OK);
    run_at(&w, START + 4000);
    assert_false(has_tombstone(&w, id));
    close_world(&w);
}

static void without_an_age_tombstones_stay(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000};
    struct world w;
    struct uuid id;

    (void)state;
    open_world(&w, &opt);
    id = add(&w, "completed", START, "", "");
    run_at(&w, START + 1000);
    run_at(&w, START + 1000 * RETENTION_GONE_MS);
    assert_true(has_tombstone(&w, id));
    close_world(&w);
}

static void tombstones_stay_as_long_as_plans_and_a_month_at_least(void **state)
{
    (void)state;
    assert_int_equal(retention_gone_age(0, 0), 0);
    assert_int_equal(retention_gone_age(1, 0), RETENTION_GONE_MS);
    assert_int_equal(retention_gone_age(0, RETENTION_GONE_MS), RETENTION_GONE_MS);
    assert_int_equal(retention_gone_age(RETENTION_GONE_MS + 1, 5), RETENTION_GONE_MS + 1);
    assert_int_equal(retention_gone_age(5, RETENTION_GONE_MS + 1), RETENTION_GONE_MS + 1);
}

/* Its plan began in the millisecond in which it ended. */
static void a_job_that_ended_as_its_plan_began_goes_with_it(void **state)
{
    const struct retention_options opt = {.completed_ms = 5000};
    char of[UUID_TEXT_LEN + 1];
    struct uuid jobs[3];
    struct uuid plan;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "completed", START, "", ""); /* it began 5 ms before */
    uuid_format(plan, of);
    jobs[0] = add(&w, "completed", START - 5, "planning", of);
    jobs[1] = add(&w, "completed", START + 60000, "planning", of); /* the last that is looked for */
    jobs[2] = add(&w, "completed", START + 60001, "planning", of);
    run_at(&w, START + 5000);
    assert_false(has(&w, plan) || has(&w, jobs[0]) || has(&w, jobs[1]));
    assert_true(has(&w, jobs[2]));
    close_world(&w);
}

static void a_plan_that_cannot_go_yet_keeps_no_other_one(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000};
    char of[UUID_TEXT_LEN + 1];
    struct uuid plan;
    struct uuid inside;
    struct uuid other;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "completed", START, "", "");
    uuid_format(plan, of);
    inside = add(&w, "completed", START, "child", of);
    other = add(&w, "completed", START, "", "");
    w.open = inside;
    run_at(&w, START + 1000);
    assert_true(has(&w, plan) && has(&w, inside));
    assert_false(has(&w, other));
    w.open = (struct uuid){{0}};
    run_at(&w, START + 2000);
    assert_false(has(&w, plan) || has(&w, inside));
    close_world(&w);
}

static void a_plan_whose_files_are_read_is_looked_at_again_after_a_minute(void **state)
{
    const struct retention_options opt = {.completed_ms = 100000};
    struct journal_plan p;
    struct bt_error err;
    struct world w;
    uint32_t jobs;

    (void)state;
    open_world(&w, &opt);
    w.read_of = add(&w, "completed", START, "", "");
    run_at(&w, START + 100000);
    assert_true(has(&w, w.read_of));
    assert_ok(journal_plan_by_id(w.journal, w.read_of, &p, &err), err);
    assert_int_equal(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), BT_BUSY);
    w.read_of = (struct uuid){{0}};
    run_at(&w, START + 159999);
    assert_int_equal(w.deleted, 0);
    assert_int_equal(retention_deadline(w.retention), START + 160000);
    run_at(&w, START + 160000);
    assert_int_equal(w.deleted, 1);
    close_world(&w);
}

static struct journal_ops odd; /* those of the memory journal, but for one */

static enum bt_code commit_refused(struct journal *j, struct bt_error *err)
{
    (void)j;
    return err_set(err, BT_UNAVAILABLE, "the disk is full");
}

/* What was deleted by hand is swept although nothing is kept for a time only. */
static void what_a_full_disk_refuses_is_tried_again_after_ten_seconds(void **state)
{
    const struct retention_options opt = {0};
    const struct journal_ops *real;
    struct journal_plan p;
    struct bt_error err;
    struct world w;
    uint32_t jobs;
    int i;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, START);
    assert_ok(journal_plan_by_id(w.journal, add(&w, "completed", START, "", ""), &p, &err), err);
    assert_ok(retention_delete(w.retention, &p, STR_LIT("x"), START, &jobs, &err), err);
    real = w.journal->ops;
    odd = *real;
    odd.commit = commit_refused;
    w.journal->ops = &odd;
    for (i = 0; i < 100 && retention_deadline(w.retention) <= START; i++) {
        assert_ok(retention_cycle(w.retention, START, START, &err), err);
    }
    assert_int_equal(retention_deadline(w.retention), START + 10000);
    w.journal->ops = real;
    w.journal->storage_full = true; /* what room is left is for decisions */
    assert_ok(retention_cycle(w.retention, START + 10000, START + 10000, &err), err);
    assert_int_equal(retention_deadline(w.retention), START + 20000);
    w.journal->storage_full = false;
    run_at(&w, START + 20000);
    assert_true(retention_deadline(w.retention) == MSEC_NEVER);
    retention_wake(w.retention);
    assert_int_equal(retention_deadline(w.retention), 0);
    close_world(&w);
}

/* A pass takes as many cycles as it needs, and time goes on meanwhile. */
static void a_plan_that_comes_of_age_during_a_pass_goes_right_after_it(void **state)
{
    const struct retention_options opt = {.completed_ms = 100000};
    struct world w;
    struct bt_error err;
    struct uuid id;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, START);
    id = add(&w, "completed", START, "", "");
    run_at(&w, START + 50000);
    while (retention_deadline(w.retention) > START + 99999) {
        retention_wake(w.retention);
    }
    for (int i = 0; i < 2; i++) { /* the sweep, and the look at ages */
        assert_ok(retention_cycle(w.retention, START + 99999, START + 99999, &err), err);
    }
    assert_true(has(&w, id));
    for (int i = 0; retention_deadline(w.retention) <= START + 100005; i++) {
        assert_true(i < 100);
        assert_ok(retention_cycle(w.retention, START + 100005, START + 100005, &err), err);
    }
    assert_int_equal(retention_deadline(w.retention), START + 100006);
    run_at(&w, START + 100006);
    assert_false(has(&w, id));
    close_world(&w);
}

/* None of them can go, and there is no end of the list but its end. */
static void many_plans_that_cannot_go_are_looked_at_once(void **state)
{
    const struct retention_options opt = {.max_bytes = 55};
    char of[UUID_TEXT_LEN + 1];
    struct uuid plan;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "running", 0, "", "");
    uuid_format(plan, of);
    for (int i = 0; i < 40; i++) {
        (void)add(&w, "completed", START, "child", of);
    }
    run_at(&w, START + 20000);
    assert_int_equal(w.deleted, 0);
    close_world(&w);
}

static const struct journal_ops *real_ops;
static uint32_t deletes_left;

static enum bt_code delete_or_fail(struct journal *j, uint64_t ix, struct str why, msec wall,
                                   struct bt_error *err)
{
    return deletes_left-- > 0 ? real_ops->plan_delete(j, ix, why, wall, err)
                              : err_set(err, BT_IO, "the disk does not answer");
}

static void half_a_slice_is_not_committed(void **state)
{
    const struct retention_options opt = {.completed_ms = 10};
    enum bt_code code = BT_OK;
    struct world w;
    struct bt_error err;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, START);
    (void)add(&w, "completed", START, "", "");
    (void)add(&w, "completed", START, "", "");
    real_ops = w.journal->ops;
    odd = *real_ops;
    odd.plan_delete = delete_or_fail;
    w.journal->ops = &odd;
    deletes_left = 1;
    for (int i = 0; i < 10 && code == BT_OK; i++) {
        code = retention_cycle(w.retention, START + 10, START + 10, &err);
    }
    assert_int_equal(code, BT_IO);
    assert_int_equal(w.deleted, 1);
    assert_true(journal_dirty(w.journal));
    close_world(&w);
}

static void a_failing_commit_stops_the_daemon(void **state)
{
    const struct retention_options opt = {.completed_ms = 10};
    struct world w;
    struct bt_error err;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, START);
    (void)add(&w, "completed", START, "", "");
    memory_journal_fail(w.journal, 1, false);
    for (int i = 0; i < 10; i++) {
        if (retention_cycle(w.retention, START + 4000000, START + 4000000, &err) != BT_OK) {
            assert_int_equal(err.code, BT_IO);
            close_world(&w);
            return;
        }
    }
    fail_msg("no failure");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_goes_by_default),
        cmocka_unit_test(plans_go_at_their_age_and_not_before),
        cmocka_unit_test(one_age_alone_keeps_the_others_for_ever),
        cmocka_unit_test(many_plans_go_in_slices),
        cmocka_unit_test(a_plan_whose_attempts_are_not_over_stays),
        cmocka_unit_test(jobs_go_with_their_plan_and_alone_without_one),
        cmocka_unit_test(plans_inside_a_plan_live_as_long_as_it_and_no_longer),
        cmocka_unit_test(a_plan_that_is_deleted_takes_all_inside_it_along),
        cmocka_unit_test(a_plan_that_has_not_ended_is_not_deleted),
        cmocka_unit_test(many_plans_inside_one_go_in_several_slices_and_it_goes_last),
        cmocka_unit_test(the_size_takes_no_plan_from_within_another),
        cmocka_unit_test(the_oldest_plans_go_when_the_journal_is_too_big),
        cmocka_unit_test(sessions_go_at_their_age_and_not_before),
        cmocka_unit_test(events_of_no_plan_go_at_their_age_and_not_before),
        cmocka_unit_test(what_is_left_of_a_deleted_plan_goes_at_its_age_and_not_before),
        cmocka_unit_test(exactly_at_its_age_a_tombstone_goes),
        cmocka_unit_test(without_an_age_tombstones_stay),
        cmocka_unit_test(tombstones_stay_as_long_as_plans_and_a_month_at_least),
        cmocka_unit_test(a_job_that_ended_as_its_plan_began_goes_with_it),
        cmocka_unit_test(a_plan_that_cannot_go_yet_keeps_no_other_one),
        cmocka_unit_test(a_plan_whose_files_are_read_is_looked_at_again_after_a_minute),
        cmocka_unit_test(what_a_full_disk_refuses_is_tried_again_after_ten_seconds),
        cmocka_unit_test(a_plan_that_comes_of_age_during_a_pass_goes_right_after_it),
        cmocka_unit_test(many_plans_that_cannot_go_are_looked_at_once),
        cmocka_unit_test(half_a_slice_is_not_committed),
        cmocka_unit_test(a_failing_commit_stops_the_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
