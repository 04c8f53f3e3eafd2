/*
 * The lanes of an instance: its pipes. Opened when it registers, greeted with lane.hello, retired
 * together when the incarnation ends. One request is outstanding on a lane; orders for the control
 * lane queue here.
 */
#ifndef DISPATCH_LANES_H
#define DISPATCH_LANES_H

#include "protocol/auth/lane.h"
#include "supervisor/engine/engine.h"

enum lane_state {
    LANE_CONNECTING, /* no pipe */
    LANE_GREETING,   /* lane.hello sent */
    LANE_READY,
    LANE_BUSY /* a step, or on the control lane a query or cancel, is outstanding */
};

enum control_kind { CONTROL_QUERY, CONTROL_CANCEL, CONTROL_PING };

struct control_item {
    enum control_kind kind;
    uint64_t run;
    uint32_t step;
    enum step_phase phase;
    uint32_t attempt;
    char key[LIMIT_KEY_BYTES + 1];
};

enum {
    /* Answers in a row that cannot be read, after which an instance is down. */
    LANES_UNREADABLE_MAX = 3,
    /* For the peer of a lane that the agent dials to answer the greeting. */
    LANES_GREETING_MS = 2000
};

struct lane {
    struct link_lane *link; /* NULL = not used, or a credit of a trunk */
    struct lane_instance *instance;
    uint32_t ix;  /* 0 .. capacity-1, or REGISTRY_CONTROL_LANE */
    bool pipe;    /* one of a trunk */
    uint64_t tag; /* a credit of a trunk: of its last step, until that is answered */
    enum lane_state state;
    struct lane_proof proof;  /* of the connection, when the instance proves */
    msec greeted_at;          /* LANE_GREETING: since then */
    bool proving;             /* the second hello is out: the agent has proved itself */
    bool paid;                /* its result came another way; what it used is counted */
    bool proved;              /* the process that registered answers here: it named itself */
    bool cancelled;           /* its attempt was cancelled: heartbeats repeat the order */
    struct control_item item; /* what is outstanding, on work lanes the attempt */
};

/* One incarnation of one instance. Its lanes are retired together. */
struct lane_instance {
    uint32_t slot;
    uint64_t epoch;
    uint32_t agent;
    uint32_t capacity;
    uint32_t bundle;     /* bodies that it takes at once; 0 = each credit has a pipe of its own */
    struct trunk *trunk; /* NULL without bundles */
    uint32_t pid;
    enum wire_form form; /* of its registration, and so of every message to it */
    char id[LIMIT_ID_BYTES + 1];
    char by[LIMIT_ID_BYTES + 1]; /* the credential that registered it: only that acts for it */
    char version[65];            /* of its card */
    char endpoint[257];
    char session_key[129];
    bool proves;                  /* both sides prove that they have the key; it is not sent */
    struct uuid process;          /* as it registered; nil = it did not name itself */
    bool remote;                  /* on another host: it dials its lanes */
    char from[LINK_PEER_MAX + 1]; /* where it registered from: "192.0.2.1:40123" */
    /* Answers in a row that could not be read: of the work lanes, and of the control lane. */
    uint32_t unreadable[2];
    /* Orders that wait for the control lane: a query and a cancel for each attempt that it may
     * have, and two pings. Behind the lanes. */
    struct control_item *queue;
    uint32_t queue_max, queue_at, queue_n;
    bool pinged;         /* a ping is queued or out: a second one would bring nothing new */
    msec opened;         /* when it registered */
    bool reached;        /* a work lane of it was greeted once */
    struct lane lanes[]; /* capacity + 1; the last one is the control lane. None in *proto. */
};

/* Its pipes for work; lanes_pipe with that number is the control lane. */
uint32_t lanes_pipes(const struct lane_instance *in);
struct lane *lanes_pipe(struct lane_instance *in, uint32_t i);
/* The lanes of all instances. Each is a descriptor, also when nobody answers at its other end. */
uint32_t lanes_taken(const struct engine *engine);
/* A live instance that has the session key, NULL = none; the first of several. */
const struct lane_instance *lanes_by_key(struct engine *engine, struct str session_key);
/* What a request to the instance has as its sessionKey: nothing when it proves. */
struct str lanes_key(const struct lane_instance *in);
/* Opens the lanes of a copy of *proto, in the place of an earlier incarnation in its slot. */
BT_MUST_CHECK enum bt_code lanes_open(struct engine *engine, const struct lane_instance *proto,
                                      struct bt_error *err);
void lanes_close(struct engine *engine, uint32_t slot, uint64_t epoch);
void lanes_on_link(struct engine *engine, struct link_event *ev);
/* NULL when the slot has no lanes, or those of another epoch. */
struct lane_instance *lanes_instance(struct engine *engine, uint32_t slot, uint64_t epoch);
void lanes_control(struct engine *engine, const struct core_cmd *cmd, enum control_kind kind);
/* The instance has sent a heartbeat. Hangs up on peers of its lanes that it dials which have not
 * answered the greeting for LANES_GREETING_MS: they are not it, and it cannot connect. */
void lanes_hang_up_on_mute(struct engine *engine, struct lane_instance *in);
/* agent.ping on the control lane; CORE_PROBED reports whether it was answered. */
void lanes_probe(struct engine *engine, const struct core_cmd *cmd);
#endif
