/* The journal that this daemon leads: its own at once, a shared one when nobody else leads. */
#ifndef SUPERVISOR_STANDBY_H
#define SUPERVISOR_STANDBY_H

#include <stdbool.h>

#include "supervisor/journal/journal.h"

struct standby_options {
    const char *state_dir;
    const char *fleet_url; /* of the shared journal; "" = the one in the state directory */
    const struct journal_options *journal;
    uint32_t shards; /* of the fleet, when there are several: then nodes share them */
    int signals;     /* a descriptor; SIGTERM and SIGINT end the wait */
};

/*
 * Opens the journal, and locks the state directory in any case. While another daemon leads, or the
 * server cannot be reached, it waits, and says so in the log and to the service manager. *ret_stop:
 * a signal came first, and *ret is NULL. BT_CONFLICT: another daemon has the state directory.
 */
BT_MUST_CHECK enum bt_code standby_open(const struct standby_options *opt, struct journal **ret,
                                        bool *ret_stop, struct bt_error *err);
#endif
