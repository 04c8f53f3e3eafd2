/* Time and durations in milliseconds, and "never". */
#ifndef BASE_MSEC_H
#define BASE_MSEC_H

#include <stdint.h>

typedef uint64_t msec;
#define MSEC_NEVER UINT64_MAX

/* a + b, at most MSEC_NEVER. */
static inline msec msec_add(msec a, msec b)
{
    return a > MSEC_NEVER - b ? MSEC_NEVER : a + b;
}
#endif
