/*
 * The client's side of a session: the values of auth.begin, and sealed bodies. The caller sends and
 * receives. One thread.
 */
#ifndef AUTH_SESSION_H
#define AUTH_SESSION_H

#include "protocol/auth/handshake.h"
#include "protocol/auth/seal.h"

struct auth_session {
    bool open;
    struct handshake handshake;
    struct auth_mac_key key;
    uint64_t n; /* of the last request */
};

/* What auth.begin.ok has, as texts; previous_proof may be empty. */
struct auth_begun {
    struct str sid, nonce_s, proof, previous_proof;
};

/* A new nonce, for auth.begin; the session is not open. */
BT_MUST_CHECK enum bt_code auth_session_begin(struct auth_session *s,
                                              char ret_nonce_c[2 * AUTH_NONCE_BYTES + 1],
                                              struct bt_error *err);
/* Opens the session when the peer has proved that it has the key. BT_UNAUTHORIZED: it has not.
 * BT_PROTOCOL: the answer is damaged. */
BT_MUST_CHECK enum bt_code auth_session_finish(struct auth_session *s,
                                               const uint8_t key[AUTH_KEY_BYTES],
                                               const struct auth_begun *begun,
                                               struct bt_error *err);
/* Appends the body of the next request, sealed. */
BT_MUST_CHECK enum bt_code auth_session_seal(struct auth_session *s, struct str body,
                                             struct buf *out, struct bt_error *err);
/* The body of the answer to the last request. False: nobody with the key has sealed it. */
bool auth_session_open(const struct auth_session *s, struct str bytes, struct str *ret_body);
#endif
