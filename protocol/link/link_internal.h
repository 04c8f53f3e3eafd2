/*
 * Shared by the files of this room. No other room includes it; its tests do.
 *
 * Threads: the owner thread calls link.h. Completions (nng's task threads) and pipe callbacks (task
 * and reaper threads) use only atomics, their own aio, and inbox_push(). The helper thread closes
 * sockets and guards ipc listeners. Only the owner thread frees a lane, server, pub or sub, after
 * the helper has closed its socket.
 */
#ifndef LINK_LINK_INTERNAL_H
#define LINK_LINK_INTERNAL_H

#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>

#include "protocol/link/link.h"

enum {
    LINK_URL_MAX = 256,
    LINK_CONTEXTS_MAX = 4096,
    LINK_SUB_RING = 64, /* frames that a sub has taken from nng and not yet given to the owner */
    LINK_DEAD_LISTENERS_MAX = 16, /* dead ipc listeners, kept because their pipes still work */
    LINK_HEADER_ROOM = 64,        /* SP headers count against RECVMAXSZ: 4 bytes a hop */
    LINK_QUEUE_MAX = 8192,        /* the largest SENDBUF and RECVBUF that nng accepts */
    LINK_REDIAL_MIN_MS = 50,      /* a restarted peer is connected again within this */
    LINK_REDIAL_MAX_MS = 2000,
    LINK_REDIAL_CHECK_MS = 5000,
    LINK_KEEP_OUT_MS = 30000, /* a host that did not prove itself on a lane */
    LINK_REDIAL_STALE_MS =
        15000,                   /* without a pipe for this long, the dialer is replaced (N4, N7) */
    LINK_GUARD_MS = 2000,        /* between two probes of an ipc listener */
    LINK_PROBE_MS = 1000,        /* timeout of a probe */
    LINK_LINGER_MS = 1000,       /* an idle retired lane waits this long for its peer to hang up */
    LINK_DIAL_SETTLE_MS = 100,   /* a handshake on loopback takes less than 1 */
    LINK_RETIRED_CHECK_MS = 20,  /* the helper checks retired endpoints this often */
    LINK_TRUST_MAX = 256,        /* users beside root and our own */
    LINK_NARROW_MAX = 64 * 1024, /* a frame's bytes while strangers flood a listener */
    LINK_FREE_WAIT_MS = 2000,    /* then link_free gives up and leaks */
    /* A peer on another host that is silent for 25 s has gone. */
    LINK_ALIVE_LOOK_MS = 2000,
    LINK_ALIVE_IDLE_S = 10,
    LINK_ALIVE_INTERVAL_S = 5,
    LINK_ALIVE_COUNT = 3
};

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* ---- inbox: many producers, one consumer. A node is queued at most once: no allocation ---- */

enum inbox_kind { INBOX_REQUEST, INBOX_LANE, INBOX_LANE_CLOSED, INBOX_SERVER_CLOSED, INBOX_SUB };

struct inbox_node {
    struct inbox_node *next;
    atomic_bool queued;
    enum inbox_kind kind;
};

struct inbox {
    _Atomic(struct inbox_node *) head; /* newest first */
    struct inbox_node *taken;          /* oldest first; only the owner uses it */
    int fd;                            /* eventfd, written only when head was empty */
};

/* Any thread. The owner may take the node and free its memory before this returns. */
void inbox_push(struct inbox *in, struct inbox_node *n);
/* Owner thread. Returns NULL when empty. The fd is readable exactly while nodes wait. */
struct inbox_node *inbox_take(struct inbox *in);

/* ---- helper: the one thread that may block ---- */

struct helper_task {
    struct helper_task *next;
    msec due;
    /* Returns when to run again; MSEC_NEVER = finished, and the task may be freed. */
    msec (*run)(struct helper_task *task);
};

BT_MUST_CHECK enum bt_code helper_start(struct bt_error *err);
void helper_submit(struct helper_task *task, msec due);
/* Helper thread only. */
void helper_cancel(struct helper_task *task);
/* Counts sockets being closed. The helper's lock guards *counter. */
void helper_counter_add(uint32_t *counter, int by);
/* True when *counter is 0 within timeout_ms. */
bool helper_wait_zero(const uint32_t *counter, msec timeout_ms);

/* ---- tasks: the threads that run nng's completions ---- */

/* n of them rest from here on. When none is left after look_ms, all go on. Owner thread, once the
 * helper has started. */
void tasks_rest(uint32_t n, msec look_ms);

/* ---- the one pipe of a lane or sub as one atomic word, so no second pipe is admitted and no
 * transition is lost (N11, N13) ---- */

struct pipe_track {
    _Atomic uint64_t
        word; /* 0..31 pipe id, 32 up, 33 shut, 34 paused, 35..63 generation (odd = up) */
};

/* Returns false when the pipe must be rejected: there is another one, or the lane is retired. */
bool pipe_track_admit(struct pipe_track *t, uint32_t pipe);
/* Both return true when the owner has to be woken. */
bool pipe_track_up(struct pipe_track *t, uint32_t pipe);
bool pipe_track_removed(struct pipe_track *t, uint32_t pipe);
/* Rejects every pipe from now on. */
void pipe_track_shut(struct pipe_track *t);
/* Rejects pipes while a dialer is replaced. Returns false, without effect, when there is a pipe. */
bool pipe_track_pause(struct pipe_track *t);
void pipe_track_resume(struct pipe_track *t);
bool pipe_track_empty(const struct pipe_track *t);
/* 0 = there is none. */
uint32_t pipe_track_pipe(const struct pipe_track *t);
/* True when the owner has seen every transition and the pipe is up. */
bool pipe_track_is_up(const struct pipe_track *t, uint32_t seen_generation);
/* Returns the next transition after *seen_generation: 1 up, -1 down, 0 none. Skips whole pairs of
 * up and down when there are many. */
int pipe_track_next(const struct pipe_track *t, uint32_t *seen_generation);

/* ---- whose process is at the other end of a connection of this machine ---- */

struct peer_address {
    uint8_t ip[16];
    uint16_t port; /* network byte order */
    bool v6;
};

/* Makes a v4-mapped address a v4 one. True: it is a loopback address. */
bool peer_address_plain(struct peer_address *a);
/* Once, before the process gives up rights: the kernel is asked over a socket that stays open. */
void peer_uid_open(void);
/* The user of the process that has the connected socket peer -> own. False: there is none. Never
 * waits. Any thread. */
bool peer_uid_find(struct peer_address peer, struct peer_address own, uint32_t *ret_uid);
/* The same by /proc alone, where the kernel is not asked; its time grows with the sockets. */
bool peer_uid_by_tables(struct peer_address peer, struct peer_address own, uint32_t *ret_uid);
/* In the text of /proc/net/tcp (or tcp6), read from fd. The addresses are plain. */
bool peer_uid_in_table(int fd, bool table_v6, const struct peer_address *peer,
                       const struct peer_address *own, uint32_t *ret_uid);

/* ---- endpoints ---- */

struct endpoint {
    nng_socket socket;
    char url[LINK_URL_MAX]; /* a listener's has the bound port */
    size_t recv_max;
    char *ca_file; /* copies, because a dialer may be replaced later */
    char *cert_file;
    bool publishes; /* its peers are judged as followers (link_trust_followers) */
};

enum bt_code endpoint_error(struct bt_error *err, int rv, const char *what, const char *url);
/* Checks url and limits, and copies both. */
BT_MUST_CHECK enum bt_code endpoint_init(struct endpoint *e, const char *url,
                                         const struct link_limits *lim, bool listen,
                                         struct bt_error *err);
/* Frees the copies. Does not close the socket. */
void endpoint_done(struct endpoint *e);
BT_MUST_CHECK enum bt_code endpoint_dial(struct endpoint *e, nng_dialer *ret_dialer,
                                         struct bt_error *err);
BT_MUST_CHECK enum bt_code endpoint_listen(struct endpoint *e, nng_listener *ret_listener,
                                           struct bt_error *err);
bool endpoint_is_ipc(const struct endpoint *e);
bool endpoint_is_tls(const struct endpoint *e);

/* ---- half-open connections between hosts ---- */

/* From now on, connections to other hosts end when their peer is silent for 25 s. Once is enough.
 */
void alive_start(void);

/* ---- a dialer without a pipe is replaced after a while: nng gives up on ipc (N7) and waits too
 * long after a clock step (N4) ---- */

struct redial {
    struct helper_task task;
    struct endpoint *endpoint;
    struct pipe_track *track;
    nng_dialer dialer;
    msec down_since;
};

BT_MUST_CHECK enum bt_code redial_start(struct redial *r, struct endpoint *e, struct pipe_track *t,
                                        struct bt_error *err);
/* Helper thread. Accepts a redial that never started. */
void redial_stop(struct redial *r);
/* Helper thread. True when the dialer started so recently that a connection may be half made. nng
 * leaks the dialer and pipe of a socket that is closed then (N17). */
bool redial_is_settling(const struct redial *r, msec now);

/* ---- what the peers of a listener hold ---- */

struct peer;
struct peer_seen;
struct peer_watch {
    struct helper_task task;
    const struct link *link;
    const struct endpoint *endpoint;
    struct link_peer_limits limits;
    pthread_mutex_t mutex; /* of the table; the owner thread and the helper thread take it */
    struct peer *peers;
    uint32_t *next; /* of the same port */
    uint32_t n, cap;
    struct peer_seen *seen; /* of this round; only the helper thread uses it */
    uint32_t seen_n, seen_cap;
    uint32_t *by_port; /* the first of each list: index + 1; 0 = none */
    uint32_t round;
    bool news;             /* the next round looks at all descriptors */
    msec all_at;           /* when one does in any case */
    uint32_t shut, logged; /* connections, so far */
    const char *why;       /* the last one */
    msec log_at;           /* when the log may have its next line */
    nng_listener listener;
    size_t recv_max;
    msec flooded_at; /* when much was unfinished, last */
    bool narrow;     /* only short frames are let in */
    bool tls;        /* more bytes come than the requests have: only the number is judged */
    uint32_t port;   /* of the listener */
    struct sockaddr_storage listens;
    bool on;
    bool (*is_idle)(void *of);
    void *of;
};

/* The peer of a connection. */
struct peer_key {
    uint8_t address[16];
    uint32_t port; /* 0 = none */
};

struct peer_key peer_key_of_address(const struct sockaddr_storage *at);
struct peer_key peer_key_of_fd(int fd);
/* port 0: the pipe has ended. */
struct peer_key peer_key_of_pipe(nng_pipe pipe);
bool peer_key_eq(const struct peer_key *a, const struct peer_key *b);
bool peer_key_same_host(const struct peer_key *a, const struct peer_key *b);
/* ss_family AF_UNSPEC: it has none. */
struct sockaddr_storage peer_address_of_listener(nng_listener listener);
/* Whether the descriptor is a connection that this listener has accepted: another one may listen on
 * the same port of another address. */
bool peer_key_is_connection_of(int fd, const struct sockaddr_storage *listener);
/* Shuts the connection of this peer with a port of ours down, which nng takes for its peer's end:
 * safe at any moment (N1). Looks through the descriptors of the process: helper thread. */
void peer_key_shut(const struct peer_key *peer, uint32_t own_port);

/* Does nothing without limits, and on ipc. With TLS it bounds only the number of connections.
 * is_idle: requests do not wait for a context; NULL = there are none. */
BT_MUST_CHECK enum bt_code peer_watch_start(struct peer_watch *w, const struct link *link,
                                            const struct endpoint *e, nng_listener listener,
                                            const struct link_peer_limits *limits,
                                            bool (*is_idle)(void *of), void *of,
                                            struct bt_error *err);
/* A whole request was taken. Owner thread. */
void peer_watch_took(struct peer_watch *w, nng_msg *msg);
/* Shuts the connection down, now or in the next round. Owner thread. */
void peer_watch_end(struct peer_watch *w, nng_pipe pipe);
/* Helper thread; accepts one that was not started. */
void peer_watch_stop(struct peer_watch *w);
/* Owner thread, after it. */
void peer_watch_free(struct peer_watch *w);

/* ---- guard of an ipc listener (N6) ---- */

struct ipc_guard {
    struct helper_task task;
    struct endpoint *endpoint; /* NULL: not an ipc listener, nothing to guard */
    nng_listener listener;
    nng_listener dead_listeners[LINK_DEAD_LISTENERS_MAX];
    uint32_t n_dead_listeners;
    atomic_uint admitted; /* pipes so far */
    uint16_t peer;        /* SP protocol number that the probe sends */
    int lock_fd;
};

/* Call before listening. Makes the directory private and takes the lock; no-op unless the endpoint
 * is ipc. */
BT_MUST_CHECK enum bt_code ipc_guard_lock(struct ipc_guard *g, struct endpoint *e,
                                          struct bt_error *err);
/* Call after listening. Starts the probes. */
void ipc_guard_start(struct ipc_guard *g, nng_listener listener, uint16_t peer);
/* Helper thread, before the socket is closed. */
void ipc_guard_stop(struct ipc_guard *g);
/* Owner thread, when opening failed before ipc_guard_start. */
void ipc_guard_abandon(struct ipc_guard *g);

/* ---- guard of a tls+tcp listener (N33) ---- */

enum tls_guard_phase { TLS_GUARD_LISTENS, TLS_GUARD_ASKED, TLS_GUARD_ENDS, TLS_GUARD_CLOSED };

struct tls_guard {
    struct helper_task task;
    struct endpoint *endpoint; /* NULL: nothing to guard */
    nng_listener listener;
    struct sockaddr_storage listens;
    uint64_t events; /* that nng had counted at the last look */
    enum tls_guard_phase phase;
    int asked;       /* in TLS_GUARD_ASKED: the connection of the line */
    uint32_t asks;   /* lines of this suspicion */
    uint32_t failed; /* listens again, so far */
};

/* Call after listening; does nothing unless the endpoint is tls+tcp. */
void tls_guard_start(struct tls_guard *g, struct endpoint *e, nng_listener listener);
/* Helper thread, before the socket is closed; accepts one that was not started. */
void tls_guard_stop(struct tls_guard *g);

/* ---- objects ---- */

struct link {
    struct inbox inbox;
    struct inbox_node *current; /* taken from the inbox; has more events */
    uint32_t cap;
    uint32_t used;
    uint32_t closing;      /* sockets being closed; the helper's lock guards it */
    atomic_bool no_linger; /* link_free: retired lanes close at once */
    _Atomic uint32_t trusted[LINK_TRUST_MAX];
    atomic_uint trusted_n;
    atomic_uint followers_n; /* of those; they may subscribe, too */
    struct link_server *servers;
    struct link_lane *lanes;
    struct link_pub *pubs;
    struct link_sub *subs;
};

/* ---- which peers are ours (link_trust) ---- */

#define TRUST_FINE INT64_C(-1)
#define TRUST_UNKNOWN INT64_C(-2) /* no process has the other end (any more) */

bool trust_uid(const struct link *l, const struct endpoint *e, uint32_t uid);
/* Judges a new pipe, in ADD_PRE: TRUST_FINE, else its user or TRUST_UNKNOWN, which is logged. */
int64_t trust_stranger(const struct link *l, const struct endpoint *e, nng_pipe pipe);
/* Counts a refused connection for the log. */
void trust_note(int64_t uid, const char *url);

/* Reserves inbox room for n more nodes. */
BT_MUST_CHECK enum bt_code link_reserve(struct link *l, uint32_t n, struct bt_error *err);

/* Each handles a node that was taken; true = *ret is an event. They are called again until they
 * return false. */
bool server_event(struct inbox_node *n, struct link_event *ret);
bool lane_event(struct inbox_node *n, struct link_event *ret);
bool sub_event(struct inbox_node *n, struct link_event *ret);
/* The helper has closed the socket: unlink and free. */
void lane_closed(struct inbox_node *n);
void server_closed(struct inbox_node *n);

/* link_free: pass every socket to the helper; later free the memory. */
void server_close_all(struct link *l);
void lane_close_all(struct link *l);
void pub_close_all(struct link *l);
void sub_close_all(struct link *l);
void server_free_all(struct link *l);
void lane_free_all(struct link *l);
void pub_free_all(struct link *l);
void sub_free_all(struct link *l);
#endif
