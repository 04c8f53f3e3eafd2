/* When a schedule is due: the times that its rule names. Pure. Times are milliseconds since 1970,
 * UTC. */
#ifndef SCHEDULE_RULES_NEXT_H
#define SCHEDULE_RULES_NEXT_H

#include "protocol/base/msec.h"
#include "protocol/zone/zone.h"
#include "supervisor/schedule/rules/cron.h"

enum schedule_kind { SCHEDULE_CRON, SCHEDULE_EVERY, SCHEDULE_AT };

struct schedule_rule {
    enum schedule_kind kind;
    struct cron cron;
    msec every_ms; /* the multiples of it since 1970 */
    msec at_ms;    /* once */
    msec end_ms;   /* no time after it; MSEC_NEVER = no end */
};

/*
 * The first time after `after`. False: there is none.
 *
 * A line of cron is about the clock on the wall of its zone. A time that the clock skips, because
 * it is put forward, comes at the second of that change; a time that it shows twice comes the first
 * time only. A line of every hour (its hours are *) goes by real time instead: its minutes come in
 * both of two equal hours, and none is made up for an hour that is skipped.
 */
bool schedule_next(const struct schedule_rule *rule, const struct zone *zone, msec after,
                   msec *ret);
/* How long after the time `at` the schedule fires: 0 to jitter_ms, always the same for the same
 * seed and time. */
msec schedule_jitter(uint64_t seed, msec at, msec jitter_ms);
#endif
