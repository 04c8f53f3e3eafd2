/* A row of numbers as a line of small bars. Pure, as graph.h. */
#ifndef PICTURE_SPARK_H
#define PICTURE_SPARK_H

#include "protocol/base/buf.h"
#include "supervisor/cli/picture/look.h"

enum { SPARK_VALUES = 256 };

/* The newest values, oldest first. A zeroed struct is empty. */
struct spark {
    double at[SPARK_VALUES];
    uint32_t n;
};

/* Adds the newest value; the oldest one goes when there is no room. */
void spark_add(struct spark *s, double value);
/*
 * Appends the newest values, one per column, the newest at the right; blanks stand where none are.
 * A bar is full for `top`, or for the highest value that is shown when top is 0. The lowest bar is
 * that of values <= 0 only.
 */
void spark_put(const struct spark *s, int columns, double top, const struct look *look,
               struct buf *out);
#endif
