/*
 * Resolves paths that cannot leave their roots. Each root is opened once, at the start. The kernel
 * resolves a path below that descriptor (openat2 with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS).
 * There is no check by name that a rename or a new link could invalidate before the use.
 * Without openat2 the path is walked component by component with O_NOFOLLOW; symbolic links and
 * ".." are rejected. See openat2(2).
 * Threads: read-only once the roots are added; several threads may open files at the same time.
 */
#ifndef SDK_CONFINE_H
#define SDK_CONFINE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"
#include "protocol/wire/doc.h"

enum { CONFINE_ROOTS_MAX = 32, CONFINE_PATH_MAX = 4095, CONFINE_NAME_MAX = 255 };

struct confine_root {
    char *path; /* absolute, without a slash at its end */
    int fd;
};

struct confine {
    struct confine_root roots[CONFINE_ROOTS_MAX];
    unsigned n;
    bool walk; /* openat2 is not available */
};

enum confine_kind { CONFINE_FILE, CONFINE_DIR };

/* Opens an absolute directory as a root. BT_INVALID when the path is not absolute, BT_LIMIT over
 * CONFINE_ROOTS_MAX, else the code of the system's error. */
BT_MUST_CHECK enum bt_code confine_add(struct confine *c, const char *path, struct bt_error *err);
/* The same for a list of settings, which may be absent; `name` is the setting's. */
BT_MUST_CHECK enum bt_code confine_add_all(struct confine *c, struct doc list, const char *name,
                                           struct bt_error *err);
/* Accepts zeroed; idempotent. */
void confine_done(struct confine *c);

/*
 * Opens a regular file or a directory for reading; the caller closes it. A relative path is tried
 * below each root in order. BT_INVALID: an invalid path, or another kind of file (FIFOs and devices
 * are never waited for). BT_NOT_FOUND. BT_UNAUTHORIZED: outside of the roots, or the system denies
 * access.
 */
BT_MUST_CHECK enum bt_code confine_open(const struct confine *c, struct str path,
                                        enum confine_kind kind, int *ret_fd, struct stat *ret_st,
                                        struct bt_error *err);
/*
 * Opens the directory that contains (or will contain) the path and returns the last name. mkdirs
 * makes missing directories; then ".." is rejected. The caller closes the descriptor.
 */
BT_MUST_CHECK enum bt_code confine_open_parent(const struct confine *c, struct str path,
                                               bool mkdirs, int *ret_fd,
                                               char ret_name[CONFINE_NAME_MAX + 1],
                                               struct bt_error *err);
/* Copies the next component of *rest into name and its length into *ret_len; a name that is too
 * long is not copied. False at the end. */
bool confine_next_name(const char **rest, char name[CONFINE_NAME_MAX + 1], size_t *ret_len);
/* Whether the kernel lacks openat2. */
bool confine_needs_walk(int root);
/* Resolves a path below a descriptor, with open(2)'s flags. -1 with errno; EXDEV when the path
 * would leave it. */
int confine_openat(const struct confine *c, int root, const char *rest, int flags);
#endif
