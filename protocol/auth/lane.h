/*
 * The proof on a lane: supervisor and agent know the same sessionKey, which was sent at the
 * registration and is not sent again.
 *
 *     supervisor -> agent   lane.hello {lane, epoch, nonceS}
 *     agent -> supervisor   {nonceA, proof}      "A" | nonceS | nonceA | lane | epoch
 *     supervisor -> agent   lane.hello {lane, epoch, nonceS, proof}      the same with "S"
 *
 * proof = HMAC(HMAC(32 zero bytes, sessionKey), ...); lane and epoch are 8 bytes, big-endian. It
 * counts for the connection that it was made on.
 */
#ifndef AUTH_LANE_H
#define AUTH_LANE_H

#include "protocol/auth/mac.h"

enum lane_side { LANE_SIDE_AGENT = 'A', LANE_SIDE_SUPERVISOR = 'S' };

struct lane_proof {
    uint8_t nonce_s[AUTH_NONCE_BYTES], nonce_a[AUTH_NONCE_BYTES];
    uint64_t lane, epoch;
};

BT_MUST_CHECK bool lane_proof_make(struct str session_key, enum lane_side side,
                                   const struct lane_proof *p, uint8_t ret[AUTH_KEY_BYTES]);
/* Whether the text is that proof. */
bool lane_proof_check(struct str session_key, enum lane_side side, const struct lane_proof *p,
                      struct str proof);
#endif
