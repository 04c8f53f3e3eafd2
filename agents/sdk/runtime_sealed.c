/* The control lane of an agent that has a credential: each request is sealed. */
#include "agents/sdk/runtime.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/credential.h"

enum bt_code runtime_credential(struct runtime *rt, struct bt_error *err)
{
    struct credential found;
    enum bt_code code;

    if (rt->opt->credential == NULL) {
        exchange_set(&rt->credential, rt->opt->process_id, rt->opt->process_key);
        return BT_OK;
    }
    code = credential_read(rt->opt->credential, &found, err);
    if (code == BT_OK && !credential_is_valid(&found, clock_wall_ms())) {
        code = err_set(err, BT_UNAUTHORIZED, "%s: the credential has expired or is revoked",
                       rt->opt->credential);
    }
    if (code == BT_OK) {
        exchange_set(&rt->credential, found.who.id, found.key);
    }
    explicit_bzero(&found, sizeof found);
    return code;
}

/* The request in rt->out, or the handshake that it waits for. */
static enum bt_code send_next(struct runtime *rt, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (!exchange_is_open(&rt->credential)) {
        code = runtime_credential(rt, err); /* it may have been rotated */
    }
    buf_clear(&rt->sealed);
    if (code == BT_OK) {
        code = exchange_next(&rt->credential, buf_str(&rt->out), &rt->sealed, err);
    }
    return code == BT_OK ? link_lane_send(rt->control, rt->sealed.at, rt->sealed.len, err) : code;
}

enum bt_code runtime_send(struct runtime *rt, struct bt_error *err)
{
    if (rt->credential.id[0] == 0) {
        return link_lane_send(rt->control, rt->out.at, rt->out.len, err);
    }
    exchange_start(&rt->credential);
    return send_next(rt, err);
}

enum bt_code runtime_opened(struct runtime *rt, struct str bytes, struct str *ret_body,
                            bool *ret_more, struct bt_error *err)
{
    enum bt_code code;

    *ret_more = false;
    *ret_body = bytes;
    if (rt->credential.id[0] == 0) {
        return BT_OK;
    }
    code = exchange_take(&rt->credential, bytes, ret_body, ret_more, err);
    if (code == BT_OK && *ret_more) {
        code = send_next(rt, err);
        *ret_more = code == BT_OK;
    }
    if (code != BT_OK) {
        log_warn("agent.credential", "credential=%s control=%s %s", rt->credential.id,
                 rt->control_url, err->msg);
    }
    return code;
}
