/* The types of cells (agents/cells) in SQLite. */
#ifndef SQL_TYPES_H
#define SQL_TYPES_H

#include <sqlite3.h>

#include "agents/sdk/table.h"

/* What a column of the type is declared as: INTEGER, REAL, BOOLEAN, TEXT. Dates are TEXT, because
 * texts of ISO 8601 sort as dates. */
const char *types_sql_name(enum cell_type type);
/* Whether a declaration is that of a boolean column: its 0 and 1 are false and true. */
bool types_is_boolean(const char *declared);
/* Binds a value. The text must stay valid until the statement is stepped. Returns SQLite's result
 * code. */
int types_bind_value(sqlite3_stmt *stmt, int ix, const struct cell *value);
/* Binds a cell of a table with types; a list or an object becomes JSON text. */
int types_bind(sqlite3_stmt *stmt, int ix, const struct table *t, int column,
               const struct cJSON *cell);
#endif
