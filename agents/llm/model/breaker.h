/*
 * A circuit breaker for an endpoint. Closed; after `failures` failed calls in a row open for
 * `cooldown_ms`; then one call may probe it. A call counts once, with all its attempts. Pure.
 */
#ifndef LLM_BREAKER_H
#define LLM_BREAKER_H

#include "protocol/base/msec.h"

#include <stdbool.h>

struct breaker {
    uint32_t failures; /* in a row that open it; 0 = never */
    msec cooldown_ms;
    uint32_t failed;  /* in a row */
    msec open_until;  /* 0 = closed */
    msec probe_until; /* end of the current probe; 0 = none */
};

/* Whether a call may go out now. After the cooldown it is true for one caller, which must report
 * its outcome. Without a report the next caller may probe after another cooldown. */
bool breaker_allow(struct breaker *b, msec now);
/* Whether the breaker is open or probing: then a call in progress must not retry. */
bool breaker_is_open(const struct breaker *b);
/* How long until breaker_allow may return true; 0 = now. */
msec breaker_left(const struct breaker *b, msec now);
void breaker_succeeded(struct breaker *b);
/* pause_ms: the delay that the server asked for, 0 = none. It replaces a shorter cooldown. */
void breaker_failed(struct breaker *b, msec now, msec pause_ms);
#endif
