/*
 * Messaging over nng: requests, answers, and published frames. This is the only room that includes
 * <nng/...>, and it handles the defects of nng 1.5.2 (N1, N2, ... in protocol/link/NNG.md).
 *
 * A `struct link` is one inbox with a pollable fd. nng's completions run on nng's threads; they
 * only push to the capped inbox and wake the fd. The owner thread calls everything else and takes
 * events with link_next(). Only link_wait() blocks; the *_open, *_dial and *_new calls do local
 * work.
 *
 * Before the first call, main blocks the signals of its signalfd (pthread_sigmask). nng's threads
 * inherit the mask, and a signal that is blocked later may be delivered to one of them (N18). After
 * the first call, fork only to exec.
 *
 *   server  REP with n contexts. Requests arrive as LINK_REQUEST; answer each exactly once with
 *           link_answer(). It listens, or dials one peer: an agent behind NAT dials the lanes that
 *           the supervisor listens on.
 *   lane    REQ with exactly one pipe and at most one outstanding request. link_lane_send(), then
 *           one LINK_ANSWER or LINK_LOST. It dials, with backoff and retries, or listens.
 *   pub     PUB with the largest send buffer. It never blocks and drops frames of slow subscribers.
 *   sub     SUB. Frames arrive as LINK_FRAME.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"

struct link;
struct link_server;
struct link_lane;
struct link_pub;
struct link_sub;
struct link_msg; /* received bytes; one owner */

enum link_event_type {
    LINK_REQUEST, /* server, request, msg */
    LINK_ANSWER,  /* lane, msg */
    LINK_LOST,    /* lane: the request's outcome is unknown, or it was never sent (see sent) */
    LINK_UP,      /* lane: its pipe exists */
    LINK_DOWN,    /* lane: its pipe has ended; a dialing lane keeps trying */
    LINK_FRAME,   /* sub, msg: topic, zero byte, body */
    LINK_SUB_UP,  /* sub: connected */
    LINK_SUB_DOWN /* sub: the connection is lost; it keeps trying */
};

struct link_event {
    enum link_event_type type;
    struct link_server *server;
    uint64_t request; /* handle for link_answer */
    struct link_lane *lane;
    struct link_sub *sub;
    struct link_msg *msg; /* the receiver of the event owns it: link_msg_free */
    void *owner;          /* as given to *_open, *_dial or *_listen */
    bool sent;            /* LINK_LOST: false = the request certainly never left this process */
};

/* inbox_cap: events that may wait. A full inbox takes no more requests from servers (back-pressure)
 * and never drops answers. Size it for lanes + subs + contexts: opening more is BT_LIMIT. The
 * caller frees *ret with link_free. */
BT_MUST_CHECK enum bt_code link_new(uint32_t inbox_cap, struct link **ret, struct bt_error *err);
/* Readable when link_next() has an event; level-triggered until drained. */
int link_fd(const struct link *l);
bool link_next(struct link *l, struct link_event *ret);
/* Waits up to timeout_ms (CLOCK_MONOTONIC) for an event, for programs without an event loop. After
 * true, call link_next(), which may still find none (when a retired lane was closed). */
bool link_wait(struct link *l, msec timeout_ms);
/*
 * Closes a link whose sockets are idle (tests, clients between calls); accepts NULL. Daemons end
 * with _exit instead, because closing a socket under traffic wedges nng (N1). Gives up after 2 s
 * and leaks the link.
 */
void link_free(struct link *l);

/*
 * Over tcp on this machine a link talks only to processes of its own user, of root and of these
 * users (at most 64; the list replaces the one before). Judged for each connection, in both
 * directions, before a message is read or sent (trust.c); one whose process is not found is
 * refused. Connections that are there stay.
 */
void link_trust(struct link *l, const uint32_t *uids, uint32_t n);
/* The user of the process at the other end of a connection of this machine; addresses are numbers.
 * False: it is no such connection, or nobody has it. Never waits. Any thread. */
bool link_peer_user(const char *peer, uint16_t peer_port, const char *own, uint16_t own_port,
                    uint32_t *ret_uid);
/* Of the users of link_trust only the first n may subscribe to what the link publishes. Without it
 * all may. */
void link_trust_followers(struct link *l, uint32_t n);

struct str link_msg_bytes(const struct link_msg *m);
enum { LINK_PEER_MAX = 63 };
/* The address of the peer that sent the message, "127.0.0.1:4711" or "[::1]:4711"; "" when its
 * transport has none, or it has hung up. */
void link_msg_peer(const struct link_msg *m, char ret[LINK_PEER_MAX + 1]);
/* The connection that brought the message: a number that no other one of this process has, unless
 * billions were made since. Never 0. */
uint32_t link_msg_pipe(const struct link_msg *m);
/* Whether that connection is still there. One whose peer has just hung up may be for a moment. */
bool link_pipe_is_open(uint32_t pipe);
void link_msg_free(struct link_msg *m);

/* What all peers of a tcp listener may hold: strangers reach it before any token was read. Over the
 * number, connections that never asked anything are shut down first, then the longest silent; over
 * the bytes, those with most. peers 0: no bounds. */
struct link_peer_limits {
    uint32_t peers;
    uint32_t of_host;        /* of one address; 0: as many as there are */
    size_t unfinished_bytes; /* of frames that have not ended */
    msec unfinished_ms;      /* for a frame to end */
};

struct link_limits {
    size_t recv_max; /* bytes of one body, received or (lanes) sent; never 0; same on both sides */
    const char *ca_file;   /* tls+tcp: authority that must have signed the peer's certificate;
                              required to dial */
    const char *cert_file; /* one PEM file with certificate and key; required to listen */
    struct link_peer_limits peers; /* to listen */
};

/* Listens on tcp://HOST:PORT (PORT 0 = any), tls+tcp:// or ipc:// (guarded, see ipc_guard.c). n
 * contexts = requests that may be open at a time. owner is returned in each event. */
BT_MUST_CHECK enum bt_code link_server_open(struct link *l, const char *url, uint32_t n,
                                            const struct link_limits *lim, void *owner,
                                            struct link_server **ret, struct bt_error *err);
/* The same with the roles of the connection reversed: dials one listening lane and keeps trying. */
BT_MUST_CHECK enum bt_code link_server_dial(struct link *l, const char *url, uint32_t n,
                                            const struct link_limits *lim, void *owner,
                                            struct link_server **ret, struct bt_error *err);
/* Retires a dialing server. Its handles become invalid and it emits no more events. It is closed
 * when its peer has hung up (its lane was retired), never under traffic (N1). Listening servers
 * live as long as their link. */
void link_server_retire(struct link_server *s);
/* Returns the bound address ("tcp://127.0.0.1:40123"); valid until the server ends. */
const char *link_server_url(const struct link_server *s);
/* Shuts down the connection of this server that has the number (link_msg_pipe), within a second, as
 * if its peer had hung up. Does nothing when it is another's, or was opened without peer limits. */
void link_server_hang_up(struct link_server *s, uint32_t pipe);
/* Answers a request; the bytes are copied. Returns false for a handle that is unknown or already
 * answered. */
bool link_answer(struct link_server *s, uint64_t request, const void *bytes, size_t len);

BT_MUST_CHECK enum bt_code link_lane_dial(struct link *l, const char *url,
                                          const struct link_limits *lim, void *owner,
                                          struct link_lane **ret, struct bt_error *err);
BT_MUST_CHECK enum bt_code link_lane_listen(struct link *l, const char *url,
                                            const struct link_limits *lim, void *owner,
                                            struct link_lane **ret, struct bt_error *err);
const char *link_lane_url(const struct link_lane *lane);
/*
 * Sends a request; the bytes are copied. Returns, without sending, BT_BUSY while one is
 * outstanding, BT_UNAVAILABLE without a pipe or while LINK_UP of a new pipe waits in the inbox, and
 * BT_LIMIT over recv_max.
 *
 * LINK_LOST and LINK_DOWN of one connection come in either order (N13). A request that no pipe had
 * taken at LINK_DOWN is withdrawn (LINK_LOST, sent = false) and never reaches the next peer (N12).
 */
BT_MUST_CHECK enum bt_code link_lane_send(struct link_lane *lane, const void *bytes, size_t len,
                                          struct bt_error *err);
bool link_lane_is_up(const struct link_lane *lane);
/* True: the last peer of the lane was refused, because it is a process of that user
 * (link_trust). */
bool link_lane_stranger(const struct link_lane *lane, uint32_t *ret_uid);
/* Shuts down the connection of a lane that listens, because its peer does not prove itself: another
 * one may connect. Its host is kept out of this lane for LINK_KEEP_OUT_MS, unless it is that of
 * `from` (as link_msg_peer writes it; "" = none). */
void link_lane_hang_up(struct link_lane *lane, const char *from);
/* Retires the lane; it emits no more events. The helper thread closes it once it is idle and its
 * pipe has ended. A lane with an outstanding request is kept until then, because it is never closed
 * under traffic (N1). */
void link_lane_retire(struct link_lane *lane);

BT_MUST_CHECK enum bt_code link_pub_open(struct link *l, const char *url,
                                         const struct link_limits *lim, struct link_pub **ret,
                                         struct bt_error *err);
const char *link_pub_url(const struct link_pub *p);
/* Publishes topic, a zero byte and body, which are copied. Never blocks and never fails (N8). */
void link_publish(struct link_pub *p, struct str topic, const void *body, size_t len);

/* Subscribes to topics with these prefixes; n = 0 subscribes to all. */
BT_MUST_CHECK enum bt_code link_sub_dial(struct link *l, const char *url,
                                         const struct str *prefixes, uint32_t n,
                                         const struct link_limits *lim, void *owner,
                                         struct link_sub **ret, struct bt_error *err);
/* Splits a frame into topic and body; false when it has no zero byte. */
bool link_frame_split(struct str frame, struct str *ret_topic, struct str *ret_body);

/*
 * Starts the canary once per process: the helper thread opens and closes an inproc pair every
 * period_ms. When nng is wedged (N1), the pair never closes. link_canary_age() returns the
 * milliseconds since the last successful round, which then grow past the period.
 */
BT_MUST_CHECK enum bt_code link_canary_start(msec period_ms, struct bt_error *err);
msec link_canary_age(void);

/*
 * Lets nng run completions on one thread of this process instead of two for each processor (N30),
 * until it ends. For a program whose every use of nng is this room's, and that computes no TLS in
 * completions for strangers: one completion that takes long delays all. Counts once per process,
 * not in a forked child. It cannot fail: at worst nng goes on with all its threads.
 */
void link_one_task_thread(void);

/* Rejects addresses that must never be dialed or listened on: other schemes (N16), bad ports,
 * wildcard and link-local hosts. With loopback_only it rejects every host but 127.0.0.0/8, ::1 and
 * localhost. All rejections have the same text, so that callers cannot scan ports with it. */
BT_MUST_CHECK enum bt_code link_url_check(struct str url, bool loopback_only, bool port_zero_ok,
                                          struct bt_error *err);
/* Whether it is tcp:// with a numeric loopback address: nothing to resolve, no path, this machine.
 */
bool link_url_is_near(struct str url);
const char *link_library_version(void);
#endif
