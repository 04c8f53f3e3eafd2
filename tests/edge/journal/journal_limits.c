/* What bounds the files of the journal, and what a start makes of a row that is not there. */
#include "tests/support/cmocka.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "protocol/base/buf.h"
#include "tests/edge/journal/workload.h"
#include "tests/unit/journal/journal_fixture.h"

enum { PAGE = 4096, CHECKPOINT_PAGES = 12, BATCHES = 500, PLANS = 5, MISSING = 3 };
enum { TOMBSTONES = 100000, MARKERS_MAX = 4096 };

struct log_size {
    char path[96];
    off_t most;
};

static void measure(uint64_t seq, void *self)
{
    struct log_size *log = self;
    struct stat st;

    (void)seq;
    if (stat(log->path, &st) == 0 && st.st_size > log->most) {
        log->most = st.st_size;
    }
}

static void the_write_ahead_log_is_copied_back_and_stays_small(void **state)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS,
                                        .checkpoint_pages = CHECKPOINT_PAGES};
    struct log_size log = {.most = 0};
    struct told told;
    char dir[64];

    (void)state;
    work_dir(dir);
    (void)snprintf(log.path, sizeof log.path, "%s/journal.db-wal", dir);
    told = work(dir, &opt, BATCHES, measure, &log);
    assert_true(told.acked > BATCHES && told.unknown == 0);
    assert_true(log.most >= CHECKPOINT_PAGES * PAGE); /* the log is that file */
    assert_true(log.most < 200 * PAGE);
    fixture_remove_tree(dir);
}

static off_t file_size(const char *dir)
{
    struct stat st;
    char path[96];

    (void)snprintf(path, sizeof path, "%s/journal.db", dir);
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void add_blob(struct journal *j, size_t bytes)
{
    static const char blob[2 * 1024 * 1024];
    struct bt_error err;
    uint64_t id;

    assert_true(bytes <= sizeof blob);
    assert_ok(journal_blob_add(j, blob, bytes, &id, &err), err);
}

/* The size of the file after a batch with a blob of so many bytes. */
static off_t size_after(struct journal *j, const char *dir, size_t bytes)
{
    add_blob(j, bytes);
    commit(j);
    return file_size(dir);
}

/* The same when the effects of the commit were performed. */
static off_t size_copied(struct journal *j, const char *dir, size_t bytes)
{
    (void)size_after(j, dir, bytes);
    journal_copy_log(j);
    return file_size(dir);
}

static void the_log_is_copied_after_the_effects_or_by_the_next_commit(void **state)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS, .checkpoint_pages = 1};
    const size_t page = 4096;
    struct journal *j;
    struct bt_error err;
    off_t first;
    char dir[64];

    (void)state;
    work_dir(dir);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    first = size_copied(j, dir, 10);
    assert_int_equal(size_after(j, dir, 8 * page), first); /* nobody waits for the copy */
    journal_copy_log(j);
    assert_true(file_size(dir) >= first + 8 * (off_t)page);
    first = file_size(dir);
    journal_copy_log(j); /* there is nothing to do */
    assert_int_equal(file_size(dir), first);
    assert_int_equal(size_after(j, dir, 8 * page), first);
    add_blob(j, 8 * page);
    journal_copy_log(j); /* a batch is open */
    assert_int_equal(file_size(dir), first);
    commit(j);
    assert_true(file_size(dir) >= first + 16 * (off_t)page);
    journal_close(j);
    fixture_remove_tree(dir);
}

static void after_a_large_batch_the_next_commit_copies_the_log(void **state)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS, .checkpoint_pages = 1};
    const size_t large = 2 * 1024 * 1024;
    struct journal *j;
    struct bt_error err;
    off_t first;
    char dir[64];

    (void)state;
    work_dir(dir);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    first = size_copied(j, dir, 10);
    assert_int_equal(size_copied(j, dir, large), first);
    assert_true(size_after(j, dir, 10) >= first + (off_t)large);
    first = size_copied(j, dir, 10);
    assert_int_equal(size_copied(j, dir, large), first);
    /* Not a second time: the log would have no bound. */
    assert_true(size_after(j, dir, large) >= first + 2 * (off_t)large);
    journal_close(j);
    fixture_remove_tree(dir);
}

static void run_sql(const char *dir, const char *sql, int changes)
{
    char path[96];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/journal.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), changes);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The plans that a start gives to recovery; afterwards all of them. */
static struct seen start(const char *dir, struct seen *ret_all)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct seen s = {{0}};
    struct journal *j;
    struct bt_error err;

    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_ok(journal_plans_open(j, see_plan, &s, &err), err);
    *ret_all = (struct seen){{0}};
    assert_ok(journal_plans(j, (struct str){NULL, 0}, (struct str){NULL, 0}, 0, 100, see_plan,
                            ret_all, &err),
              err);
    journal_close(j);
    return s;
}

static void without_row(int missing)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct journal *j;
    struct bt_error err;
    struct seen s;
    char dir[64];
    char text[80];

    work_dir(dir);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    for (int i = 1; i <= PLANS; i++) {
        (void)snprintf(text, sizeof text, "goal %d", i);
        (void)add_plan(j, "", text);
    }
    commit(j);
    journal_close(j);
    (void)snprintf(text, sizeof text, "DELETE FROM plan_state WHERE ix = %d", missing);
    run_sql(dir, text, 1);
    for (int again = 0; again < 2; again++) { /* put aside for good, and nothing else is */
        struct seen all;
        s = start(dir, &all);
        assert_int_equal(s.n, PLANS - 1);
        (void)snprintf(text, sizeof text, "goal %d/quarantined", missing);
        assert_non_null(strstr(all.text, text));
        for (int i = 1; i <= PLANS; i++) {
            (void)snprintf(text, sizeof text, "goal %d/", i);
            assert_int_equal(strstr(s.text, text) == NULL, i == missing);
        }
    }
    fixture_remove_tree(dir);
}

static void a_plan_whose_state_is_missing_is_put_aside_and_the_others_go_on(void **state)
{
    (void)state;
    without_row(1);
    without_row(MISSING);
    without_row(PLANS);
}

static void add_ended_plan(struct journal *j, const char *key)
{
    struct bt_error err;
    assert_ok(journal_plan_status(j, add_plan(j, key, "g"), STR_LIT("completed"), 10, &err), err);
}

/* Whether the plan of the lowest number is still known as deleted, after a start and a sweep of
 * `budget` rows; whether more is to be swept. */
static bool first_is_known(const char *dir, uint32_t budget, bool *ret_more)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct journal_plan p;
    struct journal *j;
    struct bt_error err;
    enum bt_code code;

    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_ok(journal_sweep(j, budget, ret_more, &err), err);
    commit(j);
    code = journal_plan_by_key(j, STR_LIT("first"), &p, &err);
    assert_true(code == BT_CONFLICT || code == BT_NOT_FOUND);
    journal_close(j);
    return code == BT_CONFLICT;
}

static void of_one_deleted_plan_too_many_the_oldest_is_forgotten(void **state)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct journal *j;
    struct bt_error err;
    bool more;
    char dir[64];
    char sql[400];

    (void)state;
    work_dir(dir);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    add_ended_plan(j, "first");
    add_ended_plan(j, "second");
    commit(j);
    assert_ok(journal_plan_delete(j, 1, STR_LIT("x"), 7000, &err), err);
    commit(j);
    journal_close(j);
    (void)snprintf(sql, sizeof sql,
                   "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT %d) "
                   "INSERT INTO gone SELECT i, randomblob(16), NULL, 'completed', 1, 2, 3, 'y', 0, "
                   "'', 0, 1, '' FROM n",
                   TOMBSTONES - 1);
    run_sql(dir, sql, TOMBSTONES - 1);
    assert_true(first_is_known(dir, 10, &more));
    assert_false(more);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_ok(journal_plan_delete(j, 2, STR_LIT("x"), 7000, &err), err); /* one more */
    commit(j);
    journal_close(j);
    assert_false(first_is_known(dir, 100, &more));
    assert_false(more);
    run_sql(dir, "DELETE FROM gone WHERE ix >= 1000", TOMBSTONES - 1); /* the second one is kept */
    fixture_remove_tree(dir);
}

/* What a reader gets of a journal that lost rows. */
struct holes {
    uint32_t events, markers, stop_at; /* stop_at: the marker at which it has enough; 0 = never */
    uint64_t last, to;
};

static bool see_hole(const struct journal_row *row, void *self)
{
    struct holes *h = self;

    assert_true(row->seq == h->last + 1); /* without a gap, and nothing twice */
    h->last = row->damaged && row->damaged_to > row->seq ? row->damaged_to : row->seq;
    h->to = row->damaged ? row->damaged_to : h->to;
    h->events += !row->damaged;
    h->markers += row->damaged;
    return !row->damaged || h->markers != h->stop_at;
}

/* One event, `lost` that are gone, and one more. */
static struct holes read_holes(uint32_t lost, uint32_t stop_at)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct holes h = {.stop_at = stop_at};
    struct journal *j;
    struct bt_error err;
    char dir[64];
    char sql[96];
    uint64_t ix;

    work_dir(dir);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    ix = add_plan(j, "", "goal");
    for (uint64_t i = 1; i <= lost + 2; i++) {
        (void)add_event(j, ix, i, "body");
    }
    commit(j);
    journal_close(j);
    (void)snprintf(sql, sizeof sql, "DELETE FROM rows WHERE pos >> 20 BETWEEN 2 AND %u", lost + 1);
    run_sql(dir, sql, (int)lost);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_ok(journal_events(j, 1, 0, UINT32_MAX, see_hole, &h, &err), err);
    journal_close(j);
    fixture_remove_tree(dir);
    return h;
}

static void of_more_than_4096_lost_events_one_marker_tells(void **state)
{
    struct holes h = read_holes(MARKERS_MAX, 0);

    (void)state;
    assert_int_equal(h.events, 2);
    assert_int_equal(h.markers, MARKERS_MAX);
    assert_int_equal(h.last, MARKERS_MAX + 2);
    h = read_holes(MARKERS_MAX + 1, 0);
    assert_int_equal(h.events, 2);
    assert_int_equal(h.markers, 1);
    assert_int_equal(h.to, MARKERS_MAX + 2);
    assert_int_equal(h.last, MARKERS_MAX + 3);
}

static void a_reader_that_has_enough_within_a_hole_gets_no_more(void **state)
{
    struct holes h = read_holes(5, 2);

    (void)state;
    assert_true(h.events == 1 && h.markers == 2 && h.last == 3);
    h = read_holes(5, 5);
    assert_true(h.events == 1 && h.markers == 5 && h.last == 6);
    h = read_holes(MARKERS_MAX + 1, 1);
    assert_true(h.events == 1 && h.markers == 1 && h.last == MARKERS_MAX + 2);
}

/* "9 8! ": the numbers that a reader of messages got; "!" = lost. */
static bool see_number(const struct journal_message *m, void *self)
{
    struct buf *got = self;

    buf_printf(got, "%u%s ", (unsigned)m->n, m->damaged ? "!" : "");
    return true;
}

/* Of nine messages the third to the sixth are gone. */
static void a_reader_of_messages_gets_no_more_than_it_wants_of_a_hole(void **state)
{
    static const char *const want[] = {"",
                                       "9 ",
                                       "9 8 ",
                                       "9 8 7 ",
                                       "9 8 7 6! ",
                                       "9 8 7 6! 5! ",
                                       "9 8 7 6! 5! 4! ",
                                       "9 8 7 6! 5! 4! 3! ",
                                       "9 8 7 6! 5! 4! 3! 2 ",
                                       "9 8 7 6! 5! 4! 3! 2 1 ",
                                       "9 8 7 6! 5! 4! 3! 2 1 "};
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    const struct journal_message m = {.role = STR_LIT("user"), .text = STR_LIT("x")};
    struct journal_session s = {.session_id = STR_LIT("s")};
    struct journal *j;
    struct bt_error err;
    char dir[64];

    (void)state;
    work_dir(dir);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_ok(journal_session_put(j, &s, &err), err);
    for (uint64_t n = 0; n < 9; n++) {
        uint64_t number;
        assert_ok(journal_message_add(j, s.session_id, &m, &number, &err), err);
    }
    commit(j);
    journal_close(j);
    run_sql(dir, "DELETE FROM messages WHERE n BETWEEN 3 AND 6", 4);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    for (uint32_t limit = 0; limit < sizeof want / sizeof want[0]; limit++) {
        struct buf got;
        buf_init(&got, 256);
        assert_ok(journal_messages(j, s.session_id, 0, limit, see_number, &got, &err), err);
        assert_string_equal(got.len > 0 ? buf_cstr(&got) : "", want[limit]);
        buf_done(&got);
    }
    journal_close(j);
    fixture_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_write_ahead_log_is_copied_back_and_stays_small),
        cmocka_unit_test(the_log_is_copied_after_the_effects_or_by_the_next_commit),
        cmocka_unit_test(after_a_large_batch_the_next_commit_copies_the_log),
        cmocka_unit_test(a_plan_whose_state_is_missing_is_put_aside_and_the_others_go_on),
        cmocka_unit_test(of_one_deleted_plan_too_many_the_oldest_is_forgotten),
        cmocka_unit_test(of_more_than_4096_lost_events_one_marker_tells),
        cmocka_unit_test(a_reader_that_has_enough_within_a_hole_gets_no_more),
        cmocka_unit_test(a_reader_of_messages_gets_no_more_than_it_wants_of_a_hole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
