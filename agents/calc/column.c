#include "agents/calc/column.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/calc/expr.h"

/* In a column of texts each number is a real, so that all items have one type. */
static void read_texts(const struct table *t, int column, struct column *ret)
{
    for (int r = 0; r < t->rows_n; r++) {
        double v;
        struct cell *to = &ret->items[r].cell;
        to->null = !table_number(table_cell(t, r, column), &v);
        to->type = CELL_REAL;
        to->real = to->null ? 0.0 : v;
        ret->approximate = ret->approximate || !to->null;
    }
}

static bool check(struct bt_step *step, const struct table *t, int column, enum column_rest rest,
                  struct column *c)
{
    for (size_t r = 0; r < c->n; r++) {
        const bool empty = cJSON_IsNull(table_cell(t, (int)r, column));
        c->numbers += c->items[r].cell.null ? 0 : 1;
        if (c->items[r].cell.null && rest != COLUMN_SKIPS_ALL &&
            (!empty || rest == COLUMN_NEEDS_ALL)) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "row %zu: column '%s' is no number",
                         r + 1, t->columns[column]);
            return false;
        }
    }
    if (c->numbers > EXPR_VALUES_MAX) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "more than %d values", EXPR_VALUES_MAX);
    }
    return c->numbers <= EXPR_VALUES_MAX;
}

bool column_read(struct bt_step *step, const struct table *t, int column, enum column_rest rest,
                 struct column *ret)
{
    struct key key = {.column = column};
    struct bt_error err;

    *ret = (struct column){.n = (size_t)t->rows_n};
    if (key_read(t, &key, &err) != BT_OK) {
        free(key.items);
        bt_step_fail_error(step, &err);
        return false;
    }
    ret->items = key.items;
    if (!cell_type_is_number(t->type[column])) {
        read_texts(t, column, ret);
    }
    return check(step, t, column, rest, ret);
}

void column_compress(struct column *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (!c->items[i].cell.null) {
            c->items[n++] = c->items[i];
        }
    }
    c->n = n;
}

void column_done(struct column *c)
{
    free(c->items);
    *c = (struct column){.items = NULL};
}
