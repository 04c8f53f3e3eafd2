/*
 * The connection to a server of NATS. libnats has threads of its own: what they call back is kept
 * under a lock, and read by the one thread of the bridge.
 */
#ifndef BRIDGE_NATS_H
#define BRIDGE_NATS_H

#include <nats/nats.h>

#include "protocol/base/err.h"
#include "supervisor/bridge/options.h"

struct nats;

/*
 * Connects within a few seconds. BT_UNAVAILABLE: no server answers. BT_UNAUTHORIZED: it does not
 * let us in, or it cannot be trusted. BT_INVALID: a file is missing, or others may read it. The
 * caller frees *ret with nats_free.
 */
BT_MUST_CHECK enum bt_code nats_open(const struct options *o, struct nats **ret,
                                     struct bt_error *err);
/* Accepts NULL. */
void nats_free(struct nats *n);
natsConnection *nats_connection(const struct nats *n);
/* False while libnats connects again, and when it has given up. */
bool nats_is_up(const struct nats *n);
/* libnats has given up, because it was not let in twice: open another one. */
bool nats_is_closed(const struct nats *n);
/* The code and sentence of a failed call. js 0 = no error of JetStream. `what` begins the sentence.
 * What the server has said on its own, as a missing permission, is added. */
BT_MUST_CHECK enum bt_code nats_error(struct nats *n, natsStatus s, jsErrCode js, const char *what,
                                      struct bt_error *err);
/* The same without a connection: what is known by the numbers alone. text: the server's own, may be
 * NULL. */
BT_MUST_CHECK enum bt_code nats_explain(natsStatus s, jsErrCode js, const char *text,
                                        const char *what, struct bt_error *err);
#endif
