/* Whose plans, results and sessions are, on both implementations. */
#include "tests/unit/journal/journal_fixture.h"

#include <string.h>

static uint64_t add_of(struct fixture *f, struct uuid id, const char *owner)
{
    const struct journal_plan p = {.plan_id = id,
                                   .goal = STR_LIT("g"),
                                   .doc = "d",
                                   .doc_len = 1,
                                   .status = STR_LIT("running"),
                                   .owner = str_from(owner)};
    struct bt_error err;
    uint64_t ix;

    assert_ok(journal_plan_add(f->j, &p, &ix, &err), err);
    return ix;
}

static void assert_owner(struct fixture *f, uint64_t ix, const char *expected)
{
    char owner[65];
    struct bt_error err;

    assert_ok(journal_plan_owner(f->j, ix, owner, sizeof owner, &err), err);
    assert_string_equal(owner, expected);
}

static void a_plan_keeps_its_owner_also_as_a_tombstone(void **state)
{
    struct fixture *f = *state;
    const struct uuid of_ann = uuid_new();
    const struct uuid of_token = uuid_new();
    struct journal_plan got;
    struct journal_gone gone;
    struct bt_error err;
    char small[3];

    assert_int_equal(add_of(f, of_ann, "ann"), 1);
    assert_int_equal(add_of(f, of_token, ""), 2);
    assert_owner(f, 1, "ann"); /* also within the batch */
    commit(f->j);
    fixture_reopen(f);
    assert_owner(f, 1, "ann");
    assert_owner(f, 2, "");
    assert_owner(f, 3, "");
    assert_int_equal(journal_plan_owner(f->j, 1, small, sizeof small, &err), BT_IO);
    assert_ok(journal_plan_by_id(f->j, of_ann, &got, &err), err);
    assert_true(str_is(got.owner, "ann"));
    assert_ok(journal_plan_by_id(f->j, of_token, &got, &err), err);
    assert_int_equal(got.owner.len, 0);
    assert_ok(journal_plan_status(f->j, 1, STR_LIT("completed"), 7, &err), err);
    assert_ok(journal_plan_delete(f->j, 1, STR_LIT("old"), 8, &err), err);
    commit(f->j);
    assert_owner(f, 1, "");
    assert_ok(journal_gone_by_id(f->j, of_ann, &gone, &err), err);
    assert_true(str_is(gone.owner, "ann"));
}

static void a_result_is_of_who_has_a_plan_that_names_it(void **state)
{
    struct fixture *f = *state;
    const uint64_t ix = add_of(f, uuid_new(), "ann");
    struct journal_row row = {.is_public = true,
                              .plan_ix = ix,
                              .plan_seq = 1,
                              .type = STR_LIT("t"),
                              .topic = STR_LIT("plan"),
                              .wall = 1,
                              .body = "b",
                              .body_len = 1};
    uint64_t blob;
    uint64_t other;
    struct bt_error err;
    bool owned;

    assert_ok(journal_blob_add(f->j, "x", 1, &blob, &err), err);
    assert_ok(journal_blob_add(f->j, "y", 1, &other, &err), err);
    row.seq = journal_next_seq(f->j);
    row.blobs = &blob;
    row.blobs_n = 1;
    assert_ok(journal_append(f->j, &row, &err), err);
    commit(f->j);
    assert_ok(journal_blob_owned(f->j, blob, STR_LIT("ann"), &owned, &err), err);
    assert_true(owned);
    assert_ok(journal_blob_owned(f->j, blob, STR_LIT("bob"), &owned, &err), err);
    assert_false(owned);
    assert_ok(journal_blob_owned(f->j, other, STR_LIT("ann"), &owned, &err), err);
    assert_false(owned);
}

/* Later messages do not change whose it is. */
static void a_session_is_of_who_begins_it(void **state)
{
    struct fixture *f = *state;
    struct journal_message m = {
        .role = STR_LIT("user"), .text = STR_LIT("hi"), .wall = 5, .owner = STR_LIT("ann")};
    struct journal_session s;
    struct bt_error err;
    uint64_t n;

    assert_ok(journal_message_add(f->j, STR_LIT("s"), &m, &n, &err), err);
    m.owner = STR_LIT("bob");
    assert_ok(journal_message_add(f->j, STR_LIT("s"), &m, &n, &err), err);
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_session(f->j, STR_LIT("s"), &s, &err), err);
    assert_true(str_is(s.owner, "ann"));
    assert_int_equal(s.messages, 2);
}

#define BOTH(test)                                                                                 \
    {#test "[sqlite]", test, fixture_sqlite, fixture_done, NULL},                                  \
    {                                                                                              \
#test "[memory]", test, fixture_memory, fixture_done, NULL                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_plan_keeps_its_owner_also_as_a_tombstone),
        BOTH(a_result_is_of_who_has_a_plan_that_names_it),
        BOTH(a_session_is_of_who_begins_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
