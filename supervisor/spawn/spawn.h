/*
 * The daemon's side of process supervision: which agent processes there should be, kept true
 * through a helper process, the spawner (spawner.h), that outlives a kill -9 of the daemon for a
 * few seconds so that the next daemon adopts its agents. All calls come from the loop thread; none
 * blocks but spawn_open and spawn_close (bounded).
 *
 *   main:   if (argc > 1 && strcmp(argv[1], "--spawner") == 0) { return spawner_main(argc, argv); }
 * before all else start:  spawn_open (the state directory's lock is held) -> spawn_set_children ->
 * poll spawn_fd() turn:   fd readable -> spawn_handle;  deadline due -> spawn_tick;  agent.register
 * accepted -> spawn_registered; then while (spawn_next_event(s, &ev)) { ... } before the next turn
 *   stop:   spawn_stop_all -> turns until spawn_is_idle -> spawn_close
 */
#ifndef SPAWN_SPAWN_H
#define SPAWN_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"
#include "supervisor/spawn/policy.h"

enum {
    SPAWN_NAME_MAX = 80,
    SPAWN_REASON_MAX = 160,
    SPAWN_LINE_MAX = 256,
    SPAWN_LOG_MAX = 4096 + 96
};

struct spawn;

struct spawn_options {
    const char *state_dir; /* absolute; exists; holds spawner.sock and log/ */
    const char
        *path_first; /* a directory put before PATH for agents (where batond lies); NULL = none */
    msec
        orphan_grace_ms; /* how long agents wait for a new daemon when this one is gone; 0 = 4000 */
    bool no_cgroup;      /* never use cgroup.kill, also where it would work */
};

/* One process that should run. Everything is copied by spawn_set_children. */
struct spawn_spec {
    const char *name; /* unique and stable over restarts of the daemon: "calc#1"; [A-Za-z0-9._#-],
                         <= 80 bytes */
    const char *agent_id;    /* BATON_AGENT_ID */
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in the agent's PATH */
    const char *const
        *env; /* NULL-terminated, or NULL; "NAME=value", or "NAME" for the daemon's own value */
    const char *settings;  /* JSON for BATON_SETTINGS; NULL = the variable is not set */
    uint32_t capacity;     /* BATON_CAPACITY; 0 = not set */
    const char *cwd;       /* NULL = the state directory */
    uint64_t nofile;       /* RLIMIT_NOFILE; 0 = 1024 */
    uint64_t memory_bytes; /* RLIMIT_AS; 0 = unlimited (agents built with ASan need that) */
    struct policy_settings policy;
};

enum spawn_event_type {
    SPAWN_STARTED,   /* its first process exists; it has not registered yet */
    SPAWN_RESTARTED, /* the same after an end: a new instance id and pid */
    SPAWN_ADOPTED,   /* a process that an earlier daemon started lives on; it registers again by
                        itself */
    SPAWN_UP,        /* spawn_registered was called for it; rarely a moment before its STARTED */
    SPAWN_EXITED, /* the process and its whole tree are gone, or could not be started; see reason */
    SPAWN_GAVE_UP, /* too many crashes: not restarted until spawn_start_child */
    SPAWN_EVENT_COUNT
};

struct spawn_event {
    enum spawn_event_type type;
    const char *name;     /* valid until spawn_close */
    const char *agent_id; /* valid until spawn_close */
    char instance_id[UUID_TEXT_LEN + 1];
    pid_t pid;     /* 0 when it never started */
    bool expected; /* EXITED: after a stop, or a clean exit of a child that may end */
    uint32_t restarts;
    char reason[SPAWN_REASON_MAX]; /* "killed by signal 9", "exit code 3", "exec failed: No such
                                      file or directory" */
};

/* The row that `baton agents` and `baton doctor` show. */
struct spawn_info {
    const char *name; /* valid until spawn_close, as agent_id */
    const char *agent_id;
    const char *instance_id; /* "" when there is no process; valid until the next call */
    pid_t pid;
    enum policy_state state;
    uint32_t restarts;
    const char *reason; /* why the last process ended; "" = none did; valid until the next call */
    const char *last_line;   /* that it wrote, made printable; "" = none; valid as reason */
    char log[SPAWN_LOG_MAX]; /* the file with its output */
};

/*
 * Adopts the spawner that lives in state_dir, or starts one: this program again, by posix_spawn of
 * /proc/self/exe with "--spawner". A spawner of another version is told to end first. Waits at most
 * some seconds. BT_IO, BT_TIMEOUT (a spawner is there but does not answer), BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code spawn_open(const struct spawn_options *opt, struct spawn **ret_spawn,
                                      struct bt_error *err);
/*
 * Once per spawn_open. Living children of an earlier daemon with the same name and the same spec
 * are adopted, other living ones are killed, all missing ones are started. BT_INVALID (a bad or
 * double name, no argv), BT_LIMIT (more than LIMIT_INSTANCES, or argv, env and settings of one
 * child above 60 KiB), BT_CONFLICT (called before).
 */
BT_MUST_CHECK enum bt_code spawn_set_children(struct spawn *s, const struct spawn_spec *specs,
                                              size_t n, msec now, struct bt_error *err);
/* Readable when spawn_handle has something to do. Never changes; stays with s. */
int spawn_fd(const struct spawn *s);
/* Takes what the spawner said. A spawner that died is replaced here; its children count as crashed.
 */
void spawn_handle(struct spawn *s, msec now);
void spawn_tick(struct spawn *s, msec now);
/* When spawn_tick is due, MSEC_NEVER = not by time. */
msec spawn_deadline(const struct spawn *s);
/* An agent registered. False: the instance is none of ours (started by hand), which is fine. */
bool spawn_registered(struct spawn *s, struct str instance_id, msec now);
/* The instance runs in a process that this room started or adopted. Told by the id that its process
 * got in the environment, because a wrapper's pid differs from the agent's and descendants inherit
 * the id; one that makes up another id is none of ours (and would never be taken for up). */
bool spawn_owns(const struct spawn *s, struct str instance_id);
/* Its process lives but must not go on (silent, or work that does not stop): kill its tree, count a
 * crash. why: a short text that lives as long as the program. False when it is none of ours. */
bool spawn_kill_instance(struct spawn *s, struct str instance_id, const char *why, msec now);
/* By hand: also ends "gave up". BT_NOT_FOUND. */
BT_MUST_CHECK enum bt_code spawn_start_child(struct spawn *s, struct str name, msec now,
                                             struct bt_error *err);
BT_MUST_CHECK enum bt_code spawn_stop_child(struct spawn *s, struct str name, msec now,
                                            struct bt_error *err);
/* SIGTERM to all, after grace_ms SIGKILL to what is left of each tree; nothing is restarted. 0 =
 * each child's own grace. */
void spawn_stop_all(struct spawn *s, msec grace_ms, msec now);
/* No process of any child lives. */
bool spawn_is_idle(const struct spawn *s);
/* The next event, oldest first; false when there is none. Drain it every turn: a full queue stops
 * spawn_handle. */
bool spawn_next_event(struct spawn *s, struct spawn_event *ret_event);

size_t spawn_count(const struct spawn *s);
void spawn_describe(const struct spawn *s, size_t ix, struct spawn_info *ret_info);
/* 0 while there is none. */
pid_t spawn_spawner_pid(const struct spawn *s);

/* Ends the spawner and every process still under it, waits for that (at most 5 s), frees. NULL is
 * fine. */
void spawn_close(struct spawn *s);
/* Frees but lets the agents live for a successor that opens the same state directory within the
 * orphan grace. */
void spawn_abandon(struct spawn *s);
/* "started", "up", ...; never NULL. */
const char *spawn_event_name(enum spawn_event_type type);
#endif
