/* The first half of a layout: layers by longest path, boxes, bends, links. */
#include <string.h>

#include "supervisor/cli/picture/layout_internal.h"

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the drawing");
}

/* Kahn's algorithm: a step is taken after all that it depends on. */
enum bt_code layers_of(const struct graph *g, struct arena *arena, uint32_t *ret_layer,
                       uint32_t *ret_n_layers, struct bt_error *err)
{
    uint32_t *left = arena_alloc(arena, (g->n + 1) * sizeof *left);
    uint32_t *at = arena_alloc(arena, ((size_t)g->n + 2) * sizeof *at);
    uint32_t *queue = arena_alloc(arena, (g->n + 1) * sizeof *queue);
    uint32_t *users;
    uint32_t head = 0;
    uint32_t tail = 0;
    size_t edges = 0;

    for (uint32_t i = 0; i < g->n; i++) {
        edges += g->steps[i].n_deps;
    }
    users = arena_alloc(arena, (edges + 1) * sizeof *users);
    if (left == NULL || at == NULL || queue == NULL || users == NULL) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        left[i] = g->steps[i].n_deps;
        for (uint32_t k = 0; k < g->steps[i].n_deps; k++) {
            at[g->steps[i].deps[k] + 2]++;
        }
    }
    for (uint32_t i = 2; i < g->n + 2; i++) {
        at[i] += at[i - 1];
    }
    for (uint32_t i = 0; i < g->n; i++) {
        ret_layer[i] = 0;
        for (uint32_t k = 0; k < g->steps[i].n_deps; k++) {
            users[at[g->steps[i].deps[k] + 1]++] = i;
        }
        if (left[i] == 0) {
            queue[tail++] = i;
        }
    }
    *ret_n_layers = 0;
    for (; head < tail; head++) {
        const uint32_t s = queue[head];
        *ret_n_layers = ret_layer[s] + 1 > *ret_n_layers ? ret_layer[s] + 1 : *ret_n_layers;
        for (uint32_t k = at[s]; k < at[s + 1]; k++) {
            const uint32_t user = users[k];
            ret_layer[user] =
                ret_layer[s] + 1 > ret_layer[user] ? ret_layer[s] + 1 : ret_layer[user];
            if (--left[user] == 0) {
                queue[tail++] = user;
            }
        }
    }
    return tail == g->n ? BT_OK
                        : err_set(err, BT_INVALID, "the steps depend on each other in a circle");
}

/* The last layer that an edge of each step reaches. */
static void find_reach(const struct graph *g, const uint32_t *layer, uint32_t *reach)
{
    memcpy(reach, layer, g->n * sizeof *reach);
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t k = 0; k < g->steps[i].n_deps; k++) {
            uint32_t *r = &reach[g->steps[i].deps[k]];
            *r = layer[i] > *r ? layer[i] : *r;
        }
    }
}

static int narrowest(const struct layout *l, uint32_t step, const struct label *label, int cut)
{
    const int text = (label->columns < cut ? label->columns : cut) + BOX_FRAME;
    const int ports = 2 * (int)l->nodes[step].n_in + 2;

    return text > ports ? text : ports;
}

/*
 * Sets the widths of the boxes: within a layer the texts are cut to the same number of columns, as
 * few as max_width takes. False when they do not fit; l->needed is then what they need.
 */
static bool set_widths(struct layout *l, const struct label *labels, const int *bends,
                       int max_width)
{
    bool fits = true;

    l->needed = 0;
    for (uint32_t i = 0; i < l->n_layers; i++) {
        const struct layer *layer = &l->layers[i];
        int cut = LABEL_MAX;
        long sum;
        do {
            sum = (long)bends[i] * (BEND_WIDTH + GAP) - GAP;
            for (uint32_t k = 0; k < layer->n; k++) {
                const uint32_t step = layer->nodes[k];
                l->nodes[step].width = narrowest(l, step, &labels[step], cut);
                sum += l->nodes[step].width + GAP;
            }
        } while (max_width > 0 && sum > max_width && --cut >= LABEL_MIN);
        fits = fits && (max_width <= 0 || sum <= max_width);
        l->needed = sum > l->needed ? (int)(sum < INT32_MAX ? sum : INT32_MAX) : l->needed;
    }
    return fits;
}

/* Boxes into their layers, in the order of the steps, and their numbers of edges that come in. */
static enum bt_code make_boxes(struct layout *l, const uint32_t *layer, struct bt_error *err)
{
    const struct graph *g = l->graph;
    uint32_t *seen = arena_alloc(l->arena, (g->n + 1) * sizeof *seen);

    l->layers = arena_alloc(l->arena, (l->n_layers + 1) * sizeof *l->layers);
    l->nodes = arena_alloc(l->arena, (g->n + 1) * sizeof *l->nodes);
    if (seen == NULL || l->layers == NULL || l->nodes == NULL) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        l->layers[layer[i]].n++;
    }
    for (uint32_t i = 0; i < l->n_layers; i++) {
        l->layers[i].nodes = arena_alloc(l->arena, (l->layers[i].n + 1) * sizeof(uint32_t));
        if (l->layers[i].nodes == NULL) {
            return no_memory(err);
        }
        l->layers[i].n = 0;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        l->nodes[i].step = i;
        l->nodes[i].layer = layer[i];
        l->layers[layer[i]].nodes[l->layers[layer[i]].n++] = i;
        for (uint32_t k = 0; k < g->steps[i].n_deps; k++) {
            const uint32_t dep = g->steps[i].deps[k];
            l->nodes[i].n_in += seen[dep] != i + 1;
            seen[dep] = i + 1;
        }
    }
    return BT_OK;
}

/* The number of bends in each layer. False when there are too many nodes. */
static bool count_bends(const struct layout *l, const uint32_t *layer, const uint32_t *reach,
                        int *bends)
{
    size_t sum = l->graph->n;

    for (uint32_t i = 0; i < l->graph->n; i++) {
        if (reach[i] > layer[i] + 1) {
            bends[layer[i] + 1]++;
            bends[reach[i]]--;
            sum += reach[i] - layer[i] - 1;
        }
    }
    for (uint32_t i = 1; i < l->n_layers; i++) {
        bends[i] += bends[i - 1];
    }
    return sum <= NODES_MAX;
}

/* Makes room for the bends in layers and nodes; adds them and sets first[step]. */
static enum bt_code make_bends(struct layout *l, const uint32_t *layer, const uint32_t *reach,
                               const int *bends, uint32_t *first, struct bt_error *err)
{
    const uint32_t n = l->graph->n;
    struct node *nodes;
    size_t sum = n;

    for (uint32_t i = 0; i < l->n_layers; i++) {
        struct layer *to = &l->layers[i];
        uint32_t *all = arena_alloc(l->arena, (to->n + (size_t)bends[i] + 1) * sizeof *all);
        if (all == NULL) {
            return no_memory(err);
        }
        memcpy(all, to->nodes, to->n * sizeof *all);
        to->nodes = all;
        sum += (size_t)bends[i];
    }
    nodes = arena_alloc(l->arena, (sum + 1) * sizeof *nodes);
    if (nodes == NULL) {
        return no_memory(err);
    }
    memcpy(nodes, l->nodes, n * sizeof *nodes);
    l->nodes = nodes;
    l->n_nodes = n;
    for (uint32_t i = 0; i < n; i++) {
        first[i] = l->n_nodes;
        for (uint32_t at = layer[i] + 1; at < reach[i]; at++) {
            nodes[l->n_nodes] =
                (struct node){.step = i, .bend = true, .layer = at, .width = BEND_WIDTH};
            l->layers[at].nodes[l->layers[at].n++] = l->n_nodes++;
        }
    }
    return BT_OK;
}

static void add_link(struct layout *l, uint32_t from, uint32_t to, bool count)
{
    if (count) {
        l->nodes[from].n_out++;
    } else {
        struct node *node = &l->nodes[from];
        l->links[node->out_at + node->n_out++] = (struct link){.from = from, .to = to};
    }
}

/* Counts the links of each node, or adds them. */
static void each_link(struct layout *l, const uint32_t *layer, const uint32_t *reach,
                      const uint32_t *first, uint32_t *seen, bool count)
{
    const struct graph *g = l->graph;

    memset(seen, 0, g->n * sizeof *seen);
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t at = layer[i] + 1; at < reach[i]; at++) {
            const uint32_t bend = first[i] + at - layer[i] - 1;
            add_link(l, at == layer[i] + 1 ? i : bend - 1, bend, count);
        }
    }
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t k = 0; k < g->steps[i].n_deps; k++) {
            const uint32_t dep = g->steps[i].deps[k];
            const uint32_t bends = layer[i] - layer[dep] - 1;
            if (seen[dep] != i + 1) {
                seen[dep] = i + 1;
                add_link(l, bends == 0 ? dep : first[dep] + bends - 1, i, count);
            }
        }
    }
}

static enum bt_code make_links(struct layout *l, const uint32_t *layer, const uint32_t *reach,
                               const uint32_t *first, struct bt_error *err)
{
    uint32_t *seen = arena_alloc(l->arena, (l->graph->n + 1) * sizeof *seen);

    if (seen == NULL) {
        return no_memory(err);
    }
    each_link(l, layer, reach, first, seen, true);
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        l->nodes[i].out_at = l->n_links;
        l->n_links += l->nodes[i].n_out;
        l->nodes[i].n_out = 0;
        l->nodes[i].n_in = 0;
    }
    l->links = arena_alloc(l->arena, (l->n_links + 1) * sizeof *l->links);
    l->in = arena_alloc(l->arena, (l->n_links + 1) * sizeof *l->in);
    if (l->links == NULL || l->in == NULL) {
        return no_memory(err);
    }
    each_link(l, layer, reach, first, seen, false);
    for (uint32_t i = 0; i < l->n_links; i++) {
        l->nodes[l->links[i].to].n_in++;
    }
    for (uint32_t i = 0, at = 0; i < l->n_nodes; i++) {
        l->nodes[i].in_at = at;
        at += l->nodes[i].n_in;
        l->nodes[i].n_in = 0;
    }
    for (uint32_t i = 0; i < l->n_links; i++) {
        struct node *to = &l->nodes[l->links[i].to];
        l->in[to->in_at + to->n_in++] = i;
    }
    return BT_OK;
}

enum bt_code layout_make(const struct graph *g, const struct label *labels, int max_width,
                         struct arena *arena, struct layout *ret, bool *ret_fits,
                         struct bt_error *err)
{
    uint32_t *layer = arena_alloc(arena, (g->n + 1) * sizeof *layer);
    uint32_t *reach = arena_alloc(arena, (g->n + 1) * sizeof *reach);
    uint32_t *first = arena_alloc(arena, (g->n + 1) * sizeof *first);
    enum bt_code code;
    int *bends;

    *ret = (struct layout){.graph = g, .arena = arena};
    if (layer == NULL || reach == NULL || first == NULL) {
        return no_memory(err);
    }
    code = layers_of(g, arena, layer, &ret->n_layers, err);
    bends = arena_alloc(arena, ((size_t)ret->n_layers + 2) * sizeof *bends);
    if (code != BT_OK || bends == NULL) {
        return code != BT_OK ? code : no_memory(err);
    }
    find_reach(g, layer, reach);
    code = make_boxes(ret, layer, err);
    if (code != BT_OK) {
        return code;
    }
    const bool few = count_bends(ret, layer, reach, bends);
    *ret_fits = set_widths(ret, labels, bends, max_width);
    if (!*ret_fits) {
        return BT_OK;
    }
    layout_wrap_all(ret, labels);
    if (!few) {
        return err_set(err, BT_LIMIT, "the plan has too many long edges to draw: more than %d",
                       NODES_MAX);
    }
    code = make_bends(ret, layer, reach, bends, first, err);
    if (code == BT_OK) {
        code = make_links(ret, layer, reach, first, err);
    }
    if (code != BT_OK) {
        return code;
    }
    code = order_layers(ret) && place_nodes(ret, max_width) && route_layers(ret) ? BT_OK
                                                                                 : no_memory(err);
    return code;
}
