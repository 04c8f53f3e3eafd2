#include "protocol/base/clock.h"

#include <time.h>

uint64_t clock_mono_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_thread_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

msec clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000u;
}

msec clock_boot_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

msec clock_wall_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static char *put_number(char *at, uint64_t v, int digits, char separator)
{
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = (char)('0' + v % 10);
        v /= 10;
    }
    at[digits] = separator;
    return at + digits + 1;
}

/* Written by hand because every event has a timestamp, and gmtime_r with printf took more time than
 * the core. The date is Hinnant's civil_from_days: eras of 400 years, years that begin in March. */
void clock_iso(msec wall_ms, char *ret)
{
    const uint64_t s = wall_ms / 1000u;
    const uint64_t days = s / 86400u + 719468u; /* since 0000-03-01 */
    const uint64_t era_day = days % 146097u;
    const uint64_t era_year =
        (era_day - era_day / 1460u + era_day / 36524u - era_day / 146096u) / 365u;
    const uint64_t year_day = era_day - (365u * era_year + era_year / 4u - era_year / 100u);
    const uint64_t month = (5u * year_day + 2u) / 153u; /* 0 = March */
    const uint64_t year = days / 146097u * 400u + era_year + (month >= 10 ? 1u : 0u);

    ret = put_number(ret, year, 4, '-');
    ret = put_number(ret, month < 10 ? month + 3 : month - 9, 2, '-');
    ret = put_number(ret, year_day - (153u * month + 2u) / 5u + 1u, 2, 'T');
    ret = put_number(ret, s / 3600u % 24u, 2, ':');
    ret = put_number(ret, s / 60u % 60u, 2, ':');
    ret = put_number(ret, s % 60u, 2, '.');
    ret = put_number(ret, wall_ms % 1000u, 3, 'Z');
    *ret = 0;
}
