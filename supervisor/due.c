#include "supervisor/due.h"

msec due_wait(const msec *deadlines, size_t n, msec now, bool stopping)
{
    msec wait = stopping ? DUE_FAREWELL_MS : DUE_WAIT_MAX_MS;

    for (size_t i = 0; i < n; i++) {
        const msec left = deadlines[i] > now ? deadlines[i] - now : 0;
        wait = left < wait ? left : wait;
    }
    return wait;
}
