/*
 * Lines between two layers. The links of one node are one net: a line down to a track, along it,
 * and down from it to each node. No two nets use the same column, so lines only cross; nets share a
 * track when they do not touch.
 */
#include <string.h>

#include "supervisor/cli/picture/layout_internal.h"

enum { SORTED_NETS_MAX = 300 };

struct routing {
    struct layout *l;
    uint32_t *source; /* by column: 1 + the node of the layer above whose net leaves there */
    double *key;      /* by link, or by net */
    uint32_t *items, *spare;
    int *columns; /* free columns of one box */
    int *ends;    /* by track: the last column that is taken */
};

static int column_of(const struct routing *r, uint32_t link)
{
    return r->l->nodes[r->l->links[link].from].column;
}

/* The column of the bend nearest to its middle that no other net leaves from. */
static void enter_bend(struct routing *r, struct node *node)
{
    static const int order[BEND_WIDTH] = {1, 0, 2};
    struct link *link = &r->l->links[r->l->in[node->in_at]];
    const int from = r->l->nodes[link->from].column;

    if (from >= node->x && from < node->x + BEND_WIDTH) {
        link->column = from;
    } else {
        for (int i = BEND_WIDTH - 1; i >= 0; i--) {
            if (r->source[node->x + order[i]] == 0) {
                link->column = node->x + order[i];
            }
        }
    }
    node->column = link->column;
}

/* Spreads the links items[0..n) over the free columns from `left` to `right`, both included. False
 * when there are too few. */
static bool spread(struct routing *r, const uint32_t *items, uint32_t n, int left, int right)
{
    uint32_t found = 0;

    for (int c = left; c <= right; c++) {
        if (r->source[c] == 0) {
            r->columns[found++] = c;
        }
    }
    for (uint32_t i = 0; found >= n && i < n; i++) {
        r->l->links[items[i]].column = r->columns[(2 * i + 1) * (uint64_t)found / (2 * n)];
    }
    return found >= n;
}

/* The links of a box from left to right: straight ones where their nets leave above the box, the
 * others beside them. A box has twice as many columns as links, so there are always enough. */
static void enter_box(struct routing *r, const struct node *node)
{
    const int left = node->x + 1;
    const int right = node->x + node->width - 2;
    uint32_t *items = r->items;
    uint32_t a = 0; /* the first straight link, and the first one after them */
    uint32_t b;
    bool ok;

    for (uint32_t i = 0; i < node->n_in; i++) {
        items[i] = r->l->in[node->in_at + i];
        r->key[items[i]] = column_of(r, items[i]);
    }
    sort_by_key(items, node->n_in, r->key, r->spare);
    while (a < node->n_in && column_of(r, items[a]) < left) {
        a++;
    }
    for (b = a; b < node->n_in && column_of(r, items[b]) <= right; b++) {
        r->l->links[items[b]].column = column_of(r, items[b]);
    }
    if (a == b) {
        ok = spread(r, items, node->n_in, left, right);
    } else {
        ok = spread(r, items, a, left, column_of(r, items[a]) - 1) &&
             spread(r, items + b, node->n_in - b, column_of(r, items[b - 1]) + 1, right);
    }
    if (!ok) {
        (void)spread(r, items, node->n_in, left, right);
    }
}

static struct net net_of(const struct layout *l, uint32_t id)
{
    const struct node *node = &l->nodes[id];
    struct net net = {.node = id, .left = node->column, .right = node->column};

    for (uint32_t i = 0; i < node->n_out; i++) {
        const int c = l->links[node->out_at + i].column;
        net.left = c < net.left ? c : net.left;
        net.right = c > net.right ? c : net.right;
    }
    return net;
}

/* The crossings of two nets when a's track is above b's. */
static int cost_above(const struct layout *l, const struct net *a, const struct net *b)
{
    const struct node *from = &l->nodes[a->node];
    const int source = l->nodes[b->node].column;
    int cost = source > a->left && source < a->right;

    for (uint32_t i = 0; i < from->n_out; i++) {
        const int c = l->links[from->out_at + i].column;
        cost += c > b->left && c < b->right;
    }
    return cost;
}

static bool touch(const struct net *a, const struct net *b)
{
    return a->left <= b->right && b->left <= a->right;
}

/* Moves each net up to where it crosses the fewest of those above it. */
static void sort_nets(const struct layout *l, struct net *nets, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct net net = nets[i];
        uint32_t best = i;
        int cost = 0;
        int least = 0;
        for (uint32_t k = i; k > 0; k--) {
            if (touch(&net, &nets[k - 1])) {
                cost += cost_above(l, &net, &nets[k - 1]) - cost_above(l, &nets[k - 1], &net);
            }
            if (cost < least) {
                least = cost;
                best = k - 1;
            }
        }
        memmove(&nets[best + 1], &nets[best], (i - best) * sizeof *nets);
        nets[best] = net;
    }
}

/* Below all nets above it that it touches. */
static int track_below(const struct net *nets, uint32_t i)
{
    int track = 0;

    for (uint32_t k = 0; k < i; k++) {
        if (nets[k].track >= track && touch(&nets[k], &nets[i])) {
            track = nets[k].track + 1;
        }
    }
    return track;
}

/* The first track that ends before the net; for nets that are sorted by their left ends. */
static int first_track(struct routing *r, const struct net *net, int tracks)
{
    int track = 0;

    while (track < tracks && r->ends[track] >= net->left) {
        track++;
    }
    r->ends[track] = net->right;
    return track;
}

static bool make_tracks(struct routing *r, struct layer *layer)
{
    struct layout *l = r->l;
    uint32_t n = 0;

    layer->nets = arena_alloc(l->arena, (layer->n + 1) * sizeof *layer->nets);
    if (layer->nets == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < layer->n; i++) {
        const struct net net = net_of(l, layer->nodes[i]);
        l->nodes[net.node].track = -1;
        if (l->nodes[net.node].n_out > 0 && net.left < net.right) {
            layer->nets[n] = net;
            r->items[n] = n;
            r->key[n] = net.left;
            n++;
        }
    }
    layer->n_nets = n;
    if (n <= SORTED_NETS_MAX) {
        sort_nets(l, layer->nets, n);
    } else {
        sort_by_key(r->items, n, r->key, r->spare);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct net *net = &layer->nets[n <= SORTED_NETS_MAX ? i : r->items[i]];
        net->track =
            n <= SORTED_NETS_MAX ? track_below(layer->nets, i) : first_track(r, net, layer->tracks);
        l->nodes[net->node].track = net->track;
        layer->tracks = net->track + 1 > layer->tracks ? net->track + 1 : layer->tracks;
    }
    return true;
}

static bool route_layer(struct routing *r, struct layer *layer)
{
    struct layout *l = r->l;
    const struct layer *next = layer + 1;

    for (uint32_t i = 0; i < layer->n; i++) {
        struct node *node = &l->nodes[layer->nodes[i]];
        if (!node->bend) {
            node->column = node->x + node->width / 2;
        }
        if (node->n_out > 0) {
            r->source[node->column] = layer->nodes[i] + 1;
        }
    }
    for (uint32_t i = 0; layer + 1 < l->layers + l->n_layers && i < next->n; i++) {
        struct node *node = &l->nodes[next->nodes[i]];
        if (node->bend) {
            enter_bend(r, node);
        } else {
            enter_box(r, node);
        }
    }
    for (uint32_t i = 0; i < layer->n; i++) {
        r->source[l->nodes[layer->nodes[i]].column] = 0;
    }
    return make_tracks(r, layer);
}

bool route_layers(struct layout *l)
{
    const size_t n = (size_t)l->n_nodes + l->n_links + 1;
    const size_t columns = (size_t)l->width + 1;
    struct routing r = {.l = l,
                        .source = arena_alloc(l->arena, columns * sizeof *r.source),
                        .key = arena_alloc(l->arena, n * sizeof *r.key),
                        .items = arena_alloc(l->arena, n * sizeof *r.items),
                        .spare = arena_alloc(l->arena, n * sizeof *r.spare),
                        .columns = arena_alloc(l->arena, columns * sizeof *r.columns),
                        .ends = arena_alloc(l->arena, n * sizeof *r.ends)};

    if (r.source == NULL || r.key == NULL || r.items == NULL || r.spare == NULL ||
        r.columns == NULL || r.ends == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < l->n_layers; i++) {
        if (!route_layer(&r, &l->layers[i])) {
            return false;
        }
    }
    return true;
}
