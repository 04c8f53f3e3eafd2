/*
 * One connection for one step. Reading, it can do nothing but read; writing, nothing but change its
 * one database. The step's cancel and deadline interrupt whatever it does.
 */
#ifndef SQL_DB_H
#define SQL_DB_H

#include <sqlite3.h>

#include "agents/sql/settings.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum db_mode { DB_READ, DB_WRITE };
enum { DB_NAME_MAX = 64, DB_DENIED_MAX = 96 };

/* The agent's own tables begin so; statements of steps may read them but not change them. */
#define DB_OWN_PREFIX "_baton_"

/* Must not move while it is open: SQLite holds its address. */
struct db {
    sqlite3 *sql;
    const struct bt_step *step;
    const struct sql_settings *settings;
    enum db_mode mode;
    bool own_statement; /* the agent's own statement runs: the authorizer looks away */
    bool in_work;       /* between db_begin and its end */
    msec busy_since;
    char denied[DB_DENIED_MAX]; /* what the authorizer refused last */
};

/*
 * Opens the database `name` ([A-Za-z0-9_-]{1,64}) of the settings' directory. Writing makes it;
 * reading a missing one is BT_NOT_FOUND, but for "main", which is empty then. A symbolic link is
 * BT_UNAUTHORIZED. The caller calls db_close, also after a failure.
 */
BT_MUST_CHECK enum bt_code db_open(struct db *db, const struct sql_settings *settings,
                                   const struct bt_step *step, const char *name, enum db_mode mode,
                                   struct bt_error *err);
/* Rolls back what was not committed. Accepts zeroed; idempotent. */
void db_close(struct db *db);

/* Fills *err from the connection's last error. */
enum bt_code db_error(struct db *db, struct bt_error *err);
/* Prepares the agent's own statement (or runs it), without the authorizer. */
BT_MUST_CHECK enum bt_code db_prepare_own(struct db *db, const char *sql, sqlite3_stmt **ret,
                                          struct bt_error *err);
BT_MUST_CHECK enum bt_code db_run_own(struct db *db, const char *sql, struct bt_error *err);

/* A write transaction, taken at once so that it cannot fail for a lock half-way. */
BT_MUST_CHECK enum bt_code db_begin(struct db *db, struct bt_error *err);
BT_MUST_CHECK enum bt_code db_commit(struct db *db, struct bt_error *err);

/* guard.c: the authorizer, the interrupt and the waiting for locks. */
void db_set_handlers(struct db *db);
#endif
