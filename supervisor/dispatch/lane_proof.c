/* Greeting an instance that proves: first it, then the supervisor (protocol/auth/lane.h). */
#include "supervisor/dispatch/lane_proof.h"

bool lane_proof_put(struct lane *lane, struct lane_proof_texts *texts, struct msg_lane_hello *m)
{
    struct lane_proof *p = &lane->proof;
    uint8_t proof[AUTH_KEY_BYTES];

    if (!lane->proving) {
        *p = (struct lane_proof){.lane = m->lane, .epoch = m->epoch};
        if (!auth_random(p->nonce_s, sizeof p->nonce_s)) {
            return false;
        }
    } else if (lane_proof_make(str_from(lane->instance->session_key), LANE_SIDE_SUPERVISOR, p,
                               proof)) {
        auth_hex(proof, sizeof proof, texts->proof);
        m->proof = str_from(texts->proof);
    } else {
        return false;
    }
    auth_hex(p->nonce_s, sizeof p->nonce_s, texts->nonce_s);
    m->nonce_s = str_from(texts->nonce_s);
    return true;
}

enum bt_code lane_proof_take(struct lane *lane, const struct msg_lane_hello_ok *m,
                             struct bt_error *err)
{
    struct lane_proof *p = &lane->proof;

    if (!lane->instance->proves || lane->proving) {
        lane->proving = false; /* the second one was taken, or none was due */
        return BT_OK;
    }
    if (!auth_unhex(m->nonce_a, p->nonce_a, sizeof p->nonce_a) ||
        !lane_proof_check(str_from(lane->instance->session_key), LANE_SIDE_AGENT, p, m->proof)) {
        return err_set(err, BT_UNAUTHORIZED, "proof: another process answers on this lane");
    }
    lane->proving = true;
    return BT_OK;
}
