/*
 * Random numbers for tests: splitmix64 (Steele et al. 2014). The seed is fixed unless
 * BATON_TEST_SEED says otherwise (a number, or "random"), and is printed, so that a failure can be
 * repeated.
 */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct rng {
    uint64_t state;
};

static inline struct rng rng_seeded(const char *test)
{
    struct rng r = {0xBA70u};
    const char *seed = getenv("BATON_TEST_SEED");

    if (seed != NULL && strcmp(seed, "random") == 0) {
        if (getrandom(&r.state, sizeof r.state, 0) != (ssize_t)sizeof r.state) {
            abort();
        }
    } else if (seed != NULL) {
        r.state = strtoull(seed, NULL, 0);
    }
    (void)fprintf(stderr, "%s: BATON_TEST_SEED=%" PRIu64 "\n", test, r.state);
    return r;
}

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* 0 <= result < n; n > 0. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}
#endif
