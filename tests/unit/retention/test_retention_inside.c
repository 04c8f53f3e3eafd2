/* Plans inside plans and the size, slice by slice; and what the log has of them. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/retention/rig.h"

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
