/* schema: lists the databases, or the tables and columns of one. */
#include <dirent.h>

#include "agents/sdk/whole.h"
#include "agents/sql/db.h"
#include "agents/sql/sql.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { DATABASES_MAX = 10000 };

static const char list_columns[] =
    "SELECT t.name, t.type, c.name, c.type, c.pk FROM pragma_table_list AS t, "
    "pragma_table_xinfo(t.name) AS c WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite\\_%' "
    "ESCAPE '\\' AND t.name NOT LIKE '\\_baton\\_%' ESCAPE '\\' ORDER BY t.name, c.cid";

struct listing {
    struct buf tables;
    uint32_t tables_n;
    struct buf columns; /* of the current table */
    uint32_t columns_n;
    struct buf head; /* its name and type */
    struct buf name;
    struct buf *text;
    uint32_t databases_n;
};

static void put_member(struct buf *out, const char *key, struct str value)
{
    struct buf repaired;

    buf_init(&repaired, 64 * 1024);
    (void)buf_add_repaired(&repaired, value);
    doc_put_cstr(out, key);
    doc_put_str(out, buf_str(&repaired));
    buf_fail(out, repaired.bad);
    buf_done(&repaired);
}

static struct str column(sqlite3_stmt *stmt, int i)
{
    const char *text = (const char *)sqlite3_column_text(stmt, i);
    return (struct str){text == NULL ? "" : text, (size_t)sqlite3_column_bytes(stmt, i)};
}

static void end_table(struct listing *l)
{
    if (l->columns_n == 0) {
        return;
    }
    doc_put_map(&l->tables, 3);
    buf_add_str(&l->tables, buf_str(&l->head));
    doc_put_cstr(&l->tables, "columns");
    doc_put_array(&l->tables, l->columns_n);
    buf_add_str(&l->tables, buf_str(&l->columns));
    buf_fail(&l->tables, l->head.bad);
    buf_fail(&l->tables, l->columns.bad);
    buf_fail(&l->tables, l->name.bad);
    l->tables_n++;
    l->columns_n = 0;
    buf_clear(&l->columns);
    buf_add_cstr(l->text, ")\n");
}

static void add_column(struct listing *l, sqlite3_stmt *stmt)
{
    struct str table = column(stmt, 0);

    if (l->columns_n == 0 || !str_eq(buf_str(&l->name), table)) {
        end_table(l);
        buf_clear(&l->name);
        buf_add_str(&l->name, table);
        buf_clear(&l->head);
        put_member(&l->head, "name", table);
        put_member(&l->head, "type", column(stmt, 1));
        buf_add_cstr(l->text, "- ");
        (void)buf_add_repaired(l->text, table);
        buf_add_cstr(l->text, " (");
    } else {
        buf_add_cstr(l->text, ", ");
    }
    doc_put_map(&l->columns, 3);
    put_member(&l->columns, "name", column(stmt, 2));
    put_member(&l->columns, "type", column(stmt, 3));
    doc_put_cstr(&l->columns, "primaryKey");
    doc_put_bool(&l->columns, sqlite3_column_int(stmt, 4) > 0);
    l->columns_n++;
    (void)buf_add_repaired(l->text, column(stmt, 2));
    buf_add_byte(l->text, ' ');
    (void)buf_add_repaired(l->text, column(stmt, 3));
}

static enum bt_code list_tables(struct db *db, struct listing *l, struct bt_error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum bt_code code = db_prepare_own(db, list_columns, &stmt, err);
    int rc = SQLITE_DONE;

    while (code == BT_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        add_column(l, stmt);
    }
    if (code == BT_OK && rc != SQLITE_DONE) {
        code = db_error(db, err);
    }
    end_table(l);
    (void)sqlite3_finalize(stmt);
    return code;
}

static uint32_t list_databases(const struct sql_settings *s, struct buf *out)
{
    DIR *dir = opendir(s->dir);
    uint32_t n = 0;

    for (const struct dirent *e; dir != NULL && n < DATABASES_MAX && (e = readdir(dir)) != NULL;) {
        size_t len = strlen(e->d_name);
        if (len > 3 && len <= DB_NAME_MAX + 3 && strcmp(e->d_name + len - 3, ".db") == 0) {
            struct buf name;
            buf_init(&name, 1024);
            (void)buf_add_repaired(&name, (struct str){e->d_name, len - 3});
            doc_put_str(out, buf_str(&name));
            buf_fail(out, name.bad);
            buf_done(&name);
            n++;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

static enum bt_code make_reply(const struct sql_settings *s, const char *database,
                               struct listing *l, struct buf *json, struct bt_error *err)
{
    struct buf names;
    struct buf doc;
    uint32_t n;
    enum bt_code code;

    buf_init(&names, DATABASES_MAX * (DB_NAME_MAX * 4));
    buf_init(&doc, (size_t)LIMIT_RESULT_BYTES * 2);
    n = list_databases(s, &names);
    l->databases_n = n;
    doc_put_map(&doc, 3);
    doc_put_cstr(&doc, "database");
    doc_put_cstr(&doc, database);
    doc_put_cstr(&doc, "tables");
    doc_put_array(&doc, l->tables_n);
    buf_add_str(&doc, buf_str(&l->tables));
    doc_put_cstr(&doc, "databases");
    doc_put_array(&doc, n);
    buf_add_str(&doc, buf_str(&names));
    buf_fail(&doc, names.bad);
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, json, err);
    }
    buf_done(&names);
    buf_done(&doc);
    return code;
}

void sql_schema(struct bt_step *step, void *self)
{
    const char *database = bt_step_param_string(step, "database", "main");
    struct listing l = {0};
    struct db db = {0};
    struct buf json;
    struct buf text;
    struct bt_error err;
    enum bt_code code = db_open(&db, self, step, database, DB_READ, &err);

    buf_init(&json, (size_t)LIMIT_STEP_BYTES * 2);
    buf_init(&text, LIMIT_RESULT_BYTES);
    buf_init(&l.tables, LIMIT_RESULT_BYTES);
    buf_init(&l.columns, LIMIT_RESULT_BYTES);
    buf_init(&l.head, 256 * 1024);
    buf_init(&l.name, 256 * 1024);
    l.text = &text;
    if (code == BT_OK) {
        code = list_tables(&db, &l, &err);
    }
    if (code == BT_OK && l.tables_n == 0) {
        buf_printf(&text, "The database %s has no tables.", database);
    }
    if (code == BT_OK) {
        code = buf_check(&l.tables, &err);
    }
    if (code == BT_OK) {
        code = buf_check(&text, &err);
    }
    if (code == BT_OK) {
        code = make_reply(self, database, &l, &json, &err);
    }
    if (code == BT_OK && l.databases_n == DATABASES_MAX) {
        whole_mark(step, &text, "there may be more than %d databases; list their directory",
                   DATABASES_MAX);
    }
    sql_answer(step, code, &err, &json, &text);
    buf_done(&l.tables);
    buf_done(&l.columns);
    buf_done(&l.head);
    buf_done(&l.name);
    buf_done(&json);
    buf_done(&text);
    db_close(&db);
}
