/* The newest rows are read from memory, and are the same as those of the file. */
#include "tests/unit/journal/journal_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "supervisor/journal/port.h"

/* What the implementation was asked for; the journal's own functions stand below. */
static const struct journal_ops *own;
static struct journal_ops counting;
static uint32_t reads;

static enum bt_code count_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix,
                                 uint32_t limit, journal_row_fn fn, void *self,
                                 struct bt_error *err)
{
    reads++;
    return own->events(j, from_seq, plan_ix, limit, fn, self, err);
}

static enum bt_code count_blobs(struct journal *j, uint64_t id, struct buf *out,
                                struct bt_error *err)
{
    reads++;
    return own->blob_get(j, id, out, err);
}

static void count_reads(struct journal *j)
{
    own = j->ops;
    counting = *own;
    counting.events = count_events;
    counting.blob_get = count_blobs;
    j->ops = &counting;
    reads = 0;
}

/* A digest of what a reader sees of a row. */
struct sum {
    uint64_t hash;
    uint32_t n, stop_after; /* 0 = never */
};

static void mix(struct sum *s, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        s->hash = (s->hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    }
    s->hash = (s->hash ^ len) * 1099511628211u;
}

static bool sum_row(const struct journal_row *row, void *self)
{
    struct sum *s = self;
    const uint64_t numbers[] = {row->seq,       row->plan_ix, row->plan_seq,
                                row->is_public, row->wall,    row->damaged};

    mix(s, numbers, sizeof numbers);
    mix(s, row->type.ptr, row->type.len);
    mix(s, row->topic.ptr, row->topic.len);
    mix(s, row->body, row->body_len);
    s->n++;
    return s->n != s->stop_after;
}

/* Both ways give the same rows. Returns how many. */
static uint32_t same_rows(struct journal *j, uint64_t from, uint64_t plan_ix, uint32_t limit,
                          uint32_t stop_after)
{
    struct sum here = {.hash = 1, .stop_after = stop_after};
    struct sum file = here;
    struct bt_error err;

    assert_ok(journal_events(j, from, plan_ix, limit, sum_row, &here, &err), err);
    assert_ok(own->events(j, from, plan_ix, limit, sum_row, &file, &err), err);
    assert_int_equal(here.n, file.n);
    assert_true(here.hash == file.hash);
    return here.n;
}

static void add_long(struct journal *j, uint64_t plan_ix, uint64_t plan_seq, const uint8_t *body,
                     size_t len)
{
    const struct journal_row row = {.seq = journal_next_seq(j),
                                    .is_public = true,
                                    .plan_ix = plan_ix,
                                    .plan_seq = plan_seq,
                                    .type = STR_LIT("plan_step_completed"),
                                    .topic = STR_LIT("plan/x"),
                                    .wall = 1000 + plan_seq,
                                    .body = body,
                                    .body_len = len};
    struct bt_error err;

    assert_ok(journal_append(j, &row, &err), err);
}

static void what_was_just_committed_is_read_without_the_file(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t plan = add_plan(j, "", "g");
    const uint64_t first = add_event(j, plan, 1, "a");

    add_internal(j, plan, "between");
    (void)add_event(j, 0, 0, "b");
    commit(j);
    count_reads(j);
    assert_int_equal(same_rows(j, first, 0, 100, 0), 2);
    assert_int_equal(same_rows(j, first, plan, 100, 0), 1);
    assert_int_equal(same_rows(j, first + 1, 0, 100, 0), 1);
    assert_int_equal(same_rows(j, first, 0, 1, 0), 1);
    assert_int_equal(same_rows(j, first, 0, 100, 1), 1);
    assert_int_equal(reads, 0);
    assert_int_equal(same_rows(j, first - 1, 0, 100, 0), 2);
    assert_int_equal(reads, 1);
}

static void the_open_batch_is_not_read(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t first = add_event(j, 0, 0, "a");

    commit(j);
    (void)add_event(j, 0, 0, "b");
    count_reads(j);
    assert_int_equal(same_rows(j, first, 0, 100, 0), 1);
    assert_int_equal(same_rows(j, first + 1, 0, 100, 0), 0);
    commit(j);
    assert_int_equal(same_rows(j, first, 0, 100, 0), 2);
    assert_int_equal(reads, 0);
}

static void at_most_4096_rows_are_kept(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t first = journal_next_seq(j);

    for (uint32_t i = 0; i < RECENT_ROWS; i++) {
        (void)add_event(j, 0, 0, "r");
    }
    commit(j);
    count_reads(j);
    assert_int_equal(same_rows(j, first, 0, 10000, 0), RECENT_ROWS);
    assert_int_equal(reads, 0);
    (void)add_event(j, 0, 0, "r");
    commit(j);
    assert_int_equal(same_rows(j, first + 1, 0, 10000, 0), RECENT_ROWS);
    assert_int_equal(reads, 0);
    assert_int_equal(same_rows(j, first, 0, 10000, 0), RECENT_ROWS + 1);
    assert_int_equal(reads, 1);
}

static void bodies_of_all_lengths_come_back_as_they_were(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    static uint8_t body[LIMIT_EVENT_BYTES];
    const unsigned seed =
        (unsigned)(getenv("SEED") != NULL ? strtoul(getenv("SEED"), NULL, 10) : 20261125);
    unsigned r = seed;

    print_message("seed %u\n", seed);
    count_reads(j);
    for (uint32_t i = 0; i < 4000; i++) {
        r = r * 1103515245u + 12345u;
        const size_t len =
            (r >> 8) % 7 == 0 ? sizeof body - (r >> 16) % 64 : 1 + (r >> 16) % sizeof body;
        memset(body, (int)(r >> 24), len);
        body[len - 1] = (uint8_t)i;
        add_long(j, (r >> 10) % 3, i + 1, body, len);
        if ((r >> 12) % 3 == 0) {
            commit(j);
            const uint64_t newest = journal_committed_seq(j);
            const uint64_t back = (r >> 5) % 1500;
            (void)same_rows(j, newest > back ? newest - back : 1, (r >> 20) % 3, 1 + (r >> 7) % 300,
                            0);
        }
    }
    assert_true(reads > 10);   /* further back than what is kept */
    assert_true(reads < 1000); /* most are not */
}

static void a_deleted_plan_is_not_read_any_more(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t plan = add_plan(j, "", "g");
    const uint64_t first = add_event(j, plan, 1, "a");
    bool more = true;
    struct bt_error err;

    assert_ok(journal_plan_status(j, plan, STR_LIT("completed"), 5, &err), err);
    commit(j);
    count_reads(j);
    assert_int_equal(same_rows(j, first, plan, 100, 0), 1);
    assert_ok(journal_plan_delete(j, plan, STR_LIT("asked"), 6, &err), err);
    while (more) {
        assert_ok(journal_sweep(j, 100, &more, &err), err);
    }
    commit(j);
    assert_int_equal(same_rows(j, first, plan, 100, 0), 0);
    assert_int_equal(same_rows(j, first, 0, 100, 0), 0);
}

static void deleted_rows_of_no_plan_are_not_read_any_more(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t first = add_event(j, 0, 0, "old");
    uint32_t n = 0;
    struct bt_error err;

    add_long(j, 0, 5000, (const uint8_t *)"new", 3);
    commit(j);
    count_reads(j);
    assert_ok(journal_rows_delete(j, 5000, 0, &n, &err), err);
    assert_int_equal(same_rows(j, first, 0, 100, 0), 2);
    assert_int_equal(reads, 0);
    assert_ok(journal_rows_delete(j, 5000, 100, &n, &err), err);
    assert_int_equal(n, 1);
    commit(j);
    assert_int_equal(same_rows(j, first, 0, 100, 0), 1);
}

static uint64_t add_blob(struct journal *j, uint8_t fill, size_t len)
{
    static uint8_t bytes[RECENT_BLOB_BYTES + 1];
    struct bt_error err;
    uint64_t id;

    assert_true(len <= sizeof bytes);
    memset(bytes, fill, len);
    assert_ok(journal_blob_add(j, bytes, len, &id, &err), err);
    return id;
}

static void rows_of_a_batch_that_was_rolled_back_are_gone(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t first = add_event(j, 0, 0, "a");
    struct bt_error why;
    struct bt_error err;

    commit(j);
    (void)add_event(j, 0, 0, "lost");
    (void)add_blob(j, 1, 1);
    (void)err_set(&why, BT_UNAVAILABLE, "full");
    assert_int_equal(journal_after_write(j, BT_UNAVAILABLE, &err, &why), BT_UNAVAILABLE);
    assert_null(j->recent.kept);
    assert_null(j->recent.blobs);
    assert_int_equal(journal_next_seq(j), first + 1);
}

/* Whether it has `len` times `fill`. */
static bool blob_is(struct journal *j, uint64_t id, uint8_t fill, size_t len)
{
    struct buf out;
    struct bt_error err;
    bool same;

    buf_init(&out, RECENT_BLOB_BYTES + 1);
    assert_ok(journal_blob_get(j, id, &out, &err), err);
    same = out.len == len;
    for (size_t i = 0; same && i < len; i++) {
        same = ((const uint8_t *)out.at)[i] == fill;
    }
    buf_done(&out);
    return same;
}

static void a_blob_of_64_KiB_is_kept_and_a_longer_one_is_not(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    uint64_t none, whole, longer;

    count_reads(j);
    none = add_blob(j, 1, 0);
    whole = add_blob(j, 2, RECENT_BLOB_BYTES);
    longer = add_blob(j, 3, RECENT_BLOB_BYTES + 1);
    assert_true(blob_is(j, none, 1, 0) && blob_is(j, whole, 2, RECENT_BLOB_BYTES));
    assert_int_equal(reads, 0);
    assert_true(blob_is(j, longer, 3, RECENT_BLOB_BYTES + 1));
    assert_int_equal(reads, 1);
}

static void the_newest_1024_blobs_are_kept(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t first = add_blob(j, 0, 9);

    count_reads(j);
    for (unsigned i = 1; i < RECENT_BLOBS; i++) {
        assert_true(add_blob(j, (uint8_t)i, 9) == first + i);
    }
    assert_true(blob_is(j, first, 0, 9));
    assert_int_equal(reads, 0);
    (void)add_blob(j, 7, 9);
    assert_true(blob_is(j, first + 1, 1, 9));
    assert_int_equal(reads, 0);
    assert_true(blob_is(j, first, 0, 9));
    assert_int_equal(reads, 1);
}

/* The room for bytes ends before the places do. */
static void blobs_of_all_lengths_come_back_as_they_were(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    size_t lens[300];
    unsigned r = 40425;
    uint64_t first = 0;

    count_reads(j);
    for (unsigned i = 0; i < 300; i++) {
        r = r * 1103515245u + 12345u;
        lens[i] = (r >> 8) % (i % 3 == 0 ? RECENT_BLOB_BYTES + 1 : 5000);
        const uint64_t id = add_blob(j, (uint8_t)i, lens[i]);
        first = i == 0 ? id : first;
        for (unsigned k = i; k + 20 > i; k--) {
            assert_true(blob_is(j, first + k, (uint8_t)k, lens[k]));
            if (k == 0) {
                break;
            }
        }
    }
    assert_int_equal(reads, 0); /* 20 of them fit */
    for (unsigned k = 0; k < 300; k++) {
        assert_true(blob_is(j, first + k, (uint8_t)k, lens[k]));
    }
    assert_in_range(reads, 100, 260);
}

static void a_blob_of_a_deleted_plan_is_not_read_any_more(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    const uint64_t plan = add_plan(j, "", "g");
    const uint64_t id = add_blob(j, 5, 10);
    struct journal_row row = {.seq = journal_next_seq(j),
                              .is_public = true,
                              .plan_ix = plan,
                              .plan_seq = 1,
                              .type = STR_LIT("step_completed"),
                              .topic = STR_LIT("plan/x"),
                              .body = "b",
                              .body_len = 1,
                              .blobs = &id,
                              .blobs_n = 1};
    bool more = true;
    struct bt_error err;
    struct buf out;

    assert_ok(journal_append(j, &row, &err), err);
    assert_ok(journal_plan_status(j, plan, STR_LIT("completed"), 5, &err), err);
    commit(j);
    assert_true(blob_is(j, id, 5, 10));
    assert_ok(journal_plan_delete(j, plan, STR_LIT("asked"), 6, &err), err);
    while (more) {
        assert_ok(journal_sweep(j, 100, &more, &err), err);
    }
    commit(j);
    buf_init(&out, 100);
    assert_int_equal(journal_blob_get(j, id, &out, &err), BT_NOT_FOUND);
    buf_done(&out);
}

#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, fixture_sqlite, fixture_done),                           \
        cmocka_unit_test_setup_teardown(test, fixture_memory, fixture_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_was_just_committed_is_read_without_the_file),
        BOTH(the_open_batch_is_not_read),
        BOTH(at_most_4096_rows_are_kept),
        BOTH(bodies_of_all_lengths_come_back_as_they_were),
        BOTH(a_deleted_plan_is_not_read_any_more),
        BOTH(deleted_rows_of_no_plan_are_not_read_any_more),
        BOTH(a_blob_of_64_KiB_is_kept_and_a_longer_one_is_not),
        BOTH(the_newest_1024_blobs_are_kept),
        BOTH(blobs_of_all_lengths_come_back_as_they_were),
        BOTH(a_blob_of_a_deleted_plan_is_not_read_any_more),
        cmocka_unit_test_setup_teardown(rows_of_a_batch_that_was_rolled_back_are_gone,
                                        fixture_memory, fixture_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
