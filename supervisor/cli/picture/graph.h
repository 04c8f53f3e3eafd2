/*
 * A plan as a drawing: steps in layers, lines from each step to those that depend on it. Pure: no
 * clock, no file, no terminal; memory is the caller's arena. One thread per arena.
 *
 * The layout is the layered one of K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual
 * Understanding of Hierarchical System Structures", IEEE Transactions on Systems, Man, and
 * Cybernetics 11(2), 1981.
 */
#ifndef PICTURE_GRAPH_H
#define PICTURE_GRAPH_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "supervisor/cli/picture/look.h"

/* A step; its texts may be any bytes, and are made safe for the form that they are drawn in. */
struct graph_step {
    const char *id;
    const char *detail;   /* the second line of its box; may be "" */
    const char *when;     /* the third line, in words: when it runs; NULL = always */
    const char *status;   /* of the step; "" = the plan does not run */
    const uint32_t *deps; /* indexes of steps; one may stand there twice */
    uint32_t n_deps;
};

struct graph {
    const char *title;
    const struct graph_step *steps;
    uint32_t n;
};

/*
 * Each appends one form of the drawing. BT_NOMEM, BT_LIMIT when there are too many lines to draw,
 * and BT_INVALID when the steps depend on each other in a circle.
 *
 * graph_text: boxes and lines within look->width columns. A plan that is wider is appended as a
 * list, whose first line gives the reason.
 */
BT_MUST_CHECK enum bt_code graph_text(const struct graph *g, const struct look *look,
                                      struct arena *arena, struct buf *out, struct bt_error *err);
BT_MUST_CHECK enum bt_code graph_svg(const struct graph *g, struct arena *arena, struct buf *out,
                                     struct bt_error *err);
/* The DOT language of Graphviz. */
BT_MUST_CHECK enum bt_code graph_dot(const struct graph *g, struct buf *out, struct bt_error *err);
/* A flowchart of Mermaid. */
BT_MUST_CHECK enum bt_code graph_mermaid(const struct graph *g, struct buf *out,
                                         struct bt_error *err);
#endif
