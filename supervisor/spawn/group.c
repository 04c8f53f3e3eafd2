#include "supervisor/spawn/group.h"

#include <stddef.h>

#include "protocol/base/assert.h"

static const char *const strategy_names[] = {[GROUP_ONE_FOR_ONE] = "one_for_one",
                                             [GROUP_ONE_FOR_ALL] = "one_for_all",
                                             [GROUP_REST_FOR_ONE] = "rest_for_one"};
_Static_assert(sizeof strategy_names / sizeof strategy_names[0] == GROUP_STRATEGY_COUNT,
               "a name per strategy");
static const char *const state_names[] = {
    [GROUP_RUNS] = "runs", [GROUP_STOPS] = "stops", [GROUP_GAVE_UP] = "gave up"};
_Static_assert(sizeof state_names / sizeof state_names[0] == GROUP_STATE_COUNT, "a name per state");

const char *group_strategy_name(enum group_strategy strategy)
{
    return strategy < GROUP_STRATEGY_COUNT ? strategy_names[strategy] : "?";
}

const char *group_state_name(enum group_state state)
{
    return state < GROUP_STATE_COUNT ? state_names[state] : "?";
}

void group_change(struct group *g, const struct group_settings *set)
{
    const uint32_t intensity = g->set.intensity;

    g->set = *set;
    if (g->set.intensity < 1) {
        g->set.intensity = 1;
    }
    if (g->set.intensity > POLICY_INTENSITY_MAX) {
        g->set.intensity = POLICY_INTENSITY_MAX;
    }
    if (g->set.backoff_min_ms < 1) {
        g->set.backoff_min_ms = 1;
    }
    if (g->set.backoff_max_ms < g->set.backoff_min_ms) {
        g->set.backoff_max_ms = g->set.backoff_min_ms;
    }
    if (g->set.intensity != intensity) {
        g->crashes = 0; /* the ring has another length */
    }
}

void group_init(struct group *g, const struct group_settings *set)
{
    *g = (struct group){.state = GROUP_RUNS, .stop_by = MSEC_NEVER};
    group_change(g, set);
}

static bool is_wanted(const struct group_member *m)
{
    return !m->parked && !m->ended;
}

void group_start(struct group *g, struct group_member *members, uint32_t n, uint32_t ix)
{
    ASSERT(ix < n);
    members[ix].parked = false;
    members[ix].ended = false;
    members[ix].not_before = 0;
    if (g->state == GROUP_GAVE_UP) {
        g->state = GROUP_RUNS;
        g->crashes = 0;
        g->streak = 0;
        for (uint32_t i = 0; i < n; i++) {
            /* What is still stopping comes to rest first. */
            members[i].down = policy_is_live(members[i].child);
            members[i].ready = false;
            members[i].ended = false;
            members[i].not_before = 0;
        }
    }
}

void group_park(struct group_member *members, uint32_t ix)
{
    members[ix].parked = true;
    members[ix].down = false;
}

void group_stop(struct group *g, msec stop_by)
{
    g->stop_by = stop_by < g->stop_by || g->state == GROUP_RUNS ? stop_by : g->stop_by;
    if (g->state == GROUP_RUNS) {
        g->state = GROUP_STOPS;
    }
}

/* The members that the crash of one takes with it. */
static void restart_others(const struct group *g, struct group_member *members, uint32_t n,
                           uint32_t ix, msec not_before)
{
    const uint32_t first = g->set.strategy == GROUP_ONE_FOR_ALL ? 0 : ix;

    for (uint32_t i = first; i < n; i++) {
        struct group_member *m = &members[i];
        const bool runs = policy_is_live(m->child) || m->child->state == POLICY_HELD;

        if (i != ix && m->child->set.restart == POLICY_TEMPORARY) {
            m->ended = m->ended || runs;
        } else {
            m->ended = false;
        }
        m->down = policy_is_live(m->child) && !m->parked;
        m->ready = false;
        m->not_before = not_before;
    }
}

bool group_crashed(struct group *g, struct group_member *members, uint32_t n, uint32_t ix, msec now)
{
    struct group_member *m = &members[ix];
    msec not_before;

    ASSERT(ix < n);
    if (g->state != GROUP_RUNS || m->down || m->parked) {
        m->down = false; /* it was to stop anyway */
        return false;
    }
    if (g->streak > 0 && now >= msec_add(g->last_crash, g->set.stable_ms)) {
        g->streak = 0;
    }
    g->streak++;
    g->last_crash = now;
    if (policy_note_crash(g->crash_at, &g->crashes, g->set.intensity, g->set.period_ms, now)) {
        g->state = GROUP_GAVE_UP;
        g->stop_by = MSEC_NEVER;
        return true;
    }
    g->restarts++;
    not_before =
        msec_add(now, policy_backoff(g->set.backoff_min_ms, g->set.backoff_max_ms, g->streak,
                                     g->set.jitter_permille, g->set.seed, g->restarts));
    if (g->set.strategy == GROUP_ONE_FOR_ONE) {
        m->not_before = not_before;
    } else {
        restart_others(g, members, n, ix, not_before);
    }
    return false;
}

void group_again(struct group_member *members, uint32_t ix, msec now)
{
    members[ix].ready = false;
    members[ix].down = false;
    members[ix].not_before = now;
}

void group_came_up(struct group_member *members, uint32_t ix)
{
    members[ix].ready = true;
}

void group_ended(struct group_member *members, uint32_t ix)
{
    members[ix].ended = true;
    members[ix].down = false;
}

static struct group_order stop_order(uint32_t ix, msec grace_ms)
{
    return (struct group_order){.type = GROUP_ORDER_STOP, .ix = ix, .grace_ms = grace_ms};
}

/* It was told to end, and will rest then. */
static bool is_stopping(const struct policy_child *child)
{
    return child->state == POLICY_STOPPING && child->then == POLICY_THEN_REST && !child->drains;
}

/* STOPS, GAVE_UP: last first, the next one when the one after it is at rest. */
static bool next_of_all(const struct group *g, const struct group_member *members, uint32_t n,
                        msec now, struct group_order *ret)
{
    const bool hurry = now >= g->stop_by;

    for (uint32_t i = n; i-- > 0;) {
        const struct policy_child *child = members[i].child;

        if (child->state == POLICY_HELD) {
            *ret = stop_order(i, 0);
            return true;
        }
        if (policy_is_live(child) && !is_stopping(child)) {
            const msec left = hurry ? 1 : g->stop_by - now;
            *ret = stop_order(i, g->stop_by == MSEC_NEVER || left > child->set.grace_ms
                                     ? child->set.grace_ms
                                     : left);
            return true;
        }
        if (policy_is_live(child) && !hurry) {
            return false;
        }
    }
    return false;
}

/* What is to be at rest before anything starts: last first. *ret_waits: one of them is stopping. */
static bool next_down(struct group_member *members, uint32_t n, bool *ret_waits,
                      struct group_order *ret)
{
    *ret_waits = false;
    for (uint32_t i = n; i-- > 0;) {
        struct group_member *m = &members[i];

        m->down = m->down && policy_is_live(m->child);
        if (!m->down) {
            continue;
        }
        if (is_stopping(m->child)) {
            *ret_waits = true;
            return false;
        }
        *ret = stop_order(i, 0);
        return true;
    }
    return false;
}

/* A member that stops the ones after it from being started: it was not ready yet. */
static bool holds_up(const struct group_member *m)
{
    return is_wanted(m) && !m->ready;
}

bool group_next(const struct group *g, struct group_member *members, uint32_t n, msec now,
                struct group_order *ret)
{
    bool waits;

    if (g->state != GROUP_RUNS) {
        return next_of_all(g, members, n, now, ret);
    }
    if (next_down(members, n, &waits, ret)) {
        return true;
    }
    for (uint32_t i = 0; i < n && !waits; i++) {
        const struct group_member *m = &members[i];

        if (is_wanted(m) && !policy_is_live(m->child) && now >= m->not_before) {
            *ret = (struct group_order){.type = GROUP_ORDER_START, .ix = i};
            return true;
        }
        waits = holds_up(m);
    }
    return false;
}

msec group_deadline(const struct group *g, const struct group_member *members, uint32_t n)
{
    msec due = MSEC_NEVER;

    if (g->state != GROUP_RUNS) {
        for (uint32_t i = 0; i < n; i++) {
            const struct policy_child *child = members[i].child;
            if (policy_is_live(child) && !is_stopping(child)) {
                due = g->stop_by;
            }
        }
        return due;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct group_member *m = &members[i];

        if (m->down && policy_is_live(m->child)) {
            return MSEC_NEVER; /* its end comes first */
        }
        if (is_wanted(m) && !policy_is_live(m->child)) {
            due = m->not_before < due ? m->not_before : due;
        }
        if (holds_up(m)) {
            break;
        }
    }
    return due;
}
