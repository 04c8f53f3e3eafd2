/* Copies of the journal: of an open one in slices, of one that no daemon holds, and back. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/journal/sqlite_internal.h"

/* A restored journal counts as opened so often more: epochs that agents have seen since the copy
 * was made are not given again. */
#define RESTORE_BOOTS "1000"

struct sqlite_copy {
    sqlite3 *to;
    sqlite3_backup *backup;
    int fd; /* of the part, from its beginning: in a directory where others may write, its name may
             * lead to another file a moment later */
    char path[PATH_TEXT_MAX]; /* the file; it is written as path.part */
};

static enum bt_code part_of(const char *path, char ret[PATH_TEXT_MAX], struct bt_error *err)
{
    int n = snprintf(ret, PATH_TEXT_MAX, "%s.part", path);
    return n < 0 || n >= PATH_TEXT_MAX
               ? err_set(err, BT_INVALID, "the name of the copy is over %d bytes long",
                         PATH_TEXT_MAX - 8)
               : BT_OK;
}

static enum bt_code sync_path(const char *path, int flags, struct bt_error *err)
{
    int fd = open(path, flags | O_CLOEXEC);
    enum bt_code code = BT_OK;

    if (fd < 0 || fsync(fd) != 0) {
        code = err_errno(err, errno, "cannot sync %s", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

static enum bt_code sync_parent(const char *path, struct bt_error *err)
{
    char dir[PATH_TEXT_MAX];
    char *slash;

    (void)snprintf(dir, sizeof dir, "%s", path);
    slash = strrchr(dir, '/');
    if (slash == NULL) {
        return sync_path(".", O_RDONLY | O_DIRECTORY, err);
    }
    slash[slash == dir ? 1 : 0] = 0;
    return sync_path(dir, O_RDONLY | O_DIRECTORY, err);
}

/* Makes path.part for writing; the file itself must not exist. */
static enum bt_code make_part(const char *path, char part[PATH_TEXT_MAX], int *ret_fd,
                              struct bt_error *err)
{
    struct stat st;
    enum bt_code code = part_of(path, part, err);

    *ret_fd = -1;
    if (code == BT_OK && lstat(path, &st) == 0) {
        code = err_set(err, BT_CONFLICT, "%s exists; give the copy another name", path);
    }
    if (code != BT_OK) {
        return code;
    }
    (void)unlink(part); /* left by a copy that was interrupted */
    *ret_fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *ret_fd < 0 ? err_errno(err, errno, "cannot make %s", part) : BT_OK;
}

/* Whether this process has the file open once more: SQLite, which opens names, has opened it and no
 * other. */
static bool is_open_twice(int fd)
{
    DIR *list = opendir("/proc/self/fd");
    const struct dirent *entry;
    struct stat own;
    struct stat st;
    bool found = false;

    if (list == NULL || fstat(fd, &own) != 0) {
        (void)(list != NULL && closedir(list));
        return false;
    }
    while (!found && (entry = readdir(list)) != NULL) {
        const int other = (int)strtol(entry->d_name, NULL, 10);
        found = entry->d_name[0] != '.' && other != fd && fstat(other, &st) == 0 &&
                st.st_dev == own.st_dev && st.st_ino == own.st_ino;
    }
    (void)closedir(list);
    return found;
}

/* Gives the part its name: that very file, whatever is called path.part by now. */
static enum bt_code finish_part(const char *path, int fd, struct bt_error *err)
{
    char opened[64];
    enum bt_code code = BT_OK;

    (void)snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
    if (fsync(fd) != 0) {
        code = err_errno(err, errno, "cannot sync %s", path);
    }
    /* link and not rename: what came there meanwhile is not overwritten */
    if (code == BT_OK && linkat(AT_FDCWD, opened, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0) {
        code = err_errno(err, errno, "cannot name the copy %s", path);
    }
    return code;
}

static void copy_free(struct sqlite_copy *c)
{
    char part[PATH_TEXT_MAX];

    (void)sqlite3_backup_finish(c->backup);
    (void)sqlite3_close(c->to);
    if (c->fd >= 0) {
        close(c->fd);
    }
    if (c->path[0] != 0 && part_of(c->path, part, NULL) == BT_OK) {
        (void)unlink(part);
    }
    free(c);
}

static enum bt_code copy_new(sqlite3 *from, const char *path, struct sqlite_copy **ret,
                             struct bt_error *err)
{
    struct sqlite_copy *c = calloc(1, sizeof *c);
    char part[PATH_TEXT_MAX];
    enum bt_code code;

    if (c == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a copy");
    }
    code = make_part(path, part, &c->fd, err);
    if (code != BT_OK) {
        free(c);
        return code;
    }
    (void)snprintf(c->path, sizeof c->path, "%s", path);
    if (sqlite3_open_v2(part, &c->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        code = err_set(err, BT_IO, "cannot open the copy: %s", sqlite3_errmsg(c->to));
    } else if (!is_open_twice(c->fd)) {
        code = err_set(err, BT_UNAUTHORIZED,
                       "%s became another file while it was opened: others may write to its "
                       "directory; give the copy a place in a directory of your own",
                       part);
    } else {
        (void)sqlite3_exec(c->to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;", NULL,
                           NULL, NULL);
        c->backup = sqlite3_backup_init(c->to, "main", from, "main");
        if (c->backup == NULL) {
            code = err_set(err, BT_IO, "cannot begin the copy: %s", sqlite3_errmsg(c->to));
        }
    }
    if (code != BT_OK) {
        copy_free(c);
        return code;
    }
    *ret = c;
    return BT_OK;
}

/* Copies pages (-1: all that are left). */
static enum bt_code copy_step(struct sqlite_copy *c, int pages, bool *ret_done,
                              struct bt_error *err)
{
    int rc = sqlite3_backup_step(c->backup, pages);

    *ret_done = rc == SQLITE_DONE;
    (void)sync_file_range(c->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_BUSY || rc == SQLITE_LOCKED) {
        return BT_OK;
    }
    return err_set(err, (rc & 0xff) == SQLITE_FULL ? BT_UNAVAILABLE : BT_IO,
                   "cannot write the copy %s: %s", c->path, sqlite3_errstr(rc));
}

static enum bt_code copy_finish(struct sqlite_copy *c, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    char path[PATH_TEXT_MAX];

    memcpy(path, c->path, sizeof path);
    if (sqlite3_backup_finish(c->backup) != SQLITE_OK || sqlite3_close(c->to) != SQLITE_OK) {
        code = err_set(err, BT_IO, "cannot finish the copy %s", c->path);
    }
    c->backup = NULL;
    c->to = NULL;
    if (code == BT_OK) {
        code = finish_part(path, c->fd, err);
    }
    copy_free(c);
    return code == BT_OK ? sync_parent(path, err) : code;
}

/* ---- of the open journal ---- */

enum bt_code sqlite_backup_begin(struct journal *j, const char *path, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);

    if (s->copy != NULL) {
        return err_set(err, BT_BUSY, "another copy is being made: %s", s->copy->path);
    }
    return copy_new(s->db, path, &s->copy, err);
}

enum bt_code sqlite_backup_step(struct journal *j, uint32_t pages, struct journal_backup *ret,
                                struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    struct sqlite_copy *c = s->copy;
    enum bt_code code = copy_step(c, (int)pages, &ret->done, err);

    ret->pages = (uint64_t)sqlite3_backup_pagecount(c->backup);
    ret->left = (uint64_t)sqlite3_backup_remaining(c->backup);
    if (code != BT_OK || ret->done) {
        s->copy = NULL;
        if (code != BT_OK) {
            copy_free(c);
        } else {
            code = copy_finish(c, err);
        }
    }
    return code;
}

void sqlite_backup_cancel(struct sqlite_journal *s)
{
    if (s->copy != NULL) {
        copy_free(s->copy);
        s->copy = NULL;
    }
}

/* ---- of a journal that no daemon holds ---- */

/* The lock and the connection; the caller closes both. */
static enum bt_code open_stopped(const char *dir, int *ret_lock, sqlite3 **ret,
                                 struct bt_error *err)
{
    char path[PATH_TEXT_MAX];
    enum bt_code code = sqlite_path(dir, "journal.db", path, err);

    *ret = NULL;
    *ret_lock = -1;
    if (code == BT_OK) {
        code = sqlite_lock_dir(dir, false, ret_lock, err);
    }
    if (code == BT_OK) {
        code = sqlite_check_file(dir, false, err);
    }
    if (code == BT_OK) {
        code = sqlite_connect(path, ret, err);
    }
    if (code == BT_OK) {
        int version;
        (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        code = sqlite_version_check(*ret, &version, err);
    }
    return code;
}

enum bt_code journal_backup_stopped(const char *dir, const char *path, struct bt_error *err)
{
    struct sqlite_copy *c = NULL;
    sqlite3 *db;
    bool done = false;
    int lock;
    enum bt_code code = open_stopped(dir, &lock, &db, err);

    if (code == BT_OK) {
        code = copy_new(db, path, &c, err);
    }
    if (code == BT_OK) {
        code = copy_step(c, -1, &done, err);
    }
    if (code == BT_OK && !done) {
        code = err_set(err, BT_IO, "the journal is in use");
    }
    if (code == BT_OK) {
        code = copy_finish(c, err);
    } else if (c != NULL) {
        copy_free(c);
    }
    (void)sqlite3_close(db);
    if (lock >= 0) {
        close(lock);
    }
    return code;
}

/* ---- back ---- */

/* Copies the file under another name of the state directory, counts its boots, and syncs it. */
static enum bt_code stage(const char *from, const char *staged, struct bt_error *err)
{
    struct sqlite_copy *c = NULL;
    sqlite3 *db = NULL;
    sqlite3 *copy = NULL;
    bool done = false;
    enum bt_code code = sqlite_open_copy(from, &db, err);

    (void)unlink(staged);
    if (code == BT_OK) {
        code = copy_new(db, staged, &c, err);
    }
    if (code == BT_OK) {
        code = copy_step(c, -1, &done, err);
    }
    if (code == BT_OK) {
        code = copy_finish(c, err);
    } else if (c != NULL) {
        copy_free(c);
    }
    (void)sqlite3_close(db);
    if (code == BT_OK) {
        code = sqlite_connect(staged, &copy, err);
    }
    if (code == BT_OK) {
        code = sqlite_exec(
            copy, "UPDATE meta SET value = value + " RESTORE_BOOTS " WHERE key = 'boot'", err);
    }
    if (code == BT_OK && sqlite3_wal_checkpoint_v2(copy, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                                   NULL) != SQLITE_OK) {
        code = sqlite_error(copy, "cannot finish the restored journal", err);
    }
    (void)sqlite3_close(copy);
    return code == BT_OK ? sync_path(staged, O_RDONLY, err) : code;
}

/* Renames dir/name to dir/name.old when it is there. */
static enum bt_code put_aside(const char *dir, const char *name, const char *old,
                              struct bt_error *err)
{
    char from[PATH_TEXT_MAX];
    char to[PATH_TEXT_MAX];
    enum bt_code code = sqlite_path(dir, name, from, err);

    if (code == BT_OK) {
        code = sqlite_path(dir, old, to, err);
    }
    if (code == BT_OK && rename(from, to) != 0 && errno != ENOENT) {
        code = err_errno(err, errno, "cannot put %s aside", from);
    }
    return code;
}

enum bt_code journal_restore(const char *dir, const char *path, bool replace, struct bt_error *err)
{
    char staged[PATH_TEXT_MAX];
    char db[PATH_TEXT_MAX];
    struct stat st;
    int lock = -1;
    enum bt_code code = sqlite_path(dir, "journal.db.restored", staged, err);

    if (code == BT_OK) {
        code = sqlite_path(dir, "journal.db", db, err);
    }
    if (code == BT_OK) {
        code = sqlite_lock_dir(dir, true, &lock, err);
    }
    if (code == BT_OK && !replace && lstat(db, &st) == 0) {
        code = err_set(err, BT_CONFLICT,
                       "%s exists; to replace it (it stays as journal.db.old) give --force", db);
    }
    if (code == BT_OK) {
        code = stage(path, staged, err);
    }
    /* The journal first: alone, its log is refused at a start (Q15) and nothing is mixed. */
    if (code == BT_OK) {
        code = put_aside(dir, "journal.db", "journal.db.old", err);
    }
    if (code == BT_OK) {
        code = put_aside(dir, "journal.db-wal", "journal.db.old-wal", err);
    }
    if (code == BT_OK && rename(staged, db) != 0) {
        code = err_errno(err, errno, "cannot rename %s to %s", staged, db);
    }
    if (code == BT_OK) {
        code = sync_path(dir, O_RDONLY | O_DIRECTORY, err);
    }
    if (lock >= 0) {
        close(lock);
    }
    return code;
}
