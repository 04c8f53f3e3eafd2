/*
 * A snapshot of the processes of this machine, from /proc, and their relations. Linux only. It is
 * outdated as soon as it is made: proc_signal checks again, through a pidfd, before it sends a
 * signal.
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
    uint64_t started; /* in clock ticks; together with pid it identifies a process */
    bool zombie;
    bool exiting; /* its environment can no longer be read */
    bool marked;
};

struct proc_list {
    struct proc_entry *entries; /* in order of pid */
    size_t n;
    size_t cap;
};

/* Reads the processes again into the same memory. A zeroed list is empty. BT_IO, BT_NOMEM. */
BT_MUST_CHECK enum bt_code proc_read(struct proc_list *list, struct bt_error *err);
void proc_done(struct proc_list *list);
void proc_clear_marks(struct proc_list *list);
/* Marks root's descendants (not root) and the descendants of every marked process. root -1 = only
 * the latter. */
void proc_mark_descendants(struct proc_list *list, pid_t root);
/* Marks pid and the chain of its parents. */
void proc_mark_ancestors(struct proc_list *list, pid_t pid);
struct proc_entry *proc_find(struct proc_list *list, pid_t pid);
/* Whether its environment at exec had exactly this "NAME=value". False when it cannot be read. */
bool proc_has_env(pid_t pid, const char *variable);
/* Sends a signal. False when the process is gone, or its pid belongs to another process. */
bool proc_signal(const struct proc_entry *entry, int signal);
#endif
