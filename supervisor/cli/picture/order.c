/* The order within the layers: fewer crossings by the barycentre method of Sugiyama et al. */
#include <string.h>

#include "supervisor/cli/picture/layout_internal.h"

enum { ROUNDS = 12, ROUNDS_OF_MANY = 2, MANY_LINKS = 100000 };

struct ordering {
    struct layout *l;
    double *key;     /* by node */
    uint32_t *spare; /* as many as nodes */
    uint32_t *best;  /* the best order of each node */
    uint32_t *tree;  /* of Fenwick, as many as nodes + 1 */
};

void sort_by_key(uint32_t *items, uint32_t n, const double *key, uint32_t *spare)
{
    for (uint32_t run = 1; run<n; run = run> n / 2 ? n : 2 * run) {
        for (uint32_t at = 0; at < n;) {
            const uint32_t middle = n - at > run ? at + run : n;
            const uint32_t end = n - middle > run ? middle + run : n;
            uint32_t a = at;
            uint32_t b = middle;
            for (uint32_t to = at; to < end; to++) {
                const bool first = a < middle && (b == end || key[items[a]] <= key[items[b]]);
                spare[to] = items[first ? a++ : b++];
            }
            at = end;
        }
        memcpy(items, spare, n * sizeof *items);
    }
}

static void number(struct layout *l)
{
    for (uint32_t i = 0; i < l->n_layers; i++) {
        for (uint32_t k = 0; k < l->layers[i].n; k++) {
            l->nodes[l->layers[i].nodes[k]].order = k;
        }
    }
}

/* The mean place of a node's neighbours in the other layer; its own place when it has none. */
static double barycentre(const struct layout *l, const struct node *node, bool down,
                         const struct layer *own, const struct layer *other)
{
    const uint32_t n = down ? node->n_in : node->n_out;
    double sum = 0;

    if (n == 0) {
        return (node->order + 0.5) * other->n / own->n;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct link *link =
            down ? &l->links[l->in[node->in_at + i]] : &l->links[node->out_at + i];
        sum += l->nodes[down ? link->from : link->to].order + 0.5;
    }
    return sum / n;
}

static void sweep(struct ordering *o, bool down)
{
    struct layout *l = o->l;

    for (uint32_t i = 1; i < l->n_layers; i++) {
        struct layer *own = &l->layers[down ? i : l->n_layers - 1 - i];
        const struct layer *other = down ? own - 1 : own + 1;
        for (uint32_t k = 0; k < own->n; k++) {
            o->key[own->nodes[k]] = barycentre(l, &l->nodes[own->nodes[k]], down, own, other);
        }
        sort_by_key(own->nodes, own->n, o->key, o->spare);
        for (uint32_t k = 0; k < own->n; k++) {
            l->nodes[own->nodes[k]].order = k;
        }
    }
}

/* Crossings between a layer and the next: pairs of links in opposite orders, counted in a Fenwick
 * tree over the places of the next layer. */
static uint64_t crossings(struct ordering *o, const struct layer *layer)
{
    const struct layout *l = o->l;
    const uint32_t n = layer[1].n;
    uint64_t count = 0;
    uint64_t seen = 0;

    memset(o->tree, 0, (n + 1) * sizeof *o->tree);
    for (uint32_t k = 0; k < layer->n; k++) {
        const struct node *from = &l->nodes[layer->nodes[k]];
        for (uint32_t i = 0; i < from->n_out; i++) {
            uint64_t before = 0;
            for (uint32_t at = l->nodes[l->links[from->out_at + i].to].order + 1; at > 0;
                 at &= at - 1) {
                before += o->tree[at];
            }
            count += seen - before;
        }
        for (uint32_t i = 0; i < from->n_out; i++, seen++) {
            for (uint32_t at = l->nodes[l->links[from->out_at + i].to].order + 1; at <= n;
                 at += at & (~at + 1)) {
                o->tree[at]++;
            }
        }
    }
    return count;
}

static uint64_t all_crossings(struct ordering *o)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i + 1 < o->l->n_layers; i++) {
        count += crossings(o, &o->l->layers[i]);
    }
    return count;
}

static void keep(struct ordering *o)
{
    for (uint32_t i = 0; i < o->l->n_nodes; i++) {
        o->best[i] = o->l->nodes[i].order;
    }
}

static void restore(struct ordering *o)
{
    for (uint32_t i = 0; i < o->l->n_nodes; i++) {
        struct node *node = &o->l->nodes[i];
        node->order = o->best[i];
        o->l->layers[node->layer].nodes[node->order] = i;
    }
}

bool order_layers(struct layout *l)
{
    const size_t n = (size_t)l->n_nodes + 1;
    struct ordering o = {.l = l,
                         .key = arena_alloc(l->arena, n * sizeof *o.key),
                         .spare = arena_alloc(l->arena, n * sizeof *o.spare),
                         .best = arena_alloc(l->arena, n * sizeof *o.best),
                         .tree = arena_alloc(l->arena, n * sizeof *o.tree)};
    const int rounds = l->n_links > MANY_LINKS ? ROUNDS_OF_MANY : ROUNDS;
    uint64_t best;

    if (o.key == NULL || o.spare == NULL || o.best == NULL || o.tree == NULL) {
        return false;
    }
    number(l);
    keep(&o);
    best = all_crossings(&o);
    for (int i = 0; i < rounds && best > 0; i++) {
        uint64_t count;
        sweep(&o, i % 2 == 0);
        count = all_crossings(&o);
        if (count < best) {
            best = count;
            keep(&o);
        }
    }
    restore(&o);
    return true;
}
