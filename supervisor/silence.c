#include "supervisor/silence.h"

msec silence_excuse(struct silence *s, msec now, bool stalled)
{
    const msec waited = now - s->waited_from < s->wait_ms ? now - s->waited_from : s->wait_ms;
    const msec deaf = now - s->begun_at - (s->unread ? 0 : waited);
    /* After a stop nobody knows how much of the wait was before it: all of it is excused. */
    const msec all = deaf > SILENCE_STALL_MS ? now - s->begun_at : deaf;
    msec excused = 0;

    s->excused_ms = s->unread ? s->excused_ms : 0;
    if (s->begun_at > 0 && !stalled && s->excused_ms < SILENCE_MOST_MS &&
        (s->unread || deaf > SILENCE_STALL_MS)) {
        excused = all;
    }
    s->excused_ms += excused;
    s->begun_at = now;
    return excused;
}
