/* How long the daemon may wait for something to come. */
#ifndef SUPERVISOR_DUE_H
#define SUPERVISOR_DUE_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/base/msec.h"

enum {
    DUE_WAIT_MAX_MS = 1000,
    DUE_FAREWELL_MS = 20 /* while it stops */
};

/* Until the first of n deadlines (MSEC_NEVER = none), at most so long; 0 = it is over. */
msec due_wait(const msec *deadlines, size_t n, msec now, bool stopping);
#endif
