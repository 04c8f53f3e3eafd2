#include "tests/unit/core/run/plan_life.h"

#define TO(name) (1u << LIFE_##name)
static const struct {
    const char *name;
    uint32_t to;
} lives[] = {
    [LIFE_NEW] = {"new", TO(PLANNING) | TO(UNPLANNED) | TO(SIGNOFF) | TO(RUNNING) | TO(OVER)},
    /* New: it has its steps, or has none and will not get any. */
    [LIFE_PLANNING] = {"planning", TO(NEW) | TO(OVER)},
    [LIFE_UNPLANNED] = {"unplanned", TO(NEW) | TO(OVER)},
    [LIFE_SIGNOFF] = {"signoff", TO(NEW) | TO(OVER)},
    /* Answered: there is nothing left to ask with. */
    [LIFE_RUNNING] = {"running", TO(ANSWERING) | TO(ANSWERED) | TO(UNDOING) | TO(OVER)},
    [LIFE_ANSWERING] = {"answering", TO(RUNNING) | TO(ANSWERED) | TO(UNDOING) | TO(OVER)},
    [LIFE_ANSWERED] = {"answered", TO(UNDOING) | TO(OVER)},
    [LIFE_UNDOING] = {"undoing", TO(UNDONE)},
    [LIFE_UNDONE] = {"undone", TO(OVER)},
    [LIFE_OVER] = {"over", 0},
};
#undef TO
_Static_assert(sizeof lives / sizeof lives[0] == LIFE_COUNT, "all");

bool plan_life_may(enum plan_life from, enum plan_life to)
{
    return (lives[from].to & 1u << to) != 0;
}

const char *plan_life_name(enum plan_life life)
{
    return lives[life].name;
}

enum plan_life plan_life(const struct run *run)
{
    if (plan_is_final(run->status)) {
        return LIFE_OVER;
    }
    if (run->job != JOB_NONE) {
        return run->job == JOB_PLANNING       ? LIFE_PLANNING
               : run->job == JOB_COMPENSATION ? LIFE_UNDOING
                                              : LIFE_ANSWERING;
    }
    if (run->undone != 0) {
        return LIFE_UNDONE;
    }
    if (run->status != PLAN_PENDING) {
        return run->answered ? LIFE_ANSWERED : LIFE_RUNNING;
    }
    return (run->paused & 1u << PAUSE_PLANNING) != 0  ? LIFE_UNPLANNED
           : (run->paused & 1u << PAUSE_SIGNOFF) != 0 ? LIFE_SIGNOFF
                                                      : LIFE_NEW;
}
