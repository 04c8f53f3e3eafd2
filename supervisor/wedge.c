#include "supervisor/wedge.h"

enum wedge_is wedge_look(struct wedge *w, msec now, msec age)
{
    if (age < WEDGE_LATE_MS) {
        w->since = 0;
        return WEDGE_NONE;
    }
    if (w->since == 0) {
        w->since = now;
        w->look_at = now + WEDGE_LOOK_MS;
        return WEDGE_BEGINS;
    }
    if (now < w->look_at) {
        return WEDGE_NONE;
    }
    w->look_at = now + WEDGE_LOOK_MS;
    return WEDGE_LOOK;
}

void wedge_moves(struct wedge *w, msec now)
{
    w->since = now;
}

bool wedge_is_sure(const struct wedge *w, msec now, msec waited_ms)
{
    const msec late = now - w->since;

    return late > WEDGE_SURE_MS || late > msec_add(waited_ms, WEDGE_DEAD_MS);
}
