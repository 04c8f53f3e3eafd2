#include "agents/sql/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/sdk/table.h"
#include "agents/sql/types.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { CELLS_MAX = LIMIT_NODES - 8192, COLUMN_NAME_MAX = 1024 };

void rows_done(struct sql_rows *r)
{
    buf_done(&r->columns);
    buf_done(&r->rows);
    free(r->seen);
    r->seen = NULL;
}

/* ---- columns ---- */

static bool name_taken(const struct sql_rows *r, struct str name)
{
    struct doc_cursor c = {.at = r->columns.at, .end = r->columns.at + r->columns.len};
    struct doc_head h;

    while (r->columns.len > 0 && doc_next(&c, &h)) {
        if (str_eq(h.str, name)) {
            return true;
        }
    }
    return false;
}

static void add_column(struct sql_rows *r, const char *name)
{
    struct buf text;
    size_t len;

    buf_init(&text, COLUMN_NAME_MAX * 4);
    r->replaced += buf_add_repaired(&text, (struct str){name, strnlen(name, COLUMN_NAME_MAX)});
    len = text.len;
    for (int i = 2; name_taken(r, buf_str(&text)); i++) {
        buf_truncate(&text, len);
        buf_printf(&text, "_%d", i);
    }
    doc_put_str(&r->columns, buf_str(&text));
    buf_fail(&r->columns, text.bad);
    r->columns_n++;
    buf_done(&text);
}

/* ---- cells ---- */

static enum cell_kind put_integer(struct buf *out, sqlite3_int64 v, bool boolean)
{
    char text[24];

    if (boolean && (v == 0 || v == 1)) {
        doc_put_bool(out, v == 1);
        return CELL_KIND_BOOLEAN;
    }
    if (v >= -CELL_SAFE_INTEGER && v <= CELL_SAFE_INTEGER) {
        doc_put_i64(out, v);
        return CELL_KIND_INTEGER;
    }
    (void)snprintf(text, sizeof text, "%lld", (long long)v);
    doc_put_cstr(out, text);
    return CELL_KIND_BIG;
}

static enum cell_kind put_real(struct buf *out, double v)
{
    if (isfinite(v)) {
        doc_put_f64(out, v);
        return CELL_KIND_REAL;
    }
    doc_put_cstr(out, v > 0 ? "Infinity" : "-Infinity");
    return CELL_KIND_TEXT;
}

static void put_text(struct sql_rows *r, struct str text)
{
    struct buf repaired;

    if (utf8_valid(text.ptr, text.len) &&
        (text.len == 0 || memchr(text.ptr, 0, text.len) == NULL)) {
        doc_put_str(&r->rows, text);
        return;
    }
    buf_init(&repaired, LIMIT_RESULT_BYTES);
    r->replaced += buf_add_repaired(&repaired, text);
    doc_put_str(&r->rows, buf_str(&repaired));
    buf_fail(&r->rows, repaired.bad);
    buf_done(&repaired);
}

static void put_blob(struct buf *out, const void *bytes, int n)
{
    static const uint8_t none[1] = {0};

    doc_put_map(out, 1);
    doc_put_cstr(out, "base64");
    doc_put_bin(out, bytes == NULL ? none : bytes, (size_t)n);
}

/* A text of a date is a date; a text of digits is a text, because the database says so. */
static enum cell_kind text_kind(struct str text)
{
    return cell_kind_of(text) == CELL_KIND_DATE ? CELL_KIND_DATE : CELL_KIND_TEXT;
}

static enum cell_kind put_cell(struct sql_rows *r, sqlite3_stmt *stmt, int i)
{
    struct str text;

    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        return put_integer(&r->rows, sqlite3_column_int64(stmt, i),
                           types_is_boolean(sqlite3_column_decltype(stmt, i)));
    case SQLITE_FLOAT:
        return put_real(&r->rows, sqlite3_column_double(stmt, i));
    case SQLITE_TEXT:
        text = str_from((const char *)sqlite3_column_text(stmt, i));
        text = (struct str){text.ptr == NULL ? "" : text.ptr,
                            text.ptr == NULL ? 0 : (size_t)sqlite3_column_bytes(stmt, i)};
        put_text(r, text);
        return text_kind(text);
    case SQLITE_BLOB:
        put_blob(&r->rows, sqlite3_column_blob(stmt, i), sqlite3_column_bytes(stmt, i));
        return CELL_KIND_TEXT;
    default:
        doc_put_nil(&r->rows);
        return CELL_KIND_NULL;
    }
}

/* ---- rows ---- */

static enum bt_code too_large(const struct sql_rows *r, struct bt_error *err)
{
    return r->rows.bad == BT_NOMEM
               ? err_set(err, BT_NOMEM, "out of memory for the result")
               : err_set(
                     err, BT_LIMIT,
                     "result_too_large: the first %u rows are more than a result holds (3 MiB, "
                     "%d values); use artifact: true, ask for fewer rows or columns, or aggregate",
                     r->n, CELLS_MAX);
}

void rows_put_row(struct sql_rows *r, sqlite3_stmt *stmt)
{
    doc_put_array(&r->rows, (uint32_t)r->columns_n);
    for (int i = 0; i < r->columns_n; i++) {
        cell_column_see_kind(&r->seen[i], put_cell(r, stmt, i));
    }
    r->n++;
    if (r->n <= ROWS_PREVIEW) {
        r->preview_len = r->rows.len;
    }
}

static enum bt_code add_row(struct sql_rows *r, sqlite3_stmt *stmt, struct bt_error *err)
{
    rows_put_row(r, stmt);
    return r->rows.bad != BT_OK || (uint64_t)r->n * ((uint32_t)r->columns_n + 1) > CELLS_MAX
               ? too_large(r, err)
               : BT_OK;
}

static enum bt_code over_cap(uint32_t max, struct bt_error *err)
{
    return err_set(err, BT_LIMIT,
                   "result_too_large: more than %u rows (the setting maxRows); use artifact: true, "
                   "ask for fewer, "
                   "aggregate, or set `limit` to get the first ones",
                   max);
}

enum bt_code rows_begin(sqlite3_stmt *stmt, struct sql_rows *ret, struct bt_error *err)
{
    *ret = (struct sql_rows){0};
    buf_init(&ret->columns, LIMIT_RESULT_BYTES);
    buf_init(&ret->rows, LIMIT_RESULT_BYTES);
    ret->seen = calloc((size_t)sqlite3_column_count(stmt) + 1, sizeof *ret->seen);
    if (ret->seen == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the result");
    }
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = sqlite3_column_name(stmt, i);
        add_column(ret, name == NULL ? "" : name);
    }
    return buf_check(&ret->columns, err) == BT_OK ? BT_OK : err_wrap(err, "the columns");
}

enum bt_code rows_collect(struct db *db, sqlite3_stmt *stmt, struct rows_cap cap, bool to_end,
                          struct sql_rows *ret, struct bt_error *err)
{
    enum bt_code code = rows_begin(stmt, ret, err);
    int rc = SQLITE_DONE;

    while (code == BT_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (ret->n < cap.max) {
            code = add_row(ret, stmt, err);
        } else if (!cap.asked) {
            return over_cap(cap.max, err);
        } else if (++ret->more >= ROWS_MORE_MAX && !to_end) {
            return BT_OK;
        }
    }
    if (code != BT_OK || rc == SQLITE_DONE) {
        return code;
    }
    return db_error(db, err);
}

void rows_put_types(const struct sql_rows *r, struct buf *out)
{
    struct doc_cursor c = {.at = r->columns.at, .end = r->columns.at + r->columns.len};
    struct doc_head name;

    doc_put_cstr(out, "types");
    doc_put_map(out, (uint32_t)r->columns_n);
    for (int i = 0; i < r->columns_n && doc_next(&c, &name); i++) {
        doc_put_str(out, name.str);
        doc_put_cstr(out, cell_type_name(cell_column_type(&r->seen[i])));
    }
}

void rows_put(const struct sql_rows *r, bool with_rows, struct buf *out)
{
    doc_put_cstr(out, "columns");
    doc_put_array(out, (uint32_t)r->columns_n);
    buf_add_str(out, buf_str(&r->columns));
    rows_put_types(r, out);
    if (with_rows) {
        doc_put_cstr(out, "rows");
        doc_put_array(out, r->n);
        buf_add_str(out, buf_str(&r->rows));
    }
    doc_put_cstr(out, "rowCount");
    doc_put_u64(out, r->n);
    doc_put_cstr(out, "truncated");
    doc_put_bool(out, r->more > 0);
    doc_put_cstr(out, "replacedBytes");
    doc_put_u64(out, r->replaced);
}

/* ---- as Markdown ---- */

static enum bt_code preview(const struct sql_rows *r, struct table *ret, struct bt_error *err)
{
    uint32_t n = r->n < ROWS_PREVIEW ? r->n : ROWS_PREVIEW;
    cJSON *tree = NULL;
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, (size_t)LIMIT_RESULT_BYTES * 2);
    doc_put_map(&doc, 2);
    doc_put_cstr(&doc, "columns");
    doc_put_array(&doc, (uint32_t)r->columns_n);
    buf_add_str(&doc, buf_str(&r->columns));
    doc_put_cstr(&doc, "rows");
    doc_put_array(&doc, n);
    buf_add(&doc, r->rows.at, r->preview_len);
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = doc_to_cjson(doc_from_buf(&doc), &tree, err);
    }
    if (code == BT_OK) {
        code = table_read(tree, ret, err);
    }
    cJSON_Delete(tree);
    buf_done(&doc);
    return code;
}

enum bt_code rows_markdown(const struct sql_rows *r, struct buf *out, struct bt_error *err)
{
    struct table t = {0};
    enum bt_code code = r->columns_n == 0 ? BT_OK : preview(r, &t, err);

    if (code != BT_OK) {
        return code;
    }
    if (r->n > 0) {
        table_to_markdown(&t, ROWS_PREVIEW, TABLE_SHOWN_BYTES, TABLE_REST_IN_DATA, out);
        buf_add_cstr(out, "\n");
    }
    buf_printf(out, "%u row%s%s", r->n, r->n == 1 ? "" : "s",
               r->n > ROWS_PREVIEW ? " (the first 1000 are shown; the data has all of them)" : "");
    if (r->more > 0) {
        buf_printf(out,
                   "\n[not whole: the first %u rows; %s%u more are there; raise `limit`, or ask "
                   "for fewer]",
                   r->n, r->more >= ROWS_MORE_MAX ? "at least " : "", r->more);
    }
    table_done(&t);
    return buf_check(out, err);
}
