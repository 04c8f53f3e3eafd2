#include "agents/sdk/loop/quick.h"

bool quick_may_run(const struct quick *q, msec now)
{
    return now >= q->until;
}

bool quick_took(struct quick *q, uint64_t ns, msec now)
{
    const bool again = q->until > 0 && now < msec_add(q->until, QUICK_PAUSE_MAX_MS);

    q->mean_ns = q->mean_ns - q->mean_ns / QUICK_MEAN_RUNS + ns / QUICK_MEAN_RUNS;
    if (ns < QUICK_RUN_NS && q->mean_ns < QUICK_MEAN_NS) {
        return false;
    }
    q->pause_ms = again ? 2 * q->pause_ms : QUICK_PAUSE_MS;
    q->pause_ms = q->pause_ms > QUICK_PAUSE_MAX_MS ? QUICK_PAUSE_MAX_MS : q->pause_ms;
    q->until = msec_add(now, q->pause_ms);
    q->mean_ns = 0;
    return true;
}
