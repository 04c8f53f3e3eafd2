/*
 * G20: on a full disk no acknowledged commit is lost. The journal reports low space early enough
 * for running work, and recovers when there is room. Needs a small tmpfs of its own; skipped where
 * mounting is not allowed.
 */
#include "tests/unit/journal/journal_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "tests/edge/journal/workload.h"

enum { SKIPPED = 77, BALLAST = 1024 * 1024, ROW = 20000 };

static char dir[64];

static void no_log(enum log_level level, const char *event, const char *text, void *self)
{
    (void)level;
    (void)event;
    (void)text;
    (void)self;
}

/* One batch with one big row. */
static enum bt_code put(struct journal *j, struct bt_error *err)
{
    static char body[ROW];
    struct journal_row row = {
        .seq = journal_next_seq(j), .is_public = true, .body = body, .body_len = sizeof body};
    enum bt_code code = journal_append(j, &row, err);
    return code == BT_OK ? journal_commit(j, err) : code;
}

static void fill(const char *name, bool add)
{
    char path[128];
    char zeros[4096] = {0};
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!add) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) == (ssize_t)sizeof zeros) {
    }
    close(fd);
}

static uint64_t stored(void)
{
    struct journal *j;
    struct bt_error err;
    struct seen s = {{0}};
    struct journal_options opt = {.ballast_bytes = BALLAST};

    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_ok(journal_events(j, 1, 0, UINT32_MAX, see_row, &s, &err), err);
    journal_close(j);
    return s.n;
}

static void fill_and_free(void)
{
    struct journal_options opt = {.ballast_bytes = BALLAST, .checkpoint_pages = 50};
    struct journal *j;
    struct bt_error err;
    uint64_t acked = 0;
    uint64_t while_low = 0;

    log_setup(LOG_ERR, no_log, NULL);
    assert_int_equal(mount("tmpfs", dir, "tmpfs", 0, "size=4m"), 0);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_false(journal_storage_low(j));
    assert_ok(put(j, &err), err);
    acked++;
    fill("of_others", true);
    while (put(j, &err) == BT_OK) {
        acked++;
        while_low += journal_storage_low(j);
    }
    assert_int_equal(err.code, BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "storage is full"));
    assert_true(while_low > 10); /* the ballast gave running work enough room */
    assert_true(journal_storage_low(j));
    assert_int_equal(journal_committed_seq(j), acked);
    assert_int_equal(put(j, &err), BT_UNAVAILABLE); /* alive, and still reports the full disk */
    fill("of_others", false);
    assert_ok(put(j, &err), err);
    acked++;
    assert_false(journal_storage_low(j));
    fill("of_others", true);
    while (put(j, &err) == BT_OK) {
        acked++;
    }
    journal_close(j);
    assert_int_equal(stored(), acked); /* and a daemon can start with the remaining space */
    fill("of_others", false);
    assert_int_equal(stored(), acked);
}

static bool write_file(const char *file, const char *text)
{
    const size_t n = strlen(text);
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, n) == (ssize_t)n;

    if (fd >= 0) {
        (void)close(fd);
    }
    return done;
}

/* Makes a mount namespace for this process: as root, or as root of a user namespace. Without a uid
 * mapping files there have no owner and cannot be created. */
static bool own_mounts(void)
{
    char user[32];
    char group[32];

    (void)snprintf(user, sizeof user, "0 %u 1", geteuid());
    (void)snprintf(group, sizeof group, "0 %u 1", getegid());
    return unshare(CLONE_NEWNS) == 0 ||
           (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/uid_map", user) &&
            write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", group));
}

static void a_full_disk_loses_nothing_and_the_journal_comes_back(void **state)
{
    int status = 0;
    pid_t child;

    (void)state;
    work_dir(dir);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!own_mounts()) {
            _exit(SKIPPED);
        }
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
            _exit(SKIPPED);
        }
        fill_and_free();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    fixture_remove_tree(dir);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_loses_nothing_and_the_journal_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
