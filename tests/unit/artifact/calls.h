/*
 * The calls of the system that a room makes for files, in the hands of its test: each is told with
 * its arguments, one of them fails or takes less than it was given, and descriptors are counted.
 * For one source of a program that is linked with -Wl,--wrap= for each of them. One thread.
 */
#ifndef TEST_ARTIFACT_CALLS_H
#define TEST_ARTIFACT_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "tests/support/cmocka.h"

int __real_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *name, int flags, ...);
int __real_mkdir(const char *path, mode_t mode);
int __real_mkostemp(char *path, int flags);
int __real_close(int fd);
ssize_t __real_read(int fd, void *at, size_t n);
ssize_t __real_pread(int fd, void *at, size_t n, off_t from);
ssize_t __real_write(int fd, const void *at, size_t n);
ssize_t __real_pwrite(int fd, const void *at, size_t n, off_t to);
int __real_ftruncate(int fd, off_t n);
int __real_renameat(int from, const char *old, int to, const char *name);
int __real_unlinkat(int dir, const char *name, int flags);
int __real_unlink(const char *path);
int __real_fstat(int fd, struct stat *ret);
int __real_fstatat(int dir, const char *name, struct stat *ret, int flags);
int __real_fstatvfs(int fd, struct statvfs *ret);
off_t __real_lseek(int fd, off_t to, int from);
uid_t __real_geteuid(void);

enum { CALLS_FDS = 64 };

static struct {
    bool watched;
    unsigned made, failed;
    unsigned fails, times; /* the first that fails, and how many do; 0 = none */
    int errnum;
    unsigned zero;                   /* the open that gets descriptor 0; 0 = none does */
    size_t few;                      /* bytes that a read or a write takes at most; 0 = all */
    uint64_t longer;                 /* bytes that a file has less than is said */
    uint64_t disk;                   /* bytes that are free; 0 = as it is */
    unsigned fds[CALLS_FDS], opened; /* descriptors that are open: which open it was */
    const char *top;                 /* what is told as TOP */
    struct buf told;
    char name[64]; /* of the call that failed */
} calls;

/* The text with TOP, and with the names that are new each time made the same. */
static void calls_add(struct buf *out, const char *text)
{
    const size_t n = strlen(calls.top);

    while (*text != 0) {
        if (strncmp(text, calls.top, n) == 0) {
            buf_add_cstr(out, "TOP");
            text += n;
        } else if (strncmp(text, ".part-", 6) == 0) {
            buf_add_cstr(out, ".part-SUM");
            text += 6 + strspn(text + 6, "0123456789abcdef");
        } else if (text[0] == '.' && text[1] >= '0' && text[1] <= '9' && strstr(text, ".tmp")) {
            buf_add_cstr(out, ".NEW.tmp");
            text = strstr(text, ".tmp") + 4;
        } else if (strncmp(text, ".baton-", 7) == 0) {
            buf_add_cstr(out, ".baton-NEW");
            text += 13;
        } else {
            buf_add_byte(out, (uint8_t)*text++);
        }
    }
}

/* Tells a call: a name, and what it is given. Whether it is to fail. */
static bool calls_fail(const char *fmt, ...) BT_PRINTF(1, 2);
static bool calls_fail(const char *fmt, ...)
{
    char line[1000];
    va_list args;

    if (!calls.watched) {
        return false;
    }
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    calls.made++;
    buf_printf(&calls.told, "%u ", calls.made);
    calls_add(&calls.told, line);
    buf_add_byte(&calls.told, '\n');
    if (calls.fails == 0 || calls.made < calls.fails || calls.made >= calls.fails + calls.times) {
        return false;
    }
    calls.failed++;
    (void)snprintf(calls.name, sizeof calls.name, "%.*s", (int)strcspn(line, " "), line);
    errno = calls.errnum;
    return true;
}

/* The name of a descriptor: the number of its open. */
static unsigned calls_fd(int fd)
{
    return fd >= 0 && fd < CALLS_FDS ? calls.fds[fd] : 0;
}

static int calls_opened(int fd)
{
    if (calls.watched && fd >= 0) {
        if (++calls.opened == calls.zero) {
            assert_int_equal(dup2(fd, 0), 0);
            assert_int_equal(__real_close(fd), 0);
            fd = 0;
        }
        assert_true(fd < CALLS_FDS);
        calls.fds[fd] = calls.opened;
    }
    return fd;
}

static const char *calls_flags(int flags)
{
    static const struct {
        int bit;
        const char *name;
    } bits[] = {{O_WRONLY, " write"},          {O_RDWR, " read and write"},
                {O_CREAT, " create"},          {O_EXCL, " new"},
                {O_NOFOLLOW, " no link"},      {O_NONBLOCK, " at once"},
                {O_CLOEXEC, " not inherited"}, {O_TMPFILE, " without a name"},
                {O_DIRECTORY, " directory"}};
    static char text[200];

    text[0] = 0;
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        if ((flags & bits[i].bit) == bits[i].bit) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s", bits[i].name);
            flags &= ~bits[i].bit;
        }
    }
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.0d",
                   flags == 0 ? "" : " other ", flags);
    return text;
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    unsigned mode = 0;

    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, unsigned);
        va_end(args);
    }
    return calls_fail("open %s%s %o", path, calls_flags(flags), mode)
               ? -1
               : calls_opened(__real_open(path, flags, mode));
}

int __wrap_openat(int dir, const char *name, int flags, ...);
int __wrap_openat(int dir, const char *name, int flags, ...)
{
    unsigned mode = 0;

    if ((flags & O_CREAT) != 0) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, unsigned);
        va_end(args);
    }
    return calls_fail("openat #%u %s%s %o", calls_fd(dir), name, calls_flags(flags), mode)
               ? -1
               : calls_opened(__real_openat(dir, name, flags, mode));
}

int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return calls_fail("mkdir %s %o", path, mode) ? -1 : __real_mkdir(path, mode);
}

int __wrap_mkostemp(char *path, int flags);
int __wrap_mkostemp(char *path, int flags)
{
    return calls_fail("mkostemp %s%s", path, calls_flags(flags))
               ? -1
               : calls_opened(__real_mkostemp(path, flags));
}

/* Linux closes in any case. */
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    const bool fails = calls_fail("close #%u", calls_fd(fd));

    if (fd >= 0 && fd < CALLS_FDS) {
        assert_true(!calls.watched || calls.fds[fd] != 0);
        calls.fds[fd] = 0;
    }
    return __real_close(fd) < 0 || fails ? -1 : 0;
}

static size_t calls_few(size_t n)
{
    return calls.watched && calls.few > 0 && n > calls.few ? calls.few : n;
}

ssize_t __wrap_read(int fd, void *at, size_t n);
ssize_t __wrap_read(int fd, void *at, size_t n)
{
    return calls_fail("read #%u %zu", calls_fd(fd), n) ? -1 : __real_read(fd, at, calls_few(n));
}

ssize_t __wrap_pread(int fd, void *at, size_t n, off_t from);
ssize_t __wrap_pread(int fd, void *at, size_t n, off_t from)
{
    return calls_fail("pread #%u %zu from %lld", calls_fd(fd), n, (long long)from)
               ? -1
               : __real_pread(fd, at, calls_few(n), from);
}

ssize_t __wrap_write(int fd, const void *at, size_t n);
ssize_t __wrap_write(int fd, const void *at, size_t n)
{
    return calls_fail("write #%u %zu", calls_fd(fd), n) ? -1 : __real_write(fd, at, calls_few(n));
}

ssize_t __wrap_pwrite(int fd, const void *at, size_t n, off_t to);
ssize_t __wrap_pwrite(int fd, const void *at, size_t n, off_t to)
{
    return calls_fail("pwrite #%u %zu to %lld", calls_fd(fd), n, (long long)to)
               ? -1
               : __real_pwrite(fd, at, calls_few(n), to);
}

/* What is durable is the disk's: these only tell. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    return calls_fail("fsync #%u", calls_fd(fd)) ? -1 : 0;
}

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    return calls_fail("fdatasync #%u", calls_fd(fd)) ? -1 : 0;
}

int __wrap_ftruncate(int fd, off_t n);
int __wrap_ftruncate(int fd, off_t n)
{
    return calls_fail("ftruncate #%u %lld", calls_fd(fd), (long long)n) ? -1
                                                                        : __real_ftruncate(fd, n);
}

int __wrap_renameat(int from, const char *old, int to, const char *name);
int __wrap_renameat(int from, const char *old, int to, const char *name)
{
    return calls_fail("renameat #%u %s to #%u %s", calls_fd(from), old, calls_fd(to), name)
               ? -1
               : __real_renameat(from, old, to, name);
}

int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags)
{
    return calls_fail("unlinkat #%u %s %d", calls_fd(dir), name, flags)
               ? -1
               : __real_unlinkat(dir, name, flags);
}

int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    return calls_fail("unlink %s", path) ? -1 : __real_unlink(path);
}

int __wrap_fstat(int fd, struct stat *ret);
int __wrap_fstat(int fd, struct stat *ret)
{
    const int code = calls_fail("fstat #%u", calls_fd(fd)) ? -1 : __real_fstat(fd, ret);

    if (code == 0 && calls.watched) {
        ret->st_size += (off_t)calls.longer;
    }
    return code;
}

int __wrap_fstatat(int dir, const char *name, struct stat *ret, int flags);
int __wrap_fstatat(int dir, const char *name, struct stat *ret, int flags)
{
    return calls_fail("fstatat #%u %s%s", calls_fd(dir), name,
                      flags == AT_SYMLINK_NOFOLLOW ? " no link" : "")
               ? -1
               : __real_fstatat(dir, name, ret, flags);
}

int __wrap_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
    const int code = calls_fail("fstatvfs #%u", calls_fd(fd)) ? -1 : __real_fstatvfs(fd, ret);

    if (code == 0 && calls.watched && calls.disk > 0) {
        *ret = (struct statvfs){.f_frsize = 4, .f_bavail = calls.disk / 4, .f_bfree = UINT32_MAX};
    }
    return code;
}

off_t __wrap_lseek(int fd, off_t to, int from);
off_t __wrap_lseek(int fd, off_t to, int from)
{
    return calls_fail("lseek #%u %lld %d", calls_fd(fd), (long long)to, from)
               ? -1
               : __real_lseek(fd, to, from);
}

/* It cannot fail: the process is another user's instead. */
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return __real_geteuid() + (calls_fail("geteuid") ? 1 : 0);
}

/* From now on; the calls from the fails-th on fail, so many times. */
static void calls_begin(const char *top, unsigned fails, unsigned times, int errnum)
{
    buf_clear(&calls.told);
    calls.top = top;
    calls.fails = fails;
    calls.times = times;
    calls.errnum = errnum;
    calls.made = calls.failed = calls.opened = 0;
    calls.name[0] = 0;
    memset(calls.fds, 0, sizeof calls.fds);
    calls.watched = true;
}

/* Fails the test when a descriptor is open that was opened since. Whether a call has failed. */
static bool calls_end(void)
{
    calls.watched = false;
    for (int i = 0; i < CALLS_FDS; i++) {
        if (calls.fds[i] != 0) {
            fail_msg("left open when call %u, %s, fails:\n%s", calls.fails, calls.name,
                     buf_cstr(&calls.told));
        }
    }
    return calls.failed > 0;
}
#endif
