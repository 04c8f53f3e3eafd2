#include "agents/sql/load_table.h"

#include <strings.h>

#include "agents/sql/types.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/doc.h"

enum { STATEMENT_MAX = 256 * 1024, TABLE_NAME_MAX = 64 };

enum bt_code load_table_check_name(const char *name, struct bt_error *err)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= TABLE_NAME_MAX && strncasecmp(name, "sqlite_", 7) != 0 &&
              strncasecmp(name, DB_OWN_PREFIX, sizeof DB_OWN_PREFIX - 1) != 0;

    for (size_t i = 0; i < n && ok; i++) {
        ok = (unsigned char)name[i] >= 0x20 && name[i] != 0x7F;
    }
    return ok ? BT_OK
              : err_set(err, BT_INVALID,
                        "table '%.80s': expected 1 to %d bytes without control characters, not "
                        "beginning with sqlite_ or %s",
                        name, TABLE_NAME_MAX, DB_OWN_PREFIX);
}

/* ---- statements: names are quoted, values are bound ---- */

static void add_name(struct buf *sql, struct str name)
{
    buf_add_byte(sql, '"');
    for (size_t i = 0; i < name.len; i++) {
        buf_add_byte(sql, (uint8_t)name.ptr[i]);
        if (name.ptr[i] == '"') {
            buf_add_byte(sql, '"');
        }
    }
    buf_add_byte(sql, '"');
}

static enum bt_code run_sql(struct db *db, struct buf *sql, struct bt_error *err)
{
    return buf_check(sql, err) == BT_OK ? db_run_own(db, buf_cstr(sql), err) : err->code;
}

/* SQLite ignores the case of ASCII letters. */
static enum bt_code check_columns(const struct load_table *t, struct bt_error *err)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const struct str a = t->columns[i];
        for (uint32_t k = 0; k < i; k++) {
            const struct str b = t->columns[k];
            if (a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0) {
                return err_set(err, BT_INVALID,
                               "columns %u and %u: '%.*s' and '%.*s' are one name in SQL; name the "
                               "columns by the parameter `columns`",
                               k + 1, i + 1, (int)utf8_cut(b.ptr, b.len, 80), b.ptr,
                               (int)utf8_cut(a.ptr, a.len, 80), a.ptr);
            }
        }
    }
    return BT_OK;
}

enum bt_code load_table_create(struct db *db, const struct load_table *t, struct bt_error *err)
{
    struct buf sql;
    enum bt_code code = check_columns(t, err);

    if (code != BT_OK) {
        return code;
    }
    buf_init(&sql, STATEMENT_MAX);
    if (t->replace) {
        buf_add_cstr(&sql, "DROP TABLE IF EXISTS ");
        add_name(&sql, str_from(t->name));
        code = run_sql(db, &sql, err);
    }
    buf_clear(&sql);
    buf_add_cstr(&sql, "CREATE TABLE ");
    add_name(&sql, str_from(t->name));
    for (uint32_t i = 0; i < t->n; i++) {
        buf_add_cstr(&sql, i == 0 ? "(" : ", ");
        add_name(&sql, t->columns[i]);
        buf_printf(&sql, " %s", types_sql_name(t->types[i]));
    }
    buf_add_cstr(&sql, ")");
    if (code == BT_OK) {
        code = run_sql(db, &sql, err);
    }
    buf_done(&sql);
    return code == BT_INVALID && strstr(err->msg, "already exists") != NULL
               ? err_wrap(err, "set replace: true to put the new rows in its place")
               : code;
}

enum bt_code load_table_prepare(struct db *db, const struct load_table *t, sqlite3_stmt **ret,
                                struct bt_error *err)
{
    struct buf sql;
    enum bt_code code;

    buf_init(&sql, STATEMENT_MAX);
    buf_add_cstr(&sql, "INSERT INTO ");
    add_name(&sql, str_from(t->name));
    for (uint32_t i = 0; i < t->n; i++) {
        buf_add_cstr(&sql, i == 0 ? " VALUES (?" : ", ?");
    }
    buf_add_cstr(&sql, ")");
    code = buf_check(&sql, err);
    if (code == BT_OK) {
        code = db_prepare_own(db, buf_cstr(&sql), ret, err);
    }
    buf_done(&sql);
    return code;
}

/* ---- the reply ---- */

enum bt_code load_table_reply(const struct load_table *t, uint64_t rows, uint64_t replaced,
                              struct buf *json, struct buf *text, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, STATEMENT_MAX * 4);
    doc_put_map(&doc, 4);
    doc_put_cstr(&doc, "replacedBytes");
    doc_put_u64(&doc, replaced);
    doc_put_cstr(&doc, "table");
    doc_put_cstr(&doc, t->name);
    doc_put_cstr(&doc, "rows");
    doc_put_u64(&doc, rows);
    doc_put_cstr(&doc, "columns");
    doc_put_array(&doc, t->n);
    buf_printf(text, "Loaded %llu row%s into the table %s:", (unsigned long long)rows,
               rows == 1 ? "" : "s", t->name);
    for (uint32_t i = 0; i < t->n; i++) {
        const char *type = cell_type_name(t->types[i]);
        doc_put_map(&doc, 2);
        doc_put_cstr(&doc, "name");
        doc_put_str(&doc, t->columns[i]);
        doc_put_cstr(&doc, "type");
        doc_put_cstr(&doc, type);
        buf_printf(text, "%s %.*s %s", i == 0 ? "" : ",", STR_ARG(t->columns[i]), type);
    }
    if (replaced > 0) {
        buf_printf(text, "; %llu bytes were not UTF-8 and became U+FFFD",
                   (unsigned long long)replaced);
    }
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, json, err);
    }
    buf_done(&doc);
    return code == BT_OK ? buf_check(text, err) : code;
}
