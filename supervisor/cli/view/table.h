/*
 * Aligned columns for people. Cells are one line each, without control characters; columns that are
 * empty in every row are left out. One thread.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

struct table;

/* heads end with NULL; one that begins with '>' makes its column right-aligned. Borrowed, must
 * outlive the table. NULL when out of memory. */
struct table *table_new(const char *const *heads);
/* Accepts NULL. */
void table_free(struct table *t);
/* The next cell; a row ends by itself with the last column. Accepts NULL. */
void table_cell(struct table *t, const char *fmt, ...) BT_PRINTF(2, 3);
/* Appends heads and rows; a line is cut to `width` characters (0 = as long as it is). At most
 * `rows` rows (0 = all). Out of memory on the way: says so in a line of its own. */
void table_write(const struct table *t, int width, int rows, struct buf *out);
/* table_write to stdout, and table_free. */
void table_show(struct table *t);
#endif
