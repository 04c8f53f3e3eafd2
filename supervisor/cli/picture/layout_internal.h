/*
 * The layout of a graph, in columns and rows. Layers go from top to bottom; each step is a box in
 * the first layer after all that it depends on. An edge that crosses a layer bends there around
 * the boxes: all long edges of one step share their bends.
 */
#ifndef PICTURE_LAYOUT_H
#define PICTURE_LAYOUT_H

#include "supervisor/cli/picture/graph.h"

enum {
    BOX_ROWS = 4,   /* border, id, detail, border */
    WHEN_ROWS = 3,  /* at most so many more, where a step has a condition */
    BOX_FRAME = 4,  /* columns of a box beside its text */
    BEND_WIDTH = 3, /* of which the line takes one */
    GAP = 1,        /* columns between two neighbours */
    LABEL_MIN = 6,  /* columns to which the text of a box is cut at most */
    LABEL_MAX = 40,
    LABEL_BYTES_MAX = 4096,
    NODES_MAX = 400000 /* boxes and bends: some 100 MiB */
};

struct node {
    uint32_t step; /* of the box; of a bend: the step that its edges leave */
    bool bend;
    uint32_t layer, order;  /* order: from left to right within the layer */
    uint32_t out_at, n_out; /* links to the next layer */
    uint32_t in_at, n_in;   /* into layout.in: links from the layer before */
    int x, width;           /* columns */
    int column;             /* where its links leave */
    int track;              /* of its net: row below the layer; -1 = a straight line */
};

/* One piece of an edge, between two neighbouring layers. */
struct link {
    uint32_t from, to; /* nodes */
    int column;        /* where it enters `to` */
};

/* The links that leave one node: one line that branches. */
struct net {
    uint32_t node;
    int left, right; /* the columns of its horizontal part */
    int track;
};

struct layer {
    uint32_t *nodes; /* from left to right */
    uint32_t n;
    int when_rows;    /* lines of the longest condition; all boxes of the layer have them */
    struct net *nets; /* to the next layer */
    uint32_t n_nets;
    int tracks; /* rows between this layer and the next one */
};

struct layout {
    const struct graph *graph;
    struct arena *arena;
    struct node *nodes; /* the boxes come first: node i is step i */
    uint32_t n_nodes;
    struct link *links; /* sorted by `from` */
    uint32_t n_links;
    uint32_t *in; /* links, sorted by `to` */
    struct layer *layers;
    uint32_t n_layers;
    int width;  /* columns */
    int needed; /* columns of the widest layer, when its boxes are as narrow as possible */
};

/* The text of a step's box, cleaned; both are terminated and belong to the arena. */
struct label {
    const char *id, *detail, *when;
    int columns; /* of the longest one */
};

/*
 * Makes layers, nodes and links (layers.c), orders each layer (order.c), sets columns (place.c) and
 * tracks (route.c). labels has one entry per step. max_width 0 = any. *ret_fits is false when a
 * layer is wider than max_width; then only `needed` and the layers of the steps are set.
 */
enum bt_code layout_make(const struct graph *g, const struct label *labels, int max_width,
                         struct arena *arena, struct layout *ret, bool *ret_fits,
                         struct bt_error *err);
/* The line-th line (from 0 on) of a clean text that is broken at blanks; the last of WHEN_ROWS has
 * all the rest, and a word may be wider than the columns. False when there is none. */
bool layout_wrap(const char *text, int columns, int line, struct buf *ret);
/* Sets when_rows of the layers, whose boxes have their widths. */
void layout_wrap_all(struct layout *l, const struct label *labels);
/* How many rows the boxes of a layer have, with their borders. */
int layout_box_rows(const struct layer *layer);
/* The cleaned labels of all steps; NULL when out of memory. */
struct label *layout_labels(const struct graph *g, bool ascii, struct arena *arena);

/* The layer of each step, from 0 on. BT_INVALID for a circle. */
enum bt_code layers_of(const struct graph *g, struct arena *arena, uint32_t *ret_layer,
                       uint32_t *ret_n_layers, struct bt_error *err);
/* Each sets its part of the layout; false when out of memory. */
bool order_layers(struct layout *l);
bool place_nodes(struct layout *l, int max_width);
bool route_layers(struct layout *l);

/* Sorts items by their keys, key[item]; equal ones keep their order. spare has room for n items. */
void sort_by_key(uint32_t *items, uint32_t n, const double *key, uint32_t *spare);
#endif
