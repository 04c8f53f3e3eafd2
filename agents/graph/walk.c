/* Breadth first: each entity once, with every relation by which a shortest way comes to it. */
#include <stdlib.h>

#include "agents/graph/graph.h"
#include "protocol/base/map.h"

static struct str key_of(const int64_t *id)
{
    return (struct str){(const char *)id, sizeof *id};
}

/* The keys of the map must not move: nodes do, so they are copies in small blocks. */
struct ids {
    struct map map;
    struct block {
        struct block *next;
        size_t n;
        int64_t at[1024];
    } * blocks;
};

static const int64_t *keep(struct ids *ids, int64_t id)
{
    struct block *b = ids->blocks;

    if (b == NULL || b->n == sizeof b->at / sizeof b->at[0]) {
        b = calloc(1, sizeof *b);
        if (b == NULL) {
            return NULL;
        }
        b->next = ids->blocks;
        ids->blocks = b;
    }
    b->at[b->n] = id;
    return &b->at[b->n++];
}

uint32_t graph_walk_find(const struct graph_walk *w, int64_t id)
{
    const struct ids *ids = w->index;
    const uint32_t ix = ids == NULL ? MAP_NONE : map_get(&ids->map, key_of(&id));

    return ix == MAP_NONE ? UINT32_MAX : ix;
}

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for a walk");
}

static enum bt_code add_node(struct graph_walk *w, int64_t id, uint32_t depth, uint32_t *ret,
                             struct bt_error *err)
{
    struct ids *ids = w->index;
    const int64_t *kept;

    if (w->n_nodes == GRAPH_VISITED_MAX) {
        return err_set(err, BT_LIMIT,
                       "more than %d entities are within this depth: ask with a smaller depth, one "
                       "direction, or kinds",
                       GRAPH_VISITED_MAX);
    }
    if (w->n_nodes == w->cap_nodes) {
        const uint32_t cap = w->cap_nodes == 0 ? 64 : w->cap_nodes * 2;
        struct graph_node *grown = realloc(w->nodes, cap * sizeof *grown);
        if (grown == NULL) {
            return no_memory(err);
        }
        w->nodes = grown;
        w->cap_nodes = cap;
    }
    kept = keep(ids, id);
    if (kept == NULL || map_put(&ids->map, key_of(kept), w->n_nodes) != BT_OK) {
        return no_memory(err);
    }
    w->nodes[w->n_nodes] = (struct graph_node){.id = id, .depth = depth, .from = UINT32_MAX};
    *ret = w->n_nodes++;
    return BT_OK;
}

static enum bt_code add_edge(struct graph_walk *w, uint32_t from, uint32_t node, int64_t relation,
                             struct bt_error *err)
{
    if (w->n_edges == GRAPH_VISITED_MAX * 4) {
        return err_set(err, BT_LIMIT,
                       "more than %d relations are within this depth: ask with a "
                       "smaller depth, one direction, or kinds",
                       GRAPH_VISITED_MAX * 4);
    }
    if (w->n_edges == w->cap_edges) {
        const uint32_t cap = w->cap_edges == 0 ? 64 : w->cap_edges * 2;
        struct graph_edge *grown = realloc(w->edges, cap * sizeof *grown);
        if (grown == NULL) {
            return no_memory(err);
        }
        w->edges = grown;
        w->cap_edges = cap;
    }
    w->edges[w->n_edges] =
        (struct graph_edge){.to = from, .id = relation, .next = w->nodes[node].from};
    w->nodes[node].from = w->n_edges++;
    return BT_OK;
}

/* What one entity leads to. */
static enum bt_code expand(struct store *s, sqlite3_stmt *st, struct graph_walk *w, uint32_t from,
                           struct bt_error *err)
{
    const uint32_t depth = w->nodes[from].depth + 1;
    bool row = false;
    enum bt_code code;

    (void)sqlite3_bind_int64(st, 1, w->nodes[from].id);
    while ((code = store_next(s, st, &row, err)) == BT_OK && row) {
        const int64_t id = sqlite3_column_int64(st, 0);
        uint32_t node = graph_walk_find(w, id);
        if (node == UINT32_MAX) {
            code = add_node(w, id, depth, &node, err);
        }
        if (code == BT_OK && w->nodes[node].depth == depth) {
            code = add_edge(w, from, node, sqlite3_column_int64(st, 1), err);
        }
        if (code != BT_OK) {
            break;
        }
    }
    (void)sqlite3_reset(st);
    return code;
}

static const char *statement(enum graph_direction direction)
{
#define KINDS " AND (?2 IS NULL OR kind IN (SELECT value FROM json_each(?2)))"
    static const char out[] =
        "SELECT target, id FROM relations WHERE source = ?1" KINDS " ORDER BY target, id";
    static const char in[] =
        "SELECT source, id FROM relations WHERE target = ?1" KINDS " ORDER BY source, id";
    static const char both[] =
        "SELECT target AS other, id FROM relations WHERE source = ?1" KINDS
        " UNION SELECT source, id FROM relations WHERE target = ?1" KINDS " ORDER BY 1, 2";

    return direction == GRAPH_OUT ? out : direction == GRAPH_IN ? in : both;
}

enum bt_code graph_walk(struct store *s, int64_t start, const struct graph_question *q,
                        struct graph_walk *ret, struct bt_error *err)
{
    struct graph_walk *w = ret;
    sqlite3_stmt *st = NULL;
    uint32_t node;
    uint32_t last = UINT32_MAX; /* the depth after which nothing is asked for */
    enum bt_code code;

    *w = (struct graph_walk){.index = calloc(1, sizeof(struct ids))};
    code = w->index == NULL ? no_memory(err) : add_node(w, start, 0, &node, err);
    code = code == BT_OK ? store_prepare(s, statement(q->direction), &st, err) : code;
    if (code == BT_OK && q->kinds != NULL) {
        store_bind(st, 2, str_from(q->kinds));
    }
    for (uint32_t i = 0; code == BT_OK && i < w->n_nodes; i++) {
        if (w->nodes[i].depth >= q->depth || w->nodes[i].depth >= last) {
            break;
        }
        code = expand(s, st, w, i, err);
        if (code == BT_OK && q->until != 0 && last == UINT32_MAX &&
            graph_walk_find(w, q->until) != UINT32_MAX) {
            last = w->nodes[i].depth + 1; /* the rest of this layer may lead there, too */
        }
    }
    (void)sqlite3_finalize(st);
    return code;
}

void graph_walk_done(struct graph_walk *w)
{
    struct ids *ids = w->index;

    while (ids != NULL && ids->blocks != NULL) {
        struct block *next = ids->blocks->next;
        free(ids->blocks);
        ids->blocks = next;
    }
    if (ids != NULL) {
        map_done(&ids->map);
    }
    free(ids);
    free(w->nodes);
    free(w->edges);
    *w = (struct graph_walk){.nodes = NULL};
}
