#include "agents/calc/order.h"

#include <stdlib.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_texts(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);

    return order != 0 ? COMPARE(order, 0) : COMPARE(a.len, b.len);
}

int item_compare(const struct item *a, const struct item *b)
{
    if (a->cell.null || b->cell.null) {
        return (int)a->cell.null - (int)b->cell.null;
    }
    switch (a->cell.type) {
    case CELL_INTEGER:
        return COMPARE(a->cell.integer, b->cell.integer);
    case CELL_REAL:
        return COMPARE(a->cell.real, b->cell.real);
    case CELL_BOOLEAN:
        return (int)a->cell.boolean - (int)b->cell.boolean;
    case CELL_DATE:
        return a->moment.seconds != b->moment.seconds
                   ? COMPARE(a->moment.seconds, b->moment.seconds)
                   : COMPARE(a->nanos, b->nanos);
    case CELL_TEXT:
    case CELL_TYPE_COUNT:
        break;
    }
    return compare_texts(a->cell.text, b->cell.text);
}

double item_number(const struct item *i)
{
    return i->cell.type == CELL_REAL ? i->cell.real : (double)i->cell.integer;
}

int order_compare(const struct key *keys, int n, int a, int b)
{
    for (int i = 0; i < n; i++) {
        const struct item *x = &keys[i].items[a];
        const struct item *y = &keys[i].items[b];
        int order = item_compare(x, y);
        if (order != 0) {
            return keys[i].descending && !x->cell.null && !y->cell.null ? -order : order;
        }
    }
    return 0;
}

struct ordering {
    const struct key *keys;
    int n;
};

static int by_keys(const void *a, const void *b, void *self)
{
    const struct ordering *o = self;
    int x = *(const int *)a;
    int y = *(const int *)b;
    int order = order_compare(o->keys, o->n, x, y);

    return order != 0 ? order : COMPARE(x, y);
}

int *order_rows(int rows_n, const struct key *keys, int n)
{
    struct ordering o = {keys, n};
    int *rows = malloc(((size_t)rows_n + 1) * sizeof *rows);

    for (int i = 0; i < rows_n && rows != NULL; i++) {
        rows[i] = i;
    }
    if (rows != NULL && rows_n > 1) {
        qsort_r(rows, (size_t)rows_n, sizeof *rows, by_keys, &o);
    }
    return rows;
}

static bool read_item(const struct table *t, const struct key *key, const struct cJSON *cell,
                      struct item *ret)
{
    struct cell_date date;

    table_value(t, key->column, cell, &ret->cell);
    if (ret->cell.null || ret->cell.type != CELL_DATE) {
        return true;
    }
    if (!cell_date_read(ret->cell.text, &date)) {
        return false;
    }
    ret->moment = date_of(&date);
    ret->nanos = date.nanos;
    if (key->per != NULL) {
        (void)date_bucket(&date, key->per, ret->bucket); /* key_read knows the unit */
        ret->cell.type = CELL_TEXT;
        ret->cell.text = str_from(ret->bucket);
    }
    return true;
}

enum bt_code key_read(const struct table *t, struct key *key, struct bt_error *err)
{
    const char *name = t->columns[key->column];
    char unit[DATE_BUCKET];
    bool ok = true;

    if (key->per != NULL &&
        !date_bucket(&(struct cell_date){.year = 1, .month = 1, .day = 1}, key->per, unit)) {
        return err_set(err, BT_INVALID, "per: expected day, week, month, quarter or year");
    }
    key->items = calloc((size_t)t->rows_n + 1, sizeof *key->items);
    if (key->items == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a column");
    }
    for (int r = 0; r < t->rows_n && ok; r++) {
        ok = read_item(t, key, table_cell(t, r, key->column), &key->items[r]) &&
             (key->per == NULL || key->items[r].cell.null || t->type[key->column] == CELL_DATE);
    }
    return ok ? BT_OK
              : err_set(err, BT_INVALID,
                        "column '%.80s' has the type %s; per needs dates such as 2026-11-21", name,
                        cell_type_name(t->type[key->column]));
}
