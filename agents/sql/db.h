/*
 * One connection for one step. In read mode it can only read; in write mode it can change only its
 * own database. The step's cancel and deadline interrupt any statement.
 */
#ifndef SQL_DB_H
#define SQL_DB_H

#include <sqlite3.h>

#include "agents/sql/settings.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum db_mode { DB_READ, DB_WRITE };
enum {
    DB_NAME_MAX = 64,
    DB_DENIED_MAX = 96,
    DB_VALUE_MAX = 16 * 1024 * 1024 /* one text, blob or row */
};

/* The prefix of the agent's own tables. Statements of steps may read them but not change them. */
#define DB_OWN_PREFIX "_baton_"

/* Must not move while it is open: SQLite holds its address. */
struct db {
    sqlite3 *sql;
    const struct bt_step *step;
    const struct sql_settings *settings;
    enum db_mode mode;
    bool own_statement; /* the agent's own statement runs: the authorizer allows everything */
    bool in_work;       /* between db_begin and its end */
    msec busy_since;
    char denied[DB_DENIED_MAX]; /* the action that the authorizer denied last */
};

/*
 * Opens the database `name` ([A-Za-z0-9_-]{1,64}) in the settings' directory. Writing creates it.
 * Reading a missing one is BT_NOT_FOUND, except for "main", which is then empty. A symbolic link is
 * BT_UNAUTHORIZED. The caller calls db_close, also after a failure.
 */
BT_MUST_CHECK enum bt_code db_open(struct db *db, const struct sql_settings *settings,
                                   const struct bt_step *step, const char *name, enum db_mode mode,
                                   struct bt_error *err);
/* Rolls back an open transaction. Accepts zeroed; idempotent. */
void db_close(struct db *db);

/* Fills *err from the connection's last error. */
enum bt_code db_error(struct db *db, struct bt_error *err);
/* The same for a code of a value that was to be bound: SQLITE_NOMEM and SQLITE_TOOBIG may be the
 * agent's own, which SQLite knows nothing of. */
enum bt_code db_bind_error(struct db *db, int rc, struct bt_error *err);
/* Prepares (or runs) the agent's own statement, without the authorizer. */
BT_MUST_CHECK enum bt_code db_prepare_own(struct db *db, const char *sql, sqlite3_stmt **ret,
                                          struct bt_error *err);
BT_MUST_CHECK enum bt_code db_run_own(struct db *db, const char *sql, struct bt_error *err);

/* Begins a write transaction. It takes the write lock at once, so no later statement can fail for
 * it. */
BT_MUST_CHECK enum bt_code db_begin(struct db *db, struct bt_error *err);
BT_MUST_CHECK enum bt_code db_commit(struct db *db, struct bt_error *err);

/* Triggers run only in statements of steps, never in the agent's own: it calls this around theirs.
 * No other statement may be prepared meanwhile. */
void db_enable_triggers(struct db *db, bool on);

/* authorizer.c: sets the authorizer, the progress handler and the busy handler. */
void db_set_handlers(struct db *db);
#endif
