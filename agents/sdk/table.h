/*
 * Rows that agents pass to each other. Accepted forms:
 *   {"columns": ["day", "n"], "rows": [["2026-11-20", 3], ...]}   as sql.query returns them
 *   [{"day": "2026-11-20", "n": 3}, ...]   objects; all their columns, in order of appearance
 *   [["2026-11-20", 3], ...] or [3, 5, ...]   lists; the columns are c1, c2, ...
 *   {"2026-11-20": 3, ...}   a map; the columns are label and value
 *   "day,n\n2026-11-20,3\n"   CSV text (RFC 4180) with a header line
 * The first form may have a member types: {"n": "integer"}. The rule for types: agents/cells.
 */
#ifndef SDK_TABLE_H
#define SDK_TABLE_H

#include "agents/cells/cells.h"
#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/wire/doc.h"

struct cJSON;

enum { TABLE_COLUMNS_MAX = 256, TABLE_ROWS_MAX = 200000, TABLE_NONE = -1 };

struct table {
    char **columns;
    int n;
    struct cJSON **rows; /* arrays of n cells; a missing cell is null */
    int rows_n;
    int rows_cap;
    bool csv;                               /* the cells are texts of CSV: an empty one is null */
    enum cell_type type[TABLE_COLUMNS_MAX]; /* valid after table_set_types */
    bool declared[TABLE_COLUMNS_MAX];       /* the source or the caller set the type */
};

/* Copies the values. BT_INVALID when the tree has none of the forms, BT_LIMIT over the caps. */
BT_MUST_CHECK enum bt_code table_read(const struct cJSON *tree, struct table *ret,
                                      struct bt_error *err);
BT_MUST_CHECK enum bt_code table_read_csv(const char *text, char delimiter, struct table *ret,
                                          struct bt_error *err);
/* Build a table by hand, column by column, then row by row. table_add_row takes the row (an array
 * of n cells, or NULL = out of memory), also on failure. */
BT_MUST_CHECK enum bt_code table_add_column(struct table *t, const char *name,
                                            struct bt_error *err);
BT_MUST_CHECK enum bt_code table_add_row(struct table *t, struct cJSON *row, struct bt_error *err);
/* A value as a cell: an integer beyond 2^53 becomes a text of its digits. NULL when out of memory.
 */
struct cJSON *table_new_cell(const struct cell *value);
/* Sets the types that a caller names: {"zip": "text"}; an absent doc sets none. BT_INVALID names an
 * unknown column or type. */
BT_MUST_CHECK enum bt_code table_declare(struct table *t, struct doc types, struct bt_error *err);
/* Sets those that a result names in its member `types`; ignores what is no column or no type. */
void table_take_types(struct table *t, const struct cJSON *types);
/*
 * Finds the types of the other columns, and makes every cell a value of its column's type: a
 * number, a boolean, a text, or null. An integer beyond 2^53 is a text of its digits. A list or an
 * object in a column of texts stays what it is. BT_INVALID names the row of a cell that is not of
 * the declared type.
 */
BT_MUST_CHECK enum bt_code table_set_types(struct table *t, struct bt_error *err);
/* A cell of a table with types as a value; integers are exact. A list or object has an empty
 * text. */
void table_value(const struct table *t, int column, const struct cJSON *cell, struct cell *ret);
/* Appends one member of a map: types: {column: type}. */
void table_put_types(const struct table *t, struct buf *out);
/* Accepts zeroed; idempotent. */
void table_done(struct table *t);
/* The index of a column, or TABLE_NONE. */
int table_column(const struct table *t, const char *name);
/* The last column of numbers, of a table with types. TABLE_NONE when there is none. */
int table_number_column(const struct table *t);
/* The first column that is not `except`; TABLE_NONE when there is none. */
int table_other_column(const struct table *t, int except);
/* Never NULL for an index within the table. */
const struct cJSON *table_cell(const struct table *t, int row, int column);
/* Appends a cell as text: a number in the shortest form that keeps its digits, null as "". */
void table_put_text(const struct cJSON *cell, struct buf *out);
/* The same into ret, cut to its size: for what is known to be short. */
const char *table_text(const struct cJSON *cell, char *ret, size_t size);
/* Reads numbers and texts that are numbers. False when it is neither. */
bool table_number(const struct cJSON *cell, double *ret);
/* How much of a table stands in a text beside the data, which has all of it. */
enum { TABLE_SHOWN_ROWS = 1000, TABLE_SHOWN_BYTES = 512 * 1024 };
/* A GitHub-flavoured Markdown table of the first rows: as many as stay within both caps. A last
 * line states how many of them are shown when it is not all, and where the `rest` is. Escapes pipes
 * and line breaks, aligns number columns right. */
void table_to_markdown(const struct table *t, int max_rows, size_t max_bytes, const char *rest,
                       struct buf *out);
#define TABLE_REST_IN_DATA "the data has all of them"
/* Appends one CSV field (RFC 4180), quoted where necessary. */
void table_csv_field(struct str text, char delimiter, struct buf *out);
#endif
