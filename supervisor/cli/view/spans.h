/* When the steps of a plan waited and ran, read from its events. One thread. */
#ifndef CLI_SPANS_H
#define CLI_SPANS_H

#include "supervisor/cli/picture/timeline.h"

struct cJSON;
struct spans;

/*
 * plan_view: the answer of plan.get with all the steps; it must outlive the spans. chain: each step
 * follows the one before it. NULL when out of memory.
 */
struct spans *spans_new(const struct cJSON *plan_view, bool chain);
/* NULL is allowed. */
void spans_free(struct spans *s);
/* The next event: of the plan, or a supervisor_started, in the order of their numbers. */
void spans_event(struct spans *s, const struct cJSON *event);
/*
 * Ends what is open at `now` (wall clock, ms since 1970) and gives the timeline, without its title;
 * it is valid until spans_free. NULL when out of memory.
 */
struct timeline *spans_end(struct spans *s, double now);
#endif
