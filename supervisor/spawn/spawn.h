/*
 * The daemon's interface to process supervision. The configured agent processes are kept running
 * through a helper process, the spawner (spawner.h). The spawner survives a kill -9 of the daemon
 * for some seconds, so that the next daemon adopts its agents. All calls come from the loop thread;
 * only spawn_greet and spawn_close block (bounded).
 *
 *   main:   before all else:
 *           if (argc > 1 && strcmp(argv[1], "--spawner") == 0) { return spawner_main(argc, argv); }
 *   start:  spawn_begin (the caller holds the state directory's lock) -> spawn_greet
 *           -> spawn_set_children -> poll spawn_fd()
 *   cycle:  fd readable -> spawn_handle; deadline due -> spawn_tick;
 *           agent.register accepted -> spawn_registered;
 *           then while (spawn_next_event(s, &ev)) { ... } before the next cycle
 *   stop:   spawn_stop_all -> cycles until spawn_is_idle -> spawn_close
 */
#ifndef SPAWN_SPAWN_H
#define SPAWN_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"
#include "supervisor/spawn/group.h"

enum {
    SPAWN_NAME_MAX = 80,
    SPAWN_REASON_MAX = 160,
    SPAWN_LINE_MAX = 256,
    SPAWN_LOG_MAX = 4096 + 96,
    SPAWN_GROUPS_MAX = 64
};

struct spawn;

struct spawn_options {
    const char *state_dir; /* absolute; exists; contains spawner.sock and log/ */
    const char
        *path_first; /* a directory put before PATH for agents (the one of batond); NULL = none */
    msec
        orphan_grace_ms; /* how long agents wait for a new daemon when this one is gone; 0 = 4000 */
    bool no_cgroup;      /* do not use cgroups even where they are available */
    uint32_t shards;     /* BATON_SHARDS: they serve so many shards of a fleet; 0 and 1 = one */
};

/* Agents that are supervised together (group.h). */
struct spawn_group_spec {
    const char *name; /* 1 to 64 bytes */
    struct group_settings set;
};

/* The specification of one process. spawn_set_children and spawn_put copy everything. */
struct spawn_spec {
    /* unique and stable over restarts of the daemon: "calc#1"; [A-Za-z0-9._#-], <= 80 bytes */
    const char *name;
    const char *agent_id;    /* BATON_AGENT_ID */
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in the agent's PATH */
    const char *const
        *env; /* NULL-terminated, or NULL; "NAME=value", or "NAME" for the daemon's own value */
    const char *settings;  /* JSON for BATON_SETTINGS; NULL = the variable is not set */
    uint32_t capacity;     /* BATON_CAPACITY; 0 = not set */
    const char *cwd;       /* NULL = the state directory */
    uint64_t nofile;       /* RLIMIT_NOFILE; 0 = 1024 */
    uint64_t memory_bytes; /* RLIMIT_AS; 0 = unlimited (agents built with ASan need that) */
    /* NULL-terminated, or NULL: "secret:NAME=value", for the agent alone (sdk/handover.h) */
    const char *const *handover;
    const char *const *apart;      /* NULL-terminated, or NULL: what it is kept from (apart.h) */
    struct policy_settings policy; /* `grouped` is set from `group` */
    const char *group;             /* of spawn_set_groups; NULL = none */
    uint32_t place;                /* its order among the members of its group */
    uint64_t log_bytes;            /* the log is rotated at this size; 0 = 10 MiB */
    uint32_t log_files;            /* older logs that are kept */
};

enum spawn_event_type {
    SPAWN_STARTED,   /* its first process exists; it has not registered yet */
    SPAWN_RESTARTED, /* the same after an end: a new instance id and pid */
    SPAWN_ADOPTED,   /* a process of an earlier daemon continues; it registers again by itself */
    SPAWN_UP,        /* spawn_registered was called for it; in rare cases just before its STARTED */
    SPAWN_EXITED, /* the process and its whole tree are gone, or could not be started; see reason */
    SPAWN_GAVE_UP,       /* too many crashes, its own or of its group: not restarted until
                            spawn_start_child */
    SPAWN_GROUP_GAVE_UP, /* name: of the group; the members follow as SPAWN_GAVE_UP */
    SPAWN_EVENT_COUNT
};

struct spawn_event {
    enum spawn_event_type type;
    char name[SPAWN_NAME_MAX + 1];
    char agent_id[LIMIT_ID_BYTES + 1];
    char instance_id[UUID_TEXT_LEN + 1];
    pid_t pid;     /* 0 when it never started */
    bool expected; /* EXITED: after a stop, or a clean exit of a child that may end */
    uint32_t restarts;
    char reason[SPAWN_REASON_MAX]; /* "killed by signal 9", "exit code 3", "exec of x failed: No
                                      such file or directory" */
};

/* The data of `baton agents` and `baton doctor`. */
struct spawn_info {
    const char *name; /* valid until it is removed, as agent_id and group */
    const char *agent_id;
    const char *group;       /* NULL = none */
    bool stale;              /* its process was started from an earlier spec */
    bool parked;             /* an operator stopped it */
    const char *instance_id; /* "" when there is no process; valid until the next call */
    pid_t pid;
    enum policy_state state;
    uint32_t restarts;
    const char *reason; /* why the last process ended; "" = none has; valid until the next call */
    const char *last_line;   /* of its output, made printable; "" = none; valid as reason */
    char log[SPAWN_LOG_MAX]; /* the file with its output */
};

/*
 * Connects to the spawner in state_dir, or starts one: this program, by posix_spawn of
 * /proc/self/exe with "--spawner". Does not wait for it: it looks for what an earlier one left
 * while the caller opens its other rooms. BT_IO, BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code spawn_begin(const struct spawn_options *opt, struct spawn **ret_spawn,
                                       struct bt_error *err);
/* The same in two parts. spawn_new only makes the object: it has no children, starts and adopts
 * nothing, and spawn_fd is never readable. spawn_awake does the rest, perhaps later or never. */
BT_MUST_CHECK enum bt_code spawn_new(const struct spawn_options *opt, struct spawn **ret_spawn,
                                     struct bt_error *err);
BT_MUST_CHECK enum bt_code spawn_awake(struct spawn *s, struct bt_error *err);
/*
 * Once per spawn_begin or spawn_awake, before any other call but spawn_fd: waits until the spawner
 * is ready, at most some seconds. A spawner of another version is ended, and one is started. On an
 * error *io_spawn is freed, and NULL. BT_IO, BT_TIMEOUT (the spawner does not answer), BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code spawn_greet(struct spawn **io_spawn, struct bt_error *err);
/*
 * Once, after spawn_greet. Adopts living children of an earlier daemon with the same name and the
 * same spec, kills other living ones, starts all missing ones. BT_INVALID (a bad or duplicate name,
 * no argv), BT_LIMIT (more than LIMIT_PROCESSES, or argv, env and settings of one child above 60
 * KiB), BT_CONFLICT (called before).
 */
BT_MUST_CHECK enum bt_code spawn_set_children(struct spawn *s, const struct spawn_spec *specs,
                                              size_t n, msec now, struct bt_error *err);
/* The groups that specs may name; again after a reload, with other settings. Those that are missing
 * end, and their members then stand alone. BT_LIMIT (more than SPAWN_GROUPS_MAX), BT_NOMEM. */
BT_MUST_CHECK enum bt_code spawn_set_groups(struct spawn *s, const struct spawn_group_spec *specs,
                                            size_t n, struct bt_error *err);
enum spawn_put {
    SPAWN_PUT_SAME,
    SPAWN_PUT_ADDED,    /* it is started, in a group in its order */
    SPAWN_PUT_SETTINGS, /* rules of restarting and stopping: they count at once */
    SPAWN_PUT_STALE     /* counts from the next process on; the one that runs stays */
};
/* Adds a child, or gives the one of this name another spec. Errors as spawn_set_children. */
BT_MUST_CHECK enum bt_code spawn_put(struct spawn *s, const struct spawn_spec *spec, msec now,
                                     enum spawn_put *ret, struct bt_error *err);
/* Stops a child; it is forgotten when no process of it is left. BT_NOT_FOUND. */
BT_MUST_CHECK enum bt_code spawn_remove_child(struct spawn *s, struct str name, msec now,
                                              struct bt_error *err);
/* How a process proves to the supervisor that it is the instance: the id of its credential and its
 * key in hexadecimal digits. False: it gets none. */
enum { SPAWN_CREDENTIAL_BYTES = 65 };
struct spawn_prover {
    void *self;
    bool (*prove)(void *self, struct str instance_id, struct str agent_id,
                  char ret_id[SPAWN_CREDENTIAL_BYTES], char ret_key[SPAWN_CREDENTIAL_BYTES]);
};
/* Where the supervisor is, for agents that cannot read the state directory, and how an agent proves
 * itself. shards: the addresses of all shards of a node, in their order, "" = not known; of
 * spawn_options.shards elements, NULL = there is one. Before spawn_set_children. BT_NOMEM. */
BT_MUST_CHECK enum bt_code spawn_introduce(struct spawn *s, const char *control_url,
                                           const char *const *shards,
                                           const struct spawn_prover *prover, struct bt_error *err);
/* Differs from an earlier one when a process began, was adopted or ended since. */
uint32_t spawn_changes(const struct spawn *s);
/* Readable when spawn_handle has something to do. Constant; owned by s. */
int spawn_fd(const struct spawn *s);
/* Reads the spawner's packets. Replaces a spawner that died; its children count as crashed. */
void spawn_handle(struct spawn *s, msec now);
void spawn_tick(struct spawn *s, msec now);
/* When spawn_tick is due; MSEC_NEVER = no timer runs. */
msec spawn_deadline(const struct spawn *s);
/* An agent has registered. False: the instance is not a child of this spawn (an operator started
 * it), which is allowed. */
bool spawn_registered(struct spawn *s, struct str instance_id, msec now);
/* Whether the instance runs in a process that was started or adopted here. Identified by the id in
 * the process's environment, which descendants inherit: behind a wrapper script the agent's pid
 * differs from the started one. An agent that registers with an id of its own is not recognised
 * (and never counts as up). */
bool spawn_owns(const struct spawn *s, struct str instance_id);
/* Kills the tree of an instance whose process lives but must not continue (silent, or work that
 * does not stop); counts as a crash. why: a static text. False when it is not a child of this
 * spawn. */
bool spawn_kill_instance(struct spawn *s, struct str instance_id, const char *why, msec now);
/* The registration of the instance has ended: it must register again within wait_ms, or its process
 * counts as hung. */
void spawn_lost(struct spawn *s, struct str instance_id, msec wait_ms, msec now);
/* Requested by an operator; also leaves "gave up", of its group, too. BT_NOT_FOUND. */
BT_MUST_CHECK enum bt_code spawn_start_child(struct spawn *s, struct str name, msec now,
                                             struct bt_error *err);
BT_MUST_CHECK enum bt_code spawn_stop_child(struct spawn *s, struct str name, msec now,
                                            struct bt_error *err);
/* The process has drain_ms to end its work, then it is stopped; it stays so. The caller keeps new
 * work from it, and calls spawn_stop_child when it has none left. BT_NOT_FOUND. */
BT_MUST_CHECK enum bt_code spawn_drain_child(struct spawn *s, struct str name, msec drain_ms,
                                             msec now, struct bt_error *err);
/* SIGTERM to all, in a group to one after the other, last first; after grace_ms SIGKILL to what is
 * left of each tree. Restarts nothing. 0 = each child's own grace. */
void spawn_stop_all(struct spawn *s, msec grace_ms, msec now);
/* True when no process of any child lives. */
bool spawn_is_idle(const struct spawn *s);
/* The next event, oldest first; false when there is none. Call it until then in every cycle: a full
 * queue stops spawn_handle. */
bool spawn_next_event(struct spawn *s, struct spawn_event *ret_event);

size_t spawn_count(const struct spawn *s);
/* The index of a child by its name; spawn_count = there is none. */
size_t spawn_index(const struct spawn *s, struct str name);
void spawn_describe(const struct spawn *s, size_t ix, struct spawn_info *ret_info);
/* 0 while there is none. */
pid_t spawn_spawner_pid(const struct spawn *s);

/* Ends the spawner and every process below it, waits for that (at most 5 s), frees. Accepts
 * NULL. */
void spawn_close(struct spawn *s);
/* Frees without ending the agents: a successor that opens the same state directory within the
 * orphan grace adopts them. */
void spawn_abandon(struct spawn *s);
/* "started", "up", ...; never NULL. */
const char *spawn_event_name(enum spawn_event_type type);
#endif
