/* How a picture looks on a terminal: its columns, characters and colours, and the texts in it. */
#ifndef PICTURE_LOOK_H
#define PICTURE_LOOK_H

#include <stdbool.h>

#include "protocol/base/buf.h"

struct look {
    int width;  /* columns of the terminal */
    bool ascii; /* no other characters than those of ASCII */
    bool color; /* escape sequences */
};

/*
 * The columns of a text on a terminal: 2 for a wide character, 0 for a combining one. The text is
 * UTF-8 without control characters, as look_clean leaves it.
 */
int look_columns(const char *text);
/*
 * Appends a text as one line that takes the same columns on every terminal: what is no UTF-8, no
 * character, or controls the terminal or the direction of text becomes '?'; joiners, selectors of
 * variants and modifiers of emoji are left out. With ascii every other character is '?'.
 */
void look_clean(const char *text, bool ascii, struct buf *out);
/*
 * Appends a clean text in at most `columns` columns (>= 1). A longer one ends with a mark: "…", or
 * "~" with ascii. With pad it is filled up with blanks.
 */
void look_fit(const char *clean, int columns, bool ascii, bool pad, struct buf *out);
/* Appends n blanks; none when n < 1. */
void look_blanks(struct buf *out, int n);
/* Ends a line; blanks at its end are taken away. */
void look_end_line(struct buf *out);
/* The character of a step's status; " " for "". */
const char *look_mark(const char *status, bool ascii);
/* The escape sequences of its colour and of the end of a colour; "" without color. */
const char *look_color(const struct look *look, const char *status);
const char *look_color_off(const struct look *look);
/* The same as a fill and a stroke for SVG, DOT and Mermaid: "#d5f5dc". */
const char *look_fill(const char *status);
const char *look_stroke(const char *status);
/* Appends a clean text as text of XML. */
void look_xml(const char *clean, struct buf *out);
#endif
