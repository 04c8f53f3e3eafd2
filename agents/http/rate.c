#include <poll.h>

#include "agents/http/call.h"
#include "protocol/base/clock.h"

enum { PIECE_MS = 25 };

bool http_pause(struct bt_step *step, msec until, msec deadline)
{
    msec now = clock_mono_ms();

    while (now < until) {
        const msec left = until - now;
        if (bt_step_cancelled(step) || now >= deadline || until >= deadline) {
            return false;
        }
        (void)poll(NULL, 0, left < PIECE_MS ? (int)left : PIECE_MS);
        now = clock_mono_ms();
    }
    return !bt_step_cancelled(step);
}

bool http_rate_wait(struct http_rate *rate, struct bt_step *step, msec deadline)
{
    const msec now = clock_mono_ms();
    msec mine = now;

    if (rate->n == 0) {
        return true;
    }
    /* The place is taken before the wait, so that the order of threads does not matter. */
    (void)pthread_mutex_lock(&rate->lock);
    if (rate->at[rate->next] != 0 && rate->at[rate->next] + rate->per_ms > now) {
        mine = rate->at[rate->next] + rate->per_ms;
    }
    if (mine < deadline) {
        rate->at[rate->next] = mine;
        rate->next = (rate->next + 1) % rate->n;
    }
    (void)pthread_mutex_unlock(&rate->lock);
    return mine < deadline && http_pause(step, mine, deadline);
}
