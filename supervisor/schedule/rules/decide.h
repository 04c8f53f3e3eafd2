/*
 * What a schedule does now. Pure: the caller carries the verdict out, moves the schedule to
 * verdict.cursor in the same commit, and asks again.
 *
 *   states     waits for a time | a time is due | held by an open plan | over
 *   cursor     every time up to it has been decided: fired, or skipped with a reason
 *
 *   a time is due and ...                  skip       cancel            queue      allow
 *   late by more than the catch-up window  skipped    skipped           skipped *  skipped
 *   a later one is due, too                skipped    skipped           -          -
 *   a plan of the schedule is open         skipped    plan cancelled,   held       fires
 *                                                     then held
 *   otherwise                              fires      fires             fires      fires
 *
 *   * not the times from queued_from on: they are in the queue, at most SCHEDULE_QUEUE_MAX
 *
 * Backfill goes through its range when no time is due: with `allow` at once, otherwise while no
 * plan of the schedule is open. The order of times is kept: a time whose jitter has not passed
 * holds those after it.
 */
#ifndef SCHEDULE_RULES_DECIDE_H
#define SCHEDULE_RULES_DECIDE_H

#include "supervisor/schedule/rules/next.h"

enum schedule_overlap { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_CANCEL, OVERLAP_ALLOW };

enum { SCHEDULE_QUEUE_MAX = 100, SCHEDULE_COUNT_MAX = 10000 };

struct schedule_case {
    const struct schedule_rule *rule;
    const struct zone *zone;
    uint64_t seed; /* of the jitter */
    msec jitter_ms, catch_up_ms;
    enum schedule_overlap overlap;
    msec cursor;
    msec queued_from;          /* the times from here on are in the queue; 0 = none are */
    msec back_cursor, back_to; /* the range of a backfill: after the first, up to the second */
    bool open;                 /* a plan of the schedule is */
    msec now;
};

enum schedule_do {
    SCHEDULE_WAIT,   /* until verdict.until */
    SCHEDULE_FIRE,   /* the time `at` */
    SCHEDULE_SKIP,   /* the times from `at` to `last` */
    SCHEDULE_HOLD,   /* until no plan of it is open */
    SCHEDULE_CANCEL, /* the same, after cancelling it */
    SCHEDULE_END     /* there is no other time */
};

enum schedule_why {
    WHY_MISSED,     /* later than the catch-up window allows */
    WHY_SUPERSEDED, /* a later time is due, too */
    WHY_OVERLAP,    /* a plan of the schedule is open */
    WHY_QUEUE_FULL,
    WHY_INVALID, /* no plan could be made of the document; not of this room */
    WHY_COUNT
};

struct schedule_verdict {
    enum schedule_do what;
    enum schedule_why why;
    msec until;
    msec at, last;
    uint32_t count;   /* of the times that are skipped, at most SCHEDULE_COUNT_MAX */
    bool backfill;    /* `at` is one of the range */
    msec cursor;      /* after FIRE and SKIP */
    msec queued_from; /* always */
    msec back_cursor; /* always; = back_to: the backfill is done */
};

void schedule_decide(const struct schedule_case *c, struct schedule_verdict *ret);
#endif
