/*
 * Rows that agents pass to each other. Accepted forms:
 *   {"columns": ["day", "n"], "rows": [["2026-11-20", 3], ...]}   as sql.query returns them
 *   [{"day": "2026-11-20", "n": 3}, ...]   objects; all their columns, in order of appearance
 *   [["2026-11-20", 3], ...] or [3, 5, ...]   lists; the columns are c1, c2, ...
 *   {"2026-11-20": 3, ...}   a map; the columns are label and value
 *   "day,n\n2026-11-20,3\n"   CSV text (RFC 4180) with a header line
 */
#ifndef SDK_TABLE_H
#define SDK_TABLE_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

struct cJSON;

enum { TABLE_COLUMNS_MAX = 256, TABLE_ROWS_MAX = 200000, TABLE_NONE = -1 };

struct table {
    char **columns;
    int n;
    struct cJSON **rows; /* arrays of n cells; a missing cell is null */
    int rows_n;
    int rows_cap;
};

/* Copies the values. BT_INVALID when the tree has none of the forms, BT_LIMIT over the caps. */
BT_MUST_CHECK enum bt_code table_read(const struct cJSON *tree, struct table *ret,
                                      struct bt_error *err);
BT_MUST_CHECK enum bt_code table_read_csv(const char *text, char delimiter, struct table *ret,
                                          struct bt_error *err);
/* Accepts zeroed; idempotent. */
void table_done(struct table *t);
/* The index of a column, or TABLE_NONE. */
int table_column(const struct table *t, const char *name);
/* The last column whose cells are all numbers, or texts that are numbers. TABLE_NONE when there is
 * none. */
int table_number_column(const struct table *t);
/* The first column that is not `except`; TABLE_NONE when there is none. */
int table_other_column(const struct table *t, int except);
/* Never NULL for an index within the table. */
const struct cJSON *table_cell(const struct table *t, int row, int column);
/* A cell as text into ret, cut to its size: numbers in their shortest form, null as "". */
const char *table_text(const struct cJSON *cell, char *ret, size_t size);
/* Reads numbers and texts that are numbers. False when it is neither. */
bool table_number(const struct cJSON *cell, double *ret);
/* A GitHub-flavoured Markdown table of at most max_rows: escapes pipes and line breaks, aligns
 * number columns right. */
void table_to_markdown(const struct table *t, int max_rows, struct buf *out);
/* Appends one CSV field (RFC 4180), quoted where necessary. */
void table_csv_field(struct str text, char delimiter, struct buf *out);
#endif
