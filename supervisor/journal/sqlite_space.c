/*
 * The ballast: a file that reserves disk space. When the disk is nearly full it is truncated, so
 * that the results of running work can still be written while new work is rejected (Q13, G20).
 */
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/journal/sqlite_internal.h"

/* What a commit may need beyond its rows: whole pages, growth of indexes. */
enum { SPACE_MARGIN = 256 * 1024, SPACE_PER_BYTE = 4 };

/* What stays of the ballast while the disk is short: the next start must write a little and
 * releases it. */
enum { START_RESERVE = 128 * 1024 };

static bool ballast_reserve(struct sqlite_journal *s)
{
    char path[PATH_TEXT_MAX];
    bool ok;
    int fd;

    if (s->ballast_bytes == 0) {
        return true;
    }
    if (sqlite_path(s->dir, "ballast", path, NULL) != BT_OK) {
        return false;
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        return false;
    }
    ok = posix_fallocate(fd, 0, (off_t)s->ballast_bytes) == 0 &&
         ftruncate(fd, (off_t)s->ballast_bytes) == 0;
    if (!ok && ftruncate(fd, 0) != 0) {
        ok = false; /* space stays short, which the caller reports */
    }
    close(fd);
    s->ballast_held = ok;
    return ok;
}

static void ballast_release(struct sqlite_journal *s)
{
    char path[PATH_TEXT_MAX];

    off_t left = s->ballast_bytes > START_RESERVE ? START_RESERVE : 0;

    s->ballast_held = false;
    if (sqlite_path(s->dir, "ballast", path, NULL) == BT_OK && truncate(path, left) != 0) {
        log_warn("journal.ballast_kept", "dir=%s", s->dir);
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

void sqlite_space_open(struct sqlite_journal *s)
{
    uint64_t room;
    char path[PATH_TEXT_MAX];

    if (s->ballast_bytes == 0 && sqlite_path(s->dir, "ballast", path, NULL) == BT_OK) {
        (void)unlink(path); /* left by a start with other options */
    }
    if (!space_free(s, &room)) {
        return;
    }
    if (!ballast_reserve(s) || (s->ballast_bytes == 0 && room < SPACE_MARGIN)) {
        s->base.storage_low = true;
        log_warn("journal.storage_low", "dir=%s free=%llu", s->dir, (unsigned long long)room);
    }
}

void sqlite_space_check(struct journal *j)
{
    struct sqlite_journal *s = sqlite_of(j);
    uint64_t need = SPACE_MARGIN + SPACE_PER_BYTE * s->batch_bytes;
    uint64_t room;

    if (!space_free(s, &room)) {
        return;
    }
    if (room < need) {
        if (s->ballast_held) {
            ballast_release(s);
        }
        if (!s->base.storage_low) {
            s->base.storage_low = true;
            log_err("journal.storage_low", "dir=%s free=%llu", s->dir, (unsigned long long)room);
        }
    } else if (s->base.storage_low && room >= s->ballast_bytes + 2 * need && ballast_reserve(s)) {
        s->base.storage_low = false;
        log_info("journal.storage_back", "dir=%s free=%llu", s->dir, (unsigned long long)room);
    }
}
