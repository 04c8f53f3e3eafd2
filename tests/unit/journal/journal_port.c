/* The promises of the port, asked of both implementations. */
#include "tests/unit/journal/journal_fixture.h"

#include <string.h>

#include "supervisor/journal/crc32c.h"

static struct journal *of(void **state)
{
    return ((struct fixture *)*state)->j;
}

static void expect_events(struct journal *j, uint64_t from, uint64_t plan, uint32_t limit,
                          const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;
    assert_ok(journal_events(j, from, plan, limit, see_row, &s, &err), err);
    assert_string_equal(s.text, want);
}

static void expect_replay(struct journal *j, uint64_t plan, const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;
    assert_ok(journal_replay(j, plan, see_row, &s, &err), err);
    assert_string_equal(s.text, want);
}

static void seq_goes_on_without_a_gap_over_restarts(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(journal_next_seq(f->j), 1);
    assert_int_equal(journal_boot(f->j), 1);
    assert_int_equal(add_event(f->j, 0, 0, "a"), 1);
    assert_int_equal(add_event(f->j, 0, 0, "b"), 2);
    commit(f->j);
    add_internal(f->j, 1, "i");
    commit(f->j);
    fixture_reopen(f);
    assert_int_equal(journal_boot(f->j), 2);
    assert_int_equal(journal_next_seq(f->j), 3);
    assert_int_equal(add_event(f->j, 0, 0, "c"), 3);
    commit(f->j);
    expect_events(f->j, 1, 0, 100, "1:a 2:b 3:c ");
    expect_events(f->j, 0, 0, 100, "1:a 2:b 3:c ");
}

static void an_uncommitted_batch_is_gone_after_a_restart_and_its_seq_is_used_again(void **state)
{
    struct fixture *f = *state;
    struct journal_plan p;
    struct bt_error err;

    add_event(f->j, 0, 0, "kept");
    commit(f->j);
    add_event(f->j, 0, 0, "lost");
    (void)add_plan(f->j, "key", "lost plan");
    assert_true(journal_dirty(f->j));
    fixture_reopen(f);
    assert_false(journal_dirty(f->j));
    assert_int_equal(journal_next_seq(f->j), 2);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("key"), &p, &err), BT_NOT_FOUND);
    assert_int_equal(add_plan(f->j, "key", "again"), 1);
    assert_int_equal(add_event(f->j, 0, 0, "new"), 2);
    commit(f->j);
    expect_events(f->j, 1, 0, 9, "1:kept 2:new ");
}

static void reads_see_committed_rows_only_while_a_batch_is_open(void **state)
{
    struct journal *j = of(state);

    add_event(j, 1, 1, "a");
    commit(j);
    add_event(j, 1, 2, "b");
    add_internal(j, 1, "i");
    assert_int_equal(journal_last_seq(j), 2);
    assert_int_equal(journal_committed_seq(j), 1);
    expect_events(j, 1, 0, 9, "1:a ");
    expect_events(j, 2, 0, 9, "");
    expect_events(j, 1, 1, 9, "1:a ");
    expect_replay(j, 1, "1:a ");
    commit(j);
    assert_int_equal(journal_committed_seq(j), 2);
    expect_events(j, 2, 0, 9, "2:b ");
    expect_replay(j, 1, "1:a 2:b (2):i ");
}

static void internal_rows_follow_their_public_row_and_take_no_seq(void **state)
{
    struct fixture *f = *state;

    add_internal(f->j, 2, "x");
    add_event(f->j, 1, 1, "a");
    add_internal(f->j, 1, "b");
    add_internal(f->j, 2, "y");
    commit(f->j);
    add_internal(f->j, 1, "c");
    commit(f->j);
    fixture_reopen(f);
    add_internal(f->j, 1, "d");
    add_event(f->j, 1, 2, "e");
    commit(f->j);
    expect_events(f->j, 0, 0, 9, "1:a 2:e ");
    expect_replay(f->j, 1, "1:a (1):b (1):c (1):d 2:e ");
    expect_replay(f->j, 2, "(0):x (1):y ");
    expect_replay(f->j, 3, "");
}

static void events_honour_from_limit_and_plan(void **state)
{
    struct journal *j = of(state);

    for (unsigned i = 1; i <= 9; i++) {
        char body[2] = {(char)('a' + i - 1), 0};
        add_event(j, i % 2 == 0 ? 2 : 1, (i + 1) / 2, body);
    }
    commit(j);
    expect_events(j, 4, 0, 3, "4:d 5:e 6:f ");
    expect_events(j, 8, 0, 100, "8:h 9:i ");
    expect_events(j, 10, 0, 100, "");
    expect_events(j, UINT64_MAX, 0, 100, "");
    expect_events(j, 0, 2, 2, "2:b 4:d ");
    expect_events(j, 5, 2, 100, "6:f 8:h ");
    expect_events(j, 1, 3, 100, "");
    expect_events(j, 1, 0, 0, "");
}

static bool stop_after_two(const struct journal_row *row, void *self)
{
    (void)see_row(row, self);
    return ((struct seen *)self)->n < 2;
}

static void a_reader_can_stop(void **state)
{
    struct journal *j = of(state);
    struct seen s = {{0}};
    struct bt_error err;

    for (int i = 0; i < 5; i++) {
        add_event(j, 0, 0, "x");
    }
    commit(j);
    assert_ok(journal_events(j, 1, 0, 9, stop_after_two, &s, &err), err);
    assert_string_equal(s.text, "1:x 2:x ");
}

static bool check_fields(const struct journal_row *row, void *self)
{
    *(int *)self += 1;
    assert_true(row->is_public);
    assert_int_equal(row->seq, 1);
    assert_int_equal(row->plan_ix, 7);
    assert_int_equal(row->plan_seq, 1);
    assert_int_equal(row->wall, 1234);
    assert_true(str_is(row->type, "plan_started"));
    assert_true(str_is(row->topic, "plan/s1/x/plan_started"));
    assert_int_equal(row->body_len, 4);
    assert_memory_equal(row->body, "body", 4);
    return true;
}

static void a_row_comes_back_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    int n = 0;

    add_event(f->j, 7, 1, "body");
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_events(f->j, 1, 7, 9, check_fields, &n, &err), err);
    assert_int_equal(n, 1);
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
    assert_string_equal(s.text, "5:g/running/0 4:g/failed/0 ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, any, any, 4, 100, see_plan, &s, &err), err);
    assert_string_equal(s.text, "3:g/running/0 2:g/failed/0 1:g/running/0 ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, STR_LIT("failed"), any, 0, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "4:g/failed/0 2:g/failed/0 ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, STR_LIT("failed"), STR_LIT("s1"), 4, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "2:g/failed/0 ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(j, any, STR_LIT("other"), 0, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "");
}

static void open_plans_are_counted_at_each_recovery_and_quarantine_ends_it(void **state)
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
    assert_string_equal(s.text, "1:a/running/1 3:c/running/1 ");
    fixture_reopen(f); /* the count was committed at once */
    s = (struct seen){{0}};
    assert_ok(journal_plans_open(f->j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "1:a/running/2 3:c/running/2 ");
    assert_ok(journal_quarantine(f->j, 1, STR_LIT("killed the daemon"), &err), err);
    assert_ok(journal_recovered(f->j, 0, &err), err);
    commit(f->j);
    fixture_reopen(f);
    s = (struct seen){{0}};
    assert_ok(journal_plans_open(f->j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "3:c/running/1 ");
    s = (struct seen){{0}};
    assert_ok(journal_plans(f->j, STR_LIT("quarantined"), (struct str){NULL, 0}, 0, 9, see_plan, &s,
                            &err),
              err);
    assert_int_equal(s.n, 1);
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
    assert_memory_equal(p->doc, p->goal.ptr, p->doc_len); /* still valid after the call */
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

static void blobs_come_back_byte_for_byte(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    struct buf out;
    static uint8_t big[1000000];
    uint64_t small_id;
    uint64_t big_id;
    uint64_t empty_id;

    for (size_t i = 0; i < sizeof big; i++) {
        big[i] = (uint8_t)(i * 7919 >> 8);
    }
    buf_init(&out, 2000000);
    assert_ok(journal_blob_add(f->j, "abc", 3, &small_id, &err), err);
    assert_ok(journal_blob_add(f->j, big, sizeof big, &big_id, &err), err);
    assert_ok(journal_blob_add(f->j, NULL, 0, &empty_id, &err), err);
    assert_true(small_id > 0 && big_id != small_id && empty_id != big_id);
    assert_ok(journal_blob_get(f->j, small_id, &out, &err), err); /* batched */
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_blob_get(f->j, empty_id, &out, &err), err);
    assert_int_equal(out.len, 3);
    assert_ok(journal_blob_get(f->j, big_id, &out, &err), err); /* appends */
    assert_int_equal(out.len, 3 + sizeof big);
    assert_memory_equal(out.at, "abc", 3);
    assert_memory_equal(out.at + 3, big, sizeof big);
    assert_int_equal(journal_blob_get(f->j, empty_id + 1, &out, &err), BT_NOT_FOUND);
    assert_int_equal(journal_blob_get(f->j, 0, &out, &err), BT_NOT_FOUND);
    buf_done(&out);
}

static void a_failed_commit_kills_the_journal_and_its_outcome_is_unknown(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    struct seen s = {{0}};

    for (int kept = 0; kept < 2; kept++) {
        uint64_t seq = add_event(f->j, 0, 0, "x");
        journal_memory_fail(f->j, 1, kept != 0);
        assert_int_equal(journal_commit(f->j, &err), BT_IO);
        assert_int_equal(journal_events(f->j, 0, 0, 9, see_row, &s, &err), BT_IO);
        assert_non_null(strstr(err.msg, "on request"));
        assert_int_equal(journal_commit(f->j, &err), BT_IO);
        journal_memory_restart(f->j);
        assert_int_equal(journal_next_seq(f->j), kept != 0 ? seq + 1 : seq);
    }
}

static void crc32c_matches_the_vectors_of_rfc_3720(void **state)
{
    uint8_t bytes[32];

    (void)state;
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, 32), 0x8A9136AA);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, 32), 0x62A8AB43);
    for (uint8_t i = 0; i < 32; i++) {
        bytes[i] = i;
    }
    assert_int_equal(crc32c(0, bytes, 32), 0x46DD794E);
    assert_int_equal(crc32c(0, "123456789", 9), 0xE3069283);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xE3069283);
}

#define BOTH(test)                                                                                 \
    {#test "[sqlite]", test, fixture_sqlite, fixture_done, NULL},                                  \
    {                                                                                              \
#test "[memory]", test, fixture_memory, fixture_done, NULL                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(seq_goes_on_without_a_gap_over_restarts),
        BOTH(an_uncommitted_batch_is_gone_after_a_restart_and_its_seq_is_used_again),
        BOTH(reads_see_committed_rows_only_while_a_batch_is_open),
        BOTH(internal_rows_follow_their_public_row_and_take_no_seq),
        BOTH(events_honour_from_limit_and_plan),
        BOTH(a_reader_can_stop),
        BOTH(a_row_comes_back_as_it_was),
        BOTH(a_client_key_is_taken_once_also_within_a_batch),
        BOTH(a_plan_is_found_by_id_and_key_with_all_its_fields),
        BOTH(plans_are_listed_newest_first_with_filters_and_cursor),
        BOTH(open_plans_are_counted_at_each_recovery_and_quarantine_ends_it),
        BOTH(a_recovery_may_replay_and_write_from_its_callback),
        BOTH(blobs_come_back_byte_for_byte),
        {"a_failed_commit_kills_the_journal_and_its_outcome_is_unknown[memory]",
         a_failed_commit_kills_the_journal_and_its_outcome_is_unknown, fixture_memory, fixture_done,
         NULL},
        cmocka_unit_test(crc32c_matches_the_vectors_of_rfc_3720),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
