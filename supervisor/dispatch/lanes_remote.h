/* Lanes for an agent on another host. For this room only. */
#ifndef DISPATCH_LANES_REMOTE_H
#define DISPATCH_LANES_REMOTE_H

#include "supervisor/dispatch/lanes.h"

/* Listens on the host of listen.remote, on a free port of listen.lanes. BT_LIMIT: there is none. */
BT_MUST_CHECK enum bt_code lanes_listen_remote(struct engine *engine, struct lane *lane,
                                               struct bt_error *err);
#endif
