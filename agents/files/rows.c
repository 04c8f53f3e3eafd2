#include "agents/files/rows.h"

#include <stdio.h>

#include "agents/files/files.h"
#include "agents/sdk/table.h"

static bool find_column(const struct rows *r, struct str name, uint32_t *ret)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (str_eq(r->columns[i], name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static enum bt_code no_column(const struct rows *r, const char *where, struct str name,
                              struct bt_error *err)
{
    struct buf names;
    enum bt_code code;

    buf_init(&names, 1024);
    for (uint32_t i = 0; i < r->n; i++) {
        buf_add_cstr(&names, i > 0 ? ", " : "");
        buf_add_str(&names, r->columns[i]);
    }
    code = err_set(err, BT_INVALID, "%s: there is no column '%.*s'; there are: %s", where,
                   name.len > 80 ? 80 : (int)name.len, name.ptr == NULL ? "" : name.ptr,
                   buf_cstr(&names));
    buf_done(&names);
    return code;
}

static enum bt_code read_columns(struct rows *r, struct doc columns, struct bt_error *err)
{
    uint32_t n = columns.ptr == NULL ? 0 : doc_head(columns).n;

    if (n == 0) {
        r->pick_n = r->n;
        for (uint32_t i = 0; i < r->n; i++) {
            r->pick[i] = i;
        }
        return BT_OK;
    }
    if (doc_head(columns).kind != DOC_ARRAY || n > ROWS_COLUMNS_MAX) {
        return err_set(err, BT_INVALID, "columns: expected a list of at most %d names",
                       ROWS_COLUMNS_MAX);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct str name = doc_string(doc_at(columns, i));
        if (!find_column(r, name, &r->pick[i])) {
            return no_column(r, "columns", name, err);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (r->pick[k] == r->pick[i]) {
                return err_set(err, BT_INVALID, "columns: '%.*s' is named twice",
                               name.len > 80 ? 80 : (int)name.len, name.ptr);
            }
        }
    }
    r->pick_n = n;
    return BT_OK;
}

static enum bt_code read_where(struct rows *r, struct doc where, struct bt_error *err)
{
    struct doc_cursor c;
    struct doc_head head;

    if (where.ptr == NULL) {
        return BT_OK;
    }
    c = doc_cursor(where);
    if (!doc_next(&c, &head) || head.kind != DOC_MAP || head.n > ROWS_WHERE_MAX) {
        return err_set(err, BT_INVALID,
                       "where: expected an object of at most %d columns, such as {\"action\": "
                       "\"install\"}",
                       ROWS_WHERE_MAX);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        struct str name = doc_string(doc_skip(&c));
        struct rows_filter *f = &r->where[i];
        f->value = doc_skip(&c);
        if (!find_column(r, name, &f->column)) {
            return no_column(r, "where", name, err);
        }
        if (doc_head(f->value).kind == DOC_MAP || doc_head(f->value).kind == DOC_BIN) {
            return err_set(err, BT_INVALID, "where.%.*s: expected a value or a list of values",
                           name.len > 80 ? 80 : (int)name.len, name.ptr);
        }
    }
    r->where_n = head.n;
    return BT_OK;
}

static enum bt_code read_types(struct rows *r, struct doc types, struct bt_error *err)
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
        struct str type = doc_string(doc_skip(&c));
        uint32_t column = 0;
        if (!find_column(r, name, &column)) {
            return no_column(r, "types", name, err);
        }
        if (!cell_type_from_name(type, &r->type[column])) {
            return err_set(err, BT_INVALID,
                           "types.%.*s: expected text, integer, real, boolean or date",
                           name.len > 80 ? 80 : (int)name.len, name.ptr);
        }
        r->declared[column] = true;
    }
    return BT_OK;
}

enum bt_code rows_init(struct rows *r, const struct rows_wish *wish, struct bt_error *err)
{
    enum bt_code code = read_columns(r, wish->columns, err);

    buf_init(&r->texts, LIMIT_RESULT_BYTES);
    buf_init(&r->out, LIMIT_RESULT_BYTES);
    r->limit = wish->limit;
    if (code == BT_OK) {
        code = read_types(r, wish->types, err);
    }
    return code == BT_OK ? read_where(r, wish->where, err) : code;
}

void rows_done(struct rows *r)
{
    buf_done(&r->texts);
    buf_done(&r->out);
    buf_done(&r->line);
}

/* ---- where ---- */

/* Whether the cell is the wanted value: a text as it stands there, or the value that it means. */
static bool is_value(struct doc_head want, struct str cell)
{
    struct cell c;

    switch (want.kind) {
    case DOC_STR:
        return str_eq(want.str, cell);
    case DOC_NIL:
        return cell.len == 0;
    case DOC_BOOL:
        return str_is(cell, want.b ? "true" : "false");
    case DOC_INT:
        return cell_read(CELL_INTEGER, false, cell, &c) && !c.null && c.integer == want.i;
    case DOC_UINT:
        return cell_read(CELL_INTEGER, false, cell, &c) && !c.null && c.integer >= 0 &&
               (uint64_t)c.integer == want.u;
    case DOC_FLOAT:
        return cell_read(CELL_REAL, false, cell, &c) && !c.null && c.real == want.f;
    case DOC_BIN:
    case DOC_ARRAY:
    case DOC_MAP:
        break;
    }
    return false;
}

static bool passes(const struct rows_filter *f, struct str cell)
{
    struct doc_cursor c = doc_cursor(f->value);
    struct doc_head head;

    if (!doc_next(&c, &head)) {
        return false;
    }
    if (head.kind != DOC_ARRAY) {
        return is_value(head, cell);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        if (is_value(doc_head(doc_skip(&c)), cell)) {
            return true;
        }
    }
    return false;
}

/* ---- rows ---- */

static enum bt_code too_large(const struct rows *r, struct bt_error *err)
{
    return err_set(err, BT_LIMIT,
                   "result_too_large: a result holds 3 MiB and %d values, %u of these rows, and "
                   "there are more; use artifact: true, narrow them by where or columns, or set "
                   "`limit` to get the first ones",
                   ROWS_VALUES_MAX, r->count);
}

static enum bt_code wrong_type(const struct rows *r, uint32_t row, uint32_t column, struct str text,
                               struct bt_error *err)
{
    return err_set(err, BT_INVALID, "row %u: column '%.*s' has the type %s, but '%.*s' is not %s",
                   row + 1, r->columns[column].len > 80 ? 80 : (int)r->columns[column].len,
                   r->columns[column].ptr, cell_type_name(r->type[column]),
                   text.len > 80 ? 80 : (int)text.len, text.ptr,
                   cell_type_expects(r->type[column]));
}

/* ---- into an artifact ---- */

static enum bt_code write_line(struct rows *r, struct bt_error *err)
{
    enum bt_code code;

    if (r->line.len == 0) {
        buf_add_cstr(&r->line, "\"\""); /* a line without any character is no row */
    }
    buf_add_byte(&r->line, '\n');
    code = buf_check(&r->line, err);
    if (code == BT_OK) {
        code = bt_artifact_write(r->to, r->line.at, r->line.len, err);
    }
    buf_clear(&r->line);
    return code;
}

enum bt_code rows_to(struct rows *r, struct bt_artifact *to, struct bt_error *err)
{
    buf_init(&r->line, LIMIT_STEP_BYTES * 4);
    r->to = to;
    for (uint32_t i = 0; i < r->pick_n; i++) {
        buf_add_cstr(&r->line, i > 0 ? "," : "");
        table_csv_field(r->columns[r->pick[i]], ',', &r->line);
    }
    return write_line(r, err);
}

static enum bt_code write_row(struct rows *r, const struct str *cells, struct bt_error *err)
{
    struct cell value;

    for (uint32_t i = 0; i < r->pick_n; i++) {
        const uint32_t column = r->pick[i];
        const struct str cell = cells[column];
        buf_add_cstr(&r->line, i > 0 ? "," : "");
        if (cell.ptr == NULL) {
            continue;
        }
        if (r->declared[column] && !cell_read(r->type[column], true, cell, &value)) {
            return wrong_type(r, r->count, column, cell, err);
        }
        cell_column_see(&r->seen[column], cell);
        table_csv_field(cell, ',', &r->line);
    }
    r->count++;
    return write_line(r, err);
}

enum bt_code rows_add(struct rows *r, const struct str *cells, struct bt_error *err)
{
    for (uint32_t i = 0; i < r->where_n; i++) {
        if (!passes(&r->where[i], cells[r->where[i].column])) {
            r->filtered++;
            return BT_OK;
        }
    }
    if (r->limit > 0 && r->count == r->limit) {
        r->more++;
        return BT_OK;
    }
    if (r->to != NULL) {
        return write_row(r, cells, err);
    }
    if ((uint64_t)(r->count + 1) * (r->pick_n + 1) > ROWS_VALUES_MAX) {
        return too_large(r, err);
    }
    for (uint32_t i = 0; i < r->pick_n; i++) {
        struct str cell = cells[r->pick[i]];
        if (cell.ptr == NULL) {
            doc_put_nil(&r->texts);
        } else {
            cell_column_see(&r->seen[r->pick[i]], cell);
            doc_put_str(&r->texts, cell);
        }
    }
    if (r->texts.bad == BT_LIMIT) {
        return too_large(r, err);
    }
    r->count++;
    return buf_check(&r->texts, err);
}

static void put_cell(const struct cell *c, struct buf *out)
{
    char digits[24];

    if (c->null) {
        doc_put_nil(out);
    } else if (c->type == CELL_BOOLEAN) {
        doc_put_bool(out, c->boolean);
    } else if (c->type == CELL_REAL) {
        doc_put_f64(out, c->real);
    } else if (c->type != CELL_INTEGER) {
        doc_put_str(out, c->text);
    } else if (c->integer >= -CELL_SAFE_INTEGER && c->integer <= CELL_SAFE_INTEGER) {
        doc_put_i64(out, c->integer);
    } else {
        (void)snprintf(digits, sizeof digits, "%lld", (long long)c->integer);
        doc_put_cstr(out, digits);
    }
}

static enum bt_code type_row(struct rows *r, struct doc_cursor *c, uint32_t row,
                             struct bt_error *err)
{
    struct doc_head text;

    doc_put_array(&r->out, r->pick_n);
    for (uint32_t i = 0; i < r->pick_n && doc_next(c, &text); i++) {
        const uint32_t column = r->pick[i];
        struct cell cell = {.null = true};
        if (text.kind == DOC_STR &&
            !cell_read(r->type[column], r->declared[column], text.str, &cell)) {
            return wrong_type(r, row, column, text.str, err);
        }
        put_cell(&cell, &r->out);
    }
    return r->out.bad == BT_LIMIT ? too_large(r, err) : buf_check(&r->out, err);
}

enum bt_code rows_end(struct rows *r, struct bt_error *err)
{
    struct doc_cursor c = {.at = r->texts.at, .end = r->texts.at + r->texts.len};
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < r->n; i++) {
        r->type[i] = r->declared[i] ? r->type[i] : cell_column_type(&r->seen[i]);
    }
    for (uint32_t row = 0; r->to == NULL && row < r->count && code == BT_OK; row++) {
        code = type_row(r, &c, row, err);
    }
    buf_done(&r->texts);
    return code;
}

void rows_put(const struct rows *r, uint64_t replaced, struct buf *out)
{
    doc_put_map(out, r->to == NULL ? 8 : 7);
    doc_put_cstr(out, "columns");
    doc_put_array(out, r->pick_n);
    for (uint32_t i = 0; i < r->pick_n; i++) {
        doc_put_str(out, r->columns[r->pick[i]]);
    }
    doc_put_cstr(out, "types");
    doc_put_map(out, r->pick_n);
    for (uint32_t i = 0; i < r->pick_n; i++) {
        doc_put_str(out, r->columns[r->pick[i]]);
        doc_put_cstr(out, cell_type_name(r->type[r->pick[i]]));
    }
    files_put_count(out, "rowCount", r->count);
    files_put_count(out, "skipped", r->skipped);
    files_put_count(out, "filtered", r->filtered);
    files_put_count(out, "replaced", replaced);
    files_put_bool(out, "truncated", r->more > 0);
    if (r->to == NULL) {
        doc_put_cstr(out, "rows");
        doc_put_array(out, r->count);
        buf_add_str(out, buf_str(&r->out));
    }
}
