/* The daemon's connection to the spawner: connect, start one, send, receive. Independent of
 * children and policy. */
#ifndef SPAWN_SPAWN_LINK_H
#define SPAWN_SPAWN_LINK_H

#include <stdbool.h>
#include <sys/types.h>

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/msec.h"

struct spawn_link {
    /* the descriptor of spawn_fd: stays the same when the spawner is replaced */
    int epoll;
    int state_dir; /* paths to the socket go through it, because sun_path is short */
    int sock;      /* -1 = not connected */
    pid_t pid;     /* of the spawner; 0 = unknown */
    /* the spawner, when it is a child of this process and must be reaped; 0 = it is not */
    pid_t child;
    bool full;             /* the last send did not fit: waits for POLLOUT too */
    char state_path[4096]; /* PATH_MAX; without links, ".." and the like */
    char grace[24];
    bool no_cgroup;
};

enum link_io { LINK_DONE, LINK_LATER, LINK_BROKEN };

/* BT_IO, BT_INVALID (a relative or too long path). spawn_link_done accepts a link that failed to
 * open. */
BT_MUST_CHECK enum bt_code spawn_link_open(struct spawn_link *link, const char *state_dir,
                                           msec orphan_grace_ms, bool no_cgroup,
                                           struct bt_error *err);
/* Closes and frees; accepts a closed one. Sends nothing to the spawner. */
void spawn_link_done(struct spawn_link *link);
/* False when no spawner listens in the state directory (a stale socket file may exist). */
bool spawn_link_connect(struct spawn_link *link);
/* Binds the socket, listens and starts a spawner on it. Connecting works as soon as this returns.
 * BT_IO. */
BT_MUST_CHECK enum bt_code spawn_link_start(struct spawn_link *link, struct bt_error *err);
void spawn_link_disconnect(struct spawn_link *link);
/* Stores the spawner's pid. A spawner that this process started earlier is still its child and must
 * be reaped. */
void spawn_link_set_pid(struct spawn_link *link, pid_t pid);
/* Takes the exit status of a child spawner that has ended; wait: also of one that is ending. */
void spawn_link_reap(struct spawn_link *link, bool wait);
enum link_io spawn_link_send(struct spawn_link *link, const struct buf *packet);
enum link_io spawn_link_receive(struct spawn_link *link, uint8_t *bytes, size_t cap,
                                size_t *ret_len);
/* Waits until data (or the end) can be read or `until` has passed; MSEC_NEVER is not allowed. */
bool spawn_link_wait(const struct spawn_link *link, msec until);
#endif
