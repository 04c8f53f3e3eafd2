/*
 * A circuit breaker decides whether an instance that keeps failing gets work. The same state
 * machine serves an instance and an agent (all its instances together). Pure.
 *
 *             n failures in a row             due                probe ok             taken
 *    CLOSED -------------------> OPEN -----------------> PROBING -------> HALF_OPEN -------> TRIAL
 *      ^                          ^  <-- no answer, no --'                  |    ^            |  |
 *      |                          '--------- failure -----------------------+----|------------'  |
 *      '-------------------------- success --------------------------------'    '-- undecided --'
 *
 * OPEN lasts `breaker_cooldown_ms`, doubled each time it opens again without having closed, up to
 * `breaker_cooldown_max_ms`. In OPEN and PROBING the results of older attempts are ignored. In
 * HALF_OPEN and TRIAL any verdict counts.
 */
#ifndef REGISTRY_BREAKER_H
#define REGISTRY_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"

enum breaker_state {
    BREAKER_CLOSED,
    BREAKER_OPEN,      /* no work until the cooldown is over */
    BREAKER_PROBING,   /* a ping is outstanding */
    BREAKER_HALF_OPEN, /* the ping was answered: one attempt may start */
    BREAKER_TRIAL,     /* that attempt is outstanding */
    BREAKER_STATE_COUNT
};

enum breaker_input {
    BREAKER_IN_SUCCESS,   /* an attempt succeeded, or failed for a reason of its own */
    BREAKER_IN_FAILURE,   /* an attempt failed because of the instance */
    BREAKER_IN_DUE,       /* OPEN: the cooldown is over; PROBING: no answer came in time */
    BREAKER_IN_POSTPONED, /* OPEN and due, but no instance can be pinged */
    BREAKER_IN_PROBE_OK,
    BREAKER_IN_PROBE_FAILED,
    BREAKER_IN_TAKEN,     /* an attempt starts */
    BREAKER_IN_UNDECIDED, /* the trial ended without a verdict */
    BREAKER_INPUT_COUNT
};

enum breaker_verdict { BREAKER_VERDICT_SUCCESS, BREAKER_VERDICT_FAILURE, BREAKER_VERDICT_IGNORED };

struct breaker_limits {
    uint32_t failures; /* in a row, to open; >= 1 */
    msec cooldown_ms;  /* >= 1 */
    msec cooldown_max_ms;
    msec probe_ms; /* timeout of a probe; >= 1 */
};

struct breaker {
    enum breaker_state state;
    uint32_t failures; /* in a row */
    uint32_t
        level;  /* how often it opened since it was closed, until the cooldown is at its maximum */
    msec until; /* OPEN: end of the cooldown; PROBING: timeout of the probe; else MSEC_NEVER */
};

struct breaker breaker_closed(void);
/* Applies an input. Returns true when the state changed. Every input is valid in every state. */
bool breaker_move(struct breaker *b, const struct breaker_limits *lim, enum breaker_input in,
                  msec now);
/* True when new work may start there. */
bool breaker_allows_work(const struct breaker *b);
/* Returns the cooldown in milliseconds after opening level + 1 times. */
msec breaker_cooldown(const struct breaker_limits *lim, uint32_t level);
/* Maps the class of an ended attempt (CLASS_NONE: success) to a verdict. */
enum breaker_verdict breaker_verdict(enum err_class cls);
/* Returns "closed", "open" or "half_open". PROBING, HALF_OPEN and TRIAL are all "half_open". */
const char *breaker_state_name(enum breaker_state s);
#endif
