/*
 * Writes an SVG: shapes, and texts that cannot leave their place. Every text goes through
 * svg_put_text or svg_put_escaped: markup is escaped; characters that move a cursor or change the
 * direction of other text are U+FFFD. Coordinates are pixels of the picture, from the top left.
 * Pure but for the buffer.
 */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include "protocol/base/buf.h"

enum { SVG_FONT = 12 }; /* pixels */

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

/* The first line of the picture: its size, its title (may be ""), a white ground. */
void svg_open(struct buf *out, double width, double height, const char *title);
void svg_close(struct buf *out);
void svg_line(struct buf *out, double x1, double y1, double x2, double y2, const char *colour);
/* A rectangle with a tooltip; label may be NULL. Negative sizes are none. */
void svg_rect(struct buf *out, double x, double y, double width, double height, const char *colour,
              const char *label);
/* At most max_width pixels: what is longer ends with "…" and has its whole text as a tooltip.
 * turned: upwards to the left, by 35 degrees, around its end. */
void svg_text(struct buf *out, double x, double y, enum svg_anchor anchor, double max_width,
              bool turned, const char *text);
/* Text for XML and HTML, also within a quoted attribute. */
void svg_put_escaped(struct buf *out, struct str text);
/* A coordinate, with at most two digits after the point. */
void svg_put_number(struct buf *out, double v);
/* About how wide a text is, in pixels; no font is asked. */
double svg_text_width(const char *text);
/* The colour of a series; they repeat after 8. */
const char *svg_colour(int series);
#endif
