#include "supervisor/gateway/webhook/progress.h"

#include <stdio.h>

void hook_taken(struct hook_progress *p, uint64_t seq)
{
    if (seq != p->seq) {
        p->id[0] = 0;
    }
    p->seq = seq;
    p->tries = 0;
    p->failed = 0;
    p->due = 0;
    p->why[0] = 0;
}

static void keep_why(struct hook_progress *p, unsigned status, const char *why)
{
    if (status == 0) {
        (void)snprintf(p->why, sizeof p->why, "%s", why[0] != 0 ? why : "no answer");
    } else {
        (void)snprintf(p->why, sizeof p->why, "the receiver answered with status %u", status);
    }
}

static msec wait_of(uint32_t tries, uint64_t retry_after_ms, uint32_t random)
{
    const msec most = HOOK_WAIT_MAX_MS;
    msec wait = tries > 14 ? most : (msec)HOOK_WAIT_MS << (tries - 1);

    wait = wait < most ? wait : most;
    wait = wait - wait / 4 + random % (wait / 2 + 1);
    if (retry_after_ms > wait) {
        wait = retry_after_ms < most ? retry_after_ms : most;
    }
    return wait;
}

void hook_failed(struct hook_progress *p, msec now, unsigned status, uint64_t retry_after_ms,
                 const char *why, uint32_t random)
{
    keep_why(p, status, why);
    if (p->tries == 0 || p->failed > now) {
        p->failed = now;
    }
    p->tries++;
    if (status == HTTP_GONE || now - p->failed >= HOOK_PARK_MS) {
        p->parked = true;
        return;
    }
    p->due = now + wait_of(p->tries, retry_after_ms, random);
    if (p->due > p->failed + HOOK_PARK_MS) {
        p->due = p->failed + HOOK_PARK_MS;
    }
}

void hook_resend(struct hook_progress *p, uint64_t from_seq)
{
    hook_taken(p, from_seq > 0 ? from_seq - 1 : p->seq);
    p->parked = false;
}

msec hook_due(const struct hook_progress *p, msec now)
{
    const msec most = now + HOOK_WAIT_MAX_MS + HOOK_WAIT_MAX_MS / 4;

    if (p->parked) {
        return MSEC_NEVER;
    }
    if (p->tries == 0) {
        return 0;
    }
    return p->due < most ? p->due : most;
}
