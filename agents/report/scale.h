/* Axes: round steps over a range of numbers or times, and their texts. Pure. */
#ifndef REPORT_SCALE_H
#define REPORT_SCALE_H

#include <stdbool.h>
#include <stddef.h>

enum { SCALE_TICKS_MAX = 40, SCALE_TEXT = 40 };

struct scale {
    double min, max; /* min < max; the ends of the axis */
    bool time;       /* seconds since 1970 */
    double at[SCALE_TICKS_MAX];
    char text[SCALE_TICKS_MAX][SCALE_TEXT];
    int n;
};

/* An axis from at most min to at least max (finite) with about `wanted` steps of 1, 2 or 5 times a
 * power of ten. A range of one value is widened around it. */
void scale_numbers(double min, double max, int wanted, struct scale *ret);
/* An axis of exactly this range, for what must not stand apart from its ends. */
void scale_numbers_within(double min, double max, int wanted, struct scale *ret);
/* Seconds since 1970, of the years 1 to 9999, at round seconds to years; the axis is the range. */
void scale_times(double min, double max, int wanted, struct scale *ret);
/* Where v lies on an axis that is drawn from `from` to `to`. */
double scale_place(const struct scale *s, double v, double from, double to);
/* 1,234.5, 1.2M, 3G, 1.5e+20: at most four digits that matter, for a label. */
void scale_number_text(double v, char ret[SCALE_TEXT]);
/* 2026-11-21, with a time when it has one. */
void scale_time_text(double seconds, char ret[SCALE_TEXT]);
#endif
