#include "supervisor/cli/common/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/cli/common/cli.h"

enum { ENTRIES_MAX = 1000, PATH_BYTES = 8192, BLOCK = 65536 };

static bool add(struct copy_list *list, const char *path, const struct stat *st)
{
    struct copy_entry *grown = list->at;

    if (list->n == ENTRIES_MAX) {
        cli_error("there are more than %d files; make the directory by hand", ENTRIES_MAX);
        return false;
    }
    if (list->n % 64 == 0) {
        grown = realloc(list->at, (list->n + 64) * sizeof *grown);
    }
    if (grown != NULL) {
        list->at = grown;
        grown[list->n] = (struct copy_entry){.path = strdup(path),
                                             .is_dir = S_ISDIR(st->st_mode),
                                             .is_program = (st->st_mode & 0100) != 0};
    }
    if (grown == NULL || grown[list->n].path == NULL) {
        cli_error("out of memory for the list of files");
        return false;
    }
    list->n++;
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct copy_entry *)a)->path, ((const struct copy_entry *)b)->path);
}

/* Adds what is in the directory `below` of `dir`; below is "" or ends with a slash. */
static bool read_one(const char *dir, const char *below, struct copy_list *ret)
{
    char path[PATH_BYTES];
    const struct dirent *e;
    struct stat st;
    DIR *d;
    bool ok = true;

    (void)snprintf(path, sizeof path, "%.4000s/%.2000s", dir, below);
    d = opendir(path);
    if (d == NULL) {
        cli_error("%s: %s", path, strerror(errno));
        return false;
    }
    while (ok && (e = readdir(d)) != NULL) {
        (void)snprintf(path, sizeof path, "%.2000s%.255s", below, e->d_name);
        if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) {
            ok = add(ret, path, &st);
        }
    }
    (void)closedir(d);
    return ok;
}

bool copy_list_read(const char *dir, bool deep, struct copy_list *ret)
{
    char below[PATH_BYTES];
    bool ok = read_one(dir, "", ret);

    /* The list grows while it is walked: what is found in a directory comes after it. */
    for (size_t i = 0; ok && deep && i < ret->n; i++) {
        if (ret->at[i].is_dir) {
            (void)snprintf(below, sizeof below, "%s/", ret->at[i].path);
            ok = read_one(dir, below, ret);
        }
    }
    if (ok && ret->n > 0) {
        qsort(ret->at, ret->n, sizeof *ret->at, by_path);
    }
    return ok;
}

void copy_list_free(struct copy_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->at[i].path);
    }
    free(list->at);
    *list = (struct copy_list){.n = 0};
}

static bool copy_bytes(int in, int out)
{
    char block[BLOCK];
    ssize_t n;

    while ((n = read(in, block, sizeof block)) > 0) {
        for (ssize_t done = 0; done < n;) {
            const ssize_t put = write(out, block + done, (size_t)(n - done));
            if (put < 0) {
                return false;
            }
            done += put;
        }
    }
    return n == 0;
}

/* Nobody else may write to it, whatever the umask: it chooses programs. *ret_made: it is there,
 * also when the copy failed. */
static bool copy_file(const char *from, const char *to, bool is_program, bool *ret_made)
{
    const int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const int out =
        in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_program ? 0755 : 0644);
    bool ok = out >= 0 && copy_bytes(in, out);

    *ret_made = out >= 0;
    ok = (out < 0 || close(out) == 0) && ok;
    if (!ok) {
        cli_error("%s: %s", in < 0 ? from : to, strerror(errno));
    }
    if (in >= 0) {
        (void)close(in);
    }
    return ok;
}

/* *ret_made: it was not there. */
static bool make_dir(const char *path, bool *ret_made)
{
    struct stat st;

    *ret_made = mkdir(path, 0755) == 0;
    if (*ret_made || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))) {
        return true;
    }
    cli_error("%s: %s", path, strerror(errno));
    return false;
}

/* *ret_there: how many bytes of the path were there. */
static bool make_dirs(const char *path, size_t *ret_there)
{
    char part[PATH_BYTES];
    bool made = false;
    bool any = false;

    *ret_there = 0;
    for (size_t i = 1; path[i - 1] != '\0'; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            (void)snprintf(part, sizeof part, "%.*s", (int)i, path);
            if (!make_dir(part, &made)) {
                return false;
            }
            any = any || made;
            *ret_there = any ? *ret_there : i;
        }
    }
    return true;
}

bool copy_tree(const char *from, const char *to, struct copy_list *list)
{
    char source[PATH_BYTES];
    char target[PATH_BYTES];
    bool ok = make_dirs(to, &list->there);

    for (size_t i = 0; ok && i < list->n; i++) {
        struct copy_entry *e = &list->at[i];
        (void)snprintf(source, sizeof source, "%.4000s/%.4000s", from, e->path);
        (void)snprintf(target, sizeof target, "%.4000s/%.4000s", to, e->path);
        ok = e->is_dir ? make_dir(target, &e->made)
                       : copy_file(source, target, e->is_program, &e->made);
    }
    return ok;
}

bool copy_tree_remove(const char *to, const struct copy_list *list)
{
    char path[PATH_BYTES];
    size_t n = strlen(to);
    int removed = 0;

    for (size_t i = list->n; i-- > 0;) {
        const struct copy_entry *e = &list->at[i];
        (void)snprintf(path, sizeof path, "%.4000s/%.4000s", to, e->path);
        if (e->made) {
            removed += (e->is_dir ? rmdir(path) : unlink(path)) == 0;
        }
    }
    while (n > list->there) {
        (void)snprintf(path, sizeof path, "%.*s", (int)n, to);
        removed += rmdir(path) == 0;
        while (n > list->there && to[n - 1] != '/') {
            n--;
        }
        while (n > list->there && to[n - 1] == '/') {
            n--;
        }
    }
    return removed > 0;
}
