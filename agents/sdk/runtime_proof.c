/* Which connections the supervisor has proved itself on (protocol/auth/lane.h). */
#include "agents/sdk/runtime.h"
#include "protocol/auth/lane.h"

static struct runtime_pipe *find(struct runtime *rt, uint32_t id)
{
    for (uint32_t i = 0; i < RUNTIME_PIPES; i++) {
        if (rt->pipes[i].id == id && id != 0) {
            return &rt->pipes[i];
        }
    }
    return NULL;
}

/* The place of a new connection: a free one, else that of the stranger, else of the peer, that has
 * been silent longest. */
static struct runtime_pipe *take(struct runtime *rt, uint32_t id)
{
    struct runtime_pipe *found = find(rt, id);

    for (uint32_t i = 0; i < RUNTIME_PIPES && found == NULL; i++) {
        found = rt->pipes[i].id == 0 ? &rt->pipes[i] : NULL;
    }
    for (uint32_t i = 0; i < RUNTIME_PIPES && (found == NULL || found->id != 0); i++) {
        struct runtime_pipe *p = &rt->pipes[i];
        const bool older = found == NULL || p->used < found->used;
        if (found != NULL && found->id == id) {
            break;
        }
        if (found == NULL || (found->proved && !p->proved) ||
            (found->proved == p->proved && older)) {
            found = p;
        }
    }
    *found = (struct runtime_pipe){.id = id, .used = ++rt->pipes_used};
    return found;
}

bool runtime_pipe_is_proved(struct runtime *rt, uint32_t id)
{
    struct runtime_pipe *p = find(rt, id);

    if (p == NULL || !p->proved) {
        return false;
    }
    p->used = ++rt->pipes_used;
    return true;
}

/* The agent's half: its nonce and its proof. */
static enum bt_code answer_hello(struct runtime *rt, uint64_t rq, const struct msg_lane_hello *m,
                                 struct bt_error *err)
{
    struct runtime_pipe *p = take(rt, rt->requests[rq].pipe);
    struct msg_lane_hello_ok ok = {.process_id = str_from(rt->process_id)};
    char nonce_a[2 * AUTH_NONCE_BYTES + 1];
    char text[2 * AUTH_KEY_BYTES + 1];
    uint8_t proof[AUTH_KEY_BYTES];

    p->proof.lane = m->lane;
    p->proof.epoch = m->epoch;
    if (!auth_unhex(m->nonce_s, p->proof.nonce_s, sizeof p->proof.nonce_s)) {
        return err_set(err, BT_INVALID, "nonceS: expected %d hexadecimal digits",
                       2 * AUTH_NONCE_BYTES);
    }
    if (!auth_random(p->proof.nonce_a, sizeof p->proof.nonce_a) ||
        !lane_proof_make(str_from(rt->session_key), LANE_SIDE_AGENT, &p->proof, proof)) {
        return err_set(err, BT_INTERNAL, "no proof can be made now");
    }
    auth_hex(p->proof.nonce_a, sizeof p->proof.nonce_a, nonce_a);
    auth_hex(proof, sizeof proof, text);
    ok.nonce_a = str_from(nonce_a);
    ok.proof = str_from(text);
    runtime_answer(rt, rq, MSG_lane_hello_ok, &ok);
    return BT_OK;
}

enum bt_code runtime_prove(struct runtime *rt, uint64_t rq, const struct msg_lane_hello *m,
                           bool *ret_proved, struct bt_error *err)
{
    struct runtime_pipe *p;

    *ret_proved = false;
    if (m->proof.len == 0) {
        return answer_hello(rt, rq, m, err);
    }
    p = find(rt, rt->requests[rq].pipe);
    if (p == NULL || p->proved || p->proof.lane != m->lane || p->proof.epoch != m->epoch ||
        !lane_proof_check(str_from(rt->session_key), LANE_SIDE_SUPERVISOR, &p->proof, m->proof)) {
        return err_set(err, BT_UNAUTHORIZED, "proof: wrong; begin with a lane.hello without one");
    }
    p->proved = *ret_proved = true;
    return BT_OK;
}
