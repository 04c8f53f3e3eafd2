/*
 * A SQLite database of an agent's own: one file, one connection for each step, with the agent's
 * statements only. The step's cancel and deadline interrupt every statement.
 */
#ifndef SDK_STORE_H
#define SDK_STORE_H

#include <sqlite3.h>

#include "baton/agent.h"
#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"

struct store_form {
    const char *path;
    int version;        /* of the schema, from 1: user_version of the file */
    const char *schema; /* the statements that make it */
    uint64_t max_bytes; /* of the file */
    bool may_make;      /* a missing file is made; else BT_NOT_FOUND */
};

/* Must not move while it is open. */
struct store {
    sqlite3 *sql;
    const struct bt_step *step; /* NULL: nothing interrupts */
    uint64_t max_bytes;
    msec busy_since;
    bool in_work; /* between store_begin and its end */
};

/* BT_UNAUTHORIZED: a symbolic link, or a file of the supervisor. BT_INVALID: another version, or no
 * database. The caller calls store_close, also after a failure. */
BT_MUST_CHECK enum bt_code store_open(struct store *s, const struct store_form *form,
                                      const struct bt_step *step, struct bt_error *err);
/* Rolls back an open transaction. Accepts zeroed; idempotent. */
void store_close(struct store *s);
/* Fills *err from the connection's last error. */
enum bt_code store_error(struct store *s, struct bt_error *err);
BT_MUST_CHECK enum bt_code store_run(struct store *s, const char *sql, struct bt_error *err);
/* The caller finalizes *ret. */
BT_MUST_CHECK enum bt_code store_prepare(struct store *s, const char *sql, sqlite3_stmt **ret,
                                         struct bt_error *err);
/* Steps a statement that has no rows, and resets it. */
BT_MUST_CHECK enum bt_code store_do(struct store *s, sqlite3_stmt *st, struct bt_error *err);
/* The next row: *ret_row false at the end. */
BT_MUST_CHECK enum bt_code store_next(struct store *s, sqlite3_stmt *st, bool *ret_row,
                                      struct bt_error *err);
/* Takes the write lock at once, so that no later statement can fail for it. */
BT_MUST_CHECK enum bt_code store_begin(struct store *s, struct bt_error *err);
BT_MUST_CHECK enum bt_code store_commit(struct store *s, struct bt_error *err);
void store_rollback(struct store *s);
/* One number that a statement without parameters returns. */
BT_MUST_CHECK enum bt_code store_number(struct store *s, const char *sql, int64_t *ret,
                                        struct bt_error *err);
/* Binds a text; it must live until the statement was stepped. */
void store_bind(sqlite3_stmt *st, int at, struct str text);
/* A column as text, valid until the next step. */
struct str store_text(sqlite3_stmt *st, int column);
/* Reads the setting `database`: the path of a file, whose directory is made. It is not the
 * supervisor's. ret has PATH_MAX bytes. */
BT_MUST_CHECK enum bt_code store_check_path(const char *path, char *ret, struct bt_error *err);
#endif
