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

/* Runs `what` twice, since the first time may fill what is kept for good, and fails the test when
 * the second time keeps anything. */
static inline void heap_is_given_back(void (*what)(void *self), void *self)
{
    size_t before;

    what(self);
    before = heap_in_use();
    what(self);
    assert_int_equal(heap_in_use(), before);
}
#endif
