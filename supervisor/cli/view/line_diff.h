/* The lines that differ between two texts. Pure but for memory. */
#ifndef CLI_LINE_DIFF_H
#define CLI_LINE_DIFF_H

#include "protocol/base/buf.h"
#include "protocol/base/str.h"

/* Appends "- ", "+ " and "  " lines. Texts of very many different lines are given one after the
 * other, which is as true. */
void line_diff(struct str before, struct str after, struct buf *out);
#endif
