/*
 * Room on the disk (Q13, Q18, G20). The write-ahead log is allocated in advance, so that a commit
 * never needs a block that the disk may no longer have. While no daemon runs, the same blocks wait
 * under the name "ballast": a start needs none, either.
 *
 *     low    the disk has no room for the log to be copied: no new work, soft rows are skipped
 *     full   what is left of the log is kept for one decision: nothing is decided until there is
 *            room
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/journal/sqlite_internal.h"

enum {
    /* What a commit may need beyond its rows: whole pages, growth of indexes. */
    SPACE_MARGIN = 256 * 1024,
    SPACE_PER_BYTE = 4,
    SPACE_EVERY_MS = 1000,    /* the file system is asked, while it has ample room */
    RESERVE_MIN = 128 * 1024, /* less is not worth a log of its own */
    FULL_PART = 4,            /* this part of the log is the last */
    LOG_HEADER = 32,          /* https://sqlite.org/fileformat.html 4.1 (the log) */
    FRAME_BYTES = 4096 + 24
};

/* More than a second's writing of anybody. The log's own room is kept in any case. */
static const uint64_t SPACE_AMPLE = 4ull << 30;

static const char *const LOG_NAME = "journal.db-wal";
static const char *const PARKED_NAME = "ballast";

static bool path_of(const struct sqlite_journal *s, const char *name, char *ret)
{
    return sqlite_path(s->dir, name, ret, NULL) == BT_OK;
}

/* A log without a header is an empty one. No block is allocated for that: the file has them. One
 * that is empty already was made so, and synced, when it was parked: a start needs no sync more. */
static bool make_empty(const char *path)
{
    static const char zeros[LOG_HEADER] = {0};
    char header[LOG_HEADER];
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= LOG_HEADER &&
              pread(fd, header, sizeof header, 0) == (ssize_t)sizeof header;

    if (ok && memcmp(header, zeros, sizeof header) != 0) {
        ok = pwrite(fd, zeros, sizeof zeros, 0) == (ssize_t)sizeof zeros && fdatasync(fd) == 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

void sqlite_space_take(struct sqlite_journal *s)
{
    char log[PATH_TEXT_MAX];
    char parked[PATH_TEXT_MAX];
    struct stat st;
    struct bt_error why;

    if (!path_of(s, LOG_NAME, log) || !path_of(s, PARKED_NAME, parked) || lstat(parked, &st) != 0) {
        return;
    }
    if (s->ballast_bytes == 0 || lstat(log, &st) == 0 || !make_empty(parked)) {
        (void)unlink(parked); /* of a start with other options, or of an older version */
        return;
    }
    /* Without the sync a power cut could give acknowledged rows their old name back. */
    if (rename(parked, log) != 0 || sqlite_sync_dir(s->dir, &why) != BT_OK) {
        log_warn("journal.ballast", "dir=%s the reserved room cannot be used", s->dir);
    }
}

void sqlite_space_park(const struct sqlite_journal *s)
{
    char log[PATH_TEXT_MAX];
    char parked[PATH_TEXT_MAX];

    if (s->ballast_bytes > 0 && path_of(s, LOG_NAME, log) && path_of(s, PARKED_NAME, parked) &&
        make_empty(log) && rename(log, parked) != 0) {
        log_warn("journal.ballast", "dir=%s the reserved room cannot be kept", s->dir);
    }
}

/* It cannot be allocated, and not for want of room: the log is as long as it is. */
static void give_up(struct sqlite_journal *s, int error)
{
    log_warn("journal.ballast", "dir=%s no room can be reserved: %s", s->dir, strerror(error));
    s->ballast_bytes = s->reserved;
}

/* Allocates as much of the log as there is room for; what it has stays. */
static void reserve(struct sqlite_journal *s)
{
    char path[PATH_TEXT_MAX];
    struct stat st;
    uint64_t want = s->ballast_bytes;
    int error = 0;
    int fd;

    if (want == 0 || s->reserved >= want || !path_of(s, LOG_NAME, path)) {
        return;
    }
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        give_up(s, errno);
        return;
    }
    for (; want >= RESERVE_MIN && want > s->reserved && fstat(fd, &st) == 0; want /= 2) {
        error = posix_fallocate(fd, 0, (off_t)want);
        if (error == 0) {
            s->reserved = want;
            break;
        }
        /* what it got of it helps others more */
        if ((uint64_t)st.st_size < want && ftruncate(fd, st.st_size) != 0) {
            break;
        }
    }
    close(fd);
    if (error != 0 && error != ENOSPC && error != EDQUOT) {
        give_up(s, error);
    }
}

static bool space_free(const struct sqlite_journal *s, uint64_t *ret)
{
    struct statvfs st;

    if (statvfs(s->dir, &st) != 0) {
        return false;
    }
    *ret = (uint64_t)st.f_bavail * (uint64_t)st.f_frsize;
    return true;
}

static uint64_t log_left(const struct sqlite_journal *s)
{
    const uint64_t used = LOG_HEADER + (uint64_t)s->wal_frames * FRAME_BYTES;

    return s->reserved > used ? s->reserved - used : 0;
}

/* What is kept for the decision that is under way when the rest is gone. */
static uint64_t last_part(const struct sqlite_journal *s)
{
    return s->reserved / FULL_PART;
}

static void report(struct sqlite_journal *s, bool low, bool full, uint64_t room)
{
    static const char *const NAMES[] = {"journal.storage_back", "journal.storage_low",
                                        "journal.storage_full"};
    const int was = s->sql.base.storage_full ? 2 : s->sql.base.storage_low ? 1 : 0;
    const int now = full ? 2 : low ? 1 : 0;

    s->sql.base.storage_low = low;
    s->sql.base.storage_full = full;
    if (now != was) {
        log_event(now == 0 ? LOG_INFO : LOG_ERR, NAMES[now], "dir=%s free=%llu left=%llu", s->dir,
                  (unsigned long long)room, (unsigned long long)log_left(s));
    }
}

/* Between batches: what the log has goes into the file, if there is room now, and the log begins
 * again. False: it does not fit. */
static bool is_copied(struct sqlite_journal *s)
{
    return !s->behind || (!s->sql.base.dirty && sqlite_checkpoint(s) && !s->behind);
}

void sqlite_space_check(struct journal *j)
{
    struct sqlite_journal *s = sqlite_of(j);
    const uint64_t batch = SPACE_PER_BYTE * s->sql.batch_bytes;
    const uint64_t need = SPACE_MARGIN + batch;
    bool low = s->sql.base.storage_low || s->reserved < s->ballast_bytes;
    const msec now = clock_mono_ms();
    uint64_t room;

    if (now < s->space_due && batch < SPACE_AMPLE / 4) {
        return;
    }
    s->space_due = 0;
    if (!space_free(s, &room)) {
        return;
    }
    if (!low && !s->behind && room >= SPACE_AMPLE) {
        s->space_due = now + SPACE_EVERY_MS;
    }
    if (room < need) {
        low = true;
    } else if (low && room >= 2 * need + (s->ballast_bytes - s->reserved)) {
        reserve(s);
        low = s->reserved < s->ballast_bytes || !is_copied(s);
        (void)space_free(s, &room);
    } else if (low && s->behind) {
        (void)is_copied(s); /* a part of it may fit */
    }
    report(s, low || s->behind, room + log_left(s) < last_part(s) + batch, room);
}

/* Frames of the log of a daemon that was killed, or a few more: those with the salts of its header.
 * SQLite does not report them when they cannot be copied. */
static int frames_of_log(const struct sqlite_journal *s)
{
    char path[PATH_TEXT_MAX];
    char salts[8];
    char of_frame[8];
    int n = 0;
    int fd = path_of(s, LOG_NAME, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd < 0) {
        return 0;
    }
    if (pread(fd, salts, sizeof salts, 16) == (ssize_t)sizeof salts) {
        while (pread(fd, of_frame, sizeof of_frame, LOG_HEADER + (off_t)n * FRAME_BYTES + 8) ==
                   (ssize_t)sizeof of_frame &&
               memcmp(of_frame, salts, sizeof salts) == 0) {
            n++;
        }
    }
    close(fd);
    return n;
}

void sqlite_space_open(struct sqlite_journal *s)
{
    int64_t version;

    (void)sqlite_number(s->db, "PRAGMA user_version", &version, NULL); /* makes a missing log */
    reserve(s);
    if (s->ballast_bytes > 0 && !sqlite_checkpoint(s)) {
        s->wal_frames = frames_of_log(s);
    }
    sqlite_space_check(&s->sql.base);
}

uint64_t sqlite_space_room(const struct sqlite_journal *s)
{
    uint64_t room;

    return space_free(s, &room) ? room : UINT64_MAX;
}

enum bt_code sqlite_size(struct journal *j, struct journal_size *ret, struct bt_error *err)
{
    static const char *const asked[] = {"PRAGMA page_count", "PRAGMA freelist_count",
                                        "PRAGMA page_size"};
    int64_t v[3];
    enum bt_code code = BT_OK;

    for (int i = 0; i < 3 && code == BT_OK; i++) {
        code = sqlite_number(sqlite_of(j)->db, asked[i], &v[i], err);
    }
    if (code == BT_OK) {
        ret->file = (uint64_t)(v[0] * v[2]);
        ret->used = (uint64_t)((v[0] - v[1]) * v[2]);
    }
    return code;
}
