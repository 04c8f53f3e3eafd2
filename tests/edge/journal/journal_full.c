/*
 * G20: on a full disk no acknowledged commit is lost. The journal reports low space early enough
 * for running work, and recovers when there is room. Needs a small tmpfs of its own; skipped where
 * mounting is not allowed.
 */
#include "tests/unit/journal/journal_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "tests/edge/journal/workload.h"

enum { SKIPPED = 77, BALLAST = 1024 * 1024, ROW = 20000 };

static char dir[64];

static const struct journal_options OPT = {.ballast_bytes = BALLAST, .checkpoint_pages = 50};

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
        (void)unlink(path);
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

    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    assert_ok(journal_events(j, 1, 0, UINT32_MAX, see_row, &s, &err), err);
    journal_close(j);
    return s.n;
}

static struct journal *opened(void)
{
    struct journal *j;
    struct bt_error err;

    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    return j;
}

static void fill_and_free(void)
{
    struct journal *j = opened();
    struct bt_error err;
    uint64_t acked = 0;
    uint64_t while_low = 0;

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
    assert_true(while_low > 10); /* the log gave running work enough room */
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

/* What others free is theirs again at once: nothing here may depend on it. */
static void start_again_and_again(void)
{
    struct journal *j = opened();
    struct bt_error err;
    uint64_t acked = 0;

    assert_ok(put(j, &err), err);
    acked++;
    for (int i = 0; i < 20; i++) {
        fill("of_others", true);
        journal_close(j);
        fill("of_others", true);
        j = opened();
        fill("of_others", true);
        assert_true(journal_storage_low(j));
        assert_int_equal(journal_committed_seq(j), acked);
        if (i % 4 == 0) {
            assert_ok(put(j, &err), err);
            acked++;
        }
    }
    fill("of_others", false);
    assert_false(journal_storage_low(j));
    assert_ok(put(j, &err), err);
    journal_close(j);
    assert_int_equal(stored(), acked + 1);
}

/* The end of the log is announced while there is room for what was begun. */
static void stop_in_time(void)
{
    struct journal *j = opened();
    struct bt_error err;
    uint64_t acked = 0;
    uint64_t boot = journal_boot(j);
    uint32_t begun = 0;

    fill("of_others", true);
    while (journal_room(j) != JOURNAL_FULL) {
        assert_ok(put(j, &err), err);
        acked++;
    }
    for (; begun < 4; begun++) {
        assert_ok(put(j, &err), err);
        acked++;
    }
    assert_int_equal(journal_room(j), JOURNAL_FULL);
    for (int i = 0; i < 10; i++) { /* starts that write nothing, as often as you like */
        journal_close(j);
        fill("of_others", true);
        j = opened();
        assert_int_equal(journal_room(j), JOURNAL_FULL);
        assert_int_equal(journal_boot(j), boot + 1); /* it was not used */
        assert_int_equal(journal_committed_seq(j), acked);
    }
    fill("of_others", false);
    assert_int_equal(journal_room(j), JOURNAL_ROOM);
    assert_ok(put(j, &err), err);
    journal_close(j);
    j = opened();
    assert_int_equal(journal_boot(j), boot + 2);
    journal_close(j);
    assert_int_equal(stored(), acked + 1);
}

/* kill -9 in the middle of it, with the copying of the log under way. */
static void die_while_full(void)
{
    uint64_t acked = 0;

    stored();
    for (int i = 0; i < 6; i++) {
        int ends[2];
        int status;
        pid_t writer;

        assert_int_equal(pipe(ends), 0);
        writer = fork();
        assert_true(writer >= 0);
        if (writer == 0) {
            struct journal *j;
            struct bt_error err;
            uint64_t seq;
            close(ends[0]);
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            j = opened();
            fill("of_others", true);
            while (journal_room(j) != JOURNAL_FULL && put(j, &err) == BT_OK) {
                seq = journal_committed_seq(j);
                (void)!write(ends[1], &seq, sizeof seq);
            }
            close(ends[1]); /* the next was not allowed */
            for (;;) {
                pause();
            }
        }
        close(ends[1]);
        for (int n = 0; n < 3 + i; n++) {
            if (read(ends[0], &acked, sizeof acked) != (ssize_t)sizeof acked) {
                break;
            }
        }
        assert_int_equal(kill(writer, SIGKILL), 0);
        while (read(ends[0], &acked, sizeof acked) == (ssize_t)sizeof acked) {
        }
        close(ends[0]);
        assert_int_equal(waitpid(writer, &status, 0), writer);
        assert_in_range(stored(), acked, acked + 1); /* one may be stored and not acknowledged */
        fill("of_others", i % 2 == 0);
    }
}

/* A journal of version 2, with no room for its copy. */
static void migrate_without_room(void)
{
    static char bytes[200000];
    struct journal *j = NULL;
    struct bt_error err;
    struct stat st;
    char path[512];
    size_t n;
    FILE *f;

    f = fopen(GOLDEN_DIR "/journal-v2.db", "rb");
    assert_non_null(f);
    n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    (void)snprintf(path, sizeof path, "%s/journal.db", dir);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    (void)fclose(f);
    fill("of_others", true);
    assert_int_equal(journal_open_sqlite(dir, &OPT, &j, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, dir));
    assert_non_null(strstr(err.msg, "free some room"));
    (void)snprintf(path, sizeof path, "%s/journal.db.v2", dir);
    assert_int_equal(stat(path, &st), -1);
    fill("of_others", false);
    j = opened();
    journal_close(j);
    assert_int_equal(stat(path, &st), 0);
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

/* Runs body in a process of its own, on a disk of 4 MiB. */
static void on_a_small_disk(void (*body)(void))
{
    int status = 0;
    pid_t child;

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
        log_setup(LOG_ERR, no_log, NULL);
        assert_int_equal(mount("tmpfs", dir, "tmpfs", 0, "size=4m"), 0);
        body();
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

static void a_full_disk_loses_nothing_and_the_journal_comes_back(void **state)
{
    (void)state;
    on_a_small_disk(fill_and_free);
}

static void a_start_on_a_full_disk_needs_no_block(void **state)
{
    (void)state;
    on_a_small_disk(start_again_and_again);
}

static void the_end_of_the_room_is_announced_before_it_comes(void **state)
{
    (void)state;
    on_a_small_disk(stop_in_time);
}

static void a_migration_without_room_for_a_copy_is_refused(void **state)
{
    (void)state;
    on_a_small_disk(migrate_without_room);
}

static void kill_9_on_a_full_disk_loses_nothing(void **state)
{
    (void)state;
    on_a_small_disk(die_while_full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_loses_nothing_and_the_journal_comes_back),
        cmocka_unit_test(a_start_on_a_full_disk_needs_no_block),
        cmocka_unit_test(the_end_of_the_room_is_announced_before_it_comes),
        cmocka_unit_test(a_migration_without_room_for_a_copy_is_refused),
        cmocka_unit_test(kill_9_on_a_full_disk_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
