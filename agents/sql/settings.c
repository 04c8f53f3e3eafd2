#include "agents/sql/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "protocol/wire/doc.h"

enum { SETTINGS_BYTES = 64 * 1024, BUSY_DEFAULT_MS = 5000, BUSY_MAX_MS = 600000 };
#define DB_BYTES_DEFAULT (1024ull * 1024 * 1024)
#define DB_BYTES_MIN (64ull * 1024)

static enum bt_code read_bool(struct doc map, const char *member, bool *ret, struct bt_error *err)
{
    struct doc d = doc_get(map, str_from(member));

    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(d).kind != DOC_BOOL) {
        return err_set(err, BT_INVALID, "%s: expected true or false", member);
    }
    *ret = doc_head(d).b;
    return BT_OK;
}

static enum bt_code read_number(struct doc map, const char *member, uint64_t min, uint64_t max,
                                uint64_t *ret, struct bt_error *err)
{
    struct doc d = doc_get(map, str_from(member));

    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(d).kind != DOC_UINT || doc_head(d).u < min || doc_head(d).u > max) {
        return err_set(err, BT_INVALID, "%s: expected a number from %llu to %llu", member,
                       (unsigned long long)min, (unsigned long long)max);
    }
    *ret = doc_head(d).u;
    return BT_OK;
}

static enum bt_code check_names(struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"databaseDir", "readOnly",      "allowLoad",
                                        "maxRows",     "busyTimeoutMs", "maxDatabaseBytes"};
    struct doc_cursor c = doc_cursor(map);
    struct doc_head h;

    if (!doc_next(&c, &h) || h.kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "expected an object");
    }
    for (uint32_t i = 0; i < h.n; i++) {
        struct str key = doc_string(doc_skip(&c));
        size_t k = 0;
        (void)doc_skip(&c);
        while (k < sizeof known / sizeof known[0] && !str_is(key, known[k])) {
            k++;
        }
        if (k == sizeof known / sizeof known[0]) {
            return err_set(err, BT_INVALID, "unknown member '%.*s'", STR_ARG(key));
        }
    }
    return BT_OK;
}

static enum bt_code read_dir(struct doc map, struct sql_settings *s, struct bt_error *err)
{
    struct str given = doc_string(doc_get(map, STR_LIT("databaseDir")));
    char path[PATH_MAX];
    struct stat st;

    if (given.len == 0 || given.len >= sizeof path) {
        return err_set(err, BT_INVALID, "databaseDir: expected the path of a directory");
    }
    memcpy(path, given.ptr, given.len);
    path[given.len] = 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "databaseDir: making '%s'", path);
    }
    if (realpath(path, s->dir) == NULL || stat(s->dir, &st) != 0) {
        return err_errno(err, errno, "databaseDir: '%s'", path);
    }
    return S_ISDIR(st.st_mode)
               ? BT_OK
               : err_set(err, BT_INVALID, "databaseDir: '%s' is not a directory", path);
}

static enum bt_code read_all(struct doc map, struct sql_settings *s, struct bt_error *err)
{
    uint64_t rows = SQL_ROWS_DEFAULT;
    enum bt_code code = check_names(map, err);

    if (code == BT_OK) {
        code = read_bool(map, "readOnly", &s->read_only, err);
    }
    if (code == BT_OK) {
        code = read_bool(map, "allowLoad", &s->allow_load, err);
    }
    if (code == BT_OK) {
        code = read_number(map, "maxRows", 1, SQL_ROWS_MAX, &rows, err);
        s->max_rows = (uint32_t)rows;
    }
    if (code == BT_OK) {
        code = read_number(map, "busyTimeoutMs", 0, BUSY_MAX_MS, &s->busy_ms, err);
    }
    if (code == BT_OK) {
        code = read_number(map, "maxDatabaseBytes", DB_BYTES_MIN, INT64_MAX, &s->max_db_bytes, err);
    }
    return code == BT_OK ? read_dir(map, s, err) : code;
}

enum bt_code sql_settings_read(const char *json, struct sql_settings **ret, struct bt_error *err)
{
    struct sql_settings *s = calloc(1, sizeof *s);
    struct buf bytes;
    enum bt_code code;

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    s->read_only = true;
    s->allow_load = true;
    s->busy_ms = BUSY_DEFAULT_MS;
    s->max_db_bytes = DB_BYTES_DEFAULT;
    buf_init(&bytes, json_doc_capacity(SETTINGS_BYTES));
    code = json_to_doc(str_from(json), NULL, &bytes, err);
    if (code == BT_OK) {
        code = read_all(doc_from_buf(&bytes), s, err);
    }
    buf_done(&bytes);
    if (code != BT_OK) {
        free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}
