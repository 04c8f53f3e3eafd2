/* Time in which the daemon itself stood still, or had not read what came, is nobody's silence.
 * Leases are judged by what has arrived: while the process was stopped or busy, heartbeats waited
 * in the inbox and before it. */
#ifndef SUPERVISOR_SILENCE_H
#define SUPERVISOR_SILENCE_H

#include <stdbool.h>

#include "protocol/base/msec.h"

enum {
    SILENCE_STALL_MS = 250, /* a pause that is none */
    SILENCE_MOST_MS = 30000 /* is excused, as long as nothing was read to the end */
};

struct silence {
    msec begun_at;    /* the cycle before; 0 = there was none */
    msec waited_from; /* when its wait began, */
    msec wait_ms;     /* and how long it was to be */
    bool unread;      /* something came that it did not read */
    msec excused_ms;  /* so far, since all was read */
};

/* At the beginning of a cycle: how much is to be excused; 0 = nothing. stalled: nothing is decided
 * now, and no lease is judged. */
msec silence_excuse(struct silence *s, msec now, bool stalled);
#endif
