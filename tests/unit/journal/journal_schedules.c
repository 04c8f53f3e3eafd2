/* The port's contract for schedules, tested on both implementations. */
#include "tests/unit/journal/journal_fixture.h"

#include <stdio.h>

static uint64_t put(struct journal *j, const char *name, const char *rule, const char *doc)
{
    const struct journal_schedule p = {.name = str_from(name),
                                       .owner = STR_LIT("ann"),
                                       .body_hash = 7,
                                       .created_wall = 1000,
                                       .rule = str_from(rule),
                                       .doc = str_from(doc),
                                       .state = STR_LIT("at 0")};
    struct bt_error err;
    uint64_t ix = 0;
    assert_ok(journal_schedule_put(j, &p, &ix, &err), err);
    return ix;
}

static bool see(const struct journal_schedule *p, void *self)
{
    struct seen *s = self;
    s->n++;
    s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len,
                               "%llu:%.*s/%.*s/%.*s/%zu ", (unsigned long long)p->ix,
                               STR_ARG(p->name), STR_ARG(p->rule), STR_ARG(p->state), p->doc.len);
    return true;
}

static void expect(struct journal *j, const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;
    assert_ok(journal_schedules(j, 0, see, &s, &err), err);
    assert_string_equal(s.text, want);
}

static void a_schedule_keeps_its_number_and_is_found_by_its_name(void **state)
{
    struct fixture *f = *state;
    struct journal_schedule got;
    struct bt_error err;

    assert_int_equal(put(f->j, "a", "daily", "plan a"), 1);
    assert_int_equal(put(f->j, "b", "hourly", "plan b"), 2);
    assert_int_equal(put(f->j, "a", "weekly", "plan c"), 1);
    expect(f->j, "1:a/weekly/at 0/0 2:b/hourly/at 0/0 "); /* batched */
    commit(f->j);
    fixture_reopen(f);
    expect(f->j, "1:a/weekly/at 0/0 2:b/hourly/at 0/0 ");
    assert_ok(journal_schedule_by_name(f->j, STR_LIT("a"), &got, &err), err);
    assert_true(str_is(got.doc, "plan c") && str_is(got.owner, "ann") &&
                str_is(got.rule, "weekly"));
    assert_true(got.ix == 1 && got.body_hash == 7 && got.created_wall == 1000);
    assert_int_equal(journal_schedule_by_name(f->j, STR_LIT("c"), &got, &err), BT_NOT_FOUND);
    assert_string_equal(err.msg, "no schedule 'c'");
}

static void the_state_changes_alone_and_goes_back_with_its_batch(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    const uint64_t ix = put(f->j, "a", "daily", "plan");

    commit(f->j);
    assert_ok(journal_schedule_state(f->j, ix, STR_LIT("at 1"), &err), err);
    expect(f->j, "1:a/daily/at 1/0 ");
    fixture_reopen(f); /* not committed */
    expect(f->j, "1:a/daily/at 0/0 ");
    assert_ok(journal_schedule_state(f->j, ix, STR_LIT("at 2"), &err), err);
    commit(f->j);
    fixture_reopen(f);
    expect(f->j, "1:a/daily/at 2/0 ");
}

static void a_deleted_schedule_leaves_its_name_free(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    const uint64_t ix = put(f->j, "a", "daily", "plan");

    (void)put(f->j, "b", "daily", "plan");
    commit(f->j);
    assert_ok(journal_schedule_delete(f->j, ix, &err), err);
    fixture_reopen(f);
    expect(f->j, "1:a/daily/at 0/0 2:b/daily/at 0/0 ");
    assert_ok(journal_schedule_delete(f->j, ix, &err), err);
    commit(f->j);
    fixture_reopen(f);
    expect(f->j, "2:b/daily/at 0/0 ");
    assert_int_equal(put(f->j, "a", "weekly", "plan"), 3);
    expect(f->j, "2:b/daily/at 0/0 3:a/weekly/at 0/0 ");
}

#define BOTH(test)                                                                                 \
    {#test "[sqlite]", test, fixture_sqlite, fixture_done, NULL},                                  \
    {                                                                                              \
#test "[memory]", test, fixture_memory, fixture_done, NULL                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_schedule_keeps_its_number_and_is_found_by_its_name),
        BOTH(the_state_changes_alone_and_goes_back_with_its_batch),
        BOTH(a_deleted_schedule_leaves_its_name_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
