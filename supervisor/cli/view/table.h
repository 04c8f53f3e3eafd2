/*
 * Aligned columns. Each cell is one line without control characters. A column that is empty in
 * every row is left out. One thread.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

struct table;

/*
 * heads end with NULL; a head that begins with '>' makes its column right-aligned. Borrowed; must
 * outlive the table. NULL when out of memory.
 */
struct table *table_new(const char *const *heads);
/* NULL is allowed. */
void table_free(struct table *t);
/* Adds the next cell; a row ends with the last column. NULL is allowed. */
void table_cell(struct table *t, const char *fmt, ...) BT_PRINTF(2, 3);
/*
 * Appends heads and rows. A line is cut to `width` columns, with a mark (0 = not cut); at most
 * `rows` rows (0 = all). When memory ran out, the last line says so.
 */
void table_write(const struct table *t, int width, int rows, struct buf *out);
/* Writes the table to stdout and frees it. */
void table_show(struct table *t);
#endif
