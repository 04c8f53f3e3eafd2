/*
 * Runs one program to its end: writes its input, reads its output and its errors, watches the clock
 * and the order to stop, all in one poll loop, so that no pipe can block another.
 *
 *     running --(deadline, stop)--> SIGTERM --(grace)--> SIGKILL --> ended
 *             --(output over the cap)------------------> SIGKILL --> ended
 *             --(exited, and both pipes at their end)--> ended
 *
 * The program leads a session and a process group of its own. It is reaped last, so that its number
 * cannot be another process's while the group is signalled; whatever is left of the group by then
 * is killed. Uses posix_spawn only: the agent has threads, so nothing may run between fork and
 * exec.
 */
#ifndef EXEC_CHILD_H
#define EXEC_CHILD_H

#include <stdbool.h>

#include "baton/error.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

enum { CHILD_LINE_MAX = 512, CHILD_GRACE_MS = 2000 };

struct child_spec {
    const char *path;  /* of the program; see child_find */
    char *const *argv; /* NULL-terminated */
    char *const *envp; /* NULL-terminated; the whole environment */
    const char *cwd;   /* NULL = ours */
    const char *input; /* NULL = /dev/null */
    size_t input_len;
    size_t output_max;
    msec deadline;                              /* CLOCK_MONOTONIC; MSEC_NEVER = none */
    msec grace_ms;                              /* between SIGTERM and SIGKILL */
    bool (*stop)(void *self);                   /* asked several times a second */
    void (*line)(const char *line, void *self); /* each line of stderr, cut to CHILD_LINE_MAX */
    void *self;
};

enum child_end { CHILD_EXITED, CHILD_SIGNALLED, CHILD_TIMEOUT, CHILD_STOPPED, CHILD_TOO_LARGE };

struct child_result {
    enum child_end end;
    bool exited;   /* the program itself had ended before it was told to (its pipes were held) */
    int exit_code; /* of CHILD_EXITED */
    int signal;    /* of CHILD_SIGNALLED */
    struct buf out;
    char last_line[CHILD_LINE_MAX + 1]; /* of stderr that was not empty */
};

/* Runs it. BT_NOT_FOUND, BT_UNAUTHORIZED (not executable), BT_LIMIT (arguments too long) or BT_IO
 * when it could not be started. The caller frees with child_result_done, also after a failure. */
BT_MUST_CHECK enum bt_code child_run(const struct child_spec *spec, struct child_result *ret,
                                     struct bt_error *err);
/* Accepts zeroed; idempotent. */
void child_result_done(struct child_result *r);

/* Finds a program as execvp would, along the colon-separated list. A name with a slash is taken as
 * it is. BT_NOT_FOUND or BT_UNAUTHORIZED. */
BT_MUST_CHECK enum bt_code child_find(const char *name, const char *list, struct buf *ret_path,
                                      struct bt_error *err);
#endif
