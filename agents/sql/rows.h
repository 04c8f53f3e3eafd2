/* The rows of a statement as a reply has them: {columns, rows, rowCount, truncated}. */
#ifndef SQL_ROWS_H
#define SQL_ROWS_H

#include "agents/sql/db.h"
#include "protocol/base/buf.h"

enum { ROWS_PREVIEW = 50 };

struct sql_rows {
    struct buf columns; /* msgpack texts, concatenated */
    int columns_n;
    struct buf rows; /* msgpack arrays, concatenated */
    uint32_t n;
    size_t preview_len; /* bytes of the first ROWS_PREVIEW rows */
    bool truncated;     /* there are more rows than the limit */
    size_t replaced;    /* bytes of texts that were not UTF-8 */
};

enum { ROWS_MEMBERS = 5 };

/*
 * Steps the statement and keeps at most max rows. to_end: runs the statement to its end all the
 * same, as one that changes data must. BT_LIMIT when the rows do not fit in a result. The caller
 * frees with rows_done, also after a failure. Integers beyond 2^53 become texts, because most JSON
 * readers use doubles; so do infinities. Blobs become {"base64": text}. Columns of the same name
 * get _2, _3.
 */
BT_MUST_CHECK enum bt_code rows_collect(struct db *db, sqlite3_stmt *stmt, uint32_t max,
                                        bool to_end, struct sql_rows *ret, struct bt_error *err);
/* Accepts zeroed; idempotent. */
void rows_done(struct sql_rows *r);
/* Appends ROWS_MEMBERS members of a map: columns, rows, rowCount, truncated, replacedBytes. */
void rows_put(const struct sql_rows *r, struct buf *out);
/* Appends a Markdown table of the first rows, and the number of rows. */
BT_MUST_CHECK enum bt_code rows_markdown(const struct sql_rows *r, struct buf *out,
                                         struct bt_error *err);
#endif
