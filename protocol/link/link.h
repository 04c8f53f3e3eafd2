/*
 * The only room that includes <nng/...>. Every trap of nng 1.5.2 is handled here once
 * (protocol/link/README.md).
 *
 * A `struct link` is one inbox with a pollable fd. Completions of nng run on foreign threads; they
 * only push to the inbox (capped) and wake the fd. The owner thread calls everything else and takes
 * the events out with link_next(). No call blocks, but for link_wait() and the *_open/_new calls
 * (local work only).
 *
 * Before the first call, main blocks the signals that it wants for its signalfd (pthread_sigmask):
 * nng's threads inherit the mask, and a signal that is blocked only later may be delivered to one
 * of them. Do not fork after it without exec.
 *
 *   server   REP, n contexts: requests arrive as LINK_REQUEST; answer each exactly once with
 * link_answer(). Listens, or dials one peer (an agent behind NAT dials the lanes that the
 * supervisor listens on) lane     REQ with exactly one pipe and at most one outstanding request:
 * link_lane_send(), then one of LINK_ANSWER or LINK_LOST. Dials (retrying with backoff) or listens.
 *   pub      PUB with the send buffer at its maximum; never blocks, drops for slow subscribers
 *   sub      SUB: frames arrive as LINK_FRAME
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
struct link_msg; /* received bytes, one owner */

enum link_event_type {
    LINK_REQUEST, /* server, request, msg */
    LINK_ANSWER,  /* lane, msg */
    LINK_LOST,    /* lane: the outstanding request's outcome is unknown, or it was never sent (sent
                     tells) */
    LINK_UP,      /* lane: its pipe exists */
    LINK_DOWN,    /* lane: its pipe has gone; a dialing lane goes on trying */
    LINK_FRAME,   /* sub, msg: topic, zero byte, body */
    LINK_SUB_UP,  /* sub: connected */
    LINK_SUB_DOWN /* sub: connection lost; it goes on trying */
};

struct link_event {
    enum link_event_type type;
    struct link_server *server;
    uint64_t request; /* handle for link_answer */
    struct link_lane *lane;
    struct link_sub *sub;
    struct link_msg *msg; /* the taker owns it: link_msg_free */
    void *owner;          /* as given when the lane, server or sub was made */
    bool sent;            /* LINK_LOST: false = the request surely never left this process */
};

/* inbox_cap: events that may wait; a full inbox stops taking requests from servers (back-pressure),
 * never drops answers: size it for lanes + subs + contexts. Opening more than that is BT_LIMIT. */
BT_MUST_CHECK enum bt_code link_new(uint32_t inbox_cap, struct link **ret, struct bt_error *err);
/* Readable when link_next() has something. Level-triggered until drained. */
int link_fd(const struct link *l);
bool link_next(struct link *l, struct link_event *ret);
/* Waits for an event at most timeout_ms (CLOCK_MONOTONIC). For small programs without an event loop
 * of their own. True: look with link_next(), which may still find nothing (a retired lane was
 * closed). */
bool link_wait(struct link *l, msec timeout_ms);
/*
 * Ends a link whose sockets are idle (tests, clients between calls). Daemons end with _exit
 * instead: closing a socket under traffic wedges nng 1.5.2 (N1). Accepts NULL.
 */
void link_free(struct link *l);

struct str link_msg_bytes(const struct link_msg *m);
void link_msg_free(struct link_msg *m);

struct link_limits {
    size_t recv_max; /* bytes of one body, received or (lanes) sent; never 0; same on both sides of
                        a pipe */
    const char *ca_file; /* tls+tcp only: the peer must show a certificate of this authority; needed
                            to dial */
    const char *cert_file; /* certificate and key in one PEM file; needed to listen */
};

/* url: tcp://HOST:PORT (PORT 0 = any), tls+tcp://, ipc:// (guarded; see README). n contexts =
 * requests in hand. */
BT_MUST_CHECK enum bt_code link_server_open(struct link *l, const char *url, uint32_t n,
                                            const struct link_limits *lim, void *owner,
                                            struct link_server **ret, struct bt_error *err);
/* The same with the roles of the connection turned round: dials one listening lane and goes on
 * trying. */
BT_MUST_CHECK enum bt_code link_server_dial(struct link *l, const char *url, uint32_t n,
                                            const struct link_limits *lim, void *owner,
                                            struct link_server **ret, struct bt_error *err);
/* Gives a dialing server back; its handles are no longer valid and no event of it arrives. It is
 * closed when its peer has hung up (its lane was retired), never under traffic. Listening servers
 * live as long as their link. */
void link_server_retire(struct link_server *s);
/* Where it really listens ("tcp://127.0.0.1:40123"); valid until the server ends. */
const char *link_server_url(const struct link_server *s);
/* Answers a request (bytes are copied). A handle that is unknown or already answered is ignored
 * (returns false). */
bool link_answer(struct link_server *s, uint64_t request, const void *bytes, size_t len);

BT_MUST_CHECK enum bt_code link_lane_dial(struct link *l, const char *url,
                                          const struct link_limits *lim, void *owner,
                                          struct link_lane **ret, struct bt_error *err);
BT_MUST_CHECK enum bt_code link_lane_listen(struct link *l, const char *url,
                                            const struct link_limits *lim, void *owner,
                                            struct link_lane **ret, struct bt_error *err);
const char *link_lane_url(const struct link_lane *lane);
/*
 * BT_BUSY while one is outstanding, BT_UNAVAILABLE while there is no pipe or while LINK_UP of a new
 * pipe waits in the inbox, BT_LIMIT over recv_max: nothing was sent then. Bytes are copied.
 * LINK_LOST and LINK_DOWN of one death come in either order; a request that no pipe had taken when
 * LINK_DOWN is reported is withdrawn (LINK_LOST, sent = false), so it never reaches the next peer.
 */
BT_MUST_CHECK enum bt_code link_lane_send(struct link_lane *lane, const void *bytes, size_t len,
                                          struct bt_error *err);
bool link_lane_is_up(const struct link_lane *lane);
/* Gives the lane back. No event of it arrives after this call. It is really closed on a helper
 * thread once it is idle and its pipe has gone; a lane with an outstanding request is kept until
 * then (never closed under traffic). */
void link_lane_retire(struct link_lane *lane);

BT_MUST_CHECK enum bt_code link_pub_open(struct link *l, const char *url,
                                         const struct link_limits *lim, struct link_pub **ret,
                                         struct bt_error *err);
const char *link_pub_url(const struct link_pub *p);
/* Sends topic, a zero byte, body. Copies. */
void link_publish(struct link_pub *p, struct str topic, const void *body, size_t len);

/* Prefixes as in SUB; n = 0 subscribes to everything. */
BT_MUST_CHECK enum bt_code link_sub_dial(struct link *l, const char *url,
                                         const struct str *prefixes, uint32_t n,
                                         const struct link_limits *lim, void *owner,
                                         struct link_sub **ret, struct bt_error *err);
/* Splits a frame; false when it has no zero byte. */
bool link_frame_split(struct str frame, struct str *ret_topic, struct str *ret_body);

/*
 * Reaper canary: starts (once) a helper thread that opens and closes an inproc pair every
 * period_ms. When nng is wedged the pair never closes; link_canary_age() then grows past the
 * period. ms since the last healthy round.
 */
BT_MUST_CHECK enum bt_code link_canary_start(msec period_ms, struct bt_error *err);
msec link_canary_age(void);

/* Refuses what must never be dialed or listened on: other schemes, bad ports, wildcard or
 * link-local hosts; with loopback_only also any host but 127.0.0.0/8, ::1, localhost. One text for
 * every refusal (no port-scan oracle). */
BT_MUST_CHECK enum bt_code link_url_check(struct str url, bool loopback_only, bool port_zero_ok,
                                          struct bt_error *err);
const char *link_library_version(void);
#endif
