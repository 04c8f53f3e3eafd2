#include "agents/sdk/table.h"

#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/cells/csv.h"

void table_done(struct table *t)
{
    for (int i = 0; i < t->n; i++) {
        free(t->columns[i]);
    }
    for (int i = 0; i < t->rows_n; i++) {
        cJSON_Delete(t->rows[i]);
    }
    free(t->columns);
    free(t->rows);
    *t = (struct table){0};
}

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for a table");
}

enum bt_code table_add_column(struct table *t, const char *name, struct bt_error *err)
{
    if (t->columns == NULL) {
        t->columns = calloc(TABLE_COLUMNS_MAX, sizeof *t->columns);
    }
    if (t->columns == NULL) {
        return no_memory(err);
    }
    if (t->n == TABLE_COLUMNS_MAX) {
        return err_set(err, BT_LIMIT, "a table has at most %d columns", TABLE_COLUMNS_MAX);
    }
    t->columns[t->n] = strdup(name);
    if (t->columns[t->n] == NULL) {
        return no_memory(err);
    }
    t->n++;
    return BT_OK;
}

static enum bt_code add_numbered_columns(struct table *t, int n, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    while (t->n < n && code == BT_OK) {
        char name[16];
        (void)snprintf(name, sizeof name, "c%d", t->n + 1);
        code = table_add_column(t, name, err);
    }
    return code;
}

enum bt_code table_add_row(struct table *t, cJSON *row, struct bt_error *err)
{
    if (row == NULL) {
        return no_memory(err);
    }
    if (t->rows_n == TABLE_ROWS_MAX) {
        cJSON_Delete(row);
        return err_set(err, BT_LIMIT, "a table has at most %d rows", TABLE_ROWS_MAX);
    }
    if (t->rows_n == t->rows_cap) {
        int cap = t->rows_cap == 0 ? 64 : t->rows_cap * 2;
        struct cJSON **grown = realloc(t->rows, (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            cJSON_Delete(row);
            return no_memory(err);
        }
        t->rows = grown;
        t->rows_cap = cap;
    }
    t->rows[t->rows_n++] = row;
    return BT_OK;
}

int table_column(const struct table *t, const char *name)
{
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->columns[i], name) == 0) {
            return i;
        }
    }
    return TABLE_NONE;
}

/* ---- the forms ---- */

/* Takes the cell. Without memory for it or for the row there is no row: *row is NULL then. */
static void add_cell(cJSON **row, cJSON *cell)
{
    if (*row == NULL || !cJSON_AddItemToArray(*row, cell)) {
        cJSON_Delete(cell);
        cJSON_Delete(*row);
        *row = NULL;
    }
}

static enum bt_code add_object(struct table *t, const cJSON *object, struct bt_error *err)
{
    cJSON *row;
    const cJSON *member;
    enum bt_code code = BT_OK;

    cJSON_ArrayForEach(member, object)
    {
        if (code == BT_OK && table_column(t, member->string) == TABLE_NONE) {
            code = table_add_column(t, member->string, err);
        }
    }
    row = code == BT_OK ? cJSON_CreateArray() : NULL;
    for (int i = 0; i < t->n && row != NULL; i++) {
        const cJSON *cell = cJSON_GetObjectItemCaseSensitive(object, t->columns[i]);
        add_cell(&row, cell == NULL ? cJSON_CreateNull() : cJSON_Duplicate(cell, true));
    }
    return code == BT_OK ? table_add_row(t, row, err) : code;
}

static enum bt_code add_list(struct table *t, const cJSON *list, struct bt_error *err)
{
    int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 1;
    enum bt_code code = add_numbered_columns(t, n, err);
    cJSON *row = NULL;

    if (code == BT_OK) {
        row = cJSON_Duplicate(list, true);
        if (row != NULL && !cJSON_IsArray(list)) {
            cJSON *only = row;
            row = cJSON_CreateArray();
            add_cell(&row, only);
        }
        code = table_add_row(t, row, err);
    }
    return code;
}

static enum bt_code read_rows(struct table *t, const cJSON *rows, struct bt_error *err)
{
    const cJSON *row;
    enum bt_code code = BT_OK;

    cJSON_ArrayForEach(row, rows)
    {
        if (code == BT_OK) {
            code = cJSON_IsObject(row) ? add_object(t, row, err) : add_list(t, row, err);
        }
    }
    return code;
}

static enum bt_code read_columns_and_rows(struct table *t, const cJSON *columns, const cJSON *rows,
                                          struct bt_error *err)
{
    const cJSON *name;
    enum bt_code code = BT_OK;

    cJSON_ArrayForEach(name, columns)
    {
        if (code == BT_OK && !cJSON_IsString(name)) {
            code = err_set(err, BT_INVALID, "columns: expected a list of names");
        }
        if (code == BT_OK) {
            code = table_add_column(t, name->valuestring, err);
        }
    }
    return code == BT_OK ? read_rows(t, rows, err) : code;
}

static enum bt_code read_map(struct table *t, const cJSON *map, struct bt_error *err)
{
    const cJSON *member;
    enum bt_code code = table_add_column(t, "label", err);

    if (code == BT_OK) {
        code = table_add_column(t, "value", err);
    }
    cJSON_ArrayForEach(member, map)
    {
        if (code == BT_OK) {
            cJSON *row = cJSON_CreateArray();
            add_cell(&row, cJSON_CreateString(member->string));
            add_cell(&row, cJSON_Duplicate(member, true));
            code = table_add_row(t, row, err);
        }
    }
    return code;
}

/* Later objects may have more columns than earlier ones: pads every row to all columns. */
static enum bt_code pad_rows(struct table *t, struct bt_error *err)
{
    for (int i = 0; i < t->rows_n; i++) {
        for (int have = cJSON_GetArraySize(t->rows[i]); have < t->n; have++) {
            if (!cJSON_AddItemToArray(t->rows[i], cJSON_CreateNull())) {
                return no_memory(err);
            }
        }
    }
    return BT_OK;
}

enum bt_code table_read(const cJSON *tree, struct table *ret, struct bt_error *err)
{
    static const char *const lists[] = {"rows", "counts", "shares"};
    const cJSON *columns = cJSON_GetObjectItemCaseSensitive(tree, "columns");
    const cJSON *rows = NULL;
    struct table t = {0};
    enum bt_code code;

    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && rows == NULL; i++) {
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, lists[i]);
        rows = cJSON_IsArray(list) ? list : NULL;
    }
    if (cJSON_IsArray(tree)) {
        code = read_rows(&t, tree, err);
    } else if (cJSON_IsArray(columns) && rows != NULL) {
        code = read_columns_and_rows(&t, columns, rows, err);
    } else if (rows != NULL) {
        code = read_rows(&t, rows, err);
    } else if (cJSON_IsObject(tree)) {
        code = read_map(&t, tree, err);
    } else if (cJSON_IsString(tree)) {
        return table_read_csv(tree->valuestring, ',', ret, err);
    } else {
        code = err_set(err, BT_INVALID,
                       "expected rows: {columns, rows}, a list of objects, a map, or CSV text");
    }
    if (code == BT_OK) {
        code = pad_rows(&t, err);
    }
    if (code != BT_OK) {
        table_done(&t);
        return code;
    }
    table_take_types(
        &t, cJSON_GetObjectItemCaseSensitive(cJSON_IsArray(columns) ? tree : NULL, "types"));
    *ret = t;
    return BT_OK;
}

/* ---- CSV ---- */

/* The record as a row of texts. */
static cJSON *csv_row(const struct csv *c, struct buf *text)
{
    cJSON *row = cJSON_CreateArray();

    for (uint32_t i = 0; i < c->n && row != NULL; i++) {
        const char *cell;
        buf_clear(text);
        buf_add_str(text, csv_cell(c, i));
        cell = buf_cstr(text);
        add_cell(&row, text->bad == BT_OK ? cJSON_CreateString(cell) : NULL);
    }
    return row;
}

static enum bt_code csv_header(struct table *t, const cJSON *row, struct bt_error *err)
{
    const cJSON *cell;
    enum bt_code code = BT_OK;

    cJSON_ArrayForEach(cell, row)
    {
        if (code == BT_OK &&
            (cell->valuestring[0] == 0 || table_column(t, cell->valuestring) != TABLE_NONE)) {
            code = err_set(err, BT_INVALID,
                           "CSV header: a column without a name, or two of the same name");
        }
        if (code == BT_OK) {
            code = table_add_column(t, cell->valuestring, err);
        }
    }
    return code;
}

static enum bt_code csv_record(struct table *t, const struct csv *c, struct buf *text,
                               struct bt_error *err)
{
    cJSON *row;
    enum bt_code code;

    if (t->n > 0 && c->n > (uint32_t)t->n) {
        return err_set(err, BT_INVALID, "CSV record %d: %u fields under a header of %d",
                       t->rows_n + 2, c->n, t->n);
    }
    row = csv_row(c, text);
    if (t->n > 0 || row == NULL) {
        return table_add_row(t, row, err);
    }
    code = csv_header(t, row, err);
    cJSON_Delete(row);
    return code;
}

enum bt_code table_read_csv(const char *text, char delimiter, struct table *ret,
                            struct bt_error *err)
{
    struct table t = {.csv = true};
    struct str left = str_from(text);
    struct csv csv;
    struct buf field;
    bool record = true;
    enum bt_code code = BT_OK;

    csv_init(&csv, delimiter);
    buf_init(&field, CSV_RECORD_MAX + 1);
    while (code == BT_OK && record) {
        code = csv_next(&csv, &left, true, &record, err);
        if (code == BT_OK && record) {
            code = csv_record(&t, &csv, &field, err);
        }
    }
    buf_done(&field);
    csv_done(&csv);
    if (code == BT_OK && t.n == 0) {
        code = err_set(err, BT_INVALID, "CSV: there is no header line");
    }
    if (code == BT_OK) {
        code = pad_rows(&t, err);
    }
    if (code != BT_OK) {
        table_done(&t);
        return code;
    }
    *ret = t;
    return BT_OK;
}
