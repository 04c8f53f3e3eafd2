/* Limits a statement of a step: what it may do, and for how long. */
#include <stdio.h>
#include <strings.h>

#include "agents/sql/db.h"
#include "protocol/base/clock.h"

enum { OPS_PER_PROGRESS_CALL = 1000, BUSY_SLEEP_MS = 10 };

struct pragma {
    const char *name;
    bool with_argument; /* its argument names a table or an index and changes nothing */
};

static const struct pragma pragmas[] = {
    {"table_info", true},     {"table_xinfo", true},      {"table_list", true},
    {"index_list", true},     {"index_info", true},       {"index_xinfo", true},
    {"function_list", false}, {"foreign_key_list", true}, {"collation_list", false},
    {"encoding", false},      {"compile_options", false}, {"page_count", false},
    {"page_size", false},     {"freelist_count", false},  {"user_version", false},
    {"quick_check", true},    {"integrity_check", true},  {"foreign_key_check", true},
};

static int deny_action(struct db *db, const char *what, const char *name)
{
    (void)snprintf(db->denied, sizeof db->denied, "%s%s%.40s", what, name == NULL ? "" : " ",
                   name == NULL ? "" : name);
    return SQLITE_DENY;
}

static int check_pragma(struct db *db, const char *name, const char *argument)
{
    for (size_t i = 0; i < sizeof pragmas / sizeof pragmas[0]; i++) {
        if (strcasecmp(pragmas[i].name, name) == 0 &&
            (argument == NULL || pragmas[i].with_argument)) {
            return SQLITE_OK;
        }
    }
    return deny_action(db, "PRAGMA", name);
}

static bool is_own_table(const char *name)
{
    return name != NULL && strncasecmp(name, DB_OWN_PREFIX, sizeof DB_OWN_PREFIX - 1) == 0;
}

/* Actions that are denied in both modes: leaving the database, the transaction or the process. */
static int check_always(struct db *db, int action, const char *a, const char *b)
{
    switch (action) {
    case SQLITE_ATTACH:
        return deny_action(db, "ATTACH (or VACUUM INTO)", NULL);
    case SQLITE_DETACH:
        return deny_action(db, "DETACH", NULL);
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        return deny_action(db, "a transaction of your own (each step is one)", NULL);
    case SQLITE_CREATE_VTABLE:
        return deny_action(db, "CREATE VIRTUAL TABLE", NULL);
    case SQLITE_PRAGMA:
        return check_pragma(db, a, b);
    case SQLITE_FUNCTION:
        return strcasecmp(b, "load_extension") == 0 ? deny_action(db, "the function", b)
                                                    : SQLITE_OK;
    default:
        return SQLITE_OK;
    }
}

/* The actions whose second name is a table, too: "ON _baton_..." is a change of it. */
static bool is_on_own_table(int action, const char *b)
{
    switch (action) {
    case SQLITE_ALTER_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TEMP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_TEMP_TRIGGER:
        return is_own_table(b);
    default:
        return false; /* of an UPDATE it is a column */
    }
}

static int authorize(void *self, int action, const char *a, const char *b, const char *schema,
                     const char *inner)
{
    struct db *db = self;
    int rc;

    (void)schema;
    (void)inner;
    if (db->own_statement) {
        return SQLITE_OK;
    }
    rc = check_always(db, action, a, b);
    if (rc != SQLITE_OK || action == SQLITE_PRAGMA || action == SQLITE_FUNCTION ||
        action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE) {
        return rc;
    }
    if (db->mode == DB_READ && action == SQLITE_UPDATE && strcmp(a, "sqlite_master") == 0) {
        return SQLITE_OK; /* SQLite declares table-valued functions this way; statements cannot */
    }
    if (db->mode == DB_READ) {
        return deny_action(db, "anything but reading; the skill execute changes data", NULL);
    }
    return is_own_table(a) || is_on_own_table(action, b)
               ? deny_action(db, "changing the agent's own table", NULL)
               : SQLITE_OK;
}

static int on_progress(void *self)
{
    const struct db *db = self;
    return bt_step_cancelled(db->step);
}

/* Waits for another writer until busyMs, the deadline or a cancel. */
static int on_busy(void *self, int times)
{
    struct db *db = self;
    msec now = clock_mono_ms();

    if (times == 0) {
        db->busy_since = now;
    }
    if (bt_step_cancelled(db->step) || now - db->busy_since >= db->settings->busy_ms) {
        return 0;
    }
    (void)sqlite3_sleep(BUSY_SLEEP_MS);
    return 1;
}

void db_set_handlers(struct db *db)
{
    (void)sqlite3_set_authorizer(db->sql, authorize, db);
    sqlite3_progress_handler(db->sql, OPS_PER_PROGRESS_CALL, on_progress, db);
    (void)sqlite3_busy_handler(db->sql, on_busy, db);
}
