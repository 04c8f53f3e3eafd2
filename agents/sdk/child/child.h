/*
 * Runs one program to its end. One poll loop writes its input, reads its output and its errors, and
 * checks the deadline and the stop callback, so no pipe can block another.
 *
 *   running --(deadline, stop)--> SIGTERM --(grace)--> SIGKILL --> ended
 *           --(output over the cap, or refused)------> SIGKILL --> ended
 *           --(exited, and both pipes at their end)--> ended
 *
 * The program leads a session and a process group of its own. It is reaped last, so its id cannot
 * belong to another process while the group is signalled. What is left of the group is killed
 * before that. The agent has threads, so nothing may run between fork and exec: only posix_spawn is
 * used.
 */
#ifndef SDK_CHILD_H
#define SDK_CHILD_H

#include <stdbool.h>

#include "baton/error.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

enum { CHILD_LINE_MAX = 512, CHILD_TAIL_MAX = 4096, CHILD_GRACE_MS = 2000 };

struct child_spec {
    const char *path;  /* of the program, from child_find */
    char *const *argv; /* NULL-terminated */
    char *const *envp; /* NULL-terminated; the whole environment */
    const char *cwd;   /* NULL = the agent's directory */
    const char *input; /* NULL = /dev/null */
    size_t input_len;
    size_t output_max;
    msec deadline; /* CLOCK_MONOTONIC; MSEC_NEVER = none */
    msec grace_ms; /* between SIGTERM and SIGKILL */
    /* polled several times a second; true = stop the program */
    bool (*stop)(void *self);
    /* called for each line of stderr, cut to CHILD_LINE_MAX; false = it is no part of the tail */
    bool (*line)(const char *line, void *self);
    /* takes stdout in pieces instead of child_result.out; false = stop the program; NULL = none */
    bool (*output)(const void *bytes, size_t len, void *self);
    void *self;
};

enum child_end {
    CHILD_EXITED,
    CHILD_SIGNALLED,
    CHILD_TIMEOUT,
    CHILD_STOPPED,
    CHILD_TOO_LARGE,
    CHILD_REFUSED /* `output` returned false */
};

struct child_result {
    enum child_end end;
    /* the program had ended before SIGTERM was sent; other processes held its pipes */
    bool exited;
    int exit_code; /* of CHILD_EXITED */
    int signal;    /* of CHILD_SIGNALLED */
    struct buf out;
    char last_line[CHILD_LINE_MAX + 1]; /* of stderr, the last one that was not empty */
    char tail[CHILD_TAIL_MAX + 1];      /* the last lines of stderr, each with its line break */
    size_t tail_len;
    bool tail_cut; /* earlier lines were left out */
    msec duration_ms;
};

/* Runs the program. BT_NOT_FOUND, BT_UNAUTHORIZED (not executable), BT_LIMIT (arguments too long)
 * or BT_IO when it could not be started. The caller frees with child_result_done, also after a
 * failure. */
BT_MUST_CHECK enum bt_code child_run(const struct child_spec *spec, struct child_result *ret,
                                     struct bt_error *err);
/* Accepts zeroed; idempotent. */
void child_result_done(struct child_result *r);

/* Finds a program as execvp does, along the colon-separated list. A name with a slash is used as it
 * is. BT_NOT_FOUND or BT_UNAUTHORIZED. */
BT_MUST_CHECK enum bt_code child_find(const char *name, const char *list, struct buf *ret_path,
                                      struct bt_error *err);
#endif
