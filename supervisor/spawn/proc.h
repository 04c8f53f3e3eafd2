/*
 * A picture of the processes of this machine, from /proc, and who belongs to whom in it. Linux
 * only. The picture is old when it is made: proc_signal asks again, through a pidfd, before it hits
 * anybody.
 */
#ifndef SPAWN_PROC_H
#define SPAWN_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/base/err.h"

struct proc_entry {
    pid_t pid;
    pid_t parent;
    pid_t session;
    uint64_t started; /* in clock ticks; with pid it names a process for ever */
    bool zombie;
    bool exiting; /* on its way out: its environment cannot be read any more */
    bool marked;
};

struct proc_list {
    struct proc_entry *entries; /* in order of pid */
    size_t n;
    size_t cap;
};

/* Zeroed = empty. Reads anew into the same memory. BT_IO, BT_NOMEM. */
BT_MUST_CHECK enum bt_code proc_read(struct proc_list *list, struct bt_error *err);
void proc_done(struct proc_list *list);
void proc_clear_marks(struct proc_list *list);
/* Marks root's descendants, not root, and what hangs below anyone marked already. root -1 = only
 * the latter. */
void proc_mark_descendants(struct proc_list *list, pid_t root);
/* Marks pid and the chain of its parents. */
void proc_mark_ancestors(struct proc_list *list, pid_t pid);
struct proc_entry *proc_find(struct proc_list *list, pid_t pid);
/* Whether its environment at exec held exactly this "NAME=value". False when it may not be read. */
bool proc_has_env(pid_t pid, const char *variable);
/* False when it is gone already, or the pid is another process by now. */
bool proc_signal(const struct proc_entry *entry, int signal);
#endif
