/* How much room the disk has, as the journal asks and understands it (G20); the disk is a number
 * here. On a small disk of its own: journal_full. */
#include "tests/unit/journal/journal_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "protocol/base/clock.h"
#include "supervisor/journal/port.h"
#include "supervisor/journal/sqlite_internal.h"

#define KIB 1024ull
#define MARGIN (256 * KIB)
#define AMPLE (4ull << 30)

enum { BALLAST = 512 * 1024, LAST = BALLAST / 4, BODY = 1000 };

int __wrap_statvfs(const char *path, struct statvfs *ret);
msec __wrap_clock_mono_ms(void);
int __wrap_posix_fallocate(int fd, off_t from, off_t n);
int __real_posix_fallocate(int fd, off_t from, off_t n);

static uint64_t room; /* bytes that are free; UINT64_MAX: that cannot be known */
static uint32_t looks;
static msec now;
static uint64_t largest; /* that can be allocated */
static int otherwise;    /* the error above it */
static uint32_t allocations;

int __wrap_statvfs(const char *path, struct statvfs *ret)
{
    (void)path;
    looks++;
    *ret =
        (struct statvfs){.f_bavail = room / 16, .f_bfree = room, .f_frsize = 16, .f_bsize = 4096};
    errno = EIO;
    return room == UINT64_MAX ? -1 : 0;
}

msec __wrap_clock_mono_ms(void)
{
    return now;
}

int __wrap_posix_fallocate(int fd, off_t from, off_t n)
{
    allocations++;
    return (uint64_t)n > largest ? otherwise : __real_posix_fallocate(fd, from, n);
}

static int open_one(void **state)
{
    struct fixture *f;

    room = AMPLE;
    now = 1000000;
    largest = UINT64_MAX;
    otherwise = ENOSPC;
    looks = 0;
    allocations = 0;
    if (fixture_sqlite(state) != 0) {
        return -1;
    }
    f = *state;
    f->opt.ballast_bytes = BALLAST;
    f->opt.checkpoint_pages = 100000; /* the log only grows */
    fixture_reopen(f);
    return 0;
}

static struct sqlite_journal *own(const struct fixture *f)
{
    return sqlite_of(f->j);
}

/* A batch with one row of so many bytes; returns what it needs beyond the margin. */
static uint64_t put(const struct fixture *f, size_t bytes, uint64_t extra)
{
    static char body[200000];
    struct journal_row row = {
        .seq = journal_next_seq(f->j), .is_public = true, .body = body, .body_len = bytes};
    struct bt_error err;
    uint64_t batch;

    assert_ok(journal_append(f->j, &row, &err), err);
    batch = 4 * own(f)->sql.batch_bytes;
    assert_true(batch >= 4 * bytes);
    if (extra != UINT64_MAX) {
        room = MARGIN + (batch + 15) / 16 * 16 + extra;
    }
    assert_ok(journal_commit(f->j, &err), err);
    return batch;
}

static void ample_room_is_looked_at_once_a_second(void **state)
{
    struct fixture *f = *state;

    (void)put(f, BODY, UINT64_MAX);
    looks = 0;
    now += 999;
    (void)put(f, BODY, UINT64_MAX);
    assert_int_equal(looks, 0);
    now += 1;
    (void)put(f, BODY, UINT64_MAX);
    assert_int_equal(looks, 1);
    (void)put(f, BODY, UINT64_MAX);
    assert_int_equal(looks, 1);
    now += 1000;
    room = AMPLE - 16;
    for (uint32_t i = 1; i < 4; i++) { /* less is looked at by each commit */
        (void)put(f, BODY, UINT64_MAX);
        assert_int_equal(looks, 1 + i);
    }
    assert_false(f->j->storage_low);
}

static void a_commit_that_may_not_fit_is_the_end_of_the_room(void **state)
{
    struct fixture *f = *state;

    now += 1000;
    (void)put(f, BODY, 0);
    assert_false(f->j->storage_low);
    (void)put(f, 50 * BODY, 0);
    assert_false(f->j->storage_low);
    (void)put(f, BODY, (uint64_t)-16);
    assert_true(f->j->storage_low);
    assert_false(f->j->storage_full);
    assert_int_equal(journal_room(f->j), JOURNAL_LOW);
}

static void room_is_there_again_when_it_is_twice_what_is_needed(void **state)
{
    struct fixture *f = *state;

    now += 1000;
    (void)put(f, BODY, (uint64_t)-16);
    assert_true(f->j->storage_low);
    room = 2 * MARGIN - 16;
    assert_int_equal(journal_room(f->j), JOURNAL_LOW);
    room = UINT64_MAX; /* who cannot know it changes nothing */
    assert_int_equal(journal_room(f->j), JOURNAL_LOW);
    room = 2 * MARGIN;
    assert_int_equal(journal_room(f->j), JOURNAL_ROOM);
    assert_false(f->j->storage_low);
    room = UINT64_MAX;
    (void)put(f, BODY, UINT64_MAX);
    assert_int_equal(journal_room(f->j), JOURNAL_ROOM);
}

/* The log was allocated in advance, and goes on without a block of the disk. */
static void the_last_quarter_of_the_log_is_for_what_was_begun(void **state)
{
    struct fixture *f = *state;
    bool was_full = false;

    now += 1000;
    room = 0;
    for (int i = 0; i < 200 && !was_full; i++) {
        const uint64_t used = 32 + (uint64_t)own(f)->wal_frames * (4096 + 24);
        const uint64_t left = BALLAST > used ? BALLAST - used : 0;
        const uint64_t batch = put(f, 5 * BODY, UINT64_MAX);
        was_full = left < LAST + batch;
        assert_true(f->j->storage_low);
        assert_int_equal(f->j->storage_full, was_full);
    }
    assert_true(was_full);
    (void)put(f, 5 * BODY, UINT64_MAX);
    assert_int_equal(journal_room(f->j), JOURNAL_FULL);
    room = LAST - 16; /* with what the log has it is enough for another one */
    assert_int_equal(journal_room(f->j), JOURNAL_LOW);
    room = 64 * 1024 * KIB;
    assert_int_equal(journal_room(f->j), JOURNAL_ROOM);
}

static void reopen_with(struct fixture *f, uint64_t most, int error)
{
    largest = most;
    otherwise = error;
    f->opt.ballast_bytes = 2 * BALLAST;
    fixture_reopen(f);
}

static void a_log_that_cannot_be_allocated_whole_is_low_until_it_can(void **state)
{
    struct fixture *f = *state;

    reopen_with(f, BALLAST, ENOSPC);
    assert_int_equal(own(f)->reserved, BALLAST);
    assert_true(f->j->storage_low);
    largest = UINT64_MAX;
    allocations = 0;
    room = 2 * MARGIN + BALLAST - 16;
    assert_int_equal(journal_room(f->j), JOURNAL_LOW);
    assert_int_equal(allocations, 0);
    room = 2 * MARGIN + BALLAST;
    assert_int_equal(journal_room(f->j), JOURNAL_ROOM);
    assert_int_equal(own(f)->reserved, 2 * BALLAST);
}

static void less_than_128_kib_are_no_log_of_their_own(void **state)
{
    struct fixture *f = *state;

    f->opt.ballast_bytes = BALLAST;
    fixture_reopen(f);
    assert_int_equal(own(f)->reserved, BALLAST);
    f->opt.ballast_bytes = 0; /* the file of the log begins anew */
    fixture_reopen(f);
    assert_int_equal(own(f)->reserved, 0);
    reopen_with(f, 128 * KIB, ENOSPC);
    assert_int_equal(own(f)->reserved, 128 * KIB);
    f->opt.ballast_bytes = 0;
    fixture_reopen(f);
    reopen_with(f, 128 * KIB - 1, EDQUOT);
    assert_int_equal(own(f)->reserved, 0);
    assert_true(f->j->storage_low);
}

/* A file system that allocates nothing in advance: what there is has to do. */
static void another_error_than_no_room_is_no_want_of_room(void **state)
{
    struct fixture *f = *state;

    f->opt.ballast_bytes = 0;
    fixture_reopen(f);
    reopen_with(f, 0, EOPNOTSUPP);
    assert_int_equal(own(f)->reserved, 0);
    assert_int_equal(own(f)->ballast_bytes, 0);
    assert_false(f->j->storage_low);
    allocations = 0;
    now += 1000;
    (void)put(f, BODY, (uint64_t)-16);
    assert_true(f->j->storage_low);
    room = 2 * MARGIN;
    assert_int_equal(journal_room(f->j), JOURNAL_ROOM);
    assert_int_equal(allocations, 0); /* it is not tried again */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_one, fixture_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ample_room_is_looked_at_once_a_second),
        TEST(a_commit_that_may_not_fit_is_the_end_of_the_room),
        TEST(room_is_there_again_when_it_is_twice_what_is_needed),
        TEST(the_last_quarter_of_the_log_is_for_what_was_begun),
        TEST(a_log_that_cannot_be_allocated_whole_is_low_until_it_can),
        TEST(less_than_128_kib_are_no_log_of_their_own),
        TEST(another_error_than_no_room_is_no_want_of_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
