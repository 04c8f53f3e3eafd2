/*
 * How many processes an agent has, by the steps that wait for it. Pure: time and numbers come in.
 *
 *   up     while at least `queue` steps wait, all processes are up and there are fewer than max,
 *          for up_ms without a break: one more
 *   down   while no step waits, the steps at work would fit into one process less and there are
 *          more than min, for down_ms without a break: one less
 *
 * Each change begins both times again: the next one is at least as far away.
 */
#ifndef SPAWN_SCALE_H
#define SPAWN_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"

struct scale_settings {
    uint32_t min, max; /* 1 <= min <= max */
    uint32_t queue;    /* >= 1 */
    msec up_ms, down_ms;
};

/* Since when the conditions hold; initialise both to MSEC_NEVER. */
struct scale {
    msec busy_since, idle_since;
};

struct scale_now {
    uint32_t processes; /* that are to run */
    bool all_up;        /* each of them is registered */
    uint32_t queued;    /* steps that wait for the agent */
    uint32_t busy;      /* steps that it has */
    uint32_t capacity;  /* steps at a time in one process */
};

/* 1, 0 or -1: how many processes more. */
int scale_step(struct scale *s, const struct scale_settings *set, const struct scale_now *is,
               msec now);
/* When to ask again although nothing has happened. */
msec scale_deadline(const struct scale *s, const struct scale_settings *set);
#endif
