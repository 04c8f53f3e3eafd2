/*
 * The circuit breaker: whether somebody who failed again and again gets work. Pure; one machine for
 * an instance and for an agent (all its instances together).
 *
 *            n failures in a row             due                probe ok             taken
 *   CLOSED -------------------> OPEN -----------------> PROBING -------> HALF_OPEN -------> TRIAL
 *     ^                          ^  <-- no answer, no --'                  |    ^            |  |
 *     |                          '--------- failure -----------------------+----|------------'  |
 *     '-------------------------- success --------------------------------'    '-- undecided --'
 *
 * OPEN lasts `breaker_cooldown_ms`, twice as long each time it opens again without having closed,
 * at most `breaker_cooldown_max_ms`. While OPEN or PROBING, what comes back from attempts of before
 * says nothing new. In HALF_OPEN and TRIAL any verdict counts.
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
    BREAKER_PROBING,   /* a ping is out */
    BREAKER_HALF_OPEN, /* it answered: one attempt may go out */
    BREAKER_TRIAL,     /* that attempt is out */
    BREAKER_STATE_COUNT
};

enum breaker_input {
    BREAKER_IN_SUCCESS,   /* an attempt showed that it works, or fails for reasons of its own */
    BREAKER_IN_FAILURE,   /* an attempt showed that it does not */
    BREAKER_IN_DUE,       /* OPEN: the cooldown is over; PROBING: no answer came in time */
    BREAKER_IN_POSTPONED, /* OPEN and due, but there is nobody who could be asked */
    BREAKER_IN_PROBE_OK,
    BREAKER_IN_PROBE_FAILED,
    BREAKER_IN_TAKEN,     /* an attempt goes out */
    BREAKER_IN_UNDECIDED, /* the trial is over without a verdict */
    BREAKER_INPUT_COUNT
};

enum breaker_verdict { BREAKER_VERDICT_SUCCESS, BREAKER_VERDICT_FAILURE, BREAKER_VERDICT_IGNORED };

struct breaker_limits {
    uint32_t failures; /* in a row, to open; >= 1 */
    msec cooldown_ms;  /* >= 1 */
    msec cooldown_max_ms;
    msec probe_ms; /* how long a probe waits for its answer; >= 1 */
};

struct breaker {
    enum breaker_state state;
    uint32_t failures; /* in a row */
    uint32_t level;    /* how often it has opened since it was closed, as far as that matters */
    msec until;        /* OPEN: end of the cooldown; PROBING: of the waiting; else MSEC_NEVER */
};

struct breaker breaker_closed(void);
/* True when the state changed. Any input in any state is fine. */
bool breaker_move(struct breaker *b, const struct breaker_limits *lim, enum breaker_input in,
                  msec now);
/* New work may go there. */
bool breaker_allows_work(const struct breaker *b);
/* The cooldown after having opened level + 1 times. */
msec breaker_cooldown(const struct breaker_limits *lim, uint32_t level);
/* What the end of an attempt with this class (CLASS_NONE: it did what it should) says. */
enum breaker_verdict breaker_verdict(enum err_class cls);
/* "closed", "open", "half_open"; PROBING, HALF_OPEN and TRIAL are one thing for people. */
const char *breaker_state_name(enum breaker_state s);
#endif
