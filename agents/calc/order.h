/* The order of cells: numbers by value, dates by the moment, texts by their bytes, false before
 * true; null after everything. One thread. */
#ifndef CALC_ORDER_H
#define CALC_ORDER_H

#include "agents/calc/dates.h"
#include "agents/sdk/table.h"

/* A cell that can be compared. */
struct item {
    struct cell cell;
    struct date moment; /* of a date */
    int nanos;
    char bucket[DATE_BUCKET]; /* of a key by day, week, ...; then cell.text points to it */
};

struct key {
    int column;
    const char *per;    /* a unit of date_bucket; NULL = the value itself */
    bool descending;    /* null stays last */
    struct item *items; /* one per row */
};

enum { KEYS_MAX = 16 };

/* -1, 0, 1: a is before, equal to, after b. Both are of one type; null is after all. */
int item_compare(const struct item *a, const struct item *b);
/* A number, rounded to a double. */
double item_number(const struct item *i);
/* Reads the items of a column. BT_INVALID: `per` needs dates. The caller frees key->items. */
BT_MUST_CHECK enum bt_code key_read(const struct table *t, struct key *key, struct bt_error *err);
/* The numbers of the rows in order; equal rows keep theirs. The caller frees. NULL when out of
 * memory. */
int *order_rows(int rows_n, const struct key *keys, int n);
/* Compares two rows by all keys. */
int order_compare(const struct key *keys, int n, int a, int b);
#endif
