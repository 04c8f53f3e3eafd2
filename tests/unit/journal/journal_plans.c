/* The port's contract for plans, tested on both implementations. */
#include "tests/unit/journal/journal_fixture.h"

#include <stdio.h>

#include <string.h>

static struct journal *of(void **state)
{
    return ((struct fixture *)*state)->j;
}

static void a_client_key_is_taken_once_also_within_a_batch(void **state)
{
    struct fixture *f = *state;
    struct journal_plan p = {.plan_id = uuid_new(),
                             .client_key = STR_LIT("k"),
                             .status = STR_LIT("running"),
                             .doc = "d",
                             .doc_len = 1};
    struct bt_error err;
    uint64_t ix = add_plan(f->j, "k", "first");

    assert_int_equal(ix, 1);
    assert_int_equal(journal_plan_add(f->j, &p, &ix, &err), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "k"));
    commit(f->j);
    assert_int_equal(journal_plan_add(f->j, &p, &ix, &err), BT_CONFLICT);
    assert_false(journal_dirty(f->j));
    fixture_reopen(f);
    assert_int_equal(journal_plan_add(f->j, &p, &ix, &err), BT_CONFLICT);
    p.client_key = (struct str){NULL, 0};
    assert_ok(journal_plan_add(f->j, &p, &ix, &err), err);
    assert_int_equal(ix, 2);
    assert_int_equal(journal_plan_add(f->j, &p, &ix, &err), BT_CONFLICT); /* the same planId */
    assert_int_equal(add_plan(f->j, "", "no key either"), 3);
    commit(f->j);
}

static void a_plan_is_found_by_id_and_key_with_all_its_fields(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    struct journal_plan got;
    uint64_t ix;
    struct journal_plan p = {
        .plan_id = uuid_new(),
        .session_id = STR_LIT("sess"),
        .client_key = STR_LIT("kk"),
        .body_hash = UINT64_MAX - 5,
        .goal = STR_LIT("the goal"),
        .doc = "\0\1\2doc",
        .doc_len = 6,
        .created_wall = 42,
        .status = STR_LIT("pending"),
    };

    assert_ok(journal_plan_add(f->j, &p, &ix, &err), err);
    assert_ok(journal_plan_by_id(f->j, p.plan_id, &got, &err), err); /* batched */
    commit(f->j);
    assert_ok(journal_plan_status(f->j, ix, STR_LIT("failed"), 99, &err), err);
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_plan_by_key(f->j, STR_LIT("kk"), &got, &err), err);
    assert_ok(journal_plan_by_id(f->j, p.plan_id, &got, &err), err);
    assert_int_equal(got.ix, ix);
    assert_true(uuid_eq(got.plan_id, p.plan_id));
    assert_true(str_is(got.session_id, "sess"));
    assert_true(str_is(got.client_key, "kk"));
    assert_true(got.body_hash == UINT64_MAX - 5);
    assert_true(str_is(got.goal, "the goal"));
    assert_int_equal(got.doc_len, 6);
    assert_memory_equal(got.doc, p.doc, 6);
    assert_int_equal(got.created_wall, 42);
    assert_true(str_is(got.status, "failed"));
    assert_int_equal(got.ended_wall, 99);
    assert_ok(journal_plan_head(f->j, p.plan_id, &got, &err), err);
    assert_int_equal(got.ix, ix);
    assert_true(str_is(got.session_id, "sess"));
    assert_true(str_is(got.goal, "the goal"));
    assert_true(str_is(got.status, "failed"));
    assert_null(got.doc);
    assert_int_equal(got.doc_len, 0);
    assert_int_equal(journal_plan_head(f->j, uuid_new(), &got, &err), BT_NOT_FOUND);
    assert_int_equal(journal_plan_by_id(f->j, uuid_new(), &got, &err), BT_NOT_FOUND);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("k"), &got, &err), BT_NOT_FOUND);
    assert_int_equal(journal_plan_status(f->j, 77, STR_LIT("x"), 0, &err), BT_NOT_FOUND);
}

static void plans_are_listed_newest_first_with_filters_and_cursor(void **state)
{
    struct journal *j = of(state);
    struct bt_error err;
    struct seen s = {{0}};
    struct str any = {NULL, 0};

    for (int i = 0; i < 5; i++) {
        (void)add_plan(j, "", "g");
    }
    assert_ok(journal_plan_status(j, 2, STR_LIT("failed"), 5, &err), err);
    assert_ok(journal_plan_status(j, 4, STR_LIT("failed"), 5, &err), err);
    commit(j);
    assert_ok(journal_plans(j, any, any, 0, 2, see_plan, &s, &err), err);
    assert_string_equal(s.text, "5:g/running 4:g/failed ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, any, any, 4, 100, see_plan, &s, &err), err);
    assert_string_equal(s.text, "3:g/running 2:g/failed 1:g/running ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, STR_LIT("failed"), any, 0, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "4:g/failed 2:g/failed ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, STR_LIT("failed"), STR_LIT("s1"), 4, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "2:g/failed ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, any, STR_LIT("other"), 0, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "");
}

static bool take_id(const struct journal_plan *p, void *self)
{
    struct uuid *id = self;

    *id = p->plan_id;
    return false;
}

static void plans_are_found_by_a_range_of_ids(void **state)
{
    struct journal *j = of(state);
    struct bt_error err;
    struct seen s = {{0}};
    struct str any = {NULL, 0};
    struct uuid ids[4];

    for (int i = 0; i < 4; i++) {
        (void)add_plan(j, "", "g");
        assert_ok(journal_plans(j, any, any, 0, 1, take_id, &ids[i], &err), err);
    }
    commit(j);
    s = (struct seen){{0}};
    assert_ok(journal_plans_between(j, ids[1], ids[2], 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "3:g/running 2:g/running ");
    s = (struct seen){{0}};
    assert_ok(journal_plans_between(j, ids[0], ids[3], 2, see_plan, &s, &err), err);
    assert_string_equal(s.text, "4:g/running 3:g/running ");
    s = (struct seen){{0}};
    assert_ok(journal_plans_between(j, ids[3], ids[0], 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "");
}

static void open_plans_come_back_at_each_start_and_quarantine_ends_it(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    struct seen s = {{0}};

    (void)add_plan(f->j, "", "a");
    (void)add_plan(f->j, "", "b");
    (void)add_plan(f->j, "", "c");
    assert_ok(journal_plan_status(f->j, 2, STR_LIT("completed"), 7, &err), err);
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_plans_open(f->j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "1:a/running 3:c/running ");
    assert_false(journal_dirty(f->j)); /* a start that finds nothing wrong writes nothing */
    assert_ok(journal_quarantine(f->j, 1, STR_LIT("killed the daemon"), &err), err);
    commit(f->j);
    fixture_reopen(f);
    s = (struct seen){{0}};
    assert_ok(journal_plans_open(f->j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "3:c/running ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(f->j, STR_LIT("quarantined"), (struct str){NULL, 0}, 0, 9, see_plan, &s,
                            &err),
              err);
    assert_string_equal(s.text, "1:a/quarantined/killed the daemon ");
}

struct replayed {
    struct journal *j;
    struct seen rows;
};

static bool replay_it(const struct journal_plan *p, void *self)
{
    struct replayed *r = self;
    struct bt_error err;
    assert_ok(journal_replay(r->j, p->ix, see_row, &r->rows, &err), err);
    /* strings are still valid after the call */
    assert_memory_equal(p->doc, p->goal.ptr, p->doc_len);
    assert_ok(journal_plan_status(r->j, p->ix, STR_LIT("waiting"), 0, &err), err);
    return true;
}

static void a_recovery_may_replay_and_write_from_its_callback(void **state)
{
    struct fixture *f = *state;
    struct replayed r = {0};
    struct bt_error err;

    for (uint64_t i = 1; i <= 3; i++) {
        (void)add_plan(f->j, "", i == 1 ? "one" : "other");
        add_event(f->j, i, 1, "r");
    }
    commit(f->j);
    fixture_reopen(f);
    r.j = f->j;
    assert_ok(journal_plans_open(f->j, replay_it, &r, &err), err);
    assert_string_equal(r.rows.text, "1:r 2:r 3:r ");
    assert_true(journal_dirty(f->j));
    commit(f->j);
}

/* More than a store reads at once, and one with more rows than a page of them has. */
enum { MANY = 40, LONG = 300, LONG_PLAN = 20 };

struct counted {
    struct journal *j;
    uint64_t next;
    uint32_t rows;
    uint64_t ends; /* the plan that the one before it ends; 0 = none */
};

static bool count_row(const struct journal_row *row, void *self)
{
    ((struct counted *)self)->rows += row->is_public ? 1 : 0;
    return true;
}

static bool count_plan(const struct journal_plan *p, void *self)
{
    struct counted *c = self;
    struct bt_error err;

    c->next += c->next == c->ends ? 1 : 0;
    assert_int_equal(p->ix, c->next++);
    c->rows = 0;
    assert_ok(journal_replay(c->j, p->ix, count_row, c, &err), err);
    assert_int_equal(c->rows, p->ix == LONG_PLAN ? LONG : 1);
    if (p->ix + 1 == c->ends) {
        assert_ok(journal_plan_status(c->j, c->ends, STR_LIT("canceled"), 9, &err), err);
    }
    return true;
}

static void add_many(struct journal *j)
{
    char key[16];

    for (uint64_t ix = 1; ix <= MANY; ix++) {
        (void)snprintf(key, sizeof key, "k%u", (unsigned)ix);
        assert_int_equal(add_plan(j, key, "goal"), ix);
        for (uint64_t n = 1; n <= (ix == LONG_PLAN ? LONG : 1); n++) {
            add_event(j, ix, n, "body");
        }
    }
    commit(j);
}

static void many_open_plans_come_back_with_all_their_rows(void **state)
{
    struct fixture *f = *state;
    struct counted c = {.next = 1};
    struct bt_error err;

    add_many(f->j);
    fixture_reopen(f);
    c.j = f->j;
    assert_ok(journal_plans_open(f->j, count_plan, &c, &err), err);
    assert_int_equal(c.next, MANY + 1);
}

static void a_plan_that_ends_while_others_come_back_does_not(void **state)
{
    struct fixture *f = *state;
    struct counted c = {.next = 1, .ends = 6};
    struct bt_error err;

    add_many(f->j);
    fixture_reopen(f);
    c.j = f->j;
    assert_ok(journal_plans_open(f->j, count_plan, &c, &err), err);
    assert_int_equal(c.next, MANY + 1);
    commit(f->j);
}

#define BOTH(test)                                                                                 \
    {#test "[sqlite]", test, fixture_sqlite, fixture_done, NULL},                                  \
    {                                                                                              \
#test "[memory]", test, fixture_memory, fixture_done, NULL                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_client_key_is_taken_once_also_within_a_batch),
        BOTH(a_plan_is_found_by_id_and_key_with_all_its_fields),
        BOTH(plans_are_listed_newest_first_with_filters_and_cursor),
        BOTH(plans_are_found_by_a_range_of_ids),
        BOTH(open_plans_come_back_at_each_start_and_quarantine_ends_it),
        BOTH(a_recovery_may_replay_and_write_from_its_callback),
        BOTH(many_open_plans_come_back_with_all_their_rows),
        BOTH(a_plan_that_ends_while_others_come_back_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
