/* The files of results, beside a copy of the journal: FILE.artifacts/PLAN/NAME. */
#include "supervisor/cli/verbs/storage/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024 };

static const char part[] = ".part"; /* no URI has it: names of artifacts do not begin with a dot */

static enum bt_code failed(const char *what, const char *dir, const char *name,
                           struct bt_error *err)
{
    return err_set(err, BT_IO, "%s %s/%s: %s", what, dir, name, strerror(errno));
}

static enum bt_code copy_bytes(int from, int to, const char *dir, const char *name,
                               struct bt_error *err)
{
    static char bytes[CHUNK];
    ssize_t n;

    while ((n = read(from, bytes, sizeof bytes)) > 0) {
        for (ssize_t at = 0; at < n;) {
            const ssize_t wrote = write(to, bytes + at, (size_t)(n - at));
            if (wrote < 0) {
                return failed("cannot write", dir, name, err);
            }
            at += wrote;
        }
    }
    return n < 0           ? failed("cannot read", dir, name, err)
           : fsync(to) < 0 ? failed("cannot write", dir, name, err)
                           : BT_OK;
}

/* A file that has gone since it was listed is left out. */
static enum bt_code copy_file(int from_dir, int to_dir, const char *dir, const char *name,
                              uint64_t *io_n, struct bt_error *err)
{
    const int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    enum bt_code code = BT_OK;
    struct stat st;
    int to = -1;

    if (from < 0) {
        return errno == ENOENT || errno == ELOOP ? BT_OK : failed("cannot read", dir, name, err);
    }
    if (fstat(from, &st) == 0 && S_ISREG(st.st_mode)) {
        (void)unlinkat(to_dir, part, 0);
        to = openat(to_dir, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        code =
            to < 0 ? failed("cannot write", dir, name, err) : copy_bytes(from, to, dir, name, err);
        if (code == BT_OK && renameat(to_dir, part, to_dir, name) != 0) {
            code = failed("cannot write", dir, name, err);
        }
        *io_n += code == BT_OK;
    }
    if (to >= 0) {
        (void)close(to);
    }
    if (code != BT_OK) {
        (void)unlinkat(to_dir, part, 0);
    }
    (void)close(from);
    return code;
}

static enum bt_code copy_files(DIR *from, int to, const char *dir, uint64_t *io_n,
                               struct bt_error *err)
{
    enum bt_code code = BT_OK;
    struct dirent *e;

    while (code == BT_OK && (e = readdir(from)) != NULL) {
        if (e->d_name[0] != '.') {
            code = copy_file(dirfd(from), to, dir, e->d_name, io_n, err);
        }
    }
    return code == BT_OK && fsync(to) < 0 ? failed("cannot write", dir, ".", err) : code;
}

/* A plan without files gets no directory. */
static enum bt_code copy_plan(int from_root, int to_root, const char *plan, uint64_t *io_n,
                              struct bt_error *err)
{
    const int fd = openat(from_root, plan, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *from = fd < 0 ? NULL : fdopendir(fd);
    const uint64_t before = *io_n;
    enum bt_code code = BT_OK;
    int to;

    if (from == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? BT_OK
                   : failed("cannot read", "artifacts", plan, err);
    }
    to = mkdirat(to_root, plan, 0700) == 0 || errno == EEXIST
             ? openat(to_root, plan, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
             : -1;
    code = to < 0 ? failed("cannot make", "artifacts", plan, err)
                  : copy_files(from, to, plan, io_n, err);
    if (to >= 0) {
        (void)close(to);
    }
    if (*io_n == before) {
        (void)unlinkat(to_root, plan, AT_REMOVEDIR); /* stays when others are in it */
    }
    (void)closedir(from);
    return code;
}

/* Makes the directory, or takes one of ours that is there unless it has to be new. In a directory
 * where others may write, the name may be a link of theirs. */
static enum bt_code open_root(const char *to, bool fresh, int *ret, struct bt_error *err)
{
    struct stat st;

    *ret = -1;
    if (mkdir(to, 0700) != 0 && (errno != EEXIST || fresh)) {
        return failed("cannot make", to, "", err);
    }
    *ret = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret < 0 || fstat(*ret, &st) != 0) {
        return failed("cannot write", to, "", err);
    }
    if (st.st_uid != geteuid() || (st.st_mode & 022) != 0) {
        return err_set(err, BT_UNAUTHORIZED,
                       "%s: belongs to another user, or others may write to it", to);
    }
    return BT_OK;
}

static enum bt_code copy_plans(DIR *from, int to, uint64_t *io_n, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    struct dirent *e;
    struct uuid id;

    while (code == BT_OK && (e = readdir(from)) != NULL) {
        if (uuid_parse(str_from(e->d_name), &id)) {
            code = copy_plan(dirfd(from), to, e->d_name, io_n, err);
        }
    }
    return code;
}

enum bt_code files_copy(const char *from, const char *to, bool fresh, uint64_t *ret_n,
                        struct bt_error *err)
{
    DIR *root = opendir(from);
    enum bt_code code;
    int to_root;

    *ret_n = 0;
    if (root == NULL) {
        return errno == ENOENT ? BT_OK : failed("cannot read", from, "", err);
    }
    code = open_root(to, fresh, &to_root, err);
    code = code == BT_OK ? copy_plans(root, to_root, ret_n, err) : code;
    if (code == BT_OK && fsync(to_root) != 0) {
        code = failed("cannot write", to, "", err);
    }
    if (to_root >= 0) {
        (void)close(to_root);
    }
    if (code == BT_OK && *ret_n == 0) {
        (void)rmdir(to);
    }
    (void)closedir(root);
    return code;
}

/* ---- verify ---- */

static void check_one(struct files_check *c, struct doc entry)
{
    const struct doc bytes = doc_get(entry, STR_LIT("bytes"));
    struct artifact_claim claim = {.sha256 = doc_string(doc_get(entry, STR_LIT("sha256")))};
    const struct str uri = doc_string(doc_get(entry, STR_LIT("uri")));
    struct artifact_place at;
    struct bt_error err;
    struct str key;
    enum bt_code code;
    int fd = -1;

    if (uri.len == 0 || claim.sha256.len == 0 || !artifact_was(uri, &at) ||
        map_get(&c->seen, uri) != MAP_NONE) {
        return;
    }
    key = arena_str(&c->keys, uri);
    c->no_memory = c->no_memory || key.ptr == NULL || map_put(&c->seen, key, 1) != BT_OK;
    claim.bytes = bytes.ptr != NULL && doc_head(bytes).kind == DOC_UINT ? doc_head(bytes).u : 0;
    code = artifact_open(c->root, &at, &claim, NULL, NULL, &fd, &err);
    if (code == BT_OK) {
        c->sound++;
        (void)close(fd);
    } else if (code == BT_GONE) {
        c->gone++;
    } else {
        c->bad++;
        buf_printf(c->report, "damaged: the file %s/%s: %s\n", at.plan, at.file, err.msg);
    }
}

void files_see(const void *result, size_t len, void *self)
{
    const struct doc list = doc_get((struct doc){result, len}, STR_LIT("artifacts"));
    struct doc_cursor cursor = doc_cursor(list);
    struct doc_head head = {.kind = DOC_NIL};

    if (list.ptr == NULL || !doc_next(&cursor, &head) || head.kind != DOC_ARRAY) {
        return;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        check_one(self, doc_skip(&cursor));
    }
}

enum bt_code files_check_end(struct files_check *c, enum bt_code journal, struct bt_error *err)
{
    if (c->sound + c->gone + c->bad > 0) {
        buf_printf(c->report, "files: %llu as they were written, %llu altered, %llu not kept\n",
                   (unsigned long long)c->sound, (unsigned long long)c->bad,
                   (unsigned long long)c->gone);
    }
    map_done(&c->seen);
    arena_done(&c->keys);
    if (journal == BT_OK && c->no_memory) {
        return err_set(err, BT_NOMEM, "out of memory for the files of results");
    }
    return journal == BT_OK && c->bad > 0
               ? err_set(err, BT_IO, "%llu files of results are not as they were written",
                         (unsigned long long)c->bad)
               : journal;
}
