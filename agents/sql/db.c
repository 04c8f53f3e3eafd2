#include "agents/sql/db.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/sdk/guard.h"
#include "agents/sql/temp_vfs.h"

enum {
    SQL_MAX = 1024 * 1024,
    COLUMNS_MAX = 256,
    DEPTH_MAX = 200, /* of an expression: a worker's stack is 1 MiB */
    PATTERN_MAX = 4096
};

/* ---- names ---- */

static bool name_ok(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= DB_NAME_MAX &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

/* The file may be another name of the supervisor's journal. */
static enum bt_code check_not_linked(const char *dir, const char *path, const char *name,
                                     struct bt_error *err)
{
    int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int own = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const bool linked = file >= 0 && own >= 0 && guard_is_linked(file, own);

    if (file >= 0) {
        (void)close(file);
    }
    if (own >= 0) {
        (void)close(own);
    }
    return linked ? err_set(err, BT_UNAUTHORIZED,
                            "database '%s': is a file of the supervisor's state directory", name)
                  : BT_OK;
}

/* *ret_there: a file of that name exists. */
static enum bt_code make_path(const struct sql_settings *s, const char *name, char *ret,
                              size_t size, bool *ret_there, struct bt_error *err)
{
    struct stat st;

    if (!name_ok(name)) {
        return err_set(err, BT_INVALID, "database '%.80s': expected 1 to %d of [A-Za-z0-9_-]", name,
                       DB_NAME_MAX);
    }
    if ((size_t)snprintf(ret, size, "%s/%s.db", s->dir, name) >= size) {
        return err_set(err, BT_LIMIT, "databaseDir: the path is too long");
    }
    *ret_there = lstat(ret, &st) == 0;
    if (*ret_there && !S_ISREG(st.st_mode)) {
        return err_set(err, BT_UNAUTHORIZED, "database '%s': is a symbolic link or not a file",
                       name);
    }
    return *ret_there ? check_not_linked(s->dir, ret, name, err) : BT_OK;
}

/* ---- errors ---- */

static enum bt_code interrupt_error(const struct db *db, struct bt_error *err)
{
    return bt_step_time_left_ms(db->step) == 0
               ? err_set(err, BT_TIMEOUT, "the statement was not done in time, and was stopped")
               : err_set(err, BT_CANCELLED, "cancelled; the statement was stopped");
}

enum bt_code db_error(struct db *db, struct bt_error *err)
{
    const char *says = sqlite3_errmsg(db->sql);
    int at = sqlite3_error_offset(db->sql);

    if (db->denied[0] != 0) { /* SQLite reports a denied function as a plain error */
        return err_set(err, BT_UNAUTHORIZED, "not allowed here: %s", db->denied);
    }
    switch (sqlite3_errcode(db->sql)) {
    case SQLITE_INTERRUPT:
        return interrupt_error(db, err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return bt_step_cancelled(db->step)
                   ? interrupt_error(db, err)
                   : err_set(err, BT_BUSY, "the database is locked by another writer");
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return err_set(err, BT_UNAUTHORIZED, "not allowed here: %s", says);
    case SQLITE_NOMEM:
        return err_set(err, BT_LIMIT, "the statement needs more memory than the agent has");
    case SQLITE_FULL:
        if (temp_vfs_was_full()) {
            return err_set(err, BT_LIMIT,
                           "sorting or grouping needs more than %llu bytes of temporary files, all "
                           "running statements together (the setting maxDatabaseBytes); select "
                           "fewer rows or columns, or raise it",
                           (unsigned long long)db->settings->max_db_bytes);
        }
        return err_set(err, BT_LIMIT, "the database is full: maxDatabaseBytes is %llu",
                       (unsigned long long)db->settings->max_db_bytes);
    case SQLITE_TOOBIG:
        return err_set(err, BT_LIMIT, "%s (a value has at most %d bytes)", says, DB_VALUE_MAX);
    case SQLITE_CANTOPEN:
        return err_set(err, BT_UNAUTHORIZED, "the database cannot be opened: %s", says);
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        return at >= 0 ? err_set(err, BT_INVALID, "SQL: %s (at byte %d)", says, at)
                       : err_set(err, BT_INVALID, "SQL: %s", says);
    default:
        return err_set(err, BT_IO, "SQLite: %s", says);
    }
}

enum bt_code db_bind_error(struct db *db, int rc, struct bt_error *err)
{
    return rc == SQLITE_NOMEM ? err_set(err, BT_NOMEM, "out of memory for a value")
           : rc == SQLITE_TOOBIG
               ? err_set(err, BT_LIMIT, "a value has at most %d bytes", DB_VALUE_MAX)
               : db_error(db, err);
}

/* ---- the agent's own statements ---- */

enum bt_code db_prepare_own(struct db *db, const char *sql, sqlite3_stmt **ret,
                            struct bt_error *err)
{
    int rc;

    db->own_statement = true;
    rc = sqlite3_prepare_v2(db->sql, sql, -1, ret, NULL);
    db->own_statement = false;
    return rc == SQLITE_OK ? BT_OK : db_error(db, err);
}

enum bt_code db_run_own(struct db *db, const char *sql, struct bt_error *err)
{
    int rc;

    db->own_statement = true;
    rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
    db->own_statement = false;
    return rc == SQLITE_OK ? BT_OK : db_error(db, err);
}

enum bt_code db_begin(struct db *db, struct bt_error *err)
{
    enum bt_code code = db_run_own(db, "BEGIN IMMEDIATE", err);

    db->in_work = code == BT_OK;
    return code;
}

enum bt_code db_commit(struct db *db, struct bt_error *err)
{
    enum bt_code code = db_run_own(db, "COMMIT", err);

    db->in_work = code != BT_OK;
    return code;
}

void db_enable_triggers(struct db *db, bool on)
{
    (void)sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, on ? 1 : 0, NULL);
}

/* ---- opening ---- */

static void set_limits(sqlite3 *sql)
{
    static const struct {
        int what;
        int value;
    } limits[] = {{SQLITE_LIMIT_LENGTH, DB_VALUE_MAX},
                  {SQLITE_LIMIT_SQL_LENGTH, SQL_MAX},
                  {SQLITE_LIMIT_COLUMN, COLUMNS_MAX},
                  {SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MAX},
                  {SQLITE_LIMIT_COMPOUND_SELECT, 100},
                  {SQLITE_LIMIT_ATTACHED, 0},
                  {SQLITE_LIMIT_WORKER_THREADS, 0},
                  {SQLITE_LIMIT_TRIGGER_DEPTH, 50},
                  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX}};

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        (void)sqlite3_limit(sql, limits[i].what, limits[i].value);
    }
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    /* Double quotes always name a column (SQLITE_DBCONFIG_DQS): a misspelt name must not become a
     * text. */
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
}

static enum bt_code configure(struct db *db, bool is_new, struct bt_error *err)
{
    char pages[64];
    enum bt_code code = BT_OK;

    set_limits(db->sql);
    db_enable_triggers(db, false);
    db_set_handlers(db);
    (void)snprintf(pages, sizeof pages, "PRAGMA max_page_count=%llu",
                   (unsigned long long)db->settings->max_db_bytes / 4096);
    if (db->mode == DB_WRITE && is_new) {
        /* WAL, so that readers and the writer do not block each other. A database that exists is
         * not changed. */
        code = db_run_own(db, "PRAGMA page_size=4096; PRAGMA journal_mode=WAL", err);
    }
    if (code == BT_OK && db->mode == DB_WRITE) {
        code = db_run_own(db, pages, err);
    }
    /* Sorting and grouping a large table spills into unlinked files of databaseDir. */
    return code == BT_OK ? db_run_own(db, "PRAGMA temp_store=FILE", err) : code;
}

enum bt_code db_open(struct db *db, const struct sql_settings *settings, const struct bt_step *step,
                     const char *name, enum db_mode mode, struct bt_error *err)
{
    char path[PATH_MAX + DB_NAME_MAX + 8];
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_PRIVATECACHE;
    bool there = false;
    enum bt_code code = make_path(settings, name, path, sizeof path, &there, err);

    *db = (struct db){.step = step, .settings = settings, .mode = mode};
    if (code != BT_OK) {
        return code;
    }
    if (!there && mode == DB_READ) {
        if (strcmp(name, "main") != 0) {
            return err_set(err, BT_NOT_FOUND,
                           "database '%s': there is none; the skill load makes one", name);
        }
        (void)snprintf(path, sizeof path, ":memory:");
    }
    flags |= mode == DB_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
             : there          ? SQLITE_OPEN_READONLY
                              : SQLITE_OPEN_READWRITE;
    const char *vfs = temp_vfs_use(settings->max_db_bytes);
    if (vfs == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for SQLite");
    }
    if (sqlite3_open_v2(path, &db->sql, flags, vfs) != SQLITE_OK) {
        return db->sql == NULL ? err_set(err, BT_NOMEM, "out of memory for a database")
                               : db_error(db, err);
    }
    code = configure(db, !there, err);
    return code == BT_OK ? BT_OK : err_wrap(err, "database '%s'", name);
}

void db_close(struct db *db)
{
    struct bt_error ignored;

    if (db->sql != NULL && db->in_work) {
        sqlite3_progress_handler(db->sql, 0, NULL, NULL);
        (void)!db_run_own(db, "ROLLBACK", &ignored);
    }
    (void)sqlite3_close_v2(db->sql);
    db->sql = NULL;
}
