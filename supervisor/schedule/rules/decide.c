#include "supervisor/schedule/rules/decide.h"

#include "supervisor/core/mutant.h"

static msec due_at(const struct schedule_case *c, msec at)
{
    return msec_add(at, schedule_jitter(c->seed, at, c->jitter_ms));
}

static bool is_late(const struct schedule_case *c, msec at)
{
    const bool queued = c->queued_from != 0 && at >= c->queued_from;

    return !queued && !MUTANT(CATCH_UP_IGNORED) && c->now - due_at(c, at) > c->catch_up_ms;
}

static void skip(struct schedule_verdict *v, enum schedule_why why, msec first, msec last,
                 uint32_t count)
{
    v->what = SCHEDULE_SKIP;
    v->why = why;
    v->at = first;
    v->last = v->cursor = last;
    v->count = count;
}

/* Every time that is too late, from `first` on; so many in one verdict that the clock of a machine
 * may be wrong by years. */
static void skip_missed(const struct schedule_case *c, struct schedule_verdict *v, msec first)
{
    uint32_t n = 1;
    msec last = first;
    msec next = 0;

    while (n < SCHEDULE_COUNT_MAX && schedule_next(c->rule, c->zone, last, &next) &&
           due_at(c, next) <= c->now && is_late(c, next)) {
        last = next;
        n++;
    }
    skip(v, WHY_MISSED, first, last, n);
}

/* Of the times that are due the last one fires. True: there were others, which are skipped. */
static bool skip_superseded(const struct schedule_case *c, struct schedule_verdict *v, msec first)
{
    uint32_t n = 0;
    msec last = first; /* that is skipped */
    msec at = first;
    msec next = 0;

    while (n < SCHEDULE_COUNT_MAX && schedule_next(c->rule, c->zone, at, &next) &&
           due_at(c, next) <= c->now) {
        last = at;
        at = next;
        n++;
    }
    if (n > 0) {
        skip(v, WHY_SUPERSEDED, first, last, n);
    }
    return n > 0;
}

/* The queue is the times between the cursor and now; the oldest go when there are too many. */
static void hold_in_queue(const struct schedule_case *c, struct schedule_verdict *v, msec first)
{
    uint32_t n = 1;
    uint32_t over;
    msec at = first;
    msec next = 0;

    v->what = SCHEDULE_HOLD;
    v->queued_from = c->queued_from != 0 ? c->queued_from : first;
    while (n <= SCHEDULE_COUNT_MAX && schedule_next(c->rule, c->zone, at, &next) &&
           due_at(c, next) <= c->now) {
        at = next;
        n++;
    }
    if (n <= SCHEDULE_QUEUE_MAX) {
        /* The queue may become too long: it is looked at with each time. */
        v->until = schedule_next(c->rule, c->zone, at, &next) ? due_at(c, next) : MSEC_NEVER;
        return;
    }
    over = n - SCHEDULE_QUEUE_MAX;
    at = first;
    for (uint32_t i = 1; i < over && schedule_next(c->rule, c->zone, at, &next); i++) {
        at = next;
    }
    skip(v, WHY_QUEUE_FULL, first, at, over);
}

static void decide_due(const struct schedule_case *c, struct schedule_verdict *v, msec at)
{
    msec next = 0;

    if (is_late(c, at)) {
        skip_missed(c, v, at);
        return;
    }
    if ((c->overlap == OVERLAP_SKIP || c->overlap == OVERLAP_CANCEL) && skip_superseded(c, v, at)) {
        return;
    }
    if (c->open && c->overlap == OVERLAP_SKIP && !MUTANT(OVERLAP_IGNORED)) {
        skip(v, WHY_OVERLAP, at, at, 1);
    } else if (c->open && c->overlap == OVERLAP_CANCEL) {
        v->what = SCHEDULE_CANCEL;
        v->until = schedule_next(c->rule, c->zone, at, &next) ? due_at(c, next) : MSEC_NEVER;
    } else if (c->open && c->overlap == OVERLAP_QUEUE) {
        hold_in_queue(c, v, at);
    } else {
        v->what = SCHEDULE_FIRE;
        v->at = v->cursor = at;
        if (!schedule_next(c->rule, c->zone, at, &next) || due_at(c, next) > c->now) {
            v->queued_from = 0; /* the last of the queue */
        }
    }
}

/* True: the verdict is about the range. */
static bool decide_backfill(const struct schedule_case *c, struct schedule_verdict *v)
{
    msec at = 0;

    if (c->back_cursor >= c->back_to) {
        return false;
    }
    if (!schedule_next(c->rule, c->zone, c->back_cursor, &at) || at > c->back_to) {
        v->back_cursor = c->back_to;
        return false;
    }
    if (c->open && c->overlap != OVERLAP_ALLOW) {
        return false;
    }
    v->what = SCHEDULE_FIRE;
    v->backfill = true;
    v->at = v->back_cursor = at;
    return true;
}

void schedule_decide(const struct schedule_case *c, struct schedule_verdict *ret)
{
    msec at = 0;
    const bool more = schedule_next(c->rule, c->zone, c->cursor, &at);

    *ret = (struct schedule_verdict){.what = SCHEDULE_END,
                                     .until = MSEC_NEVER,
                                     .cursor = c->cursor,
                                     .queued_from = c->queued_from,
                                     .back_cursor = c->back_cursor};
    if (more && due_at(c, at) <= c->now) {
        decide_due(c, ret, at);
        return;
    }
    if (decide_backfill(c, ret)) {
        return;
    }
    if (more) {
        ret->what = SCHEDULE_WAIT;
        ret->until = due_at(c, at);
    } else if (ret->back_cursor < c->back_to) {
        ret->what = SCHEDULE_HOLD;
    }
}
