/* Copies events of the daemon into the stream, until it is told to stop. One thread. */
#ifndef BRIDGE_BRIDGE_H
#define BRIDGE_BRIDGE_H

#include "protocol/base/err.h"
#include "supervisor/bridge/options.h"

/*
 * Runs until stop_fd can be read, or with `once` until the stream has all. While the daemon or the
 * server is away it waits, says so in the log, and goes on. BT_OK: it was stopped, or is done.
 * BT_CONFLICT: going on would put a gap or another journal's events into the stream. Else: why the
 * server or the daemon does not let it.
 */
BT_MUST_CHECK enum bt_code bridge_run(const struct options *o, int stop_fd, struct bt_error *err);
/* How many shards the fleet has, 1 without one. Waits for the daemon, but for --once and --status;
 * *ret 0: stop_fd became readable. */
BT_MUST_CHECK enum bt_code bridge_shards(const struct options *o, int stop_fd, uint32_t *ret,
                                         struct bt_error *err);
/* Writes one line: what the stream has, and what it lacks. */
BT_MUST_CHECK enum bt_code bridge_status(const struct options *o, FILE *out, struct bt_error *err);
#endif
