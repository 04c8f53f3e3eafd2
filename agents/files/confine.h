/*
 * Paths that cannot leave their roots. Every root is opened once, at the start; a path is resolved
 * by the kernel below that descriptor (openat2 with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS), so
 * that no rename or new link between a check and a use changes what is opened: there is no check on
 * names, only the descriptor that came out. Where openat2 is missing or forbidden, the path is
 * walked component by component with O_NOFOLLOW, and symbolic links and ".." are refused.
 *
 * Threads: read-only once it is filled; several may open at the same time.
 */
#ifndef FILES_CONFINE_H
#define FILES_CONFINE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum { CONFINE_ROOTS_MAX = 32, CONFINE_PATH_MAX = 4095, CONFINE_NAME_MAX = 255 };

struct confine_root {
    char *path; /* absolute, without a slash at its end */
    int fd;
};

struct confine {
    struct confine_root roots[CONFINE_ROOTS_MAX];
    unsigned n;
    bool walk; /* without openat2 */
};

enum confine_kind { CONFINE_FILE, CONFINE_DIR };

/* Opens an absolute directory as a root. BT_INVALID when the path is not absolute, BT_LIMIT over
 * CONFINE_ROOTS_MAX, else what the system says. */
BT_MUST_CHECK enum bt_code confine_add(struct confine *c, const char *path, struct bt_error *err);
/* Accepts zeroed; idempotent. */
void confine_done(struct confine *c);

/*
 * Opens a regular file or a directory for reading; the caller closes. A relative path is tried
 * below each root in their order. BT_INVALID: the path is none, or it is another kind of thing
 * (FIFOs and devices are never waited for); BT_NOT_FOUND; BT_UNAUTHORIZED: outside of the roots, or
 * the system forbids it.
 */
BT_MUST_CHECK enum bt_code confine_open(const struct confine *c, struct str path,
                                        enum confine_kind kind, int *ret_fd, struct stat *ret_st,
                                        struct bt_error *err);
/*
 * Opens the directory that holds (or will hold) the path and gives the last name. mkdirs makes the
 * directories that are missing; then ".." is refused. The caller closes.
 */
BT_MUST_CHECK enum bt_code confine_open_parent(const struct confine *c, struct str path,
                                               bool mkdirs, int *ret_fd,
                                               char ret_name[CONFINE_NAME_MAX + 1],
                                               struct bt_error *err);
/* The next component of *rest into name, *ret_len its length (name is not filled when it is too
 * long); false at the end. */
bool confine_next_name(const char **rest, char name[CONFINE_NAME_MAX + 1], size_t *ret_len);
/* Whether the kernel cannot confine for us. */
bool confine_needs_walk(int root);
/* Resolves below a descriptor, with open(2)'s flags. -1 with errno; EXDEV when it would leave. */
int confine_openat(const struct confine *c, int root, const char *rest, int flags);
#endif
