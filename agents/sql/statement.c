#include "agents/sql/statement.h"

/* Rejects a second statement, because text meant as a value must not run as SQL. Comments and
 * blanks may follow. */
static enum bt_code check_rest(struct db *db, const char *rest, struct bt_error *err)
{
    sqlite3_stmt *second = NULL;
    bool clean = true;

    while (clean && *rest != 0) {
        const char *at = rest;
        clean = sqlite3_prepare_v2(db->sql, at, -1, &second, &rest) == SQLITE_OK && second == NULL;
        (void)sqlite3_finalize(second);
        if (rest == at) {
            break;
        }
    }
    return clean ? BT_OK
                 : err_set(err, BT_INVALID,
                           "sql: expected exactly one statement; there is more "
                           "after the first");
}

enum bt_code statement_prepare(struct db *db, const char *sql, sqlite3_stmt **ret,
                               struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const char *rest = NULL;
    enum bt_code code;

    db->denied[0] = 0;
    if (sqlite3_prepare_v2(db->sql, sql, -1, &stmt, &rest) != SQLITE_OK) {
        return db_error(db, err);
    }
    if (stmt == NULL) {
        return err_set(err, BT_INVALID, "sql: expected a statement, got none");
    }
    code = check_rest(db, rest, err);
    if (code == BT_OK && db->mode == DB_READ &&
        (!sqlite3_stmt_readonly(stmt) || sqlite3_column_count(stmt) == 0)) {
        code = err_set(err, BT_UNAUTHORIZED,
                       "not allowed here: a statement that is no query; the skill execute changes "
                       "data");
    }
    if (code != BT_OK) {
        (void)sqlite3_finalize(stmt);
        return code;
    }
    *ret = stmt;
    return BT_OK;
}

static int bind_json(sqlite3_stmt *stmt, int ix, struct doc value)
{
    struct buf json;
    enum bt_code code;
    int rc;

    buf_init(&json, DB_VALUE_MAX);
    code = doc_to_json(value, false, &json, NULL);
    rc = code != BT_OK
             ? (code == BT_NOMEM ? SQLITE_NOMEM : SQLITE_TOOBIG)
             : sqlite3_bind_text(stmt, ix, (const char *)json.at, (int)json.len, SQLITE_TRANSIENT);
    buf_done(&json);
    return rc;
}

static enum bt_code bind_value(struct db *db, sqlite3_stmt *stmt, int ix, struct doc value,
                               struct bt_error *err)
{
    struct doc_head h = doc_head(value);
    int rc = SQLITE_OK;

    switch (h.kind) {
    case DOC_NIL:
        rc = sqlite3_bind_null(stmt, ix);
        break;
    case DOC_BOOL:
        rc = sqlite3_bind_int(stmt, ix, h.b);
        break;
    case DOC_INT:
        rc = sqlite3_bind_int64(stmt, ix, h.i);
        break;
    case DOC_UINT:
        if (h.u > INT64_MAX) {
            return err_set(err, BT_INVALID, "params: %llu is not a 64-bit integer",
                           (unsigned long long)h.u);
        }
        rc = sqlite3_bind_int64(stmt, ix, (sqlite3_int64)h.u);
        break;
    case DOC_FLOAT:
        rc = sqlite3_bind_double(stmt, ix, h.f);
        break;
    case DOC_STR:
        rc = sqlite3_bind_text(stmt, ix, h.str.len > 0 ? h.str.ptr : "", (int)h.str.len,
                               SQLITE_TRANSIENT);
        break;
    case DOC_BIN:
        rc = sqlite3_bind_blob(stmt, ix, h.str.ptr, (int)h.str.len, SQLITE_TRANSIENT);
        break;
    case DOC_ARRAY:
    case DOC_MAP:
        rc = bind_json(stmt, ix, value);
        break;
    }
    return rc == SQLITE_OK ? BT_OK : db_bind_error(db, rc, err);
}

static enum bt_code bind_list(struct db *db, sqlite3_stmt *stmt, struct doc list,
                              struct bt_error *err)
{
    int n = sqlite3_bind_parameter_count(stmt);
    uint32_t given = doc_head(list).n;
    enum bt_code code = BT_OK;

    if ((uint32_t)n != given) {
        return err_set(err, BT_INVALID, "params: the statement has %d parameters, %u are given", n,
                       given);
    }
    for (int i = 0; i < n && code == BT_OK; i++) {
        code = bind_value(db, stmt, i + 1, doc_at(list, (uint32_t)i), err);
    }
    return code;
}

/* Rejects names that the statement does not have: a misspelt name must not leave a NULL. */
static enum bt_code check_names(sqlite3_stmt *stmt, struct doc map, struct bt_error *err)
{
    int n = sqlite3_bind_parameter_count(stmt);
    struct doc_cursor c = doc_cursor(map);
    struct doc_head h;

    (void)doc_next(&c, &h);
    for (uint32_t i = 0; i < h.n; i++) {
        struct str key = doc_string(doc_skip(&c));
        bool known = false;
        (void)doc_skip(&c);
        for (int k = 1; k <= n && !known; k++) {
            const char *name = sqlite3_bind_parameter_name(stmt, k);
            known = name != NULL && str_is(key, name + 1);
        }
        if (!known) {
            return err_set(err, BT_INVALID, "params.%.*s: the statement has no such parameter",
                           STR_ARG(key));
        }
    }
    return BT_OK;
}

static enum bt_code bind_map(struct db *db, sqlite3_stmt *stmt, struct doc map,
                             struct bt_error *err)
{
    int n = sqlite3_bind_parameter_count(stmt);
    enum bt_code code = check_names(stmt, map, err);

    for (int i = 1; i <= n && code == BT_OK; i++) {
        const char *name = sqlite3_bind_parameter_name(stmt, i);
        struct doc value = name == NULL ? (struct doc){0} : doc_get(map, str_from(name + 1));
        if (name == NULL) {
            return err_set(err, BT_INVALID,
                           "params: an object, but parameter %d has no name; write :name", i);
        }
        if (value.ptr == NULL) {
            return err_set(err, BT_INVALID, "params.%s: missing; the statement needs it", name + 1);
        }
        code = bind_value(db, stmt, i, value, err);
    }
    return code;
}

enum bt_code statement_bind(struct db *db, sqlite3_stmt *stmt, struct doc params,
                            struct bt_error *err)
{
    int n = sqlite3_bind_parameter_count(stmt);

    if (params.ptr == NULL || doc_head(params).kind == DOC_NIL) {
        return n == 0 ? BT_OK
                      : err_set(err, BT_INVALID, "params: missing; the statement has %d parameters",
                                n);
    }
    switch (doc_head(params).kind) {
    case DOC_ARRAY:
        return bind_list(db, stmt, params, err);
    case DOC_MAP:
        return bind_map(db, stmt, params, err);
    case DOC_NIL:
    case DOC_BOOL:
    case DOC_INT:
    case DOC_UINT:
    case DOC_FLOAT:
    case DOC_STR:
    case DOC_BIN:
        break;
    }
    return err_set(err, BT_INVALID, "params: expected a list or an object");
}
