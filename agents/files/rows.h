/* Collects rows for a result: filters them, selects columns, counts. One thread. */
#ifndef FILES_ROWS_H
#define FILES_ROWS_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

enum { ROWS_COLUMNS_MAX = 256, ROWS_WHERE_MAX = 16, ROWS_VALUES_MAX = 190000 };

struct rows {
    struct str columns[ROWS_COLUMNS_MAX]; /* of the source; borrowed */
    uint32_t n;
    uint32_t pick[ROWS_COLUMNS_MAX]; /* of the result, as indexes of the source's */
    uint32_t pick_n;
    struct rows_filter {
        uint32_t column;
        struct doc value; /* a text, or a list of texts */
    } where[ROWS_WHERE_MAX];
    uint32_t where_n;
    uint32_t limit; /* 0 = as many as a result holds */
    struct buf out; /* msgpack of the rows */
    uint32_t count;
    uint64_t skipped;  /* lines that are no row */
    uint64_t filtered; /* rows that `where` rejected */
    bool full;         /* the limit was reached and there was at least one more row */
};

/* r has the source's columns already. `columns` (a list of names) and `where` may be absent.
 * BT_INVALID names an unknown column. */
BT_MUST_CHECK enum bt_code rows_init(struct rows *r, struct doc columns, struct doc where,
                                     uint32_t limit, struct bt_error *err);
/* Accepts zeroed; idempotent. */
void rows_done(struct rows *r);
/* Adds n cells of the source; .ptr NULL = null. BT_LIMIT when a result cannot hold the row. */
BT_MUST_CHECK enum bt_code rows_add(struct rows *r, const struct str *cells, struct bt_error *err);
/* Appends {columns, rows, rowCount, skipped, filtered, truncated}. */
void rows_put(const struct rows *r, struct buf *out);
#endif
