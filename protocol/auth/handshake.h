/*
 * The handshake: client and daemon prove that they have the same key, which is never sent.
 *
 *     client -> daemon   auth.begin {id, nonceC}
 *     daemon -> client   {sid, nonceS, proof}        proof = HMAC(key, "S" | nonceC | nonceS | sid)
 *
 * The client checks the proof. Both derive the session key, and the client proves itself by the
 * first sealed request (seal.h).
 */
#ifndef AUTH_HANDSHAKE_H
#define AUTH_HANDSHAKE_H

#include "protocol/auth/mac.h"

struct handshake {
    uint8_t nonce_c[AUTH_NONCE_BYTES];
    uint8_t nonce_s[AUTH_NONCE_BYTES];
    uint8_t sid[AUTH_SID_BYTES];
};

BT_MUST_CHECK bool handshake_proof(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                                   uint8_t ret[AUTH_KEY_BYTES]);
/* HKDF(salt = nonceC | nonceS, key, info = "baton session 1" | sid). */
BT_MUST_CHECK bool handshake_session_key(const uint8_t key[AUTH_KEY_BYTES],
                                         const struct handshake *h, uint8_t ret[AUTH_KEY_BYTES]);
/* The session key as seals take it. */
BT_MUST_CHECK bool handshake_mac_key(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                                     struct auth_mac_key *ret);
#endif
