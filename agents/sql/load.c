/* load: inserts rows into a table, all of them or none. */
#include <stdlib.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "agents/cells/csv.h"
#include "agents/sdk/input.h"
#include "agents/sdk/step.h"
#include "agents/sdk/table.h"
#include "agents/sql/idempotency.h"
#include "agents/sql/load_file.h"
#include "agents/sql/load_table.h"
#include "agents/sql/sql.h"
#include "agents/sql/types.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { STATEMENT_MAX = 256 * 1024, LOOK_EVERY = 256 };

struct load {
    struct bt_step *step;
    const char *table;
    struct load_file file; /* of an artifact or a path; else the rows are in the message */
    struct table rows;
    int loaded;
};

/* ---- the rows ---- */

static enum bt_code read_csv(struct load *l, const char *text, struct bt_error *err)
{
    char delimiter = ',';
    enum bt_code code =
        csv_delimiter(str_from(bt_step_param_string(l->step, "delimiter", NULL)), &delimiter, err);

    if (code == BT_OK) {
        code = table_read_csv(text, delimiter, &l->rows, err);
    }
    return code == BT_OK && l->rows.n == 1 && !bt_step_has_param(l->step, "delimiter")
               ? csv_check_only_name(str_from(l->rows.columns[0]), err)
               : code;
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
        char *copy;
        if (name.len == 0) {
            return err_set(err, BT_INVALID, "columns[%d]: expected a name", i);
        }
        copy = strndup(name.ptr, name.len);
        if (copy == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for a name");
        }
        free(l->rows.columns[i]);
        l->rows.columns[i] = copy;
    }
    return BT_OK;
}

/* ---- the table ---- */

static enum bt_code insert_row(struct db *db, struct load *l, sqlite3_stmt *stmt, const cJSON *row,
                               struct bt_error *err)
{
    const cJSON *cell = row->child;
    int rc = sqlite3_reset(stmt);

    for (int i = 0; i < l->rows.n && rc == SQLITE_OK; i++) {
        rc = types_bind(stmt, i + 1, &l->rows, i, cell);
        cell = cell == NULL ? NULL : cell->next;
    }
    if (rc != SQLITE_OK) {
        return db_bind_error(db, rc, err);
    }
    if (sqlite3_step(stmt) != SQLITE_DONE) {
        return db_error(db, err);
    }
    l->loaded++;
    return BT_OK;
}

static enum bt_code insert_rows(struct db *db, struct load *l, const struct load_table *t,
                                struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum bt_code code = load_table_prepare(db, t, &stmt, err);

    for (int i = 0; i < l->rows.rows_n && code == BT_OK; i++) {
        if (i % LOOK_EVERY == 0 && bt_step_cancelled(l->step)) {
            code = err_set(err, bt_step_time_left_ms(l->step) == 0 ? BT_TIMEOUT : BT_CANCELLED,
                           "stopped after %d rows; nothing was loaded", i);
        } else {
            code = insert_row(db, l, stmt, l->rows.rows[i], err);
            code = code == BT_OK ? code : err_wrap(err, "row %d", i + 1);
        }
    }
    (void)sqlite3_finalize(stmt);
    return code;
}

static enum bt_code load_rows(struct db *db, struct load *l, struct buf *json, struct buf *text,
                              struct bt_error *err)
{
    struct str names[TABLE_COLUMNS_MAX];
    const struct load_table t = {.name = l->table,
                                 .replace = bt_step_param_bool(l->step, "replace", false),
                                 .n = (uint32_t)l->rows.n,
                                 .columns = names,
                                 .types = l->rows.type};
    enum bt_code code;

    for (int i = 0; i < l->rows.n; i++) {
        names[i] = str_from(l->rows.columns[i]);
    }
    code = load_table_create(db, &t, err);
    if (code == BT_OK) {
        code = insert_rows(db, l, &t, err);
    }
    return code == BT_OK ? load_table_reply(&t, (uint64_t)l->loaded, 0, json, text, err) : code;
}

static enum bt_code read_message(struct load *l, struct bt_error *err)
{
    enum bt_code code = read_rows(l, err);

    if (code == BT_OK) {
        code = rename_columns(l, err);
    }
    if (code == BT_OK && l->rows.n == 0) {
        code = err_set(err, BT_INVALID, "rows: there is no column; give at least one row");
    }
    return code == BT_OK ? input_types(l->step, &l->rows, err) : code;
}

static enum bt_code load(struct load *l, const struct sql_settings *s, struct db *db,
                         struct buf *json, struct buf *text, struct bt_error *err)
{
    bool found = false;
    enum bt_code code = load_table_check_name(l->table, err);

    if (code == BT_OK) {
        code = load_file_open(l->step, s, &l->file, err);
    }
    if (code == BT_OK && l->file.fd < 0) {
        code = read_message(l, err);
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
        code = l->file.fd < 0 ? load_rows(db, l, json, text, err)
                              : load_file_rows(db, l->step, l->table, &l->file, json, text, err);
        if (code == BT_OK) {
            code = idempotency_record(db, buf_str(json), buf_str(text), err);
        }
    }
    return code == BT_OK ? db_commit(db, err) : code;
}

void sql_load(struct bt_step *step, void *self)
{
    const struct sql_settings *s = self;
    struct load l = {
        .step = step, .table = bt_step_param_string(step, "table", "data"), .file = {.fd = -1}};
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
    if (l.file.fd >= 0) {
        (void)close(l.file.fd);
    }
    buf_done(&json);
    buf_done(&text);
    db_close(&db);
}
