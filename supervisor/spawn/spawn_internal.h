/* The state of the daemon's side, shared by spawn.c (cycle, events), spawn_open.c and
 * spawn_children.c (specs, adoption). */
#ifndef SPAWN_SPAWN_INTERNAL_H
#define SPAWN_SPAWN_INTERNAL_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "supervisor/spawn/packet.h"
#include "supervisor/spawn/spawn.h"
#include "supervisor/spawn/spawn_link.h"

enum { INSTANCE_ENV_BYTES = 64 };

/* Unsent orders of a child, sent in this order. Flags, so that no queue can grow. */
enum { SEND_START = 1u << 0, SEND_TERM = 1u << 1, SEND_KILL = 1u << 2 };

struct spawn_group {
    char name[LIMIT_ID_BYTES + 1];
    struct group group;
    struct group_member *members; /* in the order of their places */
    struct child **of;            /* the children of these */
    uint32_t n;
    bool running; /* its orders are being carried out */
    bool kept;    /* while the groups are set again */
};

struct child {
    struct policy_child policy;
    struct arena arena;
    struct spawn_group *group; /* NULL = none */
    uint32_t ix;               /* among its members */
    uint32_t place;
    uint64_t log_bytes;
    uint32_t log_files;
    bool stale;       /* the process has an earlier spec */
    bool parked;      /* an operator stopped it */
    bool removed;     /* forgotten when no process of it is left */
    const char *name; /* in the arena, as all below */
    const char *agent_id;
    const char *cwd;
    char **argv;
    char **env; /* env[0] is instance_env */
    char **handover;
    char **apart;
    uint64_t nofile;
    uint64_t memory_bytes;
    uint64_t
        /* of the spec: a living process is adopted only when it was started from the same spec */
        hash;
    char instance_env[INSTANCE_ENV_BYTES];
    char credential[INSTANCE_ENV_BYTES + SPAWN_CREDENTIAL_BYTES]; /* credential=ID, for the order */
    char key[INSTANCE_ENV_BYTES + SPAWN_CREDENTIAL_BYTES];        /* key=HEX */
    char instance_id[UUID_TEXT_LEN + 1];                          /* "" = no process */
    pid_t pid;
    unsigned send;
    const char *kill_reason; /* why it is being killed, for the reason; NULL = it is not */
    char reason[SPAWN_REASON_MAX];
    char last_line[SPAWN_LINE_MAX];
    uint64_t log_from; /* the offset of this process's output in the log */
};

/* A child that the spawner reported in HELLO; kept until spawn_set_children. */
struct found {
    char name[SPAWN_NAME_MAX + 1];
    char instance_id[UUID_TEXT_LEN + 1];
    pid_t pid;
    uint64_t hash;
    bool taken;
};

struct spawn {
    struct spawn_link link;
    const char *path_first; /* in the arena, as the next two */
    char **controls;        /* control=URL, control:SHARD=URL, ... */
    char **ports;           /* port=N, of each URL */
    size_t controls_n;
    struct spawn_prover prover;
    uint32_t changes;
    uint32_t shards;
    struct arena arena;
    struct child **children; /* LIMIT_PROCESSES */
    size_t children_n;
    struct spawn_group *groups[SPAWN_GROUPS_MAX];
    size_t groups_n;
    bool blameless; /* what ends now ends through no fault of its own */
    bool stopping;  /* all of them: nothing is added */
    bool children_set;
    bool fresh; /* spawn_begin or spawn_greet started the spawner */
    struct found *found;
    uint32_t found_n;
    struct spawn_event *events; /* a ring */
    size_t events_cap;
    size_t events_at;
    size_t events_n;
    msec started_at; /* of the spawner */
    msec retry_due;  /* when to start a spawner again; MSEC_NEVER = one runs */
    struct buf out;
    struct packet order;    /* to send; large, so not on the stack */
    struct packet received; /* the last received packet */
    uint8_t in[PACKET_BYTES + 1];
};

/* spawn.c */
/* Passes one event to the child's policy and performs its commands. */
void spawn_apply(struct spawn *s, struct child *c, const struct policy_event *ev);
void spawn_emit(struct spawn *s, const struct child *c, enum spawn_event_type type,
                const char *reason);
/* Sends the unsent orders that fit into the socket. */
void spawn_flush(struct spawn *s);
bool spawn_send_order(struct spawn *s, enum packet_type type, const char *instance, int status);

/* Room for the events of one more child. */
BT_MUST_CHECK enum bt_code spawn_events_room(struct spawn *s, struct bt_error *err);

/* STATE_DIR/log/NAME.log. */
void spawn_log_path(const struct spawn *s, const char *name, char *ret, size_t cap);
struct child *spawn_find_instance(const struct spawn *s, struct str instance_id);

/* spawn_children.c: checks one spec and makes a child of it; the caller frees it. */
BT_MUST_CHECK enum bt_code child_new(struct spawn *s, const struct spawn_spec *spec,
                                     struct child **ret, struct bt_error *err);
void child_free(struct child *c);
void child_new_instance(struct child *c);
/* With what the instance proves itself by. child_wipe when the order was encoded. */
void child_fill_start(const struct spawn *s, struct child *c, struct packet *order);
void child_wipe(struct child *c);

/* spawn_groups.c */
/* The members of each group, after children came, went or changed their group. */
BT_MUST_CHECK enum bt_code spawn_groups_gather(struct spawn *s, struct bt_error *err);
/* A child that is freed leaves its group. */
void spawn_group_leave(struct child *c);
struct spawn_group *spawn_group_find(const struct spawn *s, const char *name);
/* Carries out what the group orders now. */
void spawn_group_run(struct spawn *s, struct spawn_group *g, msec now);
/* A member crashed, came up or ended by itself. */
void spawn_group_note(struct spawn *s, struct child *c, enum policy_command what, msec now);
void spawn_groups_free(struct spawn *s);
/* spawn_update.c: drops what is to be forgotten and has come to rest. */
void spawn_sweep_removed(struct spawn *s);
#endif
