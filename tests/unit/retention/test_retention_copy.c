/* Copies of the journal: some pages of each cycle. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/journal/port.h"
#include "supervisor/retention/retention.h"
#include "tests/unit/journal/journal_fixture.h"

enum { START = 1000000 };

struct world {
    struct journal *journal;
    struct retention *retention;
};

static struct journal_ops odd; /* those of the memory journal, but for copies */

static bool is_open(void *self, struct uuid id)
{
    (void)self;
    (void)id;
    return false;
}

static void on_deleted(void *self, struct uuid id)
{
    (void)self;
    (void)id;
}

static void open_world(struct world *w, const struct retention_options *opt)
{
    const struct retention_hooks hooks = {w, is_open, NULL, on_deleted};
    struct bt_error err;

    assert_ok(memory_journal_open(&w->journal, &err), err);
    assert_ok(retention_new(opt, &hooks, w->journal, &w->retention, &err), err);
}

static void close_world(struct world *w)
{
    retention_free(w->retention);
    journal_close(w->journal);
}

static void run_at(struct world *w, msec now)
{
    struct bt_error err;

    for (int i = 0; retention_deadline(w->retention) <= now; i++) {
        assert_true(i < 10000);
        assert_ok(retention_cycle(w->retention, now, now, &err), err);
    }
}

static struct {
    uint32_t steps, pages_asked;
    enum bt_code ends_with;
} copying;

static enum bt_code copy_begins(struct journal *j, const char *path, struct bt_error *err)
{
    (void)j;
    return path[0] == '/' ? BT_OK : err_set(err, BT_NOT_FOUND, "no such directory");
}

static enum bt_code copy_goes_on(struct journal *j, uint32_t pages, struct journal_backup *ret,
                                 struct bt_error *err)
{
    (void)j;
    copying.pages_asked = pages;
    copying.steps++;
    *ret =
        (struct journal_backup){.pages = 10, .left = 3 - copying.steps, .done = copying.steps == 3};
    return copying.steps == 2 && copying.ends_with != BT_OK
               ? err_set(err, copying.ends_with, "the copy cannot be written")
               : BT_OK;
}

static void a_copy_takes_a_slice_of_each_cycle_until_it_is_done(void **state)
{
    const struct retention_options opt = {0};
    const struct retention_copy *copy;
    struct bt_error err;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, START);
    copy = retention_copy_state(w.retention);
    assert_string_equal(copy->path, "");
    odd = *w.journal->ops;
    odd.backup_begin = copy_begins;
    odd.backup_step = copy_goes_on;
    w.journal->ops = &odd;
    copying.steps = 0;
    copying.ends_with = BT_OK;
    assert_int_equal(retention_copy_begin(w.retention, "nowhere", &err), BT_NOT_FOUND);
    assert_false(copy->running);
    assert_ok(retention_copy_begin(w.retention, "/copy", &err), err);
    assert_string_equal(copy->path, "/copy");
    for (uint32_t left = 2; left > 0; left--) {
        assert_int_equal(retention_deadline(w.retention), 0); /* at once */
        assert_ok(retention_cycle(w.retention, START, START, &err), err);
        assert_true(copy->running && !copy->failed && copy->pages == 10 && copy->left == left);
    }
    assert_ok(retention_cycle(w.retention, START, START, &err), err);
    assert_true(!copy->running && !copy->failed && copy->left == 0);
    assert_true(retention_deadline(w.retention) == MSEC_NEVER);
    assert_int_equal(copying.pages_asked, 128);
    /* one that fails is over, and no failure of the daemon */
    copying.steps = 0;
    copying.ends_with = BT_IO;
    assert_ok(retention_copy_begin(w.retention, "/other", &err), err);
    assert_ok(retention_cycle(w.retention, START, START, &err), err);
    assert_ok(retention_cycle(w.retention, START, START, &err), err);
    assert_true(!copy->running && copy->failed);
    assert_string_equal(copy->why.msg, "the copy cannot be written");
    assert_int_equal(copying.steps, 2);
    close_world(&w);
}

static void keep_line(enum log_level level, const char *event, const char *text, void *self)
{
    (void)snprintf(self, 200, "%s%s %s", level == LOG_WARN ? "warn " : "", event, text);
}

static void the_log_says_when_a_copy_is_done_or_cannot_be_written(void **state)
{
    const struct retention_options opt = {0};
    char line[200] = "";
    struct bt_error err;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    run_at(&w, START);
    odd = *w.journal->ops;
    odd.backup_begin = copy_begins;
    odd.backup_step = copy_goes_on;
    w.journal->ops = &odd;
    log_setup(LOG_INFO, keep_line, line);
    copying.steps = 0;
    copying.ends_with = BT_OK;
    assert_ok(retention_copy_begin(w.retention, "/copy", &err), err);
    assert_ok(retention_cycle(w.retention, START, START, &err), err);
    assert_ok(retention_cycle(w.retention, START, START, &err), err);
    assert_string_equal(line, "");
    assert_ok(retention_cycle(w.retention, START, START, &err), err);
    assert_string_equal(line, "journal.backup file=/copy pages=10");
    copying.steps = 0;
    copying.ends_with = BT_IO;
    assert_ok(retention_copy_begin(w.retention, "/other", &err), err);
    run_at(&w, START);
    assert_string_equal(line, "warn journal.backup file=/other the copy cannot be written");
    log_setup(LOG_INFO, NULL, NULL);
    close_world(&w);
}

static void the_name_of_a_copy_has_4095_bytes_at_most(void **state)
{
    const struct retention_options opt = {0};
    char path[RETENTION_PATH_MAX + 1];
    struct bt_error err;
    struct world w;

    (void)state;
    open_world(&w, &opt);
    odd = *w.journal->ops;
    odd.backup_begin = copy_begins;
    w.journal->ops = &odd;
    memset(path, '/', sizeof path);
    path[RETENTION_PATH_MAX] = 0;
    assert_int_equal(retention_copy_begin(w.retention, path, &err), BT_INVALID);
    assert_string_equal(err.msg, "the name of the copy is too long");
    path[RETENTION_PATH_MAX - 1] = 0;
    path[RETENTION_PATH_MAX] = 'x'; /* what is behind it is no part of it */
    assert_ok(retention_copy_begin(w.retention, path, &err), err);
    assert_int_equal(retention_copy_state(w.retention)->pages, 0);
    assert_string_equal(retention_copy_state(w.retention)->path, path);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_takes_a_slice_of_each_cycle_until_it_is_done),
        cmocka_unit_test(the_log_says_when_a_copy_is_done_or_cannot_be_written),
        cmocka_unit_test(the_name_of_a_copy_has_4095_bytes_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
