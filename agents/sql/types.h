/*
 * Infers the type of a column from its cells. INTEGER when every cell is a whole number of 64 bits,
 * REAL when every cell is a number, else TEXT. A column is TEXT too when a number would lose digits
 * as REAL or has a leading zero: postal codes and telephone numbers keep their form. A text counts
 * as a number only in CSV; the exception is a whole number beyond 2^53, which travels as a JSON
 * text. A column without values is TEXT.
 */
#ifndef SQL_TYPES_H
#define SQL_TYPES_H

#include <sqlite3.h>

#include "agents/sdk/table.h"

enum sql_type { SQL_INTEGER, SQL_REAL, SQL_TEXT, SQL_TYPE_COUNT };

const char *types_name(enum sql_type type);
/* Writes one type per column to ret (t->n of them). from_csv: texts may be numbers, empty ones are
 * NULL. */
void types_infer(const struct table *t, bool from_csv, enum sql_type *ret);
/* Binds a cell as the column's inferred type; returns SQLite's result code. */
int types_bind(sqlite3_stmt *stmt, int ix, const struct cJSON *cell, enum sql_type type,
               bool from_csv);
#endif
