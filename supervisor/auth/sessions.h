/*
 * Sessions: the peers that have proved a credential. A table without a clock, a file or a socket;
 * times are arguments. One thread.
 *
 *     auth.begin -> sessions_begin        a pending entry; nothing is proved yet
 *     request    -> sessions_open         the first right MAC proves it; n rises from then on
 *     answer     -> sessions_seal
 *
 * An unknown id gets an entry with a key that nobody has: it looks the same and takes the same
 * time.
 */
#ifndef SUPERVISOR_AUTH_SESSIONS_H
#define SUPERVISOR_AUTH_SESSIONS_H

#include "protocol/auth/seal.h"
#include "protocol/base/msec.h"
#include "protocol/client/credential.h"
#include "supervisor/auth/quota.h"

enum {
    /* Proved sessions: in all, and of one credential. One more ends the one that is longest idle.
     * In all: one of each agent process, and as many of clients. */
    SESSIONS_MAX = 2048,
    SESSIONS_PER_CREDENTIAL = 64,
    /* Entries that wait for their proof. One more takes the place of the oldest of the peer that
     * has most of them, so that a flood pushes out itself. */
    SESSIONS_PENDING_MAX = 256,
    SESSIONS_PENDING_MS = 30000,
    SESSIONS_IDLE_MS = 900000,
    /* Refusals of one peer's host, or for one id, that are logged, in 10 s. After as many on one
     * connection it is hung up on; after HOST_MAX wrong MACs and tokens of one host, each
     * connection is at its next one. */
    SESSIONS_FAILURES_MAX = 10,
    SESSIONS_FAILURES_HOST_MAX = 100,
    SESSIONS_FAILURES_MS = 10000,
    SESSIONS_FULL_MS = 500 /* when a connection may have ended */
};

struct session_peer {
    struct str address; /* "127.0.0.1:4711" */
    uint32_t pipe;      /* its connection; 0 = unknown */
};

/* What the table asks of the connections. Each may be NULL. */
struct session_hooks {
    void *self;
    bool (*is_open)(void *self, uint32_t pipe);
    void (*hang_up)(void *self, uint32_t pipe);
};

struct sessions;

struct session_time {
    msec now, wall;
};

BT_MUST_CHECK enum bt_code sessions_new(struct sessions **ret, struct bt_error *err);
void sessions_free(struct sessions *s);
void sessions_hook(struct sessions *s, const struct session_hooks *hooks);
/* The credentials that are valid from now on; takes the array, which malloc gave. Sessions of a
 * credential that is gone, revoked, or has another key end, and so do their connections. Returns
 * how many ended. */
uint32_t sessions_set(struct sessions *s, struct credential *at, uint32_t n,
                      struct session_time time);

struct session_begun {
    uint8_t sid[AUTH_SID_BYTES], nonce_s[AUTH_NONCE_BYTES], proof[AUTH_KEY_BYTES];
    uint8_t previous[AUTH_KEY_BYTES]; /* the proof by the key before a rotation */
    bool has_previous;
};
/* peer: "127.0.0.1:4711". BT_INTERNAL: no random bytes. */
BT_MUST_CHECK enum bt_code sessions_begin(struct sessions *s, struct str id,
                                          const uint8_t nonce_c[AUTH_NONCE_BYTES], struct str peer,
                                          struct session_time time, struct session_begun *ret,
                                          struct bt_error *err);
/*
 * Checks a sealed request. BT_UNAUTHORIZED: it is not of a session, was changed, or came before.
 * BT_BUSY: the same, and its peer had too many of these; it is not worth a line in a log.
 */
BT_MUST_CHECK enum bt_code sessions_open(struct sessions *s, struct str bytes,
                                         struct session_peer peer, struct session_time time,
                                         struct seal *ret, struct str *ret_body,
                                         struct bt_error *err);
/* The id that the session of this sid was begun with, valid or not; "": there is none. Valid until
 * the next call. */
struct str sessions_claimed(const struct sessions *s, const struct seal *seal);
/* One more failure of a peer that proved nothing, by a token too. forged: it claimed something; a
 * client whose session has ended did not. Hangs up on it when that happens often. True: it is not
 * worth a line in a log. */
bool sessions_failed(struct sessions *s, struct session_peer peer, bool forged, msec now);

/*
 * Counts a request that sessions_open took. BT_BUSY, BT_LIMIT: it is over a quota of its
 * credential, which *ret names; it is not counted.
 */
BT_MUST_CHECK enum bt_code sessions_charge(struct sessions *s, const struct seal *seal,
                                           size_t bytes, msec now, struct quota_over *ret,
                                           struct bt_error *err);
/* Counts an event that was written for a plan of the credential with this id, if there is one. */
void sessions_count_event(struct sessions *s, struct str id, msec now);
/* BT_BUSY: plans of the credential with this id have written as many events in this minute as its
 * quota, which *ret names. */
BT_MUST_CHECK enum bt_code sessions_events_left(const struct sessions *s, struct str id, msec now,
                                                struct quota_over *ret, struct bt_error *err);
/* The identity of the credential with this id; NULL: there is none that is valid. Valid until
 * sessions_set. */
const struct identity *sessions_identity(const struct sessions *s, struct str id, msec wall);
/* The identity of the session; NULL: it has ended. Valid until sessions_set. */
const struct identity *sessions_who(const struct sessions *s, const struct seal *seal, msec wall);
/* Writes the header of an answer in front of its body (seal_write). False: the session has ended.
 */
bool sessions_seal(const struct sessions *s, const struct seal *seal, uint8_t *at, size_t len);
/* Proved sessions that are open. */
uint32_t sessions_count(const struct sessions *s);
#endif
