/* The port's contract, tested on both implementations. */
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
        memory_journal_fail(f->j, 1, kept != 0);
        assert_int_equal(journal_commit(f->j, &err), BT_IO);
        assert_int_equal(journal_events(f->j, 0, 0, 9, see_row, &s, &err), BT_IO);
        assert_non_null(strstr(err.msg, "on request"));
        assert_int_equal(journal_commit(f->j, &err), BT_IO);
        memory_journal_restart(f->j);
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
    assert_int_equal(crc32c_portable(0, "123456789", 9), 0xE3069283);
    assert_int_equal(crc32c_portable(7, "a longer text than eight bytes", 30),
                     crc32c(7, "a longer text than eight bytes", 30));
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
        BOTH(blobs_come_back_byte_for_byte),
        {"a_failed_commit_kills_the_journal_and_its_outcome_is_unknown[memory]",
         a_failed_commit_kills_the_journal_and_its_outcome_is_unknown, fixture_memory, fixture_done,
         NULL},
        cmocka_unit_test(crc32c_matches_the_vectors_of_rfc_3720),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
