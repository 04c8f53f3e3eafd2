#include "agents/sql/query_file.h"

#include <string.h>

#include "agents/sdk/step.h"
#include "agents/sdk/table.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { LINE_BYTES = 16 * 1024 * 1024 }; /* a row: SQLite's own limit here */

enum bt_code query_form_of(struct bt_step *step, enum query_form *ret, struct bt_error *err)
{
    const char *name = bt_step_param_string(step, "artifact", NULL);

    *ret = bt_step_param_bool(step, "artifact", false) ? QUERY_NDJSON : QUERY_MESSAGE;
    if (name == NULL) {
        return BT_OK;
    }
    *ret = strcmp(name, "csv") == 0 ? QUERY_CSV : QUERY_NDJSON;
    return *ret == QUERY_CSV || strcmp(name, "ndjson") == 0
               ? BT_OK
               : err_set(err, BT_INVALID, "artifact: expected true, \"ndjson\" or \"csv\"");
}

/* ---- lines ---- */

static enum bt_code csv_line(struct doc row, struct buf *line, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(row);
    struct doc_head head = {.n = 0};
    struct buf text;
    enum bt_code code = BT_OK;

    buf_init(&text, LINE_BYTES);
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct doc cell = doc_skip(&c);
        buf_clear(&text);
        if (doc_head(cell).kind != DOC_NIL) {
            code = doc_to_text(cell, &text, err);
        }
        buf_add_cstr(line, i > 0 ? "," : "");
        table_csv_field(text.len > 0 ? buf_str(&text) : STR_LIT(""), ',', line);
    }
    buf_done(&text);
    if (line->len == 0) {
        buf_add_cstr(line, "\"\""); /* a line without any character is no row */
    }
    buf_add_byte(line, '\n');
    return code == BT_OK ? buf_check(line, err) : code;
}

static enum bt_code write_line(struct bt_artifact *to, enum query_form form, struct doc value,
                               struct buf *line, struct bt_error *err)
{
    enum bt_code code;

    buf_clear(line);
    if (form == QUERY_CSV) {
        code = csv_line(value, line, err);
    } else {
        code = doc_to_json(value, false, line, err);
        buf_add_byte(line, '\n');
        code = code == BT_OK ? buf_check(line, err) : code;
    }
    return code == BT_OK ? bt_artifact_write(to, line->at, line->len, err) : code;
}

/* NDJSON: {"columns": [names]}; CSV: the names. */
static enum bt_code write_head(struct bt_artifact *to, enum query_form form,
                               const struct sql_rows *r, struct buf *line, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, LIMIT_STEP_BYTES);
    if (form == QUERY_NDJSON) {
        doc_put_map(&doc, 1);
        doc_put_cstr(&doc, "columns");
    }
    doc_put_array(&doc, (uint32_t)r->columns_n);
    buf_add_str(&doc, buf_str(&r->columns));
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = write_line(to, form, doc_from_buf(&doc), line, err);
    }
    buf_done(&doc);
    return code;
}

/* NDJSON: {"types": {column: type}, "rowCount": n}, which shows that the file is whole. */
static enum bt_code write_end(struct bt_artifact *to, enum query_form form,
                              const struct sql_rows *r, struct buf *line, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    if (form != QUERY_NDJSON) {
        return BT_OK;
    }
    buf_init(&doc, LIMIT_STEP_BYTES);
    doc_put_map(&doc, 2);
    rows_put_types(r, &doc);
    doc_put_cstr(&doc, "rowCount");
    doc_put_u64(&doc, r->n);
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = write_line(to, form, doc_from_buf(&doc), line, err);
    }
    buf_done(&doc);
    return code;
}

/* ---- rows ---- */

static enum bt_code write_rows(struct db *db, sqlite3_stmt *stmt, uint64_t max,
                               enum query_form form, struct bt_artifact *to, struct sql_rows *r,
                               struct buf *line, struct bt_error *err)
{
    enum bt_code code = write_head(to, form, r, line, err);
    int rc = SQLITE_DONE;

    while (code == BT_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const size_t before = r->rows.len;
        if (max > 0 && r->n == max) {
            r->more = 1;
            return write_end(to, form, r, line, err);
        }
        rows_put_row(r, stmt);
        code = buf_check(&r->rows, err);
        if (code == BT_OK) {
            const struct doc row = {r->rows.at + before, r->rows.len - before};
            code = write_line(to, form, row, line, err);
        }
        if (r->n > ROWS_PREVIEW) {
            buf_truncate(&r->rows, before);
        }
    }
    if (code == BT_OK && rc != SQLITE_DONE) {
        code = db_error(db, err);
    }
    return code == BT_OK ? write_end(to, form, r, line, err) : code;
}

enum bt_code query_to_file(struct db *db, struct bt_step *step, sqlite3_stmt *stmt, uint64_t max,
                           enum query_form form, struct sql_rows *ret, struct bt_error *err)
{
    struct bt_artifact *to = NULL;
    struct buf line;
    enum bt_code code = rows_begin(stmt, ret, err);

    buf_init(&line, (size_t)LINE_BYTES * 6);
    if (code == BT_OK) {
        code = form == QUERY_CSV
                   ? bt_artifact_create(step, "rows.csv", "text/csv", &to, err)
                   : bt_artifact_create(step, "rows.ndjson", "application/x-ndjson", &to, err);
    }
    if (code == BT_OK) {
        code = write_rows(db, stmt, max, form, to, ret, &line, err);
        if (code == BT_OK) {
            code = bt_artifact_commit(to, err);
        } else {
            bt_artifact_abort(to);
        }
    }
    buf_done(&line);
    return code;
}
