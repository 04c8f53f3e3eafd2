/* The rows of a statement as a reply has them: {columns, types, rows, rowCount, truncated}. */
#ifndef SQL_ROWS_H
#define SQL_ROWS_H

#include "agents/cells/cells.h"
#include "agents/sql/db.h"
#include "protocol/base/buf.h"

enum { ROWS_PREVIEW = 1000, ROWS_MORE_MAX = 100000 };

struct rows_cap {
    uint32_t max;
    bool asked; /* the step asked for it: more rows are left out. Else they are an error */
};

struct sql_rows {
    struct buf columns; /* msgpack texts, concatenated */
    int columns_n;
    struct cell_column *seen; /* per column, for its type */
    struct buf rows;          /* msgpack arrays, concatenated */
    uint32_t n;
    size_t preview_len; /* bytes of the first ROWS_PREVIEW rows */
    uint32_t more;      /* rows over the limit; a query counts at most ROWS_MORE_MAX of them */
    size_t replaced;    /* bytes of texts that were not UTF-8 */
};

enum { ROWS_MEMBERS = 6 };

/*
 * Steps the statement and keeps at most cap.max rows. to_end: runs the statement to its end all the
 * same, as one that changes data must. BT_LIMIT when the rows do not fit in a result, and when
 * there are more than a cap that the step did not ask for. The caller frees with rows_done, also
 * after a failure. Integers beyond 2^53 become texts, because most JSON readers use doubles; so do
 * infinities. Blobs become {"base64": text}. Columns of the same name get _2, _3.
 */
BT_MUST_CHECK enum bt_code rows_collect(struct db *db, sqlite3_stmt *stmt, struct rows_cap cap,
                                        bool to_end, struct sql_rows *ret, struct bt_error *err);
/* rows_collect in parts: the columns; one row more, which may not fit in a result; the types. */
BT_MUST_CHECK enum bt_code rows_begin(sqlite3_stmt *stmt, struct sql_rows *ret,
                                      struct bt_error *err);
void rows_put_row(struct sql_rows *r, sqlite3_stmt *stmt);
/* Appends the member `types`: {column: type}. */
void rows_put_types(const struct sql_rows *r, struct buf *out);
/* Accepts zeroed; idempotent. */
void rows_done(struct sql_rows *r);
/* Appends ROWS_MEMBERS members of a map: columns, types, rows, rowCount, truncated, replacedBytes.
 */
void rows_put(const struct sql_rows *r, bool with_rows, struct buf *out);
/* Appends a Markdown table of the first rows, and the number of rows. */
BT_MUST_CHECK enum bt_code rows_markdown(const struct sql_rows *r, struct buf *out,
                                         struct bt_error *err);
#endif
