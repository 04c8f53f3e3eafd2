/* list: the entries of a directory. Links are listed, never followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/files/files.h"
#include "agents/files/glob.h"
#include "agents/sdk/guard.h"
#include "agents/sdk/whole.h"
#include "protocol/base/clock.h"

enum {
    ENTRIES_MAX = 20000, /* nine values each: a result has LIMIT_NODES of them */
    DEPTH_MAX = 16,
    VISITED_MAX = 200000 /* names read; a glob must not make a step endless */
};

struct entry {
    char *name; /* relative to the listed directory */
    mode_t mode;
    uint64_t size;
    msec mtime;
};

struct listing {
    struct bt_step *step;
    const char *glob; /* NULL = all names */
    bool recursive;
    uint32_t limit;
    struct entry *at;
    uint32_t n;
    uint32_t visited;
    uint32_t unreadable; /* directories that could not be read */
    bool truncated;      /* there are more than the limit */
    bool limited;        /* the step asked for it */
};

static const char *type_name(mode_t mode)
{
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "other";
}

static enum bt_code add(struct listing *l, const char *path, const struct stat *st,
                        struct bt_error *err)
{
    struct entry *e = &l->at[l->n];

    if (l->n == l->limit) {
        l->truncated = true;
        return l->limited ? BT_OK
                          : err_set(err, BT_LIMIT,
                                    "result_too_large: more than %d names; narrow them by glob, "
                                    "list a subdirectory, or set `limit` to get some of them",
                                    ENTRIES_MAX);
    }
    e->name = strdup(path);
    if (e->name == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a directory");
    }
    e->mode = st->st_mode;
    e->size = st->st_size > 0 ? (uint64_t)st->st_size : 0;
    e->mtime = (msec)st->st_mtim.tv_sec * 1000 + (msec)(st->st_mtim.tv_nsec / 1000000);
    l->n++;
    return BT_OK;
}

static bool wanted(const struct listing *l, const char *path, const char *name)
{
    return l->glob == NULL || glob_match(l->glob, strchr(l->glob, '/') != NULL ? path : name);
}

static enum bt_code walk(struct listing *l, int fd, const char *prefix, unsigned depth,
                         struct bt_error *err);

static enum bt_code enter(struct listing *l, int dir, const char *name, const char *path,
                          unsigned depth, struct bt_error *err)
{
    int fd;

    if (depth == DEPTH_MAX) {
        return err_set(err, BT_LIMIT,
                       "'%.200s' is nested deeper than %d directories; list it by itself", path,
                       DEPTH_MAX);
    }
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        l->unreadable++; /* not readable, or removed meanwhile: list the rest all the same */
        return BT_OK;
    }
    if (guard_is_state(fd)) { /* it is listed by its name, like any directory */
        (void)close(fd);
        return BT_OK;
    }
    return walk(l, fd, path, depth + 1, err);
}

static enum bt_code visit(struct listing *l, int dir, const char *prefix, const char *name,
                          unsigned depth, struct bt_error *err)
{
    char path[CONFINE_PATH_MAX + 1];
    struct stat st;
    enum bt_code code = BT_OK;
    int n = snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] != 0 ? "/" : "", name);

    if (n < 0 || (size_t)n >= sizeof path) {
        return err_set(err, BT_LIMIT,
                       "a name below '%.200s' makes a path of more than %d bytes; list that "
                       "directory by itself",
                       prefix, CONFINE_PATH_MAX);
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return BT_OK; /* removed meanwhile */
    }
    if (wanted(l, path, name)) {
        code = add(l, path, &st, err);
    }
    if (code == BT_OK && l->recursive && S_ISDIR(st.st_mode)) {
        code = enter(l, dir, name, path, depth, err);
    }
    return code;
}

/* Takes ownership of the descriptor. */
static enum bt_code walk(struct listing *l, int fd, const char *prefix, unsigned depth,
                         struct bt_error *err)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *e;
    enum bt_code code = BT_OK;

    if (dir == NULL) {
        code = err_errno(err, errno, "reading the directory");
        (void)close(fd);
        return code;
    }
    while (code == BT_OK && !l->truncated && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (bt_step_cancelled(l->step)) {
            code = err_set(err, BT_CANCELLED, "cancelled while listing");
        } else if (++l->visited > VISITED_MAX) {
            code = err_set(err, BT_LIMIT, "more than %d names were read; list a subdirectory",
                           VISITED_MAX);
        } else {
            code = visit(l, dirfd(dir), prefix, e->d_name, depth, err);
        }
    }
    (void)closedir(dir);
    return code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void put_entry(const struct entry *e, struct buf *data, struct buf *text)
{
    char when[CLOCK_ISO_LEN + 1];
    struct buf name;

    buf_init(&name, (size_t)CONFINE_PATH_MAX * 3 + 3);
    (void)buf_add_repaired(&name, str_from(e->name));
    clock_iso(e->mtime, when);
    if (name.bad != BT_OK) {
        data->bad = name.bad; /* a name that is left out would be another one */
    }
    doc_put_map(data, 4);
    files_put_text(data, "name", buf_str(&name));
    files_put_text(data, "type", str_from(type_name(e->mode)));
    files_put_count(data, "size", e->size);
    files_put_text(data, "mtime", str_from(when));
    buf_printf(text, "%s  %10llu  %s%s\n", when, (unsigned long long)e->size, buf_cstr(&name),
               S_ISDIR(e->mode) ? "/" : "");
    buf_done(&name);
}

static void reply(struct listing *l, struct str path)
{
    struct buf data;
    struct buf text;

    buf_init(&data, LIMIT_STEP_BYTES);
    buf_init(&text, LIMIT_RESULT_BYTES);
    if (l->n > 0) {
        qsort(l->at, l->n, sizeof *l->at, by_name);
    }
    doc_put_map(&data, 5);
    files_put_text(&data, "path", path);
    files_put_count(&data, "count", l->n);
    files_put_bool(&data, "truncated", l->truncated);
    files_put_count(&data, "unreadable", l->unreadable);
    doc_put_cstr(&data, "entries");
    doc_put_array(&data, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        put_entry(&l->at[i], &data, &text);
    }
    if (l->truncated) {
        whole_mark(l->step, &text,
                   "%u names, and there are more; raise `limit` (at most %d), or narrow them by "
                   "glob",
                   l->n, ENTRIES_MAX);
    }
    if (l->unreadable > 0) {
        whole_mark(l->step, &text,
                   "%u directories could not be read; give the agent the permission to read them",
                   l->unreadable);
    }
    files_reply(l->step, &data, &text);
    buf_done(&data);
    buf_done(&text);
}

void files_list(struct bt_step *step, void *self)
{
    const struct files *f = self;
    struct str path = files_param(step, "path");
    struct listing l = {.step = step,
                        .glob = bt_step_param_string(step, "glob", NULL),
                        .recursive = bt_step_param_bool(step, "recursive", false),
                        .limit = files_param_count(step, "limit", ENTRIES_MAX, ENTRIES_MAX),
                        .limited = bt_step_has_param(step, "limit")};
    struct bt_error err;
    struct stat st;
    int fd = -1;
    enum bt_code code = confine_open(&f->read, path, CONFINE_DIR, &fd, &st, &err);

    if (code == BT_OK) {
        l.at = calloc((size_t)l.limit + 1, sizeof *l.at);
        if (l.at == NULL) {
            (void)close(fd);
            code = err_set(&err, BT_NOMEM, "out of memory for a directory");
        } else {
            code = walk(&l, fd, "", 0, &err);
        }
    }
    if (code == BT_OK) {
        reply(&l, path);
    } else {
        bt_step_fail_error(step, &err);
    }
    for (uint32_t i = 0; i < l.n; i++) {
        free(l.at[i].name);
    }
    free(l.at);
}
