/*
 * When a late canary means that nng has wedged (N1), and not that its threads have no processor.
 * Pure: the caller gives the times.
 */
#ifndef SUPERVISOR_WEDGE_H
#define SUPERVISOR_WEDGE_H

#include <stdbool.h>

#include "protocol/base/msec.h"

enum {
    WEDGE_LATE_MS = 3000, /* the canary's period is 1 s */
    WEDGE_DEAD_MS = 4000, /* nothing moves for so long, with a processor */
    WEDGE_LOOK_MS = 250,
    /* However long the threads waited. */
    WEDGE_SURE_MS = 60000
};

struct wedge {
    msec since; /* late, and nothing moved, since then; 0 = the canary is not late */
    msec look_at;
};

enum wedge_is {
    WEDGE_NONE,
    WEDGE_BEGINS, /* what the threads do and wait from now on counts */
    WEDGE_LOOK    /* wedge_moves or wedge_is_sure is to be asked */
};

/* In each cycle; age: that of the canary. After a stop of the whole process the canary is late,
 * too, but sings again at once: late once is not enough. */
enum wedge_is wedge_look(struct wedge *w, msec now, msec age);
/* nng's reaper has run: it is not stuck, it has much to close. What is waited counts from now on.
 */
void wedge_moves(struct wedge *w, msec now);
/* It has not. waited_ms: what nng's threads have waited for a processor since WEDGE_BEGINS or
 * wedge_moves. That time does not count. */
bool wedge_is_sure(const struct wedge *w, msec now, msec waited_ms);
#endif
