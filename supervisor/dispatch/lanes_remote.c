/* Lanes for an agent on another host: it dials them, with TLS. */
#include "supervisor/dispatch/lanes_remote.h"

#include <stdio.h>
#include <string.h>

#include "supervisor/dispatch/dispatch_internal.h"

enum { URL_MAX = 272 };

static enum bt_code listen_at(struct engine *engine, struct lane *lane, uint16_t port,
                              struct bt_error *err)
{
    const struct engine_options *opt = engine_options(engine);
    const struct link_limits limits = {
        .recv_max = LIMIT_STEP_BYTES, .cert_file = opt->remote_cert, .ca_file = opt->remote_ca};
    const char *at = engine_remote_url(engine);
    const char *colon = strrchr(at, ':');
    char url[URL_MAX];

    if (colon == NULL) {
        return err_set(err, BT_INVALID, "no other host is served (listen.remote)");
    }
    (void)snprintf(url, sizeof url, "%.*s:%u", (int)(colon - at), at, port);
    return link_lane_listen(dispatch_of(engine)->link, url, &limits, lane, &lane->link, err);
}

enum bt_code lanes_listen_remote(struct engine *engine, struct lane *lane, struct bt_error *err)
{
    const struct engine_options *opt = engine_options(engine);
    enum bt_code code = BT_CONFLICT;

    for (uint32_t port = opt->lane_first; port <= opt->lane_last && code == BT_CONFLICT; port++) {
        code = listen_at(engine, lane, (uint16_t)port, err);
    }
    return code != BT_CONFLICT || opt->lane_first == 0
               ? code
               : err_set(err, BT_LIMIT,
                         "each port of listen.lanes (%u-%u) is taken; an agent needs one for each "
                         "step at a time, and one more",
                         opt->lane_first, opt->lane_last);
}
