/* One open review as a person sees it. For this room only. */
#ifndef API_REVIEW_VIEW_H
#define API_REVIEW_VIEW_H

#include "supervisor/api/decided.h"

/* How much a view has; what is read for all views of an answer counts against it. */
struct review_room {
    struct engine *engine;
    struct arena *arena;
    bool whole;        /* nothing is cut or left out for its size */
    uint32_t values;   /* steps whose values may still be made */
    uint32_t upstream; /* results of earlier steps that may still be read */
    size_t data;       /* whole: bytes of data that may still be added; the rest is previews */
    size_t text;       /* whole: the same for texts */
};

/* Fills ret. step: STEP_NONE = the plan as a whole. What only rows know is left empty: askedAt, the
 * schema, and why there is no plan. */
void review_view_make(struct review_room *room, const struct open_plan *p, uint32_t step,
                      struct msg_review_view *ret);
/* What waits for a person in the plans that do the steps of a plan, at any depth. */
struct review_inside {
    const struct open_plan *plan; /* of the first one; NULL = nothing waits */
    uint32_t step;                /* of that plan; STEP_NONE = it waits for its sign-off */
    uint32_t n;
};
/* By the steps of `of`, and after them one of its undo plan. In the arena; NULL: nothing waits, or
 * out of memory. O(open plans). */
const struct review_inside *reviews_inside(struct engine *engine, const struct open_plan *of,
                                           struct arena *arena);
/* The rows of an open plan that belong to its views. Takes one row. */
void review_view_row(struct arena *arena, struct msg_review_view *views, uint32_t n,
                     const struct journal_row *row);
#endif
