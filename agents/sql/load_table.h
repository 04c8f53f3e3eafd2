/* What every load has in common: the table, the statement that inserts a row, the reply. */
#ifndef SQL_LOAD_TABLE_H
#define SQL_LOAD_TABLE_H

#include "agents/cells/cells.h"
#include "agents/sql/db.h"
#include "protocol/base/buf.h"

struct load_table {
    const char *name;
    bool replace;
    uint32_t n;
    const struct str *columns;
    const enum cell_type *types;
};

BT_MUST_CHECK enum bt_code load_table_check_name(const char *name, struct bt_error *err);
/* BT_INVALID when there is one of that name, unless `replace`. */
BT_MUST_CHECK enum bt_code load_table_create(struct db *db, const struct load_table *t,
                                             struct bt_error *err);
/* INSERT with a parameter per column; the caller finalizes it. */
BT_MUST_CHECK enum bt_code load_table_prepare(struct db *db, const struct load_table *t,
                                              sqlite3_stmt **ret, struct bt_error *err);
/* {table, rows, columns: [{name, type}], replacedBytes} as JSON, and a sentence. */
BT_MUST_CHECK enum bt_code load_table_reply(const struct load_table *t, uint64_t rows,
                                            uint64_t replaced, struct buf *json, struct buf *text,
                                            struct bt_error *err);
#endif
