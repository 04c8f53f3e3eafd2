/* Shared by serve.c and poll.c (requests of agents), lanes.c (requests of the daemon), beat.c
 * (registration, heartbeats, leases) and work.c (what was given, and what was answered). */
#ifndef POLLED_INTERNAL_H
#define POLLED_INTERNAL_H

#include "protocol/auth/lane.h"
#include "protocol/base/uuid.h"
#include "protocol/link/link.h"
#include "supervisor/gateway/http.h"
#include "supervisor/gateway/polled/polled.h"

enum {
    WORKS_MAX = 2 * LIMIT_CAPACITY, /* of an instance */
    POLL_STEPS_MAX = 16,            /* of one answer */
    WAIT_MAX_MS = 60000,
    WAIT_DEFAULT_MS = 30000,
    KEEP_MS = 10 * 60 * 1000, /* a result that the daemon does not have yet */
    DELIVER_MS = 30000        /* how long the sender of a result waits for the daemon */
};

struct instance;

/* One connection of the daemon to an instance. */
struct polled_lane {
    struct instance *in;
    struct link_server *server;
    uint32_t pipe; /* the connection that is proved, or about to be */
    bool proved;
    struct lane_proof proof;
};

enum work_state {
    WORK_QUEUED, /* nobody has it */
    WORK_OUT,    /* the agent has it */
    WORK_ENDED,  /* it has a result, which the daemon may not have yet */
    WORK_LOST    /* the agent says that it does not have it, and nobody can give it again */
};

/* One attempt. */
struct work {
    struct work *next;
    struct instance *of;
    enum work_state state;
    char key[LIMIT_KEY_BYTES + 1];
    uint32_t attempt;
    uint64_t epoch;
    struct polled_lane *lane; /* NULL: no request is open */
    uint64_t request;
    char id[LIMIT_ID_BYTES + 1]; /* of the request */
    enum wire_form form;
    struct buf step;   /* msgpack; empty: another gateway gave it out */
    msec since;        /* when it came, or ended */
    struct buf result; /* the fields of step.result */
    bool over_lane;    /* the result went over the lane, too */
    struct call *call; /* step.result */
    struct http *http; /* the sender of the result, who waits */
    msec http_until;
    bool cancelled, told; /* told: the agent knows */
    char reason[256];
    uint64_t grace_ms;
};

/* A request for work. It waits, or it was answered and the answer is on its way. */
struct poll {
    struct poll *next;
    struct instance *in; /* NULL: it is gone */
    struct http *h;
    bool waits;
    uint32_t max;
    msec until;
    uint32_t given_n;
    struct {
        char key[LIMIT_KEY_BYTES + 1];
        uint32_t attempt;
    } given[POLL_STEPS_MAX];
};

struct instance {
    struct instance *next;
    struct polled *of;
    struct caller *caller;
    char id[UUID_TEXT_LEN + 1], process[UUID_TEXT_LEN + 1];
    char session_key[2 * AUTH_KEY_BYTES + 1];
    struct buf registration; /* the fields that the agent gave */
    uint32_t capacity;
    uint64_t epoch;
    bool registered;
    bool returned; /* it was there before this gateway: attempts that are not known here may run */
    bool draining, drain_told;
    struct polled_lane lanes[LIMIT_CAPACITY + 1];
    uint32_t lanes_n;
    msec contact; /* the last sign of the agent */
    msec due;     /* of the next heartbeat or registration */
    msec heartbeat_ms;
    struct call *call; /* of a heartbeat or a registration */
    struct http *http; /* the agent's registration, which waits */
    struct work *works;
    uint32_t works_n;
    struct poll *polls;
};

struct polled {
    struct upstream *up;
    msec lease_ms;
    struct instance *first;
    uint32_t n, lanes_n;
    size_t bytes;
    msec now, swept;
};

/* work.c */
struct work *work_find(struct instance *in, struct str key, uint64_t attempt);
/* NULL: there are too many, or no memory. */
struct work *work_add(struct instance *in, struct str key, uint32_t attempt, uint64_t epoch);
void work_remove(struct work *w);
/* Keeps bytes for a work. False: there are too many. */
bool work_keep(struct work *w, struct buf *to, const void *bytes, size_t n);
void work_drop(struct work *w, struct buf *from);
/* Puts the result into an empty message; its texts live as long as the work and the arena. */
bool work_result(const struct work *w, struct arena *arena, struct msg_step_result *ret);
/* Ends an attempt that nobody has: it fails with this class. */
void work_fail(struct work *w, enum err_class cls, const char *message);
/* Sends the result to the daemon, over its lane and by step.result. */
void work_deliver(struct work *w);
/* The agent says what it has: what it does not have is given again, or lost. */
void works_compare(struct instance *in, const struct msg_inflight *list, uint32_t n);
void work_cancel(struct work *w, struct str reason, uint64_t grace_ms);

/* lanes.c */
bool lanes_dial(struct instance *in, const struct msg_agent_registered_ok *ok);
void lanes_close(struct instance *in);
void polled_on_request(void *self, struct link_event *ev);
void lane_answer_result(struct work *w);
/* Answers the request with an error of this code, so that its lane is free. */
void lane_refuse(struct work *w, enum bt_code code, const char *message);

/* beat.c */
struct instance *instance_find(struct polled *p, struct str id);
struct instance *instance_new(struct polled *p, const char *id, struct caller *caller);
/* Also ends its polls, with the problem. */
void instance_free(struct instance *in, const struct problem *why);
void instance_register(struct instance *in);

#define POLLED_NOT_HERE                                                                            \
    "this instance is not registered here: register again with the same instanceId, and send "     \
    "this "                                                                                        \
    "request once more"

/* poll.c */
/* The instance of the path, of this sender; NULL: there is none. */
struct instance *instance_of(struct http *h);
/* What the body says is under way. False after refusing; *ret_said: it says something. */
bool read_inflight(struct http *h, struct instance *in, bool *ret_said);
/* Answers polls that wait, when there is something for them. */
void polls_give(struct instance *in);
void poll_end(struct poll *poll);
/* The same without a step: its sender may be gone. */
void poll_close(struct poll *poll);
bool poll_hung_up(const struct poll *poll);
/* {leaseMs, cancel, drain}: what the agent has to know. */
void put_orders(struct instance *in, struct buf *out);
/* serve.c */
/* The agent's POST of a result, or of a registration, is answered. */
void answer_result(struct http *h, bool accepted, struct str reason);
void answer_registered(struct instance *in, struct http *h);
#endif
