/* Credentials at the control socket: the handshake, and requests that are sealed. */
#include "protocol/base/log.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/auth/store.h"
#include "supervisor/engine/access.h"

static struct session_time time_of(const struct engine *engine)
{
    return (struct session_time){.now = engine_now(engine), .wall = engine_wall(engine)};
}

static struct session_peer peer_of(struct engine *engine)
{
    return (struct session_peer){engine_request_peer(engine), engine_request_pipe(engine)};
}

/* The answer is not sealed: there is no session that could seal it. */
static void refuse(struct engine *engine, uint64_t handle, struct str bytes,
                   const struct bt_error *why)
{
    const bool json = bytes.len > SEAL_HEADER_BYTES && bytes.ptr[SEAL_HEADER_BYTES] == '{';
    struct request rq = {
        .handle = handle, .bytes = bytes.len, .reader = {.form = json ? WIRE_JSON : WIRE_MSGPACK}};

    request_refuse(engine, &rq, why, CLASS_NONE, 0, (struct doc){NULL, 0});
}

bool api_open_sealed(struct engine *engine, uint64_t handle, struct str bytes, struct seal *ret,
                     struct str *ret_body)
{
    struct sessions *sessions = engine_options(engine)->sessions;
    struct bt_error err;
    enum bt_code code;

    *ret = (struct seal){.n = 0};
    code = sessions != NULL ? sessions_open(sessions, bytes, peer_of(engine), time_of(engine), ret,
                                            ret_body, &err)
                            : err_set(&err, BT_UNAUTHORIZED, "this daemon has no credentials");

    if (code == BT_OK) {
        return true;
    }
    if (ret->n != 0 && sessions_claimed(sessions, ret).len > 0) {
        (void)err_wrap(&err, "credential %.*s", STR_ARG(sessions_claimed(sessions, ret)));
    }
    if (code != BT_BUSY) {
        const struct str peer = engine_request_peer(engine);
        log_warn("auth.refused", "peer=%.*s %s", STR_ARG(peer), err.msg);
    }
    *ret = (struct seal){.n = 0};
    refuse(engine, handle, bytes, &err);
    return false;
}

bool api_within_quotas(struct engine *engine, struct request *rq, size_t bytes)
{
    struct sessions *sessions = engine_options(engine)->sessions;
    struct quota_over over;
    struct bt_error err;

    if (sessions_charge(sessions, &rq->seal, bytes, engine_now(engine), &over, &err) == BT_OK) {
        return true;
    }
    rq->who = sessions_who(sessions, &rq->seal, engine_wall(engine));
    access_refuse_quota(engine, rq, &err, &over);
    return false;
}

void api_failed(struct engine *engine)
{
    struct sessions *sessions = engine_options(engine)->sessions;

    if (sessions != NULL) {
        (void)sessions_failed(sessions, peer_of(engine), true, engine_now(engine));
    }
}

bool api_reopen_sealed(struct engine *engine, struct request *rq, struct str bytes,
                       struct str *ret_body)
{
    const struct engine_options *opt = engine_options(engine);
    struct bt_error err;

    if (seal_read(bytes, &rq->seal, ret_body)) {
        rq->who = sessions_who(opt->sessions, &rq->seal, engine_wall(engine));
    }
    if (rq->who == NULL) {
        (void)err_set(&err, BT_UNAUTHORIZED, "the session has ended; begin again with auth.begin");
        refuse(engine, rq->handle, bytes, &err);
    }
    return rq->who != NULL;
}

void on_auth_begin(struct engine *engine, struct request *rq)
{
    const struct engine_options *opt = engine_options(engine);
    char sid[2 * AUTH_SID_BYTES + 1];
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
    char proof[2 * AUTH_KEY_BYTES + 1];
    char previous[2 * AUTH_KEY_BYTES + 1] = "";
    uint8_t nonce_c[AUTH_NONCE_BYTES];
    struct session_begun begun;
    struct msg_auth_begin m;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_auth_begin, &m)) {
        return;
    }
    if (!auth_unhex(m.nonce_c, nonce_c, sizeof nonce_c)) {
        request_refuse_text(engine, rq, BT_INVALID, "nonceC: expected %d hexadecimal digits",
                            2 * AUTH_NONCE_BYTES);
        return;
    }
    if (!engine_is_away(engine)) { /* whose request is in hand may be what it frees */
        auth_store_refresh(opt->credentials, time_of(engine), true);
    }
    if (sessions_begin(opt->sessions, m.credential, nonce_c, engine_request_peer(engine),
                       time_of(engine), &begun, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    auth_hex(begun.sid, sizeof begun.sid, sid);
    auth_hex(begun.nonce_s, sizeof begun.nonce_s, nonce_s);
    auth_hex(begun.proof, sizeof begun.proof, proof);
    if (begun.has_previous) {
        auth_hex(begun.previous, sizeof begun.previous, previous);
    }
    const struct msg_auth_begin_ok ok = {.sid = str_from(sid),
                                         .nonce_s = str_from(nonce_s),
                                         .proof = str_from(proof),
                                         .previous_proof = str_from(previous),
                                         .idle_ms = SESSIONS_IDLE_MS};
    request_answer(engine, rq, MSG_auth_begin_ok, &ok);
}
