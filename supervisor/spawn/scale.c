#include "supervisor/spawn/scale.h"

/* Whether it has held for so long; *since is when it began to. */
static bool held(bool is, msec *since, msec for_ms, msec now)
{
    if (!is) {
        *since = MSEC_NEVER;
        return false;
    }
    *since = *since == MSEC_NEVER ? now : *since;
    return now >= msec_add(*since, for_ms);
}

int scale_step(struct scale *s, const struct scale_settings *set, const struct scale_now *is,
               msec now)
{
    const bool wanted = is->queued >= set->queue && is->all_up && is->processes < set->max;
    const bool spare = is->queued == 0 && is->processes > set->min &&
                       is->busy <= (is->processes - 1) * is->capacity;
    int step = 0;

    if (is->processes < set->min || is->processes > set->max) {
        step = is->processes < set->min ? 1 : -1;
    } else if (held(wanted, &s->busy_since, set->up_ms, now)) {
        step = 1;
    } else if (held(spare, &s->idle_since, set->down_ms, now)) {
        step = -1;
    }
    if (step != 0) {
        *s = (struct scale){.busy_since = MSEC_NEVER, .idle_since = MSEC_NEVER};
    }
    return step;
}

msec scale_deadline(const struct scale *s, const struct scale_settings *set)
{
    const msec up = s->busy_since == MSEC_NEVER ? MSEC_NEVER : msec_add(s->busy_since, set->up_ms);
    const msec down =
        s->idle_since == MSEC_NEVER ? MSEC_NEVER : msec_add(s->idle_since, set->down_ms);

    return up < down ? up : down;
}
