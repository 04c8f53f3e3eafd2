/*
 * Columns of boxes and bends. A node wants to stand below (or above) the middle of its neighbours;
 * in each layer the places nearest to that, without overlap, are an isotonic regression, which the
 * pool of adjacent violators computes (Best and Chakravarti 1990).
 */
#include "supervisor/cli/picture/layout_internal.h"

enum { PASSES = 6, WEIGHT_OF_BEND = 8, WEIGHT_OF_PLACE = 1, FAR = 100000000 };

struct pool {
    double mean, weight;
    uint32_t n; /* nodes in it */
};

static int middle(const struct node *node)
{
    return node->x + node->width / 2;
}

/* Where the left edge wants to be, and how much. */
static double wanted(const struct layout *l, const struct node *node, bool down, double *ret_weight)
{
    const uint32_t n = down ? node->n_in : node->n_out;
    double sum = 0;
    double weight = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct link *link =
            down ? &l->links[l->in[node->in_at + i]] : &l->links[node->out_at + i];
        const struct node *other = &l->nodes[down ? link->from : link->to];
        const double w = node->bend && other->bend ? WEIGHT_OF_BEND : 1;
        sum += w * middle(other);
        weight += w;
    }
    *ret_weight = n == 0 ? WEIGHT_OF_PLACE : weight;
    return n == 0 ? node->x : sum / weight - node->width / 2;
}

static void place_layer(struct layout *l, const struct layer *layer, bool down, int max_width,
                        struct pool *pools)
{
    uint32_t n = 0;
    double before = 0; /* columns of the nodes to the left, with their gaps */
    double first = max_width > 0 ? 0 : -FAR;
    double last;
    uint32_t k = 0;

    for (uint32_t i = 0; i < layer->n; i++) {
        const struct node *node = &l->nodes[layer->nodes[i]];
        double weight;
        const double want = wanted(l, node, down, &weight) - before;
        before += node->width + GAP;
        pools[n++] = (struct pool){want, weight, 1};
        while (n > 1 && pools[n - 2].mean >= pools[n - 1].mean) {
            struct pool *a = &pools[n - 2];
            const struct pool *b = &pools[--n];
            a->mean = (a->mean * a->weight + b->mean * b->weight) / (a->weight + b->weight);
            a->weight += b->weight;
            a->n += b->n;
        }
    }
    last = max_width > 0 ? max_width - (before - GAP) : FAR;
    before = 0;
    for (uint32_t p = 0; p < n; p++) {
        const double mean = pools[p].mean < first  ? first
                            : pools[p].mean > last ? last
                                                   : pools[p].mean;
        for (uint32_t i = 0; i < pools[p].n; i++, k++) {
            struct node *node = &l->nodes[layer->nodes[k]];
            node->x = (int)(mean + before + FAR + 0.5) - FAR; /* rounded down, also below 0 */
            before += node->width + GAP;
        }
    }
}

/* Each layer without empty columns, in the middle of the widest one. */
static void centre_layers(struct layout *l)
{
    l->width = 0;
    for (uint32_t i = 0; i < l->n_layers; i++) {
        int x = 0;
        for (uint32_t k = 0; k < l->layers[i].n; k++) {
            struct node *node = &l->nodes[l->layers[i].nodes[k]];
            node->x = x;
            x += node->width + GAP;
        }
        l->width = x - GAP > l->width ? x - GAP : l->width;
    }
    for (uint32_t i = 0; i < l->n_layers; i++) {
        const struct layer *layer = &l->layers[i];
        const struct node *end = &l->nodes[layer->nodes[layer->n - 1]];
        const int shift = (l->width - end->x - end->width) / 2;
        for (uint32_t k = 0; k < layer->n; k++) {
            l->nodes[layer->nodes[k]].x += shift;
        }
    }
}

/* The leftmost node begins in column 0. */
static void shift_left(struct layout *l)
{
    int left = INT32_MAX;

    l->width = 0;
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        left = l->nodes[i].x < left ? l->nodes[i].x : left;
    }
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        struct node *node = &l->nodes[i];
        node->x -= left;
        l->width = node->x + node->width > l->width ? node->x + node->width : l->width;
    }
}

bool place_nodes(struct layout *l, int max_width)
{
    struct pool *pools = arena_alloc(l->arena, ((size_t)l->n_nodes + 1) * sizeof *pools);

    if (pools == NULL) {
        return false;
    }
    centre_layers(l);
    for (int pass = 0; pass < PASSES; pass++) {
        for (uint32_t i = 1; i < l->n_layers; i++) {
            const bool down = pass % 2 == 0;
            place_layer(l, &l->layers[down ? i : l->n_layers - 1 - i], down, max_width, pools);
        }
    }
    shift_left(l);
    return true;
}
