/* The daemon side's state, shared by spawn.c (turns, events) and spawn_children.c (specs,
 * adoption). */
#ifndef SPAWN_SPAWN_INTERNAL_H
#define SPAWN_SPAWN_INTERNAL_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "supervisor/spawn/packet.h"
#include "supervisor/spawn/spawn.h"
#include "supervisor/spawn/spawn_link.h"

enum { INSTANCE_ENV_BYTES = 64 };

/* Orders that the socket had no room for. Flags, so that nothing queues up; sent in this order. */
enum { SEND_START = 1u << 0, SEND_TERM = 1u << 1, SEND_KILL = 1u << 2 };

struct child {
    struct policy_child policy;
    const char *name; /* in the arena, as all below */
    const char *agent_id;
    const char *cwd;
    char **argv;
    char **env; /* env[0] is instance_env */
    uint64_t nofile;
    uint64_t memory_bytes;
    uint64_t
        hash; /* of the spec: a living process is adopted only when it was started from the same */
    char instance_env[INSTANCE_ENV_BYTES];
    char instance_id[UUID_TEXT_LEN + 1]; /* "" = no process */
    pid_t pid;
    unsigned send;
    const char *kill_reason; /* why we kill it, for the reason; NULL = we do not */
    char reason[SPAWN_REASON_MAX];
    char last_line[SPAWN_LINE_MAX];
    uint64_t log_from; /* where the log of this process begins */
};

/* A child of the spawner as it said hello; lives until spawn_set_children. */
struct found {
    char name[SPAWN_NAME_MAX + 1];
    char instance_id[UUID_TEXT_LEN + 1];
    pid_t pid;
    uint64_t hash;
    bool taken;
};

struct spawn {
    struct spawn_link link;
    const char *path_first; /* in the arena */
    struct arena arena;
    struct child *children;
    size_t children_n;
    bool children_set;
    struct found *found;
    uint32_t found_n;
    struct spawn_event *events; /* a ring */
    size_t events_cap;
    size_t events_at;
    size_t events_n;
    msec started_at; /* the spawner */
    msec retry_due;  /* when to try to start one again; MSEC_NEVER = there is one */
    struct buf out;
    struct packet order;    /* being sent; large, so not on the stack */
    struct packet received; /* being read */
    uint8_t in[PACKET_BYTES + 1];
};

/* spawn.c */
/* Hands one event to the child's policy and does what it says. */
void spawn_apply(struct spawn *s, struct child *c, const struct policy_event *ev);
void spawn_emit(struct spawn *s, const struct child *c, enum spawn_event_type type,
                const char *reason);
/* Sends what is owed, as much as the socket takes. */
void spawn_flush(struct spawn *s);
bool spawn_send_order(struct spawn *s, enum packet_type type, const char *instance, int status);

/* STATE_DIR/log/NAME.log. */
void spawn_log_path(const struct spawn *s, const char *name, char *ret, size_t cap);
struct child *spawn_find_instance(const struct spawn *s, struct str instance_id);

/* spawn_children.c: checks and copies one spec into *c. */
BT_MUST_CHECK enum bt_code child_init(struct spawn *s, const struct spawn_spec *spec,
                                      struct child *c, struct bt_error *err);
void child_new_instance(struct child *c);
void child_fill_start(const struct child *c, struct packet *order);
#endif
