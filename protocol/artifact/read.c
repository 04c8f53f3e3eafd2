/* Opening an artifact: below its root, without links, whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"

enum { BLOCK = 256 * 1024 };

static enum bt_code missing(const struct artifact_place *at, struct bt_error *err)
{
    return err_set(err, BT_GONE,
                   "artifact '%.200s' is not there any more: the artifacts of an ended plan are "
                   "removed after artifacts.keepMs, or when they exceed artifacts.maxBytes",
                   at->file);
}

static enum bt_code refused(const struct artifact_place *at, int errnum, struct bt_error *err)
{
    if (errnum == ENOENT) {
        return missing(at, err);
    }
    return errnum == ELOOP || errnum == ENOTDIR || errnum == EACCES
               ? err_set(err, BT_UNAUTHORIZED, "artifact '%.200s': a link, or not readable",
                         at->file)
               : err_errno(err, errnum, "artifact '%.200s'", at->file);
}

/* The descriptor of ROOT/PLAN. */
static enum bt_code open_plan(const char *root, const struct artifact_place *at, int *ret,
                              struct bt_error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int top = open(root, flags);

    *ret = top < 0 ? -1 : openat(top, at->plan, flags);
    if (*ret < 0) {
        enum bt_code code = refused(at, errno, err);
        if (top >= 0) {
            (void)close(top);
        }
        return code;
    }
    (void)close(top);
    return BT_OK;
}

bool artifact_plan_has_files(const char *root, struct str plan_id)
{
    struct artifact_place at = {.file = ""};
    struct bt_error ignored;
    int dir = -1;

    if (plan_id.len != UUID_TEXT_LEN) {
        return false;
    }
    memcpy(at.plan, plan_id.ptr, UUID_TEXT_LEN);
    if (open_plan(root, &at, &dir, &ignored) != BT_OK) {
        return false;
    }
    (void)close(dir);
    return true;
}

enum bt_code artifact_stat(const char *root, const struct artifact_place *at, uint64_t *ret_bytes,
                           struct bt_error *err)
{
    struct stat st;
    int dir = -1;
    enum bt_code code = open_plan(root, at, &dir, err);

    if (code == BT_OK && fstatat(dir, at->file, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        code = refused(at, errno, err);
    }
    if (code == BT_OK && !S_ISREG(st.st_mode)) {
        code = err_set(err, BT_INVALID, "artifact '%.200s': is no file", at->file);
    }
    if (code == BT_OK) {
        *ret_bytes = (uint64_t)st.st_size;
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    return code;
}

/* Opened without waiting: a FIFO of that name must not hold the reader. */
static enum bt_code open_file(const char *root, const struct artifact_place *at, int *ret,
                              uint64_t *ret_bytes, struct bt_error *err)
{
    struct stat st = {0};
    int dir = -1;
    enum bt_code code = open_plan(root, at, &dir, err);

    if (code == BT_OK) {
        *ret = openat(dir, at->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        code = *ret < 0 ? refused(at, errno, err) : BT_OK;
    }
    if (code == BT_OK && fstat(*ret, &st) < 0) {
        code = err_errno(err, errno, "artifact '%.200s'", at->file);
    }
    if (code == BT_OK && !S_ISREG(st.st_mode)) {
        code = err_set(err, BT_UNAUTHORIZED, "artifact '%.200s': is no file", at->file);
    }
    *ret_bytes = (uint64_t)st.st_size;
    if (dir >= 0) {
        (void)close(dir);
    }
    return code;
}

static enum bt_code add_all(int fd, struct artifact_digest *d, uint8_t *block,
                            bool (*stop)(const void *self), const void *self, struct bt_error *err)
{
    for (;;) {
        ssize_t n = read(fd, block, BLOCK);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_errno(err, errno, "reading the artifact");
        }
        if (n == 0) {
            return BT_OK;
        }
        artifact_digest_add(d, block, (size_t)n);
        if (stop != NULL && stop(self)) {
            return err_set(err, BT_CANCELLED, "stopped while the artifact was checked");
        }
    }
}

static enum bt_code check_sum(int fd, const struct artifact_place *at, struct str expected,
                              bool (*stop)(const void *self), const void *self,
                              struct bt_error *err)
{
    struct artifact_digest *d = artifact_digest_new();
    uint8_t *block = malloc(BLOCK);
    char sum[ARTIFACT_SHA256_LEN + 1];
    enum bt_code code = d == NULL || block == NULL
                            ? err_set(err, BT_NOMEM, "out of memory for an artifact")
                            : add_all(fd, d, block, stop, self, err);

    if (code == BT_OK) {
        if (!artifact_digest_is(d, expected, sum)) {
            code = err_set(err, BT_INVALID,
                           "artifact '%.200s': its SHA-256 is not that of its result: it was "
                           "changed",
                           at->file);
        } else if (lseek(fd, 0, SEEK_SET) < 0) {
            code = err_errno(err, errno, "artifact '%.200s'", at->file);
        }
    }
    artifact_digest_free(d);
    free(block);
    return code;
}

enum bt_code artifact_open(const char *root, const struct artifact_place *at,
                           const struct artifact_claim *claim, bool (*stop)(const void *self),
                           const void *self, int *ret_fd, struct bt_error *err)
{
    int fd = -1;
    uint64_t bytes = 0;
    enum bt_code code = open_file(root, at, &fd, &bytes, err);

    if (code == BT_OK && bytes != claim->bytes) {
        code = err_set(err, BT_INVALID,
                       "artifact '%.200s' has %llu bytes, its result says %llu: it was changed",
                       at->file, (unsigned long long)bytes, (unsigned long long)claim->bytes);
    }
    if (code == BT_OK) {
        code = check_sum(fd, at, claim->sha256, stop, self, err);
    }
    if (code == BT_OK) {
        *ret_fd = fd;
    } else if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

enum bt_code artifact_read_at(const char *root, const struct artifact_place *at, uint64_t offset,
                              void *ret, size_t cap, size_t *ret_n, uint64_t *ret_total,
                              struct bt_error *err)
{
    int fd = -1;
    enum bt_code code = open_file(root, at, &fd, ret_total, err);
    ssize_t n = 0;

    *ret_n = 0;
    while (code == BT_OK && *ret_n < cap && offset + *ret_n < *ret_total) {
        n = pread(fd, (char *)ret + *ret_n, cap - *ret_n, (off_t)(offset + *ret_n));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            code = err_errno(err, errno, "reading artifact '%.200s'", at->file);
        } else if (n == 0) {
            break; /* it has become shorter */
        } else {
            *ret_n += (size_t)n;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}
