/* The skills of the graph agent: merge, remove, find, neighbours, paths. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include <limits.h>

#include "agents/sdk/store/store.h"

struct cJSON;

enum {
    GRAPH_DEPTH_MAX = 8,
    GRAPH_VISITED_MAX = 100000, /* entities that one question looks at */
    GRAPH_ROWS_MAX = 10000,     /* of an answer */
    GRAPH_ITEMS_MAX = 20000,    /* entities, and relations, of one merge */
    GRAPH_KEY_MAX = 512,
    GRAPH_KINDS_MAX = 32
};

struct graph {
    char database[PATH_MAX];
    uint64_t max_bytes;
};

extern const struct bt_skill graph_skills[];
extern const size_t graph_skill_count;

/* Reads {database, maxBytes}. BT_INVALID names the member. */
BT_MUST_CHECK enum bt_code graph_new(const char *settings_json, struct graph **ret,
                                     struct bt_error *err);
/* Accepts NULL. */
void graph_free(struct graph *g);

/* The handlers; self is the struct graph. Thread-safe: each call has its own connection. */
void graph_merge(struct bt_step *step, void *self);
void graph_remove(struct bt_step *step, void *self);
void graph_find(struct bt_step *step, void *self);
void graph_neighbours(struct bt_step *step, void *self);
void graph_paths(struct bt_step *step, void *self);

/* ---- shared by the handlers ---- */

/* A graph that nothing was merged into is empty. */
BT_MUST_CHECK enum bt_code graph_open(const struct graph *g, struct bt_step *step,
                                      struct store *ret, struct bt_error *err);
/* The row of an entity by its key; 0 = there is none. find: "SELECT id FROM entities WHERE key =
 * ?1"
 */
BT_MUST_CHECK enum bt_code graph_id(struct store *s, sqlite3_stmt *find, struct str key,
                                    int64_t *ret, struct bt_error *err);

/* walk.c: breadth first from one entity. */
enum graph_direction { GRAPH_OUT, GRAPH_IN, GRAPH_BOTH };
struct graph_edge {
    uint32_t to;   /* an index of nodes */
    int64_t id;    /* of the relation */
    uint32_t next; /* the next edge into the same node, UINT32_MAX = none */
};
struct graph_node {
    int64_t id;
    uint32_t depth;
    uint32_t
        from; /* edges[from]: the first of the edges by which a shortest way comes; UINT32_MAX */
};
struct graph_walk {
    struct graph_node *nodes;
    uint32_t n_nodes, cap_nodes;
    struct graph_edge *edges; /* .to is where the way comes from */
    uint32_t n_edges, cap_edges;
    void *index; /* id to node */
};
struct graph_question {
    enum graph_direction direction;
    uint32_t depth;
    const char *kinds; /* JSON list of kinds of relations, or NULL = all */
    int64_t until;     /* ends with the layer that has this entity; 0 = none */
};
/* The step's direction, depth (else `depth`) and kinds. BT_INVALID names the parameter. */
BT_MUST_CHECK enum bt_code graph_question_read(struct bt_step *step, uint32_t depth,
                                               struct graph_question *ret, struct bt_error *err);
/* All entities within the depth, nodes[0] the start, in the order of depth and then id. BT_LIMIT
 * over GRAPH_VISITED_MAX. graph_walk_done in every case. */
BT_MUST_CHECK enum bt_code graph_walk(struct store *s, int64_t start,
                                      const struct graph_question *q, struct graph_walk *ret,
                                      struct bt_error *err);
/* The node of an entity, UINT32_MAX when it was not reached. */
uint32_t graph_walk_find(const struct graph_walk *w, int64_t id);
void graph_walk_done(struct graph_walk *w);
#endif
