#include "protocol/client/state_file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static enum bt_code write_all(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return BT_IO;
        }
        bytes.ptr += n;
        bytes.len -= (size_t)n;
    }
    return fsync(fd) == 0 ? BT_OK : BT_IO;
}

/* linkat() fails when the name exists, renameat() replaces it. Both are atomic. */
static int move_into_place(int dir_fd, const char *temporary, const char *name, enum file_mode mode)
{
    if (mode == FILE_REPLACE) {
        return renameat(dir_fd, temporary, dir_fd, name);
    }
    return linkat(dir_fd, temporary, dir_fd, name, 0);
}

enum bt_code state_file_write(const char *dir, const char *name, struct str bytes,
                              enum file_mode mode, struct bt_error *err)
{
    char temporary[80] = "";
    uint64_t random = 0;
    int dir_fd = -1;
    int fd = -1;
    enum bt_code code;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        code = err_errno(err, errno, "no random bytes");
        goto out;
    }
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        code = err_errno(err, errno, "%s", dir);
        goto out;
    }
    (void)snprintf(temporary, sizeof temporary, ".%.40s.%016llx", name, (unsigned long long)random);
    fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write_all(fd, bytes) != BT_OK) {
        code = err_errno(err, errno, "%s/%s: cannot be written", dir, name);
    } else if (move_into_place(dir_fd, temporary, name, mode) != 0) {
        code = errno == EEXIST ? err_set(err, BT_CONFLICT, "%s/%s is there already", dir, name)
                               : err_errno(err, errno, "%s/%s: cannot be put in place", dir, name);
    } else if (fsync(dir_fd) != 0) {
        code = err_errno(err, errno, "%s: cannot be synced", dir);
    } else {
        code = BT_OK;
    }
out:
    if (fd >= 0) {
        (void)close(fd);
        (void)unlinkat(dir_fd, temporary, 0); /* fails after a rename, which has moved the file */
    }
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    return code;
}

/* A file of one block, which a full disk need not have for the next one. */
static bool spare_write(int dir_fd, const char *spare, struct str bytes)
{
    int fd = openat(dir_fd, spare, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ok = fd >= 0 && pwrite(fd, bytes.ptr, bytes.len, 0) == (ssize_t)bytes.len &&
              ftruncate(fd, (off_t)bytes.len) == 0 && fsync(fd) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return ok;
}

void state_file_spare(const char *dir, const char *spare)
{
    static const char block[STATE_FILE_BLOCK] = {0};
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir_fd < 0 ? -1 : openat(dir_fd, spare, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0) {
        if (pwrite(fd, block, sizeof block, 0) != (ssize_t)sizeof block || fsync(fd) != 0) {
            (void)unlinkat(dir_fd, spare, 0);
        }
        (void)close(fd);
    }
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
}

enum bt_code state_file_use_spare(const char *dir, const char *spare, const char *name,
                                  struct str bytes, struct bt_error *err)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum bt_code code = BT_OK;

    if (dir_fd < 0 || bytes.len > STATE_FILE_BLOCK || !spare_write(dir_fd, spare, bytes) ||
        renameat(dir_fd, spare, dir_fd, name) != 0 || fsync(dir_fd) != 0) {
        code = err_errno(err, errno, "%s/%s: cannot be written", dir, name);
    }
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    return code;
}

static enum bt_code read_all(int fd, struct buf *out)
{
    for (;;) {
        uint8_t part[4096];
        ssize_t n = read(fd, part, sizeof part);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return BT_IO;
        }
        if (n == 0) {
            return buf_check(out, NULL);
        }
        buf_add(out, part, (size_t)n);
        if (buf_check(out, NULL) != BT_OK) {
            return buf_check(out, NULL);
        }
    }
}

enum bt_code state_file_read(const char *dir, const char *name, enum file_guard guard,
                             struct buf *out, struct bt_error *err)
{
    uint32_t owner;

    return state_file_read_of(dir, name, guard, out, &owner, err);
}

/* The user of a directory, as "baton"; "" = there is no such directory or user. */
static const char *owner_of(const char *dir, char *ret, size_t cap)
{
    char room[1024];
    struct passwd entry;
    struct passwd *found = NULL;
    struct stat st;

    ret[0] = 0;
    if (stat(dir, &st) == 0 && st.st_uid != geteuid() &&
        getpwuid_r(st.st_uid, &entry, room, sizeof room, &found) == 0 && found != NULL) {
        (void)snprintf(ret, cap, "%s", found->pw_name);
    }
    return ret;
}

/* The file is there, perhaps, for another user. */
static enum bt_code not_for_you(const char *dir, const char *path, struct bt_error *err)
{
    char owner[64];

    if (owner_of(dir, owner, sizeof owner)[0] != 0) {
        return err_set(err, BT_UNAUTHORIZED,
                       "%s: you (user %u) may not read it; only %s, the user of the daemon, may: "
                       "sudo -u %s baton --state %s. Your own state directory: --state DIR or "
                       "BATON_STATE",
                       path, (unsigned)geteuid(), owner, owner, dir);
    }
    return err_set(err, BT_UNAUTHORIZED,
                   "%s: you (user %u) may not read it; only the user of the daemon may. Your own "
                   "state directory: --state DIR or BATON_STATE",
                   path, (unsigned)geteuid());
}

enum bt_code state_file_read_of(const char *dir, const char *name, enum file_guard guard,
                                struct buf *out, uint32_t *ret_owner, struct bt_error *err)
{
    char path[4096];
    struct stat st = {.st_uid = 0};
    enum bt_code code;
    int fd;

    const bool here = strcmp(dir, ".") == 0;
    (void)snprintf(path, sizeof path, "%s%s%s", here ? "" : dir,
                   here || strcmp(dir, "/") == 0 ? "" : "/", name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && errno == EACCES) {
        code = not_for_you(dir, path, err);
    } else if (fd < 0 && errno == ENOTDIR) {
        code =
            err_set(err, BT_INVALID,
                    "%s: is not a directory. The state directory: --state DIR or BATON_STATE", dir);
    } else if (fd < 0 || fstat(fd, &st) != 0) {
        code = err_errno(err, errno, "%s", path);
    } else if (!S_ISREG(st.st_mode)) {
        code = err_set(err, BT_INVALID, "%s: is not a regular file", path);
    } else if (guard == FILE_OWN && st.st_uid != geteuid()) {
        code = err_set(err, BT_UNAUTHORIZED, "%s: belongs to user %u, not to you (%u)", path,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    } else if (guard != FILE_ANY && (st.st_mode & 077) != 0) {
        code = err_set(err, BT_UNAUTHORIZED, "%s: others may read or write it; run chmod 600 %s",
                       path, path);
    } else {
        code = read_all(fd, out);
        if (code == BT_IO) {
            code = err_errno(err, errno, "%s", path);
        } else if (code != BT_OK) {
            code = err_set(err, code, "%s: is larger than such a file can be, or memory ran out",
                           path);
        }
    }
    *ret_owner = st.st_uid;
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}
