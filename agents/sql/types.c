#include "agents/sql/types.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#define SAFE_INTEGER 9007199254740992.0 /* 2^53: doubles hold every whole number up to it */

enum kind { KIND_NULL, KIND_INTEGER, KIND_BIG, KIND_REAL, KIND_TEXT };

const char *types_name(enum sql_type type)
{
    static const char *const names[] = {
        [SQL_INTEGER] = "INTEGER", [SQL_REAL] = "REAL", [SQL_TEXT] = "TEXT"};
    _Static_assert(sizeof names / sizeof names[0] == SQL_TYPE_COUNT, "a name per type");
    return names[type];
}

static size_t digits(const char *p)
{
    return strspn(p, "0123456789");
}

/* -?(0|[1-9][0-9]*): *ret_end points after it. */
static bool scan_whole(const char *p, const char **ret_end)
{
    size_t n;

    p += *p == '-';
    n = digits(p);
    *ret_end = p + n;
    return n > 0 && (n == 1 || p[0] != '0');
}

static bool scan_real(const char *p)
{
    if (!scan_whole(p, &p)) {
        return false;
    }
    if (*p == '.') {
        if (digits(++p) == 0) {
            return false;
        }
        p += digits(p);
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        if (digits(p) == 0) {
            return false;
        }
        p += digits(p);
    }
    return *p == 0;
}

static bool read_int64(const char *text, sqlite3_int64 *ret)
{
    const char *end = NULL;

    if (!scan_whole(text, &end) || *end != 0 || strcmp(text, "-0") == 0) {
        return false;
    }
    errno = 0;
    *ret = strtoll(text, NULL, 10);
    return errno == 0;
}

static enum kind kind_of_text(const char *text, bool from_csv)
{
    sqlite3_int64 whole = 0;

    if (from_csv && text[0] == 0) {
        return KIND_NULL;
    }
    if (read_int64(text, &whole)) {
        bool big = fabs((double)whole) >= SAFE_INTEGER;
        return big ? KIND_BIG : from_csv ? KIND_INTEGER : KIND_TEXT;
    }
    /* A whole number of more than 64 bits stays a text. */
    return from_csv && strpbrk(text, ".eE") != NULL && scan_real(text) &&
                   isfinite(strtod(text, NULL))
               ? KIND_REAL
               : KIND_TEXT;
}

static enum kind kind_of(const cJSON *cell, bool from_csv)
{
    if (cJSON_IsNull(cell)) {
        return KIND_NULL;
    }
    if (cJSON_IsBool(cell)) {
        return KIND_INTEGER;
    }
    if (cJSON_IsNumber(cell)) {
        double v = cell->valuedouble;
        return floor(v) == v && fabs(v) <= SAFE_INTEGER ? KIND_INTEGER : KIND_REAL;
    }
    return cJSON_IsString(cell) ? kind_of_text(cell->valuestring, from_csv) : KIND_TEXT;
}

static enum sql_type type_of(const unsigned *seen)
{
    bool whole = seen[KIND_INTEGER] > 0 || seen[KIND_BIG] > 0;

    if (seen[KIND_TEXT] > 0 || (seen[KIND_REAL] > 0 && seen[KIND_BIG] > 0)) {
        return SQL_TEXT;
    }
    return seen[KIND_REAL] > 0 ? SQL_REAL : whole ? SQL_INTEGER : SQL_TEXT;
}

void types_infer(const struct table *t, bool from_csv, enum sql_type *ret)
{
    unsigned seen[TABLE_COLUMNS_MAX][KIND_TEXT + 1] = {0};

    for (int row = 0; row < t->rows_n; row++) {
        const cJSON *cell = t->rows[row]->child;
        for (int i = 0; i < t->n && cell != NULL; i++, cell = cell->next) {
            seen[i][kind_of(cell, from_csv)]++;
        }
    }
    for (int i = 0; i < t->n; i++) {
        ret[i] = type_of(seen[i]);
    }
}

static int bind_text(sqlite3_stmt *stmt, int ix, const cJSON *cell)
{
    char *json;
    int rc;

    if (cJSON_IsString(cell)) {
        return sqlite3_bind_text(stmt, ix, cell->valuestring, -1, SQLITE_TRANSIENT);
    }
    json = cJSON_PrintUnformatted(cell);
    if (json == NULL) {
        return SQLITE_NOMEM;
    }
    rc = sqlite3_bind_text(stmt, ix, json, -1, SQLITE_TRANSIENT);
    cJSON_free(json);
    return rc;
}

int types_bind(sqlite3_stmt *stmt, int ix, const cJSON *cell, enum sql_type type, bool from_csv)
{
    sqlite3_int64 whole = 0;

    if (cell == NULL || kind_of(cell, from_csv) == KIND_NULL) {
        return sqlite3_bind_null(stmt, ix);
    }
    if (type == SQL_TEXT) {
        return bind_text(stmt, ix, cell);
    }
    if (cJSON_IsBool(cell)) {
        return sqlite3_bind_int(stmt, ix, cJSON_IsTrue(cell));
    }
    if (type == SQL_REAL) {
        return sqlite3_bind_double(
            stmt, ix, cJSON_IsString(cell) ? strtod(cell->valuestring, NULL) : cell->valuedouble);
    }
    if (cJSON_IsString(cell)) {
        (void)read_int64(cell->valuestring, &whole);
    } else {
        whole = (sqlite3_int64)cell->valuedouble;
    }
    return sqlite3_bind_int64(stmt, ix, whole);
}
