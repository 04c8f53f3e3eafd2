/* Collects rows for a result: filters them, selects columns, counts, finds the columns' types. One
 * thread. */
#ifndef FILES_ROWS_H
#define FILES_ROWS_H

#include "agents/cells/cells.h"
#include "baton/agent.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

enum { ROWS_COLUMNS_MAX = 256, ROWS_WHERE_MAX = 16, ROWS_VALUES_MAX = 190000 };
/* A limit is a wish for a quick answer: not more rows than these are read to count them. */
enum { ROWS_MORE_MAX = 1000000 };

struct rows {
    struct str columns[ROWS_COLUMNS_MAX]; /* of the source; borrowed */
    uint32_t n;
    uint32_t pick[ROWS_COLUMNS_MAX]; /* of the result, as indexes of the source's */
    uint32_t pick_n;
    struct cell_column seen[ROWS_COLUMNS_MAX]; /* by index of the source's */
    enum cell_type type[ROWS_COLUMNS_MAX];
    bool declared[ROWS_COLUMNS_MAX];
    struct rows_filter {
        uint32_t column;
        struct doc value; /* one value, or a list */
    } where[ROWS_WHERE_MAX];
    uint32_t where_n;
    uint32_t limit;   /* 0 = as many as a result holds */
    struct buf texts; /* msgpack of the rows' cells as texts */
    struct buf out;   /* the rows with their types, after rows_end */
    uint32_t count;
    uint64_t skipped;       /* lines that are no row */
    uint64_t filtered;      /* rows that `where` rejected */
    uint64_t more;          /* rows over the limit; at most ROWS_MORE_MAX are counted */
    struct bt_artifact *to; /* gets the rows as CSV instead of `texts`; or NULL */
    struct buf line;
};

/* What the caller asks for; each may be absent. */
struct rows_wish {
    struct doc columns; /* a list of names */
    struct doc where;   /* {column: value or list of values} */
    struct doc types;   /* {column: type} */
    uint32_t limit;
};

/* r has the source's columns already. BT_INVALID names an unknown column or type. */
BT_MUST_CHECK enum bt_code rows_init(struct rows *r, const struct rows_wish *wish,
                                     struct bt_error *err);
/* Accepts zeroed; idempotent. */
void rows_done(struct rows *r);
/* After rows_init: the rows go into the artifact, of any size, beginning with the header line. */
BT_MUST_CHECK enum bt_code rows_to(struct rows *r, struct bt_artifact *to, struct bt_error *err);
/* Adds n cells of the source; .ptr NULL = null. BT_LIMIT when a result cannot hold the row. */
BT_MUST_CHECK enum bt_code rows_add(struct rows *r, const struct str *cells, struct bt_error *err);
/* After the last row: gives the cells their types. BT_INVALID names the row of a cell that is not
 * of its declared type. */
BT_MUST_CHECK enum bt_code rows_end(struct rows *r, struct bt_error *err);
/* After rows_end, appends {columns, types, rowCount, skipped, filtered, replaced, truncated, rows};
 * without the rows when they are in an artifact. */
void rows_put(const struct rows *r, uint64_t replaced, struct buf *out);
#endif
