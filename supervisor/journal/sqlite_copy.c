/* The copy of a journal that is kept before its schema is changed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/journal/sqlite_internal.h"

enum { ROOM_BESIDE = 1024 * 1024, NAME_BYTES = 32 };

static const msec KEEP_MS = UINT64_C(30) * 24 * 3600 * 1000;

static void name_of(int version, const char *end, char ret[NAME_BYTES])
{
    (void)snprintf(ret, NAME_BYTES, "journal.db.v%d%s", version, end);
}

/* The copy and what the change itself needs must fit. */
static enum bt_code check_room(struct sqlite_journal *s, int version, struct bt_error *err)
{
    const uint64_t free_bytes = sqlite_space_room(s);
    int64_t pages = 0;
    int64_t size = 0;
    enum bt_code code = sqlite_number(s->db, "PRAGMA page_count", &pages, err);

    if (code == BT_OK) {
        code = sqlite_number(s->db, "PRAGMA page_size", &size, err);
    }
    if (code == BT_OK && free_bytes < (uint64_t)(pages * size) + ROOM_BESIDE) {
        return err_set(err, BT_UNAVAILABLE,
                       "the journal in %.300s has schema version %d and must be changed to %d; a "
                       "copy of it needs %" PRIu64 " bytes there, %" PRIu64
                       " are free: free some room, then start again",
                       s->dir, version, SCHEMA_VERSION, (uint64_t)(pages * size) + ROOM_BESIDE,
                       free_bytes);
    }
    return code;
}

static enum bt_code make_private(const char *path, struct bt_error *err)
{
    int fd;

    (void)unlink(path); /* of a start that did not get further */
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_errno(err, errno, "cannot make %s", path);
    }
    close(fd);
    return BT_OK;
}

static enum bt_code copy_pages(sqlite3 *from, const char *path, struct bt_error *err)
{
    sqlite3 *to = NULL;
    sqlite3_backup *copy;
    enum bt_code code = BT_OK;

    if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        code = sqlite_error(to, "cannot open the copy of the journal", err);
    }
    if (code == BT_OK) {
        copy = sqlite3_backup_init(to, "main", from, "main");
        if (copy == NULL || sqlite3_backup_step(copy, -1) != SQLITE_DONE) {
            code = sqlite_error(to, "cannot copy the journal", err);
        }
        if (sqlite3_backup_finish(copy) != SQLITE_OK && code == BT_OK) {
            code = sqlite_error(to, "cannot copy the journal", err);
        }
    }
    (void)sqlite3_close(to);
    return code;
}

enum bt_code sqlite_keep_copy(struct sqlite_journal *s, int version, struct bt_error *err)
{
    char name[NAME_BYTES];
    char fresh[PATH_TEXT_MAX];
    char path[PATH_TEXT_MAX];
    enum bt_code code;

    if (version == 0 || version >= SCHEMA_VERSION) {
        return BT_OK;
    }
    code = check_room(s, version, err);
    name_of(version, ".new", name);
    if (code == BT_OK) {
        code = sqlite_path(s->dir, name, fresh, err);
    }
    name_of(version, "", name);
    if (code == BT_OK) {
        code = sqlite_path(s->dir, name, path, err);
    }
    if (code != BT_OK) {
        return code;
    }
    code = make_private(fresh, err);
    if (code == BT_OK) {
        code = copy_pages(s->db, fresh, err);
    }
    if (code == BT_OK && rename(fresh, path) != 0) {
        code = err_errno(err, errno, "cannot rename %s to %s", fresh, path);
    }
    if (code == BT_OK) {
        code = sqlite_sync_dir(s->dir, err);
    }
    if (code != BT_OK) {
        (void)unlink(fresh);
        return code;
    }
    log_info("journal.copied", "file=%s version=%d becomes=%d kept_days=30", path, version,
             SCHEMA_VERSION);
    return BT_OK;
}

void sqlite_drop_copies(const struct sqlite_journal *s)
{
    const msec now = clock_wall_ms();
    char name[NAME_BYTES];
    char path[PATH_TEXT_MAX];
    struct stat st;

    for (int version = 1; version < SCHEMA_VERSION; version++) {
        name_of(version, "", name);
        if (sqlite_path(s->dir, name, path, NULL) == BT_OK && lstat(path, &st) == 0 &&
            S_ISREG(st.st_mode) && st.st_mtime >= 0 && (msec)st.st_mtime * 1000 + KEEP_MS < now &&
            unlink(path) == 0) {
            log_info("journal.copy_removed", "file=%s reason=\"older than 30 days\"", path);
        }
    }
}
