#include "protocol/link/link_internal.h"

#define PIPE_MASK UINT64_C(0xffffffff)
#define PIPE_UP (UINT64_C(1) << 32)
#define PIPE_SHUT (UINT64_C(1) << 33)
#define PIPE_PAUSED (UINT64_C(1) << 34)
#define PIPE_GENERATION (UINT64_C(1) << 35)
#define GENERATION_SHIFT 35
#define GENERATION_MASK UINT32_C(0x1fffffff)

bool pipe_track_admit(struct pipe_track *t, uint32_t pipe)
{
    uint64_t w = atomic_load(&t->word);
    do {
        if ((w & (PIPE_MASK | PIPE_SHUT | PIPE_PAUSED)) != 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&t->word, &w, w | pipe));
    return true;
}

/* nng may report ADD_POST after REM_POST of the same pipe (N13); then the id does not match. */
bool pipe_track_up(struct pipe_track *t, uint32_t pipe)
{
    uint64_t w = atomic_load(&t->word);
    do {
        if ((w & PIPE_MASK) != pipe || (w & PIPE_UP) != 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&t->word, &w, (w | PIPE_UP) + PIPE_GENERATION));
    return true;
}

bool pipe_track_removed(struct pipe_track *t, uint32_t pipe)
{
    uint64_t w = atomic_load(&t->word);
    uint64_t next = 0;
    do {
        if ((w & PIPE_MASK) != pipe) {
            return false;
        }
        next = w & ~(PIPE_MASK | PIPE_UP);
        if ((w & PIPE_UP) != 0) {
            next += PIPE_GENERATION;
        }
    } while (!atomic_compare_exchange_weak(&t->word, &w, next));
    return true;
}

void pipe_track_shut(struct pipe_track *t)
{
    (void)atomic_fetch_or(&t->word, PIPE_SHUT);
}

bool pipe_track_pause(struct pipe_track *t)
{
    uint64_t w = atomic_load(&t->word);
    do {
        if ((w & PIPE_MASK) != 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&t->word, &w, w | PIPE_PAUSED));
    return true;
}

void pipe_track_resume(struct pipe_track *t)
{
    (void)atomic_fetch_and(&t->word, ~PIPE_PAUSED);
}

bool pipe_track_empty(const struct pipe_track *t)
{
    return (atomic_load(&t->word) & PIPE_MASK) == 0;
}

uint32_t pipe_track_pipe(const struct pipe_track *t)
{
    return (uint32_t)(atomic_load(&t->word) & PIPE_MASK);
}

static uint32_t generation(const struct pipe_track *t)
{
    return (uint32_t)(atomic_load(&t->word) >> GENERATION_SHIFT);
}

bool pipe_track_is_up(const struct pipe_track *t, uint32_t seen_generation)
{
    return (seen_generation & 1u) != 0 && generation(t) == seen_generation;
}

int pipe_track_next(const struct pipe_track *t, uint32_t *seen_generation)
{
    const uint32_t behind = (generation(t) - *seen_generation) & GENERATION_MASK;
    if (behind == 0) {
        return 0;
    }
    if (behind > 3) {
        *seen_generation += (behind - 2) & ~1u;
    }
    *seen_generation = (*seen_generation + 1) & GENERATION_MASK;
    return (*seen_generation & 1u) != 0 ? 1 : -1;
}
