/*
 * The spawner's state, shared by its four files: spawner.c (main, loop, end), spawner_conn.c (the
 * daemon's connection), spawner_children.c (start, reap, sweep), spawner_exec.c (from fork to
 * exec).
 */
#ifndef SPAWN_SPAWNER_INTERNAL_H
#define SPAWN_SPAWNER_INTERNAL_H

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"
#include "supervisor/spawn/cgroup.h"
#include "supervisor/spawn/packet.h"
#include "supervisor/spawn/proc.h"

enum {
    CHILDREN_MAX = 2 * LIMIT_PROCESSES, /* old ones may still be dying while new ones start */
    CHILD_NAME_BYTES = 81,
    CHILD_REASON_BYTES = 128,
    SWEEP_EVERY_MS = 10, /* between two passes over the processes of a tree */
    SWEEP_LIMIT_MS = 3000,
    END_GRACE_MS = 500,               /* from TERM to KILL when the daemon is gone */
    END_LIMIT_MS = 4000,              /* then the spawner exits, and PDEATHSIG kills its children */
    LOG_MAX_BYTES = 10 * 1024 * 1024, /* when the order does not say */
    LOG_FILES_MAX = 9,
    LISTEN_FD = 3
};

enum child_state {
    CHILD_FREE,
    CHILD_STARTING, /* forked; the exec pipe is still open */
    CHILD_RUNNING,
    CHILD_GONE, /* no process lives; the slot is kept until the daemon has the report */
    CHILD_STATE_COUNT
};

/* Unsent reports of a child. One flag per report bounds the memory, however slow the daemon is. */
enum { REPORT_CHILD = 1u << 0, REPORT_STARTED = 1u << 1, REPORT_END = 1u << 2 };

struct child {
    enum child_state state;
    unsigned pending_reports;
    char name[CHILD_NAME_BYTES];
    char instance[UUID_TEXT_LEN + 1];
    char failure[CHILD_REASON_BYTES]; /* why it could not be started; "" = it was */
    const char *reached;              /* the limit at which the kernel stopped it; NULL = none */
    uint64_t hash;
    uint64_t log_bytes, log_seen; /* its cap, and its size when it was last looked at */
    uint32_t log_files;
    pid_t pid;
    int status; /* of wait, once reaped */
    int exec_pipe;
    int handover; /* the file of descriptor 4, until its process has registered; -1 = none */
    bool reaped;
    bool sweeping;         /* the whole tree is being killed */
    unsigned empty_passes; /* how many more empty passes prove that nothing is left */
    msec sweep_due;
    msec sweep_until; /* set when reaped: then only other processes of the tree can be left */
};

/* The child's report through the CLOEXEC pipe when it cannot become the agent. */
struct exec_failure {
    int errnum;
    char what[96];
};

struct spawner {
    struct child children[CHILDREN_MAX];
    uint32_t children_n; /* slots ever used */
    int signals;         /* signalfd of SIGCHLD */
    int listener;
    int conn; /* -1 = no daemon */
    int state_dir;
    const char *state_path;
    char mark[64]; /* BATON_SPAWNED=DEVICE.INODE of the state directory, in each agent */
    /* BATON_HIDE=FILE: the library that hides a process which loads it; "" = not installed */
    char hide[PATH_MAX + 16];
    msec orphan_grace_ms;
    msec orphan_due; /* ends then without a daemon; MSEC_NEVER while there is one */
    bool hello_pending;
    bool ending;
    bool kill_sent; /* ending: TERM's grace is over */
    msec end_kill_due;
    msec end_limit;
    msec logs_due; /* when the sizes of the logs are looked at again */
    struct cgroup cgroup;
    struct proc_list procs;
    struct buf out;
    struct packet packet; /* the one being read */
    uint8_t in[PACKET_BYTES + 1];
    struct pollfd polls[CHILDREN_MAX + 3];
};

/* The descriptor of an agent with what is for it alone. */
#define HANDOVER_TEXT "4"

/* spawner.c: TERM to all, KILL after the grace; the loop returns when nothing is left. */
void spawner_end(struct spawner *s, msec now);

/* spawner_conn.c */
void conn_accept(struct spawner *s);
void conn_read(struct spawner *s, msec now);
/* Sends the pending reports that fit into the socket. */
void conn_send_pending(struct spawner *s);
bool conn_has_pending(const struct spawner *s);
void conn_close(struct spawner *s, msec now);

/* spawner_children.c */
void children_start(struct spawner *s, struct packet *order);
void children_signal(struct spawner *s, const char *instance, int signal);
/* Empties what the process was handed: it has read it, and its children must not. */
void children_registered(struct spawner *s, const char *instance);
void children_kill(struct spawner *s, const char *instance, msec now);
void children_kill_all(struct spawner *s, msec now);
/* Reads the exec pipe of this child: exec succeeded, or why it failed. */
void children_exec_done(struct child *child);
void children_reap(struct spawner *s, msec now);
void children_sweep(struct spawner *s, msec now);
/* Kills processes of an earlier spawner of this state directory that was killed; blocks at most 2
 * s. */
void children_sweep_leftovers(struct spawner *s);
bool child_is_alive(const struct child *child);

/* spawner_log.c: opens the log of a child for append; a full one is put away first. -1 = failed. */
int log_open(const struct spawner *s, const struct child *child);
/* Rotates the logs that have reached their cap while their processes run. */
void logs_look(struct spawner *s, msec now);

/*
 * spawner_exec.c: forks; the child becomes the agent, or writes a struct exec_failure to *ret_pipe
 * and exits. A failure before the fork is in child->failure; then false is returned.
 */
bool spawner_fork(struct spawner *s, struct child *child, struct packet *order);
#endif
