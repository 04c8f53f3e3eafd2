/* Small files, written as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/certs/certs_internal.h"

enum bt_code certs_path(const char *dir, const char *name, char ret[CERTS_PATH_MAX],
                        struct bt_error *err)
{
    const int n = snprintf(ret, CERTS_PATH_MAX, "%s/%s", dir, name);

    return n > 0 && n < CERTS_PATH_MAX - 8 ? BT_OK
                                           : err_set(err, BT_INVALID, "%.200s: too long", dir);
}

static bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, at, len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void sync_folder_of(const char *path)
{
    char dir[CERTS_PATH_MAX];
    const char *slash = strrchr(path, '/');
    int fd;

    (void)snprintf(dir, sizeof dir, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
                   slash == NULL ? "." : path);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

enum bt_code certs_file_write(const char *path, const void *bytes, size_t len, mode_t mode,
                              bool replace, struct bt_error *err)
{
    char part[CERTS_PATH_MAX + 16];
    enum bt_code code = BT_OK;
    int fd;

    (void)snprintf(part, sizeof part, "%s.%u", path, (unsigned)getpid());
    (void)unlink(part); /* of a process with our number that was killed */
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_errno(err, errno, "%s cannot be written", path);
    }
    if (!write_all(fd, bytes, len) || fchmod(fd, mode) != 0 || fsync(fd) != 0) {
        code = err_errno(err, errno, "%s cannot be written", path);
    } else if ((replace ? rename(part, path) : link(part, path)) != 0) {
        code = errno == EEXIST
                   ? err_set(err, BT_CONFLICT, "%s exists already; it is not overwritten", path)
                   : err_errno(err, errno, "%s cannot be written", path);
    }
    (void)close(fd);
    (void)unlink(part);
    sync_folder_of(path);
    return code;
}

enum bt_code certs_file_read(const char *path, bool is_key, unsigned char ret[CERTS_PEM_MAX],
                             struct bt_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum bt_code code = BT_OK;
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) != 0) {
        code = err_errno(err, errno, "%s", path);
    } else if (!S_ISREG(st.st_mode)) {
        code = err_set(err, BT_INVALID, "%s is not a regular file", path);
    } else if (is_key && (st.st_mode & 077) != 0) {
        code = err_set(err, BT_UNAUTHORIZED,
                       "%s: others may read this key; if nobody has read it, run: chmod 600 %s",
                       path, path);
    } else {
        n = read(fd, ret, CERTS_PEM_MAX - 1);
        ret[n < 0 ? 0 : n] = 0;
        code = n < 0 ? err_errno(err, errno, "%s", path)
               : n == CERTS_PEM_MAX - 1
                   ? err_set(err, BT_INVALID, "%s is larger than a certificate and its key", path)
                   : BT_OK;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}
