/* merge and remove: one transaction each; all of it, or nothing. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "agents/graph/graph.h"
#include "agents/sdk/input.h"

enum { PROPERTIES_MAX = 64 * 1024 };

struct merging {
    struct store store;
    sqlite3_stmt *find, *old_entity, *put_entity, *old_relation, *put_relation;
    uint32_t added, changed, same;
    uint32_t relations_added, relations_changed, relations_same;
};

/* ---- reading ---- */

static enum bt_code read_key(const cJSON *item, const char *member, bool needed, struct str *ret,
                             struct bt_error *err)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(item, member);

    *ret = (struct str){NULL, 0};
    if (v == NULL && !needed) {
        return BT_OK;
    }
    if (!cJSON_IsString(v) || v->valuestring[0] == 0 || strlen(v->valuestring) > GRAPH_KEY_MAX) {
        return err_set(err, BT_INVALID, "%s: expected a text of 1 to %d bytes", member,
                       GRAPH_KEY_MAX);
    }
    *ret = str_from(v->valuestring);
    return BT_OK;
}

/* Members that are no part of the form are mistakes: they would be lost. */
static enum bt_code check_members(const cJSON *item, const char *const *known, struct bt_error *err)
{
    const cJSON *member;

    if (!cJSON_IsObject(item)) {
        return err_set(err, BT_INVALID, "expected an object");
    }
    cJSON_ArrayForEach(member, item)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], member->string) != 0) {
            i++;
        }
        if (known[i] == NULL) {
            return err_set(err, BT_INVALID, "unknown member '%.80s'; put it into properties",
                           member->string);
        }
    }
    return BT_OK;
}

static enum bt_code read_properties(const cJSON *item, struct buf *out, struct bt_error *err)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(item, "properties");
    enum bt_code code;

    if (v != NULL && !cJSON_IsObject(v)) {
        return err_set(err, BT_INVALID, "properties: expected an object");
    }
    if (v == NULL) {
        buf_add_cstr(out, "{}");
        return buf_check(out, err);
    }
    code = cjson_to_json(v, out, err);
    return code != BT_LIMIT ? code
                            : err_set(err, BT_LIMIT, "properties: over %d bytes", PROPERTIES_MAX);
}

/* ---- one entity, one relation ---- */

/* What is not given stays; a property that is null goes. */
static enum bt_code merge_entity(void *self, const cJSON *item, struct bt_error *err)
{
    struct merging *m = self;
    static const char *const known[] = {"key", "kind", "name", "properties", NULL};
    struct buf properties;
    struct str key;
    struct str kind;
    struct str name;
    bool row = false;
    bool there;
    enum bt_code code = check_members(item, known, err);

    buf_init(&properties, PROPERTIES_MAX);
    code = code == BT_OK ? read_key(item, "key", true, &key, err) : code;
    code = code == BT_OK ? read_key(item, "kind", false, &kind, err) : code;
    code = code == BT_OK ? read_key(item, "name", false, &name, err) : code;
    code = code == BT_OK ? read_properties(item, &properties, err) : code;
    if (code == BT_OK) {
        store_bind(m->old_entity, 1, key);
        code = store_next(&m->store, m->old_entity, &row, err);
        (void)sqlite3_reset(m->old_entity);
    }
    there = row;
    if (code == BT_OK) {
        store_bind(m->put_entity, 1, key);
        (void)(kind.ptr != NULL ? (store_bind(m->put_entity, 2, kind), 0)
                                : sqlite3_bind_null(m->put_entity, 2));
        (void)(name.ptr != NULL ? (store_bind(m->put_entity, 3, name), 0)
                                : sqlite3_bind_null(m->put_entity, 3));
        store_bind(m->put_entity, 4, buf_str(&properties));
        code = store_do(&m->store, m->put_entity, err);
    }
    if (code == BT_OK) {
        const bool changed = sqlite3_changes(m->store.sql) > 0;
        m->added += !there ? 1 : 0;
        m->changed += there && changed ? 1 : 0;
        m->same += there && !changed ? 1 : 0;
    }
    buf_done(&properties);
    return code;
}

static enum bt_code end_of(struct merging *m, const cJSON *item, const char *member, int64_t *ret,
                           struct bt_error *err)
{
    struct str key;
    enum bt_code code = read_key(item, member, true, &key, err);

    code = code == BT_OK ? graph_id(&m->store, m->find, key, ret, err) : code;
    if (code == BT_OK && *ret == 0) {
        return err_set(err, BT_INVALID,
                       "%s: there is no entity '%.*s'; merge it before, or in the same step",
                       member, key.len > 100 ? 100 : (int)key.len, key.ptr);
    }
    return code;
}

static enum bt_code merge_relation(void *self, const cJSON *item, struct bt_error *err)
{
    struct merging *m = self;
    static const char *const known[] = {"from", "to", "kind", "properties", NULL};
    struct buf properties;
    struct str kind;
    int64_t from = 0;
    int64_t to = 0;
    bool there = false;
    enum bt_code code = check_members(item, known, err);

    buf_init(&properties, PROPERTIES_MAX);
    code = code == BT_OK ? read_key(item, "kind", true, &kind, err) : code;
    code = code == BT_OK ? end_of(m, item, "from", &from, err) : code;
    code = code == BT_OK ? end_of(m, item, "to", &to, err) : code;
    code = code == BT_OK ? read_properties(item, &properties, err) : code;
    if (code == BT_OK) {
        (void)sqlite3_bind_int64(m->old_relation, 1, from);
        (void)sqlite3_bind_int64(m->old_relation, 2, to);
        store_bind(m->old_relation, 3, kind);
        code = store_next(&m->store, m->old_relation, &there, err);
        (void)sqlite3_reset(m->old_relation);
    }
    if (code == BT_OK) {
        (void)sqlite3_bind_int64(m->put_relation, 1, from);
        (void)sqlite3_bind_int64(m->put_relation, 2, to);
        store_bind(m->put_relation, 3, kind);
        store_bind(m->put_relation, 4, buf_str(&properties));
        code = store_do(&m->store, m->put_relation, err);
    }
    if (code == BT_OK) {
        const bool changed = sqlite3_changes(m->store.sql) > 0;
        m->relations_added += !there ? 1 : 0;
        m->relations_changed += there && changed ? 1 : 0;
        m->relations_same += there && !changed ? 1 : 0;
    }
    buf_done(&properties);
    return code;
}

/* ---- lists ---- */

typedef enum bt_code (*each_item)(void *self, const cJSON *item, struct bt_error *err);

static enum bt_code for_each(void *self, const cJSON *params, const char *member, each_item each,
                             struct bt_error *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(params, member);
    const cJSON *item;
    int i = 0;

    if (list != NULL && !cJSON_IsArray(list)) {
        return err_set(err, BT_INVALID, "%s: expected a list", member);
    }
    if (cJSON_GetArraySize(list) > GRAPH_ITEMS_MAX) {
        return err_set(err, BT_LIMIT, "%s: more than %d; merge them in several steps", member,
                       GRAPH_ITEMS_MAX);
    }
    cJSON_ArrayForEach(item, list)
    {
        if (each(self, item, err) != BT_OK) {
            return err_wrap(err, "%s[%d]", member, i);
        }
        i++;
    }
    return BT_OK;
}

static enum bt_code prepare(struct merging *m, struct bt_error *err)
{
    const struct {
        sqlite3_stmt **st;
        const char *sql;
    } all[] = {{&m->find, "SELECT id FROM entities WHERE key = ?1"},
               {&m->old_entity, "SELECT 1 FROM entities WHERE key = ?1"},
               {&m->put_entity,
                "INSERT INTO entities(key, kind, name, properties)"
                " VALUES (?1, ?2, ?3, json_patch('{}', ?4)) ON CONFLICT(key) DO UPDATE SET"
                " kind = coalesce(?2, kind), name = coalesce(?3, name),"
                " properties = json_patch(properties, ?4)"
                " WHERE kind IS NOT coalesce(?2, kind) OR name IS NOT coalesce(?3, name)"
                " OR properties <> json_patch(properties, ?4)"},
               {&m->old_relation,
                "SELECT 1 FROM relations WHERE source = ?1 AND target = ?2 AND kind = ?3"},
               {&m->put_relation, "INSERT INTO relations(source, target, kind, properties)"
                                  " VALUES (?1, ?2, ?3, json_patch('{}', ?4)) ON CONFLICT(source, "
                                  "kind, target) DO UPDATE SET"
                                  " properties = json_patch(properties, ?4)"
                                  " WHERE properties <> json_patch(properties, ?4)"}};
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && code == BT_OK; i++) {
        code = store_prepare(&m->store, all[i].sql, all[i].st, err);
    }
    return code;
}

static void finish(struct merging *m)
{
    (void)sqlite3_finalize(m->find);
    (void)sqlite3_finalize(m->old_entity);
    (void)sqlite3_finalize(m->put_entity);
    (void)sqlite3_finalize(m->old_relation);
    (void)sqlite3_finalize(m->put_relation);
    store_close(&m->store);
}

static enum bt_code merge_all(struct merging *m, const cJSON *params, struct bt_error *err)
{
    enum bt_code code = prepare(m, err);

    code = code == BT_OK ? store_begin(&m->store, err) : code;
    code = code == BT_OK ? for_each(m, params, "entities", merge_entity, err) : code;
    code = code == BT_OK ? for_each(m, params, "relations", merge_relation, err) : code;
    return code == BT_OK ? store_commit(&m->store, err) : code;
}

struct counted {
    const char *name;
    uint32_t n;
};

static void reply_counts(struct bt_step *step, const struct counted *counts, size_t n,
                         const char *text)
{
    cJSON *data = cJSON_CreateObject();

    for (size_t i = 0; i < n; i++) {
        (void)cJSON_AddNumberToObject(data, counts[i].name, counts[i].n);
    }
    input_reply(step, data, text);
}

void graph_merge(struct bt_step *step, void *self)
{
    struct merging m = {.added = 0};
    cJSON *params = NULL;
    struct bt_error err;
    char text[200];
    enum bt_code code = input_parameters(step, &params, &err);

    if (code == BT_OK && cJSON_GetObjectItemCaseSensitive(params, "entities") == NULL &&
        cJSON_GetObjectItemCaseSensitive(params, "relations") == NULL) {
        code = err_set(&err, BT_INVALID, "give entities, relations, or both");
    }
    code = code == BT_OK ? graph_open(self, step, &m.store, &err) : code;
    code = code == BT_OK ? merge_all(&m, params, &err) : code;
    if (code == BT_OK) {
        const struct counted counts[] = {{"entitiesAdded", m.added},
                                         {"entitiesChanged", m.changed},
                                         {"entitiesUnchanged", m.same},
                                         {"relationsAdded", m.relations_added},
                                         {"relationsChanged", m.relations_changed},
                                         {"relationsUnchanged", m.relations_same}};
        (void)snprintf(text, sizeof text,
                       "%u entities added, %u changed; %u relations added, %u changed", m.added,
                       m.changed, m.relations_added, m.relations_changed);
        reply_counts(step, counts, sizeof counts / sizeof counts[0], text);
    } else {
        bt_step_fail_error(step, &err);
    }
    finish(&m);
    cJSON_Delete(params);
}

/* ---- remove ---- */

struct removing {
    struct store store;
    sqlite3_stmt *relations_of, *entity, *relation;
    uint32_t entities, relations;
};

static enum bt_code remove_entity(void *self, const cJSON *item, struct bt_error *err)
{
    struct removing *m = self;
    enum bt_code code;

    if (!cJSON_IsString(item)) {
        return err_set(err, BT_INVALID, "expected the key of an entity");
    }
    store_bind(m->relations_of, 1, str_from(item->valuestring));
    code = store_do(&m->store, m->relations_of, err);
    if (code != BT_OK) {
        return code;
    }
    m->relations += (uint32_t)sqlite3_changes(m->store.sql);
    store_bind(m->entity, 1, str_from(item->valuestring));
    code = store_do(&m->store, m->entity, err);
    m->entities += code == BT_OK ? (uint32_t)sqlite3_changes(m->store.sql) : 0;
    return code;
}

static enum bt_code remove_relation(void *self, const cJSON *item, struct bt_error *err)
{
    struct removing *m = self;
    static const char *const known[] = {"from", "to", "kind", NULL};
    struct str part[3];
    enum bt_code code = check_members(item, known, err);

    for (int i = 0; i < 3 && code == BT_OK; i++) {
        code = read_key(item, known[i], true, &part[i], err);
        store_bind(m->relation, i + 1, part[i]);
    }
    code = code == BT_OK ? store_do(&m->store, m->relation, err) : code;
    m->relations += code == BT_OK ? (uint32_t)sqlite3_changes(m->store.sql) : 0;
    return code;
}

static enum bt_code remove_all(struct removing *m, const cJSON *params, struct bt_error *err)
{
    enum bt_code code = store_prepare(
        &m->store,
        "DELETE FROM relations WHERE source = (SELECT id FROM entities WHERE key = ?1)"
        " OR target = (SELECT id FROM entities WHERE key = ?1)",
        &m->relations_of, err);

    code = code == BT_OK
               ? store_prepare(&m->store, "DELETE FROM entities WHERE key = ?1", &m->entity, err)
               : code;
    code = code == BT_OK
               ? store_prepare(
                     &m->store,
                     "DELETE FROM relations WHERE source = (SELECT id FROM entities WHERE key = ?1)"
                     " AND target = (SELECT id FROM entities WHERE key = ?2) AND kind = ?3",
                     &m->relation, err)
               : code;
    code = code == BT_OK ? store_begin(&m->store, err) : code;
    code = code == BT_OK ? for_each(m, params, "relations", remove_relation, err) : code;
    code = code == BT_OK ? for_each(m, params, "entities", remove_entity, err) : code;
    return code == BT_OK ? store_commit(&m->store, err) : code;
}

void graph_remove(struct bt_step *step, void *self)
{
    struct removing m = {.entities = 0};
    cJSON *params = NULL;
    struct bt_error err;
    char text[200];
    enum bt_code code = input_parameters(step, &params, &err);

    code = code == BT_OK ? graph_open(self, step, &m.store, &err) : code;
    code = code == BT_OK ? remove_all(&m, params, &err) : code;
    if (code == BT_OK) {
        const struct counted counts[] = {{"entitiesRemoved", m.entities},
                                         {"relationsRemoved", m.relations}};
        (void)snprintf(text, sizeof text, "%u entities and %u relations removed", m.entities,
                       m.relations);
        reply_counts(step, counts, 2, text);
    } else {
        bt_step_fail_error(step, &err);
    }
    (void)sqlite3_finalize(m.relations_of);
    (void)sqlite3_finalize(m.entity);
    (void)sqlite3_finalize(m.relation);
    store_close(&m.store);
    cJSON_Delete(params);
}
