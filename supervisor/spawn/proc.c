#include "supervisor/spawn/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* From the kernel's sched.h; shown in /proc/PID/stat and unchanged since Linux 2.4. */
#define PF_EXITING 0x00000004u

enum { PROC_MAX = 1 << 22 /* the kernel's own cap of pid_max */, ENVIRON_MAX = 4 * 1024 * 1024 };

/* /proc/PID/stat: the name, in brackets, may hold anything, so fields count from the last bracket.
 */
static bool read_stat(pid_t pid, struct proc_row *ret_row)
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
    *ret_row = (struct proc_row){.pid = pid,
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
    struct proc_row *rows = cap > PROC_MAX ? NULL : realloc(list->rows, cap * sizeof *rows);

    if (rows == NULL) {
        return false;
    }
    list->rows = rows;
    list->cap = cap;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct proc_row *x = a;
    const struct proc_row *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

enum bt_code proc_read(struct proc_list *list, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    struct dirent *entry;
    DIR *dir = opendir("/proc");

    list->n = 0;
    if (dir == NULL) {
        return err_errno(err, errno, "/proc");
    }
    while ((entry = readdir(dir)) != NULL) {
        char *end = NULL;
        long pid = strtol(entry->d_name, &end, 10);

        if (*end != 0 || pid <= 0) {
            continue;
        }
        if (list->n == list->cap && !grow(list)) {
            code = err_set(err, BT_NOMEM, "no memory for a list of %zu processes", list->n);
            break;
        }
        if (read_stat((pid_t)pid, &list->rows[list->n])) {
            list->n++;
        }
    }
    (void)closedir(dir);
    if (list->n > 0) {
        qsort(list->rows, list->n, sizeof *list->rows, by_pid);
    }
    return code;
}

void proc_done(struct proc_list *list)
{
    free(list->rows);
    *list = (struct proc_list){0};
}

struct proc_row *proc_find(struct proc_list *list, pid_t pid)
{
    struct proc_row key = {.pid = pid};

    return list->n == 0 ? NULL : bsearch(&key, list->rows, list->n, sizeof key, by_pid);
}

void proc_clear_marks(struct proc_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        list->rows[i].marked = false;
    }
}

void proc_mark_descendants(struct proc_list *list, pid_t root)
{
    bool more = true;

    /* Children mostly have higher pids than their parents, so one or two passes do; a wrapped pid
     * costs another. */
    while (more) {
        more = false;
        for (size_t i = 0; i < list->n; i++) {
            struct proc_row *row = &list->rows[i];
            const struct proc_row *parent;

            if (row->marked || row->pid == root) {
                continue;
            }
            parent = row->parent == root ? NULL : proc_find(list, row->parent);
            if (row->parent == root || (parent != NULL && parent->marked)) {
                row->marked = true;
                more = true;
            }
        }
    }
}

void proc_mark_ancestors(struct proc_list *list, pid_t pid)
{
    struct proc_row *row = proc_find(list, pid);

    while (row != NULL && !row->marked) {
        row->marked = true;
        row = proc_find(list, row->parent);
    }
}

bool proc_has_env(pid_t pid, const char *entry)
{
    char path[48];
    size_t entry_len = strlen(entry);
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
        found = n == entry_len && memcmp(line, entry, n) == 0;
    }
    free(line);
    (void)fclose(file);
    return found;
}

bool proc_signal(const struct proc_row *row, int signal)
{
    struct proc_row again;
    bool sent = false;
    int fd = pidfd_open(row->pid, 0);

    if (fd < 0) {
        return false;
    }
    /* The pidfd pins the process; if it started when ours did, it is ours. */
    if (read_stat(row->pid, &again) && again.started == row->started) {
        sent = pidfd_send_signal(fd, signal, NULL, 0) == 0;
    }
    (void)close(fd);
    return sent;
}
