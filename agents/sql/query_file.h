/* query with `artifact`: the rows go into a file of the plan, in bounded memory. */
#ifndef SQL_QUERY_FILE_H
#define SQL_QUERY_FILE_H

#include "agents/sql/rows.h"

enum query_form { QUERY_MESSAGE, QUERY_NDJSON, QUERY_CSV };

/* What the step asks for: artifact true or "ndjson", or "csv". */
BT_MUST_CHECK enum bt_code query_form_of(struct bt_step *step, enum query_form *ret,
                                         struct bt_error *err);
/*
 * Steps the statement and writes every row, at most max of them (0 = all); commits the file. *ret
 * has the columns, their types, the first rows and the number of all. The caller frees it with
 * rows_done, also after a failure.
 */
BT_MUST_CHECK enum bt_code query_to_file(struct db *db, struct bt_step *step, sqlite3_stmt *stmt,
                                         uint64_t max, enum query_form form, struct sql_rows *ret,
                                         struct bt_error *err);
#endif
