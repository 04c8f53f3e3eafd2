/*
 * What type a column of loaded cells gets, and a cell's value in it.
 *
 * INTEGER when every cell is a whole number of 64 bits, REAL when every cell is a number, else
 * TEXT. A number that would lose digits as REAL beside it makes the column TEXT, and so does a
 * leading zero: postal codes and telephone numbers stay what they are. Texts are read as numbers
 * only from CSV, but for whole numbers beyond 2^53, which travel as JSON texts. Nothing typed makes
 * TEXT.
 */
#ifndef SQL_TYPES_H
#define SQL_TYPES_H

#include <sqlite3.h>

#include "agents/sdk/table.h"

enum sql_type { SQL_INTEGER, SQL_REAL, SQL_TEXT, SQL_TYPE_COUNT };

const char *types_name(enum sql_type type);
/* One type per column into ret (t->n of them). from_csv: texts may be numbers, empty ones are NULL.
 */
void types_infer(const struct table *t, bool from_csv, enum sql_type *ret);
/* Binds a cell as the type that was inferred with it in sight; a SQLite result code. */
int types_bind(sqlite3_stmt *stmt, int ix, const struct cJSON *cell, enum sql_type type,
               bool from_csv);
#endif
