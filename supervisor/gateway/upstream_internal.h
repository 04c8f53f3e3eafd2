/* Shared by upstream.c (callers and calls) and lanes.c (connections to the daemon). */
#ifndef GATEWAY_UPSTREAM_INTERNAL_H
#define GATEWAY_UPSTREAM_INTERNAL_H

#include "protocol/auth/mac.h"
#include "protocol/client/exchange.h"
#include "protocol/client/state.h"
#include "protocol/link/link.h"
#include "supervisor/gateway/fleet.h"
#include "supervisor/gateway/upstream.h"

struct lane {
    struct caller *of;
    struct link_lane *link;      /* NULL = this place is free */
    struct exchange x;           /* unused with the token */
    struct call *call;           /* that is out */
    bool denies;                 /* the daemon is told that the key is wrong */
    bool fell;                   /* its connection ended; the loss of its call comes */
    uint8_t instance[16];        /* of the daemon that was dialed */
    uint32_t shard;              /* that was dialed, */
    char url[STATE_URL_MAX + 1]; /* and where */
    msec idle_since;
};

struct call {
    struct call *next;
    struct caller *of;
    struct buf body;
    enum msg_type answer;
    bool reads, waits;
    uint32_t tries, shard;
    msec not_before;       /* after an answer that it has moved */
    struct gather *gather; /* it is for all shards, and never sent itself */
    msec deadline;
    call_done *done; /* NULL: abandoned */
    void *self;
};

struct caller {
    struct caller *next;
    struct upstream *up;
    uint8_t mark[AUTH_KEY_BYTES];    /* of what it proves itself with */
    char token[STATE_TOKEN_LEN + 1]; /* "" = a credential */
    char id[LIMIT_ID_BYTES + 1];
    uint8_t key[AUTH_KEY_BYTES];
    bool proved, refused;
    uint32_t refs, calls_n, waits_n;
    struct lane lanes[CALLER_LANES_MAX + 2 * SHARDS_MAX];
    struct call *first, *last; /* that wait for a lane */
    msec used;
    void *slots[SHARDS_MAX];
};

struct upstream {
    const char *dir;
    struct link *link;
    struct caller *callers;
    uint8_t mark_key[AUTH_KEY_BYTES];
    msec failures[FAILURES_MAX]; /* a ring: times of the last ones */
    uint32_t failures_at;
    struct state_endpoints at;
    struct fleet fleet;
    uint32_t turn;                                    /* new plans without a key go round */
    bool is_there;                                    /* at holds a daemon's addresses */
    msec looked;                                      /* when they were read; 0 = never */
    void (*serve)(void *self, struct link_event *ev); /* requests of the daemon; NULL = none come */
    void *serve_self;
    bool work; /* something was queued since the last run */
};

/* Places of lanes that a caller uses. */
static inline uint32_t lanes_max(const struct upstream *u)
{
    return CALLER_LANES_MAX + (u->fleet.shards > 1 ? 2 * u->fleet.shards : 0);
}
/* Sends what waits of a caller, over its lanes; dials when one more is needed. */
void lanes_pump(struct caller *c, msec now);
void lanes_on_event(struct upstream *u, struct link_event *ev, msec now);
/* Ends the call that is out, whose time is over: its lane cannot be used again. */
void lanes_give_up(struct lane *lane);
void lanes_retire(struct caller *c);
/* Idle ones, and those of a daemon that is gone. */
void lanes_tidy(struct caller *c, msec now);

/* The end of a call; it is freed. */
void call_finish(struct call *call, const struct reply *reply);
void call_fail(struct call *call, enum bt_code code, const char *message);
/* Out of its caller's queue, where *at is it. */
void call_unlink(struct caller *c, struct call **at);
/* gather.c: asks all shards; `done` of the spec gets one answer. */
BT_MUST_CHECK enum bt_code gather_call(struct caller *c, const struct call_spec *spec, msec now,
                                       struct call **ret, struct bt_error *err);
void gather_abandon(struct gather *g);
/* Back to the head of its caller's queue. */
void call_requeue(struct call *call);
/* The caller does not prove itself: nothing is sent for it any more. */
void caller_refuse(struct caller *c, msec now, const char *message);
#endif
