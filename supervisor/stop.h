/* When a daemon that was asked to stop may end. Pure: the caller gives the time. */
#ifndef SUPERVISOR_STOP_H
#define SUPERVISOR_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"

enum {
    /* The answer to supervisor.drain and the last events leave the transport meanwhile. */
    STOP_FAREWELL_MS = 50
};

struct stop {
    bool asked;
    bool at_once; /* a second signal: nothing is waited for */
    msec begun;
    msec deadline; /* the grace is over: what is still under way is left to the next daemon */
};

/* The first request counts; false = the daemon stops already. */
bool stop_ask(struct stop *s, msec grace_ms, msec now);
/* processes_left: agents that the daemon started and that have not ended; outstanding: attempts
 * under way. An agent's process ends within the grace, or is killed. */
bool stop_is_over(const struct stop *s, bool processes_left, uint32_t outstanding, msec now);
#endif
