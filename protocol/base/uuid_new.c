#include <pthread.h>
#include <sys/random.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/uuid.h"

enum { POOL_IDS = 16 }; /* 256 bytes: getrandom never returns fewer of so few */

static uint32_t pooled;

/* A child process must not use the ids of its parent. */
static void forget_pool(void)
{
    pooled = 0;
}

/* Gets the random bytes of several ids with one system call. The caller holds the lock. */
static struct uuid random_bytes(void)
{
    static struct uuid pool[POOL_IDS];
    static bool registered;

    if (!registered) {
        int rc = pthread_atfork(NULL, NULL, forget_pool);
        ASSERT(rc == 0);
        registered = true;
    }
    if (pooled == 0) {
        ssize_t n = getrandom(pool, sizeof pool, 0);
        ASSERT(n == (ssize_t)sizeof pool);
        pooled = POOL_IDS;
    }
    return pool[--pooled];
}

/* RFC 9562, section 6.2, method 1: 12 bits of counter follow the milliseconds. When the counter
 * overflows, the time advances by one. */
struct uuid uuid_new(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static msec last_ms;
    static uint32_t counter;
    struct uuid id;
    msec ms;
    uint32_t count;

    ms = clock_wall_ms();
    (void)pthread_mutex_lock(&lock);
    id = random_bytes();
    if (ms > last_ms) {
        last_ms = ms;
        counter = id.b[7]; /* a random start in the lower half */
    } else if (++counter > 0xFFF) {
        last_ms++;
        counter = 0;
    }
    ms = last_ms;
    count = counter;
    (void)pthread_mutex_unlock(&lock);
    for (int i = 0; i < 6; i++) {
        id.b[i] = (uint8_t)(ms >> (40 - 8 * i));
    }
    id.b[6] = (uint8_t)(0x70u | (count >> 8));
    id.b[7] = (uint8_t)count;
    id.b[8] = (uint8_t)(0x80u | (id.b[8] & 0x3Fu));
    return id;
}
