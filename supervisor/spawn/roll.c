#include "supervisor/spawn/roll.h"

#include <stddef.h>

const char *roll_phase_name(const struct roll *roll)
{
    static const char *const names[] = {[ROLL_WAITS] = "waits to restart",
                                        [ROLL_DRAINS] = "drains",
                                        [ROLL_STOPS] = "stops",
                                        [ROLL_STARTS] = "starts again"};

    return roll->intent == ROLL_KEEP ? "" : names[roll->phase];
}

static bool order(struct roll_order *ret, enum roll_order_type type, uint32_t ix)
{
    *ret = (struct roll_order){.type = type, .ix = ix};
    return true;
}

/* From its drain to its end. */
static bool is_going(const struct roll_process *p)
{
    return p->roll->phase == ROLL_DRAINS || p->roll->phase == ROLL_STOPS;
}

/* Whether the agent can spare this one: another one is up, or there is no other. */
static bool can_be_spared(const struct roll_process *of, uint32_t n, uint32_t ix)
{
    bool others = false;

    for (uint32_t i = 0; i < n; i++) {
        const struct roll *r = of[i].roll;

        if (i == ix || r->intent == ROLL_STOP || r->intent == ROLL_REMOVE) {
            continue;
        }
        if (of[i].up && !is_going(&of[i])) {
            return true;
        }
        others = others || of[i].live;
    }
    return !others;
}

static bool restart_under_way(const struct roll_process *of, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (of[i].roll->intent == ROLL_RESTART && of[i].roll->phase != ROLL_WAITS) {
            return true;
        }
    }
    return false;
}

static bool begin(const struct roll_process *of, uint32_t n, uint32_t ix, struct roll_order *ret)
{
    struct roll *r = of[ix].roll;

    if (r->intent == ROLL_RESTART &&
        (restart_under_way(of, n) || (of[ix].up && !can_be_spared(of, n, ix)))) {
        return false;
    }
    r->phase = of[ix].live ? ROLL_DRAINS : ROLL_STOPS;
    return order(ret, ROLL_ORDER_DRAIN, ix);
}

/* No process of it is left. */
static bool ended(const struct roll_process *p, uint32_t ix, struct roll_order *ret)
{
    const enum roll_intent intent = p->roll->intent;

    if (intent == ROLL_RESTART) {
        p->roll->phase = ROLL_STARTS;
        return order(ret, ROLL_ORDER_START, ix);
    }
    *p->roll = (struct roll){.intent = ROLL_KEEP};
    return order(ret, intent == ROLL_REMOVE ? ROLL_ORDER_REMOVE : ROLL_ORDER_DONE, ix);
}

static bool started(const struct roll_process *of, uint32_t n, uint32_t ix, struct roll_order *ret)
{
    if (of[ix].failed) {
        for (uint32_t i = 0; i < n; i++) {
            if (of[i].roll->intent == ROLL_RESTART) {
                *of[i].roll = (struct roll){.intent = ROLL_KEEP};
            }
        }
        return order(ret, ROLL_ORDER_HALTED, ix);
    }
    if (!of[ix].up) {
        return false;
    }
    *of[ix].roll = (struct roll){.intent = ROLL_KEEP};
    return order(ret, ROLL_ORDER_DONE, ix);
}

static bool next_of(const struct roll_process *of, uint32_t n, uint32_t ix, struct roll_order *ret)
{
    const struct roll_process *p = &of[ix];

    switch (p->roll->phase) {
    case ROLL_WAITS:
        return begin(of, n, ix, ret);
    case ROLL_DRAINS:
        if (!p->live) {
            return ended(p, ix, ret);
        }
        if (p->busy > 0) {
            return false;
        }
        p->roll->phase = ROLL_STOPS;
        return order(ret, ROLL_ORDER_STOP, ix);
    case ROLL_STOPS:
        return !p->live && ended(p, ix, ret);
    case ROLL_STARTS:
        return started(of, n, ix, ret);
    }
    return false;
}

bool roll_next(const struct roll_process *of, uint32_t n, struct roll_order *ret)
{
    /* Restarts of what is not up first: they cost nothing. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            if (of[i].roll->intent != ROLL_KEEP && (pass == 1 || !of[i].up) &&
                next_of(of, n, i, ret)) {
                return true;
            }
        }
    }
    return false;
}
