/* An artifact that arrives in pieces. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "protocol/artifact/artifact_internal.h"

enum {
    BLOCK = 64 * 1024,
    CHECK_BYTES = 8 * 1024 * 1024, /* hashed by one call: some 20 ms */
    SYNC_BYTES = 4 * 1024 * 1024,  /* between two calls of fdatasync */
    ROOM_LEFT = 8 * 1024 * 1024    /* others write to this disk, too: the journal */
};

struct artifact_part {
    int dir;
    int fd;
    uint64_t bytes;
    uint64_t hashed;   /* of them, by digest */
    uint64_t unsynced; /* of them, since the last fdatasync */
    struct artifact_digest *digest;
    char hidden[sizeof ".part-" + ARTIFACT_SHA256_LEN];
    char file[ARTIFACT_FILE_MAX + 1];
};

/* Of one length, whatever the name has; the dot keeps it out of every URI. */
static enum bt_code hide(struct artifact_part *p, struct bt_error *err)
{
    struct artifact_digest *d = artifact_digest_new();
    char sum[ARTIFACT_SHA256_LEN + 1];

    if (d == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an artifact");
    }
    artifact_digest_add(d, p->file, strlen(p->file));
    artifact_digest_end(d, sum);
    artifact_digest_free(d);
    (void)snprintf(p->hidden, sizeof p->hidden, ".part-%s", sum);
    return BT_OK;
}

static enum bt_code open_hidden(struct artifact_part *p, struct bt_error *err)
{
    struct stat st;

    p->fd = openat(p->dir, p->hidden, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (p->fd < 0 || fstat(p->fd, &st) < 0) {
        return err_errno(err, errno, "making a file for the artifact");
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1) {
        return err_set(err, BT_UNAUTHORIZED, "the file of the artifact is another's");
    }
    p->bytes = (uint64_t)st.st_size;
    return BT_OK;
}

enum bt_code artifact_part_open(const char *dir, const char *file, struct artifact_part **ret,
                                struct bt_error *err)
{
    struct artifact_part *p = calloc(1, sizeof *p);
    enum bt_code code;

    if (p == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an artifact");
    }
    p->dir = -1;
    p->fd = -1;
    (void)snprintf(p->file, sizeof p->file, "%s", file);
    p->digest = artifact_digest_new();
    code = p->digest == NULL ? err_set(err, BT_NOMEM, "out of memory for an artifact")
                             : artifact_dir_open(dir, &p->dir, err);
    if (code == BT_OK && artifact_dir_ended(p->dir)) {
        code = artifact_ended_error(err);
    }
    code = code == BT_OK ? hide(p, err) : code;
    code = code == BT_OK ? open_hidden(p, err) : code;
    if (code != BT_OK) {
        artifact_part_close(p);
        return code;
    }
    *ret = p;
    return BT_OK;
}

uint64_t artifact_part_bytes(const struct artifact_part *p)
{
    return p->bytes;
}

/* The sweep removes what no result names when a plan ends. */
static enum bt_code check_alive(const struct artifact_part *p, struct bt_error *err)
{
    struct stat st;

    return artifact_dir_ended(p->dir) || fstat(p->fd, &st) < 0 || st.st_nlink == 0
               ? artifact_ended_error(err)
               : BT_OK;
}

static enum bt_code full(int errnum, struct bt_error *err)
{
    return errnum == ENOSPC || errnum == EDQUOT
               ? err_set(err, BT_UNAVAILABLE,
                         "the disk of the state directory is full: the artifact has no room there")
               : err_errno(err, errnum, "writing the artifact");
}

/* The system says only once that bytes did not reach the disk: the next sync would be well without
 * them. So the file begins anew. */
static enum bt_code lost(struct artifact_part *p, struct bt_error *err)
{
    const int errnum = errno;

    (void)unlinkat(p->dir, p->hidden, 0);
    return full(errnum, err);
}

static enum bt_code check_room(const struct artifact_part *p, size_t len, struct bt_error *err)
{
    struct statvfs fs;

    return fstatvfs(p->fd, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < len + ROOM_LEFT
               ? full(ENOSPC, err)
               : BT_OK;
}

static enum bt_code put(struct artifact_part *p, const uint8_t *at, size_t len,
                        struct bt_error *err)
{
    uint64_t offset = p->bytes;

    while (len > 0) {
        const ssize_t n = pwrite(p->fd, at, len, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return full(errno, err);
        }
        at += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return BT_OK;
}

static enum bt_code sync_some(struct artifact_part *p, size_t len, struct bt_error *err)
{
    p->unsynced += len;
    if (p->unsynced < SYNC_BYTES) {
        return BT_OK;
    }
    p->unsynced = 0;
    return fdatasync(p->fd) == 0 ? BT_OK : lost(p, err);
}

enum bt_code artifact_part_add(struct artifact_part *p, const void *bytes, size_t len,
                               struct bt_error *err)
{
    enum bt_code code = check_alive(p, err);

    code = code == BT_OK ? check_room(p, len, err) : code;
    if (code != BT_OK) {
        return code;
    }
    code = put(p, bytes, len, err);
    code = code == BT_OK ? sync_some(p, len, err) : code;
    if (code != BT_OK) {
        (void)!ftruncate(p->fd, (off_t)p->bytes); /* at the next open it is not taken for whole */
        return code;
    }
    if (p->hashed == p->bytes) {
        artifact_digest_add(p->digest, bytes, len);
        p->hashed += len;
    }
    p->bytes += len;
    return BT_OK;
}

/* What another process had written before. */
static enum bt_code hash_some(struct artifact_part *p, struct bt_error *err)
{
    uint64_t left = CHECK_BYTES;
    uint8_t block[BLOCK];

    while (p->hashed < p->bytes && left > 0) {
        const ssize_t n = pread(p->fd, block, sizeof block, (off_t)p->hashed);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_errno(err, n < 0 ? errno : EIO, "reading the artifact");
        }
        artifact_digest_add(p->digest, block, (size_t)n);
        p->hashed += (uint64_t)n;
        left -= (uint64_t)n < left ? (uint64_t)n : left;
    }
    return BT_OK;
}

static enum bt_code publish(struct artifact_part *p, struct bt_error *err)
{
    if (fsync(p->fd) < 0) {
        return lost(p, err);
    }
    if (renameat(p->dir, p->hidden, p->dir, p->file) < 0) {
        return err_errno(err, errno, "renaming the artifact");
    }
    return fsync(p->dir) < 0 ? full(errno, err) : BT_OK;
}

enum bt_code artifact_part_commit(struct artifact_part *p, struct str sha256, bool *ret_done,
                                  struct bt_error *err)
{
    char sum[ARTIFACT_SHA256_LEN + 1];
    enum bt_code code = check_alive(p, err);

    *ret_done = false;
    code = code == BT_OK ? hash_some(p, err) : code;
    if (code != BT_OK || p->hashed < p->bytes) {
        return code;
    }
    if (!artifact_digest_is(p->digest, sha256, sum)) {
        (void)unlinkat(p->dir, p->hidden, 0);
        return err_set(err, BT_INVALID,
                       "the bytes that arrived have the SHA-256 %s, not the one that was given: "
                       "nothing of them is kept",
                       sum);
    }
    code = publish(p, err);
    *ret_done = code == BT_OK;
    return code;
}

void artifact_part_close(struct artifact_part *p)
{
    if (p == NULL) {
        return;
    }
    if (p->fd >= 0) {
        (void)close(p->fd);
    }
    if (p->dir >= 0) {
        (void)close(p->dir);
    }
    artifact_digest_free(p->digest);
    free(p);
}
