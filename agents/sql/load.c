/* load: inserts rows into a table, all of them or none. */
#include <stdlib.h>
#include <strings.h>

#include <cjson/cJSON.h>

#include "agents/sdk/input.h"
#include "agents/sdk/step.h"
#include "agents/sdk/table.h"
#include "agents/sql/idempotency.h"
#include "agents/sql/sql.h"
#include "agents/sql/types.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { STATEMENT_MAX = 256 * 1024, TABLE_NAME_MAX = 64, LOOK_EVERY = 256 };

struct load {
    struct bt_step *step;
    const char *table;
    struct table rows;
    bool from_csv;
    enum sql_type types[TABLE_COLUMNS_MAX];
    int loaded;
};

/* ---- the rows ---- */

static enum bt_code check_table_name(const char *name, struct bt_error *err)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= TABLE_NAME_MAX && strncasecmp(name, "sqlite_", 7) != 0 &&
              strncasecmp(name, DB_OWN_PREFIX, sizeof DB_OWN_PREFIX - 1) != 0;

    for (size_t i = 0; i < n && ok; i++) {
        ok = (unsigned char)name[i] >= 0x20 && name[i] != 0x7F;
    }
    return ok ? BT_OK
              : err_set(err, BT_INVALID,
                        "table '%.80s': expected 1 to %d bytes without control characters, not "
                        "beginning with sqlite_ or %s",
                        name, TABLE_NAME_MAX, DB_OWN_PREFIX);
}

static enum bt_code read_csv(struct load *l, const char *text, struct bt_error *err)
{
    const char *delimiter = bt_step_param_string(l->step, "delimiter", ",");

    if (strlen(delimiter) != 1 || strchr("\"\r\n", delimiter[0]) != NULL) {
        return err_set(err, BT_INVALID, "delimiter: expected one character, such as , or ;");
    }
    l->from_csv = true;
    return table_read_csv(text, delimiter[0], &l->rows, err);
}

static enum bt_code read_rows(struct load *l, struct bt_error *err)
{
    const char *csv = bt_step_param_string(l->step, "csv", NULL);
    cJSON *tree = NULL;
    enum bt_code code;

    if (csv != NULL) {
        return read_csv(l, csv, err);
    }
    code = input_tree(l->step, "rows", &tree, err);
    if (code == BT_OK && tree == NULL) {
        code = err_set(err, BT_INVALID,
                       "parameters.rows: missing, and no step before has a result; give rows or "
                       "csv");
    }
    if (code == BT_OK) {
        code = cJSON_IsString(tree) ? read_csv(l, tree->valuestring, err)
                                    : table_read(tree, &l->rows, err);
    }
    cJSON_Delete(tree);
    return code;
}

/* The parameter `columns` renames the columns, in order. */
static enum bt_code rename_columns(struct load *l, struct bt_error *err)
{
    struct doc list = l->step->req.parameters.ptr == NULL
                          ? (struct doc){0}
                          : doc_get(l->step->req.parameters, STR_LIT("columns"));

    if (list.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(list).kind != DOC_ARRAY || doc_head(list).n != (uint32_t)l->rows.n) {
        return err_set(err, BT_INVALID, "columns: expected a list of %d names, one per column",
                       l->rows.n);
    }
    for (int i = 0; i < l->rows.n; i++) {
        struct str name = doc_string(doc_at(list, (uint32_t)i));
        char *copy = name.len == 0 ? NULL : strndup(name.ptr, name.len);
        if (copy == NULL) {
            return err_set(err, BT_INVALID, "columns[%d]: expected a name", i);
        }
        free(l->rows.columns[i]);
        l->rows.columns[i] = copy;
    }
    return BT_OK;
}

/* ---- statements: names are quoted, values are bound ---- */

static void add_name(struct buf *sql, const char *name)
{
    buf_add_byte(sql, '"');
    for (const char *p = name; *p != 0; p++) {
        buf_add_byte(sql, (uint8_t)*p);
        if (*p == '"') {
            buf_add_byte(sql, '"');
        }
    }
    buf_add_byte(sql, '"');
}

static enum bt_code run_sql(struct db *db, struct buf *sql, struct bt_error *err)
{
    return buf_check(sql, err) == BT_OK ? db_run_own(db, buf_cstr(sql), err) : err->code;
}

static enum bt_code create_table(struct db *db, const struct load *l, struct buf *sql,
                                 struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (bt_step_param_bool(l->step, "replace", false)) {
        buf_add_cstr(sql, "DROP TABLE IF EXISTS ");
        add_name(sql, l->table);
        code = run_sql(db, sql, err);
    }
    buf_clear(sql);
    buf_add_cstr(sql, "CREATE TABLE ");
    add_name(sql, l->table);
    for (int i = 0; i < l->rows.n; i++) {
        buf_add_cstr(sql, i == 0 ? "(" : ", ");
        add_name(sql, l->rows.columns[i]);
        buf_printf(sql, " %s", types_name(l->types[i]));
    }
    buf_add_cstr(sql, ")");
    if (code == BT_OK) {
        code = run_sql(db, sql, err);
    }
    return code == BT_INVALID && strstr(err->msg, "already exists") != NULL
               ? err_wrap(err, "set replace: true to put the new rows in its place")
               : code;
}

static bool is_blank(const cJSON *row)
{
    const cJSON *cell;

    cJSON_ArrayForEach(cell, row)
    {
        if (cJSON_IsString(cell) && cell->valuestring[0] != 0) {
            return false;
        }
    }
    return true;
}

static enum bt_code insert_row(struct db *db, struct load *l, sqlite3_stmt *stmt, const cJSON *row,
                               struct bt_error *err)
{
    const cJSON *cell = row->child;
    int rc = sqlite3_reset(stmt);

    for (int i = 0; i < l->rows.n && rc == SQLITE_OK; i++) {
        rc = types_bind(stmt, i + 1, cell, l->types[i], l->from_csv);
        cell = cell == NULL ? NULL : cell->next;
    }
    if (rc != SQLITE_OK || sqlite3_step(stmt) != SQLITE_DONE) {
        return db_error(db, err);
    }
    l->loaded++;
    return BT_OK;
}

static enum bt_code insert_rows(struct db *db, struct load *l, struct buf *sql,
                                struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum bt_code code;

    buf_clear(sql);
    buf_add_cstr(sql, "INSERT INTO ");
    add_name(sql, l->table);
    for (int i = 0; i < l->rows.n; i++) {
        buf_add_cstr(sql, i == 0 ? " VALUES (?" : ", ?");
    }
    buf_add_cstr(sql, ")");
    code = buf_check(sql, err);
    if (code == BT_OK) {
        code = db_prepare_own(db, buf_cstr(sql), &stmt, err);
    }
    for (int i = 0; i < l->rows.rows_n && code == BT_OK; i++) {
        if (i % LOOK_EVERY == 0 && bt_step_cancelled(l->step)) {
            code = err_set(err, bt_step_time_left_ms(l->step) == 0 ? BT_TIMEOUT : BT_CANCELLED,
                           "stopped after %d rows; nothing was loaded", i);
        } else if (!l->from_csv || !is_blank(l->rows.rows[i])) {
            code = insert_row(db, l, stmt, l->rows.rows[i], err);
            code = code == BT_OK ? code : err_wrap(err, "row %d", i + 1);
        }
    }
    (void)sqlite3_finalize(stmt);
    return code;
}

/* ---- the reply ---- */

static enum bt_code make_reply(const struct load *l, struct buf *json, struct buf *text,
                               struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, STATEMENT_MAX * 4);
    doc_put_map(&doc, 3);
    doc_put_cstr(&doc, "table");
    doc_put_cstr(&doc, l->table);
    doc_put_cstr(&doc, "rows");
    doc_put_u64(&doc, (uint64_t)l->loaded);
    doc_put_cstr(&doc, "columns");
    doc_put_array(&doc, (uint32_t)l->rows.n);
    buf_printf(text, "Loaded %d row%s into the table %s:", l->loaded, l->loaded == 1 ? "" : "s",
               l->table);
    for (int i = 0; i < l->rows.n; i++) {
        doc_put_map(&doc, 2);
        doc_put_cstr(&doc, "name");
        doc_put_cstr(&doc, l->rows.columns[i]);
        doc_put_cstr(&doc, "type");
        doc_put_cstr(&doc, types_name(l->types[i]));
        buf_printf(text, "%s %s %s", i == 0 ? "" : ",", l->rows.columns[i],
                   types_name(l->types[i]));
    }
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, json, err);
    }
    buf_done(&doc);
    return code == BT_OK ? buf_check(text, err) : code;
}

static enum bt_code load_rows(struct db *db, struct load *l, struct buf *json, struct buf *text,
                              struct bt_error *err)
{
    struct buf sql;
    enum bt_code code;

    buf_init(&sql, STATEMENT_MAX);
    types_infer(&l->rows, l->from_csv, l->types);
    code = create_table(db, l, &sql, err);
    if (code == BT_OK) {
        code = insert_rows(db, l, &sql, err);
    }
    buf_done(&sql);
    if (code == BT_OK) {
        code = make_reply(l, json, text, err);
    }
    return code == BT_OK ? idempotency_record(db, buf_str(json), buf_str(text), err) : code;
}

static enum bt_code load(struct load *l, const struct sql_settings *s, struct db *db,
                         struct buf *json, struct buf *text, struct bt_error *err)
{
    bool found = false;
    enum bt_code code = check_table_name(l->table, err);

    if (code == BT_OK) {
        code = read_rows(l, err);
    }
    if (code == BT_OK) {
        code = rename_columns(l, err);
    }
    if (code == BT_OK && l->rows.n == 0) {
        code = err_set(err, BT_INVALID, "rows: there is no column; give at least one row");
    }
    if (code == BT_OK) {
        code = db_open(db, s, l->step, bt_step_param_string(l->step, "database", "main"), DB_WRITE,
                       err);
    }
    if (code == BT_OK) {
        code = db_begin(db, err);
    }
    if (code == BT_OK) {
        code = idempotency_find(db, json, text, &found, err);
    }
    if (code == BT_OK && !found) {
        code = load_rows(db, l, json, text, err);
    }
    return code == BT_OK ? db_commit(db, err) : code;
}

void sql_load(struct bt_step *step, void *self)
{
    const struct sql_settings *s = self;
    struct load l = {.step = step, .table = bt_step_param_string(step, "table", "data")};
    struct db db = {0};
    struct buf json;
    struct buf text;
    struct bt_error err;
    enum bt_code code = s->read_only && !s->allow_load
                            ? err_set(&err, BT_UNAUTHORIZED,
                                      "load: the setting readOnly forbids it without allowLoad")
                            : BT_OK;

    buf_init(&json, STATEMENT_MAX * 4);
    buf_init(&text, STATEMENT_MAX * 4);
    if (code == BT_OK) {
        code = load(&l, s, &db, &json, &text, &err);
    }
    sql_answer(step, code, &err, &json, &text);
    table_done(&l.rows);
    buf_done(&json);
    buf_done(&text);
    db_close(&db);
}
