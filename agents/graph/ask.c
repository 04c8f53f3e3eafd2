/* find, neighbours, paths. */
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/graph/graph.h"
#include "agents/sdk/input.h"
#include "agents/sdk/whole.h"

enum { DEPTH_DEFAULT = 1, PATH_DEPTH_DEFAULT = 6, PATHS_MAX = 1000 };

struct asking {
    struct store store;
    sqlite3_stmt *find, *entity, *relation;
};

static enum bt_code open_all(struct asking *a, struct bt_step *step, const struct graph *g,
                             struct bt_error *err)
{
    enum bt_code code = graph_open(g, step, &a->store, err);

    code = code == BT_OK
               ? store_prepare(&a->store, "SELECT id FROM entities WHERE key = ?1", &a->find, err)
               : code;
    code = code == BT_OK
               ? store_prepare(&a->store,
                               "SELECT key, kind, name, properties FROM entities WHERE id = ?1",
                               &a->entity, err)
               : code;
    return code == BT_OK ? store_prepare(&a->store,
                                         "SELECT s.key, r.kind, t.key FROM relations r"
                                         " JOIN entities s ON s.id = r.source"
                                         " JOIN entities t ON t.id = r.target WHERE r.id = ?1",
                                         &a->relation, err)
                         : code;
}

static void close_all(struct asking *a)
{
    (void)sqlite3_finalize(a->find);
    (void)sqlite3_finalize(a->entity);
    (void)sqlite3_finalize(a->relation);
    store_close(&a->store);
}

/* {key, kind?, name?, properties} of the row that the statement stands on. */
static cJSON *entity_data(sqlite3_stmt *st)
{
    static const char *const members[] = {"key", "kind", "name"};
    cJSON *one = cJSON_CreateObject();

    for (int i = 0; i < 3; i++) {
        if (sqlite3_column_type(st, i) != SQLITE_NULL) {
            (void)cJSON_AddStringToObject(one, members[i], store_text(st, i).ptr);
        }
    }
    (void)input_add(one, "properties", cJSON_Parse(store_text(st, 3).ptr));
    return one;
}

static enum bt_code add_entity(struct asking *a, int64_t id, cJSON **ret, struct bt_error *err)
{
    bool row = false;
    enum bt_code code;

    (void)sqlite3_bind_int64(a->entity, 1, id);
    code = store_next(&a->store, a->entity, &row, err);
    *ret = row ? entity_data(a->entity) : NULL;
    (void)sqlite3_reset(a->entity);
    return code;
}

static enum bt_code start_of(struct asking *a, struct bt_step *step, const char *parameter,
                             int64_t *ret, struct bt_error *err)
{
    const char *key = bt_step_param_string(step, parameter, "");
    enum bt_code code = graph_id(&a->store, a->find, str_from(key), ret, err);

    if (code == BT_OK && *ret == 0) {
        return err_set(err, BT_NOT_FOUND, "%s: there is no entity '%.100s'", parameter, key);
    }
    return code;
}

/* The step's limit, or `fallback`; *ret_set: the step set one. */
static uint32_t limit_of(struct bt_step *step, uint32_t fallback, bool *ret_set)
{
    const double v = bt_step_param_number(step, "limit", fallback);

    *ret_set = bt_step_has_param(step, "limit");
    return v >= 1.0 && v <= GRAPH_ROWS_MAX ? (uint32_t)v : fallback;
}

/* An answer that is not whole was asked for by a limit, or is an error. */
static enum bt_code check_whole(size_t n, uint32_t limit, bool set, struct bt_error *err)
{
    return n <= limit || set
               ? BT_OK
               : err_set(err, BT_LIMIT, "more than %u results; ask for less, or set limit", limit);
}

/* Adds what every answer has. */
static void reply(struct bt_step *step, cJSON *data, const cJSON *list, bool truncated,
                  struct buf *text, const char *none)
{
    (void)cJSON_AddNumberToObject(data, "count", cJSON_GetArraySize(list));
    (void)cJSON_AddBoolToObject(data, "truncated", truncated);
    if (cJSON_GetArraySize(list) == 0) {
        buf_add_cstr(text, none);
    }
    input_reply_buf(step, data, text);
}

/* ---- find ---- */

void graph_find(struct bt_step *step, void *self)
{
    struct asking a = {.find = NULL};
    cJSON *data = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(data, "entities");
    const char *text = bt_step_param_string(step, "text", NULL);
    const char *kind = bt_step_param_string(step, "kind", NULL);
    bool set;
    const uint32_t limit = limit_of(step, GRAPH_ROWS_MAX, &set);
    sqlite3_stmt *st = NULL;
    size_t n = 0;
    bool row = false;
    struct bt_error err;
    struct buf lines;
    enum bt_code code = open_all(&a, step, self, &err);

    buf_init(&lines, LIMIT_RESULT_BYTES);
    code = code == BT_OK ? store_prepare(&a.store,
                                         "SELECT key, kind, name, properties FROM entities"
                                         " WHERE (?1 IS NULL OR instr(lower(key), lower(?1)) > 0"
                                         " OR instr(lower(name), lower(?1)) > 0)"
                                         " AND (?2 IS NULL OR kind = ?2) ORDER BY key",
                                         &st, &err)
                         : code;
    if (code == BT_OK) {
        (void)(text != NULL ? (store_bind(st, 1, str_from(text)), 0) : 0);
        (void)(kind != NULL ? (store_bind(st, 2, str_from(kind)), 0) : 0);
        while ((code = store_next(&a.store, st, &row, &err)) == BT_OK && row && ++n <= limit) {
            (void)input_add(list, NULL, entity_data(st));
            buf_printf(&lines, "%s\n", store_text(st, 0).ptr);
        }
    }
    code = code == BT_OK ? check_whole(n, limit, set, &err) : code;
    (void)sqlite3_finalize(st);
    if (code == BT_OK) {
        if (n > limit) {
            whole_mark(step, &lines, "more than %u entities fit; set a higher limit", limit);
        }
        reply(step, data, list, n > limit, &lines, "no entity fits");
    } else {
        cJSON_Delete(data);
        bt_step_fail_error(step, &err);
    }
    buf_done(&lines);
    close_all(&a);
}

/* ---- neighbours ---- */

/* The relation by which a way comes: {from, kind, to}. */
static enum bt_code add_relation(struct asking *a, int64_t id, cJSON *list, struct buf *text,
                                 struct bt_error *err)
{
    static const char *const members[] = {"from", "kind", "to"};
    cJSON *one = cJSON_CreateObject();
    bool row = false;
    enum bt_code code;

    (void)sqlite3_bind_int64(a->relation, 1, id);
    code = store_next(&a->store, a->relation, &row, err);
    for (int i = 0; i < 3 && row; i++) {
        (void)cJSON_AddStringToObject(one, members[i], store_text(a->relation, i).ptr);
    }
    if (row && text != NULL) {
        buf_printf(text, "%s -%s-> %s", store_text(a->relation, 0).ptr,
                   store_text(a->relation, 1).ptr, store_text(a->relation, 2).ptr);
    }
    (void)input_add(list, NULL, one);
    (void)sqlite3_reset(a->relation);
    return code;
}

static enum bt_code put_neighbour(struct asking *a, const struct graph_walk *w, uint32_t node,
                                  cJSON *list, struct buf *text, struct bt_error *err)
{
    cJSON *one = NULL;
    cJSON *via;
    enum bt_code code = add_entity(a, w->nodes[node].id, &one, err);

    if (code != BT_OK || one == NULL) {
        return code;
    }
    (void)cJSON_AddNumberToObject(one, "depth", w->nodes[node].depth);
    via = cJSON_AddArrayToObject(one, "via");
    if (!input_add(list, NULL, one)) {
        return BT_OK; /* the reply is not made then */
    }
    for (uint32_t e = w->nodes[node].from; e != UINT32_MAX && code == BT_OK; e = w->edges[e].next) {
        code = add_relation(a, w->edges[e].id, via, text, err);
        buf_add_byte(text, '\n');
    }
    return code;
}

void graph_neighbours(struct bt_step *step, void *self)
{
    struct asking a = {.find = NULL};
    struct graph_walk walk = {.nodes = NULL};
    struct graph_question q;
    cJSON *data = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(data, "entities");
    bool set;
    const uint32_t limit = limit_of(step, GRAPH_ROWS_MAX, &set);
    int64_t start = 0;
    struct buf text;
    struct bt_error err;
    enum bt_code code = graph_question_read(step, DEPTH_DEFAULT, &q, &err);

    buf_init(&text, LIMIT_RESULT_BYTES);
    code = code == BT_OK ? open_all(&a, step, self, &err) : code;
    code = code == BT_OK ? start_of(&a, step, "key", &start, &err) : code;
    code = code == BT_OK ? graph_walk(&a.store, start, &q, &walk, &err) : code;
    code = code == BT_OK ? check_whole(walk.n_nodes - 1, limit, set, &err) : code;
    for (uint32_t i = 1; i < walk.n_nodes && i <= limit && code == BT_OK; i++) {
        code = put_neighbour(&a, &walk, i, list, &text, &err);
    }
    if (code == BT_OK) {
        if (walk.n_nodes - 1 > limit) {
            whole_mark(step, &text, "%u of %u entities; set a higher limit", limit,
                       walk.n_nodes - 1);
        }
        reply(step, data, list, walk.n_nodes - 1 > limit, &text, "no neighbours");
    } else {
        cJSON_Delete(data);
        bt_step_fail_error(step, &err);
    }
    buf_done(&text);
    graph_walk_done(&walk);
    close_all(&a);
}

/* ---- paths ---- */

struct path {
    uint32_t edges[GRAPH_DEPTH_MAX];
    uint32_t n;
};

struct paths {
    struct asking *a;
    const struct graph_walk *walk;
    cJSON *list;
    struct buf text;
    uint32_t n, limit;
};

static enum bt_code put_path(struct paths *p, const struct path *way, struct bt_error *err)
{
    cJSON *one = cJSON_CreateArray();
    enum bt_code code = BT_OK;

    if (!input_add(p->list, NULL, one)) {
        return BT_OK; /* the reply is not made then */
    }
    for (uint32_t i = way->n; i-- > 0 && code == BT_OK;) {
        code = add_relation(p->a, p->walk->edges[way->edges[i]].id, one, &p->text, err);
        buf_add_cstr(&p->text, i > 0 ? ", " : "\n");
    }
    return code;
}

/* From the end back to the start, by every relation of a shortest way. */
static enum bt_code follow(struct paths *p, uint32_t node, struct path *way, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (p->walk->nodes[node].from == UINT32_MAX) {
        return ++p->n <= p->limit ? put_path(p, way, err) : BT_OK;
    }
    for (uint32_t e = p->walk->nodes[node].from;
         e != UINT32_MAX && code == BT_OK && p->n <= p->limit; e = p->walk->edges[e].next) {
        way->edges[way->n++] = e;
        code = follow(p, p->walk->edges[e].to, way, err);
        way->n--;
    }
    return code;
}

static void reply_paths(struct bt_step *step, struct paths *p, cJSON *data, int64_t length)
{
    if (length >= 0) {
        (void)cJSON_AddNumberToObject(data, "length", (double)length);
    }
    if (p->n > p->limit) {
        whole_mark(step, &p->text, "%u of more paths; set a higher limit", p->limit);
    }
    reply(step, data, p->list, p->n > p->limit, &p->text, "no path");
}

void graph_paths(struct bt_step *step, void *self)
{
    struct asking a = {.find = NULL};
    struct graph_walk walk = {.nodes = NULL};
    struct graph_question q;
    struct path way = {.n = 0};
    cJSON *data = cJSON_CreateObject();
    struct paths p = {.a = &a, .walk = &walk, .list = cJSON_AddArrayToObject(data, "paths")};
    bool set;
    int64_t from = 0;
    uint32_t end = UINT32_MAX;
    struct bt_error err;
    enum bt_code code = graph_question_read(step, PATH_DEPTH_DEFAULT, &q, &err);

    p.limit = limit_of(step, PATHS_MAX, &set);
    buf_init(&p.text, LIMIT_RESULT_BYTES);
    code = code == BT_OK ? open_all(&a, step, self, &err) : code;
    code = code == BT_OK ? start_of(&a, step, "from", &from, &err) : code;
    code = code == BT_OK ? start_of(&a, step, "to", &q.until, &err) : code;
    code = code == BT_OK ? graph_walk(&a.store, from, &q, &walk, &err) : code;
    if (code == BT_OK) {
        end = graph_walk_find(&walk, q.until);
        code = end == UINT32_MAX ? BT_OK : follow(&p, end, &way, &err);
    }
    code = code == BT_OK ? check_whole(p.n, p.limit, set, &err) : code;
    if (code == BT_OK) {
        reply_paths(step, &p, data, end == UINT32_MAX ? -1 : (int64_t)walk.nodes[end].depth);
    } else {
        cJSON_Delete(data);
        bt_step_fail_error(step, &err);
    }
    buf_done(&p.text);
    graph_walk_done(&walk);
    close_all(&a);
}
