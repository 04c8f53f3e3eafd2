/*
 * Decides whether to retry a request, and when. Pure: time and random bits are parameters. Headers
 * are untrusted: an absurd Retry-After changes only the delay, within the caps.
 */
#ifndef LLM_RETRY_H
#define LLM_RETRY_H

#include "protocol/base/msec.h"
#include "protocol/base/str.h"

enum { RETRY_AFTER_MAX_MS = 3600 * 1000 };

/* Milliseconds from now: "3", "2.5", or an HTTP date (RFC 9110, 10.2.3) relative to wall_now. At
 * most RETRY_AFTER_MAX_MS; MSEC_NEVER when it is unreadable. */
msec retry_after_read(struct str header, msec wall_now);
/* Reads retry-after-ms: whole or fractional milliseconds; the same caps. */
msec retry_after_ms_read(struct str header);

struct retry_case {
    long status;       /* of the response; 0 = no response */
    msec after;        /* the delay that the server asked for; MSEC_NEVER = none */
    int should;        /* x-should-retry: 1 yes, 0 no, -1 absent */
    uint32_t attempt;  /* the attempt that failed, from 1 */
    uint32_t attempts; /* the maximum */
    msec now, deadline;
    msec base_ms, max_wait_ms;
    uint64_t random_bits; /* random bits */
};

struct retry_verdict {
    bool again;
    msec wait_ms;
};

/* Whether a status is worth a retry: 408, 409, 429, 5xx (529 too), or no response. */
bool retry_status(long status);
/* A delay over max_wait_ms or past the deadline means no retry: another provider may be faster. */
struct retry_verdict retry_decide(const struct retry_case *c);
#endif
