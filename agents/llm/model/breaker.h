/*
 * Leaves an endpoint alone that fails and fails: closed, after `failures` calls in a row open for
 * `cooldown_ms`, then one call may try. A call is one question, with all its attempts. Pure.
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
    msec probe_until; /* somebody is trying; 0 = nobody */
};

/* Whether a call may go out now. True for one caller when the time is over: who got it must say how
 * it went; when it never says, the next one may after another cooldown. */
bool breaker_allow(struct breaker *b, msec now);
/* Whether the endpoint is suspect: then a call that is on its way asks no second time. */
bool breaker_is_open(const struct breaker *b);
/* How long until breaker_allow may say yes; 0 = now. */
msec breaker_left(const struct breaker *b, msec now);
void breaker_succeeded(struct breaker *b);
/* pause_ms: what the server asked for, 0 = nothing: longer than a cooldown, it counts. */
void breaker_failed(struct breaker *b, msec now, msec pause_ms);
#endif
