#include "agents/sql/load_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/sdk/step.h"
#include "agents/sql/load_table.h"
#include "agents/sql/source.h"
#include "agents/sql/types.h"

enum { LOOK_EVERY = 256 };

/* ---- which file ---- */

/* The artifact of the newest dependency, when the step has no rows of its own. */
static const char *artifact_of(struct bt_step *step)
{
    const char *uri = bt_step_param_string(step, "artifact", NULL);
    const size_t n = bt_step_dependency_count(step);

    if (uri != NULL || n == 0 || bt_step_has_param(step, "rows") ||
        bt_step_has_param(step, "csv")) {
        return uri;
    }
    return bt_step_dependency_artifact(step, n - 1);
}

static bool is_ndjson(const char *name)
{
    const size_t n = strlen(name);

    return n > 7 && strcmp(name + n - 7, ".ndjson") == 0;
}

static enum bt_code open_below_roots(const struct sql_settings *s, const char *path,
                                     struct load_file *ret, struct bt_error *err)
{
    struct stat st;

    if (s->roots.n == 0) {
        return err_set(err, BT_UNAUTHORIZED,
                       "file: the settings of this agent name no directories that it may read "
                       "(roots); pass the artifact of a step before");
    }
    ret->ndjson = is_ndjson(path);
    return confine_open(&s->roots, str_from(path), CONFINE_FILE, &ret->fd, &st, err);
}

enum bt_code load_file_open(struct bt_step *step, const struct sql_settings *s,
                            struct load_file *ret, struct bt_error *err)
{
    const char *path = bt_step_param_string(step, "file", NULL);
    const char *uri = path != NULL ? NULL : artifact_of(step);
    enum bt_code code;

    *ret = (struct load_file){.fd = -1};
    if (path != NULL) {
        return open_below_roots(s, path, ret, err);
    }
    if (uri == NULL) {
        return BT_OK;
    }
    code = bt_artifact_open(step, uri, &ret->fd, NULL, err);
    ret->ndjson =
        code == BT_OK && strcmp(bt_artifact_media_type(step, uri), "application/x-ndjson") == 0;
    return code;
}

/* ---- types ---- */

struct rows_of_file {
    struct source source;
    struct cell_column seen[CSV_FIELDS_MAX];
    enum cell_type types[CSV_FIELDS_MAX];
    bool declared[CSV_FIELDS_MAX];
    struct str names[CSV_FIELDS_MAX];
    char delimiter;
    uint64_t loaded;
};

static enum bt_code check_stop(struct bt_step *step, uint64_t row, struct bt_error *err)
{
    if (row % LOOK_EVERY != 0 || !bt_step_cancelled(step)) {
        return BT_OK;
    }
    return err_set(err, bt_step_time_left_ms(step) == 0 ? BT_TIMEOUT : BT_CANCELLED,
                   "stopped at row %llu; nothing was loaded", (unsigned long long)row);
}

/* The first reading: the types of the columns. Rows as NDJSON have them on their last line. */
static enum bt_code see_all(struct rows_of_file *r, struct bt_step *step, struct bt_error *err)
{
    struct source *s = &r->source;
    bool more = true;
    enum bt_code code = BT_OK;

    while (code == BT_OK) {
        code = source_next(s, &more, err);
        if (code != BT_OK || !more) {
            break;
        }
        for (uint32_t i = 0; i < s->n && s->form == SOURCE_CSV; i++) {
            cell_column_see(&r->seen[i], s->cells[i].text);
        }
        code = check_stop(step, s->row, err);
    }
    for (uint32_t i = 0; code == BT_OK && i < s->n; i++) {
        r->types[i] = s->typed ? s->types[i] : cell_column_type(&r->seen[i]);
        r->declared[i] = s->typed;
    }
    return code;
}

static struct doc param(const struct bt_step *step, const char *name)
{
    return step->req.parameters.ptr == NULL ? (struct doc){NULL, 0}
                                            : doc_get(step->req.parameters, str_from(name));
}

/* The parameter `columns` renames the columns, in order; `types` sets types by the new names. */
static enum bt_code apply_wishes(struct rows_of_file *r, const struct bt_step *step,
                                 struct bt_error *err)
{
    const struct doc names = param(step, "columns");
    const struct doc types = param(step, "types");
    const uint32_t n = r->source.n;
    struct doc_cursor c;
    struct doc_head head = {.n = 0};

    if (names.ptr != NULL && (doc_head(names).kind != DOC_ARRAY || doc_head(names).n != n)) {
        return err_set(err, BT_INVALID, "columns: expected a list of %u names, one per column", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        r->names[i] = names.ptr == NULL ? r->source.columns[i] : doc_string(doc_at(names, i));
        if (r->names[i].len == 0) {
            return err_set(err, BT_INVALID, "columns[%u]: expected a name", i);
        }
    }
    c = doc_cursor(types);
    if (types.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_MAP) {
        return types.ptr == NULL ? BT_OK : err_set(err, BT_INVALID, "types: expected an object");
    }
    for (uint32_t k = 0; k < head.n; k++) {
        const struct str name = doc_string(doc_skip(&c));
        const struct str type = doc_string(doc_skip(&c));
        uint32_t i = 0;
        while (i < n && !str_eq(r->names[i], name)) {
            i++;
        }
        if (i == n || !cell_type_from_name(type, &r->types[i])) {
            return err_set(err, BT_INVALID,
                           "types.%.*s: expected a column and text, integer, real, boolean or date",
                           name.len > 80 ? 80 : (int)name.len, name.ptr);
        }
        r->declared[i] = true;
    }
    return BT_OK;
}

/* ---- values ---- */

static enum bt_code wrong_type(const struct rows_of_file *r, uint32_t i, struct bt_error *err)
{
    return err_set(err, BT_INVALID, "row %llu, column '%.*s': expected %s",
                   (unsigned long long)r->source.row, STR_ARG(r->names[i]),
                   cell_type_expects(r->types[i]));
}

static int bind_text(sqlite3_stmt *stmt, int at, enum cell_type type, bool declared,
                     struct str text, bool *ret_fits)
{
    struct cell cell;

    *ret_fits = cell_read(type, declared, text, &cell);
    return *ret_fits ? types_bind_value(stmt, at, &cell) : SQLITE_OK;
}

/* A value of JSON; lists and objects are JSON text. */
static int bind_value(struct rows_of_file *r, sqlite3_stmt *stmt, uint32_t i, bool *ret_fits)
{
    const struct doc_head head = doc_head(r->source.cells[i].value);
    const enum cell_type type = r->types[i];
    struct cell cell = {.type = type, .integer = head.i, .real = head.f, .boolean = head.b};
    struct buf *text = &r->source.repaired;

    *ret_fits = true;
    if (head.kind == DOC_NIL) {
        return sqlite3_bind_null(stmt, (int)i + 1);
    }
    if (head.kind == DOC_STR) {
        return bind_text(stmt, (int)i + 1, type, true, head.str, ret_fits);
    }
    if (head.kind == DOC_BOOL && type == CELL_BOOLEAN) {
        return types_bind_value(stmt, (int)i + 1, &cell);
    }
    if (type == CELL_REAL && head.kind != DOC_FLOAT) {
        cell.real = head.kind == DOC_UINT ? (double)head.u : (double)head.i;
    }
    if (type == CELL_INTEGER && head.kind == DOC_UINT) {
        cell.integer = (int64_t)head.u; /* INT64_MAX at most, as is checked next */
    }
    if ((type == CELL_REAL &&
         (head.kind == DOC_FLOAT || head.kind == DOC_INT || head.kind == DOC_UINT)) ||
        (type == CELL_INTEGER &&
         (head.kind == DOC_INT || (head.kind == DOC_UINT && head.u <= INT64_MAX)))) {
        return types_bind_value(stmt, (int)i + 1, &cell);
    }
    if (type != CELL_TEXT) {
        *ret_fits = false;
        return SQLITE_OK;
    }
    buf_clear(text);
    if (doc_to_text(r->source.cells[i].value, text, NULL) != BT_OK) {
        return SQLITE_NOMEM;
    }
    cell.text = buf_str(text);
    return types_bind_value(stmt, (int)i + 1, &cell);
}

static enum bt_code insert_row(struct rows_of_file *r, struct db *db, sqlite3_stmt *stmt,
                               struct bt_error *err)
{
    int rc = sqlite3_reset(stmt);
    bool fits = true;

    for (uint32_t i = 0; i < r->source.n && rc == SQLITE_OK; i++) {
        rc = r->source.form == SOURCE_CSV ? bind_text(stmt, (int)i + 1, r->types[i], r->declared[i],
                                                      r->source.cells[i].text, &fits)
                                          : bind_value(r, stmt, i, &fits);
        if (!fits) {
            return wrong_type(r, i, err);
        }
    }
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_DONE) {
        return BT_OK;
    }
    (void)(rc == SQLITE_OK ? db_error(db, err) : db_bind_error(db, rc, err));
    return err_wrap(err, "row %llu", (unsigned long long)r->source.row);
}

static enum bt_code insert_all(struct rows_of_file *r, struct db *db, struct bt_step *step,
                               const struct load_table *t, struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    enum bt_code code = load_table_prepare(db, t, &stmt, err);

    while (code == BT_OK) {
        code = source_next(&r->source, &more, err);
        if (code != BT_OK || !more) {
            break;
        }
        code = insert_row(r, db, stmt, err);
        r->loaded += code == BT_OK;
        if (code == BT_OK) {
            code = check_stop(step, r->source.row, err);
        }
    }
    (void)sqlite3_finalize(stmt);
    return code;
}

/* ---- both readings ---- */

static enum bt_code load_all(struct rows_of_file *r, struct db *db, struct bt_step *step,
                             const char *table, const struct load_file *f, struct buf *json,
                             struct buf *text, struct bt_error *err)
{
    struct load_table t = {.name = table,
                           .replace = bt_step_param_bool(step, "replace", false),
                           .columns = r->names,
                           .types = r->types};
    enum bt_code code =
        csv_delimiter(str_from(bt_step_param_string(step, "delimiter", NULL)), &r->delimiter, err);

    if (code == BT_OK) {
        code = source_open(&r->source, f->fd, f->ndjson ? SOURCE_NDJSON : SOURCE_CSV, r->delimiter,
                           err);
    }
    if (code == BT_OK && r->source.form == SOURCE_CSV && r->source.n == 1 &&
        !bt_step_has_param(step, "delimiter")) {
        code = csv_check_only_name(r->source.columns[0], err);
    }
    if (code == BT_OK) {
        code = see_all(r, step, err);
    }
    if (code == BT_OK) {
        code = source_again(&r->source, r->delimiter, err);
    }
    if (code == BT_OK) {
        code = apply_wishes(r, step, err);
    }
    t.n = r->source.n;
    if (code == BT_OK) {
        code = load_table_create(db, &t, err);
    }
    if (code == BT_OK) {
        code = insert_all(r, db, step, &t, err);
    }
    return code == BT_OK ? load_table_reply(&t, r->loaded, r->source.replaced, json, text, err)
                         : code;
}

enum bt_code load_file_rows(struct db *db, struct bt_step *step, const char *table,
                            const struct load_file *f, struct buf *json, struct buf *text,
                            struct bt_error *err)
{
    struct rows_of_file *r = calloc(1, sizeof *r);
    enum bt_code code = r == NULL ? err_set(err, BT_NOMEM, "out of memory for a file")
                                  : load_all(r, db, step, table, f, json, text, err);

    if (r != NULL) {
        source_done(&r->source);
    }
    free(r);
    return code;
}
