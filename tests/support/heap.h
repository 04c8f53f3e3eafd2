/* Whether a call gives back what it took: the blocks that are in use are counted. For one file of a
 * test. Sanitizers have a heap of their own, and find more. */
#ifndef SUPPORT_HEAP_H
#define SUPPORT_HEAP_H

#include "tests/support/cmocka.h"

#include <stdatomic.h>
#include <stdlib.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static atomic_long heap_blocks;

/* What these stand in front of. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t n);
void __libc_free(void *at);

void *malloc(size_t n)
{
    void *at = __libc_malloc(n);

    (void)atomic_fetch_add(&heap_blocks, at != NULL);
    return at;
}

void *calloc(size_t n, size_t size)
{
    void *at = __libc_calloc(n, size);

    (void)atomic_fetch_add(&heap_blocks, at != NULL);
    return at;
}

void *realloc(void *at, size_t n)
{
    void *grown = __libc_realloc(at, n);

    (void)atomic_fetch_add(&heap_blocks, (at == NULL && grown != NULL) - (at != NULL && n == 0));
    return grown;
}

void free(void *at)
{
    (void)atomic_fetch_sub(&heap_blocks, at != NULL);
    __libc_free(at);
}

static inline long heap_in_use(void)
{
    return atomic_load(&heap_blocks);
}

#else

static inline long heap_in_use(void)
{
    return 0;
}

#endif

/* Fails the test when a run of `what` keeps a block. The first ones may: they fill what stays for
 * good. */
static inline void heap_is_given_back(void (*what)(void *self), void *self)
{
    enum { FIRST = 5, MOST = 20 };

    for (int round = 0; round < MOST; round++) {
        const long before = heap_in_use();
        what(self);
        if (round >= FIRST && heap_in_use() <= before) {
            return;
        }
    }
    fail_msg("each run keeps memory");
}
#endif
