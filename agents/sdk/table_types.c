/* The types of a table's columns, and its cells as values of them. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "agents/sdk/table.h"
#include "protocol/limits.h"

/* ---- what is declared ---- */

static void declare(struct table *t, int column, enum cell_type type)
{
    t->type[column] = type;
    t->declared[column] = true;
}

void table_take_types(struct table *t, const cJSON *types)
{
    const cJSON *member;

    cJSON_ArrayForEach(member, types)
    {
        enum cell_type type = CELL_TEXT;
        int column = member->string == NULL ? TABLE_NONE : table_column(t, member->string);
        if (column != TABLE_NONE && cJSON_IsString(member) &&
            cell_type_from_name(str_from(member->valuestring), &type)) {
            declare(t, column, type);
        }
    }
}

enum bt_code table_declare(struct table *t, struct doc types, struct bt_error *err)
{
    struct doc_cursor c;
    struct doc_head head;

    if (types.ptr == NULL) {
        return BT_OK;
    }
    c = doc_cursor(types);
    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "types: expected an object such as {\"zip\": \"text\"}");
    }
    for (uint32_t i = 0; i < head.n; i++) {
        struct str name = doc_string(doc_skip(&c));
        struct str wanted = doc_string(doc_skip(&c));
        enum cell_type type = CELL_TEXT;
        int column = TABLE_NONE;
        for (int k = 0; k < t->n; k++) {
            column = str_is(name, t->columns[k]) ? k : column;
        }
        name.len = name.len > 80 ? 80 : name.len;
        if (column == TABLE_NONE) {
            return err_set(err, BT_INVALID,
                           "types: there is no column '%.*s'; the columns are: %s%s%s%s",
                           STR_ARG(name), t->n > 0 ? t->columns[0] : "none", t->n > 1 ? ", " : "",
                           t->n > 1 ? t->columns[1] : "", t->n > 2 ? ", ..." : "");
        }
        if (!cell_type_from_name(wanted, &type)) {
            return err_set(err, BT_INVALID,
                           "types.%.*s: expected text, integer, real, boolean or date",
                           STR_ARG(name));
        }
        declare(t, column, type);
    }
    return BT_OK;
}

/* ---- what is found ---- */

static enum cell_kind kind_of(const cJSON *cell)
{
    if (cJSON_IsString(cell)) {
        return cell_kind_of(str_from(cell->valuestring));
    }
    if (cJSON_IsNumber(cell)) {
        return cell_kind_of_number(cell->valuedouble);
    }
    return cJSON_IsBool(cell)   ? CELL_KIND_BOOLEAN
           : cJSON_IsNull(cell) ? CELL_KIND_NULL
                                : CELL_KIND_TEXT;
}

static void find_types(struct table *t)
{
    struct cell_column seen[TABLE_COLUMNS_MAX] = {0};

    for (int r = 0; r < t->rows_n; r++) {
        const cJSON *cell = t->rows[r]->child;
        for (int i = 0; i < t->n && cell != NULL; i++, cell = cell->next) {
            if (!t->declared[i]) {
                cell_column_see_kind(&seen[i], kind_of(cell));
            }
        }
    }
    for (int i = 0; i < t->n; i++) {
        t->type[i] = t->declared[i] ? t->type[i] : cell_column_type(&seen[i]);
    }
}

/* ---- values ---- */

cJSON *table_new_cell(const struct cell *c)
{
    char digits[24];

    if (c->null) {
        return cJSON_CreateNull();
    }
    switch (c->type) {
    case CELL_BOOLEAN:
        return cJSON_CreateBool(c->boolean);
    case CELL_REAL:
        return cJSON_CreateNumber(c->real);
    case CELL_INTEGER:
        if (c->integer >= -CELL_SAFE_INTEGER && c->integer <= CELL_SAFE_INTEGER) {
            return cJSON_CreateNumber((double)c->integer);
        }
        (void)snprintf(digits, sizeof digits, "%lld", (long long)c->integer);
        return cJSON_CreateString(digits);
    case CELL_TEXT:
    case CELL_DATE:
    case CELL_TYPE_COUNT:
        break;
    }
    return cJSON_CreateString(c->text.ptr);
}

/* Whether the cell is a value of the type already. */
static bool is_value(const struct table *t, int column, const cJSON *cell)
{
    const enum cell_type type = t->type[column];

    if (cJSON_IsNull(cell)) {
        return true;
    }
    if (cJSON_IsNumber(cell)) {
        return type == CELL_REAL || (type == CELL_INTEGER &&
                                     cell_kind_of_number(cell->valuedouble) == CELL_KIND_INTEGER);
    }
    if (cJSON_IsBool(cell)) {
        return type == CELL_BOOLEAN;
    }
    /* A text of JSON is a text though it is empty: JSON has a null of its own. */
    return type == CELL_TEXT &&
           (!cJSON_IsString(cell) || !t->csv || t->declared[column] || cell->valuestring[0] != 0);
}

static enum bt_code mismatch(const struct table *t, int row, int column, const char *text,
                             struct bt_error *err)
{
    return err_set(err, BT_INVALID,
                   "row %d: column '%.80s' has the type %s, but '%.80s' is not %s; set types: "
                   "{\"%.80s\": \"text\"}",
                   row + 1, t->columns[column], cell_type_name(t->type[column]), text,
                   cell_type_expects(t->type[column]), t->columns[column]);
}

/* Replaces *cell by the value of its column's type. */
static enum bt_code convert(struct table *t, int row, int column, cJSON **cell,
                            struct bt_error *err)
{
    struct buf printed;
    const char *text = cJSON_IsString(*cell) ? (*cell)->valuestring : "";
    enum bt_code code = BT_OK;
    struct cell value;
    cJSON *made;

    buf_init(&printed, LIMIT_STEP_BYTES);
    if (!cJSON_IsString(*cell)) {
        code = cjson_to_json(*cell, &printed, err);
        text = buf_cstr(&printed);
    }
    if (code != BT_OK) {
        (void)err_wrap(err, "row %d", row + 1);
    } else if (!cell_read(t->type[column], t->declared[column], str_from(text), &value)) {
        code = mismatch(t, row, column, text, err);
    } else {
        made = table_new_cell(&value);
        if (made == NULL || !cJSON_ReplaceItemViaPointer(t->rows[row], *cell, made)) {
            cJSON_Delete(made);
            code = err_set(err, BT_NOMEM, "out of memory for a table");
        } else {
            *cell = made;
        }
    }
    buf_done(&printed);
    return code;
}

enum bt_code table_set_types(struct table *t, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    find_types(t);
    for (int r = 0; r < t->rows_n && code == BT_OK; r++) {
        cJSON *cell = t->rows[r]->child;
        for (int i = 0; i < t->n && cell != NULL && code == BT_OK; i++) {
            if (!is_value(t, i, cell)) {
                code = convert(t, r, i, &cell, err);
            }
            cell = cell->next;
        }
    }
    return code;
}

void table_value(const struct table *t, int column, const cJSON *cell, struct cell *ret)
{
    *ret = (struct cell){.type = t->type[column], .null = cell == NULL || cJSON_IsNull(cell)};
    if (ret->null) {
        return;
    }
    if (cJSON_IsString(cell)) {
        ret->text = str_from(cell->valuestring);
        if (ret->type == CELL_INTEGER) {
            (void)cell_integer(ret->text, &ret->integer);
        }
    } else if (cJSON_IsBool(cell)) {
        ret->boolean = cJSON_IsTrue(cell);
    } else if (cJSON_IsNumber(cell)) {
        ret->real = cell->valuedouble;
        if (ret->type == CELL_INTEGER) {
            ret->integer = (int64_t)cell->valuedouble;
        }
    }
}

void table_put_types(const struct table *t, struct buf *out)
{
    doc_put_cstr(out, "types");
    doc_put_map(out, (uint32_t)t->n);
    for (int i = 0; i < t->n; i++) {
        doc_put_cstr(out, t->columns[i]);
        doc_put_cstr(out, cell_type_name(t->type[i]));
    }
}
