/* Opens one path below one descriptor: by openat2, or by a walk without it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agents/sdk/confine.h"

enum { TRIES = 8 }; /* openat2 returns EAGAIN when a rename raced with ".." */

static int open_beneath(int root, const char *rest, int flags)
{
    const struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd = -1;

    for (int i = 0; i < TRIES; i++) {
        fd = syscall(SYS_openat2, root, rest, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) {
            break;
        }
    }
    return (int)fd;
}

bool confine_next_name(const char **rest, char name[CONFINE_NAME_MAX + 1], size_t *ret_len)
{
    const char *at = *rest + strspn(*rest, "/");

    *ret_len = strcspn(at, "/");
    *rest = at + *ret_len;
    if (*ret_len == 0) {
        return false;
    }
    if (*ret_len <= CONFINE_NAME_MAX) {
        memcpy(name, at, *ret_len);
        name[*ret_len] = 0;
    }
    return true;
}

/* Without openat2. A link fails with EXDEV: a walk by names cannot confine its target. */
static int open_walking(int root, const char *rest, int flags)
{
    char name[CONFINE_NAME_MAX + 1] = ".";
    size_t len;
    struct stat st;
    int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd;

    while (at >= 0 && confine_next_name(&rest, name, &len)) {
        bool last = rest[strspn(rest, "/")] == 0;
        int why = len > CONFINE_NAME_MAX ? ENAMETOOLONG : strcmp(name, "..") == 0 ? EXDEV : 0;
        fd = why == 0 ? openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
        why = fd < 0 && why == 0 ? errno : why;
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
            why = EXDEV;
        } else if (fd >= 0 && !last && !S_ISDIR(st.st_mode)) {
            why = ENOTDIR;
        }
        if (why == 0 && last && (flags & O_PATH) == 0) {
            (void)close(fd);
            fd = openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC);
            why = fd < 0 ? errno == ELOOP ? EXDEV : errno : 0;
        }
        (void)close(at);
        if (why != 0 && fd >= 0) {
            (void)close(fd);
        }
        at = why == 0 ? fd : -1;
        errno = why;
        if (last) {
            return at;
        }
    }
    return at; /* -1: a path has a last name, if it is only "." */
}

bool confine_needs_walk(int root)
{
    int fd = open_beneath(root, ".", O_PATH);

    if (fd >= 0) {
        (void)close(fd);
        return false;
    }
    return errno == ENOSYS || errno == EPERM; /* an old kernel, or a sandbox that denies it */
}

int confine_openat(const struct confine *c, int root, const char *rest, int flags)
{
    while (*rest == '/') {
        rest++;
    }
    if (*rest == 0) {
        rest = ".";
    }
    return c->walk ? open_walking(root, rest, flags) : open_beneath(root, rest, flags);
}
