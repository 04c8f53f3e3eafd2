/* Milliseconds, as a type and as "never". */
#ifndef BASE_MSEC_H
#define BASE_MSEC_H

#include <stdint.h>

typedef uint64_t msec;
#define MSEC_NEVER UINT64_MAX

/* a + b, stopping at never. */
static inline msec msec_add(msec a, msec b)
{
    return a > MSEC_NEVER - b ? MSEC_NEVER : a + b;
}
#endif
