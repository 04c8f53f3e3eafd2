#include "supervisor/cli/view/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/picture/look.h"

enum { COLUMNS_MAX = 16, CELL_MAX = 256, TABLE_BYTES_MAX = 64 << 20 };

struct table {
    const char *heads[COLUMNS_MAX];
    bool right[COLUMNS_MAX];
    int widths[COLUMNS_MAX]; /* of the widest cell; 0 = all are empty */
    int columns;
    char **cells;
    size_t n, cap;
    bool failed;
};

struct table *table_new(const char *const *heads)
{
    struct table *t = calloc(1, sizeof *t);

    for (; t != NULL && heads[t->columns] != NULL && t->columns < COLUMNS_MAX; t->columns++) {
        const char *head = heads[t->columns];
        t->right[t->columns] = head[0] == '>';
        t->heads[t->columns] = head + (head[0] == '>');
    }
    return t;
}

void table_free(struct table *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
    free(t);
}

static bool make_room(struct table *t)
{
    size_t cap = t->cap == 0 ? 64 : 2 * t->cap;
    char **cells;

    if (t->n < t->cap) {
        return true;
    }
    cells = realloc(t->cells, cap * sizeof *cells);
    if (cells != NULL) {
        t->cells = cells;
        t->cap = cap;
    }
    return cells != NULL;
}

void table_cell(struct table *t, const char *fmt, ...)
{
    char text[2 * CELL_MAX];
    char line[CELL_MAX];
    va_list args;
    char *copy;
    int width;
    int column;

    if (t == NULL || t->failed) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_one_line(line, sizeof line, text);
    copy = make_room(t) ? strdup(line) : NULL;
    if (copy == NULL) {
        t->failed = true;
        return;
    }
    column = (int)(t->n % (size_t)t->columns);
    width = look_columns(copy);
    t->widths[column] = width > t->widths[column] ? width : t->widths[column];
    t->cells[t->n++] = copy;
}

/* Pads to the column's width; the last column of a line is not padded. */
static void put(struct buf *line, const char *text, int width, bool right, bool last)
{
    int pad = width - look_columns(text);

    buf_printf(line, "%*s%s%*s", right && pad > 0 ? pad : 0, "", text,
               !right && !last && pad > 0 ? pad : 0, "");
}

/* A line that is wider than the terminal ends with a mark. */
static void end_line(struct buf *line, int width, struct buf *out)
{
    while (line->len > 0 && line->at[line->len - 1] == ' ') {
        buf_truncate(line, line->len - 1);
    }
    if (width > 0) {
        look_fit(buf_cstr(line), width, false, false, out);
    } else {
        buf_add_cstr(out, buf_cstr(line));
    }
    buf_add_byte(out, '\n');
    buf_clear(line);
}

/* Writes the heads (row < 0) or a row of cells as one line. */
static void write_row(const struct table *t, long row, int width, struct buf *out)
{
    struct buf line;
    bool first = true;
    int last = t->columns - 1;

    buf_init(&line, (size_t)COLUMNS_MAX * (CELL_MAX + 2) * 2);
    while (last > 0 && t->widths[last] == 0) {
        last--;
    }
    for (int i = 0; i <= last; i++) {
        const char *text =
            row < 0 ? t->heads[i] : t->cells[(size_t)row * (size_t)t->columns + (size_t)i];
        int head = look_columns(t->heads[i]);
        if (t->widths[i] == 0) {
            continue;
        }
        buf_add_cstr(&line, first ? "" : "  ");
        put(&line, text, t->widths[i] > head ? t->widths[i] : head, t->right[i], i == last);
        first = false;
    }
    end_line(&line, width, out);
    buf_done(&line);
}

void table_write(const struct table *t, int width, int rows, struct buf *out)
{
    size_t n = t != NULL ? t->n / (size_t)t->columns : 0;

    if (n > 0) {
        write_row(t, -1, width, out);
    }
    for (size_t i = 0; i < n && (rows == 0 || i < (size_t)rows); i++) {
        write_row(t, (long)i, width, out);
    }
    if (t == NULL || t->failed) {
        buf_add_cstr(out, "(out of memory: the rest is left out)\n");
    }
}

void table_show(struct table *t)
{
    struct buf out;

    buf_init(&out, TABLE_BYTES_MAX);
    table_write(t, 0, 0, &out);
    (void)fputs(buf_cstr(&out), stdout);
    buf_done(&out);
    table_free(t);
}
