/* The state machine of one circuit breaker. */
#include "registry/breaker.h"

#include "protocol/base/assert.h"

struct breaker breaker_closed(void)
{
    return (struct breaker){.state = BREAKER_CLOSED, .until = MSEC_NEVER};
}

bool breaker_allows_work(const struct breaker *b)
{
    return b->state == BREAKER_CLOSED || b->state == BREAKER_HALF_OPEN;
}

msec breaker_cooldown(const struct breaker_limits *lim, uint32_t level)
{
    msec ms = lim->cooldown_ms;
    for (uint32_t i = 0; i < level && ms < lim->cooldown_max_ms; i++) {
        ms = ms > MSEC_NEVER / 2 ? MSEC_NEVER : ms * 2;
    }
    return ms < lim->cooldown_max_ms ? ms : lim->cooldown_max_ms;
}

/* The state after each input. breaker_move counts the failures in CLOSED. */
static enum breaker_state next_state(enum breaker_state from, enum breaker_input in)
{
    static const uint8_t next[BREAKER_STATE_COUNT][BREAKER_INPUT_COUNT] = {
#define ROW(success, failure, due, postponed, ok, failed, taken, undecided)                        \
    {BREAKER_##success, BREAKER_##failure, BREAKER_##due,   BREAKER_##postponed,                   \
     BREAKER_##ok,      BREAKER_##failed,  BREAKER_##taken, BREAKER_##undecided}
        [BREAKER_CLOSED] = ROW(CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED),
        [BREAKER_OPEN] = ROW(OPEN, OPEN, PROBING, OPEN, OPEN, OPEN, OPEN, OPEN),
        [BREAKER_PROBING] = ROW(PROBING, PROBING, OPEN, PROBING, HALF_OPEN, OPEN, PROBING, PROBING),
        [BREAKER_HALF_OPEN] =
            ROW(CLOSED, OPEN, HALF_OPEN, HALF_OPEN, HALF_OPEN, HALF_OPEN, TRIAL, HALF_OPEN),
        [BREAKER_TRIAL] = ROW(CLOSED, OPEN, TRIAL, TRIAL, TRIAL, TRIAL, TRIAL, HALF_OPEN),
#undef ROW
    };
    return (enum breaker_state)next[from][in];
}

bool breaker_move(struct breaker *b, const struct breaker_limits *lim, enum breaker_input in,
                  msec now)
{
    const enum breaker_state from = b->state;
    ASSERT((unsigned)from < BREAKER_STATE_COUNT && (unsigned)in < BREAKER_INPUT_COUNT);
    b->state = next_state(from, in);
    if (in == BREAKER_IN_FAILURE && from != BREAKER_OPEN && from != BREAKER_PROBING) {
        b->failures++;
    }
    if (from == BREAKER_CLOSED) {
        b->failures = in == BREAKER_IN_SUCCESS ? 0 : b->failures;
        b->state = b->failures >= lim->failures ? BREAKER_OPEN : BREAKER_CLOSED;
    }
    if (from == BREAKER_OPEN && in == BREAKER_IN_POSTPONED) {
        b->until = msec_add(now, breaker_cooldown(lim, b->level));
    }
    if (b->state == from) {
        return false;
    }
    b->until = MSEC_NEVER;
    if (b->state == BREAKER_CLOSED) {
        *b = breaker_closed();
    } else if (b->state == BREAKER_PROBING) {
        b->until = msec_add(now, lim->probe_ms);
    } else if (b->state == BREAKER_OPEN) {
        /* The level stops where the cooldown reaches its maximum. */
        b->level += from != BREAKER_CLOSED &&
                            breaker_cooldown(lim, b->level) < breaker_cooldown(lim, b->level + 1)
                        ? 1
                        : 0;
        b->until = msec_add(now, breaker_cooldown(lim, b->level));
    }
    return true;
}

enum breaker_verdict breaker_verdict(enum err_class cls)
{
    switch (cls) {
    case CLASS_SERVICE_UNAVAILABLE:
    case CLASS_TIMEOUT:
    case CLASS_AGENT_CRASHED:
    case CLASS_REPLY_LOST:
    case CLASS_PROTOCOL_ERROR:
        return BREAKER_VERDICT_FAILURE;
    case CLASS_RATE_LIMITED: /* the answer itself has a time to retry */
    case CLASS_AGENT_UNAVAILABLE:
    case CLASS_CANCELLED:
    case CLASS_BUDGET_EXCEEDED:
    case CLASS_DEPENDENCY_FAILED:
    case CLASS_LOOP_LIMIT:
        return BREAKER_VERDICT_IGNORED;
    case CLASS_NONE:
    case CLASS_TOOL_NOT_FOUND:
    case CLASS_RESOURCE_NOT_FOUND:
    case CLASS_PERMISSION_DENIED:
    case CLASS_VALIDATION_ERROR:
    case CLASS_VERIFICATION_FAILED:
    case CLASS_UNKNOWN:
    case CLASS_COUNT:
        break;
    }
    return BREAKER_VERDICT_SUCCESS;
}

const char *breaker_state_name(enum breaker_state s)
{
    static const char *const names[] = {
        [BREAKER_CLOSED] = "closed",     [BREAKER_OPEN] = "open",
        [BREAKER_PROBING] = "half_open", [BREAKER_HALF_OPEN] = "half_open",
        [BREAKER_TRIAL] = "half_open",
    };
    _Static_assert(sizeof names / sizeof names[0] == BREAKER_STATE_COUNT, "a name for every state");
    ASSERT((unsigned)s < BREAKER_STATE_COUNT);
    return names[s];
}
