#include "supervisor/journal/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_LEN = 4096, DIGITS_MAX = 20 };

static char *line_at(struct faults *f, uint32_t i)
{
    return f->lines + (size_t)i * FAULT_LINE_BYTES;
}

static bool plan_of(const char *line, struct uuid *ret)
{
    return line[FAULT_LINE_BYTES - 1] == '\n' && line[UUID_TEXT_LEN] == ' ' &&
           uuid_parse((struct str){line, UUID_TEXT_LEN}, ret);
}

static void clear_from(struct faults *f, uint32_t i)
{
    for (f->n = i; i < FAULTS_MAX; i++) {
        memset(line_at(f, i), ' ', FAULT_LINE_BYTES - 1);
        line_at(f, i)[FAULT_LINE_BYTES - 1] = '\n';
    }
}

/* Leaves out what is no line, and the oldest one of a full file: there is always room for one. */
static void tidy(struct faults *f)
{
    struct uuid plan;
    uint32_t n = 0;

    for (uint32_t i = 0; i < FAULTS_MAX; i++) {
        if (plan_of(line_at(f, i), &plan)) {
            memmove(line_at(f, n++), line_at(f, i), FAULT_LINE_BYTES);
        }
    }
    if (n == FAULTS_MAX) {
        memmove(f->lines, line_at(f, 1), sizeof f->lines - FAULT_LINE_BYTES);
        n--;
    }
    clear_from(f, n);
}

static enum bt_code load(int fd, const char *path, struct faults *f, struct bt_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return err_set(err, BT_INVALID, "%s is not a regular file", path);
    }
    if (pread(fd, f->lines, sizeof f->lines, 0) < 0) {
        return err_errno(err, errno, "%s", path);
    }
    return BT_OK;
}

static bool path_of(const char *dir, char path[PATH_LEN])
{
    const int n = snprintf(path, PATH_LEN, "%s/faults", dir);

    return n > 0 && n < PATH_LEN;
}

static void write_all(struct faults *f)
{
    if (f->fd >= 0) {
        (void)!pwrite(f->fd, f->lines, sizeof f->lines, 0);
    }
}

enum bt_code faults_read(const char *dir, struct faults *ret, struct bt_error *err)
{
    char path[PATH_LEN];
    enum bt_code code = BT_OK;
    int fd;

    *ret = (struct faults){.fd = -1};
    if (!path_of(dir, path)) {
        return err_set(err, BT_INVALID, "the path of the state directory is too long");
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        clear_from(ret, 0);
        return errno == ENOENT ? BT_OK : err_errno(err, errno, "%s", path);
    }
    code = load(fd, path, ret, err);
    (void)close(fd);
    tidy(ret);
    return code;
}

enum bt_code faults_open(const char *dir, struct faults *ret, struct bt_error *err)
{
    char path[PATH_LEN];
    enum bt_code code = faults_read(dir, ret, err);
    int fd;

    if (code != BT_OK) {
        return code;
    }
    (void)path_of(dir, path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    /* What is after the page is none of it. */
    if (pwrite(fd, ret->lines, sizeof ret->lines, 0) != (ssize_t)sizeof ret->lines ||
        ftruncate(fd, (off_t)sizeof ret->lines) != 0) {
        code = err_errno(err, errno != 0 ? errno : ENOSPC, "%s", path);
        (void)close(fd);
        return code;
    }
    ret->fd = fd;
    return BT_OK;
}

void faults_close(struct faults *f)
{
    if (f->fd >= 0) {
        (void)close(f->fd);
        f->fd = -1;
    }
}

struct uuid faults_plan(const struct faults *f, uint32_t i)
{
    struct uuid plan = {{0}};

    (void)plan_of(f->lines + (size_t)i * FAULT_LINE_BYTES, &plan);
    return plan;
}

struct str faults_line(const struct faults *f, uint32_t i)
{
    struct str line = {f->lines + (size_t)i * FAULT_LINE_BYTES, FAULT_LINE_BYTES - 1};

    while (line.len > 0 && line.ptr[line.len - 1] == ' ') {
        line.len--;
    }
    return line;
}

uint32_t faults_count(const struct faults *f, struct uuid plan)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n; i++) {
        n += uuid_eq(faults_plan(f, i), plan) ? 1u : 0u;
    }
    return n;
}

void faults_keep(struct faults *f, bool (*keep)(struct uuid plan, void *self), void *self)
{
    const uint32_t before = f->n;
    uint32_t n = 0;

    for (uint32_t i = 0; i < before; i++) {
        if (keep(faults_plan(f, i), self)) {
            memmove(line_at(f, n++), line_at(f, i), FAULT_LINE_BYTES);
        }
    }
    clear_from(f, n);
    if (n < before) {
        write_all(f);
    }
}

/* ---- in a signal handler: no printf, no memory, no locks ---- */

static char *put_text(char *at, const char *text)
{
    while (*text != 0) {
        *at++ = *text++;
    }
    return at;
}

static char *put_number(char *at, uint64_t n)
{
    char digits[DIGITS_MAX];
    size_t len = 0;

    do {
        digits[len++] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    while (len > 0) {
        *at++ = digits[--len];
    }
    return at;
}

static char *put_uuid(char *at, struct uuid id)
{
    static const char HEX[] = "0123456789ABCDEF";

    for (size_t i = 0; i < sizeof id.b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = HEX[id.b[i] >> 4];
        *at++ = HEX[id.b[i] & 15];
    }
    return at;
}

void faults_add(struct faults *f, struct uuid plan, int sig, msec wall)
{
    char line[FAULT_LINE_BYTES + DIGITS_MAX];
    char *at = put_uuid(line, plan);

    if (f->fd < 0 || f->n >= FAULTS_MAX) {
        return;
    }
    at = put_number(put_text(at, " signal "), (uint64_t)sig);
    at = put_number(put_text(at, " at "), wall % 10000000000000u);
    while (at < line + FAULT_LINE_BYTES - 1) {
        *at++ = ' ';
    }
    line[FAULT_LINE_BYTES - 1] = '\n';
    (void)!pwrite(f->fd, line, FAULT_LINE_BYTES, (off_t)f->n * FAULT_LINE_BYTES);
    f->n++;
}
