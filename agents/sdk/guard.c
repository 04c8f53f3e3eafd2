#include "agents/sdk/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "protocol/client/state.h"

enum { DEPTH_MAX = 16, PATH_BYTES = 4096, ANCESTORS_MAX = 4096 };

struct guard {
    int fd; /* the state directory; -1 = there is none */
    struct stat st;
};

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static void open_guard(struct guard *g)
{
    struct bt_error ignored;
    struct buf dir;

    g->fd = -1;
    buf_init(&dir, PATH_BYTES);
    if (state_dir_find(NULL, &dir, &ignored) == BT_OK) {
        g->fd = open(buf_cstr(&dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    buf_done(&dir);
    if (g->fd >= 0 && fstat(g->fd, &g->st) != 0) {
        (void)close(g->fd);
        g->fd = -1;
    }
}

static void close_guard(struct guard *g)
{
    if (g->fd >= 0) {
        (void)close(g->fd);
    }
}

enum found { FOUND_NOT, FOUND_HERE, FOUND_UNKNOWN };

/* Searches a tree for an inode, without following links; not in the directory `except`. */
static enum found search(int dir, const struct stat *wanted, const struct stat *except,
                         unsigned depth)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *e;
    enum found found = FOUND_NOT;

    if (list == NULL || depth == DEPTH_MAX) {
        if (list != NULL) {
            (void)closedir(list);
        } else if (copy >= 0) {
            (void)close(copy);
        }
        return FOUND_UNKNOWN;
    }
    while (found != FOUND_HERE && (e = readdir(list)) != NULL) {
        struct stat st;
        int sub;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            (except != NULL && same(&st, except))) {
            continue;
        }
        if (same(&st, wanted)) {
            found = FOUND_HERE;
        } else if (S_ISDIR(st.st_mode)) {
            enum found below;
            sub = openat(dirfd(list), e->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            below = sub >= 0 ? search(sub, wanted, except, depth + 1) : FOUND_UNKNOWN;
            found = below != FOUND_NOT ? below : found;
            if (sub >= 0) {
                (void)close(sub);
            }
        }
    }
    (void)closedir(list);
    return found;
}

/* The directory above, or -1 at the root. Takes the descriptor. */
static int step_up(int dir, const struct stat *here)
{
    struct stat above;
    int up = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)close(dir);
    if (up >= 0 && (fstat(up, &above) != 0 || same(&above, here))) {
        (void)close(up);
        up = -1;
    }
    return up;
}

/* Whether a directory is on the way from the root to the state directory. */
static bool is_above_state(const struct guard *g, const struct stat *wanted)
{
    int at = openat(g->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat here;
    bool yes = false;

    while (at >= 0 && !yes) {
        yes = fstat(at, &here) == 0 && same(&here, wanted);
        at = step_up(at, &here);
    }
    if (at >= 0) {
        (void)close(at);
    }
    return yes;
}

/* The root of a mount has a parent that is not the one of its directory: a bind mount shows a part
 * of the state directory at another place. */
static bool is_mount_root(int fd)
{
    struct statx sx;

    return statx(fd, "", AT_EMPTY_PATH, 0, &sx) != 0 ||
           (sx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 ||
           (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static bool is_bound(int fd, const struct stat *st, const struct guard *g)
{
    return st->st_dev == g->st.st_dev && is_mount_root(fd) && !is_above_state(g, st) &&
           search(g->fd, st, NULL, 0) == FOUND_HERE;
}

/* Takes the descriptor of a directory. */
static bool lies_below(int at, const struct guard *g)
{
    struct stat here;
    bool yes = false;

    while (at >= 0 && !yes) {
        yes = fstat(at, &here) != 0 || same(&here, &g->st) || is_bound(at, &here, g);
        at = step_up(at, &here);
    }
    if (at >= 0) {
        (void)close(at);
    }
    return yes;
}

/* The directory that an open file was found in; -1 when the system does not tell. */
static int parent_of(int file)
{
    char link[64];
    char path[PATH_BYTES];
    char *end;
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/') {
        return -1;
    }
    path[n] = 0;
    end = strrchr(path, '/');
    end[end == path ? 1 : 0] = 0;
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* A file of several names, or one that is mounted by itself, is searched for. One whose parent is
 * unknown, too. */
static bool is_state_file(int fd, const struct stat *st, const struct guard *g)
{
    int parent = parent_of(fd);
    enum found found = FOUND_NOT;

    if (st->st_dev == g->st.st_dev && (parent < 0 || st->st_nlink > 1 || is_mount_root(fd))) {
        found = search(g->fd, st, NULL, 0);
    }
    if (found == FOUND_HERE || (found == FOUND_UNKNOWN && st->st_nlink > 1)) {
        if (parent >= 0) {
            (void)close(parent);
        }
        return true;
    }
    return parent >= 0 && lies_below(parent, g);
}

bool guard_is_state(int fd)
{
    struct guard g;
    struct stat st;
    bool yes = false;

    open_guard(&g);
    if (g.fd >= 0) {
        yes =
            fstat(fd, &st) != 0 ||
            (S_ISDIR(st.st_mode) ? lies_below(openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), &g)
                                 : is_state_file(fd, &st, &g));
    }
    close_guard(&g);
    return yes;
}

bool guard_is_state_root(int dir)
{
    struct guard g;
    struct stat st;
    bool yes;

    open_guard(&g);
    yes = g.fd >= 0 && fstat(dir, &st) == 0 && same(&st, &g.st);
    close_guard(&g);
    return yes;
}

bool guard_is_linked(int file, int except)
{
    struct guard g;
    struct stat st;
    struct stat own;
    bool yes = false;

    open_guard(&g);
    if (g.fd >= 0 && fstat(file, &st) == 0 && fstat(except, &own) == 0 &&
        (st.st_nlink > 1 || is_mount_root(file))) {
        yes = search(g.fd, &st, &own, 0) != FOUND_NOT;
    }
    close_guard(&g);
    return yes;
}
