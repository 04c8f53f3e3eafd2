/* Reads a table: cells, types of columns, Markdown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/sdk/input.h"
#include "agents/sdk/table.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"

const cJSON *table_cell(const struct table *t, int row, int column)
{
    return cJSON_GetArrayItem(t->rows[row], column);
}

bool table_number(const cJSON *cell, double *ret)
{
    struct cell value;

    if (cJSON_IsNumber(cell)) {
        *ret = cell->valuedouble;
        return true;
    }
    if (!cJSON_IsString(cell) ||
        !cell_read(CELL_REAL, false, str_from(cell->valuestring), &value) || value.null) {
        return false;
    }
    *ret = value.real;
    return true;
}

int table_number_column(const struct table *t)
{
    for (int c = t->n - 1; c >= 0; c--) {
        if (cell_type_is_number(t->type[c])) {
            return c;
        }
    }
    return TABLE_NONE;
}

int table_other_column(const struct table *t, int except)
{
    for (int c = 0; c < t->n; c++) {
        if (c != except) {
            return c;
        }
    }
    return TABLE_NONE;
}

/* The shortest text that is the number again. */
static void number_text(double v, char *ret, size_t size)
{
    if (floor(v) == v && fabs(v) <= (double)CELL_SAFE_INTEGER) {
        (void)snprintf(ret, size, "%.0f", v == 0.0 ? 0.0 : v);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(ret, size, "%.*g", digits, v);
        if (strtod(ret, NULL) == v) {
            return;
        }
    }
}

void table_put_text(const cJSON *cell, struct buf *out)
{
    char number[40];

    if (cJSON_IsString(cell)) {
        buf_add_cstr(out, cell->valuestring);
    } else if (cJSON_IsNumber(cell)) {
        number_text(cell->valuedouble, number, sizeof number);
        buf_add_cstr(out, number);
    } else if (cell != NULL && !cJSON_IsNull(cell)) {
        const enum bt_code code = cjson_to_json(cell, out, NULL);
        buf_add_cstr(out, code == BT_OK ? "" : "?");
        buf_fail(out, code == BT_NOMEM ? code : BT_OK);
    }
}

const char *table_text(const cJSON *cell, char *ret, size_t size)
{
    struct buf text;

    buf_init(&text, LIMIT_STEP_BYTES);
    table_put_text(cell, &text);
    (void)snprintf(ret, size, "%s", buf_cstr(&text));
    ret[utf8_cut(buf_cstr(&text), text.len, size - 1)] = 0;
    if (text.bad != BT_OK) {
        input_lost();
    }
    buf_done(&text);
    return ret;
}

static void markdown_text(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '|' || text.ptr[i] == '\\') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, text.ptr[i] == '\n' || text.ptr[i] == '\r' ? ' ' : (uint8_t)text.ptr[i]);
    }
}

static void put_row(const struct table *t, int row, struct buf *text, struct buf *out)
{
    buf_add_byte(out, '|');
    for (int c = 0; c < t->n; c++) {
        buf_clear(text);
        table_put_text(table_cell(t, row, c), text);
        if (text->bad != BT_OK) {
            out->bad = text->bad;
        }
        buf_add_byte(out, ' ');
        markdown_text(buf_str(text), out);
        buf_add_cstr(out, " |");
    }
    buf_add_byte(out, '\n');
}

void table_to_markdown(const struct table *t, int max_rows, size_t max_bytes, const char *rest,
                       struct buf *out)
{
    struct buf text;
    struct buf row;
    const size_t start = out->len;
    int shown = t->rows_n < max_rows ? t->rows_n : max_rows;

    buf_init(&text, LIMIT_STEP_BYTES * 2);
    buf_init(&row, LIMIT_STEP_BYTES * 2);
    buf_add_byte(out, '|');
    for (int c = 0; c < t->n; c++) {
        buf_add_byte(out, ' ');
        markdown_text(str_from(t->columns[c]), out);
        buf_add_cstr(out, " |");
    }
    buf_add_cstr(out, "\n|");
    for (int c = 0; c < t->n; c++) {
        bool number = t->rows_n > 0;
        for (int r = 0; r < shown && number; r++) {
            number = cJSON_IsNumber(table_cell(t, r, c));
        }
        buf_add_cstr(out, number ? " ---: |" : " --- |");
    }
    buf_add_byte(out, '\n');
    for (int r = 0; r < shown; r++) {
        buf_clear(&row);
        put_row(t, r, &text, &row);
        if (row.bad == BT_NOMEM) {
            out->bad = BT_NOMEM;
        }
        if (row.bad == BT_LIMIT || out->len - start + row.len > max_bytes) {
            shown = r;
        } else {
            buf_add_str(out, buf_str(&row));
        }
    }
    if (shown < t->rows_n) {
        buf_printf(out, "\n%d of %d rows are shown; %s.\n", shown, t->rows_n, rest);
    }
    buf_done(&text);
    buf_done(&row);
}

void table_csv_field(struct str text, char delimiter, struct buf *out)
{
    bool quote = false;

    for (size_t i = 0; i < text.len && !quote; i++) {
        quote = text.ptr[i] == delimiter || text.ptr[i] == '"' || text.ptr[i] == '\n' ||
                text.ptr[i] == '\r';
    }
    if (!quote) {
        buf_add_str(out, text);
        return;
    }
    buf_add_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"') {
            buf_add_byte(out, '"');
        }
        buf_add_byte(out, (uint8_t)text.ptr[i]);
    }
    buf_add_byte(out, '"');
}
