/*
 * The processes of one agent that are restarted, stopped or taken away without losing their work.
 * Pure: what is comes in, orders go out.
 *
 *   WAITS ---> DRAINS ---------> STOPS ------> (stop, remove) done
 *              no new work       told to end    (restart) STARTS ---> registered: done
 *
 * Stops and removals begin at once. Restarts go one after the other: the next one begins while
 * another process of the agent is up, so that the agent is never without one when it has two. A
 * restart whose new process is given up halts the others: they keep what they have.
 */
#ifndef SPAWN_ROLL_H
#define SPAWN_ROLL_H

#include <stdbool.h>
#include <stdint.h>

enum roll_intent { ROLL_KEEP, ROLL_RESTART, ROLL_STOP, ROLL_REMOVE };
enum roll_phase { ROLL_WAITS, ROLL_DRAINS, ROLL_STOPS, ROLL_STARTS };

/* What is to happen to a process; zero = nothing. */
struct roll {
    enum roll_intent intent;
    enum roll_phase phase;
};

/* A process as it is now. roll is borrowed. */
struct roll_process {
    struct roll *roll;
    bool live;     /* a process of it exists, or was asked for */
    bool up;       /* it is registered, and not to end */
    bool failed;   /* given up */
    uint32_t busy; /* steps that it has */
};

enum roll_order_type {
    ROLL_ORDER_DRAIN, /* no new work for it */
    ROLL_ORDER_STOP,  /* it has no work left: it is told to end */
    ROLL_ORDER_START,
    ROLL_ORDER_REMOVE, /* it is forgotten */
    ROLL_ORDER_DONE,   /* nothing is left to do for it: for the log, as is the next */
    ROLL_ORDER_HALTED  /* its new process was given up; the other restarts are called off */
};

struct roll_order {
    enum roll_order_type type;
    uint32_t ix;
};

/* The next order, which the caller carries out before it asks again; false = nothing is due. */
bool roll_next(const struct roll_process *of, uint32_t n, struct roll_order *ret);
/* "drains"; never NULL. */
const char *roll_phase_name(const struct roll *roll);
#endif
