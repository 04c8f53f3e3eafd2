/*
 * What the files of this room share. Nothing outside protocol/link includes it.
 *
 * Threads: the owner thread calls link.h. Completions (nng's task threads) and pipe notices (task
 * and reaper threads) touch only atomics, their own aio, and inbox_push(). The helper thread closes
 * sockets and guards ipc listeners. Memory of a lane, server, pub or sub is freed by the owner
 * thread alone, after the helper has closed its socket.
 */
#ifndef LINK_LINK_INTERNAL_H
#define LINK_LINK_INTERNAL_H

#include <nng/nng.h>
#include <stdatomic.h>
#include <stddef.h>

#include "protocol/link/link.h"

enum {
    LINK_URL_MAX = 256,
    LINK_CONTEXTS_MAX = 4096,
    LINK_SUB_RING = 64, /* frames a sub may have taken from nng and not yet handed to the owner */
    LINK_ZOMBIES_MAX = 16,   /* dead ipc listeners that are kept because their pipes still work */
    LINK_HEADER_ROOM = 64,   /* SP headers count against RECVMAXSZ: 4 bytes a hop */
    LINK_QUEUE_MAX = 8192,   /* the largest SENDBUF and RECVBUF that nng takes */
    LINK_REDIAL_MIN_MS = 50, /* a restarted peer is back within this */
    LINK_REDIAL_MAX_MS = 2000,
    LINK_REDIAL_CHECK_MS = 5000,
    LINK_REDIAL_STALE_MS = 15000, /* without a pipe for this long: a fresh dialer */
    LINK_GUARD_MS = 2000,         /* between two probes of an ipc listener */
    LINK_PROBE_MS = 1000,         /* how long a probe may take */
    LINK_LINGER_MS = 1000, /* an idle retired lane waits this long for its peer to hang up first */
    LINK_DIAL_SETTLE_MS = 100,  /* a handshake on loopback takes less than 1 */
    LINK_RETIRED_CHECK_MS = 20, /* how often the helper looks whether it has */
    LINK_FREE_WAIT_MS = 2000    /* link_free gives up after this and leaks */
};

#define LINK_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* ---- inbox: many producers, one consumer; a node is in it at most once: no allocation ---- */

enum inbox_kind { INBOX_REQUEST, INBOX_LANE, INBOX_LANE_CLOSED, INBOX_SERVER_CLOSED, INBOX_SUB };

struct inbox_node {
    struct inbox_node *next;
    atomic_bool queued;
    enum inbox_kind kind;
};

struct inbox {
    _Atomic(struct inbox_node *) head; /* newest first */
    struct inbox_node *taken;          /* oldest first, the owner's */
    int fd;                            /* eventfd, written only when head was empty */
};

/* Any thread. The node may be consumed (and its memory freed) before this returns. */
void inbox_push(struct inbox *in, struct inbox_node *n);
/* Owner. NULL when empty; the fd is readable again exactly while nodes wait. */
struct inbox_node *inbox_take(struct inbox *in);

/* ---- helper: the one thread that may block ---- */

struct helper_job {
    struct helper_job *next;
    msec due;
    /* Returns when to run again; MSEC_NEVER = finished, the job's memory may be gone. */
    msec (*run)(struct helper_job *job);
};

BT_MUST_CHECK enum bt_code helper_start(struct bt_error *err);
void helper_submit(struct helper_job *job, msec due);
/* Helper thread only. */
void helper_drop(struct helper_job *job);
/* Counts closings that are under way; *counter is guarded by the helper's lock. */
void helper_count(uint32_t *counter, int by);
/* True when *counter is 0 within timeout_ms. */
bool helper_wait_zero(const uint32_t *counter, msec timeout_ms);

/* ---- the one pipe of a lane or sub as one atomic word: no second pipe, no transition lost ---- */

struct pipe_track {
    _Atomic uint64_t
        word; /* 0..31 pipe id, 32 up, 33 shut, 34 paused, 35..63 generation (odd = up) */
};

/* False: this pipe must be rejected (another one is there, or the lane is retired). */
bool pipe_track_offer(struct pipe_track *t, uint32_t pipe);
/* True when the owner has to look. */
bool pipe_track_up(struct pipe_track *t, uint32_t pipe);
bool pipe_track_gone(struct pipe_track *t, uint32_t pipe);
/* From now on every pipe is rejected. */
void pipe_track_shut(struct pipe_track *t);
/* Rejects pipes for a moment, so that a dialer can be replaced; false (and nothing done) when there
 * is a pipe. */
bool pipe_track_pause(struct pipe_track *t);
void pipe_track_resume(struct pipe_track *t);
bool pipe_track_empty(const struct pipe_track *t);
/* The owner has seen every transition and the pipe is up. */
bool pipe_track_is_up(const struct pipe_track *t, uint32_t seen);
/* Next transition after *seen: 1 up, -1 down, 0 none. Long flapping is shortened by whole pairs. */
int pipe_track_next(const struct pipe_track *t, uint32_t *seen);

/* ---- endpoints ---- */

struct endpoint {
    nng_socket socket;
    char url[LINK_URL_MAX]; /* listening: with the port that was bound */
    size_t recv_max;
    char *ca_file; /* copies: a dialer may be made again later */
    char *cert_file;
};

enum bt_code endpoint_error(struct bt_error *err, int rv, const char *what, const char *url);
/* Checks url and limits and keeps copies of both. */
BT_MUST_CHECK enum bt_code endpoint_init(struct endpoint *e, const char *url,
                                         const struct link_limits *lim, bool listen,
                                         struct bt_error *err);
/* Frees the copies; the socket is closed elsewhere. */
void endpoint_done(struct endpoint *e);
BT_MUST_CHECK enum bt_code endpoint_dial(struct endpoint *e, nng_dialer *ret_dialer,
                                         struct bt_error *err);
BT_MUST_CHECK enum bt_code endpoint_listen(struct endpoint *e, nng_listener *ret_listener,
                                           struct bt_error *err);
bool endpoint_is_ipc(const struct endpoint *e);

/* ---- a dialer that has no pipe for long is replaced: nng 1.5.2 gives up on ipc (N7) and sleeps
 * on after a clock step, because its timers use CLOCK_REALTIME (N4) ---- */

struct redial {
    struct helper_job job;
    struct endpoint *endpoint;
    struct pipe_track *track;
    nng_dialer dialer;
    msec down_since;
};

BT_MUST_CHECK enum bt_code redial_start(struct redial *r, struct endpoint *e, struct pipe_track *t,
                                        struct bt_error *err);
/* Helper thread. Accepts one that was never started. */
void redial_stop(struct redial *r);
/* Whether it began to dial so lately that a connection may be half made. 1.5.2 leaks the dialer and
 * the pipe of a socket that is closed then. On the helper's thread. */
bool redial_is_young(const struct redial *r, msec now);

/* ---- guard of an ipc listener (N6) ---- */

struct ipc_guard {
    struct helper_job job;
    struct endpoint *endpoint; /* NULL: not an ipc listener, nothing to guard */
    nng_listener listener;
    nng_listener zombies[LINK_ZOMBIES_MAX];
    uint32_t zombie_count;
    atomic_uint admitted; /* pipes so far */
    uint16_t peer;        /* SP protocol number that the probe pretends to be */
    int lock_fd;
};

/* Before listening: directory private, lock held. A no-op unless the endpoint is ipc. */
BT_MUST_CHECK enum bt_code ipc_guard_lock(struct ipc_guard *g, struct endpoint *e,
                                          struct bt_error *err);
/* After listening: the probe begins. */
void ipc_guard_start(struct ipc_guard *g, nng_listener listener, uint16_t peer);
/* Helper thread, when the socket is closed. */
void ipc_guard_stop(struct ipc_guard *g);
/* Owner, when opening failed before ipc_guard_start. */
void ipc_guard_abandon(struct ipc_guard *g);

/* ---- objects ---- */

struct link {
    struct inbox inbox;
    struct inbox_node *current; /* taken, has more events to give */
    uint32_t cap;
    uint32_t used;
    uint32_t closing;  /* guarded by the helper's lock */
    atomic_bool hurry; /* link_free: retired lanes stop lingering */
    struct link_server *servers;
    struct link_lane *lanes;
    struct link_pub *pubs;
    struct link_sub *subs;
};

/* Books inbox room for n more nodes. */
BT_MUST_CHECK enum bt_code link_book(struct link *l, uint32_t n, struct bt_error *err);

/* Each looks at a node that was taken; true = *ret is an event. They are asked again until they say
 * false. */
bool server_event(struct inbox_node *n, struct link_event *ret);
bool lane_event(struct inbox_node *n, struct link_event *ret);
bool sub_event(struct inbox_node *n, struct link_event *ret);
/* The helper has closed it: forget and free. */
void lane_closed(struct inbox_node *n);
void server_closed(struct inbox_node *n);

/* link_free: hand every socket to the helper; afterwards free the memory. */
void server_close_all(struct link *l);
void lane_close_all(struct link *l);
void pub_close_all(struct link *l);
void sub_close_all(struct link *l);
void server_free_all(struct link *l);
void lane_free_all(struct link *l);
void pub_free_all(struct link *l);
void sub_free_all(struct link *l);
#endif
