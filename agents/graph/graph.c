/* The settings, the database, and what every question has. */
#include "agents/graph/graph.h"

#include <stdlib.h>

#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"
#include "agents/sdk/step.h"
#include "protocol/wire/doc.h"

enum { VERSION = 1, SETTINGS_BYTES = 64 * 1024 };

static const char SCHEMA[] =
    "CREATE TABLE entities(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT, name TEXT,"
    " properties TEXT NOT NULL);"
    "CREATE TABLE relations(id INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES "
    "entities(id),"
    " target INTEGER NOT NULL REFERENCES entities(id), kind TEXT NOT NULL,"
    " properties TEXT NOT NULL, UNIQUE(source, kind, target));"
    "CREATE INDEX relations_target ON relations(target, kind, source);"
    "CREATE INDEX entities_kind ON entities(kind);";

enum bt_code graph_new(const char *settings_json, struct graph **ret, struct bt_error *err)
{
    static const char *const known[] = {"database", "maxBytes"};
    struct graph *g = calloc(1, sizeof *g);
    struct arena arena = {.max = SETTINGS_BYTES};
    const char *database = NULL;
    struct doc map;
    struct buf bytes;
    enum bt_code code;

    if (g == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    g->max_bytes = 1024ull * 1024 * 1024;
    buf_init(&bytes, json_doc_capacity(SETTINGS_BYTES));
    code = json_to_doc(str_from(settings_json), NULL, &bytes, err);
    map = doc_from_buf(&bytes);
    code = code == BT_OK ? settings_check_names(map, known, 2, err) : code;
    code = code == BT_OK ? field_text(&arena, map, "database", true, &database, err) : code;
    code = code == BT_OK ? store_check_path(database, g->database, err) : code;
    code = code == BT_OK ? field_number(map, "maxBytes", 1024 * 1024, INT64_MAX, &g->max_bytes, err)
                         : code;
    buf_done(&bytes);
    arena_done(&arena);
    if (code != BT_OK) {
        graph_free(g);
        return code;
    }
    *ret = g;
    return BT_OK;
}

void graph_free(struct graph *g)
{
    free(g);
}

enum bt_code graph_open(const struct graph *g, struct bt_step *step, struct store *ret,
                        struct bt_error *err)
{
    const struct store_form form = {.path = g->database,
                                    .version = VERSION,
                                    .schema = SCHEMA,
                                    .max_bytes = g->max_bytes,
                                    .may_make = true};

    return store_open(ret, &form, step, err);
}

enum bt_code graph_id(struct store *s, sqlite3_stmt *find, struct str key, int64_t *ret,
                      struct bt_error *err)
{
    bool row = false;
    enum bt_code code;

    store_bind(find, 1, key);
    code = store_next(s, find, &row, err);
    *ret = row ? sqlite3_column_int64(find, 0) : 0;
    (void)sqlite3_reset(find);
    return code;
}

enum bt_code graph_question_read(struct bt_step *step, uint32_t depth, struct graph_question *ret,
                                 struct bt_error *err)
{
    static const char *const names[] = {"out", "in", "both"};
    const char *direction = bt_step_param_string(step, "direction", "both");
    const double wanted = bt_step_param_number(step, "depth", depth);
    uint32_t i = 0;

    while (i < 3 && strcmp(names[i], direction) != 0) {
        i++;
    }
    if (i == 3) {
        return err_set(err, BT_INVALID, "direction: expected out, in or both");
    }
    if (!(wanted >= 1.0 && wanted <= GRAPH_DEPTH_MAX)) {
        return err_set(err, BT_INVALID, "depth: expected a number from 1 to %d", GRAPH_DEPTH_MAX);
    }
    *ret = (struct graph_question){.direction = (enum graph_direction)i, .depth = (uint32_t)wanted};
    if (bt_step_has_param(step, "kinds")) {
        ret->kinds = bt_step_params_json(step, "kinds");
    }
    return BT_OK;
}
