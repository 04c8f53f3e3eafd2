/* The logs of agents: at their cap they are put away, whatever the file system can do. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "supervisor/spawn/spawner_internal.h"
#include "tests/support/cmocka.h"

enum { CAP = 40000 };

static struct spawner *s;
static struct child *child;
static char dir[64];
static char text[3 * CAP + 1]; /* numbers, so that each part is another one */

static unsigned long free_bytes; /* of the disk */
static int copy_errno;           /* 0 = the kernel's own copy */
static bool is_full;             /* nothing can be written, but for short notes */

ssize_t __real_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t n,
                               unsigned flags);
ssize_t __wrap_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t n,
                               unsigned flags);
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);

ssize_t __wrap_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t n,
                               unsigned flags)
{
    if (copy_errno == 0) {
        return __real_copy_file_range(in, in_at, out, out_at, n, flags);
    }
    errno = copy_errno;
    return -1;
}

int __wrap_fstatvfs(int fd, struct statvfs *ret);

int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
    assert_int_equal(fd, s->state_dir);
    *ret = (struct statvfs){.f_frsize = 1, .f_bavail = free_bytes};
    return 0;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    if (is_full && n > 200) {
        errno = ENOSPC;
        return -1;
    }
    return __real_write(fd, bytes, n);
}

static int arrange(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i += 8) {
        (void)snprintf(text + i, 9, "%07zu\n", i);
    }
    s = calloc(1, sizeof *s);
    assert_non_null(s);
    (void)snprintf(dir, sizeof dir, "/tmp/baton-logs-XXXXXX");
    assert_non_null(mkdtemp(dir));
    s->state_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(s->state_dir >= 0);
    s->children_n = 1;
    child = &s->children[0];
    *child =
        (struct child){.state = CHILD_RUNNING, .name = "calc-1", .log_bytes = CAP, .log_files = 2};
    copy_errno = 0;
    is_full = false;
    free_bytes = 1024 * 1024;
    return 0;
}

/* -1: there is none. */
static long size_of(const char *name)
{
    struct stat st;

    return fstatat(s->state_dir, name, &st, 0) == 0 ? (long)st.st_size : -1;
}

static int clean(void **state)
{
    static const char *const names[] = {"log/calc-1.log", "log/calc-1.log.1", "log/calc-1.log.2",
                                        "log/calc-1.log.3"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        (void)unlinkat(s->state_dir, names[i], 0);
    }
    (void)unlinkat(s->state_dir, "log", AT_REMOVEDIR);
    (void)close(s->state_dir);
    free(s);
    return rmdir(dir);
}

/* The agent writes so many bytes of the text, from there on. */
static void writes(size_t from, size_t n)
{
    const int fd = log_open(s, child);

    assert_true(fd >= 0);
    assert_int_equal(__real_write(fd, text + from, n), n);
    assert_int_equal(close(fd), 0);
}

static void expect_file(const char *name, const char *want, size_t n)
{
    static char got[sizeof text];
    const int fd = openat(s->state_dir, name, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, got, sizeof got), n);
    assert_memory_equal(got, want, n);
    assert_int_equal(close(fd), 0);
}

static void a_log_is_put_away_at_its_cap_and_not_a_byte_before(void **state)
{
    (void)state;
    writes(0, CAP - 1);
    logs_look(s, 1000);
    assert_int_equal(size_of("log/calc-1.log"), CAP - 1);
    assert_int_equal(size_of("log/calc-1.log.1"), -1);
    writes(CAP - 1, 1); /* nor when its process starts again */
    assert_int_equal(size_of("log/calc-1.log.1"), -1);
    logs_look(s, 2000);
    assert_int_equal(size_of("log/calc-1.log"), 0);
    expect_file("log/calc-1.log.1", text, CAP);
}

/* An agent may write faster than anybody looks: an older log has at most twice the cap. */
static void of_more_than_twice_the_cap_only_the_end_is_kept(void **state)
{
    char note[64];

    (void)state;
    writes(0, 2 * CAP);
    logs_look(s, 1000);
    expect_file("log/calc-1.log.1", text, 2 * CAP);
    assert_int_equal(size_of("log/calc-1.log"), 0);
    for (int i = 0; i < 2; i++) { /* while it runs, and when it starts */
        writes(0, 2 * CAP + 8);
        if (i == 0) {
            logs_look(s, 3000);
        } else {
            (void)close(log_open(s, child));
        }
        expect_file("log/calc-1.log.1", text + CAP + 8, CAP);
        (void)snprintf(note, sizeof note, "baton: %d bytes of this log were not kept\n", CAP + 8);
        expect_file("log/calc-1.log", note, strlen(note));
        assert_int_equal(unlinkat(s->state_dir, "log/calc-1.log", 0), 0);
    }
}

static void on_a_full_disk_logs_give_way_before_their_cap(void **state)
{
    char note[64];

    (void)state;
    writes(0, CAP);
    logs_look(s, 1000);
    writes(0, CAP / 8);
    logs_look(s, 3000); /* there is room */
    assert_int_equal(size_of("log/calc-1.log"), CAP / 8);
    free_bytes--;
    logs_look(s, 5000);
    (void)snprintf(note, sizeof note, "baton: %d bytes of this log were not kept\n", CAP / 8);
    expect_file("log/calc-1.log", note, strlen(note));
    assert_int_equal(size_of("log/calc-1.log.1"), -1);
    assert_int_equal(unlinkat(s->state_dir, "log/calc-1.log", 0), 0);
    writes(0, CAP / 8 - 1); /* it would not help */
    logs_look(s, 7000);
    assert_int_equal(size_of("log/calc-1.log"), CAP / 8 - 1);
}

static void a_full_log_is_put_away_when_its_process_starts(void **state)
{
    (void)state;
    writes(0, CAP);
    writes(0, 5);
    expect_file("log/calc-1.log", text, 5);
    expect_file("log/calc-1.log.1", text, CAP);
    child->log_files = 0; /* nothing is kept */
    writes(0, CAP);
    writes(7, 1);
    expect_file("log/calc-1.log", text + 7, 1);
    expect_file("log/calc-1.log.1", text, CAP);
}

static void older_logs_make_room_and_the_oldest_goes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        writes(8 * i, CAP);
        logs_look(s, 1000 * (i + 1));
    }
    expect_file("log/calc-1.log.1", text + 16, CAP);
    expect_file("log/calc-1.log.2", text + 8, CAP);
    assert_int_equal(size_of("log/calc-1.log.3"), -1);
}

static void a_log_is_copied_where_the_kernel_cannot(void **state)
{
    static const int reasons[] = {EXDEV, EINVAL, EOPNOTSUPP, ENOSYS};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        copy_errno = reasons[i];
        writes(8 * i, CAP + 8 * i);
        logs_look(s, 1000 * (i + 1));
        expect_file("log/calc-1.log.1", text + 8 * i, CAP + 8 * i);
        assert_int_equal(size_of("log/calc-1.log"), 0);
    }
}

/* Logs give way; the log says how much of it was lost. */
static void without_room_the_old_logs_go_and_the_loss_is_said(void **state)
{
    static const char said[] = "baton: 40000 bytes of this log were not kept\n";

    (void)state;
    for (int i = 0; i < 2; i++) {
        copy_errno = 0;
        is_full = false;
        writes(0, CAP);
        logs_look(s, 10000 * (msec)i + 1000);
        assert_int_equal(size_of("log/calc-1.log.1"), CAP);
        copy_errno = i == 0 ? ENOSPC : EXDEV;
        is_full = true;
        writes(0, CAP);
        logs_look(s, 10000 * (msec)i + 2000);
        assert_int_equal(size_of("log/calc-1.log.1"), -1);
        assert_int_equal(size_of("log/calc-1.log.2"), -1);
        expect_file("log/calc-1.log", said, sizeof said - 1);
        assert_int_equal(unlinkat(s->state_dir, "log/calc-1.log", 0), 0);
    }
    child->log_files = 0; /* nothing is to be kept, so nothing is lost */
    writes(0, CAP);
    logs_look(s, 30000);
    assert_int_equal(size_of("log/calc-1.log"), 0);
}

/* Once a second, and each 50 ms while one grows by more than an eighth of its cap. */
/* Somebody has removed it, or put something else in its place. */
static void a_log_that_is_none_is_passed_by(void **state)
{
    (void)state;
    child->log_seen = 7;
    logs_look(s, 1);
    assert_int_equal(child->log_seen, 7);
    (void)mkdirat(s->state_dir, "log", 0700);
    assert_int_equal(mkdirat(s->state_dir, "log/calc-1.log", 0700), 0);
    logs_look(s, 1000000);
    assert_int_equal(child->log_seen, 7);
    assert_int_equal(unlinkat(s->state_dir, "log/calc-1.log", AT_REMOVEDIR), 0);
}

static void logs_are_looked_at_more_often_while_one_grows_fast(void **state)
{
    (void)state;
    writes(0, CAP / 8);
    logs_look(s, 1000);
    assert_int_equal(s->logs_due, 2000);
    writes(0, CAP / 8 + 1);
    logs_look(s, 1999);
    assert_int_equal(s->logs_due, 2000);
    logs_look(s, 2000);
    assert_int_equal(s->logs_due, 2050);
    logs_look(s, 2050);
    assert_int_equal(s->logs_due, 3050);
    child->state = CHILD_GONE; /* who has ended writes no more */
    writes(0, CAP / 2);
    logs_look(s, 3050);
    assert_int_equal(s->logs_due, 4050);
}

#define RULE(f) cmocka_unit_test_setup_teardown(f, arrange, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_log_is_put_away_at_its_cap_and_not_a_byte_before),
        RULE(of_more_than_twice_the_cap_only_the_end_is_kept),
        RULE(on_a_full_disk_logs_give_way_before_their_cap),
        RULE(a_full_log_is_put_away_when_its_process_starts),
        RULE(older_logs_make_room_and_the_oldest_goes),
        RULE(a_log_is_copied_where_the_kernel_cannot),
        RULE(without_room_the_old_logs_go_and_the_loss_is_said),
        RULE(a_log_that_is_none_is_passed_by),
        RULE(logs_are_looked_at_more_often_while_one_grows_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
