/* The axis of times, and what the kinds of spans look like. */
#ifndef PICTURE_TIMELINE_INTERNAL_H
#define PICTURE_TIMELINE_INTERNAL_H

#include "supervisor/cli/picture/timeline.h"

/* The time between two ticks, in ms, so that there are at most `most` of them after the first. */
double axis_step(double length_ms, int most);
/* Appends the time of a tick: "0", "15 s", "3 d". */
void axis_time(double ms, double step, struct buf *out);
/* The colour of a kind in SVG. */
const char *kind_fill(enum timeline_kind kind);
/* Whether the timeline has a span of each kind. */
void kinds_used(const struct timeline *t, bool ret[TIMELINE_KINDS]);
#endif
