#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/rag/rag.h"
#include "agents/sdk/guard.h"
#include "protocol/base/glob.h"

struct walk {
    const struct rag *rag;
    struct bt_step *step;
    struct rag_files *files;
};

static bool is_wanted(const struct rag *r, const char *name)
{
    for (size_t i = 0; r->include[i] != NULL; i++) {
        if (glob_fits(str_from(r->include[i]), str_from(name))) {
            return true;
        }
    }
    return false;
}

static enum bt_code add(struct walk *w, const char *path, const struct stat *st,
                        struct bt_error *err)
{
    struct rag_files *f = w->files;

    if (f->n >= w->rag->max_files) {
        return err_set(err, BT_LIMIT,
                       "the folder has more than %llu files that fit: name fewer by the setting "
                       "include, or raise maxFiles",
                       (unsigned long long)w->rag->max_files);
    }
    if (f->n == f->cap) {
        const size_t cap = f->cap == 0 ? 64 : f->cap * 2;
        struct rag_file *grown = realloc(f->at, cap * sizeof *grown);
        if (grown == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for a list of files");
        }
        f->at = grown;
        f->cap = cap;
    }
    f->at[f->n] =
        (struct rag_file){.path = strdup(path),
                          .size = (uint64_t)st->st_size,
                          .inode = st->st_ino,
                          .changed = st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec};
    if (f->at[f->n].path == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list of files");
    }
    f->n++;
    return BT_OK;
}

static enum bt_code walk_dir(struct walk *w, int fd, const char *path, int depth,
                             struct bt_error *err);

static enum bt_code visit(struct walk *w, int dir, const char *path, const char *name, int depth,
                          struct bt_error *err)
{
    char whole[CONFINE_PATH_MAX + 1];
    struct stat st;
    int fd;

    if ((size_t)snprintf(whole, sizeof whole, "%s%s%s", path, path[0] != 0 ? "/" : "", name) >=
            sizeof whole ||
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return BT_OK; /* gone again */
    }
    if (S_ISREG(st.st_mode)) {
        if (is_wanted(w->rag, name)) {
            return add(w, whole, &st, err);
        }
        w->files->others++;
        return BT_OK;
    }
    if (!S_ISDIR(st.st_mode)) {
        return BT_OK;
    }
    if (depth == RAG_DEPTH_MAX) {
        return err_set(err, BT_LIMIT, "'%.200s': folders are more than %d deep", whole,
                       RAG_DEPTH_MAX);
    }
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? BT_OK : walk_dir(w, fd, whole, depth + 1, err);
}

/* Takes the descriptor. */
static enum bt_code walk_dir(struct walk *w, int fd, const char *path, int depth,
                             struct bt_error *err)
{
    DIR *d = guard_is_state(fd) ? NULL : fdopendir(fd);
    const struct dirent *e;
    enum bt_code code = BT_OK;

    if (d == NULL) {
        (void)close(fd);
        return BT_OK;
    }
    while (code == BT_OK && (e = readdir(d)) != NULL) {
        if (bt_step_cancelled(w->step)) {
            code = err_set(err, BT_CANCELLED, "cancelled while the folder was read");
        } else if (e->d_name[0] != '.') {
            code = visit(w, dirfd(d), path, e->d_name, depth, err);
        }
    }
    (void)closedir(d);
    return code;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct rag_file *)a)->path, ((const struct rag_file *)b)->path);
}

enum bt_code rag_walk(const struct rag *r, struct bt_step *step, struct rag_files *ret,
                      struct bt_error *err)
{
    struct walk w = {.rag = r, .step = step, .files = ret};
    const int fd = openat(r->folder.roots[0].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum bt_code code;

    *ret = (struct rag_files){0};
    if (fd < 0) {
        return err_errno(err, errno, "folder '%s'", r->folder.roots[0].path);
    }
    code = walk_dir(&w, fd, "", 0, err);
    if (code == BT_OK && ret->n > 0) {
        qsort(ret->at, ret->n, sizeof *ret->at, by_path);
    }
    return code;
}

void rag_files_done(struct rag_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->at[i].path);
    }
    free(f->at);
    *f = (struct rag_files){0};
}

enum bt_code rag_read(const struct rag *r, const char *path, struct buf *out, struct bt_error *err)
{
    const int fd = confine_openat(&r->folder, r->folder.roots[0].fd, path,
                                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    ssize_t n = 1;

    if (fd < 0) {
        return err_errno(err, errno, "cannot be read");
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || guard_is_state(fd)) {
        (void)close(fd);
        return err_set(err, BT_UNAUTHORIZED, "is no file, or one of the supervisor");
    }
    while (n != 0) {
        uint8_t block[65536];
        n = read(fd, block, sizeof block);
        if (n < 0 && errno != EINTR) {
            (void)close(fd);
            return err_errno(err, errno, "cannot be read");
        }
        buf_add(out, block, n > 0 ? (size_t)n : 0);
    }
    (void)close(fd);
    return buf_check(out, err) == BT_OK
               ? BT_OK
               : err_set(err, BT_LIMIT, "has more than %llu bytes (maxFileBytes)",
                         (unsigned long long)r->max_file_bytes);
}
