/* A rate: at most n starts in any window of per_ms. It remembers the last n starts. Pure. */
#ifndef CORE_WINDOW_H
#define CORE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"

struct core_rate {
    uint32_t n; /* 0 = no limit */
    msec per_ms;
};

struct core_window {
    struct core_rate rate;
    msec *starts;  /* a ring of rate.n; the owner's memory */
    uint32_t used; /* starts in it */
    uint32_t next; /* where the next one is put: the oldest when the ring is full */
};

/* Another rate, or none (n 0). `starts` has n elements, and gets the last starts of before. */
void window_set(struct core_window *w, struct core_rate rate, msec *starts);
void window_add(struct core_window *w, msec now);
/* When the next start is allowed: 0 = now or earlier than any start. */
msec window_opens(const struct core_window *w);
bool window_is_open(const struct core_window *w, msec now);
/* How many may start at once, at most `most`. */
uint32_t window_room(const struct core_window *w, msec now, uint32_t most);
/* No start of before matters any more. */
bool window_is_over(const struct core_window *w, msec now);
#endif
