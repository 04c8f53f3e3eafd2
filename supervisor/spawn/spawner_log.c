/* The files with the output of agents: bounded, also while an agent runs for years. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/spawn/spawner_internal.h"

enum { LOOK_MS = 1000, PATH_BYTES = CHILD_NAME_BYTES + 16 };

static void paths_of(const char *name, char path[PATH_BYTES], char old[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "log/%s.log", name);
    (void)snprintf(old, PATH_BYTES, "log/%s.log.1", name);
}

int log_open(int state_dir, const char *name)
{
    char path[PATH_BYTES];
    char old[PATH_BYTES];
    struct stat st;

    (void)mkdirat(state_dir, "log", 0700);
    paths_of(name, path, old);
    if (fstatat(state_dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size >= LOG_MAX_BYTES) {
        (void)renameat(state_dir, path, state_dir, old);
    }
    return openat(state_dir, path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* The newest LOG_MAX_BYTES into the file `old`. False: not all of them, the disk is full. */
static bool copy_newest(int state_dir, const char *old, int from, off_t size)
{
    const int to =
        openat(state_dir, old, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    off_t at = size - LOG_MAX_BYTES;

    while (to >= 0 && at < size && sendfile(to, from, &at, (size_t)(size - at)) > 0) {
    }
    if (to >= 0) {
        (void)close(to);
    }
    return at == size;
}

/* The agent keeps its descriptor: the file is emptied, and what it appends comes to the beginning.
 * What it writes between the copy and the cut is lost. */
static void cut(int state_dir, const char *name)
{
    char path[PATH_BYTES];
    char old[PATH_BYTES];
    struct stat st;
    int fd;

    paths_of(name, path, old);
    if (fstatat(state_dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_size < LOG_MAX_BYTES) {
        return;
    }
    fd = openat(state_dir, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= LOG_MAX_BYTES) {
        const bool whole = copy_newest(state_dir, old, fd, st.st_size);
        (void)!ftruncate(fd, 0);
        log_info("spawner.log_full", "log=%s bytes=%lld the newest are in %s%s", path,
                 (long long)st.st_size, old, whole ? "" : ", not all: the disk is full");
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

void logs_look(struct spawner *s, msec now)
{
    bool any = false;

    for (uint32_t i = 0; i < s->children_n; i++) {
        if (child_is_alive(&s->children[i])) {
            any = true;
            if (now >= s->logs_due) {
                cut(s->state_dir, s->children[i].name);
            }
        }
    }
    if (!any) {
        s->logs_due = MSEC_NEVER;
    } else if (now >= s->logs_due || s->logs_due == MSEC_NEVER) {
        s->logs_due = msec_add(now, LOOK_MS);
    }
}
