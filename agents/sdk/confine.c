#include "agents/sdk/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/sdk/guard.h"

enum { CLOSED = EKEYREJECTED }; /* no file system returns it */

enum bt_code confine_add(struct confine *c, const char *path, struct bt_error *err)
{
    struct confine_root *r = &c->roots[c->n];
    size_t len = strlen(path);
    int fd;

    if (path[0] != '/' || len > CONFINE_PATH_MAX) {
        return err_set(err, BT_INVALID, "'%.200s': expected an absolute path", path);
    }
    if (c->n == CONFINE_ROOTS_MAX) {
        return err_set(err, BT_LIMIT, "at most %d roots", CONFINE_ROOTS_MAX);
    }
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, errno, "'%.200s'", path);
    }
    r->path = strndup(path, len);
    if (r->path == NULL) {
        (void)close(fd);
        return err_set(err, BT_NOMEM, "out of memory for a root");
    }
    r->fd = fd;
    c->n++;
    c->walk = c->walk || confine_needs_walk(fd);
    return BT_OK;
}

enum bt_code confine_add_all(struct confine *c, struct doc list, const char *name,
                             struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (list.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(list).kind != DOC_ARRAY) {
        return err_set(err, BT_INVALID, "%s: expected a list of absolute directories", name);
    }
    for (uint32_t i = 0; code == BT_OK && i < doc_head(list).n; i++) {
        struct str s = doc_string(doc_at(list, i));
        char path[CONFINE_PATH_MAX + 1];
        if (s.ptr == NULL || s.len > CONFINE_PATH_MAX || memchr(s.ptr, 0, s.len) != NULL) {
            return err_set(err, BT_INVALID, "%s[%u]: expected an absolute directory", name, i);
        }
        memcpy(path, s.ptr, s.len);
        path[s.len] = 0;
        code = confine_add(c, path, err);
        if (code != BT_OK) {
            return err_wrap(err, "%s[%u]", name, i);
        }
    }
    return code;
}

void confine_done(struct confine *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        free(c->roots[i].path);
        (void)close(c->roots[i].fd);
    }
    *c = (struct confine){0};
}

/* ---- the root of a path ---- */

/* The part of an absolute path below the root; NULL when it is not below it. Compares whole
 * names. */
static const char *below(const struct confine_root *r, const char *path)
{
    size_t len = strlen(r->path);

    if (strncmp(path, r->path, len) != 0 || (path[len] != '/' && path[len] != 0)) {
        return NULL;
    }
    return path + len;
}

/* The deepest root that contains an absolute path: a root within a root is a root of its own. */
static const struct confine_root *root_of(const struct confine *c, const char *path,
                                          const char **ret_rest)
{
    const struct confine_root *best = NULL;

    for (unsigned i = 0; i < c->n; i++) {
        const char *rest = below(&c->roots[i], path);
        if (rest != NULL && (best == NULL || strlen(best->path) < strlen(c->roots[i].path))) {
            best = &c->roots[i];
            *ret_rest = rest;
        }
    }
    return best;
}

static enum bt_code check_path(struct str path, char ret[CONFINE_PATH_MAX + 1],
                               struct bt_error *err)
{
    if (path.len == 0 || path.len > CONFINE_PATH_MAX) {
        return err_set(err, BT_INVALID, "path: expected 1 to %d bytes, got %zu", CONFINE_PATH_MAX,
                       path.len);
    }
    for (size_t i = 0; i < path.len; i++) {
        if ((unsigned char)path.ptr[i] < 0x20 || path.ptr[i] == 0x7f) {
            return err_set(err, BT_INVALID, "path: byte %zu is a control character", i + 1);
        }
    }
    memcpy(ret, path.ptr, path.len);
    ret[path.len] = 0;
    return BT_OK;
}

/* An error that lists the roots. */
static enum bt_code outside(const struct confine *c, const char *path, const char *why,
                            struct bt_error *err)
{
    char names[200] = "";
    size_t len = 0;

    for (unsigned i = 0; i < c->n && len < sizeof names; i++) {
        int n = snprintf(names + len, sizeof names - len, "%s%s", i > 0 ? ", " : "",
                         c->roots[i].path[0] == 0 ? "/" : c->roots[i].path);
        len += n > 0 ? (size_t)n : 0;
    }
    return err_set(err, BT_UNAUTHORIZED, "'%.120s' %s; allowed is what lies below: %s", path, why,
                   c->n > 0 ? names : "(nothing)");
}

static enum bt_code explain(const struct confine *c, const char *path, int why,
                            struct bt_error *err)
{
    const char *rest;

    switch (why) {
    case EXDEV:
        return outside(c, path,
                       c->n == 0 || (path[0] == '/' && root_of(c, path, &rest) == NULL)
                           ? "is outside"
                           : "leads out of its root (by '..' or a link)",
                       err);
    case ELOOP:
        return outside(c, path, "is a link of /proc or a loop of links", err);
    case ENOENT:
    case ENOTDIR:
        return err_set(err, BT_NOT_FOUND, "'%.200s': there is no such file or directory", path);
    case EACCES:
    case EPERM:
        return err_set(err, BT_UNAUTHORIZED, "'%.200s': the system does not permit it: %s", path,
                       strerror(why));
    case ENAMETOOLONG:
        return err_set(err, BT_INVALID, "'%.200s': a name in it is too long", path);
    default:
        return err_errno(err, why, "'%.200s'", path);
    }
}

/* The state directory of the supervisor has its token. */
static enum bt_code closed(const char *path, struct bt_error *err)
{
    return err_set(err, BT_UNAUTHORIZED,
                   "'%.200s' lies in the state directory of the supervisor, which is closed to "
                   "agents; put the file elsewhere",
                   path);
}

/* Opens the path below the candidate roots. -1 with errno; EXDEV when no root contains an absolute
 * path. */
static int open_somewhere(const struct confine *c, const char *path, int flags)
{
    const char *rest = NULL;
    int fd = -1;

    if (path[0] == '/') {
        const struct confine_root *r = root_of(c, path, &rest);
        errno = EXDEV;
        return r == NULL ? -1 : confine_openat(c, r->fd, rest, flags);
    }
    errno = EXDEV;
    for (unsigned i = 0; i < c->n; i++) {
        fd = confine_openat(c, c->roots[i].fd, path, flags);
        if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR)) {
            break;
        }
    }
    return fd;
}

/* ---- opening ---- */

static const char *kind_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFREG:
        return "a regular file";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
    case S_IFBLK:
        return "a device";
    default:
        return "something else";
    }
}

static enum bt_code check_kind(int fd, const char *path, enum confine_kind kind, struct stat *st,
                               struct bt_error *err)
{
    if (fstat(fd, st) < 0) {
        return err_errno(err, errno, "'%.200s'", path);
    }
    if (kind == CONFINE_FILE ? S_ISREG(st->st_mode) : S_ISDIR(st->st_mode)) {
        return BT_OK;
    }
    return err_set(err, BT_INVALID, "'%.200s' is %s; expected %s", path, kind_name(st->st_mode),
                   kind == CONFINE_FILE ? "a regular file" : "a directory");
}

enum bt_code confine_open(const struct confine *c, struct str path, enum confine_kind kind,
                          int *ret_fd, struct stat *ret_st, struct bt_error *err)
{
    char text[CONFINE_PATH_MAX + 1];
    enum bt_code code = check_path(path, text, err);
    int fd;

    if (code != BT_OK) {
        return code;
    }
    /* First with O_PATH: opening some devices has side effects. */
    fd = open_somewhere(c, text, O_PATH);
    if (fd < 0) {
        return explain(c, text, errno, err);
    }
    code = check_kind(fd, text, kind, ret_st, err);
    (void)close(fd);
    if (code != BT_OK) {
        return code;
    }
    /* The path may lead to another file by now; the checks below use this descriptor. */
    fd = open_somewhere(c, text,
                        O_RDONLY | O_NONBLOCK | O_NOCTTY | (kind == CONFINE_DIR ? O_DIRECTORY : 0));
    if (fd < 0) {
        return explain(c, text, errno, err);
    }
    code = check_kind(fd, text, kind, ret_st, err);
    if (code == BT_OK && guard_is_state(fd)) {
        code = closed(text, err);
    }
    if (code != BT_OK) {
        (void)close(fd);
        return code;
    }
    *ret_fd = fd;
    return BT_OK;
}

/* Makes the missing directories of a path, each below the descriptor of its parent. */
static int make_dirs(const struct confine *c, int root, const char *rest)
{
    char name[CONFINE_NAME_MAX + 1];
    size_t len;
    int at = confine_openat(c, root, ".", O_RDONLY | O_DIRECTORY);

    while (at >= 0 && confine_next_name(&rest, name, &len)) {
        int why = len > CONFINE_NAME_MAX ? ENAMETOOLONG : strcmp(name, "..") == 0 ? EXDEV : 0;
        int next = -1;
        why = why == 0 && guard_is_state(at) ? CLOSED : why;
        if (why == 0 && mkdirat(at, name, 0777) < 0 && errno != EEXIST) {
            why = errno;
        }
        if (why == 0) {
            next = confine_openat(c, at, name, O_RDONLY | O_DIRECTORY);
            why = next < 0 ? errno : 0;
        }
        (void)close(at);
        at = next;
        errno = why;
    }
    return at;
}

enum bt_code confine_open_parent(const struct confine *c, struct str path, bool mkdirs, int *ret_fd,
                                 char ret_name[CONFINE_NAME_MAX + 1], struct bt_error *err)
{
    char text[CONFINE_PATH_MAX + 1];
    const struct confine_root *r;
    const char *rest = text;
    char *name;
    int fd;
    enum bt_code code = check_path(path, text, err);

    if (code != BT_OK) {
        return code;
    }
    name = strrchr(text, '/');
    name = name == NULL ? text : name + 1;
    if (strlen(name) > CONFINE_NAME_MAX || *name == 0 || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0) {
        return err_set(err, BT_INVALID, "'%.200s': expected the name of a file at its end", text);
    }
    memcpy(ret_name, name, strlen(name) + 1);
    r = text[0] == '/' ? root_of(c, text, &rest) : c->n > 0 ? &c->roots[0] : NULL;
    if (r == NULL || *rest == 0) {
        return outside(c, text, c->n > 0 ? "is outside" : "cannot be written", err);
    }
    *name = 0;
    fd =
        mkdirs ? make_dirs(c, r->fd, rest) : confine_openat(c, r->fd, rest, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno != CLOSED) {
        return explain(c, text, errno, err);
    }
    if (fd < 0 || guard_is_state(fd)) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return closed(text, err);
    }
    *ret_fd = fd;
    return BT_OK;
}
