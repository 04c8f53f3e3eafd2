/* Each slice alone: what it asks of the journal, in which order, and what it does with the answer.
 * The journal is one in memory whose deletions are told, and some of whose answers are set. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/wire/doc.h"
#include "supervisor/journal/port.h"
#include "supervisor/retention/retention.h"
#include "tests/unit/journal/journal_fixture.h"

enum { START = 1000000, HOUR = 3600 * 1000 };

/* The calls since the last look, and the answers of the journal. */
static struct {
    char text[4000];
    size_t len;
    uint64_t imports[4];
    uint32_t imports_n;
    bool counts; /* rows and tombstones are those below, not the journal's */
    uint32_t rows, gone;
    uint64_t last_blob, blobs_at; /* where a look at blobs ends; 0 = at its end */
    bool sized;
    uint64_t used; /* sized */
    enum bt_code by_id, deletes, commits;
    bool deletes_nothing;
    bool looks_inside; /* tell where plans inside another one are looked for, too */
} said;

static const struct journal_ops *real;
static struct journal_ops odd;

static void tell(const char *what, uint64_t a, uint64_t b)
{
    const int n = snprintf(said.text + said.len, sizeof said.text - said.len, "%s(%llu,%llu) ",
                           what, (unsigned long long)a, (unsigned long long)b);
    said.len += n > 0 && said.len + (size_t)n < sizeof said.text ? (size_t)n : 0;
}

static enum bt_code imports(struct journal *j, uint64_t *ret, uint32_t max, uint32_t *ret_n,
                            struct bt_error *err)
{
    (void)j;
    (void)err;
    tell("imports", max, 0);
    memcpy(ret, said.imports, said.imports_n * sizeof *ret);
    *ret_n = said.imports_n;
    return BT_OK;
}

static enum bt_code plan_delete(struct journal *j, uint64_t ix, struct str why, msec wall,
                                struct bt_error *err)
{
    tell("delete", ix, wall);
    if (said.deletes != BT_OK) {
        return err_set(err, said.deletes, "the disk does not answer");
    }
    return said.deletes_nothing ? BT_OK : real->plan_delete(j, ix, why, wall, err);
}

static enum bt_code plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err)
{
    if (said.by_id != BT_OK) {
        return err_set(err, said.by_id, "the disk does not answer");
    }
    return real->plan_by_id(j, id, ret, err);
}

static enum bt_code plans_ended(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                                journal_plan_fn fn, void *self, struct bt_error *err)
{
    if (limit == 16 || said.looks_inside) {
        tell(limit == 16 ? "ended" : "inside", after, limit == 16 ? limit : after_ix);
    }
    return real->plans_ended(j, after, after_ix, limit, fn, self, err);
}

static enum bt_code sweep(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err)
{
    tell("sweep", budget, 0);
    return real->sweep(j, budget, ret_more, err);
}

static enum bt_code sessions_idle(struct journal *j, msec before, uint32_t limit,
                                  journal_session_fn fn, void *self, struct bt_error *err)
{
    tell("idle", before, limit);
    return real->sessions_idle(j, before, limit, fn, self, err);
}

static enum bt_code rows_delete(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err)
{
    tell("rows", before, limit);
    if (!said.counts) {
        return real->rows_delete(j, before, limit, ret_n, err);
    }
    *ret_n = said.rows;
    said.rows = 0;
    return BT_OK;
}

static enum bt_code agents_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    (void)j;
    (void)err;
    tell("agents", before, 0);
    return BT_OK;
}

static enum bt_code gone_expire(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err)
{
    tell("gone", before, limit);
    if (!said.counts) {
        return real->gone_expire(j, before, limit, ret_n, err);
    }
    *ret_n = said.gone;
    said.gone = 0;
    return BT_OK;
}

static enum bt_code blobs_unused(struct journal *j, uint64_t *io_after, uint64_t last,
                                 uint32_t limit, struct bt_error *err)
{
    (void)j;
    (void)err;
    assert_int_equal(limit, 200);
    tell("blobs", *io_after, last);
    *io_after = said.blobs_at > 0 ? said.blobs_at : last;
    said.blobs_at = 0;
    return BT_OK;
}

static uint64_t last_blob(const struct journal *j)
{
    (void)j;
    return said.last_blob;
}

static enum bt_code size(struct journal *j, struct journal_size *ret, struct bt_error *err)
{
    tell("size", said.sized ? said.used : 0, 0);
    if (!said.sized) {
        return real->size(j, ret, err);
    }
    *ret = (struct journal_size){.used = said.used};
    return BT_OK;
}

/* Refused: nothing of the batch has happened. */
static enum bt_code commit_told(struct journal *j, struct bt_error *err)
{
    const enum bt_code code = said.commits;

    if (code == BT_OK) {
        return real->commit(j, err);
    }
    said.commits = BT_OK;
    j->ops = real;
    memory_journal_restart(j);
    j->ops = &odd;
    return err_set(err, code, "the disk is full");
}

/* ---- the room ---- */

struct world {
    struct journal *journal;
    struct retention *retention;
    struct uuid open; /* still in memory; nil = none */
    uint32_t deleted;
    char log[2000];
    size_t log_len;
};

static bool is_open(void *self, struct uuid id)
{
    const struct world *w = self;
    return uuid_eq(w->open, id);
}

static void on_deleted(void *self, struct uuid id)
{
    struct world *w = self;
    (void)id;
    w->deleted++;
}

static void keep_log(enum log_level level, const char *event, const char *text, void *self)
{
    struct world *w = self;
    const int n = snprintf(w->log + w->log_len, sizeof w->log - w->log_len, "%s%s %s\n",
                           level == LOG_WARN ? "warn " : "", event, text);
    w->log_len += n > 0 && w->log_len + (size_t)n < sizeof w->log ? (size_t)n : 0;
}

static void new_retention(struct world *w, const struct retention_options *opt)
{
    const struct retention_hooks hooks = {w, is_open, NULL, on_deleted};
    struct bt_error err;

    assert_ok(retention_new(opt, &hooks, w->journal, &w->retention, &err), err);
}

static void open_world(struct world *w, const struct retention_options *opt)
{
    struct bt_error err;

    *w = (struct world){.deleted = 0};
    memset(&said, 0, sizeof said);
    assert_ok(memory_journal_open(&w->journal, &err), err);
    real = w->journal->ops;
    odd = *real;
    odd.imports = imports;
    odd.plan_delete = plan_delete;
    odd.plan_by_id = plan_by_id;
    odd.plans_ended = plans_ended;
    odd.sweep = sweep;
    odd.sessions_idle = sessions_idle;
    odd.rows_delete = rows_delete;
    odd.agents_drop = agents_drop;
    odd.gone_expire = gone_expire;
    odd.blobs_unused = blobs_unused;
    odd.last_blob = last_blob;
    odd.size = size;
    odd.commit = commit_told;
    w->journal->ops = &odd;
    log_setup(LOG_INFO, keep_log, w);
    new_retention(w, opt);
}

static void close_world(struct world *w)
{
    log_setup(LOG_INFO, NULL, NULL);
    retention_free(w->retention);
    journal_close(w->journal);
}

/* One cycle, and what it asked of the journal. */
static void expect_cycle(struct world *w, msec now, const char *calls)
{
    struct bt_error err;

    said.len = 0;
    said.text[0] = 0;
    assert_true(retention_deadline(w->retention) <= now);
    assert_ok(retention_cycle(w->retention, now, now, &err), err);
    assert_string_equal(said.text, calls);
}

/* All that is due. */
static void run_at(struct world *w, msec now)
{
    struct bt_error err;

    for (int i = 0; retention_deadline(w->retention) <= now; i++) {
        assert_true(i < 10000);
        said.len = 0;
        assert_ok(retention_cycle(w->retention, now, now, &err), err);
    }
}

static struct uuid add_at(struct world *w, const char *status, msec created, msec ended,
                          const struct uuid *of)
{
    char text[UUID_TEXT_LEN + 1] = "";
    struct journal_plan p = {.plan_id = uuid_new(),
                             .goal = STR_LIT("goal"),
                             .created_wall = created,
                             .status = STR_LIT("running"),
                             .job = str_from(of != NULL ? "child" : "")};
    struct bt_error err;
    struct buf doc;
    uint64_t ix;

    if (of != NULL) {
        uuid_format(*of, text);
    }
    buf_init(&doc, 1000);
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, "child");
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, "of");
    doc_put_cstr(&doc, text);
    p.doc = doc.at;
    p.doc_len = doc.len;
    assert_ok(journal_plan_add(w->journal, &p, &ix, &err), err);
    (void)add_event(w->journal, ix, 1, "0123456789");
    assert_ok(journal_plan_status(w->journal, ix, str_from(status), ended, &err), err);
    commit(w->journal);
    buf_done(&doc);
    return p.plan_id;
}

static struct uuid add(struct world *w, const char *status, msec ended)
{
    return add_at(w, status, ended - 5, ended, NULL);
}

static struct journal_plan head_of(struct world *w, struct uuid id)
{
    struct journal_plan p;
    struct bt_error err;

    assert_ok(real->plan_by_id(w->journal, id, &p, &err), err);
    return p;
}

static bool has(struct world *w, struct uuid id)
{
    struct journal_plan p;
    struct bt_error err;
    return real->plan_by_id(w->journal, id, &p, &err) == BT_OK;
}

/* ---- the start ---- */

static void a_start_drops_what_was_not_imported_and_sweeps_also_when_all_is_kept(void **state)
{
    const struct retention_options opt = {0};
    struct world w;

    (void)state;
    open_world(&w, &opt);
    said.imports[0] = 5;
    said.imports[1] = 6;
    said.imports_n = 2;
    said.deletes_nothing = true;
    assert_int_equal(retention_deadline(w.retention), 0);
    expect_cycle(&w, START, "imports(16,0) delete(5,1000000) delete(6,1000000) ");
    expect_cycle(&w, START, "sweep(300,0) ");
    assert_true(retention_deadline(w.retention) == MSEC_NEVER);
    assert_int_equal(w.deleted, 0); /* it was no plan of this daemon */
    close_world(&w);
}

static void an_import_that_cannot_be_dropped_is_dropped_before_all_else(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000};
    struct world w;
    struct bt_error err;

    (void)state;
    open_world(&w, &opt);
    said.imports[0] = 5;
    said.imports_n = 1;
    said.deletes = BT_UNAVAILABLE;
    expect_cycle(&w, START, "imports(16,0) delete(5,1000000) ");
    assert_int_equal(retention_deadline(w.retention), START + 10000);
    said.deletes = BT_OK;
    said.deletes_nothing = true;
    expect_cycle(&w, START + 10000, "imports(16,0) delete(5,1010000) ");
    expect_cycle(&w, START + 10000, "sweep(300,0) ");
    said.deletes = BT_IO; /* any other failure is the daemon's end */
    retention_free(w.retention);
    new_retention(&w, &opt);
    assert_int_equal(retention_cycle(w.retention, START, START, &err), BT_IO);
    close_world(&w);
}

/* ---- a pass ---- */

static void a_pass_looks_at_what_has_an_age_and_at_nothing_else(void **state)
{
    static const struct {
        struct retention_options opt;
        msec now;
        const char *calls[7];
    } rows[] = {
        {{.completed_ms = 1}, START, {"ended(0,16) ", "", "", "", "", ""}},
        {{.failed_ms = 7}, START, {"ended(0,16) ", "", "", "", "", ""}},
        {{.sessions_ms = 500}, START, {"", "idle(999501,8) ", "", "", "", ""}},
        {{.sessions_ms = 500}, 500, {"", "idle(1,8) ", "", "", "", ""}},
        {{.sessions_ms = 500}, 499, {"", "", "", "", "", ""}},
        {{.events_ms = 500}, START, {"", "", "rows(999501,200) agents(999501,0) ", "", "", ""}},
        {{.events_ms = 500}, 500, {"", "", "rows(1,200) agents(1,0) ", "", "", ""}},
        {{.events_ms = 500}, 499, {"", "", "", "", "", ""}},
        {{.completed_ms = 1, .gone_ms = 500},
         START,
         {"ended(0,16) ", "", "", "gone(999501,200) ", "", ""}},
        {{.completed_ms = 1, .gone_ms = 500},
         500,
         {"ended(0,16) ", "", "", "gone(1,200) ", "", ""}},
        {{.completed_ms = 1, .gone_ms = 500}, 499, {"ended(0,16) ", "", "", "", "", ""}},
        {{.max_bytes = 10}, START, {"", "", "", "", "", "size(0,0) "}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w;
        open_world(&w, &rows[i].opt);
        expect_cycle(&w, rows[i].now, "imports(16,0) ");
        expect_cycle(&w, rows[i].now, "sweep(300,0) ");
        for (int k = 0; k < 6; k++) {
            expect_cycle(&w, rows[i].now, rows[i].calls[k]);
        }
        assert_true(retention_deadline(w.retention) > rows[i].now);
        close_world(&w);
    }
}

static void a_slice_that_was_full_is_followed_by_another_one(void **state)
{
    const struct retention_options opt = {.events_ms = 500, .gone_ms = 500};
    struct world w;

    (void)state;
    open_world(&w, &opt);
    said.counts = true;
    said.rows = said.gone = 200;
    expect_cycle(&w, START, "imports(16,0) ");
    expect_cycle(&w, START, "sweep(300,0) ");
    expect_cycle(&w, START, ""); /* plans */
    expect_cycle(&w, START, ""); /* sessions */
    expect_cycle(&w, START, "rows(999501,200) ");
    said.rows = 199;
    expect_cycle(&w, START, "rows(999501,200) agents(999501,0) ");
    expect_cycle(&w, START, "gone(999501,200) ");
    said.gone = 199;
    expect_cycle(&w, START, "gone(999501,200) ");
    expect_cycle(&w, START, ""); /* blobs */
    expect_cycle(&w, START, ""); /* bytes */
    assert_int_equal(retention_deadline(w.retention), START + HOUR);
    close_world(&w);
}

/* A result may come some time before the row that names it. */
static void a_result_that_no_row_names_is_looked_for_after_an_hour_and_once(void **state)
{
    const struct retention_options opt = {.completed_ms = HOUR / 4};
    struct world w;

    (void)state;
    open_world(&w, &opt);
    said.last_blob = 7;
    expect_cycle(&w, START, "imports(16,0) ");
    for (msec at = 0; at < HOUR; at += HOUR / 4) { /* 7 are there at START, and too young */
        run_at(&w, START + at);
        assert_int_equal(retention_deadline(w.retention), START + at + HOUR / 4);
        said.last_blob++;
    }
    expect_cycle(&w, START + HOUR, "ended(0,16) ");
    expect_cycle(&w, START + HOUR, "");
    expect_cycle(&w, START + HOUR, "");
    expect_cycle(&w, START + HOUR, "");
    said.blobs_at = 3;
    expect_cycle(&w, START + HOUR, "blobs(0,7) ");
    expect_cycle(&w, START + HOUR, "blobs(3,7) ");
    expect_cycle(&w, START + HOUR, "");
    for (msec at = HOUR + HOUR / 4; at < 2 * HOUR; at += HOUR / 4) {
        run_at(&w, START + at);
        assert_null(strstr(said.text, "blobs"));
    }
    for (int i = 0; i < 4; i++) {
        expect_cycle(&w, START + 2 * HOUR, i == 0 ? "ended(0,16) " : "");
    }
    expect_cycle(&w, START + 2 * HOUR, "blobs(7,11) "); /* those that were there an hour before */
    close_world(&w);
}

static void a_session_whose_message_waits_keeps_no_other_one(void **state)
{
    const struct retention_options opt = {.sessions_ms = 500};
    struct journal_message m = {.role = STR_LIT("user"), .text = STR_LIT("hi"), .wall = START};
    struct journal_turn t = {.turn_id = uuid_new(), .session_id = STR_LIT("waits")};
    struct journal_session s;
    struct world w;
    struct bt_error err;
    uint64_t n;

    (void)state;
    open_world(&w, &opt);
    assert_ok(journal_message_add(w.journal, STR_LIT("first"), &m, &n, &err), err);
    assert_ok(journal_message_add(w.journal, STR_LIT("waits"), &m, &n, &err), err);
    assert_ok(journal_message_add(w.journal, STR_LIT("last"), &m, &n, &err), err);
    assert_ok(journal_turn_put(w.journal, &t, &err), err);
    commit(w.journal);
    expect_cycle(&w, START + 500, "imports(16,0) ");
    expect_cycle(&w, START + 500, "sweep(300,0) ");
    expect_cycle(&w, START + 500, "");
    expect_cycle(&w, START + 500, "idle(1000001,8) ");
    assert_int_equal(journal_session(w.journal, STR_LIT("first"), &s, &err), BT_NOT_FOUND);
    assert_int_equal(journal_session(w.journal, STR_LIT("last"), &s, &err), BT_NOT_FOUND);
    assert_ok(journal_session(w.journal, STR_LIT("waits"), &s, &err), err);
    expect_cycle(&w, START + 500, "sweep(300,0) ");    /* of their messages */
    expect_cycle(&w, START + 500, "idle(1000001,8) "); /* there may be others */
    expect_cycle(&w, START + 500, "");                 /* there are none that can go: events */
    close_world(&w);
}

static void a_pass_begins_with_the_first_plan_whatever_the_one_before_came_to(void **state)
{
    const struct retention_options opt = {.failed_ms = 10, .max_bytes = 100};
    struct uuid later;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    said.sized = true;
    said.used = 101;
    w.open = add(&w, "failed", START);
    later = add(&w, "failed", START + 1);
    expect_cycle(&w, START + 5, "imports(16,0) ");
    expect_cycle(&w, START + 5, "sweep(300,0) ");
    for (int i = 0; i < 5; i++) {
        expect_cycle(&w, START + 5, i == 0 ? "ended(0,16) " : "");
    }
    expect_cycle(&w, START + 5, "size(101,0) ended(0,16) delete(2,1000005) ");
    assert_true(has(&w, w.open) && !has(&w, later));
    said.used = 100;
    run_at(&w, START + 5);
    said.sized = false;
    later = w.open;
    w.open = (struct uuid){{0}};
    run_at(&w, START + 10);
    assert_false(has(&w, later));
    close_world(&w);
}

static void what_a_full_disk_refused_is_looked_at_again(void **state)
{
    const struct retention_options opt = {.completed_ms = 10};
    struct uuid first;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, START);
    first = add(&w, "completed", START);
    for (int i = 0; i < 19; i++) { /* more than one slice */
        (void)add(&w, "completed", START);
    }
    said.commits = BT_UNAVAILABLE;
    run_at(&w, START + 10);
    assert_true(has(&w, first));
    assert_int_equal(retention_deadline(w.retention), START + 10 + 10000);
    run_at(&w, START + 10 + 10000);
    assert_false(has(&w, first));
    assert_int_equal(w.deleted, 16 + 20);
    close_world(&w);
}

static void without_a_plan_that_waits_for_its_age_the_next_pass_comes_an_age_later(void **state)
{
    const struct retention_options opt = {.completed_ms = 3000, .failed_ms = 2000};
    struct world w;

    (void)state;
    open_world(&w, &opt);
    (void)add(&w, "completed", START);
    run_at(&w, START);
    assert_int_equal(retention_deadline(w.retention), START + 2000);
    run_at(&w, START + 2000);
    assert_int_equal(retention_deadline(w.retention), START + 3000);
    run_at(&w, START + 3000);
    assert_int_equal(w.deleted, 1);
    assert_int_equal(retention_deadline(w.retention), START + 5000);
    close_world(&w);
}

/* ---- plans inside plans ---- */

static void a_job_whose_plan_is_gone_or_that_has_none_goes_by_its_own_age(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000};
    const struct uuid nobody = uuid_new();
    struct uuid child;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    child = add_at(&w, "completed", START, START, &nobody);
    said.by_id = BT_IO; /* what cannot be read now stays */
    run_at(&w, START + 1000);
    assert_true(has(&w, child));
    said.by_id = BT_OK;
    run_at(&w, START + 2000);
    assert_false(has(&w, child));
    close_world(&w);
}

static struct uuid add_with_many(struct world *w, const char *status, uint32_t n)
{
    const struct uuid plan = add(w, status, START);

    for (uint32_t i = 0; i < n; i++) {
        (void)add_at(w, "completed", START, START, &plan);
    }
    return plan;
}

static void a_plan_with_very_many_inside_goes_in_the_pass_in_which_it_comes_of_age(void **state)
{
    static const struct retention_options opts[] = {{.completed_ms = 1000}, {.max_bytes = 1}};
    struct uuid other;
    struct uuid plan;
    struct world w;

    (void)state;
    for (int i = 0; i < 2; i++) {
        open_world(&w, &opts[i]);
        plan = add_with_many(&w, "completed", 1001);
        other = add(&w, "completed", START + 1);
        run_at(&w, START + 1001);
        assert_false(has(&w, plan) || has(&w, other));
        assert_int_equal(w.deleted, 1003);
        close_world(&w);
    }
}

static void what_was_rolled_back_of_the_plans_inside_one_goes_all_the_same(void **state)
{
    const struct retention_options opt = {0};
    struct journal_plan p;
    struct uuid plan;
    struct world w;
    struct bt_error err;
    uint32_t jobs;
    enum bt_code code = BT_BUSY;

    (void)state;
    open_world(&w, &opt);
    for (int i = 0; i < 100; i++) {
        (void)add(&w, "completed", START - 4); /* of others, which come first */
    }
    (void)add(&w, "completed", START + 70000); /* and later than any inside it */
    plan = add_with_many(&w, "completed", 1001);
    p = head_of(&w, plan);
    said.len = 0;
    assert_int_equal(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), BT_BUSY);
    said.commits = BT_UNAVAILABLE;
    assert_int_equal(journal_commit(w.journal, &err), BT_UNAVAILABLE);
    for (int i = 0; code == BT_BUSY; i++) {
        assert_true(i < 4);
        p = head_of(&w, plan);
        said.len = 0;
        code = retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err);
        commit(w.journal);
    }
    assert_ok(code, err);
    said.len = 0;
    said.text[0] = 0;
    {
        struct seen s = {{0}};
        assert_ok(journal_plans_ended(w.journal, START - 3, 0, 10, see_plan, &s, &err), err);
        assert_int_equal(s.n, 1); /* the later one is left */
    }
    close_world(&w);
}

/* Plans of others that ended meanwhile, and more of them than one look takes. */
static void plans_inside_are_found_behind_many_others(void **state)
{
    const struct retention_options opt = {0};
    struct journal_plan p;
    struct uuid inside;
    struct uuid plan;
    struct world w;
    struct bt_error err;
    uint32_t jobs;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "completed", START);
    for (int i = 0; i < 100; i++) {
        (void)add(&w, "completed", START - 4);
    }
    inside = add_at(&w, "completed", START, START - 4, &plan);
    p = head_of(&w, plan);
    said.len = 0;
    said.looks_inside = true;
    assert_ok(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), err);
    assert_int_equal(jobs, 1);
    { /* from the end of the moment before it began; the first look takes 64 */
        static const char looks[] = "inside(999994,9223372036854775807) inside(999996,65) ";
        assert_int_equal(strncmp(said.text, looks, sizeof looks - 1), 0);
    }
    assert_false(has(&w, inside));
    close_world(&w);
}

static void the_first_plan_of_all_takes_along_what_is_inside_it(void **state)
{
    const struct retention_options opt = {0};
    struct journal_plan p;
    struct uuid inside;
    struct uuid plan;
    struct uuid other;
    struct uuid strange;
    struct world w;
    struct bt_error err;
    uint32_t jobs;

    (void)state;
    open_world(&w, &opt);
    plan = add_at(&w, "completed", 0, 5, NULL);
    inside = add_at(&w, "completed", 1, 1, &plan);
    other = add_at(&w, "completed", 0, 5, NULL);
    strange = add_at(&w, "completed", 1, 1, &other);
    other = add(&w, "completed", START);
    p = head_of(&w, other);
    assert_ok(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), err);
    p = head_of(&w, plan);
    assert_ok(retention_delete(w.retention, &p, STR_LIT("x"), 1, &jobs, &err), err);
    assert_int_equal(jobs, 1);
    assert_false(has(&w, inside) || has(&w, plan));
    assert_true(has(&w, strange));
    close_world(&w);
}

static void a_plan_that_is_in_no_other_one_is_not_read_before_it_goes(void **state)
{
    const struct retention_options opt = {.completed_ms = 1000};
    struct uuid plain;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    plain = add(&w, "completed", START);
    said.by_id = BT_IO;
    run_at(&w, START + 1000);
    assert_false(has(&w, plain));
    close_world(&w);
}

/* ---- the size ---- */

static void four_plans_go_before_the_size_is_looked_at_again(void **state)
{
    const struct retention_options opt = {.max_bytes = 100};
    struct world w;

    (void)state;
    open_world(&w, &opt);
    for (int i = 0; i < 6; i++) {
        (void)add(&w, "completed", START);
    }
    said.sized = true;
    said.used = 101;
    expect_cycle(&w, START, "imports(16,0) ");
    expect_cycle(&w, START, "sweep(300,0) ");
    for (int i = 0; i < 5; i++) {
        expect_cycle(&w, START, "");
    }
    expect_cycle(&w, START,
                 "size(101,0) ended(0,16) delete(1,1000000) delete(2,1000000) delete(3,1000000) "
                 "delete(4,1000000) ");
    expect_cycle(&w, START, "sweep(300,0) ");
    expect_cycle(&w, START, "size(101,0) ended(1000000,16) delete(5,1000000) delete(6,1000000) ");
    close_world(&w);
}

static void the_oldest_go_for_the_size_although_their_age_was_looked_at(void **state)
{
    const struct retention_options opt = {.failed_ms = 10, .max_bytes = 10};
    struct uuid oldest;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    oldest = add(&w, "completed", START); /* it has no age of its own */
    (void)add(&w, "completed", START + 1);
    run_at(&w, START + 100);
    assert_false(has(&w, oldest));
    close_world(&w);
}

static void for_the_size_a_plan_that_cannot_go_yet_keeps_no_other_one(void **state)
{
    const struct retention_options opt = {.max_bytes = 1};
    struct uuid plan;
    struct uuid other;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    plan = add(&w, "completed", START);
    w.open = add_at(&w, "completed", START, START, &plan);
    other = add(&w, "completed", START + 1);
    run_at(&w, START + 2);
    assert_true(has(&w, plan) && has(&w, w.open));
    assert_false(has(&w, other));
    close_world(&w);
}

static void a_deletion_that_fails_stops_the_daemon_for_the_size_too(void **state)
{
    const struct retention_options opt = {.max_bytes = 1};
    enum bt_code code = BT_OK;
    struct world w;
    struct bt_error err;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, 0);
    (void)add(&w, "completed", START);
    said.deletes = BT_IO;
    for (int i = 0; i < 10 && code == BT_OK; i++) {
        said.len = 0;
        code = retention_cycle(w.retention, START, START, &err);
    }
    assert_int_equal(code, BT_IO);
    close_world(&w);
}

/* ---- what the log says ---- */

static void the_log_names_each_plan_that_goes_and_why(void **state)
{
    const struct retention_options opt = {.completed_ms = 10};
    char line[200];
    char id[UUID_TEXT_LEN + 1];
    struct world w;

    (void)state;
    open_world(&w, &opt);
    uuid_format(add(&w, "completed", START), id);
    run_at(&w, START + 10);
    (void)snprintf(line, sizeof line, "plan.deleted plan=%s reason=\"retention.completedMs\"\n",
                   id);
    assert_string_equal(w.log, line);
    close_world(&w);
}

static void a_size_that_cannot_be_reached_is_told_once_until_it_was_reached(void **state)
{
    static const char line[] = "warn retention.too_big used=11 and no ended plan is left\n";
    const struct retention_options opt = {.max_bytes = 10};
    char twice[200];
    struct world w;

    (void)state;
    open_world(&w, &opt);
    said.sized = true;
    said.used = 11;
    run_at(&w, START);
    run_at(&w, START + 10000);
    assert_string_equal(w.log, line);
    said.used = 10;
    run_at(&w, START + 20000);
    said.used = 11;
    run_at(&w, START + 30000);
    (void)snprintf(twice, sizeof twice, "%s%s", line, line);
    assert_string_equal(w.log, twice);
    close_world(&w);
}

static void plans_that_go_for_the_size_are_no_reason_to_warn(void **state)
{
    const struct retention_options opt = {.max_bytes = 15};
    struct world w;

    (void)state;
    open_world(&w, &opt);
    (void)add(&w, "completed", START);
    (void)add(&w, "completed", START);
    run_at(&w, START);
    assert_true(w.deleted > 0);
    assert_null(strstr(w.log, "too_big"));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_drops_what_was_not_imported_and_sweeps_also_when_all_is_kept),
        cmocka_unit_test(an_import_that_cannot_be_dropped_is_dropped_before_all_else),
        cmocka_unit_test(a_pass_looks_at_what_has_an_age_and_at_nothing_else),
        cmocka_unit_test(a_slice_that_was_full_is_followed_by_another_one),
        cmocka_unit_test(a_result_that_no_row_names_is_looked_for_after_an_hour_and_once),
        cmocka_unit_test(a_session_whose_message_waits_keeps_no_other_one),
        cmocka_unit_test(a_pass_begins_with_the_first_plan_whatever_the_one_before_came_to),
        cmocka_unit_test(what_a_full_disk_refused_is_looked_at_again),
        cmocka_unit_test(without_a_plan_that_waits_for_its_age_the_next_pass_comes_an_age_later),
        cmocka_unit_test(a_job_whose_plan_is_gone_or_that_has_none_goes_by_its_own_age),
        cmocka_unit_test(a_plan_with_very_many_inside_goes_in_the_pass_in_which_it_comes_of_age),
        cmocka_unit_test(what_was_rolled_back_of_the_plans_inside_one_goes_all_the_same),
        cmocka_unit_test(plans_inside_are_found_behind_many_others),
        cmocka_unit_test(the_first_plan_of_all_takes_along_what_is_inside_it),
        cmocka_unit_test(a_plan_that_is_in_no_other_one_is_not_read_before_it_goes),
        cmocka_unit_test(four_plans_go_before_the_size_is_looked_at_again),
        cmocka_unit_test(the_oldest_go_for_the_size_although_their_age_was_looked_at),
        cmocka_unit_test(for_the_size_a_plan_that_cannot_go_yet_keeps_no_other_one),
        cmocka_unit_test(a_deletion_that_fails_stops_the_daemon_for_the_size_too),
        cmocka_unit_test(the_log_names_each_plan_that_goes_and_why),
        cmocka_unit_test(a_size_that_cannot_be_reached_is_told_once_until_it_was_reached),
        cmocka_unit_test(plans_that_go_for_the_size_are_no_reason_to_warn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
