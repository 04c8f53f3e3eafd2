/* What stands around the data: title, legend, axes, their texts. */
#ifndef REPORT_FRAME_H
#define REPORT_FRAME_H

#include "agents/report/chart.h"
#include "agents/report/scale.h"
#include "agents/report/svg.h"

/* The area of the data, in pixels. */
struct frame {
    double left, top, right, bottom;
};

struct frame_bottom {
    const struct scale *scale; /* or, when NULL: a text per row of the chart */
    bool turned;               /* the texts of rows stand at an angle */
    double room;               /* pixels below the axis */
};

/* How much the texts of the rows need when each has `band` pixels. */
struct frame_bottom frame_rows(const struct chart *c, double band);
/* Begins the picture: size, title, legend (of more than one series), the axis on the left with
 * `left_room` pixels for its texts. Returns where the data go. */
struct frame frame_open(const struct chart *c, double left_room, double bottom_room,
                        struct buf *out);
/* What the texts of an axis on the left need. */
double frame_left_room(const struct chart *c, const struct scale *y);
void frame_left(const struct chart *c, const struct frame *f, const struct scale *y,
                struct buf *out);
/* The axis below, of numbers or times, with lines into the data when `grid`. */
void frame_below(const struct chart *c, const struct frame *f, const struct scale *x, bool grid,
                 struct buf *out);
/* The axis below, with the texts of the rows. */
void frame_below_rows(const struct chart *c, const struct frame *f, const struct frame_bottom *b,
                      struct buf *out);
/* The label of a row: its cell, or its number from 1. */
void frame_row_text(const struct chart *c, int row, struct buf *ret);
/* "row, series: value" for a tooltip. */
const char *frame_tooltip(const struct chart *c, int row, int series, struct buf *text);
#endif
