/* A supervisor on another host: TLS, and lanes that are dialed. Nothing of the supervisor's state
 * directory is here. Files of steps go over a connection of the worker's own, so that heartbeats go
 * on beside it. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "agents/sdk/runtime.h"
#include "protocol/artifact/artifact.h"
#include "protocol/base/log.h"
#include "protocol/client/transfer.h"

struct link_limits runtime_remote_limits(const struct runtime *rt, size_t recv_max)
{
    return (struct link_limits){
        .recv_max = recv_max, .ca_file = rt->opt->ca, .cert_file = rt->opt->cert};
}

void runtime_remote_dial(struct runtime *rt)
{
    const struct link_limits limits =
        runtime_remote_limits(rt, SEAL_HEADER_BYTES + LIMIT_CONTROL_BYTES);
    struct bt_error err;

    if (rt->control != NULL && !rt->outstanding) {
        rt->feed_up = link_lane_is_up(rt->control);
        return; /* the lane reconnects by itself */
    }
    if (rt->control != NULL) { /* silent for a lease: half open */
        link_lane_retire(rt->control);
        rt->control = NULL;
        rt->outstanding = false;
    }
    if (link_lane_dial(rt->link, rt->opt->connect, &limits, NULL, &rt->control, &err) != BT_OK) {
        log_warn("agent.dial", "%s", err.msg);
        return;
    }
    (void)snprintf(rt->control_url, sizeof rt->control_url, "%s", rt->opt->connect);
}

/* The supervisor knows its own name of its host, and this side the one that works from here: of a
 * lane only the port is taken. */
void runtime_remote_lane(const struct runtime *rt, struct str announced, char *ret, size_t cap)
{
    const char *own = rt->opt->connect;
    const char *colon = own != NULL ? strrchr(own, ':') : NULL;
    size_t port = announced.len;

    while (port > 0 && announced.ptr[port - 1] != ':') {
        port--;
    }
    if (colon == NULL) {
        (void)snprintf(ret, cap, "%.*s", STR_ARG(announced));
    } else {
        (void)snprintf(ret, cap, "%.*s:%.*s", (int)(colon - own), own, (int)(announced.len - port),
                       announced.ptr + port);
    }
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
