/* Shared by the files of the daemon. */
#ifndef SUPERVISOR_DAEMON_INTERNAL_H
#define SUPERVISOR_DAEMON_INTERNAL_H

#include <poll.h>

#include "supervisor/api/api.h"
#include "supervisor/daemon.h"
#include "supervisor/processes.h"
#include "supervisor/schedule/schedules.h"
#include "supervisor/silence.h"
#include "supervisor/stop.h"
#include "supervisor/waits.h"
#include "supervisor/wedge.h"

enum { WATCH_LINK, WATCH_SPAWN, WATCH_SIGNAL, WATCH_CREDENTIALS, WATCH_COUNT };

struct daemon {
    const struct daemon_options *opt;
    struct journal *journal;
    struct spawn *spawn;
    struct link *link;
    struct engine_options engine_options;
    struct engine *engine;
    struct api *api;
    struct sweep *sweep;
    struct retention *retention;
    struct roster *roster;
    struct schedules *schedules;
    struct keeper keeper;
    struct processes processes;
    bool stopped;   /* before it led */
    bool escalated; /* ends because a group gave up */
    struct pollfd watch[WATCH_COUNT];
    struct uuid instance; /* of this start */
    struct stop stop;
    struct silence silence;
    struct wedge wedge;
    struct waits waits; /* when the canary began to be late */
    msec recover_at;    /* the plans of the journal wait for room, until then at least */
    bool recovered;
    int told;         /* the signal that came while the journal waited; 0 = none */
    bool reload_told; /* SIGHUP did */
};

/* The rooms of the loop, each built on those before it. */
BT_MUST_CHECK enum bt_code daemon_open_rooms(struct daemon *d, struct bt_error *err);
#endif
