/* Reads a table: cells, types of columns, Markdown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/sdk/table.h"
#include "protocol/base/utf8.h"

const cJSON *table_cell(const struct table *t, int row, int column)
{
    return cJSON_GetArrayItem(t->rows[row], column);
}

bool table_number(const cJSON *cell, double *ret)
{
    char *end = NULL;
    double v;

    if (cJSON_IsNumber(cell)) {
        *ret = cell->valuedouble;
        return true;
    }
    if (!cJSON_IsString(cell) || cell->valuestring[0] == 0) {
        return false;
    }
    v = strtod(cell->valuestring, &end);
    if (*end != 0 || !isfinite(v) || strpbrk(cell->valuestring, "xXnN \t") != NULL) {
        return false;
    }
    *ret = v;
    return true;
}

int table_number_column(const struct table *t)
{
    for (int c = t->n - 1; c >= 0; c--) {
        bool all = t->rows_n > 0;
        double v;
        for (int r = 0; r < t->rows_n && all; r++) {
            all = table_number(table_cell(t, r, c), &v);
        }
        if (all) {
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

const char *table_text(const cJSON *cell, char *ret, size_t size)
{
    char *json = NULL;

    ret[0] = 0;
    if (cJSON_IsString(cell)) {
        (void)snprintf(ret, size, "%s", cell->valuestring);
        ret[utf8_cut(cell->valuestring, strlen(cell->valuestring), size - 1)] = 0;
    } else if (cJSON_IsNumber(cell)) {
        double v = cell->valuedouble;
        bool whole = floor(v) == v && fabs(v) < 1e15;
        (void)snprintf(ret, size, whole ? "%.0f" : "%.10g", v);
    } else if (cell != NULL && !cJSON_IsNull(cell)) {
        json = cJSON_PrintUnformatted(cell);
        (void)snprintf(ret, size, "%s", json == NULL ? "" : json);
        cJSON_free(json);
    }
    return ret;
}

static void markdown_text(const char *text, struct buf *out)
{
    for (; *text != 0; text++) {
        if (*text == '|' || *text == '\\') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, *text == '\n' || *text == '\r' ? ' ' : (uint8_t)*text);
    }
}

void table_to_markdown(const struct table *t, int max_rows, struct buf *out)
{
    char text[1024];
    int shown = t->rows_n < max_rows ? t->rows_n : max_rows;

    buf_add_byte(out, '|');
    for (int c = 0; c < t->n; c++) {
        buf_add_byte(out, ' ');
        markdown_text(t->columns[c], out);
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
        buf_add_byte(out, '|');
        for (int c = 0; c < t->n; c++) {
            buf_add_byte(out, ' ');
            markdown_text(table_text(table_cell(t, r, c), text, sizeof text), out);
            buf_add_cstr(out, " |");
        }
        buf_add_byte(out, '\n');
    }
    if (shown < t->rows_n) {
        buf_printf(out, "\n%d of %d rows are shown.\n", shown, t->rows_n);
    }
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
