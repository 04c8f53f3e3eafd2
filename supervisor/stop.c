#include "supervisor/stop.h"

bool stop_ask(struct stop *s, msec grace_ms, msec now)
{
    if (s->asked) {
        return false;
    }
    *s = (struct stop){.asked = true, .begun = now, .deadline = msec_add(now, grace_ms)};
    return true;
}

bool stop_is_over(const struct stop *s, bool processes_left, uint32_t outstanding, msec now)
{
    if (!s->asked || s->at_once) {
        return s->asked;
    }
    return now >= msec_add(s->begun, STOP_FAREWELL_MS) && !processes_left &&
           (outstanding == 0 || now >= s->deadline);
}
