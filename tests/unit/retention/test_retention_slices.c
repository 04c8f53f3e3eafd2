/* Each slice of a pass alone: what it asks of the journal, in which order, and what it does with
 * the answer. */
#include <string.h>

#include "tests/unit/retention/rig.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
