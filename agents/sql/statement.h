/* Prepares one statement of a step and binds its parameters. */
#ifndef SQL_STATEMENT_H
#define SQL_STATEMENT_H

#include "agents/sql/db.h"
#include "protocol/wire/doc.h"

/* Prepares exactly one statement. BT_INVALID for none or several. In read mode, BT_UNAUTHORIZED for
 * one that changes data. The caller finalizes it. */
BT_MUST_CHECK enum bt_code statement_prepare(struct db *db, const char *sql, sqlite3_stmt **ret,
                                             struct bt_error *err);
/*
 * Binds a list to ?, ?1 ... or an object to :name, @name, $name; an absent doc binds nothing. Every
 * parameter must have a value, and every value a parameter. Lists and objects within are bound as
 * JSON text (for json_each).
 */
BT_MUST_CHECK enum bt_code statement_bind(struct db *db, sqlite3_stmt *stmt, struct doc params,
                                          struct bt_error *err);
#endif
