#include "supervisor/waits.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_text(const char *tid, const char *name, char *ret, size_t cap)
{
    char path[64];
    ssize_t n = -1;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/%s", tid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, ret, cap - 1);
        (void)close(fd);
    }
    ret[n > 0 ? n : 0] = 0;
    return n > 0;
}

static void add_thread(const char *tid, struct waits *io)
{
    char text[96];
    uint64_t ran = 0;
    uint64_t waited = 0;

    if (!read_text(tid, "schedstat", text, sizeof text) ||
        sscanf(text, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2) {
        waited = 0;
    }
    io->at[io->n++] = (struct thread_wait){strtol(tid, NULL, 10), waited};
    if (read_text(tid, "comm", text, sizeof text) && strncmp(text, "nng:reap", 8) == 0) {
        io->reaper_ran_ns += ran;
    }
}

void waits_read(struct waits *ret)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;

    ret->n = 0;
    ret->reaper_ran_ns = 0;
    while (tasks != NULL && ret->n < WAITS_MAX && (task = readdir(tasks)) != NULL) {
        const long tid = strtol(task->d_name, NULL, 10);
        if (tid > 0 && tid != (long)getpid()) {
            add_thread(task->d_name, ret);
        }
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
}

static uint64_t before(const struct waits *from, long tid)
{
    for (uint32_t i = 0; i < from->n; i++) {
        if (from->at[i].tid == tid) {
            return from->at[i].ns;
        }
    }
    return 0;
}

msec waits_between(const struct waits *from, const struct waits *to)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < to->n; i++) {
        const uint64_t was = before(from, to->at[i].tid);
        sum += to->at[i].ns > was ? to->at[i].ns - was : 0;
    }
    return sum / 1000000;
}
