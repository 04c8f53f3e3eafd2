#include "supervisor/spawn/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* PF_EXITING of the kernel's sched.h; shown in /proc/PID/stat, unchanged since Linux 2.4. */
#define PF_EXITING 0x00000004u

enum { PROC_MAX = 1 << 22 /* the kernel's own cap of pid_max */, ENVIRON_MAX = 4 * 1024 * 1024 };

/* Reads /proc/PID/stat. The name, in brackets, may contain anything, so fields are counted from the
 * last bracket. See proc(5). */
static bool read_stat(pid_t pid, struct proc_entry *ret_entry)
{
    char path[48];
    char text[1024];
    char state = 0;
    int parent = 0;
    int session = 0;
    unsigned flags = 0;
    unsigned long long started = 0;
    const char *after;
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (n <= 0) {
        return false;
    }
    text[n] = 0;
    after = strrchr(text, ')');
    if (after == NULL ||
        sscanf(after + 1,
               " %c %d %*d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &state, &parent, &session, &flags, &started) != 5) {
        return false;
    }
    *ret_entry = (struct proc_entry){.pid = pid,
                                     .parent = parent,
                                     .session = session,
                                     .started = started,
                                     .exiting = (flags & PF_EXITING) != 0,
                                     .zombie = state == 'Z' || state == 'X'};
    return true;
}

static bool grow(struct proc_list *list)
{
    size_t cap = list->cap == 0 ? 256 : list->cap * 2;
    struct proc_entry *entries =
        cap > PROC_MAX ? NULL : realloc(list->entries, cap * sizeof *entries);

    if (entries == NULL) {
        return false;
    }
    list->entries = entries;
    list->cap = cap;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct proc_entry *x = a;
    const struct proc_entry *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

enum bt_code proc_read(struct proc_list *list, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    struct dirent *file;
    DIR *dir = opendir("/proc");

    list->n = 0;
    if (dir == NULL) {
        return err_errno(err, errno, "/proc");
    }
    while ((file = readdir(dir)) != NULL) {
        char *end = NULL;
        long pid = strtol(file->d_name, &end, 10);

        if (*end != 0 || pid <= 0) {
            continue;
        }
        if (list->n == list->cap && !grow(list)) {
            code = err_set(err, BT_NOMEM, "no memory for a list of %zu processes", list->n);
            break;
        }
        if (read_stat((pid_t)pid, &list->entries[list->n])) {
            list->n++;
        }
    }
    (void)closedir(dir);
    if (list->n > 0) {
        qsort(list->entries, list->n, sizeof *list->entries, by_pid);
    }
    return code;
}

void proc_done(struct proc_list *list)
{
    free(list->entries);
    *list = (struct proc_list){0};
}

struct proc_entry *proc_find(struct proc_list *list, pid_t pid)
{
    struct proc_entry key = {.pid = pid};

    return list->n == 0 ? NULL : bsearch(&key, list->entries, list->n, sizeof key, by_pid);
}

void proc_clear_marks(struct proc_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        list->entries[i].marked = false;
    }
}

void proc_mark_descendants(struct proc_list *list, pid_t root)
{
    bool more = true;

    /* Children usually have higher pids than their parents, so one or two passes suffice; a wrapped
     * pid costs one more. */
    while (more) {
        more = false;
        for (size_t i = 0; i < list->n; i++) {
            struct proc_entry *entry = &list->entries[i];
            const struct proc_entry *parent;

            if (entry->marked || entry->pid == root) {
                continue;
            }
            parent = entry->parent == root ? NULL : proc_find(list, entry->parent);
            if (entry->parent == root || (parent != NULL && parent->marked)) {
                entry->marked = true;
                more = true;
            }
        }
    }
}

void proc_mark_ancestors(struct proc_list *list, pid_t pid)
{
    struct proc_entry *entry = proc_find(list, pid);

    while (entry != NULL && !entry->marked) {
        entry->marked = true;
        entry = proc_find(list, entry->parent);
    }
}

bool proc_has_env(pid_t pid, const char *variable)
{
    char path[48];
    size_t entry_len = strlen(variable);
    char *line = NULL;
    size_t cap = 0;
    size_t total = 0;
    bool found = false;
    ssize_t len;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    while (!found && total < ENVIRON_MAX && (len = getdelim(&line, &cap, 0, file)) > 0) {
        size_t n = (size_t)len - (line[len - 1] == 0 ? 1 : 0);

        total += (size_t)len;
        found = n == entry_len && memcmp(line, variable, n) == 0;
    }
    free(line);
    (void)fclose(file);
    return found;
}

bool proc_signal(const struct proc_entry *entry, int signal)
{
    struct proc_entry again;
    bool sent = false;
    int fd = pidfd_open(entry->pid, 0);

    if (fd < 0) {
        return false;
    }
    /* The pidfd pins the process; an equal start time proves that it is the listed one. */
    if (read_stat(entry->pid, &again) && again.started == entry->started) {
        sent = pidfd_send_signal(fd, signal, NULL, 0) == 0;
    }
    (void)close(fd);
    return sent;
}
