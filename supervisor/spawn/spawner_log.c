/*
 * The logs of agents: bounded, whatever they write. An agent writes into a file, so that it never
 * waits for a reader. A file that reaches its cap is copied away and cut while the agent goes on
 * writing (its descriptor appends); what came in between is counted, and the log says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/spawn/spawner_internal.h"

enum {
    LOOK_MS = 1000,
    LOOK_FAST_MS = 50, /* while one grows fast */
    ROOM_BYTES = 1024 * 1024,
    COPIES_MAX = 8, /* how often the copy follows what came meanwhile */
    PATH_BYTES = CHILD_NAME_BYTES + 16
};

/* log/NAME.log, or log/NAME.log.N. */
static void path_of(const struct child *child, uint32_t n, char ret[PATH_BYTES])
{
    if (n == 0) {
        (void)snprintf(ret, PATH_BYTES, "log/%s.log", child->name);
    } else {
        (void)snprintf(ret, PATH_BYTES, "log/%s.log.%u", child->name, n);
    }
}

/* Makes room for a new NAME.log.1; the oldest one goes. */
static void shift(const struct spawner *s, const struct child *child)
{
    char from[PATH_BYTES];
    char to[PATH_BYTES];

    for (uint32_t n = child->log_files; n > 1; n--) {
        path_of(child, n - 1, from);
        path_of(child, n, to);
        (void)renameat(s->state_dir, from, s->state_dir, to);
    }
}

static void remove_old(const struct spawner *s, const struct child *child)
{
    char path[PATH_BYTES];

    for (uint32_t n = 1; n <= LOG_FILES_MAX; n++) {
        path_of(child, n, path);
        (void)unlinkat(s->state_dir, path, 0);
    }
}

/* Copies the file from `at` to its end. False: no room, or it cannot be read. */
static bool copy_rest(int from, int to, off_t *at, off_t end)
{
    while (*at < end) {
        off_t in = *at;
        const ssize_t n = copy_file_range(from, &in, to, NULL, (size_t)(end - *at), 0);
        char bytes[16384];
        ssize_t got;

        if (n > 0) {
            *at += n;
            continue;
        }
        if (n < 0 && errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS) {
            return false;
        }
        got = pread(from, bytes, sizeof bytes, *at);
        if (got <= 0 || write(to, bytes, (size_t)got) != got) {
            return false;
        }
        *at += got;
    }
    return true;
}

/* The end of a log that has grown between two looks to more than twice its cap is enough. */
static off_t first_kept(const struct child *child, off_t size)
{
    const off_t cap = (off_t)child->log_bytes;

    return size / 2 > cap ? size - cap : 0;
}

/* Bytes that were not kept. */
static off_t put_away(const struct spawner *s, const struct child *child, int log)
{
    char path[PATH_BYTES];
    struct stat st = {.st_size = 0};
    off_t from;
    off_t kept; /* up to there */
    bool good;
    int old;

    if (child->log_files == 0) {
        return 0; /* nothing is kept, as it is set */
    }
    shift(s, child);
    path_of(child, 1, path);
    old = openat(s->state_dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    good = old >= 0 && fstat(log, &st) == 0;
    kept = from = first_kept(child, st.st_size);
    for (int i = 0; good && i < COPIES_MAX && kept < st.st_size; i++) {
        good = copy_rest(log, old, &kept, st.st_size) && fstat(log, &st) == 0;
        st.st_size = kept - from > (off_t)child->log_bytes * 2 ? kept : st.st_size;
    }
    if (old >= 0) {
        (void)close(old);
    }
    if (!good) {
        remove_old(s, child); /* a full disk: logs give way */
        kept = from = 0;
    }
    return fstat(log, &st) == 0 && st.st_size > kept ? st.st_size - kept + from : from;
}

/* Bytes that were not kept: all. */
static off_t give_way(const struct spawner *s, const struct child *child, int log)
{
    struct stat st;

    remove_old(s, child);
    return fstat(log, &st) == 0 ? st.st_size : 0;
}

static void rotate(const struct spawner *s, const struct child *child, bool room)
{
    char path[PATH_BYTES];
    char note[96];
    off_t lost;
    int log;

    path_of(child, 0, path);
    log = openat(s->state_dir, path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (log < 0) {
        return;
    }
    lost = room ? put_away(s, child, log) : give_way(s, child, log);
    if (ftruncate(log, 0) == 0 && lost > 0) {
        const int n = snprintf(note, sizeof note, "baton: %lld bytes of this log were not kept\n",
                               (long long)lost);
        log_warn("spawner.log_cut", "child=%s bytes=%lld", child->name, (long long)lost);
        (void)!write(log, note, (size_t)n);
    }
    (void)close(log);
}

int log_open(const struct spawner *s, const struct child *child)
{
    char path[PATH_BYTES];
    char old[PATH_BYTES];
    struct stat st = {.st_size = 0};

    (void)mkdirat(s->state_dir, "log", 0700);
    path_of(child, 0, path);
    if (fstatat(s->state_dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        st.st_size = 0;
    }
    if (S_ISREG(st.st_mode) && first_kept(child, st.st_size) > 0) {
        rotate(s, child, true);
    } else if ((uint64_t)st.st_size >= child->log_bytes) {
        shift(s, child);
        path_of(child, 1, old);
        if (child->log_files == 0) {
            (void)unlinkat(s->state_dir, path, 0);
        } else {
            (void)renameat(s->state_dir, path, s->state_dir, old);
        }
    }
    return openat(s->state_dir, path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Full of logs that have not reached their caps, a disk would stay full. */
static bool has_room(const struct spawner *s)
{
    struct statvfs at;

    return fstatvfs(s->state_dir, &at) != 0 || (uint64_t)at.f_bavail * at.f_frsize >= ROOM_BYTES;
}

void logs_look(struct spawner *s, msec now)
{
    bool fast = false;
    bool room;

    if (now < s->logs_due) {
        return;
    }
    room = has_room(s);
    for (uint32_t i = 0; i < s->children_n; i++) {
        struct child *child = &s->children[i];
        char path[PATH_BYTES];
        struct stat st;

        if (!child_is_alive(child)) {
            continue;
        }
        path_of(child, 0, path);
        if (fstatat(s->state_dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) {
            continue;
        }
        fast = fast || (uint64_t)st.st_size > child->log_seen + child->log_bytes / 8;
        child->log_seen = (uint64_t)st.st_size;
        if (child->log_seen >= (room ? child->log_bytes : child->log_bytes / 8)) {
            rotate(s, child, room);
            child->log_seen = 0;
        }
    }
    s->logs_due = msec_add(now, fast ? LOOK_FAST_MS : LOOK_MS);
}
