/* The daemon's end of the line to the spawner: find one, start one, send, receive. Knows no
 * children and no policy. */
#ifndef SPAWN_SPAWN_LINK_H
#define SPAWN_SPAWN_LINK_H

#include <stdbool.h>
#include <sys/types.h>

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/msec.h"

struct spawn_link {
    int epoll;             /* what spawn_fd gives: stays the same when the spawner is replaced */
    int state_dir;         /* a path to the socket through it has no length limit */
    int sock;              /* -1 = not connected */
    pid_t pid;             /* of the spawner; 0 = unknown */
    pid_t child;           /* the spawner, when it is our own child and must be reaped; 0 = not */
    bool full;             /* the last send did not fit: wait for room too */
    char state_path[4096]; /* PATH_MAX; without links, ".." and the like */
    char grace[24];
    bool no_cgroup;
};

enum link_io { LINK_DONE, LINK_LATER, LINK_BROKEN };

/* BT_IO, BT_INVALID (a relative or too long path). A link that failed to open can be given to
 * spawn_link_done. */
BT_MUST_CHECK enum bt_code spawn_link_open(struct spawn_link *link, const char *state_dir,
                                           msec orphan_grace_ms, bool no_cgroup,
                                           struct bt_error *err);
/* Closes and frees; accepts a closed one. The spawner is not told. */
void spawn_link_done(struct spawn_link *link);
/* False when nobody listens in the state directory (then a stale socket file may lie there). */
bool spawn_link_connect(struct spawn_link *link);
/* Binds the socket, listens and starts a spawner on it; connecting works as soon as this returns.
 * BT_IO. */
BT_MUST_CHECK enum bt_code spawn_link_start(struct spawn_link *link, struct bt_error *err);
void spawn_link_disconnect(struct spawn_link *link);
/* The spawner said who it is; one started by an earlier life of this very process is still ours to
 * reap. */
void spawn_link_set_pid(struct spawn_link *link, pid_t pid);
/* Takes the exit status of a spawner of ours that has ended; with wait also of one that is about
 * to. */
void spawn_link_reap(struct spawn_link *link, bool wait);
enum link_io spawn_link_send(struct spawn_link *link, const struct buf *packet);
enum link_io spawn_link_receive(struct spawn_link *link, uint8_t *bytes, size_t cap,
                                size_t *ret_len);
/* Whether something can be read (also the end) by then; MSEC_NEVER is not allowed. */
bool spawn_link_wait(const struct spawn_link *link, msec until);
#endif
