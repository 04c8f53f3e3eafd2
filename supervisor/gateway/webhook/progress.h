/*
 * How far a webhook is: the last event that its receiver has taken, and what comes after a failure.
 * Times are of the wall clock, because a wait lasts over restarts. Pure.
 */
#ifndef GATEWAY_WEBHOOK_PROGRESS_H
#define GATEWAY_WEBHOOK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"
#include "protocol/base/uuid.h"

enum {
    HOOK_WAIT_MS = 1000,             /* after the first failure; then twice as long each time */
    HOOK_WAIT_MAX_MS = 4 * 3600000,  /* and no longer; jitter takes or adds up to a quarter */
    HOOK_PARK_MS = 24 * 3600 * 1000, /* from the first failure: the last try, then it is parked */
    HOOK_WHY_MAX = 160,
    HTTP_GONE = 410
};

struct hook_progress {
    uint64_t seq;               /* the last event that is behind it */
    char id[UUID_TEXT_LEN + 1]; /* its eventId, in a fleet; "" = not known */
    uint32_t tries;             /* of the next event, that failed */
    msec failed, due;           /* tries > 0: when the first one failed, when the next one is due */
    bool parked;                /* nothing is sent before somebody asks for it */
    char why[HOOK_WHY_MAX + 1]; /* of the last failure; "" = none */
};

/* The receiver has taken the event, whose eventId the caller fills in. */
void hook_taken(struct hook_progress *p, uint64_t seq);
/* It has not. status 0: no answer came, and why. random: any number, for the jitter. */
void hook_failed(struct hook_progress *p, msec now, unsigned status, uint64_t retry_after_ms,
                 const char *why, uint32_t random);
/* Goes on at once, parked or not; from_seq 0 = with the event that failed. */
void hook_resend(struct hook_progress *p, uint64_t from_seq);
/* When the next try is due: 0 = now, MSEC_NEVER = parked. A clock that was set back makes nobody
 * wait longer than a wait can be. */
msec hook_due(const struct hook_progress *p, msec now);
#endif
