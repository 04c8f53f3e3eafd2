/*
 * The guard of one quick skill: for how long its handler has run on the loop's thread, and whether
 * it may. Time is a parameter.
 *
 * A handler is demoted to the workers when one run takes QUICK_RUN_NS or more, or when the moving
 * average of its runs is QUICK_MEAN_NS or more. After a pause it may try again, because a machine
 * that stops a thread for 20 ms makes every handler look slow. Each further demotion doubles the
 * pause; after QUICK_PAUSE_MAX_MS without one it is the first again.
 */
#ifndef SDK_LOOP_QUICK_H
#define SDK_LOOP_QUICK_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"

enum {
    QUICK_RUN_NS = 20 * 1000 * 1000,
    QUICK_MEAN_NS = 1000 * 1000,
    QUICK_MEAN_RUNS = 16, /* the weight of the newest run in the average is 1 / this */
    QUICK_PAUSE_MS = 60 * 1000,
    QUICK_PAUSE_MAX_MS = 60 * 60 * 1000
};

struct quick {
    uint64_t mean_ns;
    msec until;    /* it runs on the workers until then; 0 = it was never demoted */
    msec pause_ms; /* of the last demotion */
};

bool quick_may_run(const struct quick *q, msec now);
/* A run on the loop's thread took so long. True: it is demoted by that. */
bool quick_took(struct quick *q, uint64_t ns, msec now);
#endif
