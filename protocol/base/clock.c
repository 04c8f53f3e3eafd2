#include "protocol/base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_mono_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

msec clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000u;
}

msec clock_wall_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

void clock_iso(msec wall_ms, char *ret)
{
    time_t s = (time_t)(wall_ms / 1000u);
    struct tm tm;

    (void)gmtime_r(&s, &tm);
    (void)snprintf(ret, CLOCK_ISO_LEN + 1, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                   (tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100, tm.tm_mday % 100,
                   tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100, (int)(wall_ms % 1000u));
}
