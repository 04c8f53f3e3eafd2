#include "agents/sdk/step.h"
#include "agents/sql/idempotency.h"
#include "agents/sql/query_file.h"
#include "agents/sql/rows.h"
#include "agents/sql/sql.h"
#include "agents/sql/statement.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

void sql_answer(struct bt_step *step, enum bt_code code, const struct bt_error *err,
                const struct buf *json, const struct buf *text)
{
    if (code != BT_OK) {
        bt_step_fail_error(step, err);
        return;
    }
    bt_step_reply_json(step, (const char *)json->at, json->len);
    if (step->reply.outcome == REPLY_COMPLETED) {
        struct doc cut = doc_get(doc_from_buf(&step->reply.data), STR_LIT("truncated"));
        bt_step_reply_bytes(step, (const char *)text->at, text->len);
        if (cut.ptr != NULL && doc_head(cut).kind == DOC_BOOL && doc_head(cut).b) {
            bt_step_reply_truncated(step);
        }
    }
}

/* Rows of an artifact have no limit but the step's own; 0 = none. */
static uint64_t file_cap(struct bt_step *step)
{
    const char *name = bt_step_has_param(step, "limit") ? "limit" : "maxRows";
    const double asked = bt_step_param_number(step, name, 0.0);

    return asked >= 1.0 && asked < 9e15 ? (uint64_t)asked : 0;
}

/* How many rows a step gets: its limit, or all that fit under the setting. */
static struct rows_cap row_cap(struct bt_step *step, const struct sql_settings *s)
{
    const char *name = bt_step_has_param(step, "limit") ? "limit" : "maxRows";
    double asked = bt_step_param_number(step, name, (double)s->max_rows);
    bool below = asked >= 0.0 && asked <= (double)s->max_rows;

    return (struct rows_cap){.max = below ? (uint32_t)asked : s->max_rows,
                             .asked = below && bt_step_has_param(step, name)};
}

static struct doc params_of(const struct bt_step *step)
{
    return step->req.parameters.ptr == NULL ? (struct doc){0}
                                            : doc_get(step->req.parameters, STR_LIT("params"));
}

/* Prepares, binds and steps the statement. The caller calls rows_done. */
static enum bt_code run(struct db *db, struct bt_step *step, enum query_form form,
                        struct sql_rows *ret, struct bt_error *err)
{
    const char *sql = bt_step_param_string(step, "sql", NULL);
    sqlite3_stmt *stmt = NULL;
    enum bt_code code;

    if (sql == NULL) {
        return err_set(err, BT_INVALID, "parameters.sql: expected one SQL statement");
    }
    db_enable_triggers(db, true);
    code = statement_prepare(db, sql, &stmt, err);
    if (code == BT_OK) {
        code = statement_bind(db, stmt, params_of(step), err);
    }
    if (code == BT_OK && form != QUERY_MESSAGE) {
        code = query_to_file(db, step, stmt, file_cap(step), form, ret, err);
    } else if (code == BT_OK) {
        code = rows_collect(db, stmt, row_cap(step, db->settings), db->mode == DB_WRITE, ret, err);
    }
    (void)sqlite3_finalize(stmt);
    db_enable_triggers(db, false);
    return code;
}

/* ---- query ---- */

static enum bt_code query_reply(const struct sql_rows *rows, enum query_form form, struct buf *json,
                                struct buf *text, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, (size_t)LIMIT_RESULT_BYTES * 2);
    doc_put_map(&doc, form == QUERY_MESSAGE ? ROWS_MEMBERS : ROWS_MEMBERS - 1);
    rows_put(rows, form == QUERY_MESSAGE, &doc);
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, json, err);
    }
    if (code == BT_OK) {
        code = rows_markdown(rows, text, err);
    }
    buf_done(&doc);
    return code;
}

void sql_query(struct bt_step *step, void *self)
{
    struct sql_rows rows = {0};
    struct db db = {0};
    struct buf json;
    struct buf text;
    struct bt_error err;
    enum query_form form = QUERY_MESSAGE;
    enum bt_code code =
        db_open(&db, self, step, bt_step_param_string(step, "database", "main"), DB_READ, &err);

    buf_init(&json, (size_t)LIMIT_STEP_BYTES * 2);
    buf_init(&text, LIMIT_RESULT_BYTES);
    if (code == BT_OK) {
        code = query_form_of(step, &form, &err);
    }
    if (code == BT_OK) {
        code = run(&db, step, form, &rows, &err);
    }
    if (code == BT_OK) {
        code = query_reply(&rows, form, &json, &text, &err);
    }
    sql_answer(step, code, &err, &json, &text);
    rows_done(&rows);
    buf_done(&json);
    buf_done(&text);
    db_close(&db);
}

/* ---- execute ---- */

static enum bt_code execute_reply(const struct sql_rows *rows, sqlite3_int64 changes,
                                  struct buf *json, struct buf *text, struct bt_error *err)
{
    bool returns = rows->columns_n > 0;
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, (size_t)LIMIT_RESULT_BYTES * 2);
    doc_put_map(&doc, returns ? ROWS_MEMBERS + 1 : 1);
    doc_put_cstr(&doc, "changes");
    doc_put_i64(&doc, changes);
    if (returns) {
        rows_put(rows, true, &doc);
    }
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, json, err);
    }
    buf_printf(text, "%lld row%s changed", (long long)changes, changes == 1 ? "" : "s");
    if (code == BT_OK && returns) {
        buf_add_cstr(text, "\n\n");
        code = rows_markdown(rows, text, err);
    }
    buf_done(&doc);
    return code == BT_OK ? buf_check(text, err) : code;
}

/* How many tables have names of the agent's own. SQLite does not ask about a name that a table is
 * given by ALTER TABLE. */
static enum bt_code count_own(struct db *db, sqlite3_int64 *ret, struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum bt_code code = db_prepare_own(db,
                                       "SELECT count(*) FROM sqlite_schema WHERE type = 'table' "
                                       "AND name LIKE '\\_baton\\_%' ESCAPE '\\'",
                                       &stmt, err);

    if (code == BT_OK && sqlite3_step(stmt) != SQLITE_ROW) {
        code = db_error(db, err);
    }
    *ret = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return code;
}

static enum bt_code run_change(struct db *db, struct bt_step *step, struct sql_rows *rows,
                               struct bt_error *err)
{
    sqlite3_int64 before;
    sqlite3_int64 after = 0;
    enum bt_code code = count_own(db, &before, err);

    if (code == BT_OK) {
        code = run(db, step, QUERY_MESSAGE, rows, err);
    }
    if (code == BT_OK) {
        code = count_own(db, &after, err);
    }
    return code == BT_OK && after > before
               ? err_set(err, BT_UNAUTHORIZED,
                         "not allowed here: a table whose name begins with " DB_OWN_PREFIX)
               : code;
}

static enum bt_code execute(struct db *db, struct bt_step *step, struct buf *json, struct buf *text,
                            struct bt_error *err)
{
    struct sql_rows rows = {0};
    sqlite3_int64 before = 0;
    bool found = false;
    enum bt_code code = db_begin(db, err);

    if (code == BT_OK) {
        code = idempotency_find(db, json, text, &found, err);
    }
    if (code == BT_OK && !found) {
        before = sqlite3_total_changes64(db->sql);
        code = run_change(db, step, &rows, err);
        if (code == BT_OK) {
            code = execute_reply(&rows, sqlite3_total_changes64(db->sql) - before, json, text, err);
        }
        if (code == BT_OK) {
            code = idempotency_record(db, buf_str(json), buf_str(text), err);
        }
    }
    rows_done(&rows);
    return code == BT_OK ? db_commit(db, err) : code;
}

void sql_execute(struct bt_step *step, void *self)
{
    const struct sql_settings *s = self;
    struct db db = {0};
    struct buf json;
    struct buf text;
    struct bt_error err;
    enum bt_code code =
        s->read_only
            ? err_set(&err, BT_UNAUTHORIZED, "execute: the setting readOnly forbids it")
            : db_open(&db, s, step, bt_step_param_string(step, "database", "main"), DB_WRITE, &err);

    buf_init(&json, (size_t)LIMIT_STEP_BYTES * 2);
    buf_init(&text, LIMIT_RESULT_BYTES);
    if (code == BT_OK) {
        code = execute(&db, step, &json, &text, &err);
    }
    sql_answer(step, code, &err, &json, &text);
    buf_done(&json);
    buf_done(&text);
    db_close(&db);
}
