/*
 * One request of a credential and its answer, as the bytes that go over a lane: a handshake first
 * when no session is open, and again when the session has ended there. The caller sends and
 * receives, and waits or does not:
 *
 *     exchange_start
 *     exchange_next   -> bytes to send <--.
 *     exchange_take   <- their answer  ---' while *ret_more
 *
 * One thread.
 */
#ifndef CLIENT_EXCHANGE_H
#define CLIENT_EXCHANGE_H

#include "protocol/auth/session.h"
#include "protocol/limits.h"

struct exchange {
    char id[LIMIT_ID_BYTES + 1]; /* of the credential; "" = none, and nothing here is called */
    uint8_t key[AUTH_KEY_BYTES];
    struct auth_session session;
    bool begins;    /* the answer that is awaited is that of the handshake */
    uint32_t tries; /* of the request: each was refused there, unread */
};

/* A credential, or another key of it; a session of the one before is over. */
void exchange_set(struct exchange *x, const char *id, const uint8_t key[AUTH_KEY_BYTES]);
/* False: exchange_next makes a handshake. */
bool exchange_is_open(const struct exchange *x);
/* Another request follows. */
void exchange_start(struct exchange *x);
/* Appends what is to be sent next: the request, sealed, or the handshake that it waits for. */
BT_MUST_CHECK enum bt_code exchange_next(struct exchange *x, struct str request, struct buf *out,
                                         struct bt_error *err);
/* The answer to what was sent last. *ret_more: call exchange_next; else *ret_body is the answer to
 * the request, and points into bytes. BT_UNAUTHORIZED: the peer does not prove that it has the key;
 * the session is not open. */
BT_MUST_CHECK enum bt_code exchange_take(struct exchange *x, struct str bytes, struct str *ret_body,
                                         bool *ret_more, struct bt_error *err);
/* After BT_UNAUTHORIZED for a handshake: appends an empty request that proves nothing, so that the
 * daemon records the attempt. It has nothing of the key, as the peer may be another program. */
BT_MUST_CHECK enum bt_code exchange_deny(struct exchange *x, struct buf *out, struct bt_error *err);
#endif
