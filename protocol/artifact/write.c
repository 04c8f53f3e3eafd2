/* Writing an artifact: a hidden file, fsync, rename. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/artifact/artifact_internal.h"

enum { BLOCK = 64 * 1024, TEMP_TRIES = 16 };

struct artifact_writer {
    int dir;
    int fd;
    struct artifact_digest *digest;
    uint64_t bytes;
    size_t used; /* of block */
    char temp[sizeof ".-9223372036854775808-4294967295.tmp"];
    char file[ARTIFACT_FILE_MAX + 1];
    uint8_t block[BLOCK];
};

enum bt_code artifact_dir_open(const char *path, int *ret, struct bt_error *err)
{
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        return err_errno(err, errno, "making the directory '%.200s'", path);
    }
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret < 0) {
        return errno == ENOTDIR || errno == ELOOP
                   ? err_set(err, BT_UNAUTHORIZED, "'%.200s' is no directory", path)
                   : err_errno(err, errno, "opening '%.200s'", path);
    }
    if (fstat(*ret, &st) < 0) {
        return err_errno(err, errno, "'%.200s'", path);
    }
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return err_set(err, BT_UNAUTHORIZED,
                       "'%.200s' belongs to another user, or others may use it", path);
    }
    return BT_OK;
}

bool artifact_dir_ended(int dir)
{
    struct stat st;

    return fstatat(dir, ARTIFACT_ENDED, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

enum bt_code artifact_ended_error(struct bt_error *err)
{
    return err_set(err, BT_GONE, "the plan has ended: it takes no artifacts any more");
}

/* The process id and a counter; O_EXCL decides. The dot keeps the name out of every URI. */
static enum bt_code make_temp(struct artifact_writer *w, struct bt_error *err)
{
    static atomic_uint count;

    for (int i = 0; i < TEMP_TRIES && w->fd < 0; i++) {
        (void)snprintf(w->temp, sizeof w->temp, ".%ld-%u.tmp", (long)getpid(),
                       atomic_fetch_add(&count, 1));
        w->fd = openat(w->dir, w->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (w->fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (w->fd < 0) {
        w->temp[0] = 0;
        return err_errno(err, errno, "making a file for the artifact");
    }
    return BT_OK;
}

static enum bt_code new_writer(struct artifact_writer **ret, struct bt_error *err)
{
    struct artifact_writer *w = malloc(sizeof *w);

    if (w == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an artifact");
    }
    w->dir = -1;
    w->fd = -1;
    w->bytes = 0;
    w->used = 0;
    w->temp[0] = 0;
    w->digest = artifact_digest_new();
    if (w->digest == NULL) {
        free(w);
        return err_set(err, BT_NOMEM, "out of memory for an artifact");
    }
    *ret = w;
    return BT_OK;
}

enum bt_code artifact_create(const char *dir, const char *file, struct artifact_writer **ret,
                             struct bt_error *err)
{
    struct artifact_writer *w = NULL;
    enum bt_code code = new_writer(&w, err);

    if (code != BT_OK) {
        return code;
    }
    (void)snprintf(w->file, sizeof w->file, "%s", file);
    code = artifact_dir_open(dir, &w->dir, err);
    if (code == BT_OK && artifact_dir_ended(w->dir)) {
        code = artifact_ended_error(err);
    }
    if (code == BT_OK) {
        code = make_temp(w, err);
    }
    if (code != BT_OK) {
        artifact_abort(w);
        return code;
    }
    *ret = w;
    return BT_OK;
}

enum bt_code artifact_write_all(int fd, const void *bytes, size_t len, struct bt_error *err)
{
    const uint8_t *at = bytes;

    while (len > 0) {
        const ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_errno(err, errno, "writing the artifact");
        }
        at += n;
        len -= (size_t)n;
    }
    return BT_OK;
}

/* After a failure nothing of the file is kept. */
static enum bt_code put(struct artifact_writer *w, const uint8_t *at, size_t len,
                        struct bt_error *err)
{
    artifact_digest_add(w->digest, at, len);
    w->bytes += len;
    return artifact_write_all(w->fd, at, len, err);
}

static enum bt_code flush(struct artifact_writer *w, struct bt_error *err)
{
    const size_t n = w->used;

    w->used = 0;
    return n == 0 ? BT_OK : put(w, w->block, n, err);
}

enum bt_code artifact_write(struct artifact_writer *w, const void *bytes, size_t len,
                            struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (len > BLOCK - w->used) {
        code = flush(w, err);
    }
    if (code != BT_OK || len >= BLOCK) {
        return code == BT_OK ? put(w, bytes, len, err) : code;
    }
    if (len > 0) {
        memcpy(w->block + w->used, bytes, len);
        w->used += len;
    }
    return BT_OK;
}

static enum bt_code publish(struct artifact_writer *w, struct bt_error *err)
{
    if (fsync(w->fd) < 0) {
        return err_errno(err, errno, "fsync of the artifact failed, nothing of it is kept");
    }
    if (artifact_dir_ended(w->dir)) {
        return artifact_ended_error(err);
    }
    if (renameat(w->dir, w->temp, w->dir, w->file) < 0) {
        return err_errno(err, errno, "renaming the artifact");
    }
    w->temp[0] = 0;
    if (fsync(w->dir) < 0) {
        enum bt_code code = err_errno(err, errno, "fsync of the artifact's directory");
        (void)unlinkat(w->dir, w->file, 0);
        return code;
    }
    return BT_OK;
}

enum bt_code artifact_commit(struct artifact_writer *w, uint64_t *ret_bytes,
                             char ret_sha256[ARTIFACT_SHA256_LEN + 1], struct bt_error *err)
{
    enum bt_code code = flush(w, err);

    if (code == BT_OK) {
        code = publish(w, err);
    }
    if (code == BT_OK) {
        *ret_bytes = w->bytes;
        artifact_digest_end(w->digest, ret_sha256);
    }
    artifact_abort(w);
    return code;
}

void artifact_abort(struct artifact_writer *w)
{
    if (w == NULL) {
        return;
    }
    if (w->temp[0] != 0) {
        (void)unlinkat(w->dir, w->temp, 0);
    }
    if (w->fd >= 0) {
        (void)close(w->fd);
    }
    if (w->dir >= 0) {
        (void)close(w->dir);
    }
    artifact_digest_free(w->digest);
    free(w);
}

/* ---- without a name ---- */

int artifact_spool_fd(void)
{
    const char *dir = getenv("TMPDIR");
    char path[ARTIFACT_PATH_MAX];
    int fd;

    dir = dir != NULL && dir[0] != 0 ? dir : "/var/tmp";
    fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) {
        return fd;
    }
    if (snprintf(path, sizeof path, "%s/.baton-XXXXXX", dir) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

enum bt_code artifact_spool(struct artifact_writer **ret, struct bt_error *err)
{
    enum bt_code code = new_writer(ret, err);

    if (code == BT_OK) {
        (*ret)->fd = artifact_spool_fd();
        if ((*ret)->fd < 0) {
            code = err_errno(err, errno, "making a file for the artifact on this host (TMPDIR)");
            artifact_abort(*ret);
        }
    }
    return code;
}

enum bt_code artifact_unspool(struct artifact_writer *w, int *ret_fd, uint64_t *ret_bytes,
                              char ret_sha256[ARTIFACT_SHA256_LEN + 1], struct bt_error *err)
{
    enum bt_code code = flush(w, err);

    if (code == BT_OK) {
        *ret_bytes = w->bytes;
        artifact_digest_end(w->digest, ret_sha256);
        *ret_fd = w->fd;
        w->fd = -1;
    }
    artifact_abort(w);
    return code;
}
