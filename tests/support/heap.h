/* Whether a call gives back what it took. Sanitizers have a heap of their own, and find more. */
#ifndef SUPPORT_HEAP_H
#define SUPPORT_HEAP_H

#include "tests/support/cmocka.h"

#include <malloc.h>

/* Bytes of the main thread's heap that are in use; always 0 under a sanitizer. */
static inline size_t heap_in_use(void)
{
    return mallinfo2().uordblks;
}

/* Fails the test when each of many runs of `what` keeps something. A single one may: the first
 * fills what stays for good, and the C library keeps blocks that were given back for the next. */
static inline void heap_is_given_back(void (*what)(void *self), void *self)
{
    for (int round = 0; round < 20; round++) {
        const size_t before = heap_in_use();
        what(self);
        if (round > 0 && heap_in_use() <= before) {
            return;
        }
    }
    fail_msg("each run keeps memory");
}
#endif
