/* One random generator and one heap of future events, so that a seed determines a run. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

void *sim_need(size_t n, size_t size)
{
    void *at = calloc(n > 0 ? n : 1, size);
    ASSERT(at != NULL);
    return at;
}

void *sim_room(void *at, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return at;
    }
    *cap = *cap == 0 ? 64 : 2 * *cap;
    at = realloc(at, *cap * size);
    ASSERT(at != NULL);
    return at;
}

/* ---- chance: splitmix64 ---- */

uint64_t sim_random(struct sim *s)
{
    s->random += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = s->random;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint32_t sim_range(struct sim *s, uint32_t from, uint32_t to)
{
    ASSERT(from <= to);
    return from + (uint32_t)(sim_random(s) % ((uint64_t)to - from + 1));
}

bool sim_chance(struct sim *s, uint32_t permille)
{
    return sim_random(s) % 1000 < permille;
}

bool sim_fault(struct sim *s, enum fault f)
{
    const bool strikes = s->now < s->quiet && sim_chance(s, s->rate[f]);
    sometimes->faults[f] += strikes ? 1 : 0;
    return strikes;
}

/* ---- future events ---- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void sim_after(struct sim *s, msec delay, struct sim_event ev)
{
    s->queue = sim_room(s->queue, s->n_queue, &s->cap_queue, sizeof *s->queue);
    ev.at = s->now + delay;
    ev.seq = ++s->seq;
    uint32_t at = s->n_queue++;
    while (at > 0 && before(&ev, &s->queue[(at - 1) / 2])) {
        s->queue[at] = s->queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->queue[at] = ev;
}

struct sim_event sim_next(struct sim *s)
{
    const struct sim_event first = s->queue[0];
    const struct sim_event last = s->queue[--s->n_queue];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= s->n_queue) {
            break;
        }
        if (child + 1 < s->n_queue && before(&s->queue[child + 1], &s->queue[child])) {
            child++;
        }
        if (!before(&s->queue[child], &last)) {
            break;
        }
        s->queue[at] = s->queue[child];
        at = child;
    }
    s->queue[at] = last;
    return first;
}
