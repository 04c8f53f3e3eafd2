#include "protocol/client/exchange.h"

#include "protocol/wire/msg.h"

/* A session that has ended there is begun again, once or twice, and the request sent once more: its
 * first copy was refused unread. */
enum { TRIES = 3 };

void exchange_set(struct exchange *x, const char *id, const uint8_t key[AUTH_KEY_BYTES])
{
    const size_t n = strnlen(id, LIMIT_ID_BYTES);

    memcpy(x->id, id, n);
    x->id[n] = 0;
    memcpy(x->key, key, sizeof x->key);
    x->session.open = false;
}

bool exchange_is_open(const struct exchange *x)
{
    return x->session.open;
}

void exchange_start(struct exchange *x)
{
    x->tries = 0;
}

static enum bt_code begin(struct exchange *x, struct buf *out, struct bt_error *err)
{
    char nonce_c[2 * AUTH_NONCE_BYTES + 1];
    struct msg_auth_begin m = {.credential = str_from(x->id)};
    enum bt_code code = auth_session_begin(&x->session, nonce_c, err);

    x->begins = true;
    if (code != BT_OK) {
        return code;
    }
    m.nonce_c = str_from(nonce_c);
    return msg_request(out, WIRE_MSGPACK, STR_LIT("auth"), (struct str){NULL, 0}, MSG_auth_begin,
                       &m, err);
}

enum bt_code exchange_next(struct exchange *x, struct str request, struct buf *out,
                           struct bt_error *err)
{
    if (!x->session.open) {
        return begin(x, out, err);
    }
    x->begins = false;
    return auth_session_seal(&x->session, request, out, err);
}

static enum bt_code finish(struct exchange *x, struct str bytes, struct bt_error *err)
{
    struct msg_auth_begin_ok ok;
    struct msg_reader r = {0};
    enum bt_code code = msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_CONTROL_BYTES, err);

    if (code == BT_OK) {
        code = msg_read_answer(&r, MSG_auth_begin_ok, &ok, NULL, err);
    }
    if (code == BT_OK) {
        const struct auth_begun begun = {ok.sid, ok.nonce_s, ok.proof, ok.previous_proof};
        code = auth_session_finish(&x->session, x->key, &begun, err);
    }
    msg_reader_done(&r);
    return code;
}

enum bt_code exchange_take(struct exchange *x, struct str bytes, struct str *ret_body,
                           bool *ret_more, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *ret_more = false;
    *ret_body = (struct str){NULL, 0};
    if (x->begins) {
        code = finish(x, bytes, err);
    } else if (auth_session_open(&x->session, bytes, ret_body)) {
        return BT_OK;
    } else {
        x->session.open = false;
        code = ++x->tries < TRIES
                   ? BT_OK
                   : err_set(err, BT_UNAUTHORIZED,
                             "it does not take the credential %s: it was just revoked, or another "
                             "program answers",
                             x->id);
    }
    *ret_more = code == BT_OK;
    return code;
}

enum bt_code exchange_deny(struct exchange *x, struct buf *out, struct bt_error *err)
{
    explicit_bzero(&x->session.key, sizeof x->session.key);
    x->session.open = false;
    return auth_session_seal(&x->session, STR_LIT(""), out, err);
}
