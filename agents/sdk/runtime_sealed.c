/* An agent that has a credential: each request of the control lane is sealed. With it, files of
 * steps go to and come from another host, over a connection of the worker's own: heartbeats go on.
 */
#include <errno.h>
#include <unistd.h>

#include "agents/sdk/runtime.h"
#include "protocol/artifact/artifact.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/credential.h"
#include "protocol/client/transfer.h"

enum bt_code runtime_credential(struct runtime *rt, struct bt_error *err)
{
    struct credential found;
    enum bt_code code;

    if (rt->opt->credential == NULL) {
        exchange_set(&rt->credential, rt->elsewhere ? "" : rt->opt->process_id,
                     rt->opt->process_key);
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

/* The request in rt->request, or the handshake that it waits for. */
static enum bt_code send_next(struct runtime *rt, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (!exchange_is_open(&rt->credential)) {
        code = runtime_credential(rt, err); /* it may have been rotated */
    }
    buf_clear(&rt->sealed);
    if (code == BT_OK) {
        code = exchange_next(&rt->credential, buf_str(&rt->request), &rt->sealed, err);
    }
    return code == BT_OK ? link_lane_send(rt->control, rt->sealed.at, rt->sealed.len, err) : code;
}

enum bt_code runtime_send(struct runtime *rt, struct bt_error *err)
{
    if (rt->credential.id[0] == 0) {
        return link_lane_send(rt->control, rt->request.at, rt->request.len, err);
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

/* ---- files of steps ---- */

static bool is_stopped(const void *step)
{
    return bt_step_cancelled(step);
}

static enum bt_code dial(const struct bt_step *s, struct bt_client **ret, struct transfer_file *f,
                         struct bt_error *err)
{
    const struct runtime *rt = ((const struct runtime_slot *)s->runtime)->runtime;
    const struct bt_connection to = {.url = rt->opt->connect,
                                     .credential = rt->opt->credential,
                                     .ca = rt->opt->ca,
                                     .cert = rt->opt->cert};

    *f = (struct transfer_file){.instance_id = str_from(rt->instance_id),
                                .key = s->req.key,
                                .attempt = s->req.attempt,
                                .stop = is_stopped,
                                .self = s};
    return bt_client_connect(&to, ret, err);
}

static enum bt_code why(struct bt_step *s, enum bt_code code, struct bt_error *err)
{
    return code == BT_CANCELLED && bt_step_time_left_ms(s) == 0
               ? err_set(err, BT_TIMEOUT, "the deadline passed while an artifact was on its way")
               : code;
}

static enum bt_code get(struct bt_step *s, const struct msg_artifact *a, int *ret_fd,
                        struct bt_error *err)
{
    const int fd = artifact_spool_fd();
    struct bt_client *c = NULL;
    struct transfer_file f;
    enum bt_code code =
        fd < 0 ? err_errno(err, errno, "making a file for the artifact on this host (TMPDIR)")
               : dial(s, &c, &f, err);

    if (code == BT_OK) {
        f.uri = a->uri;
        f.bytes = a->bytes;
        f.sha256 = a->sha256;
        code = transfer_get(c, &f, fd, err);
    }
    bt_client_close(c);
    if (code == BT_OK) {
        *ret_fd = fd;
        return BT_OK;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    (void)err_wrap(err, "artifact '%.*s'", STR_ARG(a->name));
    return why(s, code, err);
}

static enum bt_code put(struct bt_step *s, const struct msg_artifact *entry, int fd,
                        struct buf *ret_uri, struct bt_error *err)
{
    struct bt_client *c = NULL;
    struct transfer_file f;
    enum bt_code code = dial(s, &c, &f, err);

    if (code == BT_OK) {
        f.name = entry->name;
        f.bytes = entry->bytes;
        f.sha256 = entry->sha256;
        code = transfer_put(c, &f, fd, ret_uri, err);
    }
    bt_client_close(c);
    return why(s, code, err);
}

const struct step_files runtime_files = {get, put};
