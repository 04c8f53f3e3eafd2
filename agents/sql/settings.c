#include "agents/sql/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/sdk/guard.h"
#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"
#include "protocol/wire/doc.h"

enum { SETTINGS_BYTES = 64 * 1024, BUSY_DEFAULT_MS = 5000, BUSY_MAX_MS = 600000 };
#define DB_BYTES_DEFAULT (1024ull * 1024 * 1024)
#define DB_BYTES_MIN (64ull * 1024)

static enum bt_code check_names(struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"databaseDir",   "readOnly",         "allowLoad", "maxRows",
                                        "busyTimeoutMs", "maxDatabaseBytes", "roots"};

    return settings_check_names(map, known, sizeof known / sizeof known[0], err);
}

/* A directory of its own below the state directory is the usual place. */
static enum bt_code check_closed(const char *dir, struct bt_error *err)
{
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const bool closed = fd >= 0 && guard_is_state_root(fd);

    if (fd >= 0) {
        (void)close(fd);
    }
    return closed ? err_set(err, BT_INVALID,
                            "databaseDir: '%s' is the state directory of the supervisor; give a "
                            "directory of its own, such as 'sql' below it",
                            dir)
                  : BT_OK;
}

static enum bt_code read_dir(struct doc map, struct sql_settings *s, struct bt_error *err)
{
    struct str given = doc_string(doc_get(map, STR_LIT("databaseDir")));
    char path[PATH_MAX];
    struct stat st;

    if (given.ptr == NULL && doc_get(map, STR_LIT("databaseDir")).ptr == NULL) {
        return err_set(err, BT_INVALID,
                       "databaseDir: is missing; give the directory of the databases, such as "
                       "\"${CONFIG_DIR}/db\"");
    }
    if (given.len == 0 || given.len >= sizeof path) {
        return err_set(err, BT_INVALID,
                       "databaseDir: expected the path of a directory, of 1 to %zu bytes",
                       sizeof path - 1);
    }
    memcpy(path, given.ptr, given.len);
    path[given.len] = 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "databaseDir: making '%s'", path);
    }
    if (realpath(path, s->dir) == NULL || stat(s->dir, &st) != 0) {
        return err_errno(err, errno, "databaseDir: '%s'", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, BT_INVALID, "databaseDir: '%s' is not a directory", path);
    }
    return check_closed(s->dir, err);
}

static enum bt_code read_all(void *self, struct doc map, struct bt_error *err)
{
    struct sql_settings *s = self;
    uint64_t rows = SQL_ROWS_DEFAULT;
    enum bt_code code = check_names(map, err);

    if (code == BT_OK) {
        code = field_bool(map, "readOnly", &s->read_only, err);
    }
    if (code == BT_OK) {
        code = field_bool(map, "allowLoad", &s->allow_load, err);
    }
    if (code == BT_OK) {
        code = field_number(map, "maxRows", 1, SQL_ROWS_MAX, &rows, err);
        s->max_rows = (uint32_t)rows;
    }
    if (code == BT_OK) {
        code = field_number(map, "busyTimeoutMs", 0, BUSY_MAX_MS, &s->busy_ms, err);
    }
    if (code == BT_OK) {
        code =
            field_number(map, "maxDatabaseBytes", DB_BYTES_MIN, INT64_MAX, &s->max_db_bytes, err);
    }
    if (code == BT_OK) {
        code = confine_add_all(&s->roots, doc_get(map, STR_LIT("roots")), "roots", err);
    }
    return code == BT_OK ? read_dir(map, s, err) : code;
}

void sql_settings_free(struct sql_settings *s)
{
    if (s != NULL) {
        confine_done(&s->roots);
        free(s);
    }
}

enum bt_code sql_settings_read(const char *json, struct sql_settings **ret, struct bt_error *err)
{
    struct sql_settings *s = calloc(1, sizeof *s);
    enum bt_code code;

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    s->read_only = true;
    s->allow_load = true;
    s->busy_ms = BUSY_DEFAULT_MS;
    s->max_db_bytes = DB_BYTES_DEFAULT;
    code = settings_parse(json, SETTINGS_BYTES, read_all, s, err);
    if (code != BT_OK) {
        sql_settings_free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}
