/* The frame of `baton top`: figures, what they were over the last frames, agents, plans. */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include "protocol/base/buf.h"
#include "supervisor/cli/picture/look.h"

struct cJSON;
struct load;

/* NULL when out of memory. */
struct load *load_new(void);
/* NULL is allowed. */
void load_free(struct load *l);
/* Takes the answer of supervisor.stats; now: monotonic, in ms. */
void load_take(struct load *l, const struct cJSON *stats, double now);
/*
 * frame: {stats, plans, schedules}, the answers of supervisor.stats, plan.list (open plans, those
 * of which nothing runs with `waitsFor`) and schedule.list. Appends the frame, at most `height`
 * lines of at most look->width columns; what has no room is counted. Both 0 = no terminal: no
 * limits, and no lines over the time.
 */
void load_frame(const struct load *l, const struct cJSON *frame, const struct look *look,
                int height, struct buf *out);
#endif
