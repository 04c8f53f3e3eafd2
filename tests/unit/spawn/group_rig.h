/* Members of a group with processes that exist in numbers only: what the group orders happens, and
 * each start and end is a letter of the trace. */
#ifndef TESTS_UNIT_SPAWN_GROUP_RIG_H
#define TESTS_UNIT_SPAWN_GROUP_RIG_H

#include <stdio.h>
#include <string.h>

#include "supervisor/spawn/group.h"
#include "tests/support/cmocka.h"

enum { RIG_MAX = 6, RIG_TRACE = 4096 };

struct rig {
    struct group group;
    struct policy_child children[RIG_MAX];
    struct group_member members[RIG_MAX];
    uint32_t n;
    msec now;
    bool gave_up;
    char trace[RIG_TRACE]; /* "+a +b -b ": member a was started, b was, b was told to end */
};

static inline void rig_init(struct rig *r, enum group_strategy strategy,
                            const enum policy_restart *restart, uint32_t n)
{
    const struct group_settings set = {.strategy = strategy,
                                       .intensity = 3,
                                       .period_ms = 10000,
                                       .backoff_min_ms = 100,
                                       .backoff_max_ms = 1000,
                                       .stable_ms = 30000};

    *r = (struct rig){.n = n, .now = 1000};
    group_init(&r->group, &set);
    for (uint32_t i = 0; i < n; i++) {
        struct policy_settings policy = policy_defaults();
        policy.restart = restart[i];
        policy.grouped = true;
        policy_init(&r->children[i], &policy);
        r->members[i].child = &r->children[i];
    }
}

static inline void rig_note(struct rig *r, char what, uint32_t ix)
{
    const size_t at = strlen(r->trace);

    if (at + 4 < sizeof r->trace) {
        (void)snprintf(r->trace + at, sizeof r->trace - at, "%c%c ", what, (char)('a' + ix));
    }
}

static inline void rig_child(struct rig *r, uint32_t ix, const struct policy_event *ev)
{
    struct policy_commands out;

    policy_handle(&r->children[ix], ev, &out);
    for (uint32_t i = 0; i < out.n; i++) {
        if (out.at[i] == POLICY_SPAWN) {
            rig_note(r, '+', ix);
        } else if (out.at[i] == POLICY_TERM) {
            rig_note(r, '-', ix);
        } else if (out.at[i] == POLICY_CAME_UP) {
            group_came_up(r->members, ix);
        } else if (out.at[i] == POLICY_ENDED) {
            group_ended(r->members, ix);
        } else if (out.at[i] == POLICY_CRASHED) {
            r->gave_up = group_crashed(&r->group, r->members, r->n, ix, r->now) || r->gave_up;
        }
    }
}

static inline void rig_send(struct rig *r, uint32_t ix, enum policy_event_type type, bool clean)
{
    rig_child(r, ix, &(struct policy_event){.type = type, .now = r->now, .clean = clean});
}

/* Carries out what is due now; returns how many orders there were. */
static inline uint32_t rig_orders(struct rig *r)
{
    struct group_order order;
    uint32_t n = 0;

    while (group_next(&r->group, r->members, r->n, r->now, &order)) {
        assert_true(n++ < 100); /* each order changes something */
        rig_child(r, order.ix,
                  &(struct policy_event){.type = order.type == GROUP_ORDER_START ? POLICY_ON_START
                                                                                 : POLICY_ON_STOP,
                                         .now = r->now,
                                         .grace_ms = order.grace_ms});
    }
    return n;
}

/* What starts registers, what is to end ends, and time passes, until nothing is due. */
static inline void rig_settle(struct rig *r)
{
    for (int turn = 0; turn < 1000; turn++) {
        const msec due = group_deadline(&r->group, r->members, r->n);
        bool moved = rig_orders(r) > 0;

        for (uint32_t i = 0; i < r->n; i++) {
            if (r->children[i].state == POLICY_STARTING) {
                rig_send(r, i, POLICY_ON_REGISTERED, false);
                moved = true;
                break;
            }
            if (r->children[i].state == POLICY_STOPPING) {
                rig_send(r, i, POLICY_ON_EXITED, false);
                moved = true;
                break;
            }
        }
        if (!moved && due == MSEC_NEVER) {
            return;
        }
        r->now = !moved && due > r->now ? due : r->now;
    }
    fail_msg("the group does not come to rest: %s", r->trace);
}

/* The trace since the last call. */
static inline const char *rig_trace(struct rig *r)
{
    static char last[RIG_TRACE];

    (void)snprintf(last, sizeof last, "%s", r->trace);
    r->trace[0] = 0;
    return last;
}

static inline void rig_end(struct rig *r, uint32_t ix, bool clean)
{
    rig_send(r, ix, POLICY_ON_EXITED, clean);
}
#endif
