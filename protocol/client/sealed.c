/* Requests of a client that has a credential: in a session that both sides have proved. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"

enum { LOOK_BYTES = 512 /* an id is among the first fields */ };

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
        exchange_set(&c->credential, found.who.id, found.key);
        explicit_bzero(c->token, sizeof c->token); /* it was read to connect */
        client_shards_forget(c);
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

/* One body and its answer. *ret stays NULL while there is more to send. */
static enum bt_code step(struct bt_client *c, const struct buf *request, msec deadline,
                         struct link_msg **ret, struct str *ret_body, struct bt_error *err)
{
    struct buf bytes;
    enum bt_code code;
    bool more = false;

    buf_init(&bytes, SEAL_HEADER_BYTES + LIMIT_STEP_BYTES);
    code = exchange_next(&c->credential, buf_str(request), &bytes, err);
    if (code == BT_OK) {
        code = client_send(c, &bytes, left(deadline), ret, err);
    }
    buf_done(&bytes);
    if (code == BT_OK) {
        code = exchange_take(&c->credential, link_msg_bytes(*ret), ret_body, &more, err);
        code = code == BT_UNAUTHORIZED ? err_wrap(err, "the daemon at %s", c->at.control) : code;
    }
    if (*ret != NULL && (more || code != BT_OK)) {
        link_msg_free(*ret);
        *ret = NULL;
    }
    return code;
}

/* What answers no request that could be read has no id. */
static bool is_of(const struct buf *request, struct str answer)
{
    const struct str id = msg_peek(request->at, request->len, LOOK_BYTES).id;
    const struct str its = msg_peek(answer.ptr, answer.len, LOOK_BYTES).id;

    return its.len == 0 || str_eq(id, its);
}

/* It may be late, or of another program: this connection is not used again. */
static enum bt_code check_id(struct bt_client *c, const struct buf *request, struct link_msg **ret,
                             struct str answer, struct bt_error *err)
{
    if (is_of(request, answer)) {
        return BT_OK;
    }
    link_msg_free(*ret);
    *ret = NULL;
    client_leave(c);
    return err_set(err, BT_UNAVAILABLE, "the daemon at %s answered another request", c->at.control);
}

enum bt_code client_exchange_here(struct bt_client *c, const struct buf *request,
                                  uint32_t timeout_ms, struct link_msg **ret, struct str *ret_body,
                                  struct bt_error *err)
{
    const msec deadline = clock_mono_ms() + timeout_ms;
    enum bt_code code = BT_OK;

    *ret = NULL;
    if (c->credential.id[0] == 0) {
        code = client_send(c, request, timeout_ms, ret, err);
        *ret_body = code == BT_OK ? link_msg_bytes(*ret) : (struct str){NULL, 0};
        return code == BT_OK ? check_id(c, request, ret, *ret_body, err) : code;
    }
    exchange_start(&c->credential);
    while (code == BT_OK && *ret == NULL) {
        code = step(c, request, deadline, ret, ret_body, err);
    }
    return code == BT_OK ? check_id(c, request, ret, *ret_body, err) : code;
}
