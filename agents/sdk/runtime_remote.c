/* A supervisor on another host: TLS, and lanes that are dialed. Nothing of the supervisor's state
 * directory is here. */
#include <stdio.h>

#include "agents/sdk/runtime.h"
#include "protocol/base/log.h"

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
