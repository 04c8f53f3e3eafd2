/* The control lane of an agent that has a credential: a handshake first, then each request is
 * sealed. */
#include "agents/sdk/runtime.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/credential.h"

/* A session that has ended at the daemon is begun again, and the request sent once more: it was not
 * read. */
enum { TRIES = 3 };

static const char LABEL[] = "auth";

enum bt_code runtime_credential(struct runtime *rt, struct bt_error *err)
{
    struct credential found;
    enum bt_code code;

    if (rt->opt->credential == NULL) {
        memcpy(rt->sealed.id, rt->opt->process_id, sizeof rt->sealed.id);
        memcpy(rt->sealed.key, rt->opt->process_key, sizeof rt->sealed.key);
        return BT_OK;
    }
    code = credential_read(rt->opt->credential, &found, err);
    if (code == BT_OK && !credential_is_valid(&found, clock_wall_ms())) {
        code = err_set(err, BT_UNAUTHORIZED, "%s: the credential has expired or is revoked",
                       rt->opt->credential);
    }
    if (code == BT_OK) {
        memcpy(rt->sealed.id, found.who.id, sizeof rt->sealed.id);
        memcpy(rt->sealed.key, found.key, sizeof rt->sealed.key);
    }
    explicit_bzero(&found, sizeof found);
    return code;
}

static enum bt_code begin(struct runtime *rt, struct bt_error *err)
{
    struct runtime_sealed *s = &rt->sealed;
    char nonce_c[2 * AUTH_NONCE_BYTES + 1];
    struct msg_auth_begin m = {.credential = str_from(s->id)};
    enum bt_code code = runtime_credential(rt, err); /* it may have been rotated */

    buf_clear(&s->bytes);
    if (code == BT_OK) {
        code = auth_session_begin(&s->session, nonce_c, err);
    }
    if (code == BT_OK) {
        m.nonce_c = str_from(nonce_c);
        code = msg_request(&s->bytes, WIRE_MSGPACK, STR_LIT(LABEL), (struct str){NULL, 0},
                           MSG_auth_begin, &m, err);
    }
    s->begins = code == BT_OK;
    return code == BT_OK ? link_lane_send(rt->control, s->bytes.at, s->bytes.len, err) : code;
}

/* The request in rt->out, or the handshake that it waits for. */
static enum bt_code send_now(struct runtime *rt, struct bt_error *err)
{
    struct runtime_sealed *s = &rt->sealed;
    enum bt_code code;

    if (!s->session.open) {
        return begin(rt, err);
    }
    s->begins = false;
    buf_clear(&s->bytes);
    code = auth_session_seal(&s->session, buf_str(&rt->out), &s->bytes, err);
    return code == BT_OK ? link_lane_send(rt->control, s->bytes.at, s->bytes.len, err) : code;
}

enum bt_code runtime_send(struct runtime *rt, struct bt_error *err)
{
    if (rt->sealed.id[0] == 0) {
        return link_lane_send(rt->control, rt->out.at, rt->out.len, err);
    }
    rt->sealed.tries = 0;
    return send_now(rt, err);
}

static enum bt_code finish(struct runtime *rt, struct str bytes, struct bt_error *err)
{
    struct msg_auth_begin_ok ok;
    struct msg_reader r = {0};
    enum bt_code code = msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_CONTROL_BYTES, err);

    if (code == BT_OK) {
        code = msg_read_answer(&r, MSG_auth_begin_ok, &ok, NULL, err);
    }
    if (code == BT_OK) {
        const struct auth_begun begun = {ok.sid, ok.nonce_s, ok.proof, ok.previous_proof};
        code = auth_session_finish(&rt->sealed.session, rt->sealed.key, &begun, err);
    }
    msg_reader_done(&r);
    return code;
}

enum bt_code runtime_opened(struct runtime *rt, struct str bytes, struct str *ret_body,
                            bool *ret_more, struct bt_error *err)
{
    struct runtime_sealed *s = &rt->sealed;
    enum bt_code code = BT_OK;

    *ret_more = false;
    *ret_body = bytes;
    if (s->id[0] == 0) {
        return BT_OK;
    }
    if (s->begins) {
        code = finish(rt, bytes, err);
    } else if (auth_session_open(&s->session, bytes, ret_body)) {
        return BT_OK;
    } else {
        s->session.open = false;
        code = ++s->tries < TRIES
                   ? BT_OK
                   : err_set(err, BT_UNAUTHORIZED, "the answers of the supervisor are not sealed");
    }
    if (code == BT_OK) {
        code = send_now(rt, err);
        *ret_more = code == BT_OK;
    }
    if (code != BT_OK) {
        log_warn("agent.credential", "credential=%s control=%s %s", s->id, rt->control_url,
                 err->msg);
    }
    return code;
}
