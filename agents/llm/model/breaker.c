#include "agents/llm/model/breaker.h"

bool breaker_allow(struct breaker *b, msec now)
{
    if (b->open_until == 0) {
        return true;
    }
    if (now < b->open_until || now < b->probe_until) {
        return false;
    }
    b->probe_until = msec_add(now, b->cooldown_ms);
    return true;
}

bool breaker_is_open(const struct breaker *b)
{
    return b->open_until != 0;
}

msec breaker_left(const struct breaker *b, msec now)
{
    msec until = b->open_until > b->probe_until ? b->open_until : b->probe_until;

    return until > now ? until - now : 0;
}

void breaker_succeeded(struct breaker *b)
{
    b->failed = 0;
    b->open_until = 0;
    b->probe_until = 0;
}

void breaker_failed(struct breaker *b, msec now, msec pause_ms)
{
    if (b->failures == 0) {
        return;
    }
    b->failed += b->failed < UINT32_MAX;
    if (b->failed >= b->failures || pause_ms > b->cooldown_ms) {
        b->open_until = msec_add(now, pause_ms > b->cooldown_ms ? pause_ms : b->cooldown_ms);
        b->probe_until = 0;
    }
}
