/*
 * The state directory of the supervisor is closed to the skills that open files, whichever way
 * leads to it: a root above it, a symbolic link, "..", a bind mount of it or of a part of it, or a
 * hard link to a file in it. Devices and inodes are compared, not names. The directory is the one
 * of protocol/client/state.h (BATON_STATE first), looked up at each check, because it may be made
 * after the agent's start.
 * Threads: no state; any thread may call.
 */
#ifndef SDK_GUARD_H
#define SDK_GUARD_H

#include <stdbool.h>

/* Whether an open file or directory is the state directory or lies in it. A file with several names
 * counts as one of it when the directory cannot be searched. */
bool guard_is_state(int fd);
/* Whether the directory is the state directory itself; one below it is not. */
bool guard_is_state_root(int dir);
/* Whether the file is also a name in the state directory, outside of its subdirectory `except` (a
 * descriptor). */
bool guard_is_linked(int file, int except);
#endif
