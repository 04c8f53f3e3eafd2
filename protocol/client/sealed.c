/* Requests of a client that has a credential: in a session that both sides have proved. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"

/* A session that has ended there is begun again, once or twice, and the request sent once more: its
 * first copy was refused unread. */
enum { TRIES = 3 };

enum bt_code bt_client_credential(struct bt_client *c, const char *file, struct bt_error *err)
{
    struct credential found;
    enum bt_code code = credential_read(file, &found, err);

    if (code == BT_NOT_FOUND) {
        code = err_set(err, BT_NOT_FOUND,
                       "%s: there is no such file of a credential; a daemon has its own in "
                       "credentials/ID of its state directory",
                       file);
    }
    if (code == BT_OK && found.expires != 0 && clock_wall_ms() >= found.expires) {
        code =
            err_set(err, BT_UNAUTHORIZED, "%s: the credential %s has expired", file, found.who.id);
    }
    if (code == BT_OK) {
        memcpy(c->credential_id, found.who.id, sizeof c->credential_id);
        memcpy(c->key, found.key, sizeof c->key);
        c->session.open = false;
    }
    explicit_bzero(&found, sizeof found);
    return code;
}

enum bt_code client_find_credential(struct bt_client *c, struct bt_error *err)
{
    const char *file = getenv("BATON_CREDENTIAL");

    return file == NULL || file[0] == 0 ? BT_OK : bt_client_credential(c, file, err);
}

static uint32_t left(msec deadline)
{
    const msec now = clock_mono_ms();

    return now >= deadline ? 1 : (uint32_t)(deadline - now);
}

static enum bt_code finish(struct bt_client *c, const struct link_msg *msg, struct bt_error *err)
{
    const struct str bytes = link_msg_bytes(msg);
    struct msg_auth_begin_ok ok;
    struct msg_reader r = {0};
    enum bt_code code = msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, err);

    if (code == BT_OK) {
        code = msg_read_answer(&r, MSG_auth_begin_ok, &ok, NULL, err);
    }
    if (code == BT_OK) {
        const struct auth_begun begun = {ok.sid, ok.nonce_s, ok.proof, ok.previous_proof};
        code = auth_session_finish(&c->session, c->key, &begun, err);
        if (code == BT_UNAUTHORIZED) {
            code = err_wrap(err, "the daemon at %s", c->at.control);
        }
    }
    msg_reader_done(&r);
    return code;
}

static enum bt_code begin(struct bt_client *c, msec deadline, struct bt_error *err)
{
    char nonce_c[2 * AUTH_NONCE_BYTES + 1];
    struct msg_auth_begin m = {.credential = str_from(c->credential_id)};
    struct link_msg *msg = NULL;
    struct buf request;
    enum bt_code code = auth_session_begin(&c->session, nonce_c, err);

    buf_init(&request, LIMIT_CONTROL_BYTES);
    if (code == BT_OK) {
        m.nonce_c = str_from(nonce_c);
        code = msg_request(&request, WIRE_MSGPACK, STR_LIT("auth"), (struct str){NULL, 0},
                           MSG_auth_begin, &m, err);
    }
    if (code == BT_OK) {
        code = client_send(c, &request, left(deadline), &msg, err);
    }
    if (code == BT_OK) {
        code = finish(c, msg, err);
    }
    if (msg != NULL) {
        link_msg_free(msg);
    }
    buf_done(&request);
    return code;
}

/* One try. BT_OK with *ret NULL: the answer was not sealed by the session. */
static enum bt_code exchange(struct bt_client *c, const struct buf *request, msec deadline,
                             struct link_msg **ret, struct str *ret_body, struct bt_error *err)
{
    struct buf sealed;
    enum bt_code code = c->session.open ? BT_OK : begin(c, deadline, err);

    buf_init(&sealed, SEAL_HEADER_BYTES + LIMIT_STEP_BYTES);
    if (code == BT_OK) {
        code = auth_session_seal(&c->session, buf_str(request), &sealed, err);
    }
    if (code == BT_OK) {
        code = client_send(c, &sealed, left(deadline), ret, err);
    }
    buf_done(&sealed);
    if (code == BT_OK && !auth_session_open(&c->session, link_msg_bytes(*ret), ret_body)) {
        c->session.open = false;
        link_msg_free(*ret);
        *ret = NULL;
    }
    return code;
}

enum bt_code client_exchange(struct bt_client *c, const struct buf *request, uint32_t timeout_ms,
                             struct link_msg **ret, struct str *ret_body, struct bt_error *err)
{
    const msec deadline = clock_mono_ms() + timeout_ms;
    enum bt_code code = BT_OK;

    *ret = NULL;
    if (c->credential_id[0] == 0) {
        code = client_send(c, request, timeout_ms, ret, err);
        *ret_body = code == BT_OK ? link_msg_bytes(*ret) : (struct str){NULL, 0};
        return code;
    }
    for (int i = 0; i < TRIES && code == BT_OK && *ret == NULL; i++) {
        code = exchange(c, request, deadline, ret, ret_body, err);
    }
    return code == BT_OK && *ret == NULL
               ? err_set(
                     err, BT_UNAUTHORIZED,
                     "the daemon at %s does not take the credential %s: it was just revoked, or "
                     "another program answers",
                     c->at.control, c->credential_id)
               : code;
}
