/*
 * Whether to ask once more, and when. Pure: time and chance are parameters. Headers are hostile:
 * a Retry-After of a billion seconds, of yesterday, or of nonsense changes nothing but the wait,
 * within the caps.
 */
#ifndef LLM_RETRY_H
#define LLM_RETRY_H

#include "protocol/base/msec.h"
#include "protocol/base/str.h"

enum { RETRY_AFTER_MAX_MS = 3600 * 1000 };

/* Milliseconds from now: "3", "2.5", or an HTTP date (RFC 9110, 10.2.3) against wall_now. At most
 * RETRY_AFTER_MAX_MS; MSEC_NEVER when it says nothing that can be read. */
msec retry_after_read(struct str header, msec wall_now);
/* retry-after-ms: whole or broken milliseconds; the same caps. */
msec retry_after_ms_read(struct str header);

struct retry_case {
    long status;       /* of the answer; 0 = none came */
    msec after;        /* what the server asked for; MSEC_NEVER = nothing */
    int should;        /* x-should-retry: 1 yes, 0 no, -1 not said */
    uint32_t attempt;  /* the one that failed, from 1 */
    uint32_t attempts; /* at most so many */
    msec now, deadline;
    msec base_ms, max_wait_ms;
    uint64_t random_bits; /* random bits */
};

struct retry_verdict {
    bool again;
    msec wait_ms;
};

/* Whether a status is worth another try at all: 408, 409, 429, 5xx (529 too), or no answer. */
bool retry_status(long status);
/* A wait over max_wait_ms or past the deadline is no retry: another provider may do better. */
struct retry_verdict retry_decide(const struct retry_case *c);
#endif
