/*
 * A group of agent processes that are supervised together, by the rules of an OTP supervisor. Pure:
 * events come in with `now`, orders go out; the members' own states are policy.h's. The owner keeps
 * the members in their order, tells of crashes and ends, and then carries out group_next until it
 * returns false.
 *
 *   strategy       after the crash of a member
 *   one_for_one    it is restarted
 *   one_for_all    all others stop, last first; then all start, first first
 *   rest_for_one   those after it stop, last first; then it and they start, first first
 *
 *   start   one after the other: the next one when those before it have registered
 *   stop    one after the other, last first
 *   limit   the crash that is the intensity-th within the period: all members stop, last first, and
 *           the group has given up, until an operator starts a member
 *
 * A temporary member that is stopped for others is not started again, a transient one that had
 * ended is. Deviations from OTP: a member that an operator stopped stays so; crashes are counted,
 * not restarts; between crash and restart there is a backoff.
 */
#ifndef SPAWN_GROUP_H
#define SPAWN_GROUP_H

#include "supervisor/spawn/policy.h"

enum group_strategy {
    GROUP_ONE_FOR_ONE,
    GROUP_ONE_FOR_ALL,
    GROUP_REST_FOR_ONE,
    GROUP_STRATEGY_COUNT
};

enum group_state {
    GROUP_RUNS,    /* what is wanted and at rest is started */
    GROUP_STOPS,   /* all members stop */
    GROUP_GAVE_UP, /* the same; only an operator's start leaves it */
    GROUP_STATE_COUNT
};

struct group_settings {
    enum group_strategy strategy;
    uint32_t intensity; /* as in policy.h, of all members together */
    msec period_ms;
    msec backoff_min_ms, backoff_max_ms;
    msec stable_ms; /* after this time without a crash the backoff starts from its minimum */
    uint32_t jitter_permille;
    uint64_t seed;
};

/* Plain values; initialised by group_init. */
struct group {
    struct group_settings set;
    enum group_state state;
    msec stop_by; /* STOPS: then no order is kept any more; MSEC_NEVER = it always is */
    msec crash_at[POLICY_INTENSITY_MAX]; /* a ring */
    msec last_crash;
    uint32_t crashes, streak, restarts;
};

/* A member, in the order of starting. child is borrowed. The rest is the group's, and zero in a new
 * member. */
struct group_member {
    struct policy_child *child;
    bool parked;     /* an operator stopped it */
    bool ended;      /* it ended by itself and is not restarted */
    bool ready;      /* it has registered since the group last started it */
    bool down;       /* it must come to rest before anything starts */
    msec not_before; /* the end of its backoff */
};

enum group_order_type { GROUP_ORDER_START, GROUP_ORDER_STOP };

/* What is to be done with a member: a START or STOP of policy.h. */
struct group_order {
    enum group_order_type type;
    uint32_t ix;
    msec grace_ms; /* STOP: 0 = the member's own */
};

/* Moves settings into their range. */
void group_init(struct group *g, const struct group_settings *set);
/* Other settings for a group that runs. */
void group_change(struct group *g, const struct group_settings *set);

/* An operator starts a member; a group that gave up forgets that, and starts with all of its
 * members that no operator stopped. */
void group_start(struct group *g, struct group_member *members, uint32_t n, uint32_t ix);
/* An operator stops a member: the others go on, and it stays stopped. */
void group_park(struct group_member *members, uint32_t ix);
/* All members stop. stop_by: what then still runs is stopped at once; MSEC_NEVER = no hurry. */
void group_stop(struct group *g, msec stop_by);
/* Member ix is HELD (POLICY_CRASHED). True: the group has given up with it. */
bool group_crashed(struct group *g, struct group_member *members, uint32_t n, uint32_t ix,
                   msec now);
/* Member ix is HELD through no fault of its own (its parent died): it starts again, in order. */
void group_again(struct group_member *members, uint32_t ix, msec now);
/* Member ix has registered (POLICY_CAME_UP). */
void group_came_up(struct group_member *members, uint32_t ix);
/* Member ix has ended by itself (POLICY_ENDED). */
void group_ended(struct group_member *members, uint32_t ix);
/* The next order, which the owner carries out before it asks again; false = nothing is due. */
bool group_next(const struct group *g, struct group_member *members, uint32_t n, msec now,
                struct group_order *ret);
/* When to ask again although nothing has happened; MSEC_NEVER = not. */
msec group_deadline(const struct group *g, const struct group_member *members, uint32_t n);
/* "one_for_one", "runs"; never NULL. */
const char *group_strategy_name(enum group_strategy strategy);
const char *group_state_name(enum group_state state);
#endif
