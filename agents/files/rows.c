#include "agents/files/rows.h"

#include "agents/files/files.h"

static bool find_column(const struct rows *r, struct str name, uint32_t *ret)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (str_eq(r->columns[i], name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static enum bt_code no_column(const struct rows *r, const char *where, struct str name,
                              struct bt_error *err)
{
    struct buf names;
    enum bt_code code;

    buf_init(&names, 1024);
    for (uint32_t i = 0; i < r->n; i++) {
        buf_add_cstr(&names, i > 0 ? ", " : "");
        buf_add_str(&names, r->columns[i]);
    }
    code = err_set(err, BT_INVALID, "%s: there is no column '%.*s'; there are: %s", where,
                   name.len > 80 ? 80 : (int)name.len, name.ptr == NULL ? "" : name.ptr,
                   buf_cstr(&names));
    buf_done(&names);
    return code;
}

static enum bt_code read_columns(struct rows *r, struct doc columns, struct bt_error *err)
{
    uint32_t n = columns.ptr == NULL ? 0 : doc_head(columns).n;

    if (n == 0) {
        r->pick_n = r->n;
        for (uint32_t i = 0; i < r->n; i++) {
            r->pick[i] = i;
        }
        return BT_OK;
    }
    if (doc_head(columns).kind != DOC_ARRAY || n > ROWS_COLUMNS_MAX) {
        return err_set(err, BT_INVALID, "columns: expected a list of at most %d names",
                       ROWS_COLUMNS_MAX);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct str name = doc_string(doc_at(columns, i));
        if (!find_column(r, name, &r->pick[i])) {
            return no_column(r, "columns", name, err);
        }
    }
    r->pick_n = n;
    return BT_OK;
}

static enum bt_code read_where(struct rows *r, struct doc where, struct bt_error *err)
{
    struct doc_cursor c;
    struct doc_head head;

    if (where.ptr == NULL) {
        return BT_OK;
    }
    c = doc_cursor(where);
    if (!doc_next(&c, &head) || head.kind != DOC_MAP || head.n > ROWS_WHERE_MAX) {
        return err_set(err, BT_INVALID,
                       "where: expected an object of at most %d columns, such as {\"action\": "
                       "\"install\"}",
                       ROWS_WHERE_MAX);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        struct str name = doc_string(doc_skip(&c));
        struct rows_filter *f = &r->where[i];
        f->value = doc_skip(&c);
        if (!find_column(r, name, &f->column)) {
            return no_column(r, "where", name, err);
        }
        if (doc_head(f->value).kind != DOC_STR && doc_head(f->value).kind != DOC_ARRAY) {
            return err_set(err, BT_INVALID, "where.%.*s: expected a text or a list of texts",
                           name.len > 80 ? 80 : (int)name.len, name.ptr);
        }
    }
    r->where_n = head.n;
    return BT_OK;
}

enum bt_code rows_init(struct rows *r, struct doc columns, struct doc where, uint32_t limit,
                       struct bt_error *err)
{
    enum bt_code code = read_columns(r, columns, err);

    buf_init(&r->out, LIMIT_RESULT_BYTES);
    r->limit = limit;
    return code == BT_OK ? read_where(r, where, err) : code;
}

void rows_done(struct rows *r)
{
    buf_done(&r->out);
}

static bool passes(const struct rows_filter *f, struct str cell)
{
    struct doc_cursor c = doc_cursor(f->value);
    struct doc_head head;

    if (!doc_next(&c, &head)) {
        return false;
    }
    if (head.kind == DOC_STR) {
        return str_eq(head.str, cell);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        struct str one = doc_string(doc_skip(&c));
        if (one.ptr != NULL && str_eq(one, cell)) {
            return true;
        }
    }
    return false;
}

enum bt_code rows_add(struct rows *r, const struct str *cells, struct bt_error *err)
{
    for (uint32_t i = 0; i < r->where_n; i++) {
        if (!passes(&r->where[i], cells[r->where[i].column])) {
            r->filtered++;
            return BT_OK;
        }
    }
    if (r->limit > 0 && r->count == r->limit) {
        r->full = true;
        return BT_OK;
    }
    if ((uint64_t)(r->count + 1) * (r->pick_n + 1) > ROWS_VALUES_MAX) {
        return err_set(err, BT_LIMIT,
                       "a result holds %u of these rows and there are more; narrow them by where, "
                       "by columns, or give a limit",
                       r->count);
    }
    doc_put_array(&r->out, r->pick_n);
    for (uint32_t i = 0; i < r->pick_n; i++) {
        struct str cell = cells[r->pick[i]];
        if (cell.ptr == NULL) {
            doc_put_nil(&r->out);
        } else {
            doc_put_str(&r->out, cell);
        }
    }
    r->count++;
    if (r->out.bad == BT_LIMIT) {
        return err_set(err, BT_LIMIT,
                       "the rows have more than 3 MiB; narrow them by where, by columns, or give a "
                       "limit");
    }
    return buf_check(&r->out, err);
}

void rows_put(const struct rows *r, struct buf *out)
{
    doc_put_map(out, 6);
    doc_put_cstr(out, "columns");
    doc_put_array(out, r->pick_n);
    for (uint32_t i = 0; i < r->pick_n; i++) {
        doc_put_str(out, r->columns[r->pick[i]]);
    }
    files_put_count(out, "rowCount", r->count);
    files_put_count(out, "skipped", r->skipped);
    files_put_count(out, "filtered", r->filtered);
    files_put_bool(out, "truncated", r->full);
    doc_put_cstr(out, "rows");
    doc_put_array(out, r->count);
    buf_add_str(out, buf_str(&r->out));
}
