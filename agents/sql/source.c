#include "agents/sql/source.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/base/utf8.h"
#include "protocol/limits.h"

enum { BLOCK = 256 * 1024, NAMES_BYTES = 1024 * 1024 };

static enum bt_code fill(struct source *s, struct bt_error *err)
{
    ssize_t n;

    do {
        n = read(s->fd, s->block, BLOCK);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_errno(err, errno, "reading the file");
    }
    s->left = (struct str){(const char *)s->block, (size_t)n};
    s->eof = n == 0;
    return BT_OK;
}

/* ---- CSV ---- */

static enum bt_code next_record(struct source *s, bool *ret_more, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *ret_more = false;
    while (code == BT_OK && !*ret_more) {
        if (s->left.len == 0 && !s->eof) {
            code = fill(s, err);
        }
        if (code == BT_OK) {
            code = csv_next(&s->csv, &s->left, s->eof, ret_more, err);
        }
        if (s->eof && s->left.len == 0) {
            break;
        }
    }
    return code;
}

/* The text of a field; bytes that are not UTF-8 become U+FFFD. */
static struct str clean(struct source *s, struct str text)
{
    if (utf8_valid(text.ptr, text.len)) {
        return text;
    }
    if (s->repaired.len == 0) {
        /* Room for all of the record, so that no earlier field moves. */
        (void)buf_reserve(&s->repaired, s->csv.text.len * 3 + 1);
    }
    const size_t at = s->repaired.len;
    s->replaced += buf_add_repaired(&s->repaired, text);
    return (struct str){(const char *)s->repaired.at + at, s->repaired.len - at};
}

static enum bt_code add_name(struct source *s, struct str name, struct bt_error *err)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (str_eq(s->columns[i], name)) {
            return err_set(err, BT_INVALID, "the column '%.*s' is there twice",
                           name.len > 80 ? 80 : (int)name.len, name.ptr);
        }
    }
    if (name.len == 0) {
        return err_set(err, BT_INVALID, "column %u has no name; give it one", s->n + 1);
    }
    if (s->n == CSV_FIELDS_MAX) {
        return err_set(err, BT_INVALID, "more than %d columns", CSV_FIELDS_MAX);
    }
    s->columns[s->n] = arena_str(&s->names, name);
    return s->columns[s->n++].ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for columns")
                                          : BT_OK;
}

static enum bt_code csv_header(struct source *s, struct bt_error *err)
{
    bool more = false;
    enum bt_code code = next_record(s, &more, err);

    if (code == BT_OK && !more) {
        code = err_set(err, BT_INVALID, "CSV: there is no header line");
    }
    buf_clear(&s->repaired);
    for (uint32_t i = 0; code == BT_OK && i < s->csv.n; i++) {
        code = add_name(s, clean(s, csv_cell(&s->csv, i)), err);
    }
    return code;
}

static enum bt_code csv_row(struct source *s, bool *ret_more, struct bt_error *err)
{
    enum bt_code code = next_record(s, ret_more, err);

    if (code != BT_OK || !*ret_more) {
        return code;
    }
    if (s->csv.n > s->n) {
        return err_set(err, BT_INVALID, "CSV line %llu: %u fields under a header of %u",
                       (unsigned long long)s->csv.line - 1, s->csv.n, s->n);
    }
    buf_clear(&s->repaired);
    for (uint32_t i = 0; i < s->n; i++) {
        s->cells[i].text = i < s->csv.n ? clean(s, csv_cell(&s->csv, i)) : (struct str){NULL, 0};
    }
    return buf_check(&s->repaired, err);
}

/* ---- rows as NDJSON ---- */

/* A line without its end, as a value in s->doc. */
static enum bt_code next_line(struct source *s, bool *ret_more, struct bt_error *err)
{
    const struct json_limits limits = {
        .bytes = CSV_RECORD_MAX, .depth = LIMIT_DEPTH, .nodes = LIMIT_NODES};
    enum bt_code code = BT_OK;
    bool whole = false;

    buf_clear(&s->line);
    while (code == BT_OK && !whole) {
        const char *end;
        if (s->left.len == 0) {
            code = fill(s, err);
            if (code != BT_OK || s->eof) {
                break;
            }
        }
        end = memchr(s->left.ptr, '\n', s->left.len);
        const size_t n = end == NULL ? s->left.len : (size_t)(end - s->left.ptr);
        buf_add(&s->line, s->left.ptr, n);
        whole = end != NULL;
        s->left.ptr += n + whole;
        s->left.len -= n + whole;
        code = buf_check(&s->line, err);
    }
    *ret_more = whole || s->line.len > 0;
    if (code == BT_OK && *ret_more) {
        buf_clear(&s->doc);
        code = json_to_doc(buf_str(&s->line), &limits, &s->doc, err);
    }
    return code;
}

static enum bt_code ndjson_header(struct source *s, struct bt_error *err)
{
    bool more = false;
    struct doc columns = {NULL, 0};
    enum bt_code code = next_line(s, &more, err);

    if (code == BT_OK && more) {
        columns = doc_get(doc_from_buf(&s->doc), STR_LIT("columns"));
    }
    if (code == BT_OK && (doc_head(columns).kind != DOC_ARRAY || doc_head(columns).n == 0)) {
        code = err_set(err, BT_INVALID, "the first line: expected {\"columns\": [names]}");
    }
    for (uint32_t i = 0; code == BT_OK && i < doc_head(columns).n; i++) {
        code = add_name(s, doc_string(doc_at(columns, i)), err);
    }
    return code == BT_OK ? BT_OK : err_wrap(err, "rows as NDJSON");
}

/* The last line: {"types": {column: type}, "rowCount": n}; rows may not say how many they are. */
static enum bt_code ndjson_end(struct source *s, struct doc end, struct bt_error *err)
{
    const struct doc types = doc_get(end, STR_LIT("types"));
    const struct doc rows = doc_get(end, STR_LIT("rowCount"));
    bool more = false;
    enum bt_code code;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct doc type = doc_get(types, s->columns[i]);
        if (type.ptr == NULL || !cell_type_from_name(doc_string(type), &s->types[i])) {
            return err_set(err, BT_INVALID, "rows as NDJSON: the last line has no type of '%.*s'",
                           STR_ARG(s->columns[i]));
        }
    }
    if (rows.ptr != NULL && (doc_head(rows).kind != DOC_UINT || doc_head(rows).u != s->row)) {
        return err_set(
            err, BT_INVALID,
            "rows as NDJSON: there are %llu rows, and the last line says another rowCount",
            (unsigned long long)s->row);
    }
    do { /* empty lines may follow */
        code = next_line(s, &more, err);
    } while (more && s->line.len == 0);
    if (more) {
        return err_set(err, BT_INVALID,
                       "rows as NDJSON: there is more after the line with the types");
    }
    s->typed = true;
    return code;
}

static enum bt_code ndjson_row(struct source *s, bool *ret_more, struct bt_error *err)
{
    struct doc_cursor c;
    struct doc_head head = {.kind = DOC_NIL};
    enum bt_code code = next_line(s, ret_more, err);

    if (code != BT_OK) {
        return err_wrap(err, "rows as NDJSON, row %llu", (unsigned long long)s->row + 1);
    }
    if (!*ret_more) {
        return err_set(err, BT_INVALID, "rows as NDJSON: the last line with the types is missing");
    }
    c = doc_cursor(doc_from_buf(&s->doc));
    (void)doc_next(&c, &head);
    if (head.kind == DOC_MAP) {
        *ret_more = false;
        return ndjson_end(s, doc_from_buf(&s->doc), err);
    }
    if (head.kind != DOC_ARRAY || head.n != s->n) {
        return err_set(err, BT_INVALID, "rows as NDJSON, row %llu: expected a list of %u cells",
                       (unsigned long long)s->row + 1, s->n);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        s->cells[i].value = doc_skip(&c);
    }
    return BT_OK;
}

/* ---- both ---- */

static enum bt_code begin(struct source *s, char delimiter, struct bt_error *err)
{
    s->left = (struct str){NULL, 0};
    s->eof = false;
    s->n = 0;
    s->row = 0;
    s->replaced = 0;
    if (s->form == SOURCE_CSV) {
        csv_init(&s->csv, delimiter);
        return csv_header(s, err);
    }
    return ndjson_header(s, err);
}

enum bt_code source_open(struct source *s, int fd, enum source_form form, char delimiter,
                         struct bt_error *err)
{
    *s = (struct source){.fd = fd, .form = form, .names = {.max = NAMES_BYTES}};
    buf_init(&s->line, CSV_RECORD_MAX);
    buf_init(&s->doc, json_doc_capacity(CSV_RECORD_MAX));
    buf_init(&s->repaired, (size_t)CSV_RECORD_MAX * 4);
    s->block = malloc(BLOCK);
    return s->block == NULL ? err_set(err, BT_NOMEM, "out of memory for a file")
                            : begin(s, delimiter, err);
}

enum bt_code source_next(struct source *s, bool *ret_more, struct bt_error *err)
{
    enum bt_code code =
        s->form == SOURCE_CSV ? csv_row(s, ret_more, err) : ndjson_row(s, ret_more, err);

    s->row += code == BT_OK && *ret_more;
    return code;
}

enum bt_code source_again(struct source *s, char delimiter, struct bt_error *err)
{
    csv_done(&s->csv);
    if (lseek(s->fd, 0, SEEK_SET) < 0) {
        return err_errno(err, errno, "reading the file again");
    }
    return begin(s, delimiter, err);
}

void source_done(struct source *s)
{
    csv_done(&s->csv);
    buf_done(&s->line);
    buf_done(&s->doc);
    buf_done(&s->repaired);
    arena_done(&s->names);
    free(s->block);
    s->block = NULL;
}
