#include "protocol/base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PATH_BYTES = 4500 };

enum bt_code file_replace(const char *path, const void *bytes, size_t len, struct bt_error *err)
{
    char next[PATH_BYTES];
    int fd;
    bool ok;

    (void)snprintf(next, sizeof next, "%s.%ld", path, (long)getpid());
    fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    ok = fd >= 0 && write(fd, bytes, len) == (ssize_t)len;
    if (fd >= 0) {
        ok = close(fd) == 0 && ok;
    }
    if (!ok || rename(next, path) != 0) {
        const int why = errno;
        (void)unlink(next);
        return err_errno(err, why, "cannot write %s", path);
    }
    return BT_OK;
}
