/* Greeting an instance that proves. Part of lanes.c. */
#ifndef DISPATCH_LANE_PROOF_H
#define DISPATCH_LANE_PROOF_H

#include "supervisor/dispatch/lanes.h"

struct lane_proof_texts {
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
    char proof[2 * AUTH_KEY_BYTES + 1];
};

/* Fills the nonce into a lane.hello, and the supervisor's proof into the second one. *texts lives
 * as long as *m. False: no random bytes, or no memory. */
bool lane_proof_put(struct lane *lane, struct lane_proof_texts *texts, struct msg_lane_hello *m);
/* The answer. lane->proving is then true when the second hello is due. BT_UNAUTHORIZED: the peer
 * does not know the session key. */
BT_MUST_CHECK enum bt_code lane_proof_take(struct lane *lane, const struct msg_lane_hello_ok *m,
                                           struct bt_error *err);
#endif
