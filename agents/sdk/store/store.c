#include "agents/sdk/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agents/sdk/guard.h"
#include "protocol/base/clock.h"

enum {
    BUSY_MS = 10000,
    BUSY_PAUSE_NS = 5000000,
    PROGRESS_OPS = 2000,
    VALUE_MAX = 16 * 1024 * 1024,
    PAGE = 4096
};

/* ---- errors and interrupts ---- */

static int is_over(void *self)
{
    const struct store *s = self;

    return s->step != NULL && bt_step_cancelled(s->step);
}

static int wait_for_lock(void *self, int n)
{
    struct store *s = self;
    const struct timespec pause = {.tv_nsec = BUSY_PAUSE_NS};

    if (n == 0) {
        s->busy_since = clock_mono_ms();
    }
    if (is_over(s) || clock_mono_ms() - s->busy_since >= BUSY_MS) {
        return 0;
    }
    (void)nanosleep(&pause, NULL);
    return 1;
}

enum bt_code store_error(struct store *s, struct bt_error *err)
{
    switch (sqlite3_errcode(s->sql)) {
    case SQLITE_INTERRUPT:
        return bt_step_time_left_ms(s->step) == 0
                   ? err_set(err, BT_TIMEOUT, "the database was not done in time")
                   : err_set(err, BT_CANCELLED, "cancelled");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return is_over(s) != 0 ? err_set(err, BT_CANCELLED, "cancelled")
                               : err_set(err, BT_BUSY, "the database is locked by another writer");
    case SQLITE_FULL:
        return err_set(err, BT_LIMIT, "the database is full: it may have %llu bytes",
                       (unsigned long long)s->max_bytes);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return err_set(err, BT_INVALID, "the file is no database, or is damaged: %s",
                       sqlite3_errmsg(s->sql));
    case SQLITE_NOMEM:
        return err_set(err, BT_NOMEM, "out of memory for the database");
    default:
        return err_set(err, BT_IO, "SQLite: %s", sqlite3_errmsg(s->sql));
    }
}

/* ---- statements ---- */

enum bt_code store_run(struct store *s, const char *sql, struct bt_error *err)
{
    return sqlite3_exec(s->sql, sql, NULL, NULL, NULL) == SQLITE_OK ? BT_OK : store_error(s, err);
}

enum bt_code store_prepare(struct store *s, const char *sql, sqlite3_stmt **ret,
                           struct bt_error *err)
{
    *ret = NULL;
    return sqlite3_prepare_v2(s->sql, sql, -1, ret, NULL) == SQLITE_OK ? BT_OK
                                                                       : store_error(s, err);
}

enum bt_code store_next(struct store *s, sqlite3_stmt *st, bool *ret_row, struct bt_error *err)
{
    const int rc = sqlite3_step(st);

    *ret_row = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? BT_OK : store_error(s, err);
}

enum bt_code store_do(struct store *s, sqlite3_stmt *st, struct bt_error *err)
{
    bool row;
    const enum bt_code code = store_next(s, st, &row, err);

    (void)sqlite3_reset(st);
    return code;
}

enum bt_code store_begin(struct store *s, struct bt_error *err)
{
    const enum bt_code code = store_run(s, "BEGIN IMMEDIATE", err);

    s->in_work = code == BT_OK;
    return code;
}

enum bt_code store_commit(struct store *s, struct bt_error *err)
{
    const enum bt_code code = store_run(s, "COMMIT", err);

    s->in_work = code != BT_OK;
    return code;
}

void store_rollback(struct store *s)
{
    if (s->in_work) {
        sqlite3_progress_handler(s->sql, 0, NULL, NULL);
        (void)sqlite3_exec(s->sql, "ROLLBACK", NULL, NULL, NULL);
        sqlite3_progress_handler(s->sql, PROGRESS_OPS, is_over, s);
        s->in_work = false;
    }
}

enum bt_code store_number(struct store *s, const char *sql, int64_t *ret, struct bt_error *err)
{
    sqlite3_stmt *st;
    bool row = false;
    enum bt_code code = store_prepare(s, sql, &st, err);

    code = code == BT_OK ? store_next(s, st, &row, err) : code;
    *ret = row ? sqlite3_column_int64(st, 0) : 0;
    (void)sqlite3_finalize(st);
    return code;
}

void store_bind(sqlite3_stmt *st, int at, struct str text)
{
    (void)sqlite3_bind_text(st, at, text.ptr != NULL ? text.ptr : "", (int)text.len, SQLITE_STATIC);
}

struct str store_text(sqlite3_stmt *st, int column)
{
    const char *text = (const char *)sqlite3_column_text(st, column);

    return (struct str){text != NULL ? text : "", (size_t)sqlite3_column_bytes(st, column)};
}

/* ---- opening ---- */

static enum bt_code make_schema(struct store *s, const struct store_form *form,
                                struct bt_error *err)
{
    char mark[64];
    int64_t version = 0;
    enum bt_code code = store_begin(s, err);

    code = code == BT_OK ? store_number(s, "PRAGMA user_version", &version, err) : code;
    if (code == BT_OK && version == 0) {
        (void)snprintf(mark, sizeof mark, "PRAGMA user_version=%d", form->version);
        code = store_run(s, form->schema, err);
        code = code == BT_OK ? store_run(s, mark, err) : code;
    }
    if (code == BT_OK) {
        return store_commit(s, err);
    }
    store_rollback(s);
    return code;
}

static enum bt_code check_version(struct store *s, const struct store_form *form,
                                  struct bt_error *err)
{
    int64_t version = 0;
    int64_t tables = 0;
    enum bt_code code = store_number(s, "PRAGMA user_version", &version, err);

    code =
        code == BT_OK ? store_number(s, "SELECT count(*) FROM sqlite_schema", &tables, err) : code;
    if (code != BT_OK) {
        return code;
    }
    if (version == 0 && tables == 0) {
        return form->may_make ? make_schema(s, form, err)
                              : err_set(err, BT_NOT_FOUND, "the database is empty");
    }
    return version == form->version
               ? BT_OK
               : err_set(err, BT_INVALID,
                         "is a database of something else, or of another version (%lld, not %d); "
                         "name another file, or remove it",
                         (long long)version, form->version);
}

static enum bt_code configure(struct store *s, const struct store_form *form, struct bt_error *err)
{
    char text[96];

    (void)sqlite3_limit(s->sql, SQLITE_LIMIT_LENGTH, VALUE_MAX);
    (void)sqlite3_limit(s->sql, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_db_config(s->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(s->sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(s->sql, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_busy_handler(s->sql, wait_for_lock, s);
    sqlite3_progress_handler(s->sql, PROGRESS_OPS, is_over, s);
    (void)snprintf(text, sizeof text,
                   "PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON; PRAGMA max_page_count=%llu",
                   (unsigned long long)form->max_bytes / PAGE);
    return store_run(s, text, err);
}

enum bt_code store_open(struct store *s, const struct store_form *form, const struct bt_step *step,
                        struct bt_error *err)
{
    const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_PRIVATECACHE |
                      SQLITE_OPEN_READWRITE | (form->may_make ? SQLITE_OPEN_CREATE : 0);
    enum bt_code code;

    *s = (struct store){.step = step, .max_bytes = form->max_bytes};
    if (!form->may_make && access(form->path, F_OK) != 0 && errno == ENOENT) {
        return err_set(err, BT_NOT_FOUND, "database '%s': there is none yet", form->path);
    }
    if (sqlite3_open_v2(form->path, &s->sql, flags, NULL) != SQLITE_OK) {
        code = s->sql == NULL
                   ? err_set(err, BT_NOMEM, "out of memory for the database")
                   : err_set(err, BT_UNAUTHORIZED, "cannot be opened: %s", sqlite3_errmsg(s->sql));
        (void)err_wrap(err, "database '%s'", form->path);
        return code;
    }
    code = configure(s, form, err);
    code = code == BT_OK ? check_version(s, form, err) : code;
    return code == BT_OK ? BT_OK : err_wrap(err, "database '%s'", form->path);
}

void store_close(struct store *s)
{
    if (s->sql != NULL) {
        store_rollback(s);
        (void)sqlite3_close_v2(s->sql);
        s->sql = NULL;
    }
}

/* ---- the setting ---- */

enum bt_code store_check_path(const char *path, char *ret, struct bt_error *err)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];
    int fd;
    bool closed;

    if (path[0] == 0 || strlen(path) >= PATH_MAX / 2 || (slash != NULL && slash[1] == 0)) {
        return err_set(err, BT_INVALID, "database: expected the path of a file");
    }
    (void)snprintf(dir, sizeof dir, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
                   slash == NULL ? "." : path);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "database: making the directory '%s'", dir);
    }
    if (realpath(dir, ret) == NULL) {
        return err_errno(err, errno, "database: the directory '%s'", dir);
    }
    fd = open(ret, O_PATH | O_DIRECTORY | O_CLOEXEC);
    closed = fd >= 0 && guard_is_state_root(fd);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (closed) {
        return err_set(err, BT_INVALID,
                       "database: '%s' is the state directory of the supervisor; give a file "
                       "elsewhere",
                       ret);
    }
    (void)snprintf(ret + strlen(ret), PATH_MAX - strlen(ret), "/%.255s",
                   slash == NULL ? path : slash + 1);
    return BT_OK;
}
