/*
 * What plan.history returns beside the projection: revisions, replans (M053), phases (M112),
 * reviews and orders, gathered from the rows one after the other. Lists are bounded; `truncated`
 * marks a cut. Everything lives in the projection's arena.
 */
#ifndef QUERY_HISTORY_H
#define QUERY_HISTORY_H

#include "supervisor/query/projection.h"

enum {
    HISTORY_REVISIONS = 1000,
    HISTORY_REPLANS = 1000,
    HISTORY_PHASES = 2001,
    HISTORY_REVIEWS = 1000,
    HISTORY_ORDERS = 1000
};

struct history {
    struct msg_revision_record *revisions;
    struct msg_replan_record *replans;
    struct msg_phase_record *phases;
    struct msg_review_record *reviews;
    struct msg_order_record *orders;
    uint32_t revisions_n, replans_n, phases_n, reviews_n, orders_n;
    uint32_t revisions_cap, replans_cap, phases_cap, reviews_cap, orders_cap;
    msec phase_since;   /* wall time at which the newest phase began */
    uint32_t executing; /* the newest phase of execution */
    bool truncated;
    uint32_t replan_steps[HISTORY_REPLANS]; /* whose failure each replan was for */
};

/* At most max bytes, whole characters, kept. */
struct str history_cut(struct projection *s, struct str text, size_t max);
/* One row more; a projection_row_fn. */
bool history_row(struct projection *s, const struct journal_row *row, void *history);
#endif
