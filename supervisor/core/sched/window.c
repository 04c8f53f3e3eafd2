/* Rates of starts. */
#include "supervisor/core/sched/window.h"

#include <stddef.h>

#include "supervisor/core/mutant.h"

/* The start number `i` of those in the ring, from the oldest. */
static msec start_at(const struct core_window *w, uint32_t i)
{
    const uint32_t first = w->used < w->rate.n ? 0 : w->next;
    return w->starts[(first + i) % w->rate.n];
}

static msec end_of(const struct core_window *w, msec start)
{
    return msec_add(start, w->rate.per_ms - (MUTANT(RATE_EARLY) && w->rate.per_ms > 0 ? 1 : 0));
}

void window_set(struct core_window *w, struct core_rate rate, msec *starts)
{
    const struct core_window before = *w;
    const uint32_t n = before.used < rate.n ? before.used : rate.n;
    *w = (struct core_window){.rate = rate, .starts = rate.n > 0 ? starts : NULL};
    for (uint32_t i = 0; i < n; i++) {
        window_add(w, start_at(&before, before.used - n + i));
    }
}

void window_add(struct core_window *w, msec now)
{
    if (w->rate.n == 0) {
        return;
    }
    w->starts[w->next] = now;
    w->next = (w->next + 1) % w->rate.n;
    w->used += w->used < w->rate.n ? 1 : 0;
}

msec window_opens(const struct core_window *w)
{
    return w->rate.n == 0 || w->used < w->rate.n ? 0 : end_of(w, start_at(w, 0));
}

bool window_is_open(const struct core_window *w, msec now)
{
    return window_opens(w) <= now;
}

uint32_t window_room(const struct core_window *w, msec now, uint32_t most)
{
    if (w->rate.n == 0) {
        return most;
    }
    uint32_t room = w->rate.n - w->used;
    for (uint32_t i = 0; i < w->used && room < most && end_of(w, start_at(w, i)) <= now; i++) {
        room++;
    }
    return room < most ? room : most;
}

bool window_is_over(const struct core_window *w, msec now)
{
    return w->used == 0 || end_of(w, start_at(w, w->used - 1)) <= now;
}
