/*
 * Texts of agents within a text of the supervisor. Every line after the first is indented by two
 * spaces, so that no line of an agent can be read as one of the supervisor's. Pure.
 */
#ifndef DISPATCH_FRAME_H
#define DISPATCH_FRAME_H

#include "protocol/base/buf.h"

/* The text itself, unless it has line breaks of any kind. */
void frame_add(struct buf *out, struct str text);
/* On one line: a space in the place of each line break. */
void frame_add_line(struct buf *out, struct str text);
#endif
