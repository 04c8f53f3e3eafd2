/* Signals of the daemon. */
#ifndef SUPERVISOR_SIGNALS_H
#define SUPERVISOR_SIGNALS_H

#include "protocol/base/err.h"

/* Blocks SIGTERM, SIGINT and SIGHUP, which *ret_fd (a signalfd, the caller's) reports, and for ever
 * those by which a stray sender could end the process. Call it before any thread starts (N18). */
BT_MUST_CHECK enum bt_code signals_open(int *ret_fd, struct bt_error *err);
#endif
