/* Starts a program with three pipes. Used by child.c only. */
#ifndef SDK_SPAWN_H
#define SDK_SPAWN_H

#include <sys/types.h>

#include "agents/sdk/child/child.h"

struct spawn {
    pid_t pid;
    int pidfd;
    int in;  /* -1 = closed */
    int out; /* -1 = closed */
    int err; /* -1 = closed */
};

/* On failure nothing runs and no descriptor is open. */
BT_MUST_CHECK enum bt_code spawn_start(const struct child_spec *spec, struct spawn *ret,
                                       struct bt_error *err);
/* Closes *fd and makes it -1; accepts -1. */
void spawn_close(int *fd);
#endif
