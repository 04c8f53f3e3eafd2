#include "agents/sql/types.h"

#include <strings.h>

#include <cjson/cJSON.h>

#include "agents/sql/db.h"

const char *types_sql_name(enum cell_type type)
{
    static const char *const names[CELL_TYPE_COUNT] = {[CELL_TEXT] = "TEXT",
                                                       [CELL_INTEGER] = "INTEGER",
                                                       [CELL_REAL] = "REAL",
                                                       [CELL_BOOLEAN] = "BOOLEAN",
                                                       [CELL_DATE] = "TEXT"};

    return names[type];
}

bool types_is_boolean(const char *declared)
{
    return declared != NULL &&
           (strcasecmp(declared, "BOOLEAN") == 0 || strcasecmp(declared, "BOOL") == 0);
}

int types_bind_value(sqlite3_stmt *stmt, int ix, const struct cell *value)
{
    if (value->null) {
        return sqlite3_bind_null(stmt, ix);
    }
    switch (value->type) {
    case CELL_INTEGER:
        return sqlite3_bind_int64(stmt, ix, value->integer);
    case CELL_REAL:
        return sqlite3_bind_double(stmt, ix, value->real);
    case CELL_BOOLEAN:
        return sqlite3_bind_int(stmt, ix, value->boolean);
    case CELL_TEXT:
    case CELL_DATE:
    case CELL_TYPE_COUNT:
        break;
    }
    return sqlite3_bind_text64(stmt, ix, value->text.ptr, value->text.len, SQLITE_TRANSIENT,
                               SQLITE_UTF8);
}

int types_bind(sqlite3_stmt *stmt, int ix, const struct table *t, int column, const cJSON *cell)
{
    struct cell value;
    struct buf json;
    enum bt_code code;
    int rc;

    table_value(t, column, cell, &value);
    if (!cJSON_IsArray(cell) && !cJSON_IsObject(cell)) {
        return types_bind_value(stmt, ix, &value);
    }
    buf_init(&json, DB_VALUE_MAX);
    code = cjson_to_json(cell, &json, NULL);
    rc = code != BT_OK ? (code == BT_NOMEM ? SQLITE_NOMEM : SQLITE_TOOBIG)
                       : sqlite3_bind_text(stmt, ix, buf_cstr(&json), -1, SQLITE_TRANSIENT);
    buf_done(&json);
    return rc;
}
