/* The files of a journal: the directory, the lock, and the check that journal.db is Baton's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/journal/sqlite_internal.h"

enum {
    HEADER_BYTES = 100,
    HEADER_APPLICATION_ID = 68
}; /* https://sqlite.org/fileformat.html 1.3 (the database header) */

enum bt_code sqlite_path(const char *dir, const char *name, char *ret, struct bt_error *err)
{
    int n = snprintf(ret, PATH_TEXT_MAX, "%s/%s", dir, name);
    if (n < 0 || n >= PATH_TEXT_MAX) {
        return err_set(err, BT_INVALID, "the path of the state directory is over %d bytes long",
                       PATH_TEXT_MAX - 16);
    }
    return BT_OK;
}

enum bt_code sqlite_sync_dir(const char *dir, struct bt_error *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum bt_code code = BT_OK;

    if (fd < 0 || fsync(fd) != 0) {
        code = err_errno(err, errno, "cannot sync the directory %s", dir);
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

/* mkdir -p with 0700. Changes path while it runs, and restores it. */
static enum bt_code make_dirs(char *path, struct bt_error *err)
{
    size_t len = strlen(path);

    for (size_t i = 1; i <= len; i++) {
        char was = path[i];
        bool made;
        if (was != '/' && was != 0) {
            continue;
        }
        path[i] = 0;
        made = mkdir(path, 0700) == 0;
        if (!made && errno != EEXIST && errno != EROFS && errno != EACCES && errno != EPERM) {
            return err_errno(err, errno, "cannot make the state directory %s", path);
        }
        path[i] = was;
        if (made) {
            char *slash;
            char parent[PATH_TEXT_MAX];
            memcpy(parent, path, i);
            parent[i] = 0;
            slash = strrchr(parent, '/');
            if (slash != NULL && slash != parent) {
                *slash = 0;
                enum bt_code code = sqlite_sync_dir(parent, err);
                if (code != BT_OK) {
                    return code;
                }
            }
        }
    }
    return BT_OK;
}

static enum bt_code dir_ready(const char *dir, bool create, struct bt_error *err)
{
    char path[PATH_TEXT_MAX];
    struct stat st;
    enum bt_code code = sqlite_path(dir, "", path, err);

    if (code == BT_OK && create) {
        path[strlen(path) - 1] = 0; /* the slash */
        code = make_dirs(path, err);
    }
    if (code != BT_OK) {
        return code;
    }
    if (stat(dir, &st) != 0) {
        return err_errno(err, errno, "cannot use the state directory %s", dir);
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, BT_INVALID, "the state directory %s is not a directory", dir);
    }
    return BT_OK;
}

static enum bt_code lock_holder(int fd, const char *dir, struct bt_error *err)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, " \n")] = 0;
    return err_set(err, BT_CONFLICT,
                   "the state directory %s is in use by the daemon with pid %s; stop it, or give "
                   "this one its own directory",
                   dir, text[0] != 0 ? text : "(unknown)");
}

enum bt_code sqlite_lock_dir(const char *dir, bool create, int *ret_fd, struct bt_error *err)
{
    char path[PATH_TEXT_MAX];
    char pid[32];
    struct stat st;
    int fd = -1;
    enum bt_code code = dir_ready(dir, create, err);

    *ret_fd = -1;
    if (code == BT_OK) {
        code = sqlite_path(dir, "lock", path, err);
    }
    if (code != BT_OK) {
        return code;
    }
    /* O_NONBLOCK: a FIFO in its place must not block the daemon. */
    fd = open(path, O_RDWR | (create ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        return err_errno(err, errno, "cannot open the lock file %s", path);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        code = err_set(err, BT_INVALID, "the lock file %s is not a regular file", path);
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        code = errno == EWOULDBLOCK ? lock_holder(fd, dir, err)
                                    : err_errno(err, errno, "cannot lock %s", path);
    } else if (create) {
        /* Of one length and in place: on a full disk the file keeps its block. The pid is only for
         * the error message; the lock works without it. */
        int n = snprintf(pid, sizeof pid, "%-20ld\n", (long)getpid());
        if (pwrite(fd, pid, (size_t)n, 0) != n || ftruncate(fd, n) != 0) {
            errno = 0;
        }
    }
    if (code != BT_OK) {
        close(fd);
        return code;
    }
    *ret_fd = fd;
    return BT_OK;
}

/* BT_NOT_FOUND when it is missing; BT_INVALID when it is not a regular file (a symlink, a FIFO,
 * ...). */
static enum bt_code check_regular(const char *path, struct stat *ret, struct bt_error *err)
{
    if (lstat(path, ret) != 0) {
        return err_errno(err, errno, "cannot read the status of %s", path);
    }
    if (!S_ISREG(ret->st_mode)) {
        return err_set(err, BT_INVALID, "%s is not a regular file; move it away", path);
    }
    return BT_OK;
}

/* Reads the header before SQLite opens the file, because SQLite may change a foreign file (Q6). */
enum bt_code sqlite_check_header(const char *path, struct bt_error *err)
{
    uint8_t head[HEADER_BYTES];
    const uint8_t *id = head + HEADER_APPLICATION_ID;
    ssize_t n;
    /* O_NONBLOCK: nobody may write to a FIFO of this name. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        return err_errno(err, errno, "cannot open %s", path);
    }
    n = pread(fd, head, sizeof head, 0);
    close(fd);
    if (n == 0) {
        return err_set(err, BT_INVALID,
                       "%s is empty: it was cut off; restore it from a copy, or remove it and its "
                       "-wal file to start with an empty journal",
                       path);
    }
    if (n != (ssize_t)sizeof head || memcmp(head, "SQLite format 3", 16) != 0) {
        return err_set(err, BT_INVALID, "%s is not a journal of Baton (no SQLite file)", path);
    }
    if (((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) !=
        APPLICATION_ID) {
        return err_set(err, BT_INVALID, "%s is an SQLite file of another program", path);
    }
    return BT_OK;
}

/* The whole schema must be in the main file before the rename: the log would keep the old name
 * (Q7). */
static enum bt_code build(const char *fresh, struct bt_error *err)
{
    sqlite3 *db = NULL;
    enum bt_code code = sqlite_connect(fresh, &db, err);

    if (code == BT_OK) {
        code = sqlite_migrate(db, err);
    }
    if (code == BT_OK &&
        sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK) {
        code = sqlite_error(db, "cannot finish the new journal", err);
    }
    (void)sqlite3_close(db);
    return code;
}

/* Builds the journal under another name, closes it, then renames it: journal.db is complete or
 * missing. */
static enum bt_code make_new(const char *dir, const char *path, struct bt_error *err)
{
    char fresh[PATH_TEXT_MAX];
    char side[PATH_TEXT_MAX];
    int fd;
    enum bt_code code = sqlite_path(dir, "journal.db.new", fresh, err);

    if (code == BT_OK) {
        code = sqlite_path(dir, "journal.db.new-wal", side, err);
    }
    if (code != BT_OK) {
        return code;
    }
    (void)unlink(fresh); /* left by an interrupted start; this process holds the lock */
    (void)unlink(side);
    fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_errno(err, errno, "cannot make %s", fresh);
    }
    close(fd);
    code = build(fresh, err);
    if (code == BT_OK && rename(fresh, path) != 0) {
        code = err_errno(err, errno, "cannot rename %s to %s", fresh, path);
    }
    if (code == BT_OK) {
        code = sqlite_sync_dir(dir, err);
    }
    (void)unlink(fresh); /* is there when something failed; a rename leaves none */
    (void)unlink(side);
    return code;
}

enum bt_code sqlite_check_file(const char *dir, bool create, struct bt_error *err)
{
    char path[PATH_TEXT_MAX];
    char wal[PATH_TEXT_MAX];
    struct stat st;
    enum bt_code code = sqlite_path(dir, "journal.db", path, err);
    enum bt_code wal_code;

    if (code == BT_OK) {
        code = sqlite_path(dir, "journal.db-wal", wal, err);
    }
    if (code != BT_OK) {
        return code;
    }
    wal_code = check_regular(wal, &st, err);
    if (wal_code != BT_OK && wal_code != BT_NOT_FOUND) {
        return wal_code;
    }
    code = check_regular(path, &st, err);
    if (code != BT_NOT_FOUND) {
        return code == BT_OK ? sqlite_check_header(path, err) : code;
    }
    if (wal_code == BT_OK) {
        return err_set(err, BT_INVALID,
                       "%s is missing but its journal.db-wal is there: one was moved without "
                       "the other; bring it back, or remove both to start with an empty journal",
                       path);
    }
    return create ? make_new(dir, path, err) : code;
}
