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

/* Fails the test when runs of `what` keep memory. The first ones may: they fill what stays for
 * good. A block that was given back counts as in use while the C library keeps it for the next
 * one, which it does with seven of a size. */
static inline void heap_is_given_back(void (*what)(void *self), void *self)
{
    enum { FIRST = 3, ROUNDS = 100, LEAST = 24 };
    size_t before = 0;

    for (int round = 0; round < FIRST + ROUNDS; round++) {
        if (round == FIRST) {
            before = heap_in_use();
        }
        what(self);
    }
    if (heap_in_use() > before + ROUNDS * LEAST) {
        fail_msg("%d runs keep %zu bytes", ROUNDS, heap_in_use() - before);
    }
}
#endif
